//! Random programs against a model of memory without frames: every load sees
//! the last store, over faults, forks, copies on write, file mappings, moves of
//! pages, partitions of colours, swapping and 2 MiB pages; access bits tell what was
//! touched; nothing leaks.

use crate::colored;
use piebald_units::ColorAsk;
use std::collections::{BTreeSet, HashMap};

use crate::memory_model::{ANON, Behind, Frames, Image, Page, Value};
use piebald_os_model::{
    frames::{Age, Flavour, OwnedFrames, RandomFrames, Stock, StockConfig},
    kernel::{Actions, Kernel, KernelConfig, KernelError, Move, OnLimit, SwapConfig, SysWork, Thp},
};
use piebald_policy::{
    contract::Mode,
    rainbow::{self, Balance, WhenFull},
};
use piebald_units::{
    Color, ColorSet, CoreId, FileId, TaskId, VirtAddr, Vpn,
    memory::PageTables,
    op::{Access, Backing, MemRef, RefKind, SpawnKind, SysOp},
};
use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// Pages of the address range that the programs use: four 2 MiB ranges.
const FIRST: u64 = 0x4000;
const PAGES: u64 = 2048;
const FILES: u64 = 3;
const FILE_PAGES: u64 = 600;

struct World {
    kernel: Kernel,
    frames: Frames,
    objects: HashMap<Behind, Value>,
    images: Vec<Image>,
    /// Live tasks and the image that each runs in.
    tasks: Vec<(TaskId, usize)>,
    next_value: Value,
    next_shared: u64,
    actions: Actions,
    rng: Pcg64Mcg,
}

fn addr(vpn: u64) -> VirtAddr {
    VirtAddr(vpn << 12)
}

impl World {
    fn new(frames: Box<dyn OwnedFrames>, thp: Thp, seed: u64) -> Self {
        let config = KernelConfig {
            thp,
            image_pages: 64,
            ..KernelConfig::new(4)
        };
        Self::with(frames, config, seed)
    }

    fn with(frames: Box<dyn OwnedFrames>, config: KernelConfig, seed: u64) -> Self {
        let mut w = Self {
            kernel: Kernel::new(config, frames).unwrap(),
            frames: Frames::default(),
            objects: HashMap::new(),
            images: Vec::new(),
            tasks: Vec::new(),
            next_value: 1,
            next_shared: FILES,
            actions: Actions::new(),
            rng: Pcg64Mcg::seed_from_u64(seed),
        };
        w.frames.set(w.kernel.zero_frame().0, 0);
        w.load_files();
        w
    }

    /// There is no disk, so a first program writes all files.
    fn load_files(&mut self) {
        let task = self.kernel.start(9).unwrap();
        self.images.push(Image::default());
        self.tasks.push((task, 0));
        for file in 0..FILES {
            for index in 0..FILE_PAGES {
                let value = self.access(0, FIRST, true).unwrap();
                let op = SysOp::Write {
                    file: FileId(file),
                    offset: index << 12,
                    len: 4096,
                    buffer: addr(FIRST),
                };
                self.sys(task, &op).unwrap();
                self.objects.insert((file, index), value);
            }
        }
    }

    fn start(&mut self, program: u16) {
        let task = self.kernel.start(program).unwrap();
        self.images.push(Image::default());
        self.tasks.push((task, self.images.len() - 1));
    }

    fn sys(&mut self, task: TaskId, op: &SysOp) -> Result<SysWork, KernelError> {
        let core = CoreId(self.rng.random_range(0..4));
        let r = self.kernel.syscall(task, core, op, &mut self.actions);
        self.frames.perform(&mut self.actions);
        r
    }

    /// One load or store of a task, checked against the model; returns the
    /// value seen or stored.
    fn access(&mut self, at: usize, vpn: u64, write: bool) -> Result<Value, KernelError> {
        let (task, image) = self.tasks[at];
        let kind = if write { RefKind::Store } else { RefKind::Load };
        let r = MemRef {
            addr: addr(vpn),
            size: 8,
            kind,
            ..MemRef::default()
        };
        let mut out = Vec::new();
        for tries in 0.. {
            assert!(tries < 2, "one fault resolves one reference");
            let t = self.kernel.translate(task, &[r], &mut out)?;
            let Some(fault) = t.fault else { break };
            let core = CoreId(self.rng.random_range(0..4));
            let resolved = self.kernel.fault(task, core, fault, &mut self.actions);
            self.frames.perform(&mut self.actions);
            resolved?;
        }
        assert_eq!(out.len(), 1);
        let frame = u64::from(out[0].frame);
        let model = &mut self.images[image];
        if write {
            let value = self.next_value;
            self.next_value += 1;
            model.store(vpn, value, &mut self.objects);
            self.frames.set(frame, value);
            return Ok(value);
        }
        let want = model.load(vpn, &self.objects);
        assert_eq!(self.frames.get(frame), want, "{task} at page {vpn:#x}");
        Ok(want)
    }

