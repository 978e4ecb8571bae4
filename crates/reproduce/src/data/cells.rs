//! What the runs of a row counted.

use std::{cell::Cell, collections::HashMap};

use piebald_lab::{MOVES, extra_names, host::Hosted};
use piebald_report::{
    CourseCounts, CourseResult, METRICS, Metric, Metrics, ProgramResult, Sample, Study,
    SysMonResult,
};

use super::{
    clocks::{self, Clocks},
    curves::{self, MPKI_WITH},
    eval::{Cells, EXPERIMENT, Fault, INTERVAL, Value, Valued},
    grid::{PROGRAM, Point},
    replays::{self, Came, Planned, Replayed},
};
use crate::experiment::{NoStudy, miss_rate};

/// Quantities of which each names one: a cache level, or what only some runs have.
type Named = (&'static str, fn(&Metrics, &str) -> Option<Sample>);
const NAMED: [Named; 4] = [
    ("mpki", |m, level| {
        m.mpki
            .iter()
            .find(|l| l.level == level)
            .map(|l| l.mpki.clone())
    }),
    ("miss_rate", |m, level| {
        miss_rate(m.mpki.iter().find(|l| l.level == level)?)
    }),
    ("extra", |m, name| {
        let found = m.extra.iter().find(|e| e.name == name);
        found.map(|e| e.value.clone())
    }),
    (COLORS_IN, |m, part| {
        let parts = &m.colors.as_ref()?.in_parts;
        parts.get(part.parse::<usize>().ok()?).cloned()
    }),
];

/// Colors in a part of the last level, which is named by its number.
const COLORS_IN: &str = "colors_in";
/// A number of what SysMon sees of a program alone, by its name.
const SYSMON: &str = "sysmon";
/// The class that SysMon tells, as files spell it, or "none".
const SYSMON_CLASS: &str = "sysmon_class";

/// What became of an experiment at a point.
pub(super) type Ran = Result<Came, NoStudy>;

/// An experiment of a row.
pub(super) struct Its<'r, T> {
    experiment: &'r str,
    /// Its axes.
    axes: Vec<&'r str>,
    /// The place of each point, by the values of the axes.
    places: HashMap<Vec<String>, usize>,
    /// In the order of the points.
    all: &'r [T],
}

/// The runs of a row's experiments.
pub(super) struct Runs<'r>(pub(super) Vec<Its<'r, Ran>>);

/// What would be counted if the experiments were run: each quantity is a sample of three.
pub(super) struct Dry<'r> {
    /// None where recordings are missing.
    pub(super) of: Vec<Its<'r, Option<Planned>>>,
    pub(super) levels: &'r [String],
    /// Questions so far.
    pub(super) asked: Cell<u64>,
}

impl<'r, T> Its<'r, T> {
    /// What there is of its points.
    pub(super) fn new(experiment: &'r str, points: &'r [Point], all: &'r [T]) -> Self {
        let axes = points.first().map_or(&[][..], |point| &point.at);
        let named = |point: &Point| {
            let names = point.at.iter().map(|(_, value)| value.text().ok());
            names.collect::<Option<Vec<String>>>()
        };
        let places = (0..).zip(points);
        Self {
            experiment,
            axes: axes.iter().map(|(axis, _)| axis.as_str()).collect(),
            places: places
                .filter_map(|(at, point)| Some((named(point)?, at)))
                .collect(),
            all,
        }
    }

    pub(super) const fn all(&self) -> &'r [T] {
        self.all
    }

    /// The experiment that is chosen, or the first one, and its point.
    fn chosen(of: &[Self], chosen: &dyn Fn(&str) -> Option<String>) -> Valued<&'r T> {
        let its = match chosen(EXPERIMENT) {
            None => of.first(),
            Some(name) => of.iter().find(|its| its.experiment == name),
        };
        let its = its.ok_or_else(|| {
            let name = chosen(EXPERIMENT).unwrap_or_default();
            let names: Vec<&str> = of.iter().map(|its| its.experiment).collect();
            let names = names.join(", ");
            Fault::Wrong(format!("{EXPERIMENT} = \"{name}\": allowed: {names}"))
        })?;
        let at = its.point(chosen)?;
        (its.all.get(at)).ok_or_else(|| Fault::Missing(format!("{} was not run", its.experiment)))
    }
}

