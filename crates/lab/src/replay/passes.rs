//! The passes over a trace.

use std::time::Instant;

use piebald_experiment::DiskStart;
use piebald_hw::disk::{Disk, DiskSpec};
use piebald_hw::nearest::did_you_mean;
use piebald_os_model::replace::PolicySpec;
use piebald_os_model::replace::registry::{self, Setup};
use piebald_report::{REPLAY_SCHEMA, Replay, ReplayPolicy};
use piebald_sim::replay::{
    Batch, CallStream, DriverError, InputSetup, InstanceError, Pace, Survey, cache_instance,
    disk_instance, next_uses,
};
use piebald_trace::block::{Format, Layout, Stage, TargetKind};
use piebald_units::block::SECTORS_SHIFT;
use rayon::prelude::*;

use super::curves::Curves;
use super::disk::{NO_READAHEAD, Parts, device, readahead, side};
use super::draws::{self, Random};
use super::load::Start;
use super::plan::{Job, Known, MIN, Plan, described, stopped};
use super::{ReplayError, ReplayRequest, fill, sized, sizes, timed};
use crate::{near, study::Hooks};

/// Replays as asked.
pub(super) fn run(request: &ReplayRequest, hooks: Hooks<'_>) -> Result<Replay, ReplayError> {
    let began = Instant::now();
    let spec = device(&request.device)?;
    readahead(&request.readahead)?;
    check_pace(request, spec.as_ref())?;
    let mut random = Random::new(request.seed);
    let start = start(request, spec.as_ref(), &mut random)?;
    let mut setup = InputSetup {
        number_ids: spec.is_some(),
        excerpt: draws::drawn(request, &mut random, hooks)?,
        ..request.input.clone()
    };
    if request.pace == Pace::Timed {
        setup = timed::sorted(setup, hooks)?;
    }
    let sizes = sized::spread(&setup, hooks)?;
    let objects = sized::take_their_bytes(request, &sizes);
    let (plan, footprint) = if objects {
        let (plan, objects) = sized::plan(request, &setup, &sizes, hooks)?;
        (plan, Some(objects))
    } else {
        (plan(request, &setup, (spec.as_ref(), start), hooks)?, None)
    };
    let Plan {
        policies,
        about,
        capacities,
        mut jobs,
        mut curves,
        future,
        known,
        layout,
        reads_ahead,
        notes,
    } = plan;
    let mut pass = Pass {
        planned: known.as_ref().map_or(0, |k| k.survey.references),
        survey: known.is_none().then(Survey::default),
        hooks,
    };
    let (stream, complete) = pass.run(&setup, &mut jobs, curves.as_mut(), future)?;
    for job in &mut jobs {
        let failed = job.error.take().or_else(|| job.instance.finish().err());
        if let Some(error) = failed {
            return Err(driver_error(&policies[job.policy], job.capacity, error));
        }
    }
    // What was surveyed first is the whole trace, however far the runs came.
    let of_all = known.as_ref().map(|k| k.stream.requests());
    let survey = pass.survey.or(known.map(|k| k.survey)).unwrap_or_default();
    if survey.references == 0 && !complete {
        return Err(ReplayError::Stopped);
    }
    if complete {
        check_references(request, &stream, &survey)?;
        check_warmup(request.warmup, survey.references)?;
        let counted = jobs
            .iter()
            .map(|job| job.instance.outcome().counts.references);
        if counted.min() == Some(0) {
            return Err(ReplayError::Choice {
                what: "warmup",
                value: request.warmup.to_string(),
                problem: "a device counts whole requests, and the one that ends the warm-up is the last; \
                          allowed: fewer, so that some are counted"
                    .into(),
            });
        }
    }
    let mut replay = Replay {
        schema: REPLAY_SCHEMA,
        title: super::title(&request.input.paths),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: None,
        complete,
        traces: Vec::new(),
        conditions: fill::conditions(request, spec.as_ref(), layout, reads_ahead),
        runs: jobs
            .iter()
            .map(|job| fill::run(request, &policies[job.policy], job))
            .collect(),
        policies: about,
        sizes: capacities,
        curves: Vec::new(),
        curves_refused: Vec::new(),
        findings: Vec::new(),
        host_seconds: 0.0,
    };
    if let Some(curves) = curves {
        (replay.curves, replay.curves_refused) = curves.finish();
    }
    let requests = of_all.clone().unwrap_or_else(|| stream.requests());
    fill::traces(&mut replay, &stream, &requests, &survey);
    if !complete && of_all.is_some() {
        let counted = replay.runs.iter().map(|run| run.references).max();
        replay.conditions.notes.push(format!(
            "the numbers of the traces are those of all that is in them; the runs counted {} of {} \
             references",
            counted.unwrap_or(0),
            survey.references
        ));
    }
    fill::notes(&mut replay, &stream, &survey, &jobs);
    replay.conditions.notes.extend(notes);
    replay.conditions.notes.extend(request.part.note());
    timed::note(&mut replay, request, &stream);
    sized::note(&mut replay, &sizes, footprint.as_ref());
    replay.host_seconds = began.elapsed().as_secs_f64();
    Ok(replay)
}

