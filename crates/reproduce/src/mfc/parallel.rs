//! 16 threads of Linux and 32 of MFC: M-5, M-6, M-8, M-9 and M-14.

use piebald_report::{PaperFigure, Sample, Target, TargetKind};

use super::{
    inputs::{PROGRAMS, Work},
    points::{self, Field, Point, at, falls, headline, say},
    runs::{CONTROLLERS, Case, Runs, System},
};
use crate::row::{Found, Row, curve, extreme, figure};

type Done = (Vec<Target>, Vec<PaperFigure>);

const MIB: u64 = 1 << 20;
/// Threads of MFC.
const THREADS: u32 = 32;
/// M-14: far below, close, and the most that the quotient may fall (protocol).
const FAR: f64 = 0.5;
const CLOSE: f64 = 0.9;
const FALL: f64 = 0.05;

/// What a figure of the paper says: gains of `read` by MB, and the largest of other programs.
struct Says {
    id: &'static str,
    title: &'static str,
    figure: &'static str,
    read: &'static [(u64, f64)],
    largest: [(&'static str, f64); 3],
    /// Programs whose work was chosen by these numbers (protocol).
    informed: &'static [&'static str],
    field: Field,
}

/// M-5.
pub(super) fn uniform(runs: &mut Runs<'_>) -> Result<Done, String> {
    let says = Says {
        id: "M-5",
        title: "Figure 6: in parallel",
        figure: "figure 6",
        read: &[(4, 163.0), (8, 281.0), (16, 150.0)],
        largest: [("grep", 15.0), ("wc", 10.0), ("md5sum", 6.0)],
        informed: &[],
        field: Field::parallel(false),
    };
    let (mut row, drawn) = all_programs(runs, &says)?;
    points::by_call(runs, &mut row, "figure 6, other calls", says.field)?;
    Ok((vec![row.finish()], drawn))
}

/// M-6.
pub(super) fn by_zipf(runs: &mut Runs<'_>) -> Result<Done, String> {
    let says = Says {
        id: "M-6",
        title: "Figure 7: in parallel, by Zipf's law",
        figure: "figure 7",
        read: &[(4, 65.0), (8, 79.0), (16, 71.0)],
        largest: [("grep", 14.0), ("wc", 6.0), ("md5sum", 5.0)],
        informed: &[],
        field: Field::parallel(true),
    };
    all_programs(runs, &says).map(|(row, drawn)| (vec![row.finish()], drawn))
}

/// M-8.
pub(super) fn one_controller(runs: &mut Runs<'_>) -> Result<Done, String> {
    let says = Says {
        id: "M-8",
        title: "Figure 9: an eighth of the bandwidth",
        figure: "figure 9",
        read: &[(4, 308.0), (8, 427.0)],
        largest: [("grep", 97.0), ("wc", 32.0), ("md5sum", 7.0)],
        informed: &["grep", "wc"],
        field: Field {
            controllers: 1,
            ..Field::parallel(false)
        },
    };
    let (mut row, drawn) = all_programs(runs, &says)?;
    row.note("by the caption; the text has 418 % for read");
    Ok((vec![row.finish()], drawn))
}

fn all_programs(runs: &mut Runs<'_>, says: &Says) -> Result<(Row, Vec<PaperFigure>), String> {
    let points = points::points(runs, says.figure, &PROGRAMS, says.field)?;
    let mut row = Row::new(says.id, says.title, TargetKind::H);
    for (mb, paper) in says.read {
        headline(&mut row, &points, "read", *mb, *paper);
    }
    for (program, paper) in says.largest {
        let (name, found) = (format!("{program}, largest"), largest(&points, program));
        if says.informed.contains(&program) {
            row.informed(&name, paper, &found, "%")
        } else {
            row.headline(&name, paper, found)
        }
    }
    if !says.informed.is_empty() {
        let names = says.informed.join(" and ");
        row.note(&format!(
            "{names} are not judged: these numbers chose their work (log.md, 6)"
        ));
    }
    if runs.form().quick {
        row.note("sizes of this form: 8 and 16 MB for read, 8 MB for the others");
    }
    let labels = [
        says.figure,
        "16 threads of Linux, 32 of MFC",
        "MB of all files",
        "gain of MFC, %",
    ];
    let panels = vec![(String::new(), points::curves(&points))];
    Ok((row, figure(labels, panels).into_iter().collect()))
}

fn largest(points: &[Point], program: &str) -> Found {
    let mine = points.iter().filter(|p| p.program == program);
    let found: Vec<Found> = mine.map(|p| p.gain.clone()).collect();
    extreme(&found, true)
}

/// M-9.
pub(super) fn bandwidth(runs: &mut Runs<'_>) -> Result<Done, String> {
    let mut row = Row::new("M-9", "Section 6.5.1: bandwidth", TargetKind::H).calibrated();
    row.note("the work of grep was chosen by the paper's 97 % (log.md, 6)");
    let mut found = Vec::new();
    for (controllers, paper) in [(1, 97.0), (2, 37.0), (CONTROLLERS, 15.0)] {
        let field = Field {
            controllers,
            ..Field::parallel(false)
        };
        let points = points::points(runs, "section 6.5.1", &["grep"], field)?;
        let gain = largest(&points, "grep");
        let name = format!("grep, largest, controllers: {controllers}");
        row.headline(&name, paper, gain.clone());
        found.push(gain);
    }
    let grows = falls(&found).unwrap_or(Ok(false));
    row.states("it grows as the bandwidth falls", grows);
    if runs.form().quick {
        row.note("8 MB is the only size of this form");
    }
    Ok((vec![row.finish()], Vec::new()))
}

/// M-14.
pub(super) fn one_copy(runs: &mut Runs<'_>) -> Result<Done, String> {
    let mut row = Row::new("M-14", "Figure 12: no replication", TargetKind::S);
    let size = runs.list().size()?;
    let counts = runs.list().counts().iter().copied();
    let counts = counts.filter(|n| runs.form().has(size * u64::from(*n), THREADS, false));
    let counts: Vec<u32> = counts.collect();
    let cases = |files: u32| {
        let copies = Case {
            zipf: true,
            ..Case::read(Work::READ, files, THREADS).under(System::MFC)
        };
        let none = copies.under(System::Mfc {
            copies: false,
            first_only: false,
            migration_us: None,
        });
        [copies, none]
    };
    let all: Vec<Case> = counts.iter().flat_map(|n| cases(*n)).collect();
    runs.run("figure 12", &all);
    let quotient = |files: u32| -> Found {
        let [copies, none] = cases(files).map(|c| runs.sample(&c, |d| d.throughput));
        let quotient = none?.ratio(&copies?);
        quotient.ok_or_else(|| "repetitions are missing".to_owned())
    };
    let found: Vec<Point> = counts
        .iter()
        .map(|n| Point {
            program: "read",
            bytes: size * u64::from(*n),
            cases: cases(*n),
            gain: quotient(*n),
        })
        .collect();
    let far = points::all(&found, |p| p.bytes <= MIB, |s| s.mean < FAR);
    let text = "at 0.25 to 1 MB it has less than half of MFC's throughput";
    say(&mut row, text, far);
    let text = "its quotient to MFC's nowhere falls by more than 5 points";
    say(&mut row, text, nowhere_falls(&found));
    let close = at(&found, "read", 128).cloned();
    let close = close.map(|f| f.map(|s: Sample| s.mean >= CLOSE));
    say(&mut row, "at 128 MB the quotient is at least 0.9", close);
    for point in &found {
        row.show(&format!("quotient, {} MB", point.mb()), &point.gain, "");
    }
    let curves = vec![curve(
        "read",
        false,
        found.iter().map(|p| (p.mb(), &p.gain)),
    )];
    let labels = [
        "figure 12",
        "32 threads by Zipf's law: MFC without replication over MFC",
        "MB of all files",
        "quotient of throughputs",
    ];
    let drawn = figure(labels, vec![(String::new(), curves)]);
    Ok((vec![row.finish()], drawn.into_iter().collect()))
}

fn nowhere_falls(found: &[Point]) -> points::Said {
    let means: Result<Vec<f64>, String> = found
        .iter()
        .map(|p| p.gain.as_ref().map(|s| s.mean).map_err(Clone::clone))
        .collect();
    match means {
        Ok(means) if means.len() < 2 => None,
        Ok(means) => Some(Ok(means.windows(2).all(|w| w[1] >= w[0] - FALL))),
        Err(why) => Some(Err(why)),
    }
}
