//! Replays of objects that take their bytes.

use piebald_os_model::replace::PolicySpec;
use piebald_os_model::replace::registry::Row;
use piebald_report::Replay;
use piebald_sim::replay::{
    BELADY_SIZE, Batch, CallStream, InputSetup, ObjectSurvey, PFOO_L, SIZED_POLICIES, SizeSpread,
    SizedSetup, Survey, sized_instance,
};
use piebald_trace::block::TargetKind;
use piebald_units::Bytes;

use super::plan::{Job, Known, MIN, Plan, described, stopped};
use super::{DeviceChoice, ReplayError, ReplayRequest, sizes};
use crate::study::Hooks;

/// All policies for objects of different sizes.
pub const OBJECT_POLICIES: &[Row] = SIZED_POLICIES;

/// Sizes of the objects that traces ask for, as far as they ask for objects. Reads the traces once
/// if their formats say sizes.
pub(super) fn spread(setup: &InputSetup, hooks: Hooks<'_>) -> Result<SizeSpread, ReplayError> {
    let mut stream = CallStream::open(setup)?;
    let mut spread = SizeSpread::default();
    let targets: Vec<TargetKind> = stream.targets().into_iter().collect();
    if !targets.contains(&TargetKind::Id) {
        return Ok(spread);
    }
    let mut batch = Batch::default();
    while stream.next_batch(&mut batch)? {
        if stopped(hooks) {
            return Err(ReplayError::Stopped);
        }
        spread.run(&batch);
        // A format says the size of every object or of none.
        if targets.len() == 1 && spread.range.is_none() {
            break;
        }
    }
    Ok(spread)
}

/// Does each object take its bytes?
pub(super) fn take_their_bytes(request: &ReplayRequest, sizes: &SizeSpread) -> bool {
    sizes.varies() && !request.ignore_sizes
}

/// Policies that do without pages, with what else has to be known.
pub(super) fn plan(
    request: &ReplayRequest,
    setup: &InputSetup,
    sizes: &SizeSpread,
    hooks: Hooks<'_>,
) -> Result<(Plan, ObjectSurvey), ReplayError> {
    check(request, sizes)?;
    let (known, objects) = survey(setup, hooks)?;
    let capacities = sizes::in_bytes(&request.sizes, objects.footprint())?;
    let policies = &request.object_policies;
    if policies.is_empty() {
        return Err(ReplayError::Nothing(
            "policy for objects of different sizes",
        ));
    }
    let mut jobs = Vec::new();
    for (nth, policy) in policies.iter().enumerate() {
        for &capacity in &capacities {
            let setup = SizedSetup {
                capacity,
                warmup: request.warmup,
                seed: request.seed,
            };
            let instance = sized_instance(policy.name(), &setup);
            let instance = instance.ok_or_else(|| no_form(policy.name(), sizes))?;
            jobs.push(Job::new(nth, capacity, instance));
        }
    }
    let plan = Plan {
        about: policies
            .iter()
            .map(|p| described(p, row(p.name())))
            .collect(),
        policies: policies.clone(),
        capacities,
        jobs,
        curves: None,
        future: policies.iter().any(|p| p.name() == BELADY_SIZE),
        known: Some(known),
        layout: "objects have no address".to_owned(),
        reads_ahead: false,
        notes: Vec::new(),
    };
    Ok((plan, objects))
}

fn row(name: &str) -> Option<&'static Row> {
    OBJECT_POLICIES.iter().find(|row| row.name == name)
}

fn names() -> String {
    let names: Vec<&str> = OBJECT_POLICIES.iter().map(|row| row.name).collect();
    names.join(", ")
}

fn survey(setup: &InputSetup, hooks: Hooks<'_>) -> Result<(Known, ObjectSurvey), ReplayError> {
    let mut stream = CallStream::open(setup)?;
    let (mut survey, mut objects) = (Survey::default(), ObjectSurvey::default());
    let mut batch = Batch::default();
    while !stopped(hooks) && stream.next_batch(&mut batch)? {
        survey.run(&batch);
        objects.run(&batch);
    }
    match stopped(hooks) {
        true => Err(ReplayError::Stopped),
        false => Ok((Known { survey, stream }, objects)),
    }
}

