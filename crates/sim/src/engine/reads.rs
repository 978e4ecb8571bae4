//! Reads that a policy places: where the thread goes for each part, and what the policy is
//! told of run queues and cache misses.
//!
//! A call that is to be placed goes through [`Stage`]s, part by part: the policy is asked and
//! its time passes on the core that asked; the thread is moved; the part is copied, as any
//! read; the policy hears where that was. A part ends where the policy's answer does.

use std::collections::HashMap;

use piebald_hw::Counters;
use piebald_os_model::kernel::ReadPart;
use piebald_policy::{
    contract::reads::{Among, Load, Read, ReadOutcome, ReadPlacement, ReadRequest, Reader},
    mfc::{MAX_LEVELS, Mfc, Misses},
};
use piebald_units::{
    Bytes, CoreId, FileId, Picos, TaskId, VirtAddr,
    memory::{self, MemoryPort},
    op::SysOp,
};

use super::Engine;
use crate::{
    reads::{Domains, Memory, Reading, Stage},
    setup::{Setup, SimError},
};

/// The policy and what it was told.
pub(super) struct Placing {
    mfc: Mfc<Memory>,
    access: Picos,
    assignment: Picos,
    level_of: [Option<usize>; MAX_LEVELS],
    /// Bytes of each file.
    sizes: HashMap<FileId, u64>,
    /// Of each core, what it had counted when its last quantum ended, and the end of the
    /// present one.
    quanta: Vec<(Counters, Picos)>,
    quantum: Picos,
}

impl Placing {
    /// As a run wants it; `None` = reads are not placed.
    pub(super) fn new(setup: &Setup<'_>, cores: usize) -> Result<Option<Self>, SimError> {
        let Some(reads) = &setup.threads.reads else {
            return Ok(None);
        };
        let domains = Domains::of(setup.machine);
        let quantum = setup.kernel.config().tick;
        Ok(Some(Self {
            mfc: reads.build(&domains).map_err(SimError::Reads)?,
            access: reads.access,
            assignment: reads.assignment,
            level_of: domains.level_of,
            sizes: HashMap::new(),
            quanta: vec![(Counters::default(), quantum); cores],
            quantum,
        }))
    }

    /// A file has so many bytes.
    pub(super) fn note_file(&mut self, file: FileId, bytes: u64) {
        let known = self.sizes.entry(file).or_insert(0);
        *known = bytes.max(*known);
    }

    /// A core's counters at a moment: its quantum may be over.
    fn note_misses(&mut self, core: CoreId, counters: Counters, now: Picos) {
        let (since, end) = &mut self.quanta[usize::from(core.0)];
        if now < *end {
            return;
        }
        let part = counters - *since;
        *since = counters;
        *end = Picos(now.0 - now.0 % self.quantum.0 + self.quantum.0);
        // What came from another core's cache says nothing of this one's size.
        let misses = |level: usize| part.level[level].misses.saturating_sub(part.transfers);
        let misses: Misses = self
            .level_of
            .map(|level| level.map_or(0, |k| u32::try_from(misses(k)).unwrap_or(u32::MAX)));
        self.mfc.quantum(core, &misses);
        self.mfc.tick(core, now);
    }
}

