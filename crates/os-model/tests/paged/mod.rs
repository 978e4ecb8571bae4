//! Programs on a kernel whose memory is paged, without a machine: work takes no time,
//! the disk does.
#![allow(dead_code, reason = "each test binary uses its part")]

pub mod random;

use std::collections::BTreeMap;

use crate::filehost::disk::TestDisk;
use piebald_os_model::{
    file::{FileConfig, FileHost, FileTable, Layout, Paging, SwapArea},
    frames::{Flavour, Stock, StockConfig},
    kernel::{Actions, FaultKind, Kernel, KernelConfig, PagingConfig, SysWork},
    replace::{AnyPolicy, PolicySpec, registry::Setup},
};
use piebald_units::{
    CoreId, FileId, Lba, Picos, TaskId, VirtAddr,
    op::{Backing, MemRef, RefKind, SysOp},
};

pub const CORE: CoreId = CoreId(0);
/// Frames that the kernel keeps.
pub const RESERVE: u32 = 64;

/// A file side with a named policy over a test disk.
pub fn paging(policy: &str, pages: u32, config: FileConfig) -> Box<dyn Paging> {
    let packed = Layout::Packed {
        start: Lba(0),
        gap_pages: 0,
    };
    let files = FileTable::new(packed).unwrap();
    let policy = AnyPolicy::build(&PolicySpec::plain(policy), &Setup::new(pages), None).unwrap();
    Box::new(FileHost::new(config, files, policy, TestDisk::default()).unwrap())
}

/// No readahead, and a swap area that nothing fills.
pub fn plain() -> FileConfig {
    FileConfig {
        swap: Some(SwapArea::new(Lba(1 << 30), 1 << 16)),
        ..FileConfig::plain()
    }
}

/// What a task is in.
#[derive(Clone, Copy, Debug)]
pub enum Op {
    Touch(u64, RefKind),
    Call(SysOp, bool),
}

pub struct Host {
    pub k: Kernel,
    pub now: Picos,
    pub waiting: BTreeMap<TaskId, Op>,
    pub actions: Actions,
    pub faults: BTreeMap<String, u64>,
}

impl Host {
    /// A kernel with room for `pages` pages besides its own data and reserve.
    pub fn new(policy: &str, pages: u32, config: FileConfig) -> Self {
        Self::with(pages, |k| {
            let capacity = k.free_frames() as u32 - RESERVE;
            let side = paging(policy, capacity, config);
            k.page_with(side, PagingConfig { reserve: RESERVE })
                .unwrap();
        })
    }

    /// A kernel without paging, of the same size.
    pub fn unpaged(pages: u32) -> Self {
        Self::with(pages, |_| {})
    }

    fn with(pages: u32, page: impl FnOnce(&mut Kernel)) -> Self {
        // Boot memory depends on the size: a size is looked for that leaves `pages`.
        let config = KernelConfig {
            image_pages: 64,
            ..KernelConfig::new(1)
        };
        let make = |frames: u64| {
            let stock = Stock::new(&StockConfig::new(frames, 1, Flavour::V2_6_30)).unwrap();
            Kernel::new(config.clone(), Box::new(stock)).unwrap()
        };
        let want = u64::from(pages + RESERVE);
        let mut frames = want + 64;
        while make(frames).free_frames() < want {
            frames += 1;
        }
        let mut k = make(frames);
        assert_eq!(k.free_frames(), want);
        page(&mut k);
        Self::over(k)
    }

    /// On a kernel that is paged.
    pub fn over(k: Kernel) -> Self {
        Self {
            k,
            now: Picos(0),
            waiting: BTreeMap::new(),
            actions: Actions::new(),
            faults: BTreeMap::new(),
        }
    }

    pub fn start(&mut self) -> TaskId {
        self.k.at(self.now).start(1).unwrap()
    }

    /// Begins an operation; true if it is done at once.
    pub fn begin(&mut self, task: TaskId, op: Op) -> bool {
        assert!(!self.waiting.contains_key(&task));
        self.attempt(task, op)
    }

    fn attempt(&mut self, task: TaskId, op: Op) -> bool {
        self.actions.clear();
        self.k.at(self.now);
        let (done, op) = match op {
            Op::Touch(addr, kind) => (self.touch(task, addr, kind), op),
            Op::Call(call, begun) => (self.call(task, call, begun), Op::Call(call, true)),
        };
        if !done {
            self.waiting.insert(task, op);
        }
        done
    }

