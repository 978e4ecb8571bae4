//! programs alone with partitions of all sizes (section 6.2, Figure 10,
//! Table II).

use piebald_report::{
    Curve, CurvePoint, Panel, PaperFigure, Predicate, Published, Sample, Study, Target, TargetKind,
    Value, Verdict,
};

use super::{
    COLORS, FLAT_SHARE, Form, RED, RISE_POINTS, Subject, YELLOW, blank, head, mebibytes, missing,
};
use crate::{
    experiment::{Bench, miss_rate, program, slowdown},
    verdict,
};

/// Colours that 429.mcf had at least.
const MCF_COLORS: u32 = 3;

/// Levels of the data path, counted from the first.
const L2: usize = 1;
const LLC: usize = 2;

/// A program's curves over the sizes.
pub(super) struct Profile<'a> {
    subject: &'a Subject,
    points: Vec<Point>,
}

struct Point {
    colors: u32,
    /// Against all colours, in percent.
    slowdown: Sample,
    /// In percent.
    llc: Sample,
    l2: Sample,
}

pub(super) fn run(
    bench: &Bench<'_>,
    form: &Form,
    subjects: &[Subject],
) -> (Vec<Target>, Option<PaperFigure>) {
    let mut targets = vec![
        blank(
            "R-2",
            "Figure 10: nine programs alone, 0.5 to 8 MB of the LLC",
            TargetKind::S,
        ),
        blank(
            "R-3",
            "Figure 10: the L2 miss rate is the same at all sizes",
            TargetKind::H,
        ),
        blank(
            "R-5",
            "Table II: slowdown with 0.5 MB against 8 MB",
            TargetKind::H,
        ),
    ];
    for t in &mut targets {
        t.stand_in = true;
    }
    let fail = |mut targets: Vec<Target>, why: &str| {
        for t in &mut targets {
            t.why = Some(why.to_owned());
        }
        (targets, None)
    };
    if let Some(why) = missing(subjects) {
        return fail(targets, &why);
    }
    let study = match bench.run("profiles", &scenario(form, subjects)) {
        Ok(study) => study,
        Err(why) => return fail(targets, &why),
    };
    let profiles = profiles(&study, form, subjects);
    let [falls, flat, classes] = &mut targets[..] else {
        return (targets, None);
    };
    judge_falls(falls, &profiles);
    judge_flat(flat, &profiles);
    judge_classes(classes, &profiles);
    (targets, Some(figure(&profiles)))
}

fn scenario(form: &Form, subjects: &[Subject]) -> String {
    let mut text = head(form, "Programs alone", form.repetitions);
    text.extend(subjects.iter().filter_map(|s| s.table(0, "target")));
    for colors in &form.sizes {
        let last = colors - 1;
        text +=
            &format!("[[policy]]\nname = \"{colors}\"\nframes = \"rainbow\"\n[policy.colors]\n");
        for s in subjects {
            let name = toml::Value::String(s.program.name.clone());
            text += &format!("{name} = \"0-{last}\"\n");
        }
    }
    text
}

fn profiles<'a>(study: &Study, form: &Form, subjects: &'a [Subject]) -> Vec<Profile<'a>> {
    let profile = |subject: &'a Subject| {
        let name = &subject.program.name;
        let at = |colors: u32| program(study, &colors.to_string(), name).map(|p| &p.alone);
        let all = at(COLORS)?;
        let point = |colors: &u32| {
            let metrics = at(*colors)?;
            Some(Point {
                colors: *colors,
                slowdown: slowdown(metrics, all)?,
                llc: miss_rate(metrics, LLC)?,
                l2: miss_rate(metrics, L2)?,
            })
        };
        let points = form
            .sizes
            .iter()
            .map(point)
            .collect::<Option<Vec<Point>>>()?;
        Some(Profile { subject, points })
    };
    subjects.iter().filter_map(profile).collect()
}

