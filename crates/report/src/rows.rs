//! What is counted of a program, in one list: its name, its unit, who counts it, and where it is shown; and the quantities of
//! a record as rows. Tables, CSV, the HTML report and formulas of papers share them, so that none can forget one.

use std::fmt::Write as _;

use crate::{
    Metrics, PolicyResult, ProgramResult, Sample,
    format::{Kind, cell, clean},
};

/// What counts a quantity, and so which hosts have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// The machine model: in the model and in guests.
    Machine,
    /// The modelled kernel, and what its page tables cost: in the model alone.
    Kernel,
}

/// A quantity of a program in its measured part. The levels of the caches, and what only some studies have, are named
/// by what they are and not here.
pub struct Metric {
    /// In formulas of papers.
    pub name: &'static str,
    /// What it is, with its unit there.
    pub says: &'static str,
    /// What counts it.
    pub source: Source,
    /// Its values over the repetitions; none where a part of the model is off.
    pub get: fn(&Metrics) -> Option<&Sample>,
    /// In CSV and tables; none = it is not shown.
    pub(crate) shown: Option<Shown>,
}

/// How a quantity is shown.
pub(crate) struct Shown {
    /// In machine-read output.
    pub key: &'static str,
    /// For people.
    pub label: &'static str,
    pub kind: Kind,
    /// Misses of the cache levels come before it.
    pub levels_first: bool,
}

const fn shown(key: &'static str, label: &'static str, kind: Kind) -> Option<Shown> {
    Some(Shown {
        key,
        label,
        kind,
        levels_first: false,
    })
}

/// All of them, as tables show them.
pub static METRICS: [Metric; 12] = [
    Metric {
        name: "time_ps",
        says: "picoseconds of the modelled machine",
        source: Source::Machine,
        get: |m| Some(&m.time_ps),
        shown: shown("time", "time", Kind::Time),
    },
    Metric {
        name: "ipc",
        says: "instructions per cycle",
        source: Source::Machine,
        get: |m| Some(&m.ipc),
        shown: shown("ipc", "IPC", Kind::PerCycle),
    },
    Metric {
        name: "page_walks",
        says: "misses of the TLBs that need a walk, per 1000 instructions",
        source: Source::Kernel,
        get: |m| m.tlb_mpki.as_ref(),
        shown: Some(Shown {
            key: "tlb_mpki",
            label: "TLB walks",
            kind: Kind::PerKilo,
            levels_first: true,
        }),
    },
    Metric {
        name: "row_hit_rate",
        says: "accesses of DRAM that found their row open, 0 to 1",
        source: Source::Machine,
        get: |m| m.row_hit_rate.as_ref(),
        shown: shown("row_hit_rate", "DRAM row hits", Kind::Share),
    },
    Metric {
        name: "dram_bytes_per_s",
        says: "bytes from and to memory per second of the modelled machine",
        source: Source::Machine,
        get: |m| Some(&m.dram_bytes_per_s),
        shown: shown("dram_bandwidth", "DRAM traffic", Kind::Rate),
    },
    Metric {
        name: "instructions",
        says: "number",
        source: Source::Machine,
        get: |m| Some(&m.instructions),
        shown: shown("instructions", "instructions", Kind::Count),
    },
    Metric {
        name: "references",
        says: "number",
        source: Source::Machine,
        get: |m| Some(&m.refs),
        shown: shown("refs", "references", Kind::Count),
    },
    Metric {
        name: "pages",
        says: "4 KiB pages that are mapped at the end; a huge page counts as 512",
        source: Source::Kernel,
        get: |m| Some(&m.pages),
        shown: shown("pages", "pages (4 KiB)", Kind::Count),
    },
    Metric {
        name: "huge_pages",
        says: "2 MiB pages that are mapped at the end",
        source: Source::Kernel,
        get: |m| Some(&m.huge_pages),
        shown: shown("huge_pages", HUGE_PAGES, Kind::Count),
    },
    Metric {
        name: "peak_pages",
        says: "most 4 KiB pages in memory at once since the run began, where programs can own colors",
        source: Source::Kernel,
        get: |m| Some(&m.colors.as_ref()?.peak_pages),
        shown: shown("peak_pages", "most pages at once (4 KiB)", Kind::Count),
    },
    Metric {
        name: "faults",
        says: "number",
        source: Source::Kernel,
        get: |m| Some(&m.faults),
        shown: shown("faults", "page faults", Kind::Count),
    },
    Metric {
        name: "memory_reads",
        says: "lines from memory, by demands and prefetches, per 1000 instructions",
        source: Source::Machine,
        get: |m| Some(&m.memory_reads),
        shown: None,
    },
];

