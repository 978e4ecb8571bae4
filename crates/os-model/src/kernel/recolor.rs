//! Pages move to the colours that their partition has now.
//!
//! Which pages, and to which colour each, is decided by a plan of
//! `piebald_policy::rainbow`; the kernel lists the frames, moves them as
//! [`Kernel::migrate`] does (copy, entry, shoot-down, books), and tells the plan
//! what it could not move. A bounded number of pages moves per call; the next call
//! goes on behind them.
//!
//! Pages that only one process uses can move. Others (copy-on-write pages of two
//! processes, shared memory, pages of files) stay and are counted as failed if they
//! lie outside the colours.

use piebald_policy::{
    contract::Mode,
    rainbow::{Move as Planned, Owner as Whose, Plan, PlanError, Step},
};
use piebald_units::{ColorSet, CoreId, Pfn, TaskId, Vpn};

use super::{Actions, Kernel, KernelError, Move, Moved, Path, colors::whose, mapping::Caller};
use crate::space::{Entry, frame_in};

/// Pages that the plan is asked about at a time.
const CHUNK: usize = 64;

/// What a call of [`Kernel::recolor`] came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recolored {
    /// Pages that have another frame now.
    pub moved: u64,
    /// Pages outside the colours that could not be moved: no frame of these colours
    /// is free, or others use the page as well.
    pub failed: u64,
    /// Movable pages that still have to move, as far as the plan knows: pages that
    /// came or went since it began make it less exact.
    pub left: u64,
    /// All pages have been looked at; another call begins anew.
    pub done: bool,
}

/// Recolouring that is under way.
#[derive(Clone)]
pub(crate) struct Recoloring {
    plan: Plan<Vec<u32>>,
    at: At,
}

/// A page of one of the partition's processes.
#[derive(Clone, Copy, Default)]
struct At {
    process: usize,
    vpn: Vpn,
}

/// Pages that follow one another and can move.
#[derive(Default)]
struct Chunk {
    frames: Vec<Pfn>,
    places: Vec<At>,
    /// Pages outside the colours that cannot move.
    stuck: u64,
    /// Where the pages behind these begin; `None` = there are none.
    next: Option<At>,
}

impl Kernel {
    /// Moves, or tries to move, at most `max_pages` pages of the partition of a task, or, if it is in none, of all processes without one, out
    /// of colours that are not theirs any more (and, as the configuration says,
    /// into colours that they have gained).
    ///
    /// # Errors
    /// No such task, a kernel without colours, or no colour that pages could go to.
    pub fn recolor(
        &mut self,
        task: TaskId,
        core: CoreId,
        max_pages: u64,
        actions: &mut Actions,
    ) -> Result<Recolored, KernelError> {
        let process = self.process_of(task)?;
        let caller = Caller {
            task,
            core,
            process,
        };
        let of = whose(self.process(process).partition);
        self.charge(Path::Colors, core, Some(task), actions);
        let under_way = self.colors_mut(task, "recolor")?.recoloring.remove(&of);
        let mut work = match under_way {
            Some(work) => work,
            None => self.begin_recoloring(caller, of, actions)?,
        };
        let mut result = Recolored::default();
        let mut room = max_pages;
        while room > 0 && !result.done {
            room -= self.recolor_chunk(caller, of, &mut work, room, &mut result, actions)?;
        }
        let colors = self.colors_mut(task, "recolor")?;
        let estimate = work.plan.estimate(&colors.registry);
        result.left = estimate.map_err(|why| no_plan(task, why))?.moves;
        if !result.done {
            colors.recoloring.insert(of, work);
        }
        self.counters.recolored += result.moved;
        self.counters.recolor_failed += result.failed;
        let usage = self.usage_mut(process);
        usage.recolored += result.moved;
        usage.recolor_failed += result.failed;
        Ok(result)
    }

    /// A plan that knows where all movable pages are.
    fn begin_recoloring(
        &mut self,
        c: Caller,
        of: Whose,
        actions: &mut Actions,
    ) -> Result<Recoloring, KernelError> {
        let colors = self.colors_mut(c.task, "recolor")?;
        let counts = vec![0; colors.registry.colors() as usize];
        let plan = Plan::new(&colors.registry, of, counts);
        let mut plan = plan.map_err(|why| no_plan(c.task, why))?;
        let members = self.members(of);
        let mut at = Some(At::default());
        while let Some(from) = at {
            let chunk = self.chunk(&members, from, None, actions);
            if let Some(colors) = &self.colors {
                plan.survey(&colors.map, &chunk.frames);
            }
            at = chunk.next;
        }
        Ok(Recoloring {
            plan,
            at: At::default(),
        })
    }

