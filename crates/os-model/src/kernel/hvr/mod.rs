//! Programs that HVR manages: it watches them, says what they are, and gives them colours.
//!
//! All decisions are `piebald_policy::hvr`'s. What a host has to add is here: which
//! processes make a program, access bits that are read and cleared in time ([`sysmon`]), and
//! pages that move when they are touched next: a page that lies in colours that are not its
//! program's any more is marked in its page table ([`Entry::HINT`]), so that the next touch
//! is a fault, which moves it and costs what a fault and a copy cost.
//!
//! A program is what [`Kernel::manage`] was called for, with all children. It ends with its
//! last process. Its threads are the tasks of that of its processes that has most.

mod sysmon;

use piebald_policy::{
    color_map::ColorMap,
    contract::Mode,
    hvr::{
        self, Arrival, Change, Class, Manager, Policy, Profile, Program, ProgramId, Reach, Rule,
    },
};
use piebald_units::{Asid, Color, ColorSet, CoreId, Pfn, Picos, TaskId, Vpn};
use serde::{Deserialize, Serialize};

use super::{
    Action, Actions, Kernel, KernelError, Move, Moved, Path, Process, colors::Colors, fault::Site,
    mapping::Caller,
};
use crate::space::{Entry, HUGE_PAGES, VPN_MASK, frame_in};

use sysmon::SysMon;
pub use sysmon::{Observation, Observed, SysMonConfig};

/// The manager of programs, as this host keeps it.
pub type HvrManager = Manager<ColorMap, Vec<Program>>;

/// Programs that can be managed at a time.
const SLOTS: usize = 256;

/// What is known of a program that is handed over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing: it is watched, if programs are.
    Nothing,
    /// Its class, from elsewhere: it is not watched.
    Class(Class),
    /// What was found of an earlier process of the same program: it is watched on.
    Found(Profile),
}

/// What happened to a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum What {
    /// It began.
    Arrived,
    /// Its last process ended.
    Left,
    /// It was found, or declared, to be of this class.
    Class(Class),
    /// It has so many threads now.
    Threads(u32),
    /// Its colours were used up; it may have those of others, too.
    Widened,
}

/// An event that HVR decided upon, and who has which colours since.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HvrEvent {
    /// When.
    pub time: Picos,
    /// The program, by the number that it was started with.
    pub program: u16,
    /// What happened to it.
    pub what: What,
    /// The policy that holds since.
    pub policy: Policy,
    /// Why.
    pub rule: Rule,
    /// Number, class and colours of each program that runs, in the order of arrival.
    pub programs: Vec<(u16, Option<Class>, ColorSet)>,
}

/// What the kernel keeps for HVR.
#[derive(Clone)]
pub(crate) struct Vertical {
    pub manager: HvrManager,
    /// Numbers of the programs, as the kernel counts them.
    numbers: Vec<(ProgramId, u16)>,
    events: Vec<HvrEvent>,
    monitor: Option<SysMon>,
    now: Picos,
}

impl Vertical {
    pub fn new(map: &ColorMap, config: hvr::Config) -> Result<Self, KernelError> {
        let slots = vec![Program::EMPTY; SLOTS];
        let manager = Manager::new(map.clone(), slots, config).map_err(KernelError::Hvr)?;
        Ok(Self {
            manager,
            numbers: Vec::new(),
            events: Vec::new(),
            monitor: None,
            now: Picos(0),
        })
    }

    fn number(&self, id: ProgramId) -> u16 {
        let known = self.numbers.iter().find(|(of, _)| *of == id);
        known.map_or(0, |(_, number)| *number)
    }

    fn note(&mut self, program: u16, what: What) {
        let decision = self.manager.decision();
        let programs = self.manager.iter();
        let programs = programs.map(|(id, p)| (self.number(id), p.class(), p.colors().clone()));
        self.events.push(HvrEvent {
            time: self.now,
            program,
            what,
            policy: decision.policy,
            rule: decision.rule,
            programs: programs.collect(),
        });
    }
}

