//! HVR written straight from section 5 and the room's list of what the paper leaves open:
//! plain vectors, parts as sets of x-Buddy's 32 colours, everything looked at each time.

use std::collections::{BTreeMap, BTreeSet};

use piebald_policy::hvr::{
    BankGroups, Class, Config, FewMiddle, Framework, Mixed, OtherRegions, Policy, Reach, Rule,
    Spare, Zone,
};

pub type Colors = BTreeSet<u16>;

#[derive(Clone, Debug, PartialEq)]
pub struct SlowProgram {
    pub task: u32,
    pub threads: u32,
    pub class: Option<Class>,
    pub reach: Reach,
    pub zone: Zone,
    home: Option<usize>,
    pub lots: BTreeSet<usize>,
    pub colors: Colors,
}

/// Which part each zone has, as lots.
type Zones = BTreeMap<Zone, Vec<Colors>>;

pub struct Slow {
    config: Config,
    /// In the order of arrival.
    pub programs: Vec<SlowProgram>,
    pub policy: Policy,
    pub rule: Rule,
    zones: Zones,
}

/// Region of a colour: bits 16, 15, 14.
fn region(c: u16) -> u16 {
    c & 7
}

/// Sub-group: bits 22, 21.
fn sub_group(c: u16) -> u16 {
    c >> 3
}

/// Colours in groups by a function.
fn grouped(groups: u16, of: impl Fn(u16) -> u16) -> Vec<Colors> {
    let group = |g| (0..32).filter(|c| of(*c) == g).collect();
    (0..groups).map(group).collect()
}

fn together(lots: &[Colors]) -> Vec<Colors> {
    vec![lots.iter().flatten().copied().collect()]
}

impl Slow {
    pub fn new(config: Config) -> Self {
        let mut slow = Self {
            config,
            programs: vec![],
            policy: Policy::Shared,
            rule: Rule::Start,
            zones: Zones::new(),
        };
        slow.plan();
        slow
    }

    fn single(&self) -> impl Iterator<Item = &SlowProgram> {
        self.programs.iter().filter(|p| p.threads == 1)
    }

    fn number(&self, class: Class) -> usize {
        self.single().filter(|p| p.class == Some(class)).count()
    }

    fn is_many(&self) -> bool {
        self.single().count() > self.config.few as usize
    }

    /// Section 8: many programs, and more than half are CCF.
    fn ccf_dominate(&self) -> bool {
        let n = self.single().count();
        n >= self.config.segregate_from as usize && 2 * self.number(Class::Ccf) > n
    }

    fn others(&self) -> bool {
        self.number(Class::Llch) + self.number(Class::Llcm) > 0
    }

    /// The rules in the order of their priority.
    fn decide(&self) -> (Policy, Rule, bool) {
        if let Framework::Fixed(policy) = self.config.framework {
            return (policy, Rule::Fixed, false);
        }
        let threaded = self.programs.iter().any(|p| p.threads > 1);
        let alone = self.single().count() == 0;
        if threaded && (self.config.mixed == Mixed::Everyone || alone) {
            return (Policy::Random, Rule::Four, false);
        }
        let has = |class| self.number(class) > 0;
        let apart = self.ccf_dominate();
        match self.config.framework {
            Framework::Curve => return (Policy::CurveVp, Rule::Fixed, apart),
            Framework::Static => {
                let policy = match () {
                    () if !self.is_many() => Policy::AVp,
                    () if has(Class::Llct) => Policy::CVp,
                    () => Policy::BVp,
                };
                return (policy, Rule::Fixed, false);
            }
            Framework::Coalescing | Framework::Hvr | Framework::Fixed(_) => {}
        }
        let apart = apart && self.others();
        let vertical = match () {
            () if self.config.framework == Framework::Hvr => Policy::CurveVp,
            () if self.is_many() || apart => Policy::CVp,
            () => Policy::AVp,
        };
        let eight = self.is_many() && self.config.bank_groups == BankGroups::ByPrograms;
        let bank_only = if eight {
            Policy::BankOnly8
        } else {
            Policy::BankOnly4
        };
        if has(Class::Llct) && (self.others() || has(Class::Ccf)) {
            (vertical, Rule::One, apart)
        } else if apart {
            (vertical, Rule::Fitting, true)
        } else if has(Class::Llct) {
            (bank_only, Rule::Start, false)
        } else if has(Class::Llch) {
            (bank_only, Rule::Two, false)
        } else if has(Class::Llcm) && self.is_many() {
            (Policy::BVp, Rule::Three, false)
        } else if has(Class::Llcm) {
            let policy = match self.config.few_middle {
                FewMiddle::BankOnly => bank_only,
                FewMiddle::AVp => Policy::AVp,
            };
            (policy, Rule::Modest, false)
        } else {
            (bank_only, Rule::Start, false)
        }
    }