    fn range(&mut self) -> (u64, u64) {
        let n = match self.rng.random_range(0..3) {
            0 => self.rng.random_range(1..8),
            1 => self.rng.random_range(1..700),
            _ => 512 * self.rng.random_range(1..3u64),
        };
        let align = if self.rng.random_bool(0.5) { 512 } else { 1 };
        let first = self.rng.random_range(0..(PAGES - n) / align + 1) * align;
        (FIRST + first, n)
    }

    fn map(&mut self, at: usize) -> Result<(), KernelError> {
        let (task, image) = self.tasks[at];
        let (first, n) = self.range();
        let shared = self.rng.random_bool(0.3);
        let file = self.rng.random_range(0..FILES);
        let is_file = self.rng.random_bool(0.4) && n <= FILE_PAGES / 2;
        let start = self.rng.random_range(0..FILE_PAGES / 2);
        let behind = match (is_file, shared) {
            (true, _) => Some((file, start)),
            (false, true) => {
                self.next_shared += 1;
                Some((self.next_shared, 0))
            }
            _ => None,
        };
        let backing = if is_file {
            Backing::File {
                file: FileId(file),
                offset: start << 12,
            }
        } else {
            Backing::Anon
        };
        self.sys(
            task,
            &SysOp::Map {
                addr: addr(first),
                len: n << 12,
                backing,
                access: Access {
                    write: true,
                    exec: false,
                },
                shared,
            },
        )?;
        self.images[image].map(first, n, |i| Page {
            own: None,
            behind: behind.map(|(o, x)| (o, x + i)),
            shared,
        });
        Ok(())
    }

    fn remap(&mut self, at: usize) -> Result<(), KernelError> {
        let (task, image) = self.tasks[at];
        let ((from, old), (to, new)) = (self.range(), self.range());
        let to = if self.rng.random_bool(0.3) { from } else { to };
        let overlap = from != to && from < to + new && to < from + old;
        // A file page beyond those that were written has no content to compare.
        let model = &self.images[image];
        let last = model.pages.get(&(from + old.min(new) - 1));
        let beyond = last.is_some_and(|p| p.behind.is_some_and(|(o, _)| o < FILES));
        if overlap || to + new > FIRST + PAGES || (beyond && new > old) {
            return Ok(());
        }
        self.sys(
            task,
            &SysOp::Remap {
                from: addr(from),
                old_len: old << 12,
                to: addr(to),
                new_len: new << 12,
            },
        )?;
        self.images[image].remap(from, old, to, new);
        Ok(())
    }

    fn transfer(&mut self, at: usize) -> Result<(), KernelError> {
        let (task, image) = self.tasks[at];
        let (file, index) = (
            self.rng.random_range(0..FILES),
            self.rng.random_range(0..FILE_PAGES - 8),
        );
        let (first, n) = (
            FIRST + self.rng.random_range(0..PAGES - 8),
            self.rng.random_range(1..8u64),
        );
        let (offset, len, buffer) = (index << 12, n << 12, addr(first));
        let to_user = self.rng.random_bool(0.5);
        let file_id = FileId(file);
        let op = if to_user {
            SysOp::Read {
                file: file_id,
                offset,
                len,
                buffer,
            }
        } else {
            SysOp::Write {
                file: file_id,
                offset,
                len,
                buffer,
            }
        };
        self.sys(task, &op)?;
        for i in 0..n {
            let model = &mut self.images[image];
            if to_user {
                let v = self.objects[&(file, index + i)];
                model.store(first + i, v, &mut self.objects);
            } else {
                let v = model.load(first + i, &self.objects);
                self.objects.insert((file, index + i), v);
            }
        }
        Ok(())
    }

