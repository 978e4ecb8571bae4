//! How a program is met and measured, where its table says more than its role does.

use piebald_experiment::Enter;
use piebald_trace::recording::ReplayOptions;
use piebald_units::op::{MemRef, Next, RefKind, SysOp};
use piebald_workload::{Builtin, Program, Recorded, memory::mark, record};

use crate::{
    executed::known,
    scenario::{ProgramEntry, Scenario},
};

/// References by which it is found how much a program copies.
const PROBED: u64 = 20_000;
/// Bytes of a line, whose copy is a load and a store.
const LINE: f64 = 64.0;
/// References that hold two iterations of any program.
const ENOUGH: u64 = 1 << 40;

/// Lengths of a program's parts.
#[derive(Clone, Copy)]
pub(crate) struct Met {
    pub(crate) warmup: u64,
    pub(crate) budget: u64,
    /// References that the place where it is met is drawn from; 0 = it is met at its beginning, and
    /// `None` = its role says where.
    pub(crate) enter: Option<u64>,
    /// It begins again there when it ends.
    pub(crate) stays: bool,
}

impl Met {
    /// References that a program makes at least.
    pub(crate) const fn refs(&self) -> u64 {
        let enter = match self.enter {
            Some(refs) => refs,
            None => 0,
        };
        self.warmup
            .saturating_add(self.budget)
            .saturating_add(enter)
    }

    /// Of a built-in program.
    pub(crate) fn of_builtin(
        scenario: &Scenario,
        entry: &ProgramEntry,
        (builtin, seed): (&Builtin, u64),
    ) -> Result<Self, String> {
        let of = |builtin: &Builtin, refs: u64| {
            let recording = record(builtin, seed, refs).map_err(|e| e.to_string())?;
            let options = ReplayOptions::default();
            Recorded::new(&entry.name, recording, options).map_err(|e| e.to_string())
        };
        let weight = if entry.count_copies {
            weight(&of(builtin, PROBED)?, true)?
        } else {
            1.0
        };
        let mut met = Self::weighted((scenario, entry), weight);
        let one = if entry.whole_iterations || entry.enter == Some(Enter::Iteration) {
            known(format!("iteration {builtin} {seed}"), || {
                let twice = of(&builtin.with_iterations(2), ENOUGH)?;
                let none = "it has no iterations of which each makes references";
                iteration(&twice)?.ok_or_else(|| none.to_owned())
            })?
        } else {
            1
        };
        if entry.whole_iterations {
            met.warmup = met.warmup.max(2 * one);
            met.budget = one * met.budget.div_ceil(one).max(2);
        }
        met.enter = entry.enter.map(|enter| match enter {
            Enter::Start => 0,
            // Its set-up is passed over in any case.
            Enter::First(_) => 1,
            Enter::Anywhere => met.warmup + met.budget,
            Enter::Iteration => one,
            Enter::Within(refs) => refs.get(),
        });
        Ok(met)
    }

    /// Of a recording, of whose references to data there are so many.
    pub(crate) fn of_recording(
        scenario: &Scenario,
        entry: &ProgramEntry,
        (program, refs): (&dyn Program, u64),
    ) -> Result<Self, String> {
        let weight = if entry.count_copies {
            weight(program, false)?
        } else {
            1.0
        };
        let mut met = Self::weighted((scenario, entry), weight);
        // One that starts again has all of its life before it wherever it is met.
        let room = if entry.again {
            length(program)?
        } else {
            refs.saturating_sub(met.warmup + met.budget)
        };
        met.enter = entry.enter.map(|enter| match enter {
            Enter::Start => 0,
            // Only built-in programs mark iterations: refused where the file is read.
            Enter::Anywhere | Enter::Iteration => room.max(1),
            Enter::Within(within) => within.get().min(room).max(1),
            Enter::First(share) => ((refs as f64 * share.ratio()) as u64).max(1),
        });
        Ok(met)
    }

    fn weighted((scenario, entry): (&Scenario, &ProgramEntry), weight: f64) -> Self {
        let own = |refs: u64| entry.length.map_or(refs, |length| length.of(refs));
        let part = |refs: u64| (own(refs) as f64 / weight) as u64;
        Self {
            warmup: part(scenario.warmup_refs),
            budget: part(scenario.budget_refs).max(1),
            enter: None,
            stays: matches!(entry.enter, Some(Enter::First(_))),
        }
    }
}

