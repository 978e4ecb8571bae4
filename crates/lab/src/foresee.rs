//! Colours that a study would use up, found before its first run.
//!
//! A program that colours bind is taken, by itself, through the references that it makes at least, with
//! the kernel's part of the work alone: its pages come into being, and nothing takes time. What fails
//! then is sure to fail in the study, so it is refused. What programs need together is a guess, as
//! nobody knows how far company gets: a warning.
//!
//! Programs of several threads, with regions, and those that change their colours are not looked at:
//! what they touch, or where, depends on the run.

use piebald_experiment::{Frames, MemoryState};
use piebald_os_model::kernel::{ColorHolders, KernelError, OnLimit};
use piebald_report::{Role, Study};
use piebald_sim::{CaseError, Model, SimError, Watch};
use piebald_units::ColorSet;
use rayon::prelude::*;

use crate::{
    colors,
    jobs::{Job, Phase, groups, members, planned_of, runs_alone},
    prepare::Prepared,
    scenario::{Policy, Scenario},
    study::{self, Hooks, Lab, StudyError},
};

/// Of the references that a program makes at least, the part that is left out: the last ones of a
/// run come with a batch, and a reference that crosses pages counts twice there.
const LEFT_OUT: u64 = 32;

/// What a program needs of the colours that bind it.
struct Need {
    policy: usize,
    program: usize,
    colors: ColorSet,
    /// Frames that it takes up to the end of its measured part.
    frames: u64,
    /// What holds their frames when a run begins.
    before: ColorHolders,
}

/// Runs a study, unless it is sure to use up colours.
///
/// # Errors
/// A program whose colours cannot hold its pages, before anything is run; the first run that failed if
/// nothing is left. A stop is no error once a repetition is complete: the study is then marked as
/// partial.
pub fn study(
    scenario: &Scenario,
    inputs: &[Prepared],
    hooks: Hooks<'_>,
) -> Result<Study, StudyError> {
    let has_owners = |policy: &&Policy| policy.frames == Frames::Rainbow;
    let owners = scenario.policies.iter().filter(has_owners).count();
    // Where nothing is run, nothing is used up.
    let only_looks = hooks.model.is_some_and(Model::only_looks);
    if owners == 0 || only_looks {
        return study::study(scenario, inputs, hooks);
    }
    // Ageing memory takes longer than looking: the study begins with the same states.
    let own = Model::keeping(owners + rayon::current_num_threads());
    let hooks = Hooks {
        model: hooks.model.or(Some(&own)),
        ..hooks
    };
    let foreseen = foresee(&Lab::new(scenario, inputs, hooks, (&[], &own)))?;
    let mut study = study::study(scenario, inputs, hooks)?;
    study.warnings.extend(foreseen);
    Ok(study)
}

/// Refuses a study whose programs cannot have their pages in their colours. Answers what may go
/// wrong all the same.
///
/// # Errors
/// The first program, in the order of policies and programs, or a run that cannot be made at all.
fn foresee(lab: &Lab<'_>) -> Result<Vec<String>, StudyError> {
    let scenario = lab.scenario();
    let jobs: Vec<Job> = (0..scenario.policies.len())
        .flat_map(|policy| bound(lab, policy).map(move |program| alone(policy, program)))
        .collect();
    let needs = jobs.par_iter().map(|job| need(lab, *job));
    let needs: Vec<Result<Option<Need>, StudyError>> = needs.collect();
    let needs = needs.into_iter().filter_map(Result::transpose);
    let needs: Vec<Need> = needs.collect::<Result<_, _>>()?;
    Ok(together(scenario, &needs))
}

const fn alone(policy: usize, program: usize) -> Job {
    Job {
        policy,
        repetition: 0,
        phase: Phase::Alone(program),
        focus: None,
    }
}

/// Programs that colours bind under a policy, and of which it is known what they do at least.
fn bound<'a>(lab: &'a Lab<'_>, policy: usize) -> impl Iterator<Item = usize> + 'a {
    let scenario = lab.scenario();
    let has_owners = scenario.policies[policy].frames == Frames::Rainbow;
    let looked_at = has_owners && scenario.files.is_none();
    let programs = 0..scenario.programs.len();
    programs.filter(move |at| looked_at && is_known(lab, *at, policy))
}

fn is_known(lab: &Lab<'_>, at: usize, policy: usize) -> bool {
    let (scenario, input) = (lab.scenario(), &lab.inputs()[at]);
    let entry = &scenario.programs[at];
    let is_run =
        runs_alone(scenario, at) || (entry.role == Role::Target && scenario.course.is_none());
    is_run
        && entry.on_limit == OnLimit::Fail
        && entry.changes.is_empty()
        && input.parts.is_none()
        && input.program.threads() == 1
        && colors::binding(scenario, at, policy).is_some()
}

