//! Programs that regions stand for.

use piebald_experiment::{Refs, RegionRequest};
use piebald_trace::recording::{
    Recording, ReplayOptions,
    regions::{RegionOptions, Regions},
};
use piebald_units::Count;

use crate::{
    regions::{Enter, Entry, RegionError, Span, cache_lines, only_thread, plan, reach, ready_at},
    scenario::{Input, Scenario},
};

/// Fewest instructions of an interval that is not given.
const MIN_INTERVAL: u64 = 1000;
/// Intervals for each region that may be chosen, at least: fewer tell no phases apart.
const INTERVALS_PER_REGION: u64 = 5;
/// Most intervals if their length is not given: choosing among them takes about a second.
const MAX_INTERVALS: u64 = 10_000;
/// References that a command is recorded for, in budgets, if no span is given.
const COMMAND_SPAN: u64 = 100;
/// The same of a built-in program, which is kept in memory.
const BUILTIN_SPAN: u64 = 10;

/// The regions that stand for a program, ready to run.
#[derive(Clone)]
pub struct Parts {
    pub(crate) entries: Vec<Entry>,
    pub(crate) regions: Regions,
    /// Instructions that they stand for, and where these end in the program.
    pub(crate) instrs: u64,
    pub(crate) end: u64,
    /// References of a run of all that they stand for, set-up included.
    pub(crate) refs: u64,
    /// Instructions of an interval.
    pub(crate) interval: u64,
    /// The whole is to be run as well; `None` = if it is cheap.
    pub(crate) check: Option<bool>,
}

impl Parts {
    /// Share of the instructions that lie in regions.
    pub(crate) fn coverage(&self) -> f64 {
        let simulated: u64 = self.regions.regions.iter().map(|r| r.instrs).sum();
        simulated as f64 / self.instrs.max(1) as f64
    }

    /// The region of most weight.
    pub(crate) fn heaviest(&self) -> usize {
        let all = self.regions.regions.iter().enumerate();
        let heaviest = all.max_by(|a, b| a.1.weight.total_cmp(&b.1.weight).then(b.0.cmp(&a.0)));
        heaviest.map_or(0, |(at, _)| at)
    }

    /// A region, drawn in proportion to the weights by a number in `0..1`.
    pub(crate) fn drawn(&self, unit: f64) -> usize {
        let mut left = unit;
        let found = self.regions.regions.iter().position(|r| {
            left -= r.weight;
            left < 0.0
        });
        found.unwrap_or_else(|| self.heaviest())
    }
}

/// References after set-up that an input must have, recorded on the fly.
pub(crate) fn span_refs(scenario: &Scenario, request: &RegionRequest, input: &Input) -> u64 {
    let budgets = match input {
        Input::Builtin(_) => BUILTIN_SPAN,
        _ => COMMAND_SPAN,
    };
    request
        .span
        .map_or(scenario.budget_refs.saturating_mul(budgets), Refs::get)
}

/// Chooses the regions of a recording and makes them ready to run as a program of this name.
pub(crate) fn parts(
    scenario: &Scenario,
    request: &RegionRequest,
    recording: &Recording,
    name: &str,
    options: ReplayOptions,
    has_setup: bool,
) -> Result<Parts, RegionError> {
    let thread = only_thread(recording)?;
    let (from, setup) = match has_setup {
        true => ready_at(recording, &thread)?,
        false => (0, 0),
    };
    let span = Span {
        from,
        refs: request.span.map(|refs| refs.get().saturating_add(setup)),
    };
    let (end, refs) = reach(recording, span)?;
    let instrs = end.saturating_sub(from);
    let per_ref = instrs as f64 / refs.saturating_sub(setup).max(1) as f64;
    let interval = request.interval.map(Refs::get).unwrap_or_else(|| {
        let share = scenario.budget_refs as f64 * per_ref / f64::from(request.max.get_u32());
        let few = instrs / (request.max.get() * INTERVALS_PER_REGION);
        (share as u64)
            .min(few)
            .max(instrs.div_ceil(MAX_INTERVALS))
            .max(MIN_INTERVAL)
    });
    let chosen = RegionOptions {
        max_regions: request.max.get() as usize,
        ..RegionOptions::default()
    };
    let plan = plan(recording, interval, span, &chosen)?;
    let enter = Enter {
        recording,
        plan: &plan,
        warmup: (scenario.warmup_refs as f64 * per_ref) as u64,
        lines: cache_lines(&scenario.machine),
        options,
    };
    Ok(Parts {
        entries: enter.all(name)?,
        instrs: plan.instrs,
        end: plan.from + plan.instrs,
        refs: plan.refs,
        interval,
        check: request.check,
        regions: plan.regions,
    })
}

/// What the regions stand for, in words.
pub(crate) fn description(name: &str, parts: &Parts, recorded: u64, cut: bool) -> String {
    let n = parts.entries.len();
    let what = match cut {
        true => format!("the first {} references of the program", Count(recorded)),
        false => "the recorded program".to_owned(),
    };
    format!(
        "{name}: {n} region{} of {:.3} million instructions stand{} for {}, {:.1} million \
         instructions; {:.2} % of these are simulated",
        if n == 1 { "" } else { "s" },
        parts.interval as f64 / 1e6,
        if n == 1 { "s" } else { "" },
        what,
        parts.instrs as f64 / 1e6,
        100.0 * parts.coverage(),
    )
}
