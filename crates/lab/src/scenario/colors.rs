//! Checks what programs and policies ask for against the machine's colors.

use piebald_experiment::{Experiment, Frames, KeyPath, PolicyColors, Problem};
use piebald_hw::spec::MachineSpec;
use piebald_policy::color_map::ColorMap;
use piebald_units::ColorAsk;

use super::{Policy, ProgramEntry};
use crate::colors;

/// Programs and policies, as the model runs them.
type Parts<'a> = (&'a [ProgramEntry], &'a [Policy]);

/// All colors exist, and owners of colors can have theirs.
pub(super) fn check(
    experiment: &Experiment,
    machine: &MachineSpec,
    (programs, policies): Parts<'_>,
    problems: &mut Vec<Problem>,
) {
    for (i, policy) in policies.iter().enumerate() {
        if !policy.frames.is_colored() {
            continue;
        }
        let at = KeyPath::of("policy").item(i);
        // Those of the machine need no check: they are of its memory.
        let mut tables = experiment.policy.iter();
        let is_given = tables.any(|p| p.name == policy.name && p.color_map.is_some());
        match map(machine, (policy, is_given), &at) {
            Err(problem) => problems.push(problem),
            Ok(map) if policy.frames == Frames::Rainbow => {
                let owners = Owners {
                    experiment,
                    programs,
                    policy,
                    at,
                    colors: map.colors(),
                };
                owners.check(problems);
            }
            Ok(_) => {}
        }
    }
}

/// The colors that a policy has on a machine, and whether it says itself which bits make them.
fn map(
    machine: &MachineSpec,
    (policy, is_given): (&Policy, bool),
    at: &KeyPath,
) -> Result<ColorMap, Problem> {
    let map = colors::map_of(machine, policy)
        .map_err(|why| Problem::at(at.clone(), format!("frames needs page colors: {why}")))?;
    let frames = machine.memory.size.0 >> 12;
    let mut bits = 0..map.bits() as u8;
    let beyond = bits.find(|bit| map.mask(*bit) >= frames.next_power_of_two());
    match beyond.filter(|_| is_given) {
        None => Ok(map),
        Some(bit) => {
            let says = format!(
                "color bit {bit} names an address bit that no frame has in {} of memory",
                machine.memory.size
            );
            Err(Problem::at(at.key("color_map"), says))
        }
    }
}

/// The owners of colors under a policy.
struct Owners<'a> {
    experiment: &'a Experiment,
    programs: &'a [ProgramEntry],
    policy: &'a Policy,
    at: KeyPath,
    colors: u32,
}

impl Owners<'_> {
    /// Checks what they ask for, one by one and together.
    fn check(&self, problems: &mut Vec<Problem>) {
        let before = problems.len();
        for (p, program) in self.programs.iter().enumerate() {
            let Some(asked) = colors::owned(program, self.policy) else {
                continue;
            };
            problems.extend(self.beyond(&asked, self.written(p)));
            for (n, change) in program.changes.iter().enumerate() {
                let path = KeyPath::of("program").item(p).key("change").item(n);
                problems.extend(self.beyond(&change.want, path.key("colors")));
            }
        }
        if problems.len() > before {
            return;
        }
        if let Err(conflict) = colors::partitions(self.programs, self.policy, self.colors) {
            let asked = colors::owned(&self.programs[conflict.program], self.policy);
            problems.push(Problem {
                path: self.written(conflict.program),
                value: asked.map(|asked| format!("\"{asked}\"")),
                says: format!("policy \"{}\": {}", self.policy.name, conflict.why),
            });
        }
    }

    /// Where a program's colors are written.
    fn written(&self, program: usize) -> KeyPath {
        let name = &self.programs[program].name;
        let changed = self
            .experiment
            .policy
            .iter()
            .find(|p| p.name == self.policy.name);
        match changed.and_then(|policy| policy.colors.get(name)) {
            Some(PolicyColors::None | PolicyColors::Asks(..) | PolicyColors::Parts(..)) => {
                self.at.key("colors").key(name)
            }
            None => KeyPath::of("program").item(program).key("colors"),
        }
    }

    /// Colors that the machine does not have.
    fn beyond(&self, asked: &ColorAsk, path: KeyPath) -> Option<Problem> {
        let is_beyond = match asked {
            ColorAsk::Exactly(set) => set.iter().any(|c| u32::from(c.0) >= self.colors),
            ColorAsk::Count(n) => *n > self.colors,
            ColorAsk::Share(_) => false,
        };
        let under = match self.policy.color_map {
            Some(_) => format!(" under policy \"{}\"", self.policy.name),
            None => String::new(),
        };
        let allowed = format!("colors of this machine{under}, 0-{}", self.colors - 1);
        is_beyond.then(|| Problem::refuse(path, format!("\"{asked}\""), allowed))
    }
}
