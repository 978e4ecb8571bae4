//! a target with its own partition beside three polluters (section 6.3, Table III,
//! Figure 11).

use piebald_report::{
    Curve, CurvePoint, Panel, PaperFigure, Predicate, Published, Sample, Study, Target, TargetKind,
    Verdict,
};

use super::{
    Form, NO_SHAPE_POINTS, OVERLAP_POINTS, SAME_SHAPE, Subject, blank, head, mebibytes, missing,
    owning,
};
use crate::{
    experiment::{Bench, mean_of, miss_rate, program, slowdown},
    row::sampled,
    verdict,
};

/// Name and programs of the mixes by their numbers in SPEC CPU2006: the target, then the
/// polluters (Table III).
const MIXES: [(&str, [&str; 4]); 10] = [
    ("3R_1Y", ["471", "483", "401", "450"]),
    ("3R_1G", ["401", "471", "483", "437"]),
    ("2R_2Y", ["483", "471", "429", "473"]),
    ("2R_1Y_1G", ["483", "401", "437", "482"]),
    ("2R_2G", ["401", "471", "437", "462"]),
    ("1R_3Y", ["471", "450", "429", "482"]),
    ("1R_2Y_1G", ["483", "473", "482", "462"]),
    ("1R_1Y_2G", ["401", "473", "437", "462"]),
    ("3Y_1G", ["429", "473", "482", "462"]),
    ("2Y_2G", ["450", "482", "437", "462"]),
];

/// Level of the data path, counted from the first.
const LLC: usize = 2;

/// Name of the policy without colours.
const STOCK: &str = "stock";

/// A target's curves in a mix, and alone in the same study.
struct Mix {
    name: String,
    target: String,
    points: Vec<Point>,
    /// On frames without colours: together, and alone.
    stock: Option<[Sample; 2]>,
}

struct Point {
    colors: u32,
    /// LLC miss rate together and alone, in percent.
    together: Sample,
    alone: Sample,
    /// Slowdown against the largest partition alone, in percent.
    slow_together: Sample,
    slow_alone: Sample,
}

pub(super) fn run(
    bench: &Bench<'_>,
    form: &Form,
    subjects: &[Subject],
) -> (Target, Option<PaperFigure>) {
    let mut t = blank(
        "R-6",
        "Table III, Figure 11: ten mixes of a target with a partition and three polluters",
        TargetKind::H,
    );
    t.stand_in = true;
    t.why = missing(subjects);
    if t.why.is_some() {
        return (t, None);
    }
    let mut mixes = Vec::new();
    let mut failed = Vec::new();
    for (name, numbers) in MIXES {
        match mix(bench, form, subjects, name, numbers) {
            Ok(mix) => mixes.push(mix),
            Err(why) => failed.push(format!("{name}: {why}")),
        }
    }
    judge(&mut t, &mixes);
    if !failed.is_empty() {
        t.verdict = Verdict::NotRun;
        t.why = Some(format!("not run: {}", failed.join("; ")));
    }
    let figure = (!mixes.is_empty()).then(|| figure(&mixes));
    (t, figure)
}

fn mix(
    bench: &Bench<'_>,
    form: &Form,
    subjects: &[Subject],
    name: &str,
    numbers: [&str; 4],
) -> Result<Mix, String> {
    let mut text = head(form, name, form.mix_repetitions);
    let mut target = "";
    for (core, number) in numbers.into_iter().enumerate() {
        let found = subjects
            .iter()
            .find(|s| s.program.stands_for.starts_with(number));
        let subject = found.ok_or_else(|| format!("nothing stands for {number}"))?;
        let role = if core == 0 { "target" } else { "polluter" };
        let table = subject.table(core, role);
        text += &table.ok_or_else(|| format!("{} is not recorded", subject.program.name))?;
        if core == 0 {
            target = &subject.program.name;
        }
    }
    text += &format!("[[policy]]\nname = \"{STOCK}\"\nframes = \"stock\"\n");
    for colors in &form.mix_sizes {
        text += &owning(&colors.to_string(), target, *colors);
    }
    let study = bench.run(&format!("mix {name}"), &text)?;
    let points = points(&study, form, target).ok_or("the study lacks results")?;
    let stock = program(&study, STOCK, target).and_then(|p| {
        let together = miss_rate(p.together.as_ref()?, LLC)?;
        Some([together, miss_rate(&p.alone, LLC)?])
    });
    Ok(Mix {
        name: name.to_owned(),
        target: target.to_owned(),
        points,
        stock,
    })
}

