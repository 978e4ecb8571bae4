//! Runs the inputs, and fills the rows from the results.

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::atomic::Ordering;

use piebald_report::{Target, Verdict};

use super::draws::Places;
use super::form::Form;
use super::inputs::{Counts, Folder, Input, List};
use super::rows::{ROWS, TARGETS};
use super::runs::{Bench, CLOCK, DULO, Files, Runs, Wanted};
use super::{figures, inputs, overhead, table2, tables};
use crate::{Hooks, Options};

/// All that the rows of the traces need.
pub(super) struct Work<'a> {
    options: &'a Options,
    hooks: Hooks<'a>,
    list: &'a List,
    form: &'a Form,
    pub runs: Runs,
    /// The same where a file system laid the files out, of what is shown beside.
    ext3: Runs,
    counts: HashMap<String, Counts>,
    /// Input (none: all of them) and why it was not run.
    failures: Vec<(Option<String>, String)>,
    /// References simulated so far.
    pub refs: u64,
}

impl<'a> Work<'a> {
    pub(super) fn new(
        options: &'a Options,
        hooks: Hooks<'a>,
        list: &'a List,
        form: &'a Form,
    ) -> Self {
        Self {
            options,
            hooks,
            list,
            form,
            runs: Runs::default(),
            ext3: Runs::default(),
            counts: HashMap::new(),
            failures: Vec::new(),
            refs: 0,
        }
    }

    /// Runs what the chosen rows need.
    pub(super) fn run(&mut self) {
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
        let mut bench = Bench {
            files: Files::ByInode,
            hooks: self.hooks,
            folder,
            places,
            seed: self.options.seed,
            repetitions: self.form.repetitions,
            refs: Cell::new(0),
        };
        let limit = self.form.limit.get(&input.name).copied();
        let mut done = bench.run(&mut self.runs, &input.name, wanted, &counts, limit);
        let beside = self.beside(input);
        if done.is_ok() && !beside.is_empty() {
            bench.files = Files::Ext3;
            done = bench.run(&mut self.ext3, &input.name, &beside, &counts, limit);
        }
        self.refs += bench.refs.get();
        done
    }

    /// What of an input is run with the files of a file system, beside D-5 and D-6.
    fn beside(&self, input: &Input) -> Wanted {
        let sizes = [&figures::AT_80, &figures::AT_160].into_iter();
        let mine = sizes.filter(|at| input.name == "multi1" && self.options.wants(at.id));
        let both = || vec![CLOCK.to_owned(), DULO.to_owned()];
        mine.map(|at| (at.mb, both())).collect()
    }

    /// Fills the rows from what was run.
    pub(super) fn fill(&self, targets: &mut HashMap<&str, Target>) {
        let (runs, list, plan) = (&self.runs, self.list, &self.form.plan);
        for (id, t) in targets.iter_mut() {
            match *id {
                "D-2" => table2::fill(t, &self.counted()),
                "D-3" => figures::viewperf(t, runs),
                "D-4" => figures::tpch(t, runs),
                "D-5" => figures::multi1(t, [runs, &self.ext3], &figures::AT_80),
                "D-6" => figures::multi1(t, [runs, &self.ext3], &figures::AT_160),
                "D-7" => figures::order(t, runs),
                "D-8" => tables::fill_banks(t, runs, list, plan),
                "D-9" => tables::fill_evictings(t, runs, list, plan),
                "D-10" => overhead::fill(t, runs, list),
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
            None => !matches!(id, "D-1" | "D-11" | "D-12" | "D-13"),
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
    pub(super) fn longest(&self) -> u64 {
        let replayed = |(name, counts): (&String, &Counts)| {
            let limit = self.form.limit.get(name).copied().unwrap_or(u64::MAX);
            counts.accesses.min(limit)
        };
        self.counts.iter().map(replayed).max().unwrap_or(0)
    }
}