    fn touch(&mut self, task: TaskId, addr: u64, kind: RefKind) -> bool {
        let r = MemRef {
            addr: VirtAddr(addr),
            size: 8,
            kind,
            ..MemRef::default()
        };
        let mut out = Vec::new();
        loop {
            let t = self.k.translate(task, &[r], &mut out).unwrap();
            let Some(fault) = t.fault else { return true };
            let work = self.k.fault(task, CORE, fault, &mut self.actions).unwrap();
            let name = format!("{:?}", work.kind);
            *self.faults.entry(name).or_default() += 1;
            if work.kind == FaultKind::Blocked {
                return false;
            }
        }
    }

    fn call(&mut self, task: TaskId, call: SysOp, begun: bool) -> bool {
        let mut work = match begun {
            false => self
                .k
                .syscall(task, CORE, &call, &mut self.actions)
                .unwrap(),
            true => self.k.resume(task, CORE, &mut self.actions).unwrap(),
        };
        while work == SysWork::More {
            work = self.k.resume(task, CORE, &mut self.actions).unwrap();
        }
        work != SysWork::Blocked
    }

    /// The next event, and who goes on because of it. False if there is none.
    pub fn event(&mut self) -> bool {
        let Some(at) = self.k.next_event() else {
            return false;
        };
        self.now = self.now.max(at);
        self.actions.clear();
        let woken = self.k.advance(self.now, &mut self.actions).unwrap();
        for w in woken {
            let op = self.waiting.remove(&w.task).expect("who is woken waits");
            self.attempt(w.task, op);
        }
        true
    }

    /// Performs an operation to its end.
    pub fn finish(&mut self, task: TaskId, op: Op) {
        let mut done = self.begin(task, op);
        while !done {
            assert!(
                self.event() || self.k.nudge().unwrap(),
                "{task} waits forever"
            );
            done = !self.waiting.contains_key(&task);
        }
    }

    /// Until nobody waits.
    pub fn settle(&mut self) {
        while !self.waiting.is_empty() {
            assert!(
                self.event() || self.k.nudge().unwrap(),
                "{:?} wait forever",
                self.waiting
            );
        }
    }

    pub fn store(&mut self, task: TaskId, page: u64) {
        self.finish(task, Op::Touch(page << 12, RefKind::Store));
    }

    pub fn load(&mut self, task: TaskId, page: u64) {
        self.finish(task, Op::Touch(page << 12, RefKind::Load));
    }

    pub fn sys(&mut self, task: TaskId, op: SysOp) {
        self.finish(task, Op::Call(op, false));
    }

    /// Reads whole pages of a file, without a buffer.
    pub fn read(&mut self, task: TaskId, file: u64, page: u64, pages: u64) {
        self.sys(task, read(file, page, pages, 0));
    }

    /// So much time passes, with what happens in it.
    pub fn sleep(&mut self, time: Picos) {
        let until = self.now + time;
        while self.k.next_event().is_some_and(|at| at <= until) {
            self.event();
        }
        self.now = until;
        self.k.at(until);
    }

    pub fn map_file(&mut self, task: TaskId, page: u64, pages: u64, file: u64, shared: bool) {
        self.sys(
            task,
            SysOp::Map {
                addr: VirtAddr(page << 12),
                len: pages << 12,
                backing: Backing::File {
                    file: FileId(file),
                    offset: 0,
                },
                access: piebald_units::op::Access {
                    write: true,
                    exec: false,
                },
                shared,
            },
        );
    }

    pub fn exit(&mut self, task: TaskId) {
        self.actions.clear();
        self.k
            .at(self.now)
            .exit(task, CORE, &mut self.actions)
            .unwrap();
    }

    pub fn check(&mut self) {
        self.k.validate().unwrap();
    }
}

pub fn read(file: u64, page: u64, pages: u64, buffer: u64) -> SysOp {
    SysOp::Read {
        file: FileId(file),
        offset: page << 12,
        len: pages << 12,
        buffer: VirtAddr(buffer),
    }
}

pub fn write(file: u64, offset: u64, len: u64, buffer: u64) -> SysOp {
    SysOp::Write {
        file: FileId(file),
        offset,
        len,
        buffer: VirtAddr(buffer),
    }
}
