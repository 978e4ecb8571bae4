//! Advice on shares of a cache: the record, and its tables for terminal and HTML.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use piebald_units::Bytes;

use crate::{
    MissCurve, Role, Sample,
    format::{Kind, UNKNOWN, cell, clean, grouped, number, short},
    json::{nullable, nullable_vec},
};

/// How few page colors programs need of a cache, and how to split them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Advice {
    /// Slowdown that a share may cost, as a ratio.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub within: f64,
    /// The cache: `L3`.
    pub cache: String,
    /// Its size in bytes.
    pub cache_bytes: u64,
    /// Colors of a page in it.
    pub colors: u32,
    /// Sets of a color, and how many of them the miss curves are from.
    pub sets: u32,
    /// See `sets`.
    pub sets_seen: u32,
    /// One per program that was looked at.
    pub programs: Vec<ProgramAdvice>,
    /// The split among programs that run together; `None` without.
    pub mix: Option<MixAdvice>,
}

/// What is known of one program, alone, in one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProgramAdvice {
    /// Its name.
    pub program: String,
    /// Why it is in the study.
    pub role: Role,
    /// 4 KiB pages that it has.
    pub pages: u64,
    /// Fewest colors that were seen to hold its memory.
    pub fewest: u32,
    /// Its kind by what less of the cache costs it, as HVR's classes: `LLCM`; `None` if it
    /// cannot be told.
    pub class: Option<String>,
    /// The smallest share; `None` for company.
    pub share: Option<ShareAdvice>,
    /// For 1, 2 .. all colors.
    pub points: Vec<AdvicePoint>,
}

/// The smallest share that keeps a program within the limit.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ShareAdvice {
    /// Its colors.
    pub colors: u32,
    /// Bytes of memory that these have.
    pub memory_limit: u64,
    /// Slowdown against all colors that was estimated, as a ratio.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub estimated: f64,
    /// ... and that was measured.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub measured: f64,
    /// One color less was measured to be too few, or cannot hold the program. Otherwise
    /// those between `below` and `colors` were not tried.
    pub exact: bool,
    /// The most colors below that were measured.
    pub below: Option<u32>,
    /// Their slowdown.
    pub below_measured: Option<f64>,
}

/// One number of colors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AdvicePoint {
    /// Number of colors.
    pub colors: u32,
    /// Misses of the cache per 1000 instructions.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub mpki: f64,
    /// Standard error of it, from looking at some sets only.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub error: f64,
    /// Slowdown against all colors by the curve and two timed runs, as a ratio.
    #[serde(with = "nullable")]
    #[schemars(with = "Option<f64>")]
    pub estimated: f64,
    /// ... and as measured, where it was.
    pub measured: Option<f64>,
}

/// How to split the colors among programs that run together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MixAdvice {
    /// What the advised split makes small: `slowdowns` or `misses`.
    pub goal: String,
    /// Slowdowns are against each program alone under this policy.
    pub reference: String,
    /// The programs.
    pub programs: Vec<String>,
    /// Splits that were thought of.
    pub splits: Vec<SplitAdvice>,
    /// What became of the programs together, under every policy of the study.
    pub policies: Vec<MixPolicy>,
}

/// One split.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SplitAdvice {
    /// The policy that it was run as, if it was.
    pub policy: Option<String>,
    /// What it makes small; `None` = it is equal.
    pub goal: Option<String>,
    /// Colors of each program, in the mix's order: how many and which.
    pub colors: Vec<u32>,
    /// See `colors`.
    pub sets: Vec<String>,
    /// Estimated slowdown of each, alone in its colors, as a ratio.
    #[serde(with = "nullable_vec")]
    #[schemars(with = "Vec<Option<f64>>")]
    pub estimated: Vec<f64>,
}

/// The programs of a mix under one policy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MixPolicy {
    /// The policy.
    pub policy: String,
    /// Colors of each program; `None` = all.
    pub colors: Vec<Option<String>>,
    /// Time together / time alone under the reference policy - 1.
    pub slowdowns: Vec<Option<Sample>>,
    /// Of all programs.
    pub sum: Option<Sample>,
}