impl<T> Its<'_, T> {
    /// The point that is chosen.
    fn point(&self, chosen: &dyn Fn(&str) -> Option<String>) -> Valued<usize> {
        if self.places.is_empty() {
            let why = format!("{} was not run", self.experiment);
            return Err(Fault::Missing(why));
        }
        let names: Option<Vec<String>> = self.axes.iter().map(|axis| chosen(axis)).collect();
        let place = names.and_then(|names| self.places.get(&names));
        place.copied().ok_or_else(|| {
            Fault::Wrong(format!(
                "experiment {}: choose a value for {}",
                self.experiment,
                self.axes.join(", ")
            ))
        })
    }
}

fn wrong<T>(says: String) -> Option<Valued<T>> {
    Some(Err(Fault::Wrong(says)))
}

/// The name that is chosen, or the only one.
pub(super) fn only_or<'n>(
    what: &str,
    chosen: Option<String>,
    mut names: impl Iterator<Item = &'n str> + Clone,
) -> Valued<String> {
    let given = names.clone();
    let all = || given.clone().collect::<Vec<_>>().join(", ");
    match chosen {
        Some(name) if names.any(|n| n == name) => Ok(name),
        Some(name) => Err(Fault::Wrong(format!(
            "{what} = \"{name}\": allowed: {}",
            all()
        ))),
        None => match (names.next(), names.next()) {
            (Some(name), None) => Ok(name.to_owned()),
            _ => Err(Fault::Wrong(format!("choose a {what}: allowed: {}", all()))),
        },
    }
}

/// The quantity of studies that has this name and no further one.
fn plain(what: &str) -> Option<&'static Metric> {
    METRICS.iter().find(|metric| metric.name == what)
}

/// Is a quantity asked for by a name that there is?
fn is_known(what: &str, of: Option<&str>) -> bool {
    match of {
        None => {
            let of_study = plain(what).is_some() || what == SYSMON_CLASS;
            of_study || replays::PLAIN.contains(&what) || replays::COUNTED.contains(&what)
        }
        Some(_) => {
            let of_study = NAMED.iter().any(|(name, _)| *name == what);
            let of_study = of_study || [SYSMON, MPKI_WITH].contains(&what);
            of_study || replays::NAMED.contains(&what)
        }
    }
}

/// Of what is run alone or together, which is asked for.
fn is_together(run: Option<&str>, met: bool, alone: bool) -> Valued<bool> {
    match run {
        Some("alone") if alone => Ok(false),
        Some("together") if met => Ok(true),
        None if alone != met => Ok(met),
        None => Err(Fault::Wrong(
            "choose a run: allowed: \"alone\", \"together\"".to_owned(),
        )),
        Some(run) => Err(Fault::Wrong(format!(
            "run = \"{run}\": the program is not run so"
        ))),
    }
}

impl Cells for Runs<'_> {
    fn counted(
        &self,
        what: &str,
        of: Option<&str>,
        chosen: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Valued<Value>> {
        let run = || Its::chosen(&self.0, chosen);
        match (what, of) {
            ("ran", None) => Some(run().and_then(|ran| match ran {
                Ok(_) => Ok(Value::Is(true)),
                Err(NoStudy::Failed(_)) => Ok(Value::Is(false)),
                Err(NoStudy::NotRun(why)) => Err(Fault::Missing(why.clone())),
            })),
            ("fails_with", Some(text)) => Some(run().and_then(|ran| match ran {
                Ok(_) => Ok(Value::Is(false)),
                Err(NoStudy::Failed(why)) => Ok(Value::Is(why.contains(text))),
                Err(NoStudy::NotRun(why)) => Err(Fault::Missing(why.clone())),
            })),
            ("counts", Some(name)) => Some(run().and_then(|ran| {
                let came = ran.as_ref().map_err(missing)?;
                match counted_in(came, "extra", Some(name), chosen) {
                    Ok(Value::Sample(sample)) => Ok(Value::Is(sample.mean > 0.0)),
                    // It is listed where it happened.
                    Err(Fault::Missing(_)) => Ok(Value::Is(false)),
                    other => other,
                }
            })),
            _ if is_known(what, of) => Some(run().and_then(|ran| {
                let came = ran.as_ref().map_err(missing)?;
                counted_in(came, what, of, chosen)
            })),
            _ => None,
        }
    }
}

/// Why nothing was counted.
fn missing(why: &NoStudy) -> Fault {
    Fault::Missing(why.to_string())
}

