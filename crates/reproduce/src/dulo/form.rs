//! What the full and the quick form run.

use std::collections::BTreeMap;

use super::inputs::{Input, List};
use super::rows::{ROWS, TARGETS};
use super::runs::{CLOCK, DULO, Wanted};
use super::{overhead, tables};
use crate::Options;

/// How much is run.
#[derive(Clone, Debug)]
pub(super) struct Form {
    pub quick: bool,
    pub repetitions: u32,
    /// References of an input that are replayed; `None` = all.
    pub limit: BTreeMap<String, u64>,
    pub plan: tables::Plan,
}

/// Full form (protocol): repetitions.
const REPETITIONS: u32 = 5;
/// Quick form (protocol): repetitions, and the accesses to which the long inputs are cut.
const QUICK_REPETITIONS: u32 = 3;
const QUICK_LIMIT: u64 = 3_000_000;
const QUICK_CUT: [&str; 2] = ["tpc-h", "multi2"];
/// Quick form: inputs and sizes of tables 3 and 4.
const QUICK_TABLES: [&str; 2] = ["glimpse", "multi1"];
const QUICK_BANKS: [u32; 3] = [1, 8, 32];
const QUICK_EVICTINGS: [u32; 3] = [32, 64, 128];

impl Form {
    pub(super) fn new(options: &Options, list: &List) -> Self {
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
    pub(super) fn wanted(&self, options: &Options, list: &List, input: &Input) -> Wanted {
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
        assert_eq!((quick.repetitions, quick.limit.len()), (3, 2));
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
}
