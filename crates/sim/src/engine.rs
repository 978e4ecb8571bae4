//! The event loop: which thread runs next, and what it does until it may not go on.

mod boot;
mod calls;
mod colors;
mod gate;
mod hvr;
mod measure;
mod reads;
mod waits;
mod watch;

use std::{collections::VecDeque, sync::atomic::Ordering};

use piebald_hw::{Counters, LevelFill, Machine, MissCurve, SetFill, ShadowRequest};
use piebald_os_model::{
    kernel::{Actions, Fault, FaultKind, KernelError},
    sched::{SchedConfig, Scheduler, Status, Wake},
};
use piebald_policy::hvr::Profile;
use piebald_units::{
    CoreId, Picos, TaskId,
    memory::{MemoryPort, PhysRef},
    op::RefKind,
};

use crate::{
    setup::{MapSample, MemoryUse, Outcome, ProgramSetup, Progress, Setup, SimError, Stay},
    snapshot::{ReadUse, Snapshot},
    task::{Need, TaskState},
    threads::Distances,
    work::Work,
};
use colors::ColorState;
use gate::Gate;
use hvr::Agenda;
use reads::Placing;

/// Turns of the loop between two looks at the clock of the world outside.
const TURNS_PER_REPORT: u32 = 4096;

/// Runs programs until each has performed its measured part, or has ended in it.
/// A program that ends is started again, so that the others keep their company.
///
/// # Errors
/// See [`SimError`].
pub fn run(setup: Setup<'_>) -> Result<Outcome, SimError> {
    run_after(Vec::new(), setup)
}

/// The same after other programs, which run to their ends one after another and alone, and
/// leave nothing but the files that they brought into memory. They cost no processor time,
/// but wait for the disk; of their settings only name, input, cores and colours count, and
/// only their main threads are free of cost. Times of the run's programs begin when the
/// last of them has ended.
///
/// # Errors
/// See [`SimError`].
pub fn run_after(before: Vec<ProgramSetup>, setup: Setup<'_>) -> Result<Outcome, SimError> {
    let mut engine = Engine::new(setup, before)?;
    engine.settle_kernel();
    engine.begin(Picos(0))?;
    engine.go()?;
    Ok(engine.outcome())
}

/// One hardware thread.
struct Cpu {
    now: Picos,
    task: Option<TaskId>,
    next_tick: Picos,
    slice_end: Picos,
    /// Machine counters when the current task came on.
    since: Counters,
    /// A task was woken here: it runs before the present one goes on.
    woken: bool,
    /// What it has to do for the kernel before its task goes on.
    work: Work,
}

/// One program of the run.
struct ProgramState {
    setup: ProgramSetup,
    /// Refs performed since the run began, and where the warm-up starts.
    refs: u64,
    origin: u64,
    counters: Counters,
    faults: u64,
    live: u32,
    /// Of the live tasks, those that wait for an event.
    waiting: u32,
    instance: u16,
    restarts: u32,
    /// What HVR found of it before it ended last.
    found: Option<Profile>,
    /// Its set-up is over, or it has none.
    ready: bool,
    warm: Option<Snapshot>,
    end: Option<(Snapshot, bool)>,
    /// Its memory at the end of its measured part.
    memory: MemoryUse,
    /// The first task of its instance.
    main: TaskId,
    colors: ColorState,
    /// Time that hardware threads spent on moving its pages to other colours.
    recolor_time: Picos,
    /// The same on touch, for HVR.
    follow_time: Picos,
    /// Time that its tasks waited for files and pages, and how many do now.
    blocked: Picos,
    host_waits: u32,
    reads: ReadUse,
    curve: Option<MissCurve>,
    /// What the sets of its caches held when its measured part began, and what became of it.
    fill_start: Option<SetFill>,
    fill: Option<[LevelFill; 3]>,
    /// It is to end as soon as it can, and not to come again.
    leaving: bool,
}

