//! The same programs in a real kernel and in the modelled one: rows of Rainbow and
//! of SRM-buffer (S-2, S-3, S-5, S-6, S-9 to S-14) in miniature.
//!
//! The real kernel is the distribution's with Piebald's module, under QEMU and watched by the
//! machine model (`piebald-guest`). The modelled one replays recordings of the very programs
//! that the guest runs, on the same machine with the same parts of the model on. So what
//! differs is the kernel. Processors interleave by equal numbers of instructions in the guest, and
//! in the model as well where misses are compared; slowdowns are of another run, by time. Programs, sizes and rules were written down before the
//! first result (`reproduce/guest/protocol.md`).
//!
//! Vocabulary: a *case* is two to four programs and several *ways* to place their pages, which are
//! run in both kernels; a [`Pair`](kernels::Pair) is a number of both.

mod agree;
mod case;
mod database;
mod four;
mod kernels;
mod rainbow;
mod rows;
mod srm;

use std::path::Path;

use piebald_report::{PaperFigure, Reproduction, Target};

use crate::{
    Hooks, Options, ReproduceError, System,
    paper::{Paper, Whole},
};
use case::Case;
use kernels::Kernels;

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Form {
    quick: bool,
    repetitions: u32,
    seed: u64,
}

impl Form {
    fn new(options: &Options) -> Self {
        let repetitions = if options.quick { 1 } else { 3 };
        Self {
            quick: options.quick,
            repetitions: options.repetitions.unwrap_or(repetitions).clamp(1, 100),
            seed: options.seed,
        }
    }
}

/// Rows of a system and how they come about.
struct Part {
    targets: &'static [&'static str],
    cases: fn(&Form) -> Vec<Case>,
    rows: Rows,
}

type Rows = fn(&Form, &Kernels) -> (Vec<Target>, Vec<PaperFigure>);

const fn part(system: System) -> Option<Part> {
    match system {
        System::Rainbow => Some(Part {
            targets: &["R-2", "R-6"],
            cases: rainbow::cases,
            rows: rainbow::rows,
        }),
        System::Srm => Some(Part {
            targets: &[
                "S-2", "S-3", "S-5", "S-6", "S-9", "S-10", "S-11", "S-12", "S-13", "S-14",
            ],
            cases: |form| [srm::cases(form), four::cases(form), database::cases(form)].concat(),
            rows: |form, kernels| {
                let (mut targets, mut figures) = srm::rows(form, kernels);
                for (more, drawn) in [
                    four::rows(form, kernels),
                    (database::rows(form, kernels), Vec::new()),
                ] {
                    targets.extend(more);
                    figures.extend(drawn);
                }
                (targets, figures)
            },
        }),
        System::Dulo | System::Mfc | System::Hvr => None,
    }
}

/// Ids of the rows of a system that are run in a real kernel as well; `None` = the module
/// does not have the system.
pub fn guest_targets(system: System) -> Option<&'static [&'static str]> {
    part(system).map(|p| p.targets)
}

/// Runs a system's rows in both kernels. `module` is piebald.ko, as `kernel/build.sh` makes it.
/// Programs and their files are written to the options' folder of inputs. Of the options,
/// `budget_refs` is not used.
///
/// # Errors
/// The system has no rows here, the module is missing, or programs cannot be made or recorded.
pub fn reproduce_guest(
    system: System,
    options: &Options,
    module: &Path,
    hooks: Hooks<'_>,
) -> Result<Reproduction, ReproduceError> {
    let mut paper = Paper::begin(system, options);
    let part = part(system).ok_or_else(|| {
        ReproduceError::Inputs(format!(
            "{}: not in the module; allowed with a guest: rainbow, srm",
            system.name()
        ))
    })?;
    let module = std::path::absolute(module)
        .and_then(|path| std::fs::File::open(&path).map(|_| path))
        .map_err(|e| {
            ReproduceError::Inputs(format!(
                "{}: {e} (kernel/build.sh makes the module)",
                module.display()
            ))
        })?;
    let form = Form::new(options);
    let cases = (part.cases)(&form);
    let kernels = Kernels::run(&form, &cases, &module, options, hooks)?;
    let (targets, figures) = (part.rows)(&form, &kernels);
    paper.add(targets);
    paper.draw(figures);
    let cases: Vec<Case> = cases.into_iter().filter(|c| kernels.has(c)).collect();
    Ok(Reproduction {
        title: format!("{}: the modelled kernel and a real one", system.title()),
        columns: Some(["modelled kernel", "real kernel"].map(str::to_owned)),
        ..paper.end(Whole {
            budget_refs: 0,
            warmup_refs: 0,
            conditions: conditions(&form, &cases, &kernels),
            simulated_refs: kernels.refs(),
        })
    })
}

