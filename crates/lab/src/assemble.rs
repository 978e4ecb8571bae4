//! From the outcomes of runs to the record of results.

use piebald_experiment::MissCurves;
use piebald_hw::{CurvePoint, Features, Machine, Options};
use piebald_os_model::sched::SchedConfig;
use piebald_report::{
    MachineSummary, Metrics, MissCurve, Occupancy, PolicyResult, ProgramResult, RegionCheck,
    RegionFigures, RegionResult, RegionSet, Sample, SetMap, SetMapSpeed, Study,
};
use piebald_sim::{MapSample, Outcome};
use piebald_units::{CoreSet, PAGE_SIZE, Picos};

use crate::{
    colors, course,
    describe::machine_lines,
    jobs::{Focus, Job, Phase, curve_ways, foci, group_of, members, timed},
    memory::{self, MemoryParts},
    parts::Parts,
    prepare::Prepared,
    scenario::{ProgramEntry, Scenario},
    study::{StudyError, map_job},
    tally::{self, Counted, Fill, Tally, Zone},
};

/// Groups of sets that a set map shows.
pub(crate) const MAP_BUCKETS: usize = 64;

/// Error of the regions' cycles per instruction above which a study says that it is weakened.
const WARN_ERROR: f64 = 0.1;

/// The runs of a study and what became of them.
pub(crate) struct Results<'a> {
    pub(crate) scenario: &'a Scenario,
    pub(crate) inputs: &'a [Prepared],
    pub(crate) jobs: &'a [Job],
    /// In the order of the jobs; none where the study was stopped.
    pub(crate) outcomes: &'a [Option<Outcome>],
    /// Repetitions of each policy that are looked at, from the first on.
    pub(crate) repetitions: &'a [u32],
}