fn counted_in(
    came: &Came,
    what: &str,
    of: Option<&str>,
    chosen: &dyn Fn(&str) -> Option<String>,
) -> Valued<Value> {
    match came {
        Came::Study(study) if [SYSMON, SYSMON_CLASS].contains(&what) => {
            seen_by_sysmon(study, of, chosen)
        }
        Came::Study(study) => match of.filter(|_| what == MPKI_WITH) {
            Some(share) => curves::counted(study, share, chosen),
            None => counted_in_study(study, what, of, chosen),
        },
        Came::Replays { policies, replays } => {
            let at = policy_at(policies, chosen)?;
            replays::counted(replays, at, what, of)
        }
        Came::Counts(counts) => replays::of_trace(counts, what),
    }
}

/// The place of the policy that is chosen, or of the only one.
fn policy_at(policies: &[String], chosen: &dyn Fn(&str) -> Option<String>) -> Valued<usize> {
    let names = policies.iter().map(String::as_str);
    let name = only_or("policy", chosen("policy"), names)?;
    let at = policies.iter().position(|policy| *policy == name);
    at.ok_or_else(|| Fault::Missing(format!("policy {name} was not run")))
}

/// A number of what SysMon sees of a program, or the class that it tells.
fn seen_by_sysmon(
    study: &Study,
    of: Option<&str>,
    chosen: &dyn Fn(&str) -> Option<String>,
) -> Valued<Value> {
    let names = study.sysmon.iter().map(|seen| seen.program.as_str());
    let name = only_or(PROGRAM, chosen(PROGRAM), names)?;
    let seen = study.sysmon.iter().find(|seen| seen.program == name);
    let missing = || Fault::Missing(format!("{name}: SysMon did not watch it"));
    let seen = seen.ok_or_else(missing)?;
    match of {
        None => {
            let class = seen.class.as_deref().unwrap_or("none");
            Ok(Value::Text(class.to_ascii_lowercase()))
        }
        Some(what) => {
            let none = || Fault::Missing(format!("{name}: it had no whole window"));
            seen.figure(what).map(Value::Number).ok_or_else(none)
        }
    }
}

fn counted_in_study(
    study: &Study,
    what: &str,
    of: Option<&str>,
    chosen: &dyn Fn(&str) -> Option<String>,
) -> Valued<Value> {
    let names = study.policies.iter().map(|p| p.name.as_str());
    let name = only_or("policy", chosen("policy"), names)?;
    let found = study.policies.iter().find(|p| p.name == name);
    let programs = found.map_or(&[][..], |p| &p.programs);
    let names = programs.iter().map(|p| p.name.as_str());
    let name = only_or(PROGRAM, chosen(PROGRAM), names)?;
    let missing = || Fault::Missing("the study lacks results".to_owned());
    let program: &ProgramResult = programs
        .iter()
        .find(|p| p.name == name)
        .ok_or_else(missing)?;
    let alone = !program.alone.time_ps.values.is_empty();
    let run = chosen("run");
    let metrics = if is_together(run.as_deref(), program.together.is_some(), alone)? {
        program.together.as_ref().ok_or_else(missing)?
    } else {
        &program.alone
    };
    let course = found.and_then(|policy| policy.course.as_ref());
    if let Some(interval) = chosen(INTERVAL) {
        return counted_in_interval(course, &name, &interval, (what, of));
    }
    let of_course = || {
        let mine = course.and_then(|course| counts_of(course, &name));
        let extra = mine?.extra.iter().find(|e| Some(e.name.as_str()) == of)?;
        Some(extra.value.clone())
    };
    let sample = match of {
        None => plain(what).and_then(|metric| (metric.get)(metrics).cloned()),
        Some(of) => NAMED
            .iter()
            .find(|(n, _)| *n == what)
            .and_then(|(_, get)| get(metrics, of))
            .or_else(|| of_course().filter(|_| what == "extra")),
    };
    let none = || {
        Fault::Missing(format!(
            "{name}: no {what} {} was counted",
            of.unwrap_or("")
        ))
    };
    sample.map(Value::Sample).ok_or_else(none)
}

/// What a program did in a run that was looked at.
fn counts_of<'c>(course: &'c CourseResult, program: &str) -> Option<&'c CourseCounts> {
    course.counts.iter().find(|mine| mine.program == program)
}