/// A table with a title and a remark.
pub(crate) struct AdviceTable {
    pub title: String,
    /// Heads of the columns, of up to two lines.
    pub head: Vec<String>,
    pub rows: Vec<Vec<String>>,
    pub remark: String,
}

/// Most characters of a name.
const NAME_CHARS: usize = 24;

/// All tables: smallest shares, then the mix.
pub(crate) fn tables(advice: &Advice) -> Vec<AdviceTable> {
    let shares = shares(advice);
    shares
        .into_iter()
        .chain(advice.mix.as_ref().map(mix))
        .collect()
}

/// The smallest shares, of those for which they were looked for.
fn shares(advice: &Advice) -> Option<AdviceTable> {
    let all = advice.colors;
    let row = |p: &ProgramAdvice| -> Option<Vec<String>> {
        let share = p.share.as_ref()?;
        let less = match (share.below, share.below_measured) {
            (Some(k), Some(time)) => format!("{} in {k}", percent(time)),
            _ if share.colors > 1 => format!("{} do not hold it", share.colors - 1),
            _ => "-".to_owned(),
        };
        let bytes = advice.cache_bytes / u64::from(all.max(1)) * u64::from(share.colors);
        Some(vec![
            short(&p.program, NAME_CHARS),
            format!("{} of {all}", share.colors),
            Bytes(bytes).to_string(),
            percent(share.estimated),
            percent(share.measured),
            less,
            Bytes(share.memory_limit).to_string(),
            Bytes(p.pages << 12).to_string(),
        ])
    };
    let rows: Vec<Vec<String>> = advice.programs.iter().filter_map(row).collect();
    let untried: Vec<String> = advice
        .programs
        .iter()
        .filter_map(|p| {
            let share = p.share.as_ref().filter(|s| !s.exact)?;
            let below = share.below.unwrap_or(0);
            Some(format!(
                " {}: shares of {} to {} colors were not tried.",
                clean(&p.program),
                below + 1,
                share.colors - 1
            ))
        })
        .collect();
    let head = [
        "program",
        "colors",
        "share\nof cache",
        "slowdown [%]\nestimated",
        "\nmeasured",
        "with fewer\n[%]",
        "memory\nlimit",
        "memory\nused",
    ];
    (!rows.is_empty()).then(|| AdviceTable {
        title: format!(
            "Smallest share of {} that costs at most {} %, alone",
            clean(&advice.cache),
            number(100.0 * advice.within)
        ),
        head: head.map(str::to_owned).into(),
        rows,
        remark: format!(
            "Slowdowns are against the program alone in all {all} colors, in one repetition. \
             Estimates: time linear in lines read from memory, from two timed runs and a miss \
             curve ({} of {} sets of each color looked at).{}{}",
            grouped(advice.sets_seen.into()),
            grouped(advice.sets.into()),
            untried.concat(),
            kinds(&advice.programs),
        ),
    })
}

/// The kinds of the programs in a sentence, those first that need the cache most.
fn kinds(programs: &[ProgramAdvice]) -> String {
    let of = |class: &str| {
        let mine = programs
            .iter()
            .filter(|p| p.class.as_deref() == Some(class));
        let names: Vec<String> = mine.map(|p| short(&p.program, 40)).collect();
        (!names.is_empty()).then(|| format!("{class} {}", names.join(", ")))
    };
    let known: Vec<String> = ["LLCH", "LLCM", "LLCT", "CCF"]
        .into_iter()
        .filter_map(of)
        .collect();
    match known.is_empty() {
        true => String::new(),
        false => format!(" Kinds, as HVR has them: {}.", known.join("; ")),
    }
}

