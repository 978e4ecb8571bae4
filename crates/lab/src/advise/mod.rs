//! Advice on shares of the last level: how few colors a program needs, and how to split
//! all of them among programs that run together.
//!
//! For each program: one run alone in all colors gives its miss curve
//! (`piebald_sim::CurveRequest`) and a time; one in the fewest colors that hold it another
//! time. Time at every other number of colors is estimated from these, and tried where
//! the advice depends on it ([`search`]). All these runs share the draws of the first
//! repetition. A split of the colors ([`split`]) then becomes a policy of the study, beside
//! stock frames and an equal split, so that its table says whether the advice is right.

mod alone;
mod report;
mod search;
mod split;

use std::collections::BTreeMap;

use piebald_experiment::{Advise, Frames, Goal, PolicyColors};
use std::sync::atomic::{AtomicU64, Ordering};

use piebald_hw::{Machine, Options};
use piebald_policy::color_map::ColorMap;
use piebald_report::{Role, Study};
use piebald_sim::Model;
use piebald_units::{Color, ColorAsk, ColorSet};
use rayon::prelude::*;

use self::alone::Found;
use crate::{
    colors::map_of,
    jobs::{Job, Phase, groups, jobs, members, planned_refs},
    prepare::Prepared,
    scenario::{Policy, Scenario},
    study::{Hooks, StudyError, run_all},
    utility::sample_shift,
};

/// Places of a color that are looked at, at least; more are not needed for an error of
/// about one percent.
const MIN_PLACES: u64 = 128;

/// What advice starts from.
struct Question<'a> {
    scenario: &'a Scenario,
    inputs: &'a [Prepared],
    request: Advise,
    map: ColorMap,
    sample_shift: u32,
    /// The policy whose state of memory and colors the runs alone have.
    base: Policy,
    /// Programs that run together, if the colors can be split among them.
    mix: Vec<usize>,
    notes: Vec<String>,
}

/// Runs a study with advice.
///
/// # Errors
/// [`StudyError::Advise`] if there can be none for this scenario; else the first run that
/// failed.
pub(crate) fn study(
    scenario: &Scenario,
    inputs: &[Prepared],
    hooks: Hooks<'_>,
    request: Advise,
) -> Result<Study, StudyError> {
    let mut question = Question::new(scenario, inputs, request)?;
    // All runs alone begin with one history.
    let own = Model::keeping(rayon::current_num_threads() + 1);
    let hooks = Hooks {
        model: hooks.model.or(Some(&own)),
        ..hooks
    };
    let programs = question.programs();
    let of = |p: &usize| planned_refs(scenario, &alone(*p), inputs) * question.planned_runs(*p);
    let own: u64 = programs.iter().map(of).sum();
    // Two policies more than the scenario has, about.
    let whole = jobs(scenario, inputs);
    let others: u64 = whole
        .iter()
        .map(|j| planned_refs(scenario, j, inputs))
        .sum();
    let others = others / scenario.policies.len() as u64 * (scenario.policies.len() as u64 + 2);
    let done = AtomicU64::new(0);
    let show = |refs: u64| {
        let now = done.fetch_add(refs, Ordering::Relaxed) + refs;
        if let Some(progress) = hooks.progress {
            progress(now.min(own), own + others);
        }
    };
    let found = programs.par_iter().with_max_len(1);
    let found = found.map(|p| alone::program(&question, *p, hooks, &show));
    let found = found.collect::<Result<Vec<Found>, StudyError>>()?;
    let splits = question.splits(&found);
    let with = question.with_policies(&splits);
    let later = |now: u64, planned: u64| {
        if let Some(progress) = hooks.progress {
            progress(own + now, own + planned);
        }
    };
    let rest = Hooks {
        progress: Some(&later),
        ..hooks
    };
    let mut study = run_all(&with, inputs, rest)?;
    study.simulated_refs += found.iter().map(|f| f.refs).sum::<u64>();
    study.advice = Some(report::advice(&question, &found, &splits, &study));
    let doubts = piebald_report::advice_doubts(&study);
    study.warnings.extend(doubts);
    study.notes.append(&mut question.notes);
    Ok(study)
}

/// The run of a program alone under the first policy.
const fn alone(program: usize) -> Job {
    Job {
        policy: 0,
        repetition: 0,
        phase: Phase::Alone(program),
        focus: None,
    }
}

/// How the colors are split among the programs of the mix, in their order; under the name
/// of a policy.
struct Split {
    policy: String,
    colors: Vec<u32>,
    /// By one of the two goals; none = equally.
    goal: Option<Goal>,
    /// Run, and not only told.
    run: bool,
}