/// What is counted in an interval of a course.
const OF_INTERVALS: [&str; 4] = [
    "references",
    "instructions",
    "time_ps",
    "extra(\"time in faults that move pages\")",
];

/// Whether something is counted in an interval.
fn check_in_interval(what: &str, of: Option<&str>) -> Valued<()> {
    let is_counted = match of {
        None => OF_INTERVALS.contains(&what),
        Some(of) => what == "extra" && of == MOVES,
    };
    if is_counted {
        return Ok(());
    }
    let of = of.map_or_else(String::new, |of| format!("(\"{of}\")"));
    let allowed = OF_INTERVALS.join(", ");
    Err(Fault::Wrong(format!(
        "{what}{of} of an interval: allowed: {allowed}"
    )))
}

fn counted_in_interval(
    course: Option<&CourseResult>,
    program: &str,
    interval: &str,
    (what, of): (&str, Option<&str>),
) -> Valued<Value> {
    check_in_interval(what, of)?;
    let missing = || Fault::Missing(format!("{program}: nothing was counted by time"));
    let course = course.ok_or_else(missing)?;
    let mine = counts_of(course, program).ok_or_else(missing)?;
    let at = interval.parse::<usize>().ok();
    let of_it = at.and_then(|at| Some((mine.intervals.get(at)?, at)));
    let (counted, at) = of_it.ok_or_else(|| no_interval(interval, mine.intervals.len()))?;
    let end = |at: usize| course.times_ps.get(at).map_or(f64::NAN, |ps| *ps as f64);
    let begin = at.checked_sub(1).map_or(0.0, end);
    Ok(Value::Sample(match what {
        "references" => counted.refs.clone(),
        "instructions" => counted.instructions.clone(),
        "time_ps" => counted.refs.map(|_| end(at) - begin),
        _ => counted.moving_us.clone(),
    }))
}

/// That a course has no such interval.
fn no_interval(interval: &str, all: usize) -> Fault {
    let last = all.saturating_sub(1);
    Fault::Wrong(format!("{INTERVAL} = {interval}: allowed: 0 to {last}"))
}

impl Cells for Dry<'_> {
    fn counted(
        &self,
        what: &str,
        of: Option<&str>,
        chosen: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Valued<Value>> {
        let is_of_run = matches!((what, of), ("ran", None) | ("fails_with", Some(_)));
        if !is_of_run && what != "counts" && !is_known(what, of) {
            return None;
        }
        self.asked.set(self.asked.get() + 1);
        let at = Its::chosen(&self.of, chosen);
        if is_of_run {
            return Some(at.map(|_| Value::Is(true)));
        }
        let replayed = at.as_ref().ok().and_then(|at| at.as_ref()?.replayed());
        if let Some(replayed) = replayed {
            return Some(check_replayed(replayed, (what, of), chosen));
        }
        if let (Some(level), "mpki" | "miss_rate") = (of, what)
            && !self.levels.iter().any(|l| l == level)
        {
            let levels = self.levels.join(", ");
            return wrong(format!("{what}(\"{level}\"): allowed: {levels}"));
        }
        if let (Some(name), "extra" | "counts") = (of, what)
            && !extra_names().any(|known| known == name)
        {
            let names: Vec<&str> = extra_names().collect();
            return wrong(format!("{what}(\"{name}\"): allowed: {}", names.join(", ")));
        }
        if let (Some(name), SYSMON) = (of, what)
            && !SysMonResult::names().any(|known| known == name)
        {
            let names: Vec<&str> = SysMonResult::names().collect();
            return wrong(format!("{what}(\"{name}\"): allowed: {}", names.join(", ")));
        }
        let made = made(what);
        let study =
            |at: &Option<Planned>| check(at.as_ref().and_then(Planned::study), (what, of), chosen);
        Some(at.and_then(study).map(|()| made))
    }

    fn clock(&self, what: &str, chosen: &dyn Fn(&str) -> Option<String>) -> Clocks {
        match Its::chosen(&self.of, chosen) {
            Ok(Some(Planned::Study(study))) => Clocks::of(what, study.clock()),
            Ok(Some(Planned::Replay(_))) => Clocks::of(what, clocks::OF_REPLAYS),
            Ok(None) | Err(_) => Clocks::default(),
        }
    }

    fn asked(&self) -> Option<u64> {
        Some(self.asked.get())
    }
}