/// What a program needs; nothing if it ends early.
fn need(lab: &Lab<'_>, job: Job) -> Result<Option<Need>, StudyError> {
    let scenario = lab.scenario();
    let [program] = members(scenario, job.phase)[..] else {
        return Ok(None);
    };
    let Some(colors) = colors::binding(scenario, program, job.policy) else {
        return Ok(None);
    };
    match dry_run(lab, job, program, &colors) {
        Ok((frames, before)) => Ok(Some(Need {
            policy: job.policy,
            program,
            colors,
            frames,
            before,
        })),
        Err(StudyError::Run {
            policy,
            error:
                SimError::Kernel {
                    program,
                    error: KernelError::ColorLimit(limit),
                },
        }) => {
            let taken = limit.held.own + limit.held.files;
            let why = StudyError::Colors {
                needed: footprint(lab, job).max(taken + 1),
                policy,
                program,
                limit,
            };
            // Nobody will make this run.
            lab.model().keep_failure(&lab.case(job, None)?, &why);
            Err(why)
        }
        // Nothing is foreseen; the runs say what is wrong.
        Err(StudyError::Run {
            error: SimError::TooShort { .. } | SimError::Stopped,
            ..
        }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Frames that a program takes, and who has those of these colours before.
fn dry_run(
    lab: &Lab<'_>,
    job: Job,
    program: usize,
    colors: &ColorSet,
) -> Result<(u64, ColorHolders), StudyError> {
    let mut case = lab.case(job, None)?;
    let failed = |error| lab.failure(job, error);
    let kernel = lab.model().boot(&case.machine, &case.boot);
    let kernel = kernel.map_err(|problem| failed(CaseError::Kernel(problem)))?;
    let before = kernel.holders_of(colors, u16::MAX);
    drop(kernel);
    let refs = planned_of(lab.scenario(), &job, lab.inputs(), program).total();
    for setup in &mut case.programs {
        setup.skip = (refs - refs / LEFT_OUT).saturating_sub(setup.prime).max(1);
        (setup.marks_ready, setup.warmup, setup.budget) = (false, 0, 1);
        (setup.waits, setup.measured) = (false, true);
    }
    (case.map, case.fill) = (None, false);
    let watch = Watch {
        stop: lab.stop(),
        progress: None,
    };
    let outcome = lab.model().run(&case, watch).map_err(failed)?;
    // Pages of files stay when they are read; those that are mapped are among both.
    let mapped = outcome.programs[0].memory.usage.peak_pages;
    let own = mapped.saturating_sub(outcome.kernel.file_faults);
    Ok((own + outcome.kernel.file_fills, before))
}

/// Frames that a program takes where nothing binds it; 0 if memory does not hold them.
fn footprint(lab: &Lab<'_>, job: Job) -> u64 {
    let mut free = lab.scenario().clone();
    free.policies = vec![Policy {
        frames: Frames::Stock,
        memory: MemoryState::Fresh,
        color_map: None,
        ..free.policies[job.policy].clone()
    }];
    let job = Job { policy: 0, ..job };
    let hooks = Hooks {
        stop: lab.stop(),
        ..Hooks::default()
    };
    let lab = Lab::new(&free, lab.inputs(), hooks, (&[], lab.model()));
    let program = members(&free, job.phase)[0];
    let found = dry_run(&lab, job, program, &ColorSet::default());
    found.map_or(0, |(frames, _)| frames)
}

/// Programs that share colours and together need more than is free there.
fn together(scenario: &Scenario, needs: &[Need]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (policy, group) in (0..scenario.policies.len())
        .flat_map(|policy| groups(scenario).map(move |group| (policy, group)))
    {
        let met = members(scenario, Phase::Together(group));
        let mine = |need: &&Need| need.policy == policy && met.contains(&need.program);
        let mine: Vec<&Need> = needs.iter().filter(mine).collect();
        for (at, first) in mine.iter().enumerate() {
            let same = |need: &&&Need| need.colors == first.colors;
            let sharing: Vec<&&Need> = mine.iter().filter(same).collect();
            let is_first = !mine[..at].iter().any(|need| need.colors == first.colors);
            let frames: u64 = sharing.iter().map(|need| need.frames).sum();
            if !is_first || sharing.len() < 2 || frames <= first.before.free {
                continue;
            }
            let names = sharing.iter().map(|n| &scenario.programs[n.program].name);
            let names: Vec<String> = names.map(|name| format!("\"{name}\"")).collect();
            warnings.push(format!(
                "policy \"{}\": colors {} may be used up: {} need {frames} frames (4 KiB) if they come \
                 to the ends of their measured parts at once and share no file; of the {} frames of \
                 these colors {} are free",
                scenario.policies[policy].name,
                first.colors,
                names.join(" and "),
                first.before.frames,
                first.before.free,
            ));
        }
    }
    warnings.dedup();
    warnings
}