fn points(study: &Study, form: &Form, target: &str) -> Option<Vec<Point>> {
    let found = |colors: u32| program(study, &colors.to_string(), target);
    let largest = found(*form.mix_sizes.last()?)?;
    let point = |colors: &u32| {
        let p = found(*colors)?;
        let together = p.together.as_ref()?;
        Some(Point {
            colors: *colors,
            together: miss_rate(together, LLC)?,
            alone: miss_rate(&p.alone, LLC)?,
            slow_together: slowdown(together, &largest.alone)?,
            slow_alone: slowdown(&p.alone, &largest.alone)?,
        })
    };
    form.mix_sizes.iter().map(point).collect()
}

impl Mix {
    /// Miss rate together less alone, over all sizes.
    fn gap(&self) -> Option<Sample> {
        let gaps: Vec<Sample> = self
            .points
            .iter()
            .map(|p| p.together.difference(&p.alone))
            .collect();
        mean_of(&gaps)
    }

    /// Slowdown together less alone, over all sizes.
    fn offset(&self) -> Option<Sample> {
        let gap = |p: &Point| p.slow_together.difference(&p.slow_alone);
        mean_of(&self.points.iter().map(gap).collect::<Vec<Sample>>())
    }

    /// Whether the slowdown curves have one shape, and what that was judged by.
    fn same_shape(&self) -> (bool, String) {
        let alone: Vec<f64> = self.points.iter().map(|p| p.slow_alone.mean).collect();
        let together: Vec<f64> = self.points.iter().map(|p| p.slow_together.mean).collect();
        let (flat, varies) = (span(&alone), span(&together));
        if flat < NO_SHAPE_POINTS {
            let text = format!("alone it varies by {flat:.1} points, together by {varies:.1}");
            return (varies < 2.0 * NO_SHAPE_POINTS, text);
        }
        let r = correlation(&alone, &together);
        (r >= SAME_SHAPE, format!("correlation {r:.3}"))
    }
}

fn span(values: &[f64]) -> f64 {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    high - low
}

/// Pearson's.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let (ma, mb) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(x, y)| f(x - ma, y - mb)).sum()
    };
    sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt()
}

fn judge(t: &mut Target, mixes: &[Mix]) {
    let mut verdicts = Vec::new();
    let mut stock = Vec::new();
    for m in mixes {
        let Some((gap, offset)) = m.gap().zip(m.offset()) else {
            continue;
        };
        verdicts.push(verdict::no_change(OVERLAP_POINTS, &gap));
        let value = |what: &str, paper: &str, sample: &Sample| {
            let paper = Published::Text(paper.to_owned());
            sampled(&format!("{}: {what}", m.name), paper, sample, "points")
        };
        let name = &m.name;
        t.values
            .push(value("miss rate, together less alone", "overlap", &gap));
        t.values
            .push(value("slowdown, together less alone", "an offset", &offset));
        if let Some([together, alone]) = &m.stock {
            let gap = together.difference(alone);
            t.values
                .push(value("miss rate, the same without colors", "-", &gap));
            stock.push(gap.mean);
        }
        let (same, how) = m.same_shape();
        t.predicates.push(Predicate {
            text: format!(
                "{name} ({}): the slowdown curves have one shape ({how})",
                m.target
            ),
            holds: Some(same),
        });
        let above = offset.interval().is_some_and(|(_, high)| high >= 0.0);
        t.predicates.push(Predicate {
            text: format!("{name}: together it is not faster than alone"),
            holds: Some(above),
        });
    }
    t.verdict = verdict::with_statements(verdict::worst(verdicts), &t.predicates);
    t.why = Some(format!(
        "overlap: the whole interval of the mean difference over the sizes within {OVERLAP_POINTS} \
         points; one shape: correlation {SAME_SHAPE} or more, or both within {NO_SHAPE_POINTS} and {} \
         points; without colors the miss rates differ by {:.1} points on average",
        2.0 * NO_SHAPE_POINTS,
        stock.iter().sum::<f64>() / stock.len() as f64
    ));
}