/// Where the disk stands at the beginning, as it is drawn.
fn start(
    request: &ReplayRequest,
    spec: Option<&DiskSpec>,
    random: &mut Random,
) -> Result<Start, ReplayError> {
    let Some(spec) = spec else {
        return Ok(Start::default());
    };
    let bad = |what: &'static str, value: String, problem: String| ReplayError::Choice {
        what,
        value,
        problem,
    };
    let disk = Disk::new(spec);
    let disk = disk.map_err(|e| bad("device", spec.name.clone(), e.to_string()))?;
    let sectors = match request.layout_file() {
        Some(path) if request.start == DiskStart::Drawn => {
            let layout = Layout::open(path);
            let layout =
                layout.map_err(|e| bad("layout", path.display().to_string(), e.to_string()))?;
            layout.end() << SECTORS_SHIFT
        }
        _ => 0,
    };
    Ok(draws::start(request.start, random, &disk, sectors))
}

/// Policies over pages, with or without a disk below.
fn plan(
    request: &ReplayRequest,
    setup: &InputSetup,
    (spec, start): (Option<&DiskSpec>, Start),
    hooks: Hooks<'_>,
) -> Result<Plan, ReplayError> {
    check(request, spec)?;
    let first = CallStream::open(setup)?;
    let kind = kind(&first);
    let whole_first = spec.is_some()
        || request.curves.is_some()
        || request.sizes.iter().any(|s| sizes::needs_footprint(*s));
    let known = match whole_first {
        true => Some(survey(first, hooks)?),
        false => None,
    };
    if let Some(known) = &known {
        check_references(request, &known.stream, &known.survey)?;
        check_warmup(request.warmup, known.survey.references)?;
    }
    let footprint = known.as_ref().map_or(0, |k| k.survey.pages.count());
    let page_bytes = setup.page.bytes().0;
    let pages = sizes::in_pages(&request.sizes, page_bytes, footprint)?;
    sizes::check_tables(
        &pages,
        request.policies.iter().map(PolicySpec::name),
        spec.is_some(),
        (footprint, page_bytes),
        request.available,
    )?;
    // Places that blocks were given by their first use follow one another as the trace's own requests do:
    // readahead would fetch what the trace asks for next.
    let reads_ahead = kind != TargetKind::Id;
    let mut layout = fill::plain_layout(kind).to_owned();
    let disk = match (spec, &known) {
        (Some(spec), Some(known)) => {
            let (side, sentence) = side(&Parts {
                spec,
                readahead: &request.readahead,
                scheduler: &request.scheduler,
                layout: &request.layout,
                kind,
                reads_ahead,
                spaces: known.stream.spaces(),
                pace: request.pace,
                warmup: request.warmup,
                start,
                seed: request.seed,
            })?;
            layout = sentence;
            Some(side)
        }
        _ => None,
    };
    let make = |policy: &PolicySpec, pages: u64| {
        let capacity = pages as u32;
        let made = match &disk {
            Some(side) => disk_instance(policy, capacity, side),
            None => {
                let size = Setup::new(capacity);
                cache_instance(policy, &size, request.warmup, kind != TargetKind::Id)
            }
        };
        made.map_err(|e| instance_error(policy, pages, e))
    };
    let (pages, mut notes) = without_small_shares(request, pages, footprint, make)?;
    if disk.is_some() && !reads_ahead && request.readahead != NO_READAHEAD {
        notes.push(
            "nothing is read ahead: the trace numbers its blocks and does not say which of them are neighbours"
                .to_owned(),
        );
    }
    let mut jobs = Vec::new();
    for (nth, policy) in request.policies.iter().enumerate() {
        for &pages in &pages {
            jobs.push(Job::new(nth, pages, make(policy, pages)?));
        }
    }
    let curves = match (&request.curves, &known) {
        (Some(asked), Some(known)) => Some(Curves::new(
            *asked,
            &request.policies,
            &known.survey,
            &pages,
            kind != TargetKind::Id,
        )?),
        _ => None,
    };
    Ok(Plan {
        policies: request.policies.clone(),
        about: request.policies.iter().map(about).collect(),
        capacities: pages,
        jobs,
        curves,
        future: request.policies.iter().any(|p| p.name() == MIN),
        known,
        layout,
        reads_ahead,
        notes,
    })
}