/// Puts the record together from whole repetitions.
///
/// # Errors
/// There is none.
pub(crate) fn assemble(results: &Results<'_>) -> Result<Study, StudyError> {
    let scenario = results.scenario;
    let whole = results.whole_repetitions();
    if whole.is_empty() {
        return Err(StudyError::Nothing);
    }
    let own = |policy: usize| -> Vec<u32> {
        let mut own = whole.clone();
        own.retain(|r| *r < results.repetitions[policy]);
        own
    };
    let programs = |policy: usize| {
        let entries = scenario.programs.iter().enumerate();
        let own = own(policy);
        let result = |(at, entry)| results.program(policy, at, entry, &own);
        entries.map(result).collect()
    };
    let policies = scenario.policies.iter().enumerate();
    let policies: Vec<PolicyResult> = policies
        .map(|(p, policy)| PolicyResult {
            name: policy.name.clone(),
            description: colors::description(scenario, p),
            programs: programs(p),
            course: results.course(p, &own(p)),
        })
        .collect();
    let maps = (0..scenario.policies.len()).filter_map(|p| results.set_map(p));
    let curves = (0..scenario.programs.len()).filter_map(|i| results.curve(i));
    let gathered = |of: fn(&Prepared) -> &Vec<String>| {
        let all = results.inputs.iter().flat_map(of);
        all.cloned().collect::<Vec<String>>()
    };
    let mut warnings = gathered(|i| &i.warnings);
    let cut = (0..scenario.programs.len()).filter_map(|p| results.ended_early(p));
    let cut: Vec<String> = cut.collect();
    warnings.extend(cut.iter().cloned());
    if scenario.repetitions == 1 {
        warnings.push("one repetition: no interval can be given".to_owned());
    }
    let mut notes = gathered(|i| &i.notes);
    notes.extend((scenario.course).map(|course| course::words(course, scenario.course_alone)));
    if scenario.of_threads && scenario.course.is_none() {
        let note = "warm-up and budget are references of each thread: a measured part begins and ends as \
                    soon as one of its threads has made them";
        notes.push(note.to_owned());
    }
    for program in policies.first().iter().flat_map(|p| &p.programs) {
        let (said, weak) = region_error(program);
        notes.extend(said);
        warnings.extend(weak);
    }
    Ok(Study {
        title: scenario.title.clone(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: MachineSummary {
            name: scenario.machine.name.clone(),
            title: scenario.machine.title.clone(),
            lines: machine_lines(&scenario.machine),
        },
        features: scenario
            .features
            .on()
            .into_iter()
            .map(str::to_owned)
            .collect(),
        missing: missing(scenario),
        seed: scenario.seed,
        repetitions: scenario.repetitions,
        budget_refs: scenario.budget_refs,
        warmup_refs: scenario.warmup_refs,
        until_us: scenario.course.map(|c| micros(c.until)),
        slice_us: shares_a_core(scenario).then(|| micros(SchedConfig::new(1).slice)),
        measured_from_us: scenario.course.and_then(|c| c.warmup).map(micros),
        scenario: Some(scenario.document.text.clone()),
        cut,
        warnings,
        notes,
        policies,
        curves: curves.collect(),
        set_maps: maps.collect(),
        ..Study::default()
    })
}

/// May two programs wait for one core?
fn shares_a_core(scenario: &Scenario) -> bool {
    let cores: Vec<_> = scenario.programs.iter().map(|p| &p.cores).collect();
    let meet = |(at, own): (usize, &&CoreSet)| {
        cores[..at]
            .iter()
            .any(|other| own.bits() & other.bits() != 0)
    };
    cores.iter().enumerate().any(meet)
}

fn micros(time: Picos) -> f64 {
    time.0 as f64 / 1e6
}

/// What the regions of a program miss, in words, and the same as a warning if it is much.
fn region_error(program: &ProgramResult) -> (Option<String>, Option<String>) {
    let Some(set) = &program.regions else {
        return (None, None);
    };
    let name = &program.name;
    let percent = |share: f64| format!("{:+.1} %", 100.0 * share);
    let Some(check) = &set.check else {
        let note = format!(
            "{name}: what the regions miss was not measured (check = true does); by block vectors \
             an interval lies {:.3} from the region that stands for it, {:.3} if there were one \
             region only",
            set.distance, set.distance_of_one
        );
        return (Some(note), None);
    };
    let note = format!(
        "{name}: beside a run of all that they stand for, alone, in one repetition, the regions \
         give {:.3} instead of {:.3} cycles per instruction ({}), {:.3} instead of {:.3} {} misses \
         per 1000 instructions",
        check.regions_cpi,
        check.whole_cpi,
        percent(check.cpi_error),
        check.regions_mpki,
        check.whole_mpki,
        check.last_level,
    );
    let weak = (check.cpi_error.abs() > WARN_ERROR).then(|| {
        format!(
            "{name}: the regions miss the program's cycles per instruction by {}: take more or \
             longer ones, or a longer warm-up",
            percent(check.cpi_error)
        )
    });
    (Some(note), weak)
}

impl Results<'_> {
    pub(crate) fn outcome(&self, job: Job) -> Option<&Outcome> {
        let at = self.jobs.iter().position(|j| *j == job)?;
        self.outcomes[at].as_ref()
    }

    /// That a program ended before its measured part was over, if it did in some run.
    fn ended_early(&self, program: usize) -> Option<String> {
        let met = group_of(self.scenario, program).map(Phase::Together);
        // Beside a region of another it is company.
        let by_refs = |job: &Job| {
            let is_own = job.phase == Phase::Alone(program) || Some(job.phase) == met;
            job.focus.is_none() && is_own && timed(self.scenario, job.phase).is_none()
        };
        let runs = self.jobs.iter().zip(self.outcomes);
        let runs = runs.filter(|(job, _)| self.inputs[program].parts.is_none() && by_refs(job));
        let early = runs.filter_map(|(job, outcome)| {
            let members = members(self.scenario, job.phase);
            let place = members.iter().position(|m| *m == program);
            let region = &outcome.as_ref()?.programs.get(place?)?.region;
            region.ended_early.then_some(region.refs)
        });
        let least = early.min()?;
        let input = &self.inputs[program];
        let times = self.scenario.budgets_of(input.program.threads());
        let of_each = self.scenario.of_each();
        let (budget, warmup) = (input.budget.saturating_mul(times), input.warmup);
        let name = &self.scenario.programs[program].name;
        Some(format!(
            "{name}: it ended before its measured part was over: {least} of {budget} references after \
             {warmup}{of_each} of warm-up; what is measured is that part"
        ))
    }

    /// Repetitions of which nothing is missing that is looked at.
    fn whole_repetitions(&self) -> Vec<u32> {
        let is_whole = |repetition: &u32| {
            let runs = self.jobs.iter().zip(self.outcomes);
            let mut mine = runs.filter(|(j, _)| {
                j.repetition == *repetition && *repetition < self.repetitions[j.policy]
            });
            mine.all(|(_, o)| o.is_some())
        };
        (0..self.scenario.repetitions).filter(is_whole).collect()
    }

    /// What a program did in a run.
    fn measured(&self, program: usize, job: Job) -> Option<Tally> {
        let place = members(self.scenario, job.phase)
            .iter()
            .position(|m| *m == program)?;
        let run = self.outcome(job)?;
        let outcome = run.programs.get(place)?;
        let fill = outcome.fill.unwrap_or_default();
        let memory = self
            .scenario
            .memory
            .unwrap_or(self.scenario.machine.memory.size);
        let zone = run.paging.as_ref().and_then(|paging| paging.zone);
        Some(Tally {
            fill: fill.each_ref().map(Fill::from),
            zone: zone.map(|zone| Zone {
                refilled: zone.refilled.into(),
                largest: zone.largest.into(),
                sequences: zone.counters.sequences as f64,
                shared: zone.counters.shared as f64,
                memory: (memory.0 / PAGE_SIZE) as f64,
            }),
            ..Tally::from(&outcome.region)
        })
    }

    /// What a program did in a phase, put together from its regions if it has some.
    fn tally(&self, program: usize, policy: usize, repetition: u32, phase: Phase) -> Option<Tally> {
        let job = |focus: Option<Focus>| Job {
            policy,
            repetition,
            phase,
            focus,
        };
        let Some(parts) = &self.inputs[program].parts else {
            return self.measured(program, job(None));
        };
        let mut regions = Vec::new();
        for (focus, region) in foci(self.inputs, program).zip(&parts.regions.regions) {
            let tally = self.measured(program, job(focus))?;
            regions.push((region.weight, region.instrs, tally));
        }
        Some(Tally::weighted(regions.into_iter(), parts.instrs))
    }

    /// The memory of a program in a phase: of each of its regions with its weight, or as
    /// it is.
    fn memory(
        &self,
        program: usize,
        policy: usize,
        repetition: u32,
        phase: Phase,
    ) -> MemoryParts<'_> {
        let members = members(self.scenario, phase);
        let Some(place) = members.iter().position(|m| *m == program) else {
            return Vec::new();
        };
        let of = |focus: Option<Focus>| {
            let outcome = self.outcome(Job {
                policy,
                repetition,
                phase,
                focus,
            })?;
            Some(&outcome.programs.get(place)?.memory)
        };
        match &self.inputs[program].parts {
            None => of(None).map(|memory| (1.0, memory)).into_iter().collect(),
            Some(parts) => foci(self.inputs, program)
                .zip(&parts.regions.regions)
                .filter_map(|(focus, region)| Some((region.weight, of(focus)?)))
                .collect(),
        }
    }

    fn program(
        &self,
        policy: usize,
        at: usize,
        entry: &ProgramEntry,
        whole: &[u32],
    ) -> ProgramResult {
        let group = group_of(self.scenario, at);
        let together = group.map(Phase::Together);
        let map = colors::map_of_owners(&self.scenario.machine, &self.scenario.policies[policy]);
        let metrics = |phase: Phase| {
            let tallies = whole
                .iter()
                .filter_map(|r| self.tally(at, policy, *r, phase));
            let tallies = tallies.collect::<Vec<Tally>>();
            let memory = whole
                .iter()
                .map(|r| self.memory(at, policy, *r, phase))
                .collect::<Vec<MemoryParts<'_>>>();
            Metrics {
                occupancy: self.occupancy(at, &tallies),
                colors: memory::color_use(&memory, map.as_ref()),
                extra: [
                    memory::extras(&memory),
                    Vec::from_iter(memory::share_extras(
                        &self.scenario.policies[policy],
                        &memory,
                    )),
                    Vec::from_iter(memory::move_extras(&tallies)),
                    memory::io_extras(&tallies),
                    memory::zone_extras(&tallies),
                    memory::read_extras(self.scenario, &tallies),
                ]
                .concat(),
                ..self.metrics(&tallies)
            }
        };
        let alone = metrics(Phase::Alone(at));
        let together = together.map(metrics);
        // Runs that end by time measure other parts than those that end by references.
        let time = |m: &Metrics| match self.scenario.course {
            None => Some(m.time_ps.clone()),
            Some(_) => m.time_ps.paired(&m.refs, |time, refs| time / refs),
        };
        let slowdown = (together.as_ref()).and_then(|t| time(&alone)?.slowdown(&time(t)?));
        let parts = self.inputs[at].parts.as_ref();
        ProgramResult {
            name: entry.name.clone(),
            role: entry.role,
            cores: entry.cores.to_string(),
            colors: colors::of(self.scenario, at, policy),
            input: self.inputs[at].input.clone(),
            beside: group.map(|group| {
                let met = members(self.scenario, Phase::Together(group));
                let others = met.into_iter().filter(|m| *m != at);
                others
                    .map(|m| self.scenario.programs[m].name.clone())
                    .collect()
            }),
            alone,
            together,
            slowdown,
            regions: parts.map(|parts| self.region_set(policy, at, parts, whole)),
        }
    }

    fn region_set(&self, policy: usize, at: usize, parts: &Parts, whole: &[u32]) -> RegionSet {
        let hertz = self.scenario.machine.core.clock.0 as f64;
        let deepest = self.deepest();
        let together = group_of(self.scenario, at).map(Phase::Together);
        let tallies = |phase: Phase, focus: Option<Focus>| -> Vec<Tally> {
            let job = |repetition: &u32| Job {
                policy,
                repetition: *repetition,
                phase,
                focus,
            };
            let jobs = whole.iter().map(job);
            jobs.filter_map(|job| self.measured(at, job)).collect()
        };
        let figures = |tallies: &[Tally]| RegionFigures {
            cpi: tallies.iter().map(|t| t.counted.cpi(hertz)).collect(),
            last_level_mpki: tallies
                .iter()
                .map(|t| t.counted.per_kilo(t.counted.misses[deepest]))
                .collect(),
        };
        let times =
            |tallies: &[Tally]| -> Sample { tallies.iter().map(|t| t.counted.time_ps).collect() };
        let regions = foci(self.inputs, at)
            .zip(&parts.regions.regions)
            .zip(&parts.entries)
            .map(|((focus, region), entry)| {
                let alone = tallies(Phase::Alone(at), focus);
                let beside = together.map(|phase| tallies(phase, focus));
                RegionResult {
                    start: region.start,
                    instructions: region.instrs,
                    refs: entry.budget,
                    warmup_refs: entry.warmup,
                    weight: region.weight,
                    slowdown: beside
                        .as_ref()
                        .and_then(|b| times(&alone).slowdown(&times(b))),
                    alone: figures(&alone),
                    together: beside.map(|b| figures(&b)),
                }
            });
        RegionSet {
            instructions: parts.instrs,
            interval: parts.interval,
            coverage: parts.coverage(),
            distance: parts.regions.error,
            distance_of_one: parts.regions.spread,
            regions: regions.collect(),
            check: (policy == 0).then(|| self.check(at)).flatten(),
        }
    }

    /// The regions beside all that they stand for, alone, in the first repetition.
    fn check(&self, at: usize) -> Option<RegionCheck> {
        let hertz = self.scenario.machine.core.clock.0 as f64;
        let deepest = self.deepest();
        let whole = self.measured(
            at,
            Job {
                policy: 0,
                repetition: 0,
                phase: Phase::Whole(at),
                focus: None,
            },
        )?;
        let whole = whole.counted;
        let regions = self.tally(at, 0, 0, Phase::Alone(at))?.counted;
        let mpki = |c: &Counted| c.per_kilo(c.misses[deepest]);
        let relative = |found: f64, whole: f64| (found - whole) / whole;
        Some(RegionCheck {
            last_level: self.levels().last().cloned().unwrap_or_default(),
            whole_cpi: whole.cpi(hertz),
            regions_cpi: regions.cpi(hertz),
            cpi_error: relative(regions.cpi(hertz), whole.cpi(hertz)),
            whole_mpki: mpki(&whole),
            regions_mpki: mpki(&regions),
            mpki_error: (mpki(&whole) > 0.0).then(|| relative(mpki(&regions), mpki(&whole))),
            whole_refs: whole.refs as u64,
        })
    }

    fn metrics(&self, tallies: &[Tally]) -> Metrics {
        let spec = &self.scenario.machine;
        let of = |f: &dyn Fn(&Tally) -> f64| -> Sample { tallies.iter().map(f).collect() };
        let counted: Vec<Counted> = tallies.iter().map(|t| t.counted).collect();
        Metrics {
            tlb_mpki: (self.scenario.features.tlb && spec.tlb.is_some())
                .then(|| of(&|t| t.counted.per_kilo(t.walks))),
            pages: of(&|t| t.pages),
            huge_pages: of(&|t| t.huge_pages),
            faults: of(&|t| t.faults),
            ..Counted::metrics(&counted, spec)
        }
    }

    /// How full the sets of a program's caches were, where that was looked at.
    fn occupancy(&self, program: usize, tallies: &[Tally]) -> Vec<Occupancy> {
        let Ok(machine) = Machine::new(&self.scenario.machine, &Options::default()) else {
            return Vec::new();
        };
        let looked = |t: &Tally| t.fill.iter().any(|f| f.room > 0.0);
        if !tallies.iter().any(looked) {
            return Vec::new();
        }
        let cores = |p: usize| self.scenario.programs[p].cores;
        let met = group_of(self.scenario, program).map(Phase::Together);
        let met = met.map_or_else(Vec::new, |phase| members(self.scenario, phase));
        let others = met.into_iter().filter(|p| *p != program);
        let company = others.fold(CoreSet::EMPTY, |all, p| all.union(cores(p)));
        let level = |(k, level): (usize, &String)| {
            let of =
                |f: fn(&Fill) -> f64| -> Sample { tallies.iter().map(|t| f(&t.fill[k])).collect() };
            Occupancy {
                level: level.clone(),
                bytes: machine.level_bytes(k),
                shared: machine.meet(k, cores(program), company),
                room: of(|f| f.room),
                start: of(|f| f.start),
                end: of(|f| f.end),
                own_start: of(|f| f.own_start),
                own_end: of(|f| f.own_end),
            }
        };
        machine
            .level_names()
            .iter()
            .enumerate()
            .map(level)
            .collect()
    }

    fn curve(&self, program: usize) -> Option<MissCurve> {
        let points = match self.scenario.miss_curve {
            MissCurves::Timed(0) => return None,
            MissCurves::Timed(_) => self.timed_curve(program)?,
            MissCurves::Counted => self.counted_curve(program)?,
        };
        Some(MissCurve {
            program: self.scenario.programs[program].name.clone(),
            cache: self.scenario.machine.last_level().name.clone(),
            points,
        })
    }

    /// From runs with some of the ways of the last level.
    fn timed_curve(&self, program: usize) -> Option<Vec<(u64, f64)>> {
        let cache = self.scenario.machine.last_level();
        let deepest = self.deepest();
        let misses = |phase: Phase| {
            let tally = self.tally(program, 0, 0, phase)?;
            Some(tally.counted.per_kilo(tally.counted.misses[deepest]))
        };
        let mut points = Vec::new();
        for ways in curve_ways(self.scenario) {
            let size = cache.size.0 / u64::from(cache.ways) * u64::from(ways);
            points.push((size, misses(Phase::Curve(program, ways))?));
        }
        points.push((cache.size.0, misses(Phase::Alone(program))?));
        Some(points)
    }

    /// From what the run alone under the first policy counted for parts of the last level.
    fn counted_curve(&self, program: usize) -> Option<Vec<(u64, f64)>> {
        let job = Job {
            policy: 0,
            repetition: 0,
            phase: Phase::Alone(program),
            focus: None,
        };
        let tally = self.measured(program, job)?;
        let curve = self.outcome(job)?.programs.first()?.miss_curve.as_ref()?;
        let size = self.scenario.machine.last_level().size.0;
        let parts = curve.points.len() as u64;
        let point = |point: &CurvePoint| {
            let misses = tally.counted.per_kilo(point.misses as f64);
            (size * u64::from(point.colors) / parts, misses)
        };
        Some(curve.points.iter().map(point).collect())
    }

    /// Names of the data path's levels.
    fn levels(&self) -> Vec<String> {
        tally::level_names(&self.scenario.machine)
    }

    /// Place of the last level among them.
    fn deepest(&self) -> usize {
        self.levels().len().saturating_sub(1)
    }

    fn set_map(&self, policy: usize) -> Option<SetMap> {
        let job = map_job(self.scenario, self.inputs, policy)?;
        let outcome = self.outcome(job)?;
        if outcome.map.is_empty() {
            return None;
        }
        let spec = &self.scenario.machine;
        let cache = spec.last_level();
        let sets = cache.size.0 / 64 / u64::from(cache.ways);
        let capacity = (sets * u64::from(cache.ways)) as f64 / MAP_BUCKETS as f64;
        let mut owners = vec!["empty".to_owned(), "kernel".to_owned()];
        let programs = members(self.scenario, job.phase);
        owners.extend(
            programs
                .iter()
                .map(|p| self.scenario.programs[*p].name.clone()),
        );
        let mut shares = Vec::new();
        for sample in &outcome.map {
            for lines in &sample.lines {
                let held: u32 = lines.iter().sum();
                let empty = (capacity - f64::from(held)).max(0.0);
                let share = |lines: f64| (255.0 * lines / capacity).round() as u8;
                shares.push(share(empty));
                shares.extend(lines.iter().map(|n| share(f64::from(*n))));
            }
        }
        Some(SetMap {
            policy: self.scenario.policies[policy].name.clone(),
            cache: cache.name.clone(),
            place: job.focus.map(|f| {
                let name = &self.scenario.programs[f.program].name;
                format!("region {} of {name}", f.region + 1)
            }),
            nr_sets: sets as u32,
            nr_groups: MAP_BUCKETS as u32,
            owners,
            times_ps: outcome.map.iter().map(|s| s.time.0).collect(),
            shares,
            speeds: (programs.iter().enumerate())
                .map(|(place, program)| SetMapSpeed {
                    program: self.scenario.programs[*program].name.clone(),
                    instr_per_ns: speeds(&outcome.map, place),
                })
                .collect(),
        })
    }
}

/// Instructions per nanosecond of a program from each sample of a map to the next.
fn speeds(map: &[MapSample], program: usize) -> Vec<f64> {
    let speed = |pair: &[MapSample]| {
        let [before, after] = [&pair[0], &pair[1]].map(|s| s.instructions.get(program));
        let made = after?.checked_sub(*before?)?;
        let ps = pair[1]
            .time
            .0
            .checked_sub(pair[0].time.0)
            .filter(|ps| *ps > 0)?;
        Some(1e3 * made as f64 / ps as f64)
    };
    let speeds = map.windows(2).map(|pair| speed(pair).unwrap_or(f64::NAN));
    speeds.collect()
}

/// What the model of this version leaves out.
fn missing(scenario: &Scenario) -> Vec<String> {
    let mut missing = Vec::new();
    if scenario.files.is_none() {
        let disks = "disks: a file page that is not in memory costs a fault, no disk time";
        missing.extend([disks.to_owned(), memory::missing(scenario)]);
    }
    let off = Features::NAMES
        .into_iter()
        .filter(|n| !scenario.features.on().contains(n));
    missing.extend(off.map(|n| format!("{n}: switched off in this study")));
    missing
}