/// The programs together under each policy.
fn mix(mix: &MixAdvice) -> AdviceTable {
    let mut head = vec!["policy".to_owned()];
    for name in &mix.programs {
        head.push(format!("{}\ncolors", short(name, NAME_CHARS)));
        head.push("slowdown\n[%]".to_owned());
    }
    head.push("sum\n[%]".to_owned());
    let shown = |s: &Option<Sample>| {
        s.as_ref().map_or_else(
            || "-".to_owned(),
            |s| cell(s, &Kind::Change, &Kind::Change.scale(1.0)),
        )
    };
    let row = |p: &MixPolicy| {
        let mut row = vec![short(&p.policy, NAME_CHARS)];
        for (colors, slowdown) in p.colors.iter().zip(&p.slowdowns) {
            row.push(
                colors
                    .as_ref()
                    .map_or_else(|| "all".to_owned(), |c| short(c, NAME_CHARS)),
            );
            row.push(shown(slowdown));
        }
        row.push(shown(&p.sum));
        row
    };
    let mut remark = format!(
        "Slowdowns are against each program alone under {}.",
        clean(&mix.reference)
    );
    for split in &mix.splits {
        let Some(goal) = &split.goal else { continue };
        let named = mix.programs.iter().zip(&split.colors);
        let named: Vec<String> = named
            .map(|(n, k)| format!("{} {k}", short(n, 40)))
            .collect();
        let estimated: Vec<String> = split.estimated.iter().map(|e| percent(*e)).collect();
        let run = match &split.policy {
            Some(policy) if *goal == mix.goal => format!("run as {}", clean(policy)),
            _ => "not run".to_owned(),
        };
        remark += &format!(
            " By least {}: {} ({run}; estimated alone in these colors: {} %).",
            clean(goal),
            named.join(", "),
            estimated.join(", "),
        );
    }
    AdviceTable {
        title: format!("Colors split by least {}, run together", clean(&mix.goal)),
        head,
        rows: mix.policies.iter().map(row).collect(),
        remark,
    }
}

/// A ratio in percent, with its sign.
fn percent(ratio: f64) -> String {
    match ratio.is_finite() {
        true => format!("{:+.1}", 100.0 * ratio),
        false => UNKNOWN.to_owned(),
    }
}

/// The miss curves of all programs, each with the share that is advised.
pub(crate) fn curves(advice: &Advice) -> Vec<(MissCurve, Option<u64>)> {
    let color = advice.cache_bytes / u64::from(advice.colors.max(1));
    let bytes = |colors: u32| color * u64::from(colors);
    let curve = |p: &ProgramAdvice| {
        let points = p.points.iter().map(|at| (bytes(at.colors), at.mpki));
        let curve = MissCurve {
            program: p.program.clone(),
            cache: advice.cache.clone(),
            points: points.collect(),
        };
        (curve, p.share.as_ref().map(|s| bytes(s.colors)))
    };
    advice.programs.iter().map(curve).collect()
}

/// Lines of the CSV: program, metric, unit, value, and its count of values.
pub(crate) fn lines(advice: &Advice) -> Vec<(String, Role, String, &'static str, Sample)> {
    let mut out = Vec::new();
    for p in &advice.programs {
        let mut push = |metric: String, unit, value: f64| {
            let sample = Sample::new(vec![value]);
            out.push((p.program.clone(), p.role, metric, unit, sample));
        };
        if let Some(share) = &p.share {
            push("advised_colors".into(), "", share.colors.into());
            push(
                "advised_memory_limit".into(),
                "B",
                share.memory_limit as f64,
            );
            push("advised_slowdown_estimated".into(), "1", share.estimated);
            push("advised_slowdown_measured".into(), "1", share.measured);
        }
        for at in &p.points {
            let k = at.colors;
            push(
                format!("mpki_in_{k}_colors"),
                "1/1000 instructions",
                at.mpki,
            );
            push(
                format!("slowdown_estimated_in_{k}_colors"),
                "1",
                at.estimated,
            );
            if let Some(measured) = at.measured {
                push(format!("slowdown_measured_in_{k}_colors"), "1", measured);
            }
        }
    }
    out
}
