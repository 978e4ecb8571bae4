//! A program's life: faults, fork, copy-on-write, exit; nothing leaks.

use piebald_os_model::{
    frames::{Flavour, Stock, StockConfig},
    kernel::{Actions, ColorRule, FaultKind, Kernel, KernelConfig, SysWork},
};
use piebald_units::{
    CoreId, TaskId, VirtAddr,
    op::{MemRef, RefKind, SpawnKind, SysOp},
};

const CORE: CoreId = CoreId(0);

fn store(addr: u64) -> MemRef {
    MemRef {
        addr: VirtAddr(addr),
        size: 8,
        kind: RefKind::Store,
        ..MemRef::default()
    }
}

fn go(k: &mut Kernel, t: TaskId, refs: &[MemRef]) -> Vec<FaultKind> {
    let (mut out, mut acts, mut kinds) = (Vec::new(), Actions::new(), Vec::new());
    let mut rest = refs;
    while !rest.is_empty() {
        let r = k.translate(t, rest, &mut out).unwrap();
        rest = &rest[r.consumed..];
        if let Some(f) = r.fault {
            kinds.push(k.fault(t, CORE, f, &mut acts).unwrap().kind);
        }
    }
    kinds
}

#[test]
fn fork_shares_pages_until_one_side_stores() {
    let frames = Stock::new(&StockConfig::new(1 << 16, 2, Flavour::V2_6_30)).unwrap();
    let mut k = Kernel::new(KernelConfig::new(2), Box::new(frames)).unwrap();
    let free = k.free_frames();
    let parent = k.start(0, ColorRule::default()).unwrap();
    assert_eq!(
        go(&mut k, parent, &[store(0x1000), store(0x2000)]),
        [FaultKind::Anon; 2]
    );
    let mut acts = Actions::new();
    let op = SysOp::Spawn {
        thread: 1,
        kind: SpawnKind::Fork,
    };
    let SysWork::Spawned {
        task: child,
        thread: 1,
    } = k.syscall(parent, CORE, &op, &mut acts).unwrap()
    else {
        panic!("fork makes a task");
    };
    k.validate().unwrap();
    assert_eq!(
        go(&mut k, child, &[store(0x1000)]),
        [FaultKind::CopyOnWrite]
    );
    assert_eq!(go(&mut k, parent, &[store(0x1000)]), [FaultKind::Reuse]);
    assert_eq!(
        go(&mut k, parent, &[store(0x2000)]),
        [FaultKind::CopyOnWrite]
    );
    k.validate().unwrap();
    k.exit(parent, CORE, &mut acts).unwrap();
    k.exit(child, CORE, &mut acts).unwrap();
    k.validate().unwrap();
    assert_eq!(k.free_frames(), free);
}
