//! Which pictures a report has and what stands in them.

use crate::{
    Metrics, ReportError, Sample, SetMap, Study, advice,
    chart::{
        Bar, BarChart, BarRow, EMPTY, Group, KERNEL, bar_chart, color, hatch_kind, miss_curves,
        set_map,
    },
    course,
    format::{Kind, cell, clean, number, short},
    rows,
};

/// Pictures under one heading.
pub(crate) struct Section {
    pub title: String,
    /// How to read them.
    pub text: String,
    pub figures: Vec<Figure>,
    /// What stands below them, a paragraph each.
    pub remarks: Vec<String>,
    /// Class of each colour and what it stands for, where the report's own
    /// legend does not say it.
    pub legend: Vec<(String, String)>,
    /// Class of the grid.
    pub layout: &'static str,
}

/// One picture.
pub(crate) struct Figure {
    pub title: String,
    /// SVG source, or `None` with a reason in the title.
    pub svg: String,
}

/// The mark of a slowdown by policy and program, if it is not claimed.
type Mark<'m> = &'m dyn Fn(&str, &str) -> Option<String>;

const PHASES: &str = "Pale bars: the program alone. Solid bars: beside the others.";

/// All sections that the study has data for.
pub(crate) fn sections(
    study: &Study,
    mark: Mark<'_>,
    remarks: Vec<String>,
) -> Result<Vec<Section>, ReportError> {
    let all = [
        slowdowns(study, mark, remarks)?,
        misses(study)?,
        speed_and_memory(study)?,
        curves(study)?,
        shares(study)?,
        set_maps(study)?,
        course::section(study)?,
    ];
    Ok(all
        .into_iter()
        .flatten()
        .filter(|s| !s.figures.is_empty())
        .collect())
}

fn section(title: &str, text: &str, figures: Vec<Option<Figure>>, layout: &'static str) -> Section {
    Section {
        title: title.to_owned(),
        text: text.to_owned(),
        figures: figures.into_iter().flatten().collect(),
        remarks: Vec::new(),
        legend: Vec::new(),
        layout,
    }
}

/// Groups of a bar chart: a program each, with a row per policy. `pick` gives
/// the bars of a row: the sample and whether it belongs to the phase alone.
fn groups<'a, F>(
    study: &'a Study,
    mark: Option<Mark<'_>>,
    kind: &Kind,
    factor: f64,
    pick: F,
) -> Vec<Group>
where
    F: Fn(&'a crate::ProgramResult) -> Vec<(&'a Sample, bool)>,
{
    let names = rows::program_names(&study.policies);
    let row = |policy: &'a crate::PolicyResult, name: &str| {
        let bars = pick(rows::find(policy, name)?);
        let bars: Vec<Bar> = bars
            .iter()
            .map(|(s, pale)| {
                let mark = mark.and_then(|mark| mark(&policy.name, name));
                bar(s, *pale, kind, factor, [&policy.name, name]).marked(mark)
            })
            .collect();
        (!bars.is_empty()).then(|| BarRow {
            label: policy.name.clone(),
            bars,
        })
    };
    let group = |(index, name): (usize, &&str)| Group {
        name: (*name).to_owned(),
        color: index,
        rows: study.policies.iter().filter_map(|p| row(p, name)).collect(),
    };
    names
        .iter()
        .enumerate()
        .map(group)
        .filter(|g| !g.rows.is_empty())
        .collect()
}

fn bar(sample: &Sample, pale: bool, kind: &Kind, factor: f64, [policy, program]: [&str; 2]) -> Bar {
    let scale = crate::format::Scale {
        factor,
        unit: String::new(),
    };
    let text = cell(sample, kind, &scale);
    let phase = if pale { "alone" } else { "together" };
    let (program, policy) = (short(program, 40), short(policy, 40));
    Bar {
        value: if sample.is_known() {
            sample.mean * factor
        } else {
            f64::NAN
        },
        half: sample.ci95.map(|h| h * factor),
        tip: format!(
            "{program} {phase} under {policy}: {text} (n = {})",
            sample.n()
        ),
        text,
        pale,
        refused: false,
    }
}

/// Widths of charts that stand alone and that share a row, in pixels.
const WIDE: u32 = 760;
const HALF: u32 = 530;

