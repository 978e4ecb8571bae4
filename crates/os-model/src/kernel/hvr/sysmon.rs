//! SysMon's two jobs on modelled access bits: what they see, when, and what that costs.
//!
//! A program is looked at by one job at a time, since both clear the bits. JOB1 clears them,
//! waits for a window and counts those that are set again; JOB2 then, when it is due, clears
//! and collects them pass after pass, each of which lasts as long as JOB1's window: the
//! program runs on while its pages are walked. Whoever runs the jobs pays for the walks
//! (instructions per page, and the lines of the page tables), and every core for the
//! translations that have to be dropped, without which a page that is still in a TLB would
//! not be seen again.

use piebald_policy::hvr::{MonitorConfig, PageRecord, Pass, ProgramId, Sample, Sampler, Window};
use piebald_units::{Asid, CoreId, Pfn, Picos, TaskId, Vpn, op::RefKind};
use serde::{Deserialize, Serialize};

use super::{Vertical, What};
use crate::{
    kernel::{Action, Actions, Kernel, KernelError, action::Place, mapping::Caller},
    space::Entry,
};

/// Site of the walks' references to page tables.
const WALK_SITE: u32 = 0xffff_0102;

/// How SysMon is run here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SysMonConfig {
    /// What times *between* windows are divided by, at least 1: seconds are too long for a
    /// simulation. Windows, passes and walks take what they take.
    pub time_scale: u32,
    /// Pages of a program that are looked at, at least 1; of larger ones a random sample.
    pub max_pages: u32,
    /// Of the samples and of the pages whose re-use is watched.
    pub seed: u64,
}

impl Default for SysMonConfig {
    fn default() -> Self {
        Self {
            time_scale: 1,
            max_pages: 1 << 18,
            seed: 0,
        }
    }
}

/// What a job found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observation {
    /// When the window ended.
    pub time: Picos,
    /// The program, by the number that it was started with.
    pub program: u16,
    /// Pages that it had.
    pub pages: u32,
    /// What was seen of them.
    pub observed: Observed,
}

/// What was seen in a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Observed {
    /// JOB1: hot pages.
    Hot(u32),
    /// JOB2: how often pages were used, and how soon again.
    Window(Window),
}

/// What a program's job is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing, until the next window is due.
    Rest,
    /// JOB1's window is open until then.
    Hot(Picos),
    /// JOB2's next pass is then.
    Passes(Picos),
}

/// One program that is watched.
#[derive(Clone)]
struct Job {
    id: ProgramId,
    phase: Phase,
    hot_due: Picos,
    window_due: Picos,
    /// JOB1 had the last window.
    hot_last: bool,
    sample: Sample,
    /// The pages that are looked at: process and page.
    pages: Vec<(u32, Vpn)>,
    sampler: Sampler<Vec<PageRecord>>,
}

impl Job {
    fn due(&self) -> Picos {
        match self.phase {
            Phase::Rest => self.hot_due.min(self.window_due),
            Phase::Hot(until) | Phase::Passes(until) => until,
        }
    }
}

/// SysMon.
#[derive(Clone)]
pub(super) struct SysMon {
    config: SysMonConfig,
    jobs: Vec<Job>,
    observations: Vec<Observation>,
    draws: u64,
}

impl SysMon {
    fn draw(&mut self) -> u64 {
        self.draws = self.draws.wrapping_add(1);
        let z = (self.config.seed ^ self.draws).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ z >> 31
    }
}

/// A time between windows, scaled.
fn scaled(time: Picos, config: &SysMonConfig) -> Picos {
    Picos((time.0 / u64::from(config.time_scale)).max(1))
}

impl Vertical {
    /// A program is watched from now on, if any are.
    pub(super) fn watch(&mut self, id: ProgramId) {
        let monitor = self.manager.config().monitor;
        let Some(sysmon) = &mut self.monitor else {
            return;
        };
        let due = self.now + scaled(monitor.interval, &sysmon.config);
        // The manager was made with the same configuration, so it is valid.
        let Ok(sampler) = Sampler::new(Vec::new(), monitor) else {
            return;
        };
        sysmon.jobs.push(Job {
            id,
            phase: Phase::Rest,
            hot_due: due,
            // One that is known from before is looked at once, too: who starts anew may be another.
            window_due: due,
            hot_last: false,
            sample: Sample::draw(0, 1, 0),
            pages: Vec::new(),
            sampler,
        });
    }

    pub(super) fn unwatch(&mut self, id: ProgramId) {
        if let Some(sysmon) = &mut self.monitor {
            sysmon.jobs.retain(|job| job.id != id);
        }
    }
}