impl ProgramState {
    /// References until the next moment that is looked at, for a thread that has made `made`.
    fn until_mark(&self, made: u64) -> u64 {
        if !self.ready {
            return u64::MAX;
        }
        let (warmup, budget) = (self.setup.warmup, self.setup.budget);
        match (self.warm, self.setup.each) {
            (None, false) => (self.origin + warmup).saturating_sub(self.refs),
            (Some(warm), false) => (warm.refs + budget).saturating_sub(self.refs),
            (None, true) => warmup.saturating_sub(made),
            (Some(_), true) => warmup.saturating_add(budget).saturating_sub(made),
        }
    }

    /// References that a task may make until the program is looked at again.
    fn until_look(&self, task: TaskId, made: u64) -> u64 {
        match task == self.main {
            true => self.until_mark(made).min(self.until_change()),
            false => self.until_mark(made),
        }
    }
}

struct Engine<'a> {
    setup: Setup<'a>,
    machine: Machine,
    sched: Scheduler,
    /// What it costs to move a thread, unless it is free.
    distances: Option<Distances>,
    /// Who places reads, if anyone does.
    placing: Option<Placing>,
    wakes: Vec<Wake>,
    cpus: Vec<Cpu>,
    tasks: Vec<Option<TaskState>>,
    /// Those of the run, then those that come before it.
    programs: Vec<ProgramState>,
    /// How many are the run's.
    own: usize,
    /// Those that come before it and have not started.
    before: VecDeque<usize>,
    map: Vec<MapSample>,
    next_map: u64,
    actions: Actions,
    refs: u64,
    reported: u64,
    measured: usize,
    /// Programs that wait for the others to be warm.
    late: Vec<usize>,
    /// Where programs wait for the others' set-up; `None` = it is open.
    gate: Option<Gate>,
    /// Program instances started so far: they tell equal event numbers apart.
    instances: u16,
    slice: Picos,
    /// What happens by the clock.
    agenda: Agenda,
    /// Time spent on reading access bits.
    sample_time: Picos,
}

impl<'a> Engine<'a> {
    fn new(mut setup: Setup<'a>, before: Vec<ProgramSetup>) -> Result<Self, SimError> {
        let own = setup.programs.len();
        setup.programs.extend(before.into_iter().map(for_free));
        if let Some(request) = &setup.curve {
            let program = setup.programs.get(request.program);
            setup.options.shadow = program.map(|p| ShadowRequest {
                cores: p.cores,
                colors: request.colors.clone(),
                sample_shift: request.sample_shift,
            });
        }
        let machine = Machine::new(setup.machine, &setup.options)?;
        let threads = machine.hardware_threads();
        for program in &setup.programs {
            let allowed = piebald_units::CoreSet::first(threads as u32);
            if program.cores.is_empty() || program.cores.bits() & !allowed.bits() != 0 {
                return Err(SimError::Cores {
                    program: program.name.clone(),
                    cores: program.cores,
                    last: threads - 1,
                });
            }
        }
        let tick = setup.kernel.config().tick;
        let cpus = (0..threads)
            .map(|i| Cpu {
                now: Picos(0),
                task: None,
                // Ticks of different cores are staggered, as Linux does.
                next_tick: Picos(tick.0 / threads as u64 * (i as u64 + 1)),
                slice_end: Picos::MAX,
                woken: false,
                since: Counters::default(),
                work: Work::default(),
            })
            .collect();
        gate::warm_by_time(&mut setup, own);
        let programs = std::mem::take(&mut setup.programs);
        let agenda = Agenda::new(&setup, &programs[..own])?;
        let unmeasured = programs.iter().filter(|p| !p.measured).count();
        let sched = SchedConfig {
            balance: setup.threads.balance,
            ..SchedConfig::new(threads as u16)
        };
        Ok(Self {
            machine,
            sched: Scheduler::new(sched)?,
            distances: Distances::new(setup.machine, &setup.threads.migration),
            placing: Placing::new(&setup, threads)?,
            wakes: Vec::new(),
            cpus,
            tasks: Vec::new(),
            before: (own..programs.len()).collect(),
            own,
            programs: programs.into_iter().map(new_program).collect(),
            map: Vec::new(),
            next_map: 0,
            actions: Actions::new(),
            refs: 0,
            reported: 0,
            measured: unmeasured,
            late: Vec::new(),
            gate: Gate::of(&setup),
            instances: 0,
            slice: sched.slice,
            agenda,
            sample_time: Picos(0),
            setup,
        })
    }