impl Engine<'_> {
    /// The lengths of a program's files.
    pub(super) fn note_files(&mut self, files: &[(FileId, u64)]) {
        if let Some(placing) = &mut self.placing {
            files
                .iter()
                .for_each(|(f, bytes)| placing.note_file(*f, *bytes));
        }
    }

    /// A call of a program that is not free: reads are counted, and begun part by part if a policy
    /// places them. True if that is so.
    pub(super) fn begin_read(&mut self, task: TaskId, program: usize, op: &SysOp) -> bool {
        let SysOp::Read {
            file,
            offset,
            len,
            buffer,
        } = *op
        else {
            return false;
        };
        let reads = &mut self.programs[program].reads;
        reads.calls += 1;
        reads.bytes += len;
        let (Some(placing), Some(state)) =
            (&mut self.placing, self.tasks[task.0 as usize].as_mut())
        else {
            return false;
        };
        let end = offset.saturating_add(len);
        placing.note_file(file, end);
        let first = *state.first_buffer.get_or_insert(buffer);
        let among = match first == buffer {
            true => Among::First,
            false => Among::Second,
        };
        state.reading = Some(Reading {
            file,
            offset,
            end,
            buffer,
            among,
            first: true,
            stage: Stage::Ask,
        });
        true
    }

    /// Goes on with a read that is placed.
    pub(super) fn read_on(&mut self, core: usize, task: TaskId) -> Result<(), SimError> {
        let Some(reading) = self.task(task).and_then(|t| t.reading) else {
            return Ok(());
        };
        let stage = match reading.stage {
            Stage::Ask => Some(self.ask(core, task, &reading)?),
            Stage::Go(request, read) => {
                self.set_reading(
                    task,
                    Some(Reading {
                        stage: Stage::Copy(request, read),
                        ..reading
                    }),
                );
                return self.send(core, task, read.core);
            }
            Stage::Copy(request, read) => {
                return self.copy_part(core, task, reading, request, read);
            }
            Stage::Done(outcome) => {
                if let Some(placing) = &self.placing {
                    placing.mfc.after(&outcome, self.cpus[core].now);
                }
                (reading.offset < reading.end).then_some(Stage::Ask)
            }
        };
        self.set_reading(task, stage.map(|stage| Reading { stage, ..reading }));
        Ok(())
    }

    fn set_reading(&mut self, task: TaskId, reading: Option<Reading>) {
        if let Some(state) = self.tasks[task.0 as usize].as_mut() {
            state.reading = reading;
        }
    }

    /// Asks the policy about the next part of a read.
    fn ask(&mut self, core: usize, task: TaskId, reading: &Reading) -> Result<Stage, SimError> {
        let (id, now) = (CoreId(core as u16), self.cpus[core].now);
        self.note_quanta(now);
        let allowed = self.sched.cores_of(task)?;
        let Some(placing) = &self.placing else {
            return Ok(Stage::Ask);
        };
        for c in (0..self.cpus.len() as u16).map(CoreId) {
            placing.mfc.set_runnable(c, self.sched.load(c) as u32);
        }
        let request = ReadRequest {
            reader: Reader { core: id, allowed },
            file: reading.file,
            size: Bytes(placing.sizes.get(&reading.file).copied().unwrap_or(0)),
            offset: reading.offset,
            len: Bytes(reading.end.saturating_sub(reading.offset)),
            among: reading.among,
        };
        let read = placing.mfc.before(&request, now);
        if read.looked_up {
            let time = match read.placed {
                true => placing.assignment,
                false => placing.access,
            };
            self.cpus[core].work.push_wait(time);
        }
        Ok(Stage::Go(request, read))
    }

    /// Moves a thread to the core where it shall read. One that may not go there stays.
    fn send(&mut self, core: usize, task: TaskId, to: CoreId) -> Result<(), SimError> {
        let from = CoreId(core as u16);
        if to == from || !self.sched.cores_of(task)?.contains(to) {
            return Ok(());
        }
        let Some(target) = self.cpus.get(usize::from(to.0)) else {
            return Ok(());
        };
        let is_idle = target.task.is_none();
        self.sched.migrate(task, to)?;
        if let Some(program) = self.task(task).map(|t| t.program) {
            self.programs[program].reads.moves += 1;
        }
        let now = self.cpus[core].now;
        self.pick(core)?;
        if is_idle {
            let period = self.setup.kernel.config().tick;
            let target = &mut self.cpus[usize::from(to.0)];
            target.now = target.now.max(now);
            // An idle core's ticks are taken while it idles.
            while target.next_tick <= target.now {
                target.next_tick += period;
            }
            self.pick(usize::from(to.0))?;
        }
        Ok(())
    }

    /// Copies a part on the core where the thread is now.
    fn copy_part(
        &mut self,
        core: usize,
        task: TaskId,
        mut reading: Reading,
        request: ReadRequest,
        read: Read,
    ) -> Result<(), SimError> {
        let id = CoreId(core as u16);
        let Some(program) = self.task(task).map(|t| t.program) else {
            return Ok(());
        };
        // An answer that ends where it begins would never let the read go on.
        let until = match read.until > reading.offset {
            true => read.until.min(reading.end),
            false => reading.end,
        };
        let part = ReadPart {
            file: reading.file,
            offset: reading.offset,
            len: until - reading.offset,
            buffer: reading.buffer,
            load: match read.load {
                Load::Caching => memory::Load::Caching,
                Load::NonCaching => memory::Load::NonCaching,
            },
            first: reading.first,
        };
        if read.load == Load::NonCaching {
            let reads = &mut self.programs[program].reads;
            reads.past += part.len;
            reads.parts_past += 1;
        }
        self.actions.clear();
        let now = self.cpus[core].now;
        let kernel = self.setup.kernel.at(now);
        let work = kernel
            .read_part(task, id, &part, &mut self.actions)
            .map_err(|e| self.kernel_error(program, e))?;
        self.cpus[core].now = self.machine.drain(id, now);
        self.perform(core);
        reading.first = false;
        reading.offset = until;
        if reading.buffer.0 != 0 {
            reading.buffer = VirtAddr(reading.buffer.0.wrapping_add(part.len));
        }
        reading.stage = Stage::Done(ReadOutcome {
            request,
            read,
            ran_on: id,
        });
        self.set_reading(task, Some(reading));
        self.in_call(core, task, work)
    }

    /// Tells the policy of the misses of cores whose quantum is over.
    pub(super) fn note_quanta(&mut self, now: Picos) {
        if let Some(placing) = &mut self.placing {
            for core in (0..self.cpus.len() as u16).map(CoreId) {
                placing.note_misses(core, self.machine.counters(core), now);
            }
        }
    }
}