fn bars(
    study: &Study,
    mark: Option<Mark<'_>>,
    width: u32,
    [title, name]: [&str; 2],
    kind: &Kind,
    pick: impl Fn(&crate::ProgramResult) -> Vec<(&Sample, bool)>,
) -> Result<Option<Figure>, ReportError> {
    let largest = study
        .policies
        .iter()
        .flat_map(|p| &p.programs)
        .flat_map(&pick);
    let largest = largest
        .map(|(s, _)| s.mean.abs())
        .filter(|m| m.is_finite())
        .fold(0.0, f64::max);
    let scale = kind.scale(largest);
    let unit = if *kind == Kind::PerKilo {
        "1/1000 instructions"
    } else {
        &scale.unit
    };
    let chart = BarChart {
        label: clean(title),
        axis: if unit.is_empty() {
            clean(name)
        } else {
            format!("{} [{unit}]", clean(name))
        },
        width,
        groups: groups(study, mark, kind, scale.factor, pick),
    };
    Ok(bar_chart(&chart)?.map(|svg| Figure {
        title: clean(title),
        svg,
    }))
}

/// Alone and together of one quantity.
fn both<'a>(
    program: &'a crate::ProgramResult,
    get: impl Fn(&'a Metrics) -> Option<&'a Sample>,
) -> Vec<(&'a Sample, bool)> {
    let phases = [
        (Some(&program.alone), true),
        (program.together.as_ref(), false),
    ];
    let pairs = phases
        .into_iter()
        .filter_map(|(m, pale)| Some((get(m?)?, pale)));
    pairs.collect()
}

fn slowdowns(
    study: &Study,
    mark: Mark<'_>,
    remarks: Vec<String>,
) -> Result<Option<Section>, ReportError> {
    let title = "Slowdown of each program beside the others";
    let kind = Kind::Change;
    let figure = bars(study, Some(mark), WIDE, [title, "slowdown"], &kind, |p| {
        p.slowdown.iter().map(|s| (s, false)).collect()
    })?;
    let mut text = "Time together / time alone - 1. Lines over the bars are 95 % intervals; \
                    a bar whose line reaches 0 may be chance, and among several bars one may that does not."
        .to_owned();
    if !remarks.is_empty() {
        text += " A hatched bar with a letter is not claimed, for the reason below; \
                 polluters are not judged.";
    }
    let mut out = section("Slowdown", &text, vec![figure], "one");
    out.remarks = remarks;
    Ok(Some(out))
}

fn misses(study: &Study) -> Result<Option<Section>, ReportError> {
    let mut levels: Vec<&str> = Vec::new();
    let metrics = study.policies.iter().flat_map(|p| &p.programs);
    for level in metrics
        .flat_map(|p| std::iter::once(&p.alone).chain(&p.together))
        .flat_map(|m| &m.mpki)
    {
        if !levels.contains(&level.level.as_str()) {
            levels.push(&level.level);
        }
    }
    // Outermost first: these are what the neighbours and the colours change.
    let mut figures = Vec::new();
    for level in levels.iter().rev() {
        let figure = bars(
            study,
            None,
            HALF,
            [&format!("{level} misses"); 2],
            &Kind::PerKilo,
            |p| {
                both(p, |m| {
                    m.mpki.iter().find(|l| l.level == *level).map(|l| &l.mpki)
                })
            },
        )?;
        figures.push(figure);
    }
    let tlb = bars(
        study,
        None,
        HALF,
        ["TLB walks", "TLB misses with a walk"],
        &Kind::PerKilo,
        |p| both(p, |m| m.tlb_mpki.as_ref()),
    )?;
    figures.push(tlb);
    Ok(Some(section("Misses", PHASES, figures, "two")))
}

fn speed_and_memory(study: &Study) -> Result<Option<Section>, ReportError> {
    let figures = vec![
        bars(
            study,
            None,
            HALF,
            ["Instructions per cycle", "IPC"],
            &Kind::PerCycle,
            |p| both(p, |m| Some(&m.ipc)),
        )?,
        bars(
            study,
            None,
            HALF,
            ["DRAM traffic", "bytes read and written"],
            &Kind::Rate,
            |p| both(p, |m| Some(&m.dram_bytes_per_s)),
        )?,
        bars(
            study,
            None,
            HALF,
            ["DRAM row hits", "accesses that found their row open"],
            &Kind::Share,
            |p| both(p, |m| m.row_hit_rate.as_ref()),
        )?,
    ];
    Ok(Some(section("Speed and memory", PHASES, figures, "two")))
}