    fn kernel_error(&self, program: usize, mut error: KernelError) -> SimError {
        if let KernelError::OutOfMemory(short) = &mut error {
            let held = self.setup.kernel.holders_of_all(short.program);
            short.held = Some(Box::new(held));
        }
        SimError::Kernel {
            program: self.programs[program].setup.name.clone(),
            error,
        }
    }

    /// Starts the next program that comes before the run, or the run itself.
    fn begin(&mut self, from: Picos) -> Result<(), SimError> {
        match self.before.pop_front() {
            Some(program) => self.start_at(&[program], from),
            None => self.start_all(from),
        }
    }

    /// Starts programs for the first time, each at its own offset from `from`.
    fn start_at(&mut self, programs: &[usize], from: Picos) -> Result<(), SimError> {
        for program in programs {
            let setup = &self.programs[*program].setup;
            let after_ready = Some(setup.skip).filter(|skip| *skip > 0 && setup.marks_ready);
            let skip = if after_ready.is_some() { 0 } else { setup.skip };
            let prime = setup.prime.saturating_add(skip);
            let task = self.start_program(*program, prime)?;
            if let Some(refs) = after_ready
                && let Some(state) = self.tasks[task.0 as usize].as_mut()
            {
                state.meet_after_ready(refs);
            }
            let start = from + self.programs[*program].setup.start;
            if let Status::Runnable(core) = self.sched.status(task)? {
                let cpu = &mut self.cpus[usize::from(core.0)];
                if cpu.task.is_none() {
                    cpu.now = cpu.now.max(start);
                }
            }
        }
        for core in 0..self.cpus.len() {
            if self.cpus[core].task.is_none() {
                self.pick(core)?;
            }
        }
        Ok(())
    }

    /// A new instance of a program, whose first `prime` references only bring their pages in:
    /// process, main task, place in a run queue.
    fn start_program(&mut self, program: usize, prime: u64) -> Result<TaskId, SimError> {
        let started = self.setup.kernel.start(program as u16 + 1);
        let task = started.map_err(|e| self.kernel_error(program, e))?;
        self.reserve(program, task)?;
        self.programs[program].main = task;
        self.programs[program].live = 0;
        self.programs[program].waiting = 0;
        self.programs[program].host_waits = 0;
        self.instances = self.instances.wrapping_add(1);
        self.programs[program].instance = self.instances;
        let files = self.programs[program].setup.input.files();
        self.note_files(&files);
        for (file, bytes) in files {
            let known = self.setup.kernel.ensure_file(file, bytes.div_ceil(4096));
            known.map_err(|e| self.kernel_error(program, e))?;
        }
        self.add_task(program, task, 0, prime)?;
        Ok(task)
    }

    fn add_task(
        &mut self,
        program: usize,
        task: TaskId,
        thread: u32,
        prime: u64,
    ) -> Result<(), SimError> {
        let state = &mut self.programs[program];
        let source = state
            .setup
            .input
            .open(thread)
            .map_err(|e| SimError::Input {
                program: state.setup.name.clone(),
                problem: e.to_string(),
            })?;
        state.live += 1;
        let at = task.0 as usize;
        if self.tasks.len() <= at {
            self.tasks.resize_with(at + 1, || None);
        }
        self.tasks[at] = Some(TaskState::new(program, source, prime));
        let cores = state.setup.cores;
        let first = (self.setup.threads).first_core(program, thread, cores);
        self.sched.add_near(task, cores, first)?;
        Ok(())
    }