    fn spawn(&mut self, at: usize) -> Result<(), KernelError> {
        let (task, image) = self.tasks[at];
        let kind = if self.rng.random_bool(0.6) {
            SpawnKind::Fork
        } else {
            SpawnKind::Thread
        };
        let work = self.sys(task, &SysOp::Spawn { thread: 1, kind })?;
        let SysWork::Spawned { task: new, .. } = work else {
            panic!("spawn makes a task");
        };
        let image = match kind {
            SpawnKind::Thread => image,
            SpawnKind::Fork => {
                let mut child = self.images[image].clone();
                child.touched.clear();
                self.images.push(child);
                self.images.len() - 1
            }
        };
        self.tasks.push((new, image));
        Ok(())
    }

    fn migrate(&mut self, at: usize) -> Result<(), KernelError> {
        let (task, _) = self.tasks[at];
        let vpn = Vpn(FIRST + self.rng.random_range(0..PAGES));
        let target = Move {
            allowed: None,
            wish: None,
            mode: Mode::Hint,
        };
        self.kernel
            .migrate(task, CoreId(1), vpn, target, &mut self.actions)?;
        self.frames.perform(&mut self.actions);
        Ok(())
    }

    fn scan(&mut self, at: usize) -> Result<(), KernelError> {
        let (task, image) = self.tasks[at];
        let mut seen = BTreeSet::new();
        let pages = Vpn(0)..Vpn(1 << 36);
        let scan = self.kernel.scan_accessed(task, pages, true, |v, _| {
            seen.insert(v.0);
        })?;
        assert_eq!(scan.accessed, seen.len() as u64);
        if self.kernel.config().thp == Thp::Never {
            // A clock clears bits too, and what is swapped out has none.
            let touched = &self.images[image].touched;
            match self.kernel.partitions() {
                None => assert_eq!(&seen, touched, "{task}"),
                Some(_) => assert!(seen.is_subset(touched), "{task}"),
            }
        }
        self.images[image].touched.clear();
        Ok(())
    }

    fn end(&mut self, at: usize) -> Result<(), KernelError> {
        let (task, _) = self.tasks.swap_remove(at);
        self.kernel.exit(task, CoreId(0), &mut self.actions)?;
        self.frames.perform(&mut self.actions);
        Ok(())
    }

    fn exec(&mut self, at: usize) -> Result<(), KernelError> {
        let (task, _) = self.tasks[at];
        self.sys(task, &SysOp::Exec)?;
        self.images.push(Image::default());
        self.tasks[at].1 = self.images.len() - 1;
        Ok(())
    }

    fn step(&mut self) -> Result<(), KernelError> {
        let at = self.rng.random_range(0..self.tasks.len());
        let (task, image) = self.tasks[at];
        match self.rng.random_range(0..1000) {
            0..20 => self.map(at),
            20..26 => {
                let (first, n) = self.range();
                self.sys(
                    task,
                    &SysOp::Unmap {
                        addr: addr(first),
                        len: n << 12,
                    },
                )?;
                self.images[image].unmap(first, n);
                Ok(())
            }
            26..32 => {
                let (first, n) = self.range();
                self.sys(
                    task,
                    &SysOp::Discard {
                        addr: addr(first),
                        len: n << 12,
                    },
                )?;
                self.images[image].discard(first, n);
                Ok(())
            }
            32..42 => self.remap(at),
            42..60 => self.transfer(at),
            60..66 if self.tasks.len() < 8 => self.spawn(at),
            66..70 if self.tasks.len() > 1 => self.end(at),
            70..72 => self.exec(at),
            72..110 => self.migrate(at),
            110..115 => self.scan(at),
            _ => {
                let write = self.rng.random_bool(0.4);
                let near = self.rng.random_range(0..PAGES);
                for i in 0..self.rng.random_range(1..6) {
                    self.access(at, FIRST + (near + i) % PAGES, write)?;
                }
                Ok(())
            }
        }
    }

    fn check_walks(&self) {
        let boot = self.kernel.kernel_space();
        assert_eq!(
            boot.walk(piebald_os_model::kernel::direct_address(
                piebald_units::Pfn(9),
                8
            ))
            .levels,
            3
        );
        for (task, _) in &self.tasks {
            let space = self.kernel.space(*task).unwrap();
            let tables = space.table_frames();
            for vpn in (FIRST..FIRST + PAGES).step_by(37) {
                let walk = space.walk(addr(vpn));
                assert_eq!(walk.levels > 0, space.entry(Vpn(vpn)).is_some());
                for e in &walk.entries[..usize::from(walk.levels)] {
                    assert!(tables.contains(&((e.0 >> 12) as u32)));
                }
            }
        }
    }

