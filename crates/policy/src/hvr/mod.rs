//! HVR: what kind of program this is, and how a mix of programs is partitioned.
//!
//! Source: L. Liu, Y. Li, C. Ding, H. Yang, C. Wu, "Rethinking Memory Management in Modern
//! Operating System: Horizontal, Vertical or Random?", IEEE Transactions on Computers.
//! Three parts: *SysMon* watches programs and classifies them (section 4), the *rules*
//! decide (section 5), and *x-Buddy* hands out frames (section 6), which is `buddy` over a
//! colour map with the paper's bits.
//!
//! Vocabulary: a *B-bit* of a colour selects banks, a *C-bit* cache sets, an *O-bit* both.
//! *Horizontal* partitioning divides cache or banks, *vertical* (VP) both by O-bits,
//! *random* neither. A *region* is a part of the cache, a *bank group* what O-bits divide
//! banks into, a *sub-group* a part of these by B-bits. *Hot* pages are those used in a
//! short window; *WPD* is the weighted page distribution; *re-use time* counts passes of
//! a sampler. *Coalesced* programs share one part. Ours: a *cell* is the colours that a
//! policy does not tell apart; a *zone* is programs that are treated alike; a *lot* is the
//! cells that a zone deals out at a time; a *home* is the lot that is a program's own.
//!
//! # What is decided here
//!
//! 1. The class of a program ([`Class`]), from hot pages (JOB1), from how often and how
//!    soon again pages are used ([`Sampler`], JOB2), and by Figure 7 ([`Thresholds`]). Hosts that
//!    can measure what less of the cache costs know more ([`Borders`], ours).
//! 2. The policy for the mix ([`decide()`], [`Rule`]), whenever a program begins, ends, or is
//!    found to be of another class.
//! 3. The colours of each program ([`Manager::program`]), and which of its pages move
//!    when they are touched next ([`Manager::touched`]).
//!
//! # Driving it
//!
//! ```
//! use piebald_policy::color_map::{BitClass, ColorMap};
//! use piebald_policy::hvr::{Arrival, Class, Config, Manager, Policy, Program};
//! use piebald_units::{Color, TaskId};
//!
//! // Address bits 14 and 15 (O), 16 (C), 21 and 22 (B): 32 colours.
//! let bits = [(2, BitClass::Both), (3, BitClass::Both), (4, BitClass::Cache),
//!     (9, BitClass::Bank), (10, BitClass::Bank)];
//! let map = ColorMap::from_masks(&bits.map(|(bit, class)| (1 << bit, class)))?;
//! let slots = vec![Program::EMPTY; 8];
//! let mut hvr = Manager::new(map, slots, Config::PAPER)?;
//!
//! let (mcf, first) = hvr.arrive(&Arrival::of(TaskId(1)))?;
//! assert_eq!(first.policy, Policy::BankOnly4);
//! // SysMon's windows say this; see `Manager::window`.
//! hvr.declare(mcf, Some(Class::Llch))?;
//!
//! let (libquantum, _) = hvr.arrive(&Arrival::of(TaskId(2)))?;
//! let change = hvr.declare(libquantum, Some(Class::Llct))?;
//! assert_eq!((change.policy, change.programs), (Policy::CurveVp, 2));
//! // One eighth of the cache for the one that has no use for it.
//! assert_eq!(hvr.program(libquantum)?.colors().to_string(), "0,8,16,24");
//! assert_eq!(hvr.program(mcf)?.colors().len(), 4 * 7);
//! // A page that lies elsewhere moves when it is touched.
//! assert!(hvr.touched(mcf, Color(8))?.is_some());
//! assert!(hvr.touched(mcf, Color(9))?.is_none());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What the paper leaves open
//!
//! * *Thresholds.* The sentence in section 4.3 that gives them is torn; they are read as
//!   re-use time 20, CCF 100 pages, hot frequency 10 %, LLCH 1000 pages.
//! * *Low WPD.* Where that exit of Figure 7 leads is lost ([`LowLocality`]).
//! * *Re-use time* of a page that is not used again, and which pages are watched at all:
//!   [`NeverReused`], [`Watched`]. The time depends on footprint and speed; a scan of 64 MB
//!   comes round in 40 passes on a fast machine. The threshold is a parameter.
//! * *Averages* are over three windows that ran; WPD is the last window's. A window in
//!   which the program slept tells nothing; one without a page may also mean that the
//!   processor had all translations ([`Unseen`]).
//! * *WPD <= 10 %* cannot hold for a program with any page that is used often, as the least
//!   weight is 0.1: [`Thresholds::hot_freq_bp`] has a margin.
//! * *Programs that change class in every window* would be moved for ever; see
//!   [`Profile`].
//! * *The tree* (Figure 10) is not readable; it is made from rules 1 to 4 and their order.
//!   Few programs with LLCM, without LLCT and LLCH, keep bank-only ([`FewMiddle`]), as do
//!   only LLCT or only CCF. Programs that are not classified yet trigger no rule.
//! * *Rules 3 and 5* contradict each other for LLCMs. Rule 3 was found without sharing, and
//!   section 7.3 says of such workloads that HVR finds the partition that SVP has:
//!   each LLCM has its quota, CCFs share one.
//! * *Bank-Only (8)* of Table 1 halves the cache, against "share the entire cache": HVR has
//!   four groups ([`BankGroups`]).
//! * *Region 100* lies in the bank group of region 000 ([`OtherRegions`]).
//! * *More programs than lots*: lots are shared, as evenly as can be. Fewer: [`Spare`].
//! * *Threads beside single-threaded programs*: [`Mixed`].
//! * *Colours that are used up*: requests take others, counted by the allocator, unless
//!   [`Config::mode`] binds them; or the host widens the program's [`Reach`].
//! * *L2.* The paper says that only bits 12 and 13 index the private L2, so that its colours
//!   leave it whole. With 512 sets bit 14 does too: A-, B-, C- and Curve-VP halve it.
//!
//! # Odd input
//!
//! Calls for a program that has left say [`Gone`]; an id is never used again, so a window
//! that ends after its program is refused, not believed of another. A sampler begins anew
//! whatever became of its last window. Windows and programs without pages are allowed;
//! pages beyond the lent records are counted and left out. Counters end at their largest
//! value. Policies for which a map has no bits are refused when the manager is made.
//!
//! # Cost
//!
//! `touched` (of a sampler), `hot_pages`, `program`, `prepare` and `touched` (of a page)
//! take a few steps, at most 64 words of a colour set. A window costs a step per page at
//! its begin and end. `arrive` looks at each slot; it, `exit`, and whatever changes a class
//! visit each program as often as its zone has lots, at most 64, and each colour of each
//! program that is recoloured. Nothing allocates, recurses or waits.
//!
//! Memory: 700 B per program, 2 B per page of the program that is being sampled,
//! and half a KiB.
//!
//! # Concurrency
//!
//! *Exclusive* for whoever tells of events; calls that take `&self` may run beside one
//! another. A [`Sampler`] is its user's own.