    fn go(&mut self) -> Result<(), SimError> {
        let mut turns = 0;
        while !self.is_over() {
            self.turn()?;
            turns += 1;
            if turns == TURNS_PER_REPORT {
                turns = 0;
                self.report();
                if self.setup.stop.is_some_and(|s| s.load(Ordering::Relaxed)) {
                    return Err(SimError::Stopped);
                }
            }
        }
        self.report();
        Ok(())
    }

    fn report(&mut self) {
        if let Some(report) = self.setup.progress {
            report(Progress {
                refs: self.refs - self.reported,
            });
            self.reported = self.refs;
        }
    }

    /// The busy hardware thread with the lowest clock, and how far it may go.
    #[inline]
    fn next_core(&self) -> Option<(usize, Picos)> {
        let mut first: Option<usize> = None;
        let mut second = Picos::MAX;
        for (i, cpu) in self.cpus.iter().enumerate() {
            if cpu.task.is_none() && cpu.work.is_empty() {
                continue;
            }
            match first {
                Some(f) if cpu.now < self.cpus[f].now => {
                    second = self.cpus[f].now;
                    first = Some(i);
                }
                Some(_) => second = second.min(cpu.now),
                None => first = Some(i),
            }
        }
        let core = first?;
        let quantum = self.cpus[core].now + self.setup.quantum;
        Some((core, quantum.min(second + self.setup.skew)))
    }

    /// Takes the next task of a core's queue on.
    fn pick(&mut self, core: usize) -> Result<(), SimError> {
        let id = CoreId(core as u16);
        let old = self.cpus[core].task;
        let new = self.sched.next_on(id)?;
        self.settle(core);
        self.cpus[core].task = new;
        self.cpus[core].woken = false;
        self.cpus[core].slice_end = self.cpus[core].now + self.slice;
        let owner = new.and_then(|t| self.task(t)).map(|t| t.program as u8 + 1);
        self.machine.set_running(id, owner);
        if let Some(task) = new.filter(|_| old != new) {
            match self.came_from(core, task) {
                Picos(0) => {
                    self.actions.clear();
                    self.setup.kernel.switch(id, new, &mut self.actions);
                    self.perform(core);
                }
                migration => self.cpus[core].work.push_wait(migration),
            }
        }
        Ok(())
    }

    /// A task comes on: what moving it here costs, 0 if it was here last.
    fn came_from(&mut self, core: usize, task: TaskId) -> Picos {
        let id = CoreId(core as u16);
        let Some(state) = self.tasks[task.0 as usize].as_mut() else {
            return Picos(0);
        };
        let from = state.last_core.replace(id).filter(|from| *from != id);
        let Some(from) = from else {
            return Picos(0);
        };
        self.programs[state.program].reads.migrations += 1;
        let distances = self.distances.as_ref();
        distances.map_or(Picos(0), |d| d.cost(from, id))
    }

    fn task(&self, task: TaskId) -> Option<&TaskState> {
        self.tasks.get(task.0 as usize).and_then(Option::as_ref)
    }

    /// Books what the current task's program did on a core since it came on.
    fn settle(&mut self, core: usize) {
        let counters = self.machine.counters(CoreId(core as u16));
        let part = counters - self.cpus[core].since;
        self.cpus[core].since = counters;
        let program = self.cpus[core]
            .task
            .and_then(|t| self.task(t))
            .map(|t| t.program);
        if let Some(program) = program {
            let total = &mut self.programs[program].counters;
            *total = *total + part;
        }
    }