    /// Looks at some pages and moves those that have to, at most `room`; returns how
    /// many it tried to move.
    fn recolor_chunk(
        &mut self,
        c: Caller,
        of: Whose,
        work: &mut Recoloring,
        room: u64,
        result: &mut Recolored,
        actions: &mut Actions,
    ) -> Result<u64, KernelError> {
        let set = self.goal(of);
        let members = self.members(of);
        let chunk = self.chunk(&members, work.at, Some(&set), actions);
        let mut out = [Planned::default(); CHUNK];
        let room = usize::try_from(room).unwrap_or(CHUNK).min(CHUNK);
        let colors = self.colors_mut(c.task, "recolor")?;
        let (registry, map) = (&colors.registry, &colors.map);
        let step = work
            .plan
            .next(registry, map, &chunk.frames, &mut out[..room]);
        let (examined, moves) = match step.map_err(|why| no_plan(c.task, why))? {
            Step::Changed => {
                work.at = At::default();
                return Ok(0);
            }
            Step::Moves { examined, moves } => (examined, moves),
        };
        let mut at = 0;
        for planned in &out[..moves] {
            while chunk.frames[at] != planned.frame {
                at += 1;
            }
            let place = chunk.places[at];
            if self.carry_out(c, place, planned, &set, actions)? {
                result.moved += 1;
            } else {
                result.failed += 1;
                work.plan.not_made(planned);
            }
        }
        match (chunk.places.get(examined), chunk.next) {
            (Some(rest), _) => work.at = *rest,
            (None, Some(next)) => {
                result.failed += chunk.stuck;
                work.at = next;
            }
            (None, None) => {
                result.failed += chunk.stuck;
                result.done = true;
            }
        }
        Ok(moves as u64)
    }

    /// Moves one page; false if it could not be.
    fn carry_out(
        &mut self,
        c: Caller,
        place: At,
        planned: &Planned,
        set: &ColorSet,
        actions: &mut Actions,
    ) -> Result<bool, KernelError> {
        let target = Move {
            allowed: Some(set),
            wish: Some(planned.to),
            mode: Mode::Hard,
        };
        let owner = Caller {
            process: place.process,
            ..c
        };
        match self.move_page(owner, place.vpn, target, actions) {
            Ok(Moved::Done { .. }) => Ok(true),
            Ok(Moved::NotMapped | Moved::Shared) | Err(KernelError::OutOfMemory(_)) => Ok(false),
            Err(other) => Err(other),
        }
    }

    /// The colours that pages should have.
    fn goal(&self, of: Whose) -> ColorSet {
        let registry = self.colors.as_ref().map(|c| &c.registry);
        let set = registry.and_then(|r| match of {
            Whose::Unreserved => Some(r.unreserved()),
            Whose::Partition(id) => r.get(id).ok().map(|p| p.colors()),
        });
        set.cloned().unwrap_or_default()
    }

    /// The next pages from `from` on. With a `goal`, pages outside it that cannot
    /// move are counted.
    fn chunk(
        &self,
        members: &[usize],
        from: At,
        goal: Option<&ColorSet>,
        actions: &mut Actions,
    ) -> Chunk {
        let mut chunk = Chunk::default();
        let mut vpn = from.vpn;
        let mut looked = 0u32;
        for number in members.iter().filter(|m| **m >= from.process) {
            if *number != from.process {
                vpn = Vpn(0);
            }
            let tables = &self.process(*number).space.tables;
            while let Some((at, e, level)) = tables.next(vpn) {
                let place = At {
                    process: *number,
                    vpn: at,
                };
                if chunk.frames.len() == CHUNK {
                    chunk.next = Some(place);
                    break;
                }
                vpn = Vpn(at.0 + 1);
                looked += 1;
                let frame = frame_in(e, level, at);
                if e.flags() & (Entry::CACHED | Entry::ZERO) == 0 && self.meta.refs(frame) == 1 {
                    chunk.frames.push(Pfn(u64::from(frame)));
                    chunk.places.push(place);
                } else if !e.has(Entry::ZERO) && goal.is_some_and(|g| !self.is_in(g, frame)) {
                    chunk.stuck += 1;
                }
            }
            if chunk.next.is_some() {
                break;
            }
        }
        actions.instrs(self.config.costs.per_scan_instrs.saturating_mul(looked));
        chunk
    }
}

const fn no_plan(task: TaskId, why: PlanError) -> KernelError {
    KernelError::Recolor { task, why }
}