impl Profile<'_> {
    fn name(&self) -> &str {
        &self.subject.program.name
    }

    /// With the smallest partition that the thesis gave to the program: one colour, but three
    /// to 429.mcf, whose memory fits no fewer (section 6.2); or the next size that was run.
    fn smallest(&self) -> Option<&Point> {
        let least = match self.subject.program.stands_for.starts_with("429") {
            true => MCF_COLORS,
            false => 1,
        };
        self.points.iter().find(|p| p.colors >= least)
    }

    /// Slowdown with that.
    fn worst(&self) -> Option<&Sample> {
        Some(&self.smallest()?.slowdown)
    }

    /// The largest rise of a curve from one size to the next.
    fn rise(&self, of: fn(&Point) -> &Sample) -> f64 {
        let steps = self.points.windows(2);
        let rise = |w: &[Point]| of(&w[1]).mean - of(&w[0]).mean;
        steps.map(rise).fold(0.0, f64::max)
    }

    /// Mean half width of the slowdown's intervals, in points.
    fn spread(&self) -> f64 {
        let halves = self.points.iter().filter_map(|p| p.slowdown.ci95);
        let (sum, n) = halves.fold((0.0, 0u32), |(sum, n), h| (sum + h, n + 1));
        if n == 0 { f64::NAN } else { sum / f64::from(n) }
    }
}

/// What begins with a number of SPEC.
fn those<'p, 'a>(
    profiles: &'p [Profile<'a>],
    numbers: &'p [&'p str],
) -> impl Iterator<Item = &'p Profile<'a>> {
    let is = move |p: &&Profile<'a>| {
        let stands_for = &p.subject.program.stands_for;
        numbers.iter().any(|n| stands_for.starts_with(n))
    };
    profiles.iter().filter(is)
}