    fn zones(&self, policy: Policy, rule: Rule, apart: bool) -> Zones {
        let cells = match policy {
            // x-Buddy has one C-bit, 16.
            Policy::CacheOnly => grouped(2, |c| c >> 2 & 1),
            Policy::BankOnly4 => grouped(4, sub_group),
            // Bits 15, 22, 21.
            Policy::BankOnly8 => grouped(8, |c| (c >> 1 & 1) << 2 | sub_group(c)),
            Policy::AVp => grouped(4, |c| c & 3),
            // Bits 22, 15, 14.
            Policy::BVp => grouped(8, |c| (c >> 4) << 2 | c & 3),
            Policy::CVp => grouped(8, region),
            Policy::CurveVp => return self.curve(apart),
            _ => vec![(0..32).collect()],
        };
        let last = cells.len() - 1;
        let small = usize::from(self.config.small_region) % cells.len();
        match rule {
            Rule::One => {
                let top = if small == last { last - 1 } else { last };
                let is_rest = |i: &usize| *i != small && !(apart && *i == top);
                let rest: Vec<_> = (0..=last)
                    .filter(is_rest)
                    .map(|i| cells[i].clone())
                    .collect();
                let mut zones = Zones::from([
                    (Zone::Small, vec![cells[small].clone()]),
                    (Zone::Large, together(&rest)),
                ]);
                if apart {
                    zones.insert(Zone::Fitting, vec![cells[top].clone()]);
                }
                zones
            }
            Rule::Fitting => {
                let top = if small == last { last - 1 } else { last };
                let rest: Vec<_> = (0..=last)
                    .filter(|i| *i != top)
                    .map(|i| cells[i].clone())
                    .collect();
                Zones::from([
                    (Zone::Fitting, vec![cells[top].clone()]),
                    (Zone::Large, together(&rest)),
                ])
            }
            Rule::Three | Rule::Modest
                if policy != Policy::BankOnly4
                    && policy != Policy::BankOnly8
                    && self.number(Class::Ccf) > 0 =>
            {
                Zones::from([
                    (Zone::Fitting, vec![cells[last].clone()]),
                    (Zone::Large, cells[..last].to_vec()),
                ])
            }
            _ => Zones::from([(Zone::Large, cells)]),
        }
    }

    /// Figure 11.
    fn curve(&self, apart: bool) -> Zones {
        let small = u16::from(self.config.small_region) % 8;
        let mut rest: Vec<u16> = (0..8).filter(|r| *r != small).collect();
        if self.config.other_regions == OtherRegions::Left {
            // The bank group is what bits 15 and 14 name.
            rest.retain(|r| r & 3 != small & 3);
        }
        let fitting = if apart { rest.pop() } else { None };
        let lots = |regions: &[u16]| -> Vec<Colors> {
            let lot =
                |s| (0..32).filter(move |c| sub_group(*c) == s && regions.contains(&region(*c)));
            (0..4).map(|s| lot(s).collect()).collect()
        };
        let mut zones = Zones::from([(Zone::Small, lots(&[small])), (Zone::Large, lots(&rest))]);
        if let Some(fitting) = fitting {
            zones.insert(Zone::Fitting, lots(&[fitting]));
        }
        zones
    }

    fn zone_of(&self, p: &SlowProgram, zones: &Zones) -> Zone {
        let wish = match p.class {
            _ if p.threads > 1 => Zone::Large,
            Some(Class::Llct) => Zone::Small,
            Some(Class::Ccf) => Zone::Fitting,
            None if self.policy == Policy::CurveVp => Zone::Small,
            _ => Zone::Large,
        };
        match zones.contains_key(&wish) {
            true => wish,
            false => Zone::Large,
        }
    }

