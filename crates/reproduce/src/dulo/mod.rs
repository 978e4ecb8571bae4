//! DULO (FAST'05): D-1 to D-13.
//!
//! The paper's traces cannot be had; the inputs that stand in for them, what is run on them and
//! what counts as a match were written down before the first result (`reproduce/dulo/`). Each
//! repetition replays an input with CLOCK and with DULO under the same draws, and rows are
//! judged by the differences.

mod draws;
mod figures;
mod inputs;
mod overhead;
mod panels;
mod runs;
mod table1;
mod table2;
mod tables;

use std::cell::Cell;
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::Ordering;
use std::time::Instant;

use piebald_report::{
    Published, REPRODUCTION_SCHEMA, Reproduction, Sample, Target, TargetKind, Value, Verdict,
};

use crate::{Hooks, Options, ReproduceError, System};
use draws::Places;
use inputs::{Counts, Folder, Input, List};
use runs::{Bench, CLOCK, DULO, Runs, Wanted};

/// Ids of the targets, in order.
pub(crate) const TARGETS: [&str; 13] = [
    "D-1", "D-2", "D-3", "D-4", "D-5", "D-6", "D-7", "D-8", "D-9", "D-10", "D-11", "D-12", "D-13",
];

/// What each row is, its kind, and the inputs whose figures (sizes with both policies) it
/// needs.
const ROWS: [(&str, TargetKind, &[&str]); 13] = [
    ("Table 1: the example of section 2.1", TargetKind::C, &[]),
    ("Table 2: the traces", TargetKind::H, &[]),
    ("Figure 3: viewperf", TargetKind::H, &["viewperf"]),
    ("Figure 3: tpc-h", TargetKind::S, &["tpc-h"]),
    ("Figure 4: multi1 with 80 MB", TargetKind::H, &["multi1"]),
    ("Figure 4: multi1 with 160 MB", TargetKind::H, &["multi1"]),
    (
        "Figure 4: glimpse, multi1 and multi2",
        TargetKind::S,
        &["glimpse", "multi1", "multi2"],
    ),
    ("Table 3: size of the sequencing bank", TargetKind::S, &[]),
    ("Table 4: size of the evicting section", TargetKind::S, &[]),
    ("Section 4.1.3: work for each miss", TargetKind::O, &[]),
    ("Figure 5: LXR", TargetKind::H, &[]),
    (
        "Figure 5: LXR, partitions laid out by hand",
        TargetKind::S,
        &[],
    ),
    (
        "Figure 6: sparse matrix times vector, paged",
        TargetKind::H,
        &[],
    ),
];

/// How much is run.
#[derive(Clone, Debug)]
struct Form {
    quick: bool,
    repetitions: u32,
    /// References of an input that are replayed; `None` = all.
    limit: BTreeMap<String, u64>,
    plan: tables::Plan,
}

/// Full form (protocol): repetitions.
const REPETITIONS: u32 = 5;
/// Quick form (protocol): repetitions, and the accesses to which the long inputs are cut.
const QUICK_REPETITIONS: u32 = 2;
const QUICK_LIMIT: u64 = 3_000_000;
const QUICK_CUT: [&str; 2] = ["tpc-h", "multi2"];
/// Quick form: inputs and sizes of tables 3 and 4.
const QUICK_TABLES: [&str; 2] = ["glimpse", "multi1"];
const QUICK_BANKS: [u32; 3] = [1, 8, 32];
const QUICK_EVICTINGS: [u32; 3] = [32, 64, 128];

impl Form {
    fn new(options: &Options, list: &List) -> Self {
        let cut = list.input.iter().filter_map(|i| {
            let limit = match options.quick && QUICK_CUT.contains(&i.name.as_str()) {
                true => Some(QUICK_LIMIT),
                false => None,
            };
            Some((i.name.clone(), options.budget_refs.or(limit)?))
        });
        let default = if options.quick {
            QUICK_REPETITIONS
        } else {
            REPETITIONS
        };
        let plan = match options.quick {
            true => tables::Plan {
                inputs: QUICK_TABLES.map(str::to_owned).to_vec(),
                banks: QUICK_BANKS.to_vec(),
                evictings: QUICK_EVICTINGS.to_vec(),
            },
            false => tables::Plan {
                inputs: list.sensitivity.inputs.keys().cloned().collect(),
                banks: list.sensitivity.bank_mb.clone(),
                evictings: list.sensitivity.evicting_mb.clone(),
            },
        };
        Self {
            quick: options.quick,
            repetitions: options.repetitions.unwrap_or(default),
            limit: cut.collect(),
            plan,
        }
    }

