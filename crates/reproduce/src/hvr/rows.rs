//! What rows are made from, and H-1's list of mixes.

use std::{
    collections::HashMap,
    sync::{Mutex, atomic::AtomicU64},
};

use piebald_hw::spec::MachineSpec;
use piebald_policy::hvr::Class;
use piebald_report::Sample;

use super::{
    form::Form,
    mixes::{Bench, Mix},
    programs::Program,
};
use crate::{Hooks, Options, row::Found};

/// What rows are made from.
pub(super) struct Runs<'a> {
    pub bench: Bench<'a>,
    pub form: Form,
}

/// Ages of memory that are kept between runs: one for each way.
const KEPT: usize = 14;

/// Mixes of H-1's list, and those of 4 programs that the quick form has of them.
pub(super) const LIST: u64 = 214;
const QUICK_FOURS: usize = 16;

impl<'a> Runs<'a> {
    pub(super) fn new(
        spec: &'a MachineSpec,
        (programs, classes, shares): (&'a [Program], &'a [Option<Class>], &'a [f64]),
        form: Form,
        options: &Options,
        hooks: Hooks<'a>,
    ) -> Self {
        Self {
            bench: Bench {
                spec,
                programs,
                classes,
                shares,
                inputs: options.inputs.clone(),
                warmup: form.warmup,
                budget: form.budget,
                repetitions: form.repetitions,
                places: form.places(),
                seed: options.seed,
                stop: hooks.stop,
                progress: hooks.progress,
                model: hooks.model(KEPT),
                store: hooks.store,
                done: Mutex::new(HashMap::new()),
                ready: Mutex::new(HashMap::new()),
                refs: AtomicU64::new(0),
            },
            form,
        }
    }

    pub(super) fn refs(&self) -> u64 {
        self.bench.refs()
    }

    /// Programs of one thread, all or those of some classes.
    pub(super) fn of(&self, classes: &[Class]) -> Vec<usize> {
        let all = self.bench.classes.iter().enumerate();
        let wanted = |c: &Option<Class>| c.is_some_and(|c| classes.contains(&c));
        all.filter(|(_, c)| wanted(c)).map(|(at, _)| at).collect()
    }

    /// The mixes of H-1, those of 4 programs and those of 8 by turns.
    pub(super) fn all(&self, name: &'static str, count: u64) -> Vec<Mix> {
        let all = self.of(&Class::ALL);
        (0..count)
            .filter_map(|n| {
                let size = if n % 2 == 0 { 4 } else { 8 };
                Mix::drawn((name, n), &[(&all, size)])
            })
            .collect()
    }

    /// The list of H-1.
    pub(super) fn list(&self) -> Vec<Mix> {
        self.all("H-1", LIST)
    }

    /// Those of it that are run: the first ones, if a number is given; else in the quick form
    /// the first of 4 programs and the first of 8.
    pub(super) fn first(&self) -> Vec<Mix> {
        if !self.form.quick || self.form.most.is_some() {
            return self.all("H-1", self.form.mixes(LIST, 0));
        }
        let list = self.list();
        let of = |size: usize, many: usize| {
            let mine = list.iter().filter(move |m| m.members.len() == size);
            mine.take(many).cloned()
        };
        of(4, QUICK_FOURS).chain(of(8, 1)).collect()
    }
}

pub(super) fn share(holds: usize, of: usize) -> f64 {
    100.0 * holds as f64 / of.max(1) as f64
}

pub(super) fn number(value: f64) -> Found {
    Ok(Sample::new(vec![value]))
}