/// Label of what most studies have none of.
pub(crate) const HUGE_PAGES: &str = "huge pages (2 MiB)";

/// The list as a table in Markdown.
pub fn metrics_table() -> String {
    let mut text =
        "| counted | what it is | by | in tables | in CSV |\n|---|---|---|---|---|\n".to_owned();
    for metric in &METRICS {
        let by = match metric.source {
            Source::Machine => "the machine",
            Source::Kernel => "the modelled kernel",
        };
        let (label, key) = match &metric.shown {
            Some(shown) => (shown.label, format!("`{}`", shown.key)),
            None => ("", String::new()),
        };
        let (name, says) = (metric.name, metric.says);
        // Writing to a text cannot fail.
        let _ = writeln!(text, "| `{name}` | {says} | {by} | {label} | {key} |");
    }
    text
}

/// One quantity of one phase.
pub(crate) struct Row<'a> {
    /// Name in machine-read output, unique within a phase.
    pub key: String,
    /// Name for people.
    pub label: String,
    pub kind: Kind,
    pub sample: &'a Sample,
}

/// All quantities that a phase has, in the order in which they are shown.
pub(crate) fn rows(m: &Metrics) -> Vec<Row<'_>> {
    let mut out = Vec::new();
    let mut push = |key: &str, label: &str, kind: Kind, sample| {
        let (key, label) = (key.to_owned(), label.to_owned());
        out.push(Row {
            key,
            label,
            kind,
            sample,
        });
    };
    for metric in &METRICS {
        let Some(shown) = &metric.shown else { continue };
        for level in m.mpki.iter().filter(|_| shown.levels_first) {
            let (key, label) = (
                format!("mpki_{}", level.level),
                format!("{} misses", level.level),
            );
            push(&key, &label, Kind::PerKilo, &level.mpki);
        }
        if let Some(sample) = (metric.get)(m) {
            push(shown.key, shown.label, shown.kind.clone(), sample);
        }
    }
    for extra in &m.extra {
        let kind = match extra.unit.as_str() {
            "" => Kind::Count,
            unit => Kind::Other(unit.to_owned()),
        };
        push(&extra.name, &extra.name, kind, &extra.value);
    }
    out
}

/// The colours that a program's pages could have, and the number of its pages.
pub(crate) fn colors_and_pages(m: &Metrics) -> Option<String> {
    let colors = m.colors.as_ref()?;
    let set = colors.allowed.as_deref().unwrap_or("all");
    // The pages have a row of their own, which shows how they vary.
    let mean = Sample::new(vec![m.pages.mean]);
    let pages = cell(&mean, &Kind::Count, &Kind::Count.scale(mean.mean));
    Some(format!("{} / {pages}", clean(set)))
}

/// Label of [`colors_and_pages`].
pub(crate) const COLORS_AND_PAGES: &str = "colors / pages (4 KiB)";

/// One line of a comparison: the same quantity for several programs or policies.
pub(crate) struct Line<'a> {
    pub label: String,
    pub kind: Kind,
    /// Whether it is the slowdown, which the report judges.
    pub judged: bool,
    /// Alone and together, per column; `None` where a column lacks the quantity.
    pub cells: Vec<[Option<&'a Sample>; 2]>,
}