///
fn judge_falls(t: &mut Target, profiles: &[Profile<'_>]) {
    for p in profiles {
        for (what, of) in [
            ("slowdown", (|p| &p.slowdown) as fn(&Point) -> &Sample),
            ("LLC miss rate", |p| &p.llc),
        ] {
            let rise = p.rise(of);
            t.predicates.push(Predicate {
                text: format!(
                    "{}: the {what} falls or stays with the size (largest rise {rise:.2} points, \
                     allowed {RISE_POINTS})",
                    p.name()
                ),
                holds: Some(rise <= RISE_POINTS),
            });
        }
    }
    let at_most = |limit: f64| move |p: &Profile<'_>| p.worst().is_some_and(|s| s.mean < limit);
    let much = |p: &Profile<'_>| p.worst().is_some_and(|s| s.mean >= RED);
    t.predicates.push(Predicate {
        text: format!("bzip2 and omnetpp gain much (by {RED} % or more)"),
        holds: Some(those(profiles, &["401", "471"]).all(much)),
    });
    t.predicates.push(Predicate {
        text: format!("libquantum and leslie3d gain almost nothing (less than {YELLOW} %)"),
        holds: Some(those(profiles, &["462", "437"]).all(at_most(YELLOW))),
    });
    let steady = profiles.iter().filter(|p| {
        let stands_for = &p.subject.program.stands_for;
        !stands_for.starts_with("450") && !stands_for.starts_with("482")
    });
    let most = steady.map(Profile::spread).fold(0.0, f64::max);
    let variable = those(profiles, &["450", "482"]).all(|p| p.spread() > most);
    t.predicates.push(Predicate {
        text: "soplex and sphinx vary more than every other program".to_owned(),
        holds: Some(variable),
    });
    t.verdict = verdict::shape(&t.predicates);
    if !variable {
        t.why = Some(
            "the thesis does not explain why its soplex and sphinx vary; repetitions of a stand-in \
             differ in the frames that it gets, not in the work that it does"
                .to_owned(),
        );
    }
}

/// relative to the rate with all colours, in percent.
fn judge_flat(t: &mut Target, profiles: &[Profile<'_>]) {
    let mut verdicts = Vec::new();
    for p in profiles {
        let Some(all) = p.points.last() else { continue };
        let change = |point: &Point| {
            let ratio = point.l2.ratio(&all.l2)?;
            Some(ratio.map(|r| 100.0 * (r - 1.0)))
        };
        let others = p.points.iter().filter(|q| q.colors != COLORS);
        let changes: Option<Vec<Sample>> = others.map(change).collect();
        // The size that differs most decides.
        let largest = changes
            .into_iter()
            .flatten()
            .max_by(|a, b| a.mean.abs().total_cmp(&b.mean.abs()));
        let Some(largest) = largest else { continue };
        verdicts.push(verdict::no_change(100.0 * FLAT_SHARE, &largest));
        t.values.push(Value {
            name: format!("{}, largest change over the sizes", p.name()),
            paper: Published::Text("flat".to_owned()),
            measured: Some(largest.mean),
            ci95: largest.interval().map(|(l, h)| [l, h]),
            unit: "% of the rate".to_owned(),
        });
    }
    t.verdict = verdict::worst(verdicts);
    t.why = Some(format!(
        "flat: the whole interval within {} % of the rate with all colors",
        100.0 * FLAT_SHARE
    ));
}

/// The range of a class, in percent.
fn range(class: &str) -> (f64, f64, String) {
    match class {
        "R" => (RED, f64::INFINITY, format!(">= {RED}")),
        "Y" => (YELLOW, RED, format!("{YELLOW} to {RED}")),
        _ => (f64::NEG_INFINITY, YELLOW, format!("< {YELLOW}")),
    }
}

///
fn judge_classes(t: &mut Target, profiles: &[Profile<'_>]) {
    let mut verdicts = Vec::new();
    let mut other = Vec::new();
    for p in profiles {
        let Some(smallest) = p.smallest() else {
            continue;
        };
        let worst = &smallest.slowdown;
        let (low, high, text) = range(&p.subject.program.class);
        let verdict = verdict::range(low, high, worst);
        if verdict != Verdict::Match {
            other.push(p.name());
        }
        verdicts.push(verdict);
        t.values.push(Value {
            name: format!(
                "{} for {} ({}), with {} MB",
                p.name(),
                p.subject.program.stands_for,
                p.subject.program.class,
                mebibytes(smallest.colors)
            ),
            paper: Published::Text(text),
            measured: Some(worst.mean),
            ci95: worst.interval().map(|(l, h)| [l, h]),
            unit: "%".to_owned(),
        });
    }
    t.verdict = verdict::worst(verdicts);
    if !other.is_empty() {
        t.why = Some(format!(
            "not of the class of the program of SPEC: {}",
            other.join(", ")
        ));
    }
}

fn figure(profiles: &[Profile<'_>]) -> PaperFigure {
    let curve = |p: &Profile<'_>, name: &str, of: fn(&Point) -> &Sample| Curve {
        name: name.to_owned(),
        dashed: false,
        points: p
            .points
            .iter()
            .map(|point| CurvePoint {
                x: mebibytes(point.colors),
                y: of(point).mean,
                ci95: of(point).ci95,
            })
            .collect(),
    };
    let panel = |p: &Profile<'_>| Panel {
        title: format!("{} for {}", p.name(), p.subject.program.stands_for),
        curves: vec![
            curve(p, "slowdown", |p| &p.slowdown),
            curve(p, "LLC miss rate", |p| &p.llc),
            curve(p, "L2 miss rate", |p| &p.l2),
        ],
    };
    PaperFigure {
        name: "Figure 10: programs alone, by size of their partition".to_owned(),
        text: "Slowdown against the whole cache, and misses per access of the last level and of \
               the second, in percent; bars: 95 % intervals over the repetitions."
            .to_owned(),
        x: "partition of the LLC [MiB]".to_owned(),
        y: "%".to_owned(),
        panels: profiles.iter().map(panel).collect(),
        ..PaperFigure::default()
    }
}