mod class;
mod config;
mod deal;
mod decide;
mod error;
mod layout;
mod moves;
mod profile;
mod program;
mod sample;
mod sampler;
mod scheme;
mod sensitivity;
pub mod utility;
mod validate;

use core::borrow::Borrow;

pub use class::{Class, Facts, LowLocality, Mean, Thresholds, Wpd};
pub use config::{
    BankGroups, Config, ConfigError, FewMiddle, Framework, Interleave, Mixed, MonitorConfig,
    NeverReused, OtherRegions, Spare, Unseen, Watched,
};
pub use decide::{Decision, Mix, Rule, decide};
pub use error::{Broken, Gone, Refusal};
pub use layout::Zone;
pub use moves::{Estimate, Move, Turn};
pub use profile::{MAX_AVERAGED, Profile};
pub use program::{Arrival, Change, Counters, Program, ProgramId, Reach};
pub use sample::Sample;
pub use sampler::{Distribution, MAX_PASSES, PageRecord, Pass, Sampler, Unfinished, Window};
pub use scheme::{MAX_KEY, Policy, Scheme, SchemeError};
pub use sensitivity::{Borders, Counts, Timed};

use crate::color_map::ColorMap;
use layout::Layout;
use program::{HOMELESS, NIL};

/// Most programs. Give the manager those that matter, not every daemon: each counts in
/// the rules.
pub const MAX_PROGRAMS: usize = 4096;

/// Which programs run, of what class, and in which colours. `M` lends the colour map, `P`
/// is whatever can be seen as a slice of slots.
#[derive(Clone, Debug)]
pub struct Manager<M, P> {
    map: M,
    programs: P,
    config: Config,
    /// The list of programs in the order of arrival.
    first: u16,
    last: u16,
    mix: Mix,
    decision: Decision,
    layout: Layout,
    /// The next stamp; 64 bits do not run out.
    next: u64,
    counters: Counters,
}