impl<'a> Question<'a> {
    fn new(
        scenario: &'a Scenario,
        inputs: &'a [Prepared],
        request: Advise,
    ) -> Result<Self, StudyError> {
        let rainbow = scenario
            .policies
            .iter()
            .find(|p| p.frames == Frames::Rainbow);
        let base = rainbow.unwrap_or(&scenario.policies[0]);
        let base = Policy {
            name: "advice".to_owned(),
            frames: Frames::Rainbow,
            memory: base.memory,
            thp: false,
            replace: base.replace.clone(),
            hvr: None,
            files: None,
            threads: base.threads.clone(),
            first_drawn: base.first_drawn,
            tick: base.tick,
            color_map: rainbow.and_then(|p| p.color_map.clone()),
            colors: BTreeMap::new(),
        };
        let no = |problem: String| StudyError::Advise { problem };
        let map = map_of(&scenario.machine, &base).map_err(|why| {
            no(format!(
                "shares need page colors: {why}; allowed: a machine with page colors"
            ))
        })?;
        let machine = Machine::new(&scenario.machine, &Options::default());
        let machine = machine.map_err(|e| no(e.to_string()))?;
        for (entry, input) in scenario.programs.iter().zip(inputs) {
            let name = &entry.name;
            let threads = input.program.threads();
            if threads != 1 {
                return Err(no(format!(
                    "program \"{name}\" has {threads} threads; allowed: programs of one thread"
                )));
            }
            if input.parts.is_some() {
                return Err(no(format!(
                    "program \"{name}\" has regions; allowed: programs without, since a miss \
                     curve is measured in one run"
                )));
            }
            if !entry.changes.is_empty() {
                return Err(no(format!(
                    "program \"{name}\" changes its colors while it runs; allowed: programs that \
                     keep them"
                )));
            }
            if !one_group(&machine, scenario, &[name]) {
                return Err(no(format!(
                    "program \"{name}\": cores = {}; allowed: cores behind one last level",
                    entry.cores
                )));
            }
        }
        let mut question = Self {
            scenario,
            inputs,
            request,
            sample_shift: sample_shift(&scenario.machine, map.colors(), MIN_PLACES),
            map,
            base,
            mix: Vec::new(),
            notes: Vec::new(),
        };
        question.choose_mix(&machine);
        Ok(question)
    }

    /// The programs among which colors can be split, or a note why there are none.
    fn choose_mix(&mut self, machine: &Machine) {
        let together: Vec<Option<usize>> = groups(self.scenario).collect();
        let [group] = together[..] else {
            if together.len() > 1 {
                let why = "no split of the colors: there are several mixes, one for each target";
                self.notes.push(why.to_owned());
            }
            return;
        };
        let mix = members(self.scenario, Phase::Together(group));
        let entry = |p: &usize| &self.scenario.programs[*p];
        let names: Vec<&String> = mix.iter().map(|p| &entry(p).name).collect();
        let cores = mix.iter().flat_map(|p| entry(p).cores.iter());
        let mut cores: Vec<u16> = cores.map(|c| c.0).collect();
        let all = cores.len();
        cores.sort_unstable();
        cores.dedup();
        let colors = self.map.colors();
        let why = if cores.len() < all {
            "programs share cores".to_owned()
        } else if !one_group(machine, self.scenario, &names) {
            "the programs do not share one last level".to_owned()
        } else if mix.len() > colors as usize {
            format!("{} programs, {colors} colors", mix.len())
        } else {
            self.mix = mix;
            return;
        };
        self.notes.push(format!("no split of the colors: {why}"));
    }

    /// The programs that are run alone.
    fn programs(&self) -> Vec<usize> {
        let asked = |p: &usize| self.is_target(*p) || self.mix.contains(p);
        (0..self.scenario.programs.len()).filter(asked).collect()
    }

    fn is_target(&self, program: usize) -> bool {
        self.scenario.programs[program].role == Role::Target
    }

    /// Runs that a program's advice takes, about.
    fn planned_runs(&self, program: usize) -> u64 {
        if self.is_target(program) { 4 } else { 2 }
    }