    /// Queues what the kernel has just handed back.
    fn perform(&mut self, core: usize) {
        if self.setup.curve.is_some() {
            self.pages_of_actions();
        }
        self.cpus[core].work.push(&self.actions);
    }

    /// Carries out queued kernel work; false if the horizon came first.
    fn work(&mut self, core: usize, horizon: Picos) -> bool {
        let cpu = &mut self.cpus[core];
        if cpu.work.is_empty() {
            return true;
        }
        let tasks = &self.tasks;
        let task = |t: TaskId| tasks.get(t.0 as usize).and_then(Option::as_ref);
        let owner = cpu.task.and_then(task).map(|t| t.program as u8 + 1);
        let on = (CoreId(core as u16), owner);
        let kernel = &self.setup.kernel;
        cpu.now = cpu.work.go(&mut self.machine, kernel, on, cpu.now, horizon);
        let (took, done) = (cpu.work.take_time(), cpu.work.is_empty());
        self.sample_time += took.sampling;
        if let Some(owner) = owner {
            let program = &mut self.programs[usize::from(owner) - 1];
            program.recolor_time += took.recoloring;
            program.follow_time += took.following;
        }
        done
    }

    /// Lets a core's task go on until its clock passes `horizon`, or it needs
    /// more than references.
    fn step(&mut self, core: usize, horizon: Picos) -> Result<(), SimError> {
        let at = self.cpus[core].task.map(|t| t.0 as usize);
        loop {
            if !self.work(core, horizon) {
                return Ok(());
            }
            let (Some(task), Some(at)) = (self.cpus[core].task, at) else {
                return Ok(());
            };
            let Some(state) = self.tasks[at].as_mut() else {
                return Ok(());
            };
            let (program, need) = (state.program, state.need());
            if need != Need::Perform && self.programs[program].leaving {
                return self.depart(core, task, program);
            }
            if need != Need::Perform && self.programs[program].has_color_work(task) {
                self.color_work(core, task, program)?;
                continue;
            }
            match need {
                Need::Perform => {
                    if !self.run_refs(core, task, horizon)? {
                        return Ok(());
                    }
                }
                Need::Fault(fault) => {
                    self.fault(core, task, fault)?;
                    if self.cpus[core].task != Some(task) {
                        return Ok(());
                    }
                }
                Need::Resume => return self.resume(core, task),
                Need::ReadOn => return self.read_on(core, task),
                Need::Translate => {
                    let mut phys = state.take_phys();
                    let refs = state.untranslated();
                    let done = self.setup.kernel.translate(task, refs, &mut phys);
                    state.phys = phys;
                    if self.setup.curve.is_some() {
                        self.pages_of_task(at);
                    }
                    let Some(state) = self.tasks[at].as_mut() else {
                        return Ok(());
                    };
                    match done {
                        Ok(done) => state.translated(done.consumed, done.fault),
                        Err(e) => return Err(self.kernel_error(program, e)),
                    }
                }
                Need::Read => {
                    let limit = self.programs[program].until_look(task, state.made);
                    state.read(limit);
                }
                Need::Event(tail, next) => {
                    return self.event(core, task, tail, next);
                }
            }
            if self.cpus[core].now >= self.cpus[core].next_tick {
                self.tick(core, task)?;
                if self.cpus[core].task != Some(task) {
                    return Ok(());
                }
            }
            if self.cpus[core].woken {
                self.sched.preempt(CoreId(core as u16))?;
                return self.pick(core);
            }
            if self.cpus[core].now > horizon {
                return Ok(());
            }
        }
    }