impl<M: Borrow<ColorMap>, P: AsRef<[Program]> + AsMut<[Program]>> Manager<M, P> {
    /// A manager without programs.
    ///
    /// # Errors
    /// If a parameter is out of its range, the slots are none or more than
    /// [`MAX_PROGRAMS`], or the map lacks bits for a policy of the framework.
    pub fn new(map: M, mut programs: P, config: Config) -> Result<Self, ConfigError> {
        config.check()?;
        for policy in Policy::ALL {
            if config.may_decide(policy) {
                Scheme::of(map.borrow(), policy)?;
            }
        }
        let lent = programs.as_ref().len();
        if lent == 0 || lent > MAX_PROGRAMS {
            return Err(ConfigError::Slots(lent));
        }
        for program in programs.as_mut() {
            program.threads = 0;
        }
        let mix = Mix::default();
        let decision = decide(&mix, &config);
        let scheme = Scheme::of(map.borrow(), decision.policy)?;
        Ok(Self {
            map,
            programs,
            config,
            first: NIL,
            last: NIL,
            mix,
            decision,
            layout: Layout::of(scheme, &decision, &mix, &config),
            next: 1,
            counters: Counters::default(),
        })
    }

    /// The parameters.
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The colours.
    pub fn map(&self) -> &ColorMap {
        self.map.borrow()
    }

    /// How many programs of each kind there are.
    pub const fn mix(&self) -> &Mix {
        &self.mix
    }

    /// What the rules say for them.
    pub const fn decision(&self) -> Decision {
        self.decision
    }

    /// How cells are told apart now.
    pub const fn scheme(&self) -> &Scheme {
        &self.layout.scheme
    }

    /// What was done.
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// A program.
    ///
    /// # Errors
    /// If it has left.
    pub fn program(&self, id: ProgramId) -> Result<&Program, Gone> {
        self.get(id)
    }

    /// All programs, in the order of arrival.
    pub fn iter(&self) -> impl Iterator<Item = (ProgramId, &Program)> {
        let mut at = self.first;
        core::iter::from_fn(move || {
            let program = self.programs.as_ref().get(usize::from(at))?;
            let (slot, stamp) = (at, program.stamp);
            at = program.after;
            Some((ProgramId { slot, stamp }, program))
        })
    }

    /// The program of a task. Visits each program.
    pub fn find(&self, task: piebald_units::TaskId) -> Option<ProgramId> {
        let mut all = self.iter();
        all.find(|(_, p)| p.task == task).map(|(id, _)| id)
    }

    /// Programs whose colours changed with that event or later: those whose pages are now
    /// to be watched. In the order of arrival.
    pub fn changed_since(&self, stamp: u64) -> impl Iterator<Item = (ProgramId, &Program)> {
        self.iter().filter(move |(_, p)| p.changed >= stamp)
    }

    /// A program begins.
    ///
    /// # Errors
    /// See [`Refusal`]; nothing has changed.
    pub fn arrive(&mut self, arrival: &Arrival) -> Result<(ProgramId, Change), Refusal> {
        if arrival.threads == 0 {
            return Err(Refusal::NoThreads);
        }
        if let Some(id) = self.find(arrival.task) {
            return Err(Refusal::Known(id));
        }
        let slots = self.programs.as_ref().len();
        let stamp = self.stamp();
        let last = self.last;
        let free = (0u16..).zip(self.programs.as_mut());
        let Some((slot, p)) = free.into_iter().find(|(_, p)| p.threads == 0) else {
            return Err(Refusal::NoSlot { slots });
        };
        (p.task, p.threads, p.declared) = (arrival.task, arrival.threads, arrival.class);
        (p.stamp, p.changed) = (stamp, stamp);
        (p.before, p.after) = (last, NIL);
        (p.profile, p.reach) = (arrival.profile, Reach::Lot);
        (p.home, p.lots, p.cells, p.next) = (HOMELESS, 0, 0, 0);
        p.colors.clear();
        let class = p.class();
        match self.programs.as_mut().get_mut(usize::from(last)) {
            Some(before) => before.after = slot,
            None => self.first = slot,
        }
        self.last = slot;
        self.counters.arrived = self.counters.arrived.saturating_add(1);
        let count = self.mix.count_of(class, arrival.threads);
        *count = count.saturating_add(1);
        Ok((ProgramId { slot, stamp }, self.plan()))
    }

    /// A program ends. Its frames go back to the allocator by themselves.
    ///
    /// # Errors
    /// If it has left already.
    pub fn exit(&mut self, id: ProgramId) -> Result<Change, Gone> {
        let p = self.get_mut(id)?;
        let (before, after) = (p.before, p.after);
        let (class, threads) = (p.class(), p.threads);
        p.threads = 0;
        let slots = self.programs.as_mut();
        match slots.get_mut(usize::from(before)) {
            Some(p) => p.after = after,
            None => self.first = after,
        }
        match slots.get_mut(usize::from(after)) {
            Some(p) => p.before = before,
            None => self.last = before,
        }
        self.counters.left = self.counters.left.saturating_add(1);
        let count = self.mix.count_of(class, threads);
        *count = count.saturating_sub(1);
        Ok(self.plan())
    }