impl Kernel {
    /// Watches programs whose class is not known from elsewhere, those that run and those that come.
    /// Without HVR this does nothing.
    ///
    /// # Errors
    /// Names the field that is 0.
    pub fn monitor(&mut self, config: SysMonConfig) -> Result<(), KernelError> {
        for (field, value) in [
            ("time_scale", config.time_scale),
            ("max_pages", config.max_pages),
        ] {
            if value == 0 {
                let (value, allowed) = (0, "1 and more");
                return Err(KernelError::Config {
                    field,
                    value,
                    allowed,
                });
            }
        }
        let Some(vertical) = self.vertical_mut() else {
            return Ok(());
        };
        vertical.monitor = Some(SysMon {
            config,
            jobs: Vec::new(),
            observations: Vec::new(),
            draws: 0,
        });
        let unknown = vertical
            .manager
            .iter()
            .filter(|(_, p)| p.declared().is_none());
        let unknown: Vec<ProgramId> = unknown.map(|(id, _)| id).collect();
        unknown.into_iter().for_each(|id| vertical.watch(id));
        Ok(())
    }

    /// When SysMon has something to do next: call [`sample`](Self::sample) then.
    pub fn next_sample(&self) -> Option<Picos> {
        let sysmon = self.vertical()?.monitor.as_ref()?;
        sysmon.jobs.iter().map(Job::due).min()
    }

    /// What SysMon's jobs found, in order.
    pub fn observations(&self) -> &[Observation] {
        let sysmon = self.vertical().and_then(|v| v.monitor.as_ref());
        sysmon.map_or(&[], |s| &s.observations)
    }

    /// Does on a core what SysMon has to do by now, and what follows from it.
    pub fn sample(&mut self, core: CoreId, now: Picos, actions: &mut Actions) {
        self.set_hvr_time(now);
        let Some(mut sysmon) = self.vertical_mut().and_then(|v| v.monitor.take()) else {
            return;
        };
        let c = Caller {
            task: TaskId(0),
            core,
            process: 0,
        };
        let mut jobs = std::mem::take(&mut sysmon.jobs);
        let mut classified = Vec::new();
        for job in jobs.iter_mut().filter(|job| job.due() <= now) {
            if let Some(window) = self.go_on_with(job, &mut sysmon, now, actions) {
                classified.push((job.id, window));
            }
        }
        sysmon.jobs = jobs;
        if let Some(vertical) = self.vertical_mut() {
            vertical.monitor = Some(sysmon);
        }
        for (id, window) in classified {
            self.classify(c, id, &window, now, actions);
        }
    }

    /// A window of JOB2 is over.
    fn classify(
        &mut self,
        c: Caller,
        id: ProgramId,
        window: &Window,
        now: Picos,
        actions: &mut Actions,
    ) {
        let Some(vertical) = self.vertical_mut() else {
            return;
        };
        let class = |v: &Vertical| v.manager.program(id).ok().and_then(|p| p.class());
        let before = class(vertical);
        let Ok(change) = vertical.manager.window(id, window) else {
            return;
        };
        let after = class(vertical);
        let monitor = vertical.manager.config().monitor;
        let next = match vertical.manager.program(id) {
            Ok(p) => p.profile().interval(&monitor),
            Err(_) => monitor.interval,
        };
        if let Some(sysmon) = &mut vertical.monitor {
            let next = now + scaled(next, &sysmon.config);
            let mine = sysmon.jobs.iter_mut().find(|job| job.id == id);
            if let Some(job) = mine {
                job.window_due = next;
            }
        }
        let number = vertical.number(id);
        if let Some(class) = after.filter(|_| after != before) {
            self.apply(c, &change, (number, What::Class(class)), actions);
        }
    }

    /// The next step of a job; a window of JOB2 that is over.
    fn go_on_with(
        &mut self,
        job: &mut Job,
        sysmon: &mut SysMon,
        now: Picos,
        actions: &mut Actions,
    ) -> Option<Window> {
        let monitor = self.vertical()?.manager.config().monitor;
        match job.phase {
            Phase::Rest => {
                self.begin_window(job, sysmon, &monitor, now, actions);
                None
            }
            Phase::Hot(_) => {
                let seen = self.walk(&job.pages, false, actions).len();
                let hot = job.sample.scale(seen as u32);
                job.phase = Phase::Rest;
                self.observe(job, sysmon, now, Observed::Hot(hot));
                let manager = &mut self.vertical_mut()?.manager;
                let told = manager.hot_pages(job.id, hot);
                debug_assert!(told.is_ok(), "a program that ends is not watched any more");
                // What speaks against its class brings the next window of JOB2 forward.
                let known = manager.program(job.id);
                let next = known.map_or(monitor.interval, |p| p.profile().interval(&monitor));
                let next = now + scaled(next, &sysmon.config);
                job.window_due = job.window_due.max(now).min(next);
                job.hot_due = job.hot_due.max(now);
                None
            }
            Phase::Passes(_) => {
                for slot in self.walk(&job.pages, true, actions) {
                    job.sampler.touched(slot);
                }
                if let Pass::Left(_) = job.sampler.end_pass() {
                    job.phase = Phase::Passes(now + monitor.hot_window_of(job.sample.pages()));
                    return None;
                }
                job.phase = Phase::Rest;
                job.hot_due = job.hot_due.max(now);
                // Until the manager has said when.
                job.window_due = Picos::MAX;
                let window = job.sampler.window().ok()?;
                self.observe(job, sysmon, now, Observed::Window(window));
                Some(window)
            }
        }
    }