    /// Sizes of memory with both policies.
    fn sizes<'i>(&self, input: &'i Input) -> &'i [u32] {
        match self.quick {
            true => &input.at,
            false => &input.memory_mb,
        }
    }

    /// What the chosen rows need of an input.
    fn wanted(&self, options: &Options, list: &List, input: &Input) -> Wanted {
        let mut wanted = Wanted::new();
        let name = input.name.as_str();
        let figure = TARGETS
            .iter()
            .zip(ROWS)
            .any(|(id, row)| options.wants(id) && row.2.contains(&name));
        if figure {
            for mb in self.sizes(input) {
                wanted.insert(*mb, vec![CLOCK.to_owned(), DULO.to_owned()]);
            }
        }
        if options.wants("D-10") && overhead::INPUTS.contains(&name) {
            for mb in &input.at {
                wanted.entry(*mb).or_default().push(DULO.to_owned());
            }
        }
        let rows = [options.wants("D-8"), options.wants("D-9")];
        tables::want(&self.plan, list, name, &mut wanted, rows);
        wanted
    }
}

/// A target before it is run.
fn blank(id: &str, title: &str, kind: TargetKind) -> Target {
    Target {
        id: id.to_owned(),
        title: title.to_owned(),
        kind,
        verdict: Verdict::NotRun,
        why: None,
        stand_in: !matches!(id, "D-1"),
        calibrated: false,
        values: Vec::new(),
        predicates: Vec::new(),
    }
}

/// A number that is exactly known.
fn number(name: &str, paper: f64, measured: f64, unit: &str) -> Value {
    Value {
        name: name.to_owned(),
        paper: Published::Number(paper),
        measured: Some(measured),
        ci95: None,
        unit: unit.to_owned(),
    }
}

/// A number over the repetitions.
fn sampled(name: &str, paper: Published, sample: &Sample, unit: &str) -> Value {
    Value {
        name: name.to_owned(),
        paper,
        measured: sample.is_known().then_some(sample.mean),
        ci95: sample.interval().map(|(low, high)| [low, high]),
        unit: unit.to_owned(),
    }
}

/// Whether a number is the paper's, to the last digit.
fn is_exact(value: &Value) -> bool {
    matches!((&value.paper, value.measured), (Published::Number(paper), Some(ours)) if *paper == ours)
}

pub(crate) fn reproduce(
    options: &Options,
    hooks: Hooks<'_>,
) -> Result<Reproduction, ReproduceError> {
    let began = Instant::now();
    let list = List::read().map_err(ReproduceError::Inputs)?;
    let form = Form::new(options, &list);
    let rows = TARGETS.iter().zip(ROWS);
    let mut targets: HashMap<&str, Target> = rows
        .filter(|(id, _)| options.wants(id))
        .map(|(id, (title, kind, _))| (*id, blank(id, title, kind)))
        .collect();
    if let Some(t) = targets.get_mut("D-1")
        && let Err(why) = table1::run_into(t)
    {
        t.why = Some(why);
    }
    let mut work = Work {
        options,
        hooks,
        list: &list,
        form: &form,
        runs: Runs::default(),
        counts: HashMap::new(),
        failures: Vec::new(),
        refs: 0,
    };
    work.run();
    work.fill(&mut targets);
    let of_order = TARGETS.iter();
    Ok(Reproduction {
        schema: REPRODUCTION_SCHEMA,
        system: System::Dulo.name().to_owned(),
        title: System::Dulo.title().to_owned(),
        quick: options.quick,
        seed: options.seed,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        budget_refs: work.longest(),
        warmup_refs: 0,
        conditions: conditions(&form),
        figures: panels::all(&work.runs, &list),
        simulated_refs: work.refs,
        targets: of_order.filter_map(|id| targets.remove(id)).collect(),
        host_seconds: began.elapsed().as_secs_f64(),
        command: None,
    })
}

/// All that the rows of the traces need.
struct Work<'a> {
    options: &'a Options,
    hooks: Hooks<'a>,
    list: &'a List,
    form: &'a Form,
    runs: Runs,
    counts: HashMap<String, Counts>,
    /// Input (none: all of them) and why it was not run.
    failures: Vec<(Option<String>, String)>,
    refs: u64,
}