fn figure(mixes: &[Mix]) -> PaperFigure {
    let curve = |m: &Mix, name: &str, dashed: bool, of: fn(&Point) -> &Sample| Curve {
        name: name.to_owned(),
        dashed,
        points: m
            .points
            .iter()
            .map(|p| CurvePoint {
                x: mebibytes(p.colors),
                y: of(p).mean,
                ci95: of(p).ci95.filter(|_| !dashed),
            })
            .collect(),
    };
    let panel = |m: &Mix| Panel {
        title: format!("{}: {}", m.name, m.target),
        curves: vec![
            curve(m, "slowdown", false, |p| &p.slow_together),
            curve(m, "slowdown", true, |p| &p.slow_alone),
            curve(m, "LLC miss rate", false, |p| &p.together),
            curve(m, "LLC miss rate", true, |p| &p.alone),
        ],
    };
    PaperFigure {
        name: "Figure 11: targets beside three polluters, by size of their partition".to_owned(),
        text: "Slowdown against the largest partition alone, and misses per access of the last \
               level, in percent. Solid: with the polluters, which share the other colors. Dashed: \
               alone."
            .to_owned(),
        x: "partition of the LLC [MiB]".to_owned(),
        y: "%".to_owned(),
        panels: mixes.iter().map(panel).collect(),
        ..PaperFigure::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mixes_are_those_of_table_iii() {
        for (name, numbers) in MIXES {
            let class = |number: &str| match number {
                "401" | "471" | "483" => 'R',
                "437" | "462" => 'G',
                _ => 'Y',
            };
            for (letter, word) in ['R', 'Y', 'G'].into_iter().zip(["R", "Y", "G"]) {
                let n = numbers.iter().filter(|n| class(n) == letter).count();
                let part = format!("{n}{word}");
                assert_eq!(name.contains(&part), n > 0, "{name}: {part}");
            }
        }
    }

    #[test]
    fn correlation_is_pearsons() {
        let a = [1.0, 2.0, 3.0, 5.0];
        assert!((correlation(&a, &a.map(|x| 3.0 - 2.0 * x)) + 1.0).abs() < 1e-12);
        assert!((correlation(&a, &[1.0, 3.0, 2.0, 5.0]) - 7.75 / 8.75).abs() < 1e-5);
    }

    fn point(colors: u32, together: f64, slow: f64) -> Point {
        let sample = |v: f64| -> Sample { [v, v + 0.1, v - 0.1].into_iter().collect() };
        Point {
            colors,
            together: sample(together),
            alone: sample(40.0),
            slow_together: sample(slow + 3.0),
            slow_alone: sample(slow),
        }
    }

    #[test]
    fn a_target_that_keeps_its_misses_matches_and_one_that_does_not_misses() {
        for (rate, verdict) in [
            (41.0, Verdict::Match),
            (49.0, Verdict::Near),
            (60.0, Verdict::Miss),
        ] {
            let mix = Mix {
                name: "m".to_owned(),
                target: "t".to_owned(),
                points: vec![
                    point(1, rate, 30.0),
                    point(8, rate, 10.0),
                    point(15, rate, 0.0),
                ],
                stock: None,
            };
            let mut t = blank("R-6", "", TargetKind::H);
            judge(&mut t, &[mix]);
            assert_eq!(t.verdict, verdict, "{rate}");
            assert!(t.predicates.iter().all(|p| p.holds == Some(true)));
        }
    }
}
