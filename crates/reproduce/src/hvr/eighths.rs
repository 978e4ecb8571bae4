//! H-3: each program alone at eight sizes of the cache, and the class that it has by that.

use piebald_policy::hvr::Class;
use piebald_report::{Curve, PaperFigure, Sample, TargetKind};

use super::{
    Given,
    alone::{DECIDING, EIGHTHS, Form, Point, Profile, profiles},
    programs::Program,
    rows::Runs,
};
use crate::row::{Found, Row, curve, figure, mean};

/// What was measured of a program.
struct Measured<'a> {
    program: &'a Program,
    /// The class that all other rows have it as.
    on_file: Option<Class>,
    profile: Profile,
}

impl Measured<'_> {
    fn class(&self) -> Option<Class> {
        self.profile.class()
    }

    fn loss(&self, eighths: u32) -> Found {
        let loss = self.profile.loss(eighths);
        loss.ok_or_else(|| format!("{eighths}/8 of the cache were not run"))
    }
}

/// H-3.
pub(super) fn programs_alone(runs: &Runs<'_>) -> Given {
    let bench = &runs.bench;
    let standard = Form::default();
    let form = Form {
        repetitions: runs.form.repetitions,
        seed: bench.seed,
        sizes: if runs.form.quick {
            DECIDING
        } else {
            standard.sizes
        },
        ..standard
    };
    let each = bench.programs.iter().zip(bench.classes);
    let (programs, on_file): (Vec<Program>, Vec<_>) = each
        .filter(|(p, _)| p.threads == 1)
        .map(|(p, c)| (p.clone(), *c))
        .unzip();
    let show = |done: usize, all: usize| {
        if let Some(show) = bench.progress {
            show("programs alone", done as u64, all as u64);
        }
    };
    let found = profiles(
        bench.spec,
        &programs,
        &bench.inputs,
        (&form, &bench.model),
        (bench.stop, &bench.refs),
        &show,
    );
    let mut row = Row::new("H-3", "Figure 5: programs at eight sizes", TargetKind::S);
    let mut all = Vec::new();
    for ((program, on_file), found) in programs.iter().zip(on_file).zip(found) {
        match found {
            Ok(profile) => all.push(Measured {
                program,
                on_file,
                profile,
            }),
            Err(why) => row.missing(&why),
        }
    }
    state(&mut row, &all);
    tell(&mut row, &all, form.sizes);
    row.note(&format!(
        "{} references after {}, {} sizes of the cache, repetitions: {}",
        form.budget_refs,
        form.warmup_refs,
        form.sizes.len(),
        form.repetitions
    ));
    Ok((vec![row.finish()], drawn(&all).into_iter().collect()))
}

