//! Page touches of built-in programs, for memory that is paged without a machine: those of SciMark2's
//! sparse matrix multiplication y = A x, from its algorithm (`reproduce/dulo/smm.py` computes the same).
//!
//! A has the same number of elements in every row, in compressed rows; element i of row r
//! lies in column i * (r / elements of a row), at least i. Five arrays, each from a page of
//! its own, are initialised one after the other; then come the products. Touches are
//! grouped by windows of rows, in which the elements' values stay on one page: a window has
//! every page that its rows touch once, in order of the first touch.

use piebald_units::{PAGE_SIZE, Picos};

use crate::builtin::{Builtin, BuiltinError};

/// A page of memory that a program uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageTouch {
    /// Which page: below 2^40.
    pub page: u64,
    /// It is written to.
    pub write: bool,
    /// What the program computes with it before its next touch.
    pub think: Picos,
}

/// The program that is known.
const PRODUCT: &str = "smm";

/// Rows of a window: the values of 64 rows of 8 elements are a page.
const WINDOW: u64 = 64;
/// Processor time of an element: two operations at 100 Mflop/s, which this program reaches about on a Pentium 4 of
/// 1.7 GHz \[M\].
const ELEMENT: Picos = Picos(20_000);

/// A built-in program whose page touches are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touches(Shape);

impl Touches {
    /// Those of a program.
    ///
    /// # Errors
    /// A program that has none, or that has no end.
    pub fn of(program: &Builtin) -> Result<Self, BuiltinError> {
        let name = program.spec().name;
        let conflict = |problem: &str| BuiltinError::Conflict {
            name,
            problem: problem.to_owned(),
        };
        let sizes = program.value("n").zip(program.value("nz"));
        let Some((rows, elements)) = sizes.filter(|_| name == PRODUCT) else {
            return Err(conflict("its page touches are not known; allowed: smm"));
        };
        if program.iterations() == 0 {
            return Err(conflict(
                "iterations = 0; allowed: 1 and more, as its touches have an end",
            ));
        }
        let each = elements / rows;
        Ok(Self(Shape {
            rows,
            each,
            window: WINDOW,
            products: program.iterations(),
            row_time: Picos(ELEMENT.0 * each),
        }))
    }

    /// All of them: initialisation and products.
    pub fn all(self) -> impl Iterator<Item = PageTouch> {
        self.0.touches()
    }

    /// Pages that it touches.
    pub fn pages(self) -> u64 {
        self.0.pages()
    }
}

const DOUBLE: u64 = 8;
const INT: u64 = 4;

/// The sizes of a multiplication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    /// N.
    rows: u64,
    /// Elements of a row: M / N.
    each: u64,
    /// Rows of a window.
    window: u64,
    /// How often it is multiplied.
    products: u64,
    /// What a row's arithmetic takes.
    row_time: Picos,
}

/// First pages of the arrays, in the order of allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bases {
    x: u64,
    y: u64,
    val: u64,
    col: u64,
    row: u64,
    end: u64,
}

impl Shape {
    fn bases(&self) -> Bases {
        let elements = self.rows * self.each;
        let pages = |bytes: u64| bytes.div_ceil(PAGE_SIZE);
        let y = pages(DOUBLE * self.rows);
        let val = y + pages(DOUBLE * self.rows);
        let col = val + pages(DOUBLE * elements);
        let row = col + pages(INT * elements);
        let end = row + pages(INT * (self.rows + 1));
        Bases {
            x: 0,
            y,
            val,
            col,
            row,
            end,
        }
    }

    /// Pages of all arrays.
    fn pages(&self) -> u64 {
        self.bases().end
    }

    /// Pages that the rows from `first` on touch, and whether they write.
    fn window_of(&self, first: u64, rows: u64, out: &mut Vec<(u64, bool)>) {
        let b = self.bases();
        let last = first + rows - 1;
        let mut span = |base: u64, size: u64, low: u64, high: u64, write: bool| {
            for page in base + size * low / PAGE_SIZE..=base + size * high / PAGE_SIZE {
                if !out.iter().any(|(known, _)| *known == page) {
                    out.push((page, write));
                }
            }
        };
        let step = |r: u64| (r / self.each).max(1);
        let elements = (self.each * first, self.each * last + self.each - 1);
        span(b.row, INT, first, last + 1, false);
        span(b.col, INT, elements.0, elements.1, false);
        for i in 0..self.each {
            span(b.x, DOUBLE, i * step(first), i * step(last), false);
        }
        span(b.val, DOUBLE, elements.0, elements.1, false);
        span(b.y, DOUBLE, first, last, true);
    }

    /// All touches: initialisation and products.
    fn touches(self) -> impl Iterator<Item = PageTouch> {
        let first = (0..self.pages()).map(|page| PageTouch {
            page,
            write: true,
            think: Picos(0),
        });
        let starts = move || (0..self.rows).step_by(self.window as usize);
        let windows = (0..self.products).flat_map(move |_| starts());
        first.chain(windows.flat_map(move |first| self.window_touches(first)))
    }

