//! Random programs on a kernel whose memory is paged.

use super::{CORE, Host, Op, plain, read, write};
use piebald_os_model::{
    file::FileConfig,
    kernel::{Kernel, SysWork},
};
use piebald_units::{
    Picos, VirtAddr,
    op::{Access, Backing, RefKind, SpawnKind, SysOp},
};

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }
}

fn random_op(r: &mut Random) -> Op {
    let page = match r.below(4) {
        0 => 4000 + r.below(20),
        1 => 5000 + r.below(20),
        _ => r.below(60),
    };
    match r.below(20) {
        0..6 => Op::Touch(page << 12, RefKind::Load),
        6..12 => Op::Touch((page << 12) + 8 * r.below(512), RefKind::Store),
        12..15 => {
            let buffer = [0, (r.below(60) << 12) + 512][r.below(2) as usize];
            Op::Call(
                read(1 + r.below(3), r.below(60), 1 + r.below(6), buffer),
                false,
            )
        }
        15..17 => {
            let (offset, len) = (r.below(200_000), 1 + r.below(20_000));
            Op::Call(write(1 + r.below(3), offset, len, r.below(60) << 12), false)
        }
        17 => Op::Call(
            SysOp::Unmap {
                addr: VirtAddr(page << 12),
                len: (1 + r.below(8)) << 12,
            },
            false,
        ),
        18 => Op::Call(
            SysOp::Remap {
                from: VirtAddr(page << 12),
                old_len: 4 << 12,
                to: VirtAddr((100 + r.below(30)) << 12),
                new_len: (1 + r.below(6)) << 12,
            },
            false,
        ),
        _ => Op::Call(
            SysOp::Map {
                addr: VirtAddr((4000 + 1000 * r.below(2)) << 12),
                len: 20 << 12,
                backing: match r.below(3) {
                    0 => Backing::Anon,
                    file => Backing::File {
                        file: piebald_units::FileId(file),
                        offset: 0,
                    },
                },
                access: Access {
                    write: true,
                    exec: false,
                },
                shared: r.below(2) == 0,
            },
            false,
        ),
    }
}

/// Random programs that fork and end, in a memory that is far too small.
pub fn run(
    policy: &str,
    seed: u64,
    steps: u32,
    check_every: u32,
    set_up: impl FnOnce(&mut Kernel),
) -> String {
    let mut r = Random(seed);
    let config = match seed % 3 {
        0 => plain(),
        1 => FileConfig {
            swap: plain().swap,
            ..FileConfig::linux_2_6_30()
        },
        _ => FileConfig {
            swap: plain().swap,
            ..FileConfig::linux_2_6_11()
        },
    };
    let mut h = Host::new(policy, 90, config);
    set_up(&mut h.k);
    let mut tasks = vec![h.start(), h.start()];
    for step in 0..steps {
        let at = r.below(tasks.len() as u64) as usize;
        let task = tasks[at];
        if h.waiting.contains_key(&task) {
            if !h.event() {
                h.k.nudge().unwrap();
            }
        } else {
            match r.below(60) {
                0 if tasks.len() < 4 => {
                    let kind = [SpawnKind::Fork, SpawnKind::Thread][r.below(2) as usize];
                    let spawn = SysOp::Spawn { thread: 1, kind };
                    h.actions.clear();
                    let made = h.k.at(h.now).syscall(task, CORE, &spawn, &mut h.actions);
                    match made.unwrap() {
                        SysWork::Spawned { task, .. } => tasks.push(task),
                        other => panic!("{other:?}"),
                    }
                }
                1 if tasks.len() > 1 => {
                    h.exit(task);
                    tasks.swap_remove(at);
                }
                2 => h.sleep(Picos(7_000_000_000_000)),
                _ => {
                    h.begin(task, random_op(&mut r));
                }
            }
        }
        if step % check_every == 0 {
            h.k.validate()
                .unwrap_or_else(|e| panic!("{policy}, seed {seed}, step {step}: {e}"));
        }
    }
    h.settle();
    h.check();
    let state = h.k.paging().unwrap();
    assert!(
        state.stats.swap_ins > 10 && state.stats.evicted > 100,
        "{policy}: {:?}",
        state.stats
    );
    let summary = format!("{:?} {:?} {:?}", h.now, h.k.counters(), h.k.paging());
    for task in tasks {
        h.exit(task);
    }
    while h.event() {}
    h.check();
    assert_eq!(h.k.paging().unwrap().swap_used, 0, "{policy}, seed {seed}");
    summary
}