impl Work<'_> {
    fn run(&mut self) {
        let wanted: Vec<(&Input, Wanted)> = self
            .list
            .input
            .iter()
            .map(|i| (i, self.form.wanted(self.options, self.list, i)))
            .collect();
        let table2 = self.options.wants("D-2");
        if !table2 && wanted.iter().all(|(_, w)| w.is_empty()) {
            return;
        }
        let folder = Folder::find(&self.options.inputs, self.list);
        let places = folder.and_then(|f| Ok((Places::read(&f)?, f)));
        let (places, folder) = match places {
            Ok(both) => both,
            Err(why) => {
                self.failures.push((None, why));
                return;
            }
        };
        for (input, wanted) in &wanted {
            if !table2 && wanted.is_empty() {
                continue;
            }
            if let Err(why) = self.one(input, wanted, table2, &folder, &places) {
                self.failures.push((Some(input.name.clone()), why));
            }
        }
    }

    fn one(
        &mut self,
        input: &Input,
        wanted: &Wanted,
        table2: bool,
        folder: &Folder,
        places: &Places,
    ) -> Result<(), String> {
        let (stop, progress) = (self.hooks.stop, self.hooks.progress);
        let on = |done: u64| {
            if let Some(progress) = progress {
                progress(&format!("{} is counted", input.name), done, done);
            }
            !stop.is_some_and(|s| s.load(Ordering::Relaxed))
        };
        let has_row = input.paper.sequential_percent.is_some();
        if wanted.is_empty() && !(table2 && has_row) {
            return Ok(());
        }
        let counts = inputs::count(&folder.trace(&input.name), &on)?;
        self.counts.insert(input.name.clone(), counts.clone());
        let bench = Bench {
            hooks: self.hooks,
            folder,
            places,
            seed: self.options.seed,
            repetitions: self.form.repetitions,
            refs: Cell::new(0),
        };
        let limit = self.form.limit.get(&input.name).copied();
        let done = bench.run(&mut self.runs, &input.name, wanted, &counts, limit);
        self.refs += bench.refs.get();
        done
    }

    fn fill(&self, targets: &mut HashMap<&str, Target>) {
        let (runs, list, plan) = (&self.runs, self.list, &self.form.plan);
        for (id, t) in targets.iter_mut() {
            match *id {
                "D-2" => table2::fill(t, &self.counted()),
                "D-3" => figures::viewperf(t, runs),
                "D-4" => figures::tpch(t, runs),
                "D-5" => figures::multi1(t, runs, &figures::AT_80),
                "D-6" => figures::multi1(t, runs, &figures::AT_160),
                "D-7" => figures::order(t, runs),
                "D-8" => tables::fill_banks(t, runs, list, plan),
                "D-9" => tables::fill_evictings(t, runs, list, plan),
                "D-10" => overhead::fill(t, runs, list),
                "D-11" | "D-12" | "D-13" => t.why = Some("not built yet".to_owned()),
                _ => {}
            }
            self.explain(id, t);
        }
    }

    /// Says of a row what it lacks. A row is only judged whole.
    fn explain(&self, id: &str, t: &mut Target) {
        let of_row = |input: &str| match id {
            "D-2" => true,
            "D-8" | "D-9" => self.form.plan.inputs.iter().any(|i| i == input),
            "D-10" => overhead::INPUTS.contains(&input),
            _ => ROWS
                .iter()
                .zip(TARGETS)
                .any(|(row, of)| of == id && row.2.contains(&input)),
        };
        let concerns = |failed: &Option<String>| match failed {
            None => id != "D-1" && t.why.as_deref() != Some("not built yet"),
            Some(input) => of_row(input),
        };
        let failed: Vec<String> = self
            .failures
            .iter()
            .filter(|(input, _)| concerns(input))
            .map(|(input, why)| match input {
                Some(input) => format!("{input}: {why}"),
                None => why.clone(),
            })
            .collect();
        if !failed.is_empty() {
            t.verdict = Verdict::NotRun;
            t.why = Some(failed.join("; "));
        } else if t.verdict == Verdict::NotRun && t.why.is_none() {
            t.why = Some("what was asked for leaves nothing to judge".to_owned());
        } else if let Some(cut) = self.cut(id) {
            t.why = Some(cut);
        }
    }

    /// What the form leaves out of a row.
    fn cut(&self, id: &str) -> Option<String> {
        if !self.form.quick {
            return None;
        }
        let text = match id {
            "D-3" => "cut: 2 of the 7 memory sizes",
            "D-4" => "cut: 1 of the 5 memory sizes, the first 3 million accesses",
            "D-7" => "cut: the sizes that the paper names; of multi2 the first 3 million accesses",
            "D-8" => "cut: 2 of the 4 inputs, banks of 1, 8 and 32 MB",
            "D-9" => "cut: 2 of the 4 inputs, sections of 32, 64 and 128 MB",
            "D-10" => "cut: of multi2 the first 3 million accesses",
            _ => return None,
        };
        Some(text.to_owned())
    }

    fn counted(&self) -> Vec<(&Input, Counts)> {
        let of = |i: &&Input| i.paper.sequential_percent.is_some();
        let inputs = self.list.input.iter().filter(of);
        inputs
            .filter_map(|i| Some((i, self.counts.get(&i.name)?.clone())))
            .collect()
    }

    /// References of the longest input that was replayed.
    fn longest(&self) -> u64 {
        let replayed = |(name, counts): (&String, &Counts)| {
            let limit = self.form.limit.get(name).copied().unwrap_or(u64::MAX);
            counts.accesses.min(limit)
        };
        self.counts.iter().map(replayed).max().unwrap_or(0)
    }
}