    fn finish(mut self) {
        while !self.tasks.is_empty() {
            self.end(0).unwrap();
        }
        self.kernel.validate().unwrap();
        let cached = self.kernel.object_pages();
        assert_eq!(
            cached,
            FILES * FILE_PAGES,
            "shared memory went with its last mapping"
        );
        let free = self.kernel.free_frames();
        for f in 0..FILES {
            self.kernel.drop_file(FileId(f));
        }
        self.kernel.validate().unwrap();
        assert_eq!(self.kernel.free_frames(), free + cached);
    }
}

fn run(frames: Box<dyn OwnedFrames>, thp: Thp, seed: u64, steps: u32) {
    let total = frames.total_frames();
    let mut w = World::new(frames, thp, seed);
    w.start(1);
    for step in 0..steps {
        w.step().unwrap();
        if step % 250 == 0 {
            w.kernel
                .validate()
                .unwrap_or_else(|e| panic!("seed {seed}, step {step}: {e}"));
            w.check_walks();
        }
    }
    assert_eq!(w.kernel.total_frames(), total);
    let counters = w.kernel.counters();
    assert!(counters.cow_copies > 0 && counters.migrations > 0 && counters.implicit_pages > 0);
    w.finish();
}

fn stock(frames: u64) -> Box<dyn OwnedFrames> {
    Box::new(Stock::new(&StockConfig::new(frames, 4, Flavour::V6_12)).unwrap())
}

#[test]
fn loads_see_the_last_store_in_small_pages() {
    for seed in 0..4 {
        run(stock(1 << 16), Thp::Never, seed, 6000);
    }
}

#[test]
fn loads_see_the_last_store_in_large_pages() {
    for seed in 10..14 {
        run(stock(1 << 16), Thp::Always, seed, 6000);
    }
}

#[test]
fn loads_see_the_last_store_in_random_frames() {
    let frames = Box::new(RandomFrames::new(1 << 16, 2).unwrap());
    run(frames, Thp::Always, 20, 6000);
}

#[test]
fn memory_that_runs_out_is_an_error_and_nothing_leaks() {
    let mut w = World::new(stock(3072), Thp::Always, 5);
    w.start(1);
    let mut failed = 0;
    for _ in 0..30_000 {
        match w.step() {
            Ok(()) => {}
            Err(KernelError::OutOfMemory(e)) => {
                failed += 1;
                assert_eq!(e.total.0, 12 << 20);
                // A failed call may have done half its work: the program ends.
                w.actions.clear();
                w.kernel.validate().unwrap();
                let at = w.tasks.iter().position(|t| t.0 == e.task).unwrap_or(0);
                let image = w.tasks[at].1;
                while let Some(at) = w.tasks.iter().position(|t| t.1 == image) {
                    w.end(at).unwrap();
                }
                if w.tasks.is_empty() {
                    w.start(1);
                }
            }
            Err(e) => panic!("{e}"),
        }
    }
    assert!(failed > 3, "{failed}");
    w.finish();
}

#[test]
fn large_pages_fall_back_to_small_ones_on_aged_memory() {
    let mut w = World::new(stock(1 << 15), Thp::Always, 6);
    w.kernel.age(&Age::new(3, 200, 4)).unwrap();
    w.start(1);
    let task = w.tasks[1].0;
    let op = SysOp::Map {
        addr: addr(FIRST),
        len: PAGES << 12,
        backing: Backing::Anon,
        access: Access {
            write: true,
            exec: false,
        },
        shared: false,
    };
    w.sys(task, &op).unwrap();
    w.images[1].map(FIRST, PAGES, |_| ANON);
    for vpn in FIRST..FIRST + PAGES {
        w.access(1, vpn, true).unwrap();
    }
    let c = w.kernel.counters();
    assert!(c.huge_fallbacks > 0);
    assert_eq!(w.kernel.space(task).unwrap().resident().anon, PAGES);
    w.kernel.validate().unwrap();
}

/// Colours come, change and go while the programs run; these calls may be refused.
impl World {
    fn want(&mut self) -> ColorAsk {
        match self.rng.random_range(0..3) {
            0 => ColorAsk::Count(self.rng.random_range(0..4)),
            1 => ColorAsk::Share(self.rng.random_range(0..4000)),
            _ => {
                let first = self.rng.random_range(0..9u16);
                let mut set = ColorSet::EMPTY;
                for color in first..first + self.rng.random_range(0..3u16) {
                    set.insert(Color(color));
                }
                ColorAsk::Exactly(set)
            }
        }
    }