    /// Equal shares, and the best by each goal, that asked for first.
    fn splits(&mut self, found: &[Found]) -> Vec<Split> {
        let of = |p: usize| found.iter().find(|f| f.program == p);
        let found: Vec<&Found> = self.mix.iter().filter_map(|p| of(*p)).collect();
        let Some(n) = u32::try_from(found.len()).ok().filter(|n| *n > 0) else {
            return Vec::new();
        };
        let mut splits = Vec::new();
        let colors = self.map.colors();
        let equal: Vec<u32> = (0..n).map(|i| (colors + n - 1 - i) / n).collect();
        match found.iter().zip(&equal).find(|(f, k)| **k < f.fewest) {
            None => splits.push(Split {
                policy: self.name("equal split"),
                colors: equal,
                goal: None,
                run: true,
            }),
            Some((f, k)) => self.notes.push(format!(
                "no equal split: {k} of {colors} colors do not hold the memory of {}",
                self.scenario.programs[f.program].name
            )),
        }
        let asked = self.request.goal;
        let other = match asked {
            Goal::Slowdowns => Goal::Misses,
            Goal::Misses => Goal::Slowdowns,
        };
        for goal in [asked, other] {
            let costs: Vec<Vec<f64>> = found.iter().map(|f| f.costs(goal)).collect();
            match split::best_split(&costs, colors) {
                Some(colors) => splits.push(Split {
                    policy: self.name("advised split"),
                    colors,
                    goal: Some(goal),
                    run: goal == asked,
                }),
                None if goal == asked => self.notes.push(format!(
                    "no split of the colors: {colors} are too few to hold the memory of all \
                     programs"
                )),
                None => {}
            }
        }
        splits
    }

    /// A name that no policy of the scenario has.
    fn name(&self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        while self.scenario.policies.iter().any(|p| p.name == name) {
            name += " (advice)";
        }
        name
    }

    /// The scenario with stock frames and the splits among its policies.
    fn with_policies(&self, splits: &[Split]) -> Scenario {
        let mut with = self.scenario.clone();
        with.advise = None;
        if splits.is_empty() {
            return with;
        }
        if !with.policies.iter().any(|p| p.frames == Frames::Stock) {
            let stock = Policy {
                name: self.name("stock"),
                frames: Frames::Stock,
                color_map: None,
                colors: BTreeMap::new(),
                ..self.base.clone()
            };
            with.policies.push(stock);
        }
        for split in splits.iter().filter(|s| s.run) {
            let mut colors = owners(self.scenario);
            for (program, set) in self.mix.iter().zip(runs(&split.colors)) {
                let name = with.programs[*program].name.clone();
                colors.insert(name, PolicyColors::Asks(ColorAsk::Exactly(set), None));
            }
            with.policies.push(Policy {
                name: split.policy.clone(),
                colors,
                ..self.base.clone()
            });
        }
        with
    }
}

/// No program of a scenario owns colors.
fn owners(scenario: &Scenario) -> BTreeMap<String, PolicyColors> {
    let programs = scenario.programs.iter();
    programs
        .map(|p| (p.name.clone(), PolicyColors::None))
        .collect()
}

/// Runs of neighbouring colors, of these lengths.
fn runs(lengths: &[u32]) -> Vec<ColorSet> {
    let mut next = 0u16;
    let run = |length: &u32| {
        let mut set = ColorSet::EMPTY;
        for _ in 0..*length {
            set.insert(Color(next));
            next += 1;
        }
        set
    };
    lengths.iter().map(run).collect()
}

/// Are all cores of these programs behind one instance of the last level?
fn one_group(machine: &Machine, scenario: &Scenario, names: &[&String]) -> bool {
    let mut mine = scenario
        .programs
        .iter()
        .filter(|p| names.contains(&&p.name));
    let cores = mine.by_ref().flat_map(|p| p.cores.iter());
    let mut groups = cores.map(|core| machine.group_of(core));
    let first = groups.next();
    groups.all(|group| Some(group) == first)
}

#[cfg(test)]
mod tests {
    use piebald_hw::{Options, ShadowRequest, presets};
    use piebald_units::CoreSet;

    use super::*;
    use crate::colors::color_map;

    #[test]
    fn every_preset_with_colors_can_be_watched_by_them() {
        for name in presets::names() {
            let spec = presets::load(name).expect(name);
            let Ok(map) = color_map(&spec) else { continue };
            let sample_shift = sample_shift(&spec, map.colors(), MIN_PLACES);
            let options = Options {
                shadow: Some(ShadowRequest {
                    cores: CoreSet::first(1),
                    colors: (0..map.bits() as u8).map(|i| map.mask(i)).collect(),
                    sample_shift,
                }),
                ..Options::default()
            };
            let machine = Machine::new(&spec, &options).unwrap_or_else(|e| panic!("{name}: {e}"));
            let curve = machine.miss_curve().expect("it was asked for");
            assert_eq!(curve.points.len() as u32, map.colors(), "{name}");
            let half = MIN_PLACES as u32;
            assert!(curve.sets_seen >= half.min(curve.sets), "{name}");
            assert!(curve.sets_seen < 2 * half, "{name}: {}", curve.sets_seen);
        }
    }

    #[test]
    fn shares_are_runs_of_neighbours_one_after_the_other() {
        let text: Vec<String> = runs(&[3, 1, 12]).iter().map(|s| s.to_string()).collect();
        assert_eq!(text, ["0-2", "3", "4-15"]);
    }
}
