//! What is counted of a program, in one list: its name, its unit, who counts it, and where it is shown.

use std::fmt::Write as _;

use crate::{Metrics, Sample, format::Kind};

/// Who knows it, and so in which hosts it is there.
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
    /// Who counts it.
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