impl Kernel {
    /// Hands a task's process over to HVR, with all its children from now on. Pages that it
    /// has already move when they are touched.
    ///
    /// # Errors
    /// No such task, a kernel without HVR, or a process that has reserved colours or is
    /// managed already.
    pub fn manage(
        &mut self,
        task: TaskId,
        core: CoreId,
        known: Known,
        actions: &mut Actions,
    ) -> Result<ProgramId, KernelError> {
        let process = self.process_of(task)?;
        let c = Caller {
            task,
            core,
            process,
        };
        self.check_unmanaged(c, "manage")?;
        let p = self.process(process);
        if p.partition.is_some() {
            return Err(KernelError::Managed {
                task,
                call: "manage",
                has: "has reserved colors",
            });
        }
        let (number, threads) = (p.program, p.tasks);
        let Some(vertical) = self.vertical_mut() else {
            return Err(KernelError::NoHvr { task });
        };
        let (class, profile) = match known {
            Known::Nothing => (None, Profile::NEW),
            Known::Class(class) => (Some(class), Profile::NEW),
            Known::Found(profile) => (None, profile),
        };
        let arrival = Arrival {
            task,
            threads,
            class,
            profile,
        };
        let arrived = vertical.manager.arrive(&arrival);
        let (id, change) = arrived.map_err(|why| KernelError::Manage { task, why })?;
        vertical.numbers.push((id, number));
        if class.is_none() {
            vertical.watch(id);
        }
        self.process_mut(process).managed = Some(id);
        self.apply(c, &change, (number, What::Arrived), actions);
        Ok(id)
    }

    /// The manager of programs, if there is one.
    pub fn hvr(&self) -> Option<&HvrManager> {
        self.vertical().map(|v| &v.manager)
    }

    /// What HVR decided, in order.
    pub fn hvr_events(&self) -> &[HvrEvent] {
        self.vertical().map_or(&[], |v| &v.events)
    }

    /// The program that a task's process is to HVR.
    ///
    /// # Errors
    /// [`KernelError::NoSuchTask`].
    pub fn managed(&self, task: TaskId) -> Result<Option<ProgramId>, KernelError> {
        Ok(self.process(self.process_of(task)?).managed)
    }

    pub(super) fn set_hvr_time(&mut self, now: Picos) {
        if let Some(vertical) = self.vertical_mut() {
            vertical.now = vertical.now.max(now);
        }
    }

    fn vertical(&self) -> Option<&Vertical> {
        self.colors.as_ref()?.vertical.as_deref()
    }

    fn vertical_mut(&mut self) -> Option<&mut Vertical> {
        self.colors.as_mut()?.vertical.as_deref_mut()
    }

    /// The colours that HVR gives a process.
    pub(super) fn lot_of(&self, process: &Process) -> Option<&ColorSet> {
        let program = self.vertical()?.manager.program(process.managed?);
        program.ok().map(Program::colors)
    }

    /// Refuses a call of a process whose colours HVR decides.
    pub(super) fn check_unmanaged(&self, c: Caller, call: &'static str) -> Result<(), KernelError> {
        match self.process(c.process).managed {
            None => Ok(()),
            Some(_) => Err(KernelError::Managed {
                task: c.task,
                call,
                has: "is managed by HVR",
            }),
        }
    }

    /// A process has got or lost a thread.
    pub(super) fn count_threads(&mut self, c: Caller, actions: &mut Actions) {
        let process = self.processes.get(c.process).and_then(Option::as_ref);
        if let Some(id) = process.and_then(|p| p.managed) {
            self.recount(c, id, actions);
        }
    }

    /// One of a program's processes, or of their tasks, has ended.
    pub(super) fn leave_hvr(&mut self, c: Caller, id: ProgramId, actions: &mut Actions) {
        let mut live = self.processes.iter().flatten();
        if live.any(|p| p.managed == Some(id)) {
            return self.recount(c, id, actions);
        }
        let Some(vertical) = self.vertical_mut() else {
            return;
        };
        let number = vertical.number(id);
        let left = vertical.manager.exit(id);
        vertical.numbers.retain(|(of, _)| *of != id);
        vertical.unwatch(id);
        debug_assert!(left.is_ok(), "a managed process has a program");
        if let Ok(change) = left {
            self.apply(c, &change, (number, What::Left), actions);
        }
    }

    /// Tells the manager how many threads a program has.
    fn recount(&mut self, c: Caller, id: ProgramId, actions: &mut Actions) {
        let live = self.processes.iter().flatten();
        let mine = live.filter(|p| p.managed == Some(id));
        let threads = mine.map(|p| p.tasks).max().unwrap_or(0).max(1);
        let Some(vertical) = self.vertical_mut() else {
            return;
        };
        let known = vertical.manager.program(id).map(Program::threads);
        if known == Ok(threads) {
            return;
        }
        let number = vertical.number(id);
        if let Ok(change) = vertical.manager.set_threads(id, threads) {
            self.apply(c, &change, (number, What::Threads(threads)), actions);
        }
    }

