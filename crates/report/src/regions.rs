//! The regions that stand for a program as tables: one shape for terminal and HTML.

use crate::{
    ProgramResult, RegionFigures, Sample,
    format::{Kind, cell, grouped, number, short},
};

/// The regions of one program under one policy.
pub(crate) struct RegionTable {
    /// What stands over it.
    pub title: String,
    /// Heads of the columns, of up to two lines.
    pub head: Vec<String>,
    /// One row per region, then all of them weighted, then the whole if it was run.
    pub rows: Vec<Vec<String>>,
}

/// How much room there is for a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The mean only.
    Means,
    /// Its interval too.
    Intervals,
}

/// The table of a program that regions stand for; `mark` stands at its slowdown.
pub(crate) fn region_table(
    program: &ProgramResult,
    detail: Detail,
    mark: Option<&str>,
) -> Option<RegionTable> {
    let set = program.regions.as_ref()?;
    let with_together = program.together.is_some();
    let level = program.alone.mpki.last();
    let level = level.map_or("last-level".to_owned(), |l| short(&l.level, 12));
    let phases: &[&str] = match with_together {
        true => &["alone", "together"],
        false => &["alone"],
    };
    let mut head: Vec<String> = ["region", "first\ninstruction", "weight\n[%]"]
        .map(str::to_owned)
        .into();
    head.extend(phases.iter().map(|p| format!("CPI\n{p}")));
    head.extend(phases.iter().map(|p| format!("{level} misses\n{p}")));
    head.extend(with_together.then(|| "slowdown\n[%]".to_owned()));
    let mut rows = Vec::new();
    for (n, region) in set.regions.iter().enumerate() {
        let figures = [Some(&region.alone), region.together.as_ref()];
        let mut row = vec![
            (n + 1).to_string(),
            grouped(region.start),
            percent(region.weight),
        ];
        row.extend(columns(&figures[..phases.len()], detail));
        row.extend(with_together.then(|| slowdown(region.slowdown.as_ref(), detail)));
        rows.push(row);
    }
    let weighted = [Some(&program.alone), program.together.as_ref()].map(|m| {
        Some(RegionFigures {
            cpi: m?.ipc.map(|ipc| 1.0 / ipc),
            last_level_mpki: m?.mpki.last().map(|l| l.mpki.clone()).unwrap_or_default(),
        })
    });
    let mut row = vec![
        "weighted".to_owned(),
        String::new(),
        percent(set.regions.iter().map(|r| r.weight).sum()),
    ];
    row.extend(columns(
        &weighted.each_ref().map(Option::as_ref)[..phases.len()],
        detail,
    ));
    let all = slowdown(program.slowdown.as_ref(), detail);
    row.extend(with_together.then(|| match mark {
        Some(mark) => format!("{all} {mark}"),
        None => all,
    }));
    rows.push(row);
    if let Some(check) = &set.check {
        let mut row = vec![String::new(); head.len()];
        row[0] = "all, run once".to_owned();
        row[3] = number(check.whole_cpi);
        row[3 + phases.len()] = number(check.whole_mpki);
        rows.push(row);
    }
    Some(RegionTable {
        title: format!(
            "Regions of {}, {} instructions each: {} % of {} (misses per 1000 instructions)",
            short(&program.name, 40),
            grouped(set.interval),
            percent(set.coverage),
            grouped(set.instructions),
        ),
        head,
        rows,
    })
}

/// Cycles per instruction of each phase, then misses of each phase.
fn columns(phases: &[Option<&RegionFigures>], detail: Detail) -> Vec<String> {
    let shown = |sample: Option<&Sample>, kind| shown(sample, kind, detail);
    let cpi = phases.iter().map(|f| f.map(|f| &f.cpi));
    let cpi = cpi.map(|s| shown(s, Kind::PerCycle));
    let mpki = phases.iter().map(|f| f.map(|f| &f.last_level_mpki));
    let mpki = mpki.map(|s| shown(s, Kind::PerKilo));
    cpi.chain(mpki).collect()
}

fn slowdown(sample: Option<&Sample>, detail: Detail) -> String {
    shown(sample, Kind::Change, detail)
}

fn shown(sample: Option<&Sample>, kind: Kind, detail: Detail) -> String {
    let Some(sample) = sample else {
        return String::new();
    };
    let mut sample = sample.clone();
    if detail == Detail::Means {
        sample.ci95 = None;
    }
    cell(&sample, &kind, &kind.scale(1.0))
}

fn percent(share: f64) -> String {
    number(100.0 * share)
}

/// Numbers of the regions for machines: name, unit, phase and values.
pub(crate) fn region_lines(
    program: &ProgramResult,
) -> Vec<(String, &'static str, &'static str, Sample)> {
    let Some(set) = &program.regions else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (n, region) in set.regions.iter().enumerate() {
        let mut push = |metric: &str, unit, phase, sample: &Sample| {
            lines.push((
                format!("region_{}_{metric}", n + 1),
                unit,
                phase,
                sample.clone(),
            ));
        };
        push("weight", "1", "alone", &vec![region.weight].into());
        let figures = [
            ("alone", Some(&region.alone)),
            ("together", region.together.as_ref()),
        ];
        for (phase, figures) in figures {
            let Some(figures) = figures else { continue };
            push("cpi", "cycles/instr", phase, &figures.cpi);
            push(
                "last_level_mpki",
                "1/1000 instr",
                phase,
                &figures.last_level_mpki,
            );
        }
        if let Some(slowdown) = &region.slowdown {
            push("slowdown", "1", "together", slowdown);
        }
    }
    if let Some(check) = &set.check {
        let mut push = |metric: &str, error: f64| {
            let sample: Sample = vec![error].into();
            lines.push((format!("regions_{metric}_error"), "1", "alone", sample));
        };
        push("cpi", check.cpi_error);
        if let Some(error) = check.mpki_error {
            push("last_level_mpki", error);
        }
    }
    lines
}