/// Mean over the programs of a class of what they lose with an eighth, in percent.
fn loss_of(all: &[Measured<'_>], class: Class) -> Found {
    let mine = all.iter().filter(|m| m.class() == Some(class));
    let losses: Vec<Found> = mine
        .map(|m| {
            Ok(m.loss(1)?
                .values
                .iter()
                .map(|v| 100.0 * v)
                .collect::<Sample>())
        })
        .collect();
    mean(&losses)
}

fn state(row: &mut Row, all: &[Measured<'_>]) {
    let losses = Class::ALL.map(|class| (class, loss_of(all, class)));
    for (class, loss) in &losses {
        row.show(&format!("{class}: loss with an eighth, mean"), loss, "%");
        let of = all.iter().filter(|m| m.class() == Some(*class)).count();
        let count = Ok(Sample::new(vec![of as f64]));
        row.show(&format!("{class}: programs"), &count, "programs");
    }
    let of = |class: Class| -> Result<f64, String> {
        let known = losses.iter().find(|(c, _)| *c == class);
        known.map_or(Err("no such class".to_owned()), |(_, loss)| {
            loss.clone().map(|s| s.mean)
        })
    };
    let ordered = || -> Result<bool, String> {
        let [high, middle] = [of(Class::Llch)?, of(Class::Llcm)?];
        let flat = of(Class::Ccf)?.max(of(Class::Llct)?);
        Ok(high > middle && middle > flat)
    };
    row.states(
        "programs lose with an eighth in the order LLCH, LLCM, others",
        ordered(),
    );
    let printed = || all.iter().filter(|m| !m.program.class.is_empty());
    let others: Vec<&str> = printed()
        .filter(|m| !is_of(&m.program.class, m.class()))
        .map(|m| m.program.name.as_str())
        .collect();
    row.states(
        "programs whose class the paper prints have it",
        Ok(others.is_empty()),
    );
    if !others.is_empty() {
        let (n, of) = (others.len(), printed().count());
        row.note(&format!("{n} of {of} have another: {}", others.join(", ")));
    }
    let of = |class: Class| all.iter().filter(|m| m.class() == Some(class)).count();
    row.states(
        "each class has at least three programs",
        Ok(Class::ALL.into_iter().all(|class| of(class) >= 3)),
    );
    let short = all.iter().filter(|m| m.profile.short > 0).count();
    if short > 0 {
        row.note(&format!(
            "{short} programs ended before they had made their references"
        ));
    }
    let moved: Vec<&str> = all
        .iter()
        .filter(|m| m.class() != m.on_file)
        .map(|m| m.program.name.as_str())
        .collect();
    if !moved.is_empty() {
        let names = moved.join(", ");
        row.note(&format!(
            "of another class than in classes.toml, which all other rows have: {names}"
        ));
    }
}

/// Is a class one of those that a text names ("LLCH or LLCM")?
fn is_of(text: &str, class: Option<Class>) -> bool {
    let class = class.map_or("", Class::name);
    text.split(" or ").any(|name| name == class)
}

/// Each program with its losses.
fn tell(row: &mut Row, all: &[Measured<'_>], sizes: &[u32]) {
    let columns = ["program", "stands for", "class", "paper", "IPC", "lines"];
    let columns = [&columns[..], &["misses", "misses 1/8"]].concat();
    let losses = sizes.iter().filter(|k| **k < EIGHTHS);
    let columns =
        (columns.into_iter().map(str::to_owned)).chain(losses.clone().map(|k| format!("{k}/8")));
    let of = |m: &Measured<'_>| -> Vec<String> {
        let border = if m.profile.is_on_a_border() {
            " (border)"
        } else {
            ""
        };
        let short = if m.profile.short > 0 { " (short)" } else { "" };
        let class = m.class().map_or("none", Class::name);
        let texts = [
            m.program.name.clone(),
            m.program.stands_for.clone(),
            format!("{class}{border}{short}"),
            m.program.class.clone(),
        ];
        let (whole, least) = (m.profile.whole(), m.profile.points.first());
        let number = |point: Option<&Point>, of: fn(&Point) -> f64| {
            format!("{:.2}", point.map_or(f64::NAN, of))
        };
        let counts = [
            number(whole, |p| p.ipc.mean),
            number(whole, |p| p.lines.mean),
            number(whole, |p| p.misses.mean),
            number(least.map(|(_, p)| p), |p| p.misses.mean),
        ];
        let percent = |k: &u32| m.loss(*k).map_or(f64::NAN, |s| 100.0 * s.mean);
        let losses = losses.clone().map(|k| format!("{:.1}", percent(k)));
        texts.into_iter().chain(counts).chain(losses).collect()
    };
    let rows = all.iter().map(of).collect();
    row.cases(
        "Alone: lines from memory and misses of the last level for 1000 instructions; slower with so much of it, in %",
        columns.collect(),
        rows,
    );
}

fn drawn(all: &[Measured<'_>]) -> Option<PaperFigure> {
    let curve_of = |m: &Measured<'_>| -> Curve {
        let points: Vec<(f64, Found)> = m
            .profile
            .points
            .iter()
            .map(|(size, _)| {
                let loss = m.loss(*size);
                let percent = loss.map(|s| s.values.iter().map(|v| 100.0 * v).collect());
                (f64::from(*size), percent)
            })
            .collect();
        curve(
            &m.program.name,
            false,
            points.iter().map(|(size, found)| (*size, found)),
        )
    };
    let panels = Class::ALL.map(|class| {
        let mine = all.iter().filter(|m| m.class() == Some(class));
        (class.name().to_owned(), mine.map(curve_of).collect())
    });
    figure(
        [
            "Figure 5",
            "How much slower each program alone is with so many eighths of the last-level cache, by class.",
            "eighths of the cache",
            "slower than with all (%)",
        ],
        panels.into(),
    )
}

#[cfg(test)]
mod tests {
    use piebald_report::Verdict;

    use super::*;

    fn program(name: &str, class: &str) -> Program {
        let text = format!(
            "schema = 1\n[[program]]\nname = \"{name}\"\nstands_for = \"\"\nclass = \"{class}\"\n\
             builtin = \"gups:64KiB\"\nwhy = \"a test\"\n"
        );
        let list = crate::hvr::programs::parse(&text).expect("a list");
        list.into_iter().next().expect("a program")
    }

    /// Of a program that takes so much longer with an eighth and with half of the cache.
    fn profile(least: f64, half: f64, lines: f64) -> Profile {
        let point = |loss: f64| Point {
            time_ps: [1.0 + loss].into_iter().collect(),
            lines: [lines].into_iter().collect(),
            ..Point::default()
        };
        Profile {
            points: vec![(1, point(least)), (4, point(half)), (8, point(0.0))],
            short: 0,
        }
    }

    #[test]
    fn the_row_holds_if_each_class_loses_what_it_should_and_says_who_does_not() {
        let kinds = [
            ("CCF", profile(0.01, 0.0, 0.1)),
            ("LLCM", profile(0.3, 0.05, 0.1)),
            ("LLCH or LLCM", profile(0.9, 0.4, 0.1)),
            ("LLCT", profile(0.02, 0.01, 20.0)),
        ];
        let programs: Vec<(Program, Profile)> = kinds
            .iter()
            .flat_map(|(class, profile)| {
                (0..3).map(move |n| {
                    (
                        program(&format!("{}-{n}", &class[..4.min(class.len())]), class),
                        profile.clone(),
                    )
                })
            })
            .collect();
        // The tenth is the first of the LLCT, and the third a CCF.
        let verdict = |tenth: usize| {
            let profiles = (0..programs.len()).map(|at| if at == 9 { tenth } else { at });
            let each = programs.iter().zip(profiles);
            let all: Vec<Measured<'_>> = each
                .map(|((program, own), like)| Measured {
                    program,
                    on_file: own.class(),
                    profile: programs[like].1.clone(),
                })
                .collect();
            let mut row = Row::new("H-3", "t", TargetKind::S);
            state(&mut row, &all);
            row.finish()
        };
        assert_eq!(verdict(9).verdict, Verdict::Match);
        // Two are left of its class.
        let target = verdict(2);
        let fail = target.predicates.iter().filter(|p| p.holds == Some(false));
        assert_eq!(fail.count(), 2, "{target:?}");
        assert_eq!(target.verdict, Verdict::Miss);
        let why = target.why.expect("notes");
        assert!(why.contains("1 of 12 have another: LLCT-0"), "{why}");
    }
}