/// Where a thread is in its life.
#[derive(Clone, Copy, Default)]
struct At {
    /// References so far, and those to data among them.
    all: u64,
    data: u64,
}

/// Reads a program's first thread until its end or `over`, which is told what comes next.
fn read(program: &dyn Program, mut over: impl FnMut(At, Next) -> bool) -> Result<(), String> {
    let mut source = program.open(0).map_err(|e| e.to_string())?;
    let mut buffer = vec![MemRef::default(); 4096];
    let mut at = At::default();
    loop {
        let filled = source.fill(&mut buffer);
        let refs = &buffer[..filled.refs];
        at.all += refs.len() as u64;
        at.data += refs.iter().filter(|r| r.kind != RefKind::Fetch).count() as u64;
        if filled.next == Next::Broken {
            return Err(source.failure().unwrap_or("broken").to_owned());
        }
        if over(at, filled.next) || matches!(filled.next, Next::Exit(_) | Next::End) {
            return Ok(());
        }
    }
}

/// References of a program's first thread until it is set up.
pub(crate) fn set_up(program: &dyn Program) -> Result<u64, String> {
    let mut found = None;
    read(program, |at, next| {
        found = (next == Next::Mark(mark::READY)).then_some(at.all);
        found.is_some()
    })?;
    found.ok_or_else(|| "no mark of the end of its set-up".to_owned())
}

/// All references of a program's first thread.
fn length(program: &dyn Program) -> Result<u64, String> {
    let mut all = 0;
    read(program, |at, _| {
        all = at.all;
        false
    })?;
    Ok(all)
}

/// References to data of an iteration after the first.
fn iteration(program: &dyn Program) -> Result<Option<u64>, String> {
    let mut marks = Vec::new();
    read(program, |at, next| {
        if next == Next::Mark(mark::ITERATION) {
            marks.push(at.data);
        }
        marks.len() > 1
    })?;
    Ok(match marks[..] {
        [first, second] => Some(second - first).filter(|refs| *refs > 0),
        _ => None,
    })
}

/// What a reference stands for on average, itself included, by a program's first references, or those
/// after its set-up.
fn weight(program: &dyn Program, after_ready: bool) -> Result<f64, String> {
    let (mut from, mut made, mut copied) = ((!after_ready).then_some(0), 0, 0);
    read(program, |at, next| {
        match next {
            Next::Mark(mark::READY) => (from, copied) = (Some(at.data), 0),
            Next::Sys(SysOp::Read { len, .. } | SysOp::Write { len, .. }) => copied += len,
            _ => {}
        }
        made = from.map_or(0, |from| at.data - from);
        made >= PROBED
    })?;
    Ok(1.0 + copied as f64 / LINE * 2.0 / made.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(text: &str, refs: u64) -> Recorded {
        let builtin = Builtin::parse(text).unwrap_or_else(|e| panic!("{e}"));
        let recording = record(&builtin, 1, refs).unwrap_or_else(|e| panic!("{e}"));
        let program = Recorded::new(text, recording, ReplayOptions::default());
        program.unwrap_or_else(|e| panic!("{e}"))
    }

    #[test]
    fn an_iteration_is_what_a_program_repeats() {
        // A load for 32 B.
        let twice = program("scan:64KiB,iterations=2", ENOUGH);
        assert_eq!(iteration(&twice), Ok(Some(2048)));
        assert_eq!(
            iteration(&program("scan:64KiB,iterations=1", ENOUGH)),
            Ok(None)
        );
    }

    #[test]
    fn copies_weigh_what_their_lines_do() {
        // Two loads for a line that was copied by a load and a store.
        let scan = weight(&program("scan:1MiB", PROBED), true);
        assert!(
            scan.as_ref().is_ok_and(|w| (w - 2.0).abs() < 0.1),
            "{scan:?}"
        );
        // Two references for a call of 64 lines.
        let random = weight(&program("randread:1MiB", PROBED), true);
        assert!(
            random.as_ref().is_ok_and(|w| (w - 65.0).abs() < 1.0),
            "{random:?}"
        );
        assert_eq!(weight(&program("triad:1MiB", PROBED), true), Ok(1.0));
    }
}