fn curves(study: &Study) -> Result<Option<Section>, ReportError> {
    let names = rows::program_names(&study.policies);
    let mut caches: Vec<&str> = Vec::new();
    for curve in &study.curves {
        if !caches.contains(&curve.cache.as_str()) {
            caches.push(&curve.cache);
        }
    }
    let mut figures = Vec::new();
    for cache in caches {
        let own = study.curves.iter().filter(|c| c.cache == cache).enumerate();
        // A curve of a program that no policy ran gets a colour of its own.
        let colored: Vec<_> = own
            .map(|(i, c)| {
                (
                    c,
                    names
                        .iter()
                        .position(|n| *n == c.program)
                        .unwrap_or(names.len() + i),
                    None,
                )
            })
            .collect();
        let svg = miss_curves(&colored)?;
        figures.push(svg.map(|svg| Figure {
            title: format!("Size of {}", clean(cache)),
            svg,
        }));
    }
    let text = "Each program alone, with less of this cache.";
    Ok(Some(section(
        "Misses against cache size",
        text,
        figures,
        "one",
    )))
}

/// The miss curves over the shares of a cache that advice is from.
fn shares(study: &Study) -> Result<Option<Section>, ReportError> {
    let Some(advice) = &study.advice else {
        return Ok(None);
    };
    let names = rows::program_names(&study.policies);
    let curves = advice::curves(advice);
    let color = |(i, name): (usize, &String)| {
        let known = names.iter().position(|n| n == name);
        known.unwrap_or(names.len() + i)
    };
    let colored: Vec<_> = curves
        .iter()
        .enumerate()
        .map(|(i, (curve, mark))| (curve, color((i, &curve.program)), *mark))
        .collect();
    let figure = miss_curves(&colored)?.map(|svg| Figure {
        title: format!("Share of {}", clean(&advice.cache)),
        svg,
    });
    let text = format!(
        "Each program alone, in 1 to {} colors of the cache, from one run with shadow tags. A \
         ring marks the smallest share that costs at most {} %.",
        advice.colors,
        number(100.0 * advice.within)
    );
    let title = "Misses against the share of the cache";
    Ok(Some(section(title, &text, vec![figure], "one")))
}

fn set_maps(study: &Study) -> Result<Option<Section>, ReportError> {
    let names = rows::program_names(&study.policies);
    let place = |owner: usize, name: &str| match owner {
        0 => "empty".to_owned(),
        1 => "kernel".to_owned(),
        _ => {
            let index = names
                .iter()
                .position(|n| *n == name)
                .unwrap_or(names.len() + owner);
            format!("p{}", index % crate::chart::PALETTE.len())
        }
    };
    let paint = |owner: usize, name: &str| match owner {
        0 => EMPTY,
        1 => KERNEL,
        _ => color(
            names
                .iter()
                .position(|n| *n == name)
                .unwrap_or(names.len() + owner),
        ),
    };
    let mut figures = Vec::new();
    let mut legend: Vec<(String, String)> = Vec::new();
    for map in &study.set_maps {
        let colors: Vec<_> = map
            .owners
            .iter()
            .enumerate()
            .map(|(i, n)| paint(i, n))
            .collect();
        let Some(svg) = set_map(map, &colors)? else {
            continue;
        };
        for (i, name) in map.owners.iter().enumerate() {
            let mut class = place(i, name);
            if let Some(kind) = hatch_kind(i) {
                class += &format!(" h{kind}");
            }
            let entry = (class, clean(name));
            if !legend.contains(&entry) {
                legend.push(entry);
            }
        }
        figures.push(Some(Figure {
            title: map_title(map),
            svg,
        }));
    }
    let text = "For each group of neighbouring sets, the owner of most of its lines; \
                the stronger the colour, the larger its share. \
                Below, each owner's share of the whole cache, and each program's speed in instructions per ns over the same time.";
    let mut out = section("Who owns the cache's sets", text, figures, "three");
    out.legend = legend;
    Ok(Some(out))
}

fn map_title(map: &SetMap) -> String {
    let place = map.place.as_ref();
    let place = place.map_or(String::new(), |p| format!(", {}", clean(p)));
    format!("{}, {}{place}", clean(&map.policy), clean(&map.cache))
}
