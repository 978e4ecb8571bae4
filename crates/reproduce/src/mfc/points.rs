//! Gains by program and working set, and what is said of several of them.

use piebald_report::{Curve, Sample};

use super::{
    inputs::{PROGRAMS, Work},
    runs::{Case, Runs, System},
};
use crate::row::{Found, Row, curve};

/// A statement about sizes; `None` = none of them is run in this form.
pub(super) type Said = Option<Result<bool, String>>;

/// What is compared over all working sets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Field {
    pub zipf: bool,
    /// Threads of Linux, and of MFC.
    pub threads: [u32; 2],
    pub controllers: u16,
}

impl Field {
    /// One thread (6.2).
    pub(super) const fn single(zipf: bool) -> Self {
        Self {
            zipf,
            threads: [1, 1],
            controllers: super::runs::CONTROLLERS,
        }
    }

    /// 16 threads of Linux and 32 of MFC (6.3).
    pub(super) const fn parallel(zipf: bool) -> Self {
        Self {
            threads: [16, 32],
            ..Self::single(zipf)
        }
    }

    /// A program on both systems.
    pub(super) fn cases(self, work: Work, files: u32) -> [Case; 2] {
        let linux = Case {
            zipf: self.zipf,
            controllers: self.controllers,
            ..Case::read(work, files, self.threads[0])
        };
        [linux, linux.under(System::MFC).by(self.threads[1])]
    }
}

/// A program at one working set.
#[derive(Clone, Debug)]
pub(super) struct Point {
    pub program: &'static str,
    /// Bytes of all files.
    pub bytes: u64,
    pub cases: [Case; 2],
    pub gain: Found,
}

impl Point {
    pub(super) const fn mb(&self) -> f64 {
        self.bytes as f64 / (1 << 20) as f64
    }
}

/// Runs programs at the working sets of this form.
pub(super) fn points(
    runs: &mut Runs<'_>,
    stage: &str,
    programs: &[&'static str],
    field: Field,
) -> Result<Vec<Point>, String> {
    let size = runs.list().size()?;
    let mut all = Vec::new();
    for program in programs {
        let work = runs.list().work(program)?;
        for files in runs.list().counts() {
            let bytes = size * u64::from(*files);
            if runs.form().has(bytes, field.threads[0], *program != "read") {
                all.push((*program, bytes, field.cases(work, *files)));
            }
        }
    }
    let cases: Vec<Case> = all.iter().flat_map(|p| p.2).collect();
    runs.run(stage, &cases);
    let point = |(program, bytes, cases): (_, _, [Case; 2])| Point {
        program,
        bytes,
        cases,
        gain: runs.gain(&cases[0], &cases[1]),
    };
    Ok(all.into_iter().map(point).collect())
}

/// Sizes of calls that `read` is run with beside the one that is judged.
const CALLS: [u64; 3] = [4 << 10, 16 << 10, 256 << 10];
/// Working set that they are run with.
const CALLS_AT: u64 = 8 << 20;

/// Shows what `read` gains at 8 MB by calls of other sizes.
pub(super) fn by_call(
    runs: &mut Runs<'_>,
    row: &mut Row,
    stage: &str,
    field: Field,
) -> Result<(), String> {
    let files = u32::try_from(CALLS_AT / runs.list().size()?).unwrap_or(1);
    let read = runs.list().work("read")?;
    let cases = CALLS.map(|call| (call, field.cases(read.by(call), files)));
    runs.run(stage, &cases.iter().flat_map(|c| c.1).collect::<Vec<_>>());
    for (call, [linux, mfc]) in &cases {
        let name = format!("read, 8 MB, calls of {} KB", call >> 10);
        row.show(&name, &runs.gain(linux, mfc), "%");
    }
    Ok(())
}

/// A program's gain at so many MB, if this form runs it.
pub(super) fn at<'p>(points: &'p [Point], program: &str, mb: u64) -> Option<&'p Found> {
    let is = |p: &&Point| p.program == program && p.bytes == mb << 20;
    points.iter().find(is).map(|p| &p.gain)
}