    /// A window's touches; its arithmetic comes after the last.
    fn window_touches(&self, first: u64) -> Vec<PageTouch> {
        let rows = self.window.min(self.rows - first);
        let mut pages = Vec::with_capacity(24);
        self.window_of(first, rows, &mut pages);
        let touch = |(page, write)| PageTouch {
            page,
            write,
            think: Picos(0),
        };
        let mut touches: Vec<PageTouch> = pages.into_iter().map(touch).collect();
        if let Some(last) = touches.last_mut() {
            last.think = Picos(self.row_time.0 * rows);
        }
        touches
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    fn shape(rows: u64, elements: u64) -> Shape {
        Shape {
            rows,
            each: elements / rows,
            window: 64,
            products: 1,
            row_time: Picos(7),
        }
    }

    /// Element by element, as the benchmark's source has it.
    fn walk(s: &Shape, rows: std::ops::Range<u64>) -> BTreeMap<u64, bool> {
        let b = s.bases();
        let mut seen = BTreeMap::new();
        let mut see = |page: u64, write: bool| *seen.entry(page).or_insert(false) |= write;
        for r in rows {
            see(b.row + INT * r / PAGE_SIZE, false);
            see(b.row + INT * (r + 1) / PAGE_SIZE, false);
            let step = (r / s.each).max(1);
            for i in 0..s.each {
                let at = s.each * r + i;
                see(b.col + INT * at / PAGE_SIZE, false);
                see(b.x + DOUBLE * i * step / PAGE_SIZE, false);
                see(b.val + DOUBLE * at / PAGE_SIZE, false);
            }
            see(b.y + DOUBLE * r / PAGE_SIZE, true);
        }
        seen
    }

    #[test]
    fn a_program_is_asked_for_by_its_text_or_refused() {
        let of = |text: &str| Touches::of(&Builtin::parse(text).unwrap_or_else(|e| panic!("{e}")));
        let paper = of("smm:n=1048576,nz=8388608,iterations=15").unwrap_or_else(|e| panic!("{e}"));
        let shape = Shape {
            products: 15,
            row_time: Picos(160_000),
            ..shape(1 << 20, 1 << 23)
        };
        assert_eq!((paper.0, paper.pages()), (shape, 29_697));
        for (text, part) in [("triad:1MiB", "allowed: smm"), ("smm", "iterations = 0")] {
            let error = of(text).expect_err(text).to_string();
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn windows_have_the_pages_of_their_elements() {
        for (n, m) in [(1024, 8192), (8192, 65536), (65536, 262_144)] {
            let s = shape(n, m);
            for first in (0..n).step_by(64) {
                let mut pages = Vec::new();
                s.window_of(first, 64, &mut pages);
                let window: BTreeMap<u64, bool> = pages.iter().copied().collect();
                assert_eq!(window.len(), pages.len(), "a page once");
                assert_eq!(
                    window,
                    walk(&s, first..first + 64),
                    "{n} rows, from {first}"
                );
            }
        }
    }

    #[test]
    fn the_papers_size_has_its_working_set_and_arithmetic() {
        let s = shape(1 << 20, 1 << 23);
        // x, y, val, col, row: 2048 + 2048 + 16384 + 8192 + 1025 pages, 116 MB.
        assert_eq!(s.pages(), 29_697);
        let small = Shape {
            products: 3,
            ..shape(1000, 8000)
        };
        let touches: Vec<PageTouch> = small.touches().collect();
        let init = small.pages() as usize;
        assert!(touches[..init].iter().all(|t| t.write));
        let time: u64 = touches.iter().map(|t| t.think.0).sum();
        assert_eq!(time, 3 * 1000 * 7, "the last window is a short one");
    }

    /// The touches of two small sizes, `page written` on each line.
    fn stream() -> String {
        let both = [shape(1024, 8192), shape(65536, 262_144)];
        let touches = both.into_iter().flat_map(Shape::touches);
        let lines = touches.map(|t| format!("{} {}\n", t.page, u8::from(t.write)));
        lines.collect()
    }

    /// Lines that `smm.py` writes for the same sizes, and their XXH3.
    const OF_SMM_PY: (usize, u64) = (9462, 0x5ecf_44f6_8c49_b0b3);

    fn lines_and_hash(text: &str) -> (usize, u64) {
        let hash = twox_hash::XxHash3_64::oneshot(text.as_bytes());
        (text.lines().count(), hash)
    }

    #[test]
    fn the_stream_is_that_of_smm_py() {
        assert_eq!(lines_and_hash(&stream()), OF_SMM_PY);
    }

    #[test]
    #[ignore = "needs python3: ./test.sh simulators"]
    fn smm_py_writes_the_stream() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../reproduce/dulo");
        let code = "import smm\n\
                    for n, m in ((1024, 8192), (65536, 262144)):\n\
                    \x20   for page, w in smm.initialise(n, m): print(page, int(w))\n\
                    \x20   for t in smm.product(n, m):\n\
                    \x20       for page, w in t.items(): print(page, int(w))\n";
        let python = Command::new("python3")
            .args(["-B", "-c", code])
            .current_dir(&folder)
            .output()
            .expect("python3 starts (Debian package python3)");
        assert!(python.status.success(), "{python:?}");
        let theirs = String::from_utf8(python.stdout).expect("UTF-8");
        assert_eq!(lines_and_hash(&theirs), OF_SMM_PY);
        assert!(theirs == stream(), "other touches");
    }
}