    /// A program has so many threads now.
    ///
    /// # Errors
    /// If it has left, or the number is 0.
    pub fn set_threads(&mut self, id: ProgramId, threads: u32) -> Result<Change, Refusal> {
        if threads == 0 {
            return Err(Refusal::NoThreads);
        }
        let change = self.change(id, |p, _| p.threads = threads)?;
        Ok(change)
    }

    /// Says what a program is, whatever its windows say; `None` believes the windows
    /// again.
    ///
    /// # Errors
    /// If it has left.
    pub fn declare(&mut self, id: ProgramId, class: Option<Class>) -> Result<Change, Gone> {
        self.change(id, |p, _| p.declared = class)
    }

    /// How far a program's memory may reach: wider when its colours are used up, or back.
    ///
    /// # Errors
    /// If it has left.
    pub fn set_reach(&mut self, id: ProgramId, reach: Reach) -> Result<Change, Gone> {
        self.change(id, |p, _| p.reach = reach)
    }

    /// JOB1: how many of a program's pages were used in a short window
    /// ([`MonitorConfig::hot_window`]). Changes no class; see [`Profile::hot_pages`].
    ///
    /// # Errors
    /// If it has left.
    pub fn hot_pages(&mut self, id: ProgramId, pages: u32) -> Result<(), Gone> {
        let config = self.config.monitor;
        self.get_mut(id)?.profile.hot_pages(&config, pages);
        Ok(())
    }

    /// JOB2: a window of a program. May change its class, and with it everything.
    ///
    /// # Errors
    /// If it has left.
    pub fn window(&mut self, id: ProgramId, window: &Window) -> Result<Change, Gone> {
        let mut is_new = false;
        let change = self.change(id, |p, config| {
            is_new = p.profile.window(&config.monitor, window);
        })?;
        let found = u64::from(is_new);
        self.counters.classified = self.counters.classified.saturating_add(found);
        Ok(change)
    }

    /// Changes a program and plans anew if that means anything to the rules.
    fn change(
        &mut self,
        id: ProgramId,
        how: impl FnOnce(&mut Program, &Config),
    ) -> Result<Change, Gone> {
        let config = self.config;
        let p = self.get_mut(id)?;
        let before = (p.class(), p.threads, p.reach);
        how(p, &config);
        let after = (p.class(), p.threads, p.reach);
        if before == after {
            return Ok(self.unchanged());
        }
        let count = self.mix.count_of(before.0, before.1);
        *count = count.saturating_sub(1);
        let count = self.mix.count_of(after.0, after.1);
        *count = count.saturating_add(1);
        Ok(self.plan())
    }

    /// Decides for the mix, deals and colours.
    fn plan(&mut self) -> Change {
        let stamp = self.stamp();
        let decision = decide(&self.mix, &self.config);
        // Made already for every policy of the framework, so this does not fail.
        let scheme = Scheme::of(self.map.borrow(), decision.policy).unwrap_or(self.layout.scheme);
        let layout = Layout::of(scheme, &decision, &self.mix, &self.config);
        let is_same = layout == self.layout;
        let is_same_scheme = scheme == self.layout.scheme;
        (self.decision, self.layout) = (decision, layout);
        self.deal(is_same);
        let programs = self.color(stamp, is_same_scheme);
        let counters = &mut self.counters;
        counters.layouts = counters.layouts.saturating_add(u64::from(!is_same));
        counters.recolored = counters.recolored.saturating_add(u64::from(programs));
        Change {
            policy: decision.policy,
            rule: decision.rule,
            is_new_layout: !is_same,
            programs,
            stamp,
        }
    }

    /// The answer to an event that meant nothing.
    const fn unchanged(&mut self) -> Change {
        Change {
            policy: self.decision.policy,
            rule: self.decision.rule,
            is_new_layout: false,
            programs: 0,
            stamp: self.stamp(),
        }
    }

    const fn stamp(&mut self) -> u64 {
        let stamp = self.next;
        self.next = stamp.saturating_add(1);
        stamp
    }

    fn get(&self, id: ProgramId) -> Result<&Program, Gone> {
        let program = self.programs.as_ref().get(usize::from(id.slot));
        program
            .filter(|p| p.stamp == id.stamp && p.threads > 0)
            .ok_or(Gone(id))
    }

    fn get_mut(&mut self, id: ProgramId) -> Result<&mut Program, Gone> {
        let program = self.programs.as_mut().get_mut(usize::from(id.slot));
        program
            .filter(|p| p.stamp == id.stamp && p.threads > 0)
            .ok_or(Gone(id))
    }

    /// Calls `visit` for each program in the order of arrival.
    fn for_each(&mut self, mut visit: impl FnMut(&mut Program)) {
        let mut at = self.first;
        let slots = self.programs.as_mut();
        while let Some(program) = slots.get_mut(usize::from(at)) {
            at = program.after;
            visit(program);
        }
    }
}