    fn color_step(&mut self) -> Result<(), KernelError> {
        let at = self.rng.random_range(0..self.tasks.len());
        let (task, core) = (self.tasks[at].0, CoreId(self.rng.random_range(0..4)));
        let want = self.want();
        let other = self.tasks[self.rng.random_range(0..self.tasks.len())].0;
        let on_limit = [OnLimit::Fail, OnLimit::Swap, OnLimit::Swap, OnLimit::Borrow];
        let on_limit = on_limit[self.rng.random_range(0..4)];
        let max = self.rng.random_range(0..600);
        let kind = self.rng.random_range(0..5);
        let (k, actions) = (&mut self.kernel, &mut self.actions);
        let done = match kind {
            0 => k.reserve(task, core, &want, actions).map(|_| ()),
            1 => k.resize(task, core, &want, actions).map(|_| ()),
            2 => k.set_on_limit(task, on_limit),
            3 => match k.partition_of(other)? {
                Some(id) => k.attach(task, core, id, actions),
                None => Ok(()),
            },
            _ => k.recolor(task, core, max, actions).map(|r| {
                assert!(r.moved <= max);
            }),
        };
        self.frames.perform(&mut self.actions);
        match done {
            Err(
                KernelError::Colors { .. }
                | KernelError::NoPartition { .. }
                | KernelError::Join { .. }
                | KernelError::Recolor { .. },
            ) => Ok(()),
            other => other,
        }
    }

    /// The program that a failed call belonged to ends: half its work may be done.
    fn end_program_of(&mut self, task: TaskId) {
        let at = self.tasks.iter().position(|t| t.0 == task).unwrap_or(0);
        let image = self.tasks[at].1;
        while let Some(at) = self.tasks.iter().position(|t| t.1 == image) {
            self.end(at).unwrap();
        }
    }
}

#[test]
fn loads_see_the_last_store_while_colors_change_hands_and_pages_are_swapped() {
    let mut total = piebald_os_model::kernel::Counters::default();
    let mut limits = 0;
    for seed in 30..38 {
        let rainbow = rainbow::Config {
            balance: if seed % 2 == 0 {
                Balance::Spread
            } else {
                Balance::MustMove
            },
            when_full: if seed % 3 == 0 {
                WhenFull::Others
            } else {
                WhenFull::Everyone
            },
            ..rainbow::Config::PAPER
        };
        let swap = SwapConfig {
            pages: if seed % 4 == 0 { 300 } else { 1 << 20 },
            ..SwapConfig::default()
        };
        let config = KernelConfig {
            image_pages: 64,
            thp: if seed % 2 == 0 {
                Thp::Always
            } else {
                Thp::Never
            },
            swap,
            ..colored::config(4, rainbow)
        };
        let mut w = World::with(colored::frames(4608, 4), config, seed);
        w.start(1);
        for step in 0..8000 {
            let done = match w.rng.random_range(0..60) {
                0 => w.color_step(),
                _ => w.step(),
            };
            let failed = match done {
                Ok(()) => None,
                Err(KernelError::OutOfMemory(e)) => Some(e.task),
                Err(KernelError::ColorLimit(e)) => {
                    limits += 1;
                    let h = e.held;
                    let parts = [h.own, h.others, h.files, h.aged, h.kernel, h.free];
                    assert_eq!(parts.iter().sum::<u64>(), h.frames, "{e}");
                    Some(e.task)
                }
                Err(e) => panic!("seed {seed}, step {step}: {e}"),
            };
            w.frames.perform(&mut w.actions);
            if let Some(task) = failed {
                w.end_program_of(task);
            }
            if w.tasks.len() < 2 {
                w.start(1 + (step % 3) as u16);
            }
            if step % 100 == 0 || failed.is_some() {
                let sound = w.kernel.validate();
                sound.unwrap_or_else(|e| panic!("seed {seed}, step {step}: {e}"));
            }
        }
        let c = w.kernel.counters();
        total.swap_ins += c.swap_ins;
        total.swap_outs += c.swap_outs;
        total.recolored += c.recolored;
        total.recolor_failed += c.recolor_failed;
        w.finish();
    }
    assert!(total.swap_ins > 100 && total.swap_outs > 100, "{total:?}");
    assert!(
        total.recolored > 100 && total.recolor_failed > 0,
        "{total:?}"
    );
    assert!(limits > 0, "no limit was reached");
}