/// The sizes but those shares of the pages that come to less than one of the policies needs, as long as
/// others are left; and what to say of these.
fn without_small_shares<T>(
    request: &ReplayRequest,
    pages: Vec<u64>,
    footprint: u64,
    make: impl Fn(&PolicySpec, u64) -> Result<T, ReplayError>,
) -> Result<(Vec<u64>, Vec<String>), ReplayError> {
    let as_bytes = |size: u64| {
        let mut of_bytes = request
            .sizes
            .iter()
            .filter(|s| !sizes::needs_footprint(**s));
        let page = request.input.page.bytes().0;
        of_bytes.any(|s| sizes::in_pages(&[*s], page, footprint).is_ok_and(|n| n == [size]))
    };
    let refusal = |size: u64| request.policies.iter().find_map(|p| make(p, size).err());
    let mut notes = Vec::new();
    let small = |size: &u64| refusal(*size).filter(|_| !as_bytes(*size));
    // They rise: what one that is not small needs, those above have too.
    let count = pages
        .iter()
        .take_while(|size| small(size).is_some())
        .count();
    if count == pages.len() {
        return match pages.last().and_then(|size| refusal(*size)) {
            Some(error) => Err(error),
            None => Ok((pages, notes)),
        };
    }
    for size in &pages[..count] {
        if let Some(error) = refusal(*size) {
            let n = if *size == 1 { "page" } else { "pages" };
            notes.push(format!(
                "nothing is run with {size} {n}, {:.2} % of {footprint}: {error}",
                100.0 * *size as f64 / footprint.max(1) as f64
            ));
        }
    }
    Ok((pages[count..].to_vec(), notes))
}

pub(super) fn check(request: &ReplayRequest, spec: Option<&DiskSpec>) -> Result<(), ReplayError> {
    sized::check_for_pages(&request.policies)?;
    let unknown = |p: &&PolicySpec| registry::find(p.name()).is_none();
    if let Some(policy) = request.policies.iter().find(unknown) {
        let names: Vec<&str> = near::policy_names().collect();
        let near = did_you_mean(policy.name(), names.iter().copied());
        return Err(ReplayError::Choice {
            what: "policy",
            value: policy.name().to_owned(),
            problem: format!("is not known; allowed: {}{near}", names.join(", ")),
        });
    }
    let page = request.input.page.bytes().0;
    if spec.is_some() && page != piebald_units::PAGE_SIZE {
        return Err(ReplayError::Choice {
            what: "page size",
            value: page.to_string(),
            problem: "with a device pages have 4096 B; allowed with --device none: others".into(),
        });
    }
    if spec.is_some() && request.policies.iter().any(|p| p.name() == MIN) {
        return Err(ReplayError::Choice {
            what: "policy",
            value: MIN.to_owned(),
            problem:
                "knows the order of references, which a device changes; allowed: --device none"
                    .into(),
        });
    }
    Ok(())
}

/// Without a device calls take no time, so that nothing but their order can be followed.
fn check_pace(request: &ReplayRequest, spec: Option<&DiskSpec>) -> Result<(), ReplayError> {
    let value = match request.pace {
        _ if spec.is_some() => return Ok(()),
        Pace::Serial => return Ok(()),
        Pace::Ordered => "ordered",
        Pace::Tasks => "tasks",
        Pace::Timed => "timed",
    };
    Err(ReplayError::Choice {
        what: "pace",
        value: value.to_owned(),
        problem: "calls take no time without a device; allowed with --device none: serial".into(),
    })
}

/// Refuses traces without a reference: every share of nothing would be printed as one of 0 %.
fn check_references(
    request: &ReplayRequest,
    stream: &CallStream,
    survey: &Survey,
) -> Result<(), ReplayError> {
    if survey.references > 0 {
        return Ok(());
    }
    let passed = stream.passed();
    let told: Vec<String> = passed.iter().flat_map(|passed| passed.told()).collect();
    let over = match told.is_empty() {
        true => String::new(),
        false => format!(" (passed over: {})", told.join(", ")),
    };
    let wrong: u64 = stream.skipped().iter().flatten().map(|(_, n)| n).sum();
    let left_out = stream.first_skipped().map_or_else(String::new, |first| {
        format!(" ({wrong} wrong records are left out, the first one for: {first})")
    });
    Err(ReplayError::Choice {
        what: "traces",
        value: super::title(&request.input.paths),
        problem: format!(
            "refer to no page{over}{left_out}; allowed: at least one reference{}",
            issued(request, stream)
        ),
    })
}

/// A trace of requests as they reach the disk has none that enter a queue.
fn issued(request: &ReplayRequest, stream: &CallStream) -> &'static str {
    let stages = |format: &Format| matches!(format, Format::Blktrace | Format::Blkparse);
    let others = stream.passed().iter().any(|passed| passed.others > 0);
    let is_queue = request.input.options.stage == Stage::Queue;
    if others && is_queue && stream.formats().iter().any(stages) {
        "; --stage issue takes requests where they are handed to the driver"
    } else {
        ""
    }
}