    /// The colours that bind a program are used up: it may reach further. False if it does
    /// already.
    pub(super) fn widen(&mut self, id: ProgramId) -> bool {
        let Some(vertical) = self.vertical_mut() else {
            return false;
        };
        let wider = match vertical.manager.program(id).map(Program::reach) {
            Ok(Reach::Lot) => Reach::Zone,
            Ok(Reach::Zone) => Reach::All,
            _ => return false,
        };
        let number = vertical.number(id);
        // Nobody loses a colour by it: there is nothing to mark.
        let is_wider = vertical.manager.set_reach(id, wider).is_ok();
        vertical.note(number, What::Widened);
        is_wider
    }

    /// Notes an event, and marks the pages of those whose colours changed with it.
    fn apply(
        &mut self,
        c: Caller,
        change: &Change,
        (number, what): (u16, What),
        actions: &mut Actions,
    ) {
        self.charge(Path::Colors, c.core, None, actions);
        let Some(vertical) = self.vertical_mut() else {
            return;
        };
        vertical.note(number, what);
        let changed: Vec<(ProgramId, ColorSet)> = (vertical.manager)
            .changed_since(change.stamp)
            .map(|(id, p)| (id, p.colors().clone()))
            .collect();
        for (id, set) in changed {
            for process in 0..self.processes.len() {
                let found = self.processes[process].as_ref();
                if found.is_some_and(|p| p.managed == Some(id)) {
                    self.mark(process, &set, actions);
                }
            }
        }
    }

    /// Marks pages outside a set of colours, so that they are seen when they are touched, and
    /// takes the mark from those inside.
    fn mark(&mut self, process: usize, set: &ColorSet, actions: &mut Actions) {
        let (Some(colors), Some(p)) = (&self.colors, self.processes[process].as_mut()) else {
            return;
        };
        let (mut looked, mut marked) = (0u32, false);
        let end = Vpn(VPN_MASK + 1);
        p.space.tables.visit(Vpn(0), end, &mut |_, e, level| {
            looked += 1;
            let is_private = e.flags() & (Entry::CACHED | Entry::ZERO) == 0;
            let is_outside = !set.contains(color(colors, e.frame()));
            match is_private && level == 0 && is_outside {
                true => {
                    marked |= !e.has(Entry::HINT);
                    e.with(Entry::HINT)
                }
                false => e.without(Entry::HINT),
            }
        });
        actions.instrs(self.config.costs.per_scan_instrs.saturating_mul(looked));
        if marked {
            p.space.epoch = p.space.epoch.wrapping_add(1);
            let asid = Asid(process as u32 + 1);
            actions.push(Action::ShootDown { asid, page: None });
        }
    }

    /// A page that is marked is touched: it moves, if it may, and loses its mark. False if it
    /// is not marked.
    pub(super) fn follow(&mut self, s: Site, actions: &mut Actions) -> Result<bool, KernelError> {
        let p = self.process(s.process);
        let managed = p.managed;
        let Some((e, level)) = p.space.tables.lookup(s.vpn) else {
            return Ok(false);
        };
        if !e.has(Entry::HINT) {
            return Ok(false);
        }
        let pages = if level == 1 { HUGE_PAGES } else { 1 };
        self.replace(s, e.without(Entry::HINT), pages);
        let frame = frame_in(e, level, s.vpn);
        let Some((colors, id)) = self.colors.as_mut().zip(managed) else {
            return Ok(true);
        };
        let from = color(colors, frame);
        let Some(vertical) = &mut colors.vertical else {
            return Ok(true);
        };
        // Its colours may have come back since it was marked.
        let Ok(Some(wanted)) = vertical.manager.touched(id, from) else {
            return Ok(true);
        };
        let program = vertical.manager.program(id);
        let allowed = program.map(|p| p.colors().clone()).unwrap_or_default();
        let target = Move {
            allowed: Some(&allowed),
            wish: Some(wanted.to),
            mode: Mode::Hard,
        };
        match self.move_page(s.caller(), s.vpn, target, actions) {
            Ok(Moved::Done { .. }) => self.counters.followed += 1,
            Ok(Moved::NotMapped | Moved::Shared) | Err(KernelError::OutOfMemory(_)) => {
                self.counters.follow_failed += 1;
                if let Some(vertical) = self.vertical_mut() {
                    vertical.manager.not_moved();
                }
            }
            Err(other) => return Err(other),
        }
        Ok(true)
    }
}

/// The colour of a frame.
fn color(colors: &Colors, frame: u32) -> Color {
    colors.map.color(Pfn(u64::from(frame)))
}