/// What would be counted of a replay, or of requests that are only counted.
fn check_replayed(
    replayed: &Replayed,
    (what, of): (&str, Option<&str>),
    chosen: &dyn Fn(&str) -> Option<String>,
) -> Valued<Value> {
    if !replayed.is_run {
        return replays::of_trace(&piebald_lab::replay::Counts::default(), what)
            .map(|_| Value::Number(1.5));
    }
    let is_counted = match of {
        None => replays::PLAIN.contains(&what),
        Some(_) => replays::NAMED.contains(&what) || what == "counts",
    };
    if !is_counted {
        let allowed = [&replays::PLAIN[..], &replays::NAMED].concat().join(", ");
        return Err(Fault::Wrong(format!(
            "{what} of a replay: allowed: {allowed}"
        )));
    }
    replays::check_name(what, of)?;
    policy_at(&replayed.policies, chosen)?;
    Ok(made(what))
}

/// What a formula is checked with.
fn made(what: &str) -> Value {
    match what {
        "counts" => Value::Is(true),
        SYSMON | MPKI_WITH => Value::Number(1.5),
        SYSMON_CLASS => Value::Text("ccf".to_owned()),
        _ => Value::Sample(Sample::new(vec![1.0, 1.5, 1.25])),
    }
}

/// Whether what is chosen is counted in a study, if its recordings are there.
fn check(
    study: Option<&dyn Hosted>,
    (what, of): (&str, Option<&str>),
    chosen: &dyn Fn(&str) -> Option<String>,
) -> Valued<()> {
    let Some(study) = study else {
        return Ok(());
    };
    if let Some(interval) = chosen(INTERVAL) {
        check_in_interval(what, of)?;
        let course = study.course().ok_or_else(|| {
            Fault::Wrong(format!(
                "{INTERVAL} = {interval}: allowed with a table [course]"
            ))
        })?;
        let all = course.intervals;
        let at = interval.parse::<usize>().ok();
        if at.is_none_or(|at| at >= all) {
            return Err(no_interval(&interval, all));
        }
    }
    let mut of_replays = (replays::PLAIN.iter())
        .chain(&replays::NAMED)
        .chain(&replays::COUNTED);
    let of_studies = METRICS.iter().map(|metric| metric.name);
    let of_studies = of_studies.chain(NAMED.map(|(name, _)| name));
    let of_studies = of_studies.chain([SYSMON, SYSMON_CLASS, MPKI_WITH]);
    if of_replays.any(|name| *name == what) && !of_studies.clone().any(|name| name == what) {
        let allowed = of_studies.collect::<Vec<_>>().join(", ");
        return Err(Fault::Wrong(format!(
            "{what} of a study: allowed: {allowed}"
        )));
    }
    if [SYSMON, SYSMON_CLASS].contains(&what) {
        if !study.watches() {
            return Err(Fault::Wrong(format!(
                "{what}: nothing is watched: allowed: with a table [sysmon]"
            )));
        }
        let names = study.programs();
        return only_or(PROGRAM, chosen(PROGRAM), names.iter().map(|name| &**name)).map(|_| ());
    }
    if let Some(share) = of.filter(|_| what == MPKI_WITH) {
        return curves::check(study, share, chosen);
    }
    let names = study.policies();
    let policy = only_or("policy", chosen("policy"), names.into_iter())?;
    if let (COLORS_IN, Some(part)) = (what, of) {
        check_part(study, &policy, part)?;
    }
    let names = study.programs();
    let name = only_or(PROGRAM, chosen(PROGRAM), names.iter().map(|name| &**name))?;
    let place = names.iter().position(|program| *program == name);
    let Some(place) = place else { return Ok(()) };
    let (alone, met) = study.runs_of(place);
    is_together(chosen("run").as_deref(), met, alone).map(|_| ())
}

/// Whether a policy has a part of the last level with this number.
fn check_part(study: &dyn Hosted, policy: &str, part: &str) -> Valued<()> {
    let parts = study.cache_parts(policy);
    let wrong = |allowed: String| {
        Err(Fault::Wrong(format!(
            "{COLORS_IN}({part}) under policy {policy}: allowed: {allowed}"
        )))
    };
    match parts {
        None => wrong("policies whose colors select parts of the last level".to_owned()),
        Some(parts) if part.parse().is_ok_and(|part: u32| part < parts) => Ok(()),
        Some(parts) => wrong(format!("parts of the last level, 0 to {}", parts - 1)),
    }
}