    /// JOB1 if it is due, else JOB2; they take turns where both are due, as windows of JOB1 may be longer than the time
    /// between them.
    fn begin_window(
        &mut self,
        job: &mut Job,
        sysmon: &mut SysMon,
        monitor: &MonitorConfig,
        now: Picos,
        actions: &mut Actions,
    ) {
        let mut all = Vec::new();
        for (number, p) in self.processes.iter().enumerate() {
            let Some(p) = p.as_ref().filter(|p| p.managed == Some(job.id)) else {
                continue;
            };
            let mut at = Vpn(0);
            while let Some((vpn, e, _)) = p.space.tables.next(at) {
                if !e.has(Entry::ZERO) {
                    all.push((number as u32, vpn));
                }
                at = Vpn(vpn.0 + 1);
            }
        }
        let count = all.len() as u32;
        job.sample = Sample::draw(count, sysmon.config.max_pages, sysmon.draw());
        job.pages.clear();
        let looked_at = (0..job.sample.slots()).filter_map(|slot| job.sample.page(slot));
        job.pages.extend(looked_at.map(|page| all[page as usize]));
        self.walk(&job.pages, true, actions);
        let end = now + monitor.hot_window_of(count);
        let others_turn = job.hot_last && job.window_due <= now;
        job.hot_last = job.hot_due <= now && !others_turn;
        if job.hot_last {
            job.phase = Phase::Hot(end);
            job.hot_due = now + scaled(monitor.interval, &sysmon.config);
            return;
        }
        let slots = job.pages.len();
        let records = vec![PageRecord::UNUSED; slots];
        // The configuration was valid before.
        if let Ok(sampler) = Sampler::new(records, *monitor) {
            job.sampler = sampler;
        }
        job.sampler.begin(slots as u32, sysmon.draw());
        job.phase = Phase::Passes(end);
    }

    fn observe(&self, job: &Job, sysmon: &mut SysMon, now: Picos, observed: Observed) {
        let program = self.vertical().map_or(0, |v| v.number(job.id));
        sysmon.observations.push(Observation {
            time: now,
            program,
            pages: job.sample.pages(),
            observed,
        });
    }

    /// Reads the access bits of pages, and clears them where that is asked: the slots of
    /// those that were used. Pages that are gone were not.
    fn walk(&mut self, pages: &[(u32, Vpn)], clear: bool, actions: &mut Actions) -> Vec<u32> {
        let mut used = Vec::new();
        let mut cleared = None;
        let drop_all = |process: Option<u32>, actions: &mut Actions| {
            if let Some(process) = process {
                let asid = Asid(process + 1);
                actions.push(Action::ShootDown { asid, page: None });
            }
        };
        for (slot, (number, vpn)) in (0u32..).zip(pages) {
            let process = self.processes.get_mut(*number as usize);
            let Some(p) = process.and_then(Option::as_mut) else {
                continue;
            };
            let Some((e, _)) = p.space.tables.lookup(*vpn) else {
                continue;
            };
            if let Some(at) = p.space.tables.slot(*vpn) {
                let place = Place {
                    frame: Pfn(u64::from(at.frame)),
                    offset: at.offset,
                };
                let kind = if clear {
                    RefKind::Update
                } else {
                    RefKind::Load
                };
                actions.touch(place, kind, WALK_SITE);
            }
            if !e.has(Entry::ACCESSED) {
                continue;
            }
            used.push(slot);
            if clear {
                p.space.tables.update(*vpn, e.without(Entry::ACCESSED));
                if cleared != Some(*number) {
                    p.space.epoch = p.space.epoch.wrapping_add(1);
                    drop_all(cleared.replace(*number), actions);
                }
            }
        }
        drop_all(cleared, actions);
        let looked = pages.len() as u32;
        actions.instrs(self.config.costs.per_scan_instrs.saturating_mul(looked));
        used
    }
}