/// Refuses what has no meaning for objects of different sizes.
fn check(request: &ReplayRequest, sizes: &SizeSpread) -> Result<(), ReplayError> {
    if sizes.without > 0 {
        return Err(ReplayError::Choice {
            what: "traces",
            value: super::title(&request.input.paths),
            problem: format!(
                "objects of different sizes ({}) beside {} requests without a size; allowed: one \
                 kind alone, or --ignore-sizes",
                range(sizes),
                sizes.without
            ),
        });
    }
    let device = match &request.device {
        DeviceChoice::None => None,
        DeviceChoice::Preset(name) => Some(name.clone()),
        DeviceChoice::File(path) => Some(path.display().to_string()),
    };
    if let Some(value) = device {
        return Err(ReplayError::Choice {
            what: "device",
            value,
            problem: format!(
                "objects of different sizes ({}) have no place on a disk; allowed: --readahead \
                 none or --device none, or --ignore-sizes",
                range(sizes)
            ),
        });
    }
    if request.curves.is_some() {
        return Err(ReplayError::Choice {
            what: "curves",
            value: "--mrc".to_owned(),
            problem: format!(
                "curves are made of pages, and objects have different sizes ({}); allowed: several \
                 --size, or --ignore-sizes",
                range(sizes)
            ),
        });
    }
    for policy in &request.object_policies {
        if row(policy.name()).is_none() {
            return Err(no_form(policy.name(), sizes));
        }
        if let Some((option, _)) = policy.options().next() {
            return Err(ReplayError::Choice {
                what: "policy",
                value: policy.to_string(),
                problem: format!(
                    "option \"{option}\" is not known for objects of different sizes; allowed: none"
                ),
            });
        }
    }
    Ok(())
}

fn no_form(policy: &str, sizes: &SizeSpread) -> ReplayError {
    ReplayError::Choice {
        what: "policy",
        value: policy.to_owned(),
        problem: format!(
            "has no form for objects of different sizes ({}); allowed: {}; or --ignore-sizes",
            range(sizes),
            names()
        ),
    }
}

/// Refuses policies that are for objects of different sizes alone.
pub(super) fn check_for_pages(policies: &[PolicySpec]) -> Result<(), ReplayError> {
    let only = |p: &&PolicySpec| [BELADY_SIZE, PFOO_L].contains(&p.name());
    match policies.iter().find(only) {
        None => Ok(()),
        Some(policy) => Err(ReplayError::Choice {
            what: "policy",
            value: policy.to_string(),
            problem: format!(
                "is for objects of different sizes, and here each takes a page; allowed: {MIN}, \
                 which is the bound for pages"
            ),
        }),
    }
}

fn range(sizes: &SizeSpread) -> String {
    let (low, high) = sizes.range.unwrap_or_default();
    match low == high {
        true => Bytes(low.into()).to_string(),
        false => format!("{} to {}", Bytes(low.into()), Bytes(high.into())),
    }
}

/// Says what was done with the sizes of objects, in the conditions of a replay. `objects`: what they
/// are, if each takes its bytes.
pub(super) fn note(replay: &mut Replay, sizes: &SizeSpread, objects: Option<&ObjectSurvey>) {
    let page = Bytes(replay.conditions.page_bytes);
    let notes = &mut replay.conditions.notes;
    match objects {
        Some(objects) => {
            notes.push(format!(
                "objects take their bytes ({}); sizes of memory are bytes, and --page has no effect",
                range(sizes)
            ));
            if objects.changes > 0 {
                notes.push(format!(
                    "{} requests say another size than the last one for their object: it counts \
                     from then on, and the largest one in the size of all",
                    objects.changes
                ));
            }
            replay.conditions.page_bytes = 1;
            if let Some(first) = replay.traces.first_mut() {
                first.object_bytes = Some(objects.footprint());
            }
        }
        None if sizes.varies() => notes.push(format!(
            "--ignore-sizes: objects of different sizes ({}) take a page of {page} each",
            range(sizes)
        )),
        None if sizes
            .range
            .is_some_and(|(size, _)| u64::from(size) != page.0) =>
        {
            notes.push(format!(
                "every object has {}, and takes a page of {page}",
                range(sizes)
            ));
        }
        None => {}
    }
}