    /// Performs translated references; false if the horizon came first.
    fn run_refs(&mut self, core: usize, task: TaskId, horizon: Picos) -> Result<bool, SimError> {
        let id = CoreId(core as u16);
        let Some(state) = self.tasks[task.0 as usize].as_mut() else {
            return Ok(false);
        };
        let program = state.program;
        let space = match self.setup.kernel.space(task) {
            Ok(space) => space,
            Err(e) => return Err(self.kernel_error(program, e)),
        };
        let refs = &state.phys[state.performed..];
        let now = self.cpus[core].now;
        let progress = self.machine.run(id, space, refs, now, horizon);
        let all = progress.done == refs.len();
        let data = |r: &&PhysRef| r.kind != RefKind::Fetch;
        let made = refs[..progress.done].iter().filter(data).count() as u64;
        state.performed += progress.done;
        self.cpus[core].now = progress.now;
        self.refs += made;
        let program_state = &mut self.programs[program];
        program_state.refs += made;
        state.made += if program_state.ready { made } else { 0 };
        if program_state.until_mark(state.made) == 0 {
            self.reached_mark(core, program, false);
            if !self.late.is_empty() {
                self.start_late(self.cpus[core].now)?;
            }
        }
        self.sample_map(core, program);
        Ok(all)
    }

    fn fault(&mut self, core: usize, task: TaskId, fault: Fault) -> Result<(), SimError> {
        let id = CoreId(core as u16);
        let free = self.task(task).is_some_and(TaskState::is_free);
        let program = self.task(task).map_or(0, |t| t.program);
        self.actions.clear();
        let now = self.cpus[core].now;
        let kernel = self.setup.kernel.at(now);
        let work = kernel
            .fault(task, id, fault, &mut self.actions)
            .map_err(|e| self.kernel_error(program, e))?;
        if !free {
            self.cpus[core].now = self.machine.drain(id, now);
            match work.kind {
                FaultKind::Followed => self.perform_move(core),
                _ => self.perform(core),
            }
        }
        if work.kind == FaultKind::Blocked {
            return self.block(core, task);
        }
        self.programs[program].faults += 1;
        if let Some(state) = self.tasks[task.0 as usize].as_mut() {
            state.fault = None;
        }
        Ok(())
    }

    fn tick(&mut self, core: usize, task: TaskId) -> Result<(), SimError> {
        let id = CoreId(core as u16);
        self.actions.clear();
        self.setup.kernel.tick(id, Some(task), &mut self.actions);
        self.perform(core);
        if let Some(program) = self.task(task).map(|t| t.program) {
            self.programs[program].color_tick();
        }
        let period = self.setup.kernel.config().tick;
        let cpu = &mut self.cpus[core];
        while cpu.next_tick <= cpu.now {
            cpu.next_tick += period;
        }
        self.nudge()?;
        self.note_quanta(self.cpus[core].now);
        if self.sched.balance(id)?.is_some() {
            self.wake_idle(core)?;
        }
        let over = self.cpus[core].now >= self.cpus[core].slice_end;
        if over && self.sched.contended(id) {
            self.sched.preempt(id)?;
            self.pick(core)?;
        }
        Ok(())
    }
}

/// A program that comes before the run: all that its main thread refers to is only brought in.
fn for_free(setup: ProgramSetup) -> ProgramSetup {
    ProgramSetup {
        stay: Stay::default(),
        start: Picos(0),
        waits: false,
        measured: false,
        skip: 0,
        prime: u64::MAX,
        marks_ready: false,
        warmup: u64::MAX,
        budget: 0,
        ..setup
    }
}

fn new_program(setup: ProgramSetup) -> ProgramState {
    ProgramState {
        ready: !setup.marks_ready,
        setup,
        refs: 0,
        origin: 0,
        counters: Counters::default(),
        faults: 0,
        live: 0,
        waiting: 0,
        instance: 0,
        restarts: 0,
        found: None,
        warm: None,
        end: None,
        memory: MemoryUse::default(),
        main: TaskId(0),
        colors: ColorState::default(),
        recolor_time: Picos(0),
        follow_time: Picos(0),
        blocked: Picos(0),
        host_waits: 0,
        reads: ReadUse::default(),
        curve: None,
        fill_start: None,
        fill: None,
        leaving: false,
    }
}