/// A headline number at a size, or a note that this form leaves it out.
pub(super) fn headline(row: &mut Row, points: &[Point], program: &str, mb: u64, paper: f64) {
    match at(points, program, mb) {
        Some(found) => row.headline(&format!("{program}, {mb} MB"), paper, found.clone()),
        None => row.note(&format!("{program} at {mb} MB is not in this form")),
    }
}

/// Something holds for all points of a choice.
pub(super) fn all(
    points: &[Point],
    of: impl Fn(&Point) -> bool,
    holds: impl Fn(&Sample) -> bool,
) -> Said {
    let mut chosen = points.iter().filter(|p| of(p)).peekable();
    chosen.peek()?;
    let mut result = true;
    for point in chosen {
        match &point.gain {
            Ok(sample) => result &= holds(sample),
            Err(why) => return Some(Err(why.clone())),
        }
    }
    Some(Ok(result))
}

/// Each of these is less than the one before it; `None` if there are less than two.
pub(super) fn falls<'f>(found: impl IntoIterator<Item = &'f Found>) -> Said {
    let means: Result<Vec<f64>, String> = found
        .into_iter()
        .map(|f| f.as_ref().map(|s| s.mean).map_err(Clone::clone))
        .collect();
    match means {
        Ok(means) if means.len() < 2 => None,
        Ok(means) => Some(Ok(means.windows(2).all(|w| w[1] < w[0]))),
        Err(why) => Some(Err(why)),
    }
}

/// Both, of those that are run.
pub(super) fn and(a: Said, b: Said) -> Said {
    match (a, b) {
        (None, other) | (other, None) => other,
        (Some(Err(why)), _) | (_, Some(Err(why))) => Some(Err(why)),
        (Some(Ok(a)), Some(Ok(b))) => Some(Ok(a && b)),
    }
}

/// States something, or notes that this form has none of its sizes.
pub(super) fn say(row: &mut Row, text: &str, said: Said) {
    match said {
        Some(holds) => row.states(text, holds),
        None => row.note(&format!("not in this form: {text}")),
    }
}

/// The whole interval is above zero.
pub(super) fn gains(sample: &Sample) -> bool {
    sample.interval().is_some_and(|(low, _)| low > 0.0)
}

/// Curves of the gain by MB, one for each program.
pub(super) fn curves(points: &[Point]) -> Vec<Curve> {
    let of = |program: &&'static str| {
        let mine = points.iter().filter(|p| p.program == *program);
        curve(program, false, mine.map(|p| (p.mb(), &p.gain)))
    };
    PROGRAMS.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(program: &'static str, mb: u64, gain: Found) -> Point {
        Point {
            program,
            bytes: mb << 20,
            cases: Field::single(false).cases(Work::READ, 4),
            gain,
        }
    }

    fn sample(mean: f64) -> Found {
        Ok(Sample {
            mean,
            ci95: Some(1.0),
            values: vec![mean; 2],
        })
    }

    #[test]
    fn statements_are_about_what_was_run() {
        let points = [
            point("read", 8, sample(5.0)),
            point("read", 16, sample(0.5)),
            point("wc", 8, Err("no memory".to_owned())),
        ];
        let read = |p: &Point| p.program == "read";
        assert_eq!(all(&points, read, |s| s.mean > 0.0), Some(Ok(true)));
        assert_eq!(all(&points, read, gains), Some(Ok(false)));
        assert_eq!(all(&points, |p| p.bytes == 1, gains), None);
        assert_eq!(
            all(&points, |_| true, gains),
            Some(Err("no memory".to_owned()))
        );
        assert!(at(&points, "read", 16).is_some() && at(&points, "read", 4).is_none());
    }

    #[test]
    fn a_fall_needs_two_and_every_step() {
        let found = [sample(3.0), sample(2.0), sample(2.0)];
        assert_eq!(falls(&found[..1]), None);
        assert_eq!(falls(&found[..2]), Some(Ok(true)));
        assert_eq!(falls(&found), Some(Ok(false)));
        assert_eq!(and(None, Some(Ok(true))), Some(Ok(true)));
        assert_eq!(and(Some(Ok(true)), Some(Ok(false))), Some(Ok(false)));
        assert_eq!(and(None, None), None);
    }
}
