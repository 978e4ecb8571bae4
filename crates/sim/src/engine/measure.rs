//! What a run measures: moments of a program, and the cache's sets over time.

use piebald_hw::SetFill;
use piebald_units::{CoreId, Picos, TaskId, memory::PageTables};

use super::Engine;
use crate::{
    setup::{MapSample, Outcome, ProgramOutcome, SimError},
    snapshot::{IoUse, Snapshot},
};

impl Engine<'_> {
    fn snapshot(&mut self, time: Picos, program: usize) -> Snapshot {
        for other in 0..self.cpus.len() {
            let task = self.cpus[other].task.and_then(|t| self.task(t));
            if task.is_some_and(|t| t.program == program) {
                self.settle(other);
            }
        }
        let (pages, huge_pages) = self.resident(program);
        let state = &self.programs[program];
        Snapshot {
            time,
            refs: state.refs,
            counters: state.counters,
            faults: state.faults,
            following: state.follow_time,
            pages,
            huge_pages,
            io: IoUse::new(&self.setup.kernel.usage(program as u16 + 1), state.blocked),
            reads: state.reads,
        }
    }

    /// 4 KiB and 2 MiB pages that a program's processes have mapped.
    fn resident(&self, program: usize) -> (u64, u64) {
        let mut seen = Vec::new();
        let mut total = (0, 0);
        for (id, state) in self.tasks.iter().enumerate() {
            let Some(_) = state.as_ref().filter(|t| t.program == program) else {
                continue;
            };
            let Ok(space) = self.setup.kernel.space(TaskId(id as u32)) else {
                continue;
            };
            if !seen.contains(&space.asid()) {
                seen.push(space.asid());
                total.0 += space.resident().total();
                total.1 += space.resident().huge;
            }
        }
        total
    }

    /// A program has used up its warm-up or its measured references, or ended.
    pub(super) fn reached_mark(&mut self, core: usize, program: usize, ended: bool) {
        if self.programs[program].end.is_some() {
            return;
        }
        let snapshot = self.snapshot(self.cpus[core].now, program);
        let watched = (self.setup.curve.as_ref()).is_some_and(|c| c.program == program);
        if self.programs[program].warm.is_none() {
            self.programs[program].warm = Some(snapshot);
            self.programs[program].fill_start = self.set_fill(program);
            if watched {
                self.machine.restart_miss_curve();
            }
            return;
        }
        let memory = self.memory_use(program);
        let fill = self.set_fill(program);
        let state = &mut self.programs[program];
        state.fill = state
            .fill_start
            .take()
            .zip(fill)
            .map(|(start, end)| start.until(&end));
        state.memory = memory;
        state.end = Some((snapshot, ended));
        if watched {
            state.curve = self.machine.miss_curve();
        }
        self.measured += usize::from(state.setup.measured);
    }

    /// The measured part of a program that is there begins with time.
    pub(super) fn warm_at(&mut self, at: Picos, program: usize) {
        if self.programs[program].live > 0 && self.programs[program].warm.is_none() {
            self.programs[program].warm = Some(self.snapshot(at, program));
            self.programs[program].fill_start = self.set_fill(program);
        }
    }

    /// What the sets of a program's caches hold now, if somebody wants to know.
    fn set_fill(&self, program: usize) -> Option<SetFill> {
        let setup = &self.programs[program].setup;
        (self.setup.fill && setup.measured)
            .then(|| self.machine.set_fill(setup.cores, program as u8 + 1))
    }

    /// Looks at the sets when the chosen program has come far enough.
    pub(super) fn sample_map(&mut self, core: usize, program: usize) {
        let Some(map) = self.setup.map.filter(|m| m.program == program) else {
            return;
        };
        let state = &self.programs[program];
        let Some(warm) = state.warm.filter(|_| state.end.is_none()) else {
            return;
        };
        let threads = if state.setup.each {
            u64::from(state.setup.input.threads().max(1))
        } else {
            1
        };
        let step = state.setup.budget.saturating_mul(threads) / u64::from(map.samples.max(1));
        if state.refs - warm.refs < self.next_map {
            return;
        }
        self.next_map += step.max(1);
        let group = self.machine.group_of(CoreId(core as u16));
        let owners = self.programs.len() + 1;
        (0..self.cpus.len()).for_each(|other| self.settle(other));
        let counters = self.programs.iter().map(|p| p.counters.instructions);
        let instructions = counters.collect();
        self.map.push(MapSample {
            time: self.cpus[core].now.since(warm.time),
            lines: self.machine.occupancy(group, map.buckets, owners),
            instructions,
        });
    }

    /// The last thread of a program ends: that ends its measured part too.
    pub(super) fn ended(&mut self, core: usize, program: usize) -> Result<(), SimError> {
        let by_time = self.agenda.measures() && !self.programs[program].leaving;
        let state = &self.programs[program];
        if state.end.is_some() || by_time {
            return Ok(());
        }
        if state.warm.is_none() {
            return Err(SimError::TooShort {
                program: state.setup.name.clone(),
                refs: state.refs - state.origin,
            });
        }
        self.reached_mark(core, program, true);
        Ok(())
    }

    pub(super) fn outcome(mut self) -> Outcome {
        // Company may be anywhere when the run is over.
        let latest = self.cpus.iter().map(|cpu| cpu.now).max();
        let end = self.agenda.end().or(latest).unwrap_or(Picos(0));
        let programs = (0..self.own)
            .map(|p| {
                let now = self.snapshot(end, p);
                let state = &self.programs[p];
                let memory = match state.end {
                    Some(_) => state.memory.clone(),
                    None => self.memory_use(p),
                };
                let fill = state.fill.or_else(|| {
                    let start = state.fill_start.as_ref()?;
                    Some(start.until(&self.set_fill(p)?))
                });
                let by_time = self.agenda.measures();
                let (end, early) = state.end.unwrap_or((now, !by_time));
                let warm = state.warm.unwrap_or(end);
                ProgramOutcome {
                    region: end.since(&warm, early),
                    restarts: state.restarts,
                    memory,
                    miss_curve: state.curve.clone(),
                    fill,
                }
            })
            .collect();
        Outcome {
            programs,
            map: self.map,
            kernel: self.setup.kernel.counters(),
            paging: self.setup.kernel.paging(),
            hvr: self.agenda.since_begin(self.setup.kernel.hvr_events()),
            observations: self.setup.kernel.observations().to_vec(),
            sample_time: self.sample_time,
            timeline: self.agenda.take_timeline(),
            refs: self.refs,
        }
    }
}