fn conditions(form: &Form, cases: &[Case], kernels: &Kernels) -> Vec<String> {
    let mut lines = vec![
        "Real: the distribution's kernel under QEMU, huge pages off, with the module but for the \
         rows without colors; every reference that its first processors make is seen by the \
         machine model. Modelled: recordings of the same programs over the modelled kernel, \
         fresh memory."
            .to_owned(),
        "Both: caches with coherence, no prefetchers, TLBs or instruction fetches; loads that \
         leave the first level block. Processors advance by equal numbers of instructions in the \
         real kernel. So they do in the modelled one where misses are compared: its machine then \
         answers at once. Slowdowns and times are those of a second run of it, by time."
            .to_owned(),
        format!(
            "{} repetitions in each kernel. A verdict says how far the two agree, not whether a \
             paper's number was met: match within 25 %, or 5 points of a share above 15 %; near \
             within a factor of two; or both below what counts as nothing (100 misses per \
             million instructions, 5 %).",
            form.repetitions
        ),
    ];
    lines.extend(cases.iter().map(Case::describe));
    lines.extend(kernels.warnings());
    lines
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use piebald_lab::scenario::Scenario as Modelled;

    use super::*;

    fn form(quick: bool) -> Form {
        Form::new(&Options {
            quick,
            seed: 7,
            ..Options::default()
        })
    }

    #[test]
    fn only_what_the_module_has_can_be_run() {
        for system in System::ALL {
            let known = guest_targets(system);
            let has = matches!(system, System::Rainbow | System::Srm);
            assert_eq!(known.is_some(), has, "{}", system.name());
            let known = known.unwrap_or_default().iter();
            assert!(known.clone().all(|id| system.targets().contains(id)));
        }
    }

    #[test]
    fn both_kernels_can_read_every_case() {
        for quick in [true, false] {
            for system in [System::Rainbow, System::Srm] {
                let form = form(quick);
                let cases = part(system).map(|p| (p.cases)(&form)).unwrap_or_default();
                assert!(!cases.is_empty());
                for case in &cases {
                    case.real(&form, Path::new("/tmp/piebald.ko"), Path::new("/tmp"))
                        .unwrap_or_else(|e| panic!("{}: {e}", case.name));
                    let recorded = case.recorded();
                    assert_eq!(recorded.len(), 1 + case.beside.len());
                    let recordings = recorded.iter().map(|r| format!("/{}.pbr", r.0).into());
                    let recordings: Vec<PathBuf> = recordings.collect();
                    let text = case.modelled(&form, &recordings, None);
                    let text = text.unwrap_or_else(|e| panic!("{}: {e}", case.name));
                    Modelled::parse(&text, Path::new("case.toml"))
                        .unwrap_or_else(|e| panic!("{e}\n{text}"));
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_run_is_refused() {
        let none = |_: &crate::Wanted<'_>, _: &Path| Err("none".to_owned());
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &none,
            store: None,
        };
        let options = Options::default();
        for (system, part) in [
            (System::Mfc, "allowed with a guest: rainbow, srm"),
            (System::Srm, "kernel/build.sh"),
        ] {
            let error = reproduce_guest(system, &options, Path::new("/no/such.ko"), hooks);
            let error = error.expect_err("refused").to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