    /// After each event. Returns the tasks whose colours changed.
    pub fn plan(&mut self) -> BTreeSet<u32> {
        let (policy, rule, apart) = self.decide();
        (self.policy, self.rule) = (policy, rule);
        let zones = self.zones(policy, rule, apart);
        let is_same = zones == self.zones;
        let before = self.programs.clone();
        for i in 0..self.programs.len() {
            let zone = self.zone_of(&self.programs[i], &zones);
            let p = &mut self.programs[i];
            if !is_same || zone != p.zone {
                p.lots.clear();
            }
            p.zone = zone;
        }
        for (zone, lots) in &zones {
            self.deal(*zone, lots);
        }
        self.zones = zones;
        let pairs = before.iter().zip(&self.programs);
        let other = pairs.filter(|(old, new)| old.colors != new.colors);
        other.map(|(_, new)| new.task).collect()
    }

    fn deal(&mut self, zone: Zone, lots: &[Colors]) {
        let members: Vec<usize> = (0..self.programs.len())
            .filter(|i| self.programs[*i].zone == zone)
            .collect();
        let (dealt, whole): (Vec<_>, Vec<_>) = members
            .into_iter()
            .partition(|i| self.programs[*i].threads == 1);
        let mut homes = vec![0; lots.len()];
        let mut homeless = vec![];
        for i in &dealt {
            let wish = self.programs[*i].home.map(|h| h % lots.len());
            match wish {
                Some(h) if self.may_stay(h, &homes, dealt.len()) => {
                    homes[h] += 1;
                    self.programs[*i].home = Some(h);
                }
                _ => homeless.push(*i),
            }
        }
        for i in homeless {
            let least = *homes.iter().min().unwrap();
            let h = homes.iter().position(|n| *n == least).unwrap();
            homes[h] += 1;
            self.programs[i].home = Some(h);
        }
        let mut new: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
        for i in &dealt {
            new.insert(*i, BTreeSet::from([self.programs[*i].home.unwrap()]));
        }
        let spare = (0..lots.len()).filter(|h| homes[*h] == 0);
        for lot in spare.filter(|_| self.config.spare == Spare::Lent) {
            let has = |i: usize| self.programs[i].lots.contains(&lot);
            let best = new.iter().map(|(i, own)| (own.len(), !has(*i), *i)).min();
            if let Some((_, _, i)) = best {
                new.get_mut(&i).unwrap().insert(lot);
            }
        }
        for (i, own) in new {
            self.programs[i].lots = own;
        }
        // One of several threads has lots of nobody's.
        whole.iter().for_each(|i| self.programs[*i].lots.clear());
        for i in dealt.into_iter().chain(whole) {
            let p = &mut self.programs[i];
            let own = |h: &usize| p.reach != Reach::Lot || p.threads > 1 || p.lots.contains(h);
            let own = (0..lots.len()).filter(own);
            p.colors = own.flat_map(|h| lots[h].clone()).collect();
            if p.reach == Reach::All {
                p.colors = (0..32).collect();
            }
        }
    }

    /// Can everyone else still be placed so that no two lots differ by more than one?
    fn may_stay(&self, h: usize, homes: &[usize], programs: usize) -> bool {
        let mut with = homes.to_vec();
        with[h] += 1;
        let even = programs / homes.len();
        let above = with.iter().filter(|n| **n > even).count();
        with[h] <= even + 1 && above <= programs % homes.len()
    }

    pub fn arrive(&mut self, task: u32, threads: u32, class: Option<Class>) -> BTreeSet<u32> {
        self.programs.push(SlowProgram {
            task,
            threads,
            class,
            reach: Reach::Lot,
            zone: Zone::Large,
            home: None,
            lots: BTreeSet::new(),
            colors: Colors::new(),
        });
        self.plan()
    }

    pub fn exit(&mut self, task: u32) -> BTreeSet<u32> {
        self.programs.retain(|p| p.task != task);
        self.plan()
    }

    pub fn change(&mut self, task: u32, how: impl FnOnce(&mut SlowProgram)) -> BTreeSet<u32> {
        let p = self.programs.iter_mut().find(|p| p.task == task);
        how(p.unwrap());
        self.plan()
    }
}
