//! Where files lie on a disk.
//!
//! Text, one extent a line: `path logical_page physical_page length`, in pages of 4 KiB. The path may
//! hold blanks; the three numbers are the last fields. Plain or packed.

use std::collections::HashMap;
use std::path::Path;

use super::error::BlockError;
use super::text::number;
use crate::foreign::error::Complaint;
use crate::foreign::input::Input;

/// Pages below the end of the largest disk: 8 EiB.
const MAX_PAGE: u64 = 1 << 51;

/// Consecutive pages of a file that lie in consecutive pages of the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// First page in the file.
    pub logical: u64,
    /// First page on the disk.
    pub physical: u64,
    /// Pages, at least 1.
    pub pages: u64,
}

impl Extent {
    const fn logical_end(&self) -> u64 {
        self.logical + self.pages
    }
}

/// Extents of many files.
#[derive(Clone, Debug, Default)]
pub struct Layout {
    files: HashMap<Box<[u8]>, Vec<Extent>>,
    extents: usize,
}

impl Layout {
    /// Reads a layout file. Memory grows with the number of extents.
    ///
    /// # Errors
    /// The file cannot be read; a line is wrong; an extent overlaps an earlier one of its file; or
    /// there is no extent at all.
    pub fn open(path: &Path) -> Result<Self, BlockError> {
        Self::read(Input::open(path)?)
    }

    /// The same for bytes in memory, packed or not.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_bytes(name: &str, bytes: &[u8]) -> Result<Self, BlockError> {
        Self::read(Input::from_bytes(name, bytes)?)
    }

    fn read(mut input: Input) -> Result<Self, BlockError> {
        let mut layout = Self::default();
        while input.line(|line| layout.add(line))?.is_some() {}
        match layout.extents {
            0 => Err(BlockError::Empty {
                name: input.name().to_owned(),
            }),
            _ => Ok(layout),
        }
    }

    fn add(&mut self, line: &[u8]) -> Result<(), Complaint> {
        if line.is_empty() || line.starts_with(b"# ") {
            return Ok(());
        }
        let (path, extent) = parse(line)?;
        if !self.files.contains_key(path) {
            self.files.insert(path.into(), Vec::new());
        }
        let Some(extents) = self.files.get_mut(path) else {
            return Ok(());
        };
        let at = extents.partition_point(|e| e.logical < extent.logical);
        let before = at.checked_sub(1).and_then(|i| extents.get(i));
        let overlaps = before.is_some_and(|e| e.logical_end() > extent.logical)
            || extents
                .get(at)
                .is_some_and(|e| extent.logical_end() > e.logical);
        if overlaps {
            let allowed = "pages that no earlier extent of the file has";
            return Err(Complaint::number(
                "the logical page",
                extent.logical,
                allowed,
            ));
        }
        extents.insert(at, extent);
        self.extents += 1;
        Ok(())
    }

    /// Extents of a file in rising order of logical page; empty if the layout has no such file.
    pub fn extents(&self, path: &[u8]) -> &[Extent] {
        self.files.get(path).map_or(&[], Vec::as_slice)
    }

    /// Where a page of a file lies; `None` in a hole, behind the end, and in files that are not
    /// there.
    pub fn page(&self, path: &[u8], logical: u64) -> Option<u64> {
        let extents = self.extents(path);
        let at = extents.partition_point(|e| e.logical <= logical);
        let extent = extents.get(at.checked_sub(1)?)?;
        (logical < extent.logical_end()).then(|| extent.physical + (logical - extent.logical))
    }

    /// Every file with its extents, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[Extent])> {
        self.files.iter().map(|(path, e)| (&**path, e.as_slice()))
    }

    /// Number of files.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// There is no file. A layout that was read has at least one.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The page behind the last one that any file uses: the disk has at least so many.
    pub fn end(&self) -> u64 {
        let ends = self.files.values().flatten().map(|e| e.physical + e.pages);
        ends.max().unwrap_or(0)
    }
}

fn parse(line: &[u8]) -> Result<(&[u8], Extent), Complaint> {
    let mut fields = line.rsplitn(4, |b| *b == b' ');
    let (Some(pages), Some(physical), Some(logical), Some(path)) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        let allowed = "\"path logical_page physical_page length\"";
        return Err(Complaint::text("the line", line, allowed));
    };
    let extent = Extent {
        logical: number("the logical page", logical)?,
        physical: number("the physical page", physical)?,
        pages: number("the length", pages)?,
    };
    if extent.pages == 0 {
        return Err(Complaint::text("the length", pages, "at least 1 page"));
    }
    for (field, first) in [
        ("the last logical page", extent.logical),
        ("the last physical page", extent.physical),
    ] {
        let end = first.checked_add(extent.pages);
        if end.is_none_or(|end| end > MAX_PAGE) {
            return Err(Complaint::new(
                field,
                format!("{first} + {}", extent.pages),
                "up to 2251799813685248",
            ));
        }
    }
    Ok((path, extent))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout(text: &str) -> Result<Layout, String> {
        Layout::from_bytes("layout", text.as_bytes()).map_err(|e| e.to_string())
    }

    #[test]
    fn pages_are_found_in_their_extents() {
        let l = layout("a b/c 0 100 3\nx 0 7 1\na b/c 5 300 2\na b/c 3 50 1\n").expect("a layout");
        let found: Vec<Option<u64>> = (0..8).map(|p| l.page(b"a b/c", p)).collect();
        let expected = [
            Some(100),
            Some(101),
            Some(102),
            Some(50),
            None,
            Some(300),
            Some(301),
            None,
        ];
        assert_eq!(found, expected);
        assert_eq!(l.page(b"a", 0), None);
        assert_eq!((l.len(), l.end()), (2, 302));
        assert_eq!(l.extents(b"x").len(), 1);
        let unended = layout("a b/c 0 100 3\nx 0 7 1").expect("a layout");
        assert_eq!((unended.len(), unended.page(b"x", 0)), (2, Some(7)));
    }

    #[test]
    fn wrong_lines_are_named_with_place_and_value() {
        for (text, message) in [
            ("", "empty"),
            ("a 0 1\n", "line 1: the line is \"a 0 1\""),
            ("a 0 1 1\na 0 x 1\n", "line 2: the physical page is \"x\""),
            ("a 0 1 0\n", "the length is \"0\"; allowed: at least 1 page"),
            (
                "a 0 1 3\na 2 9 1\n",
                "line 2: the logical page is 2; allowed: pages that no earlier",
            ),
            ("a 2 9 1\na 0 1 3\n", "the logical page is 0"),
            (
                "a 0 18446744073709551615 1\n",
                "the last physical page is 18446744073709551615 + 1",
            ),
            ("a 0 1", "no line feed ends this line"),
        ] {
            let error = layout(text).expect_err(text);
            assert!(error.contains(message), "{error}");
        }
    }
}
