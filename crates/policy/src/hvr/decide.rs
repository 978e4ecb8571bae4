//! The rules and the policy decision tree (sections 5.1, 5.2 and 8).

use core::fmt;

use super::{
    class::Class,
    config::{BankGroups, Config, FewMiddle, Framework, Mixed},
    scheme::Policy,
};

/// How many programs of each kind run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Mix {
    /// Single-threaded programs by [`Class`], CCF first.
    pub classes: [u32; 4],
    /// Single-threaded programs without a class yet.
    pub unknown: u32,
    /// Programs of several threads.
    pub threaded: u32,
}

impl Mix {
    /// Programs of a class.
    pub fn of(&self, class: Class) -> u32 {
        self.classes.get(class as usize).copied().unwrap_or(0)
    }

    /// Single-threaded programs.
    pub fn single(&self) -> u32 {
        let classes = self.classes.iter();
        classes.fold(self.unknown, |sum, n| sum.saturating_add(*n))
    }

    /// All programs.
    pub fn programs(&self) -> u32 {
        self.single().saturating_add(self.threaded)
    }

    /// The count that a program belongs to.
    pub(super) fn count_of(&mut self, class: Option<Class>, threads: u32) -> &mut u32 {
        if threads > 1 {
            return &mut self.threaded;
        }
        let known = class.and_then(|c| self.classes.get_mut(c as usize));
        known.unwrap_or(&mut self.unknown)
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for class in Class::ALL.iter().rev() {
            write!(f, "{} {class}, ", self.of(*class))?;
        }
        write!(f, "{} new, {} threaded", self.unknown, self.threaded)
    }
}

/// Why a policy was decided for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum Rule {
    /// No rule speaks: no classified programs, only CCF, or only LLCT. Bank-only, with
    /// which HVR starts: only LLCTs gain less than 1 % by parts of the cache, only CCFs
    /// nothing (section 5.2).
    #[default]
    Start,
    /// Rule 1: LLCT beside others. A-VP for few programs, C-VP for more, Curve-VP in HVR.
    One,
    /// Rule 2: LLCH without LLCT. Bank-only.
    Two,
    /// Rule 3: many programs, LLCM without LLCT and LLCH. B-VP.
    Three,
    /// As rule 3 with few programs: see [`FewMiddle`].
    Modest,
    /// Rule 4: several threads. Random.
    Four,
    /// CCF dominate many programs without LLCT (section 8): apart from LLCH and LLCM.
    Fitting,
    /// The framework has one policy for all.
    Fixed,
}

/// What the tree says for a mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What is partitioned.
    pub policy: Policy,
    /// Why.
    pub rule: Rule,
    /// CCF programs have a cache region of their own (section 8).
    pub segregate: bool,
}

impl Decision {
    const fn plain(policy: Policy, rule: Rule) -> Self {
        Self {
            policy,
            rule,
            segregate: false,
        }
    }
}

/// Figure 10, from the rules and their priority. Programs without a class lead to no
/// rule, and count where the number of programs does.
pub fn decide(mix: &Mix, config: &Config) -> Decision {
    if let Framework::Fixed(policy) = config.framework {
        return Decision::plain(policy, Rule::Fixed);
    }
    let is_alone = config.mixed == Mixed::Alone && mix.single() > 0;
    if mix.threaded > 0 && !is_alone {
        return Decision::plain(Policy::Random, Rule::Four);
    }
    match config.framework {
        Framework::Static | Framework::Fixed(_) => without_coalescing(mix, config),
        Framework::Curve => Decision {
            policy: Policy::CurveVp,
            rule: Rule::Fixed,
            segregate: is_fitting(mix, config),
        },
        Framework::Coalescing | Framework::Hvr => with_coalescing(mix, config),
    }
}

/// Section 7.3: "A-VP for 4-programmed workloads and B/C-VP for 8-programmed workloads
/// based on the PDT". It partitions the cache whatever the programs want.
fn without_coalescing(mix: &Mix, config: &Config) -> Decision {
    let policy = match (mix.single() > config.few, mix.of(Class::Llct)) {
        (false, _) => Policy::AVp,
        (true, 0) => Policy::BVp,
        (true, _) => Policy::CVp,
    };
    Decision::plain(policy, Rule::Fixed)
}

fn with_coalescing(mix: &Mix, config: &Config) -> Decision {
    let [ccf, llcm, llch, llct] = mix.classes;
    let is_many = mix.single() > config.few;
    let wants_cache = llcm > 0 || llch > 0;
    let segregate = is_fitting(mix, config) && wants_cache;
    let vertical = match (config.framework, is_many || segregate) {
        (Framework::Hvr, _) => Policy::CurveVp,
        (_, true) => Policy::CVp,
        (_, false) => Policy::AVp,
    };
    let apart = |rule| Decision {
        policy: vertical,
        rule,
        segregate,
    };
    match () {
        () if llct > 0 && (wants_cache || ccf > 0) => apart(Rule::One),
        () if segregate => apart(Rule::Fitting),
        () if llct == 0 && llch > 0 => bank_only(is_many, config, Rule::Two),
        () if llct == 0 && llcm > 0 && is_many => Decision::plain(Policy::BVp, Rule::Three),
        () if llct == 0 && llcm > 0 => match config.few_middle {
            FewMiddle::BankOnly => bank_only(is_many, config, Rule::Modest),
            FewMiddle::AVp => Decision::plain(Policy::AVp, Rule::Modest),
        },
        () => bank_only(is_many, config, Rule::Start),
    }
}

fn bank_only(is_many: bool, config: &Config, rule: Rule) -> Decision {
    let is_eight = is_many && config.bank_groups == BankGroups::ByPrograms;
    match is_eight {
        true => Decision::plain(Policy::BankOnly8, rule),
        false => Decision::plain(Policy::BankOnly4, rule),
    }
}

/// "More than half of the applications are CCF in the workload", and there are many.
fn is_fitting(mix: &Mix, config: &Config) -> bool {
    let programs = mix.single();
    let ccf = u64::from(mix.of(Class::Ccf));
    programs >= config.segregate_from && ccf.saturating_mul(2) > u64::from(programs)
}
