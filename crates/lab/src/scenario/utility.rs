//! What stands against counting the misses of programs alone: for policies that divide the last level by them
//! (`frames = "uvp"`), and for curves.

use piebald_experiment::{
    Alone, Experiment, Frames, KeyPath, MissCurves, Problem, Together, Words,
};
use piebald_hw::{Machine, Options, spec::MachineSpec};
use piebald_report::Role;
use piebald_units::CoreId;

use super::{Policy, ProgramEntry};
use crate::{colors::map_of, utility::Utility};

/// Checks them; the colors that policies name exist.
pub(super) fn check(
    experiment: &Experiment,
    machine: &MachineSpec,
    (programs, policies): (&[ProgramEntry], &[Policy]),
    problems: &mut Vec<Problem>,
) {
    let dividing = policies.iter().enumerate();
    let mut dividing = dividing.filter(|(_, p)| p.frames == Frames::Uvp).peekable();
    if experiment.output.miss_curve == MissCurves::Counted {
        let first = policies.first().filter(|_| dividing.peek().is_none());
        let problem = of_curves(experiment, machine, (programs, first));
        problems.extend(problem.map(|allowed| {
            let path = KeyPath::of("output").key("miss_curve");
            Problem::refuse(path, true, allowed)
        }));
    }
    if dividing.peek().is_none() {
        return;
    }
    let most = most_together(experiment.together, programs);
    for (i, policy) in dividing {
        let at = KeyPath::of("policy").item(i);
        if i == 0 {
            let allowed = "another policy as the first one, under which misses are counted";
            let word = format!("\"{}\"", Frames::Uvp.word());
            problems.push(Problem::refuse(at.key("frames"), word, allowed));
        }
        problems.extend(of_map(machine, policy, most, &at));
    }
    for (i, program) in programs.iter().enumerate() {
        problems.extend(of_program(program, &KeyPath::of("program").item(i)));
    }
    problems.extend(far_apart(machine, programs));
}

/// What is allowed in the place of curves that runs alone count; by the colors of this policy, if none divides.
fn of_curves(
    experiment: &Experiment,
    machine: &MachineSpec,
    (programs, policy): (&[ProgramEntry], Option<&Policy>),
) -> Option<String> {
    if experiment.alone == Alone::None {
        return Some("with alone = \"all\" or \"targets\"".to_owned());
    }
    if let Some(program) = programs.iter().find(|p| p.regions.is_some()) {
        let name = &program.name;
        return Some(format!(
            "a number of sizes, as misses are counted in one run and regions stand for {name}"
        ));
    }
    let utility = match map_of(machine, policy?) {
        Ok(map) => Utility::of(map),
        Err(why) => return Some(format!("a number of sizes, as {why}")),
    };
    if utility.parts() == 1 {
        let cache = &machine.last_level().name;
        return Some(format!(
            "a number of sizes, as the colors of the first policy tell no parts of {cache} apart"
        ));
    }
    let why = utility.check(machine).err()?;
    Some(format!("a number of sizes, as {why}"))
}

/// The most programs that run together.
fn most_together(together: Together, programs: &[ProgramEntry]) -> usize {
    let polluters = programs.iter().filter(|p| p.role == Role::Polluter).count();
    match together {
        Together::All => programs.len(),
        Together::EachTarget => polluters + 1,
    }
}

/// What stands against a policy's colors.
fn of_map(machine: &MachineSpec, policy: &Policy, most: usize, at: &KeyPath) -> Option<Problem> {
    let utility = map_of(machine, policy).ok().map(Utility::of)?;
    let parts = utility.parts();
    if parts == 1 && policy.color_map.is_none() {
        let cache = &machine.last_level().name;
        let says = format!(
            "needs page colors of the last level: {cache} has none that leaves the second level \
             whole; allowed: a color_map"
        );
        return Some(Problem::at(at.key("frames"), says));
    }
    if parts == 1 {
        let says = "no bit of it selects a part of the last level; allowed: bits with their kind, as in \
                    [\"C 16\", \"C 17\"]";
        return Some(Problem::at(at.key("color_map"), says));
    }
    if most > parts as usize {
        let says = format!(
            "{most} programs run together; allowed: up to {parts}, the parts of the last level that \
             colors tell apart"
        );
        return Some(Problem::at(at.key("frames"), says));
    }
    let refused = utility.check(machine).err()?;
    let key = match policy.color_map {
        Some(_) => "color_map",
        None => "frames",
    };
    Some(Problem::at(at.key(key), refused.to_string()))
}

fn of_program(program: &ProgramEntry, at: &KeyPath) -> Option<Problem> {
    const ONLY: &str = "allowed only without frames = \"uvp\"";
    if program.regions.is_some() {
        let says = format!("{ONLY}, as misses are counted in one run");
        return Some(Problem::at(at.key("regions"), says));
    }
    let key = match (program.stay.arrives, program.stay.leaves) {
        (Some(_), _) => "arrives_us",
        (None, Some(_)) => "leaves_us",
        (None, None) => return None,
    };
    let says = format!("{ONLY}, which divides once, among all programs");
    Some(Problem::at(at.key(key), says))
}

/// Programs that do not share one last level.
fn far_apart(machine: &MachineSpec, programs: &[ProgramEntry]) -> Option<Problem> {
    let made = Machine::new(machine, &Options::default()).ok()?;
    let home = made.group_of(programs.first()?.cores.iter().next()?);
    let is_far = |core: CoreId| made.group_of(core) != home;
    let far = programs.iter().position(|p| p.cores.iter().any(is_far))?;
    let path = if programs[far].is_dealt {
        KeyPath::of("deal")
    } else {
        KeyPath::of("program").item(far)
    };
    let cores = format!("\"{}\"", programs[far].cores);
    let allowed = "cores behind one last level, with frames = \"uvp\"";
    Some(Problem::refuse(path.key("cores"), cores, allowed))
}