impl Line<'_> {
    /// The largest magnitude in the line, which decides its unit.
    pub fn largest(&self) -> f64 {
        let known = self.cells.iter().flatten().flatten();
        known
            .map(|s| s.mean.abs())
            .filter(|m| m.is_finite())
            .fold(0.0, f64::max)
    }
}

/// Lines of all quantities that any of the columns has, slowdown after time.
pub(crate) fn lines<'a>(columns: &[&'a ProgramResult]) -> Vec<Line<'a>> {
    let mut keys = Vec::new();
    let mut lines: Vec<Line<'a>> = Vec::new();
    for (column, program) in columns.iter().enumerate() {
        for (phase, metrics) in [Some(&program.alone), program.together.as_ref()]
            .into_iter()
            .enumerate()
        {
            for row in metrics.map(rows).unwrap_or_default() {
                let at = keys.iter().position(|k| *k == row.key).unwrap_or_else(|| {
                    let cells = vec![[None, None]; columns.len()];
                    keys.push(row.key);
                    lines.push(Line {
                        label: row.label,
                        kind: row.kind,
                        judged: false,
                        cells,
                    });
                    keys.len() - 1
                });
                lines[at].cells[column][phase] = Some(row.sample);
            }
        }
    }
    if columns.iter().any(|p| p.slowdown.is_some()) {
        let cells = columns
            .iter()
            .map(|p| [None, p.slowdown.as_ref()])
            .collect();
        let at = lines.len().min(1);
        lines.insert(
            at,
            Line {
                label: "slowdown".to_owned(),
                kind: Kind::Change,
                judged: true,
                cells,
            },
        );
    }
    // A row of zeros in every column says nothing; huge pages are mostly that.
    lines.retain(|l| l.label != HUGE_PAGES || l.largest() > 0.0);
    lines
}

/// Names of the programs of all policies, in order of first appearance.
pub(crate) fn program_names(policies: &[PolicyResult]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for program in policies.iter().flat_map(|p| &p.programs) {
        if !names.contains(&program.name.as_str()) {
            names.push(&program.name);
        }
    }
    names
}

/// The program of that name under a policy.
pub(crate) fn find<'a>(policy: &'a PolicyResult, name: &str) -> Option<&'a ProgramResult> {
    policy.programs.iter().find(|p| p.name == name)
}

#[cfg(test)]
mod tests {
    use std::{env, fs, path::Path};

    use super::*;

    const BEGIN: &str = "<!-- metrics:begin -->\n";
    const END: &str = "<!-- metrics:end -->\n";

    /// The page of papers has the table; with `PIEBALD_BLESS=1` it is written.
    #[test]
    fn the_page_of_papers_has_the_metrics_as_they_are() {
        let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/papers.md");
        let text = fs::read_to_string(&page).expect("the page is in the repository");
        let (before, rest) = text
            .split_once(BEGIN)
            .expect("the page marks where they begin");
        let (there, after) = rest.split_once(END).expect("the page marks where they end");
        let made = format!("\n{}\n", metrics_table());
        if there != made {
            assert_eq!(
                env::var("PIEBALD_BLESS").as_deref(),
                Ok("1"),
                "docs/papers.md has other metrics; PIEBALD_BLESS=1 cargo test -p piebald-report writes them"
            );
            let text = format!("{before}{BEGIN}{made}{END}{after}");
            fs::write(&page, text).expect("the page is written");
        }
    }

    #[test]
    fn names_are_those_of_one_quantity() {
        let names = |of: fn(&Metric) -> Option<&'static str>| {
            let mut names: Vec<&str> = METRICS.iter().filter_map(of).collect();
            let all = names.len();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), all, "{names:?}");
        };
        names(|m| Some(m.name));
        names(|m| Some(m.shown.as_ref()?.key));
        names(|m| Some(m.shown.as_ref()?.label));
    }
}
