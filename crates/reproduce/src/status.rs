//! What of a paper's rows is there, what is missing and why, and what it took.
//!
//! A row is asked as it is when it is run, over a store that is there to look only: what it looks
//! for is noted, and what is not there ends its part of the row. So a paper says nothing of its
//! status by itself, and the keys are those of its runs. Runs that follow from the outcomes of others
//! are not known before these are there.

use std::{path::Path, sync::Arc};

use piebald_report::{Target, Verdict};
use piebald_sim::EPOCH;
use piebald_store::{Costs, Look, NOT_KEPT, Store};

use crate::{Hooks, Options, ReproduceError, Source, reproduce};

/// How far a row is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// All of its runs are in the store, or it needs none.
    Ready,
    /// Runs are missing.
    Missing,
    /// It cannot be run here: an input is missing, or the row is one that is never run.
    CannotRun,
}

impl State {
    /// As it is printed.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ready => "ready",
            Self::Missing => "missing",
            Self::CannotRun => "cannot-run",
        }
    }
}

/// Runs of a row, and the seconds that they took. A run has one thread of the host.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Runs {
    /// How many.
    pub count: u64,
    /// Of those whose entries say it.
    pub seconds: f64,
}

impl Runs {
    fn add(&mut self, seconds: Option<f64>) {
        self.count += 1;
        self.seconds += seconds.unwrap_or(0.0);
    }
}

/// Where a row stands.
#[derive(Clone, Debug, PartialEq)]
pub struct RowStatus {
    /// Its id.
    pub id: String,
    /// Its title.
    pub title: String,
    /// How far it is.
    pub state: State,
    /// In the store. Runs that several rows share count for each of them.
    pub kept: Runs,
    /// Not in the store, but left there by other code: what they took then.
    pub other_code: Runs,
    /// Never kept: nobody knows what they take.
    pub never: u64,
    /// Why it cannot be run, or what else its result says.
    pub why: Option<String>,
}

/// The status of a paper's rows, in their order, over the store in `folder`.
///
/// # Errors
/// What makes the whole impossible; the store cannot be read.
pub fn status(
    source: &Source,
    options: &Options,
    hooks: Hooks<'_>,
    folder: &Path,
) -> Result<Vec<RowStatus>, ReproduceError> {
    let costs = Costs::read(folder).map_err(|e| ReproduceError::Store(e.to_string()))?;
    let mut rows = Vec::new();
    for id in source.ids().into_iter().filter(|id| options.wants(id)) {
        let store = Arc::new(Store::to_look(folder, EPOCH));
        let one = Options {
            only: vec![id.to_owned()],
            ..options.clone()
        };
        let hooks = Hooks {
            store: Some(&store),
            ..hooks
        };
        let found = reproduce(source, &one, hooks)?;
        let target = found.targets.into_iter().find(|t| t.id == id);
        rows.extend(target.map(|target| row(target, &store.looked(), &costs)));
    }
    Ok(rows)
}

fn row(target: Target, looked: &[Look], costs: &Costs) -> RowStatus {
    let (mut kept, mut other_code, mut never) = (Runs::default(), Runs::default(), 0);
    for look in looked {
        match (look.is_there, costs.of(look)) {
            (true, _) => kept.add(look.seconds),
            (false, Some(seconds)) => other_code.add(seconds),
            (false, None) => never += 1,
        }
    }
    // A run that no store can keep is asked for, and not looked for.
    let wants_a_run = target
        .why
        .as_ref()
        .is_some_and(|why| why.contains(NOT_KEPT));
    let state = match target.verdict {
        _ if other_code.count + never > 0 || wants_a_run => State::Missing,
        Verdict::NotRun => State::CannotRun,
        _ => State::Ready,
    };
    RowStatus {
        id: target.id,
        title: target.title,
        state,
        kept,
        other_code,
        never,
        // That runs are missing is said by their number, where they are counted.
        why: target
            .why
            .filter(|_| !wants_a_run || other_code.count + never == 0),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::System;

    fn hooks() -> Hooks<'static> {
        Hooks {
            stop: None,
            progress: None,
            record: &|wanted, _| Err(format!("no {}", wanted.program.name)),
            store: None,
        }
    }

    #[test]
    fn rows_are_ready_missing_or_cannot_be_run() {
        let folder = tempfile::tempdir().expect("a folder");
        let options = Options {
            quick: true,
            only: ["R-1", "R-5", "R-B3"].map(str::to_owned).to_vec(),
            ..Options::default()
        };
        let rows = status(&System::Rainbow.into(), &options, hooks(), folder.path());
        let rows = rows.expect("they can be asked");
        let [constant, recorded, builtin] = &rows[..] else {
            panic!("{rows:?}");
        };
        assert_eq!((&*constant.id, constant.state), ("R-1", State::Ready));
        assert_eq!((constant.kept.count, constant.never), (0, 0));
        assert_eq!(recorded.state, State::CannotRun);
        let why = recorded.why.as_deref().unwrap_or_default();
        assert!(
            why.contains("no bzip2") && why.contains("scripts/stand-ins.sh"),
            "{why}"
        );
        assert_eq!((builtin.state, &builtin.why), (State::Missing, &None));
        // All repetitions of one of its studies, though the first is not there.
        assert!(builtin.never >= 3, "{builtin:?}");
        assert!(!folder.path().join("v1").exists(), "nothing was made");
    }

    fn asks_for_a_run() -> Target {
        Target {
            id: "X-1".to_owned(),
            title: String::new(),
            kind: piebald_report::TargetKind::H,
            verdict: Verdict::NotRun,
            why: Some(format!("p: {NOT_KEPT}")),
            stand_in: false,
            calibrated: false,
            values: Vec::new(),
            predicates: Vec::new(),
            tables: Vec::new(),
        }
    }

    #[test]
    fn a_run_of_other_code_is_missing_and_its_seconds_are_known() {
        let folder = tempfile::tempdir().expect("a folder");
        let took = Duration::from_secs(2);
        for (epoch, text) in [(EPOCH, "kept"), ("older", "other"), ("older", "kept")] {
            let store = Store::open(folder.path(), epoch).expect("a store");
            store.put(text, &1u64, took);
        }
        let store = Store::to_look(folder.path(), EPOCH);
        for text in ["kept", "other", "never"] {
            let _ = store.get::<u64>(text);
        }
        let costs = Costs::read(folder.path()).expect("costs");
        let row = row(asks_for_a_run(), &store.looked(), &costs);
        let two = Runs {
            count: 1,
            seconds: 2.0,
        };
        assert_eq!((row.kept, row.other_code, row.never), (two, two, 1));
        assert_eq!((row.state, row.why), (State::Missing, None));
    }

    #[test]
    fn a_row_with_a_run_that_no_store_keeps_is_missing_and_says_so() {
        let folder = tempfile::tempdir().expect("a folder");
        let costs = Costs::read(folder.path()).expect("costs");
        let row = row(asks_for_a_run(), &[], &costs);
        assert_eq!(row.state, State::Missing);
        assert_eq!(row.why, Some(format!("p: {NOT_KEPT}")));
    }
}