/// A warm-up that leaves nothing to count is refused.
fn check_warmup(warmup: u64, references: u64) -> Result<(), ReplayError> {
    match warmup > 0 && warmup >= references {
        true => Err(ReplayError::Choice {
            what: "warmup",
            value: warmup.to_string(),
            problem: format!(
                "the traces have {references} references; allowed: fewer than that, so that some \
                 are counted"
            ),
        }),
        false => Ok(()),
    }
}

fn kind(stream: &CallStream) -> TargetKind {
    // Files and disks have addresses of a kind; blocks without any spoil that.
    let mut kind = None;
    for of in stream.targets() {
        kind = match (kind, of) {
            (None, of) => Some(of),
            (Some(TargetKind::Id), _) | (_, TargetKind::Id) => Some(TargetKind::Id),
            (Some(TargetKind::Device), TargetKind::Device) => Some(TargetKind::Device),
            _ => Some(TargetKind::File),
        };
    }
    kind.unwrap_or(TargetKind::Id)
}

fn survey(mut stream: CallStream, hooks: Hooks<'_>) -> Result<Known, ReplayError> {
    let mut survey = Survey::default();
    let mut batch = Batch::default();
    while !stopped(hooks) && stream.next_batch(&mut batch)? {
        survey.run(&batch);
    }
    if stopped(hooks) {
        return Err(ReplayError::Stopped);
    }
    stream.learn_sizes();
    Ok(Known { survey, stream })
}

pub(super) fn about(policy: &PolicySpec) -> ReplayPolicy {
    described(policy, registry::find(policy.name()))
}

fn instance_error(policy: &PolicySpec, pages: u64, error: InstanceError) -> ReplayError {
    ReplayError::Instance {
        policy: policy.to_string(),
        pages,
        error: Box::new(error),
    }
}

fn driver_error(policy: &PolicySpec, pages: u64, error: DriverError) -> ReplayError {
    ReplayError::Driver {
        policy: policy.to_string(),
        pages,
        error: Box::new(error),
    }
}

/// The pass that runs all policies.
struct Pass<'a> {
    /// References, 0 if not known.
    planned: u64,
    /// Counts, if nobody has counted before.
    survey: Option<Survey>,
    hooks: Hooks<'a>,
}

impl Pass<'_> {
    /// Runs all jobs over the stream; `false` if it was stopped.
    fn run(
        &mut self,
        setup: &InputSetup,
        jobs: &mut [Job],
        mut curves: Option<&mut Curves>,
        future: bool,
    ) -> Result<(CallStream, bool), ReplayError> {
        let mut stream = CallStream::open(setup)?;
        let next_use = match future {
            true => self.look_ahead(setup)?,
            false => Vec::new(),
        };
        let (mut now, mut next) = (Batch::default(), Batch::default());
        let mut more = stream.next_batch(&mut now)?;
        let (mut done, mut begin) = (0, 0);
        while more && !stopped(self.hooks) {
            let end = begin + now.references.len();
            let next_use = next_use.get(begin..end).unwrap_or(&[]);
            // The next part is decoded while this one is worked on.
            let (decoded, ()) = rayon::join(
                || stream.next_batch(&mut next),
                || {
                    work(
                        jobs,
                        curves.as_deref_mut(),
                        self.survey.as_mut(),
                        &now,
                        next_use,
                    )
                },
            );
            more = decoded?;
            begin = end;
            done += now.references.len() as u64;
            std::mem::swap(&mut now, &mut next);
            if let Some(progress) = self.hooks.progress {
                progress(done, self.planned.max(done));
            }
            if jobs.iter().any(|job| job.error.is_some()) {
                break;
            }
        }
        Ok((stream, !more))
    }

    /// All references of the trace, read to know the future.
    fn look_ahead(&self, setup: &InputSetup) -> Result<Vec<u64>, ReplayError> {
        let mut stream = CallStream::open(setup)?;
        let mut batch = Batch::default();
        let mut all = Vec::new();
        while stream.next_batch(&mut batch)? {
            if stopped(self.hooks) {
                return Err(ReplayError::Stopped);
            }
            all.extend_from_slice(&batch.references);
        }
        Ok(next_uses(&all))
    }
}

fn work(
    jobs: &mut [Job],
    curves: Option<&mut Curves>,
    survey: Option<&mut Survey>,
    batch: &Batch,
    next_use: &[u64],
) {
    let jobs = || {
        jobs.par_iter_mut().for_each(|job| {
            if job.error.is_none() {
                job.error = job.instance.run(batch, next_use).err();
            }
        });
    };
    let rest = || {
        if let Some(curves) = curves {
            curves.run(batch, next_use);
        }
        if let Some(survey) = survey {
            survey.run(batch);
        }
    };
    rayon::join(jobs, rest);
}