fn conditions(form: &Form) -> Vec<String> {
    vec![
        "Seagate ST39102LW, one request outstanding; Deadline and readahead of Linux 2.6.11; the \
         files lie where a file system put them; accesses in the order of the trace, a miss stops \
         its own program only; no processor time between accesses."
            .to_owned(),
        "CLOCK against DULO on CLOCK: bank of 8 MB and evicting section of 64 MB, below 80 MB of \
         memory 4 and 16 MB; block = page = 4 KiB."
            .to_owned(),
        format!(
            "{} repetitions; each draws the layout's cylinder, the platter's angle, what of each \
             program is passed over, and leads of programs. Intervals: 95 %, Student t, of paired \
             differences.",
            form.repetitions
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list() -> List {
        List::read().unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn the_forms_run_what_the_protocol_says() {
        let list = list();
        let full = Form::new(&Options::default(), &list);
        assert_eq!((full.repetitions, full.limit.len()), (5, 0));
        assert_eq!((full.plan.inputs.len(), full.plan.banks.len()), (4, 6));
        let options = Options {
            quick: true,
            ..Options::default()
        };
        let quick = Form::new(&options, &list);
        assert_eq!((quick.repetitions, quick.limit.len()), (2, 2));
        for input in &list.input {
            let sizes: Vec<u32> = quick.wanted(&options, &list, input).into_keys().collect();
            assert_eq!(sizes, input.at, "{}", input.name);
        }
        let multi1 = list.input.iter().find(|i| i.name == "multi1");
        let wanted = full.wanted(&Options::default(), &list, multi1.unwrap_or(&list.input[0]));
        // Banks, sections up to 128 MB, and both policies; the pair in common is plain DULO.
        let mut policies = wanted[&160].clone();
        policies.sort();
        policies.dedup();
        assert_eq!(policies.len(), 2 + 5 + 2, "{policies:?}");
    }

    #[test]
    fn rows_choose_what_is_run() {
        let list = list();
        let options = Options {
            only: vec!["D-3".to_owned()],
            ..Options::default()
        };
        let form = Form::new(&options, &list);
        for input in &list.input {
            let wanted = form.wanted(&options, &list, input);
            assert_eq!(
                wanted.is_empty(),
                input.name != "viewperf",
                "{}",
                input.name
            );
        }
    }

    #[test]
    fn without_inputs_every_row_but_the_first_says_why() {
        let options = Options {
            inputs: "/nowhere".into(),
            ..Options::default()
        };
        let record = |_: &crate::Wanted<'_>, _: &std::path::Path| Err(String::new());
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &record,
        };
        let done = reproduce(&options, hooks).unwrap_or_else(|e| panic!("{e}"));
        let ids: Vec<&str> = done.targets.iter().map(|t| t.id.as_str()).collect();
        assert_eq!(ids, TARGETS);
        assert_eq!(done.targets[0].verdict, Verdict::Match);
        for t in &done.targets[1..] {
            assert_eq!(t.verdict, Verdict::NotRun, "{}", t.id);
            let why = t.why.as_deref().unwrap_or_default();
            assert!(
                why.contains("stand-ins.sh dulo") || why.contains("not built"),
                "{}: {why}",
                t.id
            );
        }
    }
}
