//! A kernel with eight colours, for tests.
#![allow(dead_code, reason = "each test binary uses its part")]

use piebald_os_model::{
    frames::{ColorMap, Colored, ColoredConfig, OwnedFrames},
    kernel::{
        Actions, ColorConfig, FaultKind, Kernel, KernelConfig, KernelError, OnLimit, SwapConfig,
        SysWork,
    },
};
use piebald_policy::{color_map::BitClass, rainbow};
use piebald_units::ColorAsk;
use piebald_units::{
    ColorSet, CoreId, FileId, TaskId, VirtAddr,
    op::{Access, Backing, MemRef, RefKind, SpawnKind, SysOp},
};

/// Frame bits 0 to 2.
pub fn color_map() -> ColorMap {
    let bits = [0, 1, 2].map(|b| (1u64 << b, BitClass::Cache));
    ColorMap::from_masks(&bits).unwrap()
}

pub fn frames(frames: u64, cores: u16) -> Box<dyn OwnedFrames> {
    let config = ColoredConfig {
        core_frames: 64,
        batch: 16,
        ..ColoredConfig::new(frames, cores, color_map())
    };
    Box::new(Colored::new(&config).unwrap())
}

pub fn config(cores: u16, rainbow: rainbow::Config) -> KernelConfig {
    KernelConfig {
        image_pages: 64,
        colors: Some(ColorConfig {
            map: color_map(),
            rainbow,
            hvr: None,
        }),
        ..KernelConfig::new(cores)
    }
}

pub const CORE: CoreId = CoreId(0);
pub const FRAMES: u64 = 4096;
/// Frames of a colour.
pub const OF_COLOR: u64 = FRAMES / 8;
pub const BASE: u64 = 0x100;

pub fn kernel_with(rainbow: rainbow::Config, swap: SwapConfig) -> Kernel {
    let config = KernelConfig {
        swap,
        ..config(2, rainbow)
    };
    Kernel::new(config, frames(FRAMES, 2)).unwrap()
}

pub fn kernel() -> Kernel {
    kernel_with(rainbow::Config::PAPER, SwapConfig::default())
}

pub fn set(text: &str) -> ColorSet {
    text.parse().unwrap()
}

pub fn exactly(text: &str) -> ColorAsk {
    ColorAsk::Exactly(set(text))
}

pub fn reserve(k: &mut Kernel, t: TaskId, want: &ColorAsk) {
    k.reserve(t, CORE, want, &mut Actions::new()).unwrap();
}

pub fn resize(k: &mut Kernel, t: TaskId, want: &ColorAsk) {
    k.resize(t, CORE, want, &mut Actions::new()).unwrap();
}

/// A program that owns colours and swaps or fails.
pub fn start(k: &mut Kernel, program: u16, colors: &str, on_limit: OnLimit) -> TaskId {
    let t = k.start(program).unwrap();
    reserve(k, t, &exactly(colors));
    k.set_on_limit(t, on_limit).unwrap();
    t
}

/// A reference to a page; the frame, and what its fault was.
pub fn touch(
    k: &mut Kernel,
    t: TaskId,
    page: u64,
    kind: RefKind,
    actions: &mut Actions,
) -> Result<(u32, Option<FaultKind>), KernelError> {
    let r = MemRef {
        addr: VirtAddr((BASE + page) << 12),
        size: 8,
        kind,
        ..MemRef::default()
    };
    let (mut out, mut found) = (Vec::new(), None);
    while let Some(fault) = k.translate(t, &[r], &mut out)?.fault {
        found = Some(k.fault(t, CORE, fault, actions)?.kind);
    }
    Ok((out[0].frame, found))
}

pub fn store(k: &mut Kernel, t: TaskId, page: u64) -> (u32, Option<FaultKind>) {
    touch(k, t, page, RefKind::Store, &mut Actions::new()).unwrap()
}

pub fn load(k: &mut Kernel, t: TaskId, page: u64) -> (u32, Option<FaultKind>) {
    touch(k, t, page, RefKind::Load, &mut Actions::new()).unwrap()
}

pub fn colors(k: &mut Kernel, t: TaskId, pages: std::ops::Range<u64>) -> Vec<u32> {
    pages.map(|p| store(k, t, p).0 % 8).collect()
}

pub fn spawn(k: &mut Kernel, t: TaskId, kind: SpawnKind) -> TaskId {
    let op = SysOp::Spawn { thread: 1, kind };
    match k.syscall(t, CORE, &op, &mut Actions::new()).unwrap() {
        SysWork::Spawned { task, .. } => task,
        other => panic!("{other:?}"),
    }
}

pub fn exit(k: &mut Kernel, t: TaskId) {
    k.exit(t, CORE, &mut Actions::new()).unwrap();
}

pub fn map(k: &mut Kernel, t: TaskId, first: u64, pages: u64, backing: Backing) {
    let op = SysOp::Map {
        addr: VirtAddr((BASE + first) << 12),
        len: pages << 12,
        backing,
        access: Access {
            write: true,
            exec: false,
        },
        shared: false,
    };
    k.syscall(t, CORE, &op, &mut Actions::new()).unwrap();
}

pub fn read(file: u64, pages: u64) -> SysOp {
    SysOp::Read {
        file: FileId(file),
        offset: 0,
        len: pages << 12,
        buffer: VirtAddr(0),
    }
}

pub fn fill_up(k: &mut Kernel, t: TaskId, from: u64) -> KernelError {
    let mut actions = Actions::new();
    let stores = (from..).map(|p| touch(k, t, p, RefKind::Store, &mut actions));
    stores.filter_map(Result::err).next().unwrap()
}
