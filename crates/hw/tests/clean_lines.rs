//! Who sends a line that other caches hold: a cache, or memory. Costs and counters of random
//! lists of accesses are compared with a machine that knows only who holds what.

use crate::machine_kit::{Build, DRAM, FIXED, LINE, Rig, Rng, access, cache};
use piebald_units::op::RefKind;

const OWN: u64 = 4;
const GROUP: u64 = 60;
const SOCKET: u64 = 90;
const OTHER: u64 = 150;
const MEMORY: u64 = 40 + FIXED + DRAM;
/// A line that was just written back is still in the controller's queue.
const QUEUED: u64 = 40 + FIXED;
const LINES: u64 = 6;

/// Two sockets of two groups of two cores; the last level holds victims only, so that it has
/// nothing of the few lines here.
fn build(protocol: &str, clean: [&str; 3]) -> Build {
    let [group, socket, other] = clean;
    Build {
        sockets: 2,
        per_socket: 4,
        caches: vec![
            cache(1, 4, 4, 4, ""),
            cache(2, 8, 4, 10, "inclusion = \"non-inclusive\""),
            cache(3, 16, 8, 40, "inclusion = \"victim\"\nshared_by = 2"),
        ],
        rest: format!(
            "[links]\nprotocol = \"{protocol}\"\nsame_group_transfer = {GROUP}\n\
             same_socket_transfer = {SOCKET}\nother_socket_transfer = {OTHER}\n\
             same_group_clean = \"{group}\"\nsame_socket_clean = \"{socket}\"\n\
             other_socket_clean = \"{other}\"\n"
        ),
        ..Build::default()
    }
}

/// One line: who holds it, and who holds it modified.
#[derive(Clone, Copy, Default)]
struct Held {
    by: u8,
    dirty: Option<usize>,
}

/// Cores of a group, of a socket outside of it, and of the other socket, as seen from one.
fn scopes(core: usize) -> [u8; 3] {
    let group = 0b11u8 << (core & !1);
    let socket = 0b1111u8 << (core & !3);
    [group & !(1 << core), socket & !group, !socket]
}

/// Cycles of an access, and whether memory was read, by the words of the three keys.
fn expected(
    held: &mut Held,
    core: usize,
    write: bool,
    moesi: bool,
    clean: [&str; 3],
) -> (u64, bool) {
    let others = scopes(core).map(|scope| held.by & scope);
    let dirty = held.dirty.map_or(0u8, |core| 1 << core);
    let sends = [0, 1, 2].map(|k| others[k] & dirty != 0 || others[k] != 0 && clean[k] == "cache");
    let costs = [GROUP, SOCKET, OTHER];
    let farthest = (0..3).rev().find(|k| others[*k] != 0);
    let has = held.by >> core & 1 == 1;
    let answer = match (has, write) {
        (true, false) => (OWN, false),
        (true, true) => (farthest.map_or(OWN, |k| costs[k]), false),
        (false, true) if sends == [false; 3] => (MEMORY, true),
        (false, true) => (farthest.map_or(MEMORY, |k| costs[k]), false),
        // Another group that sends goes before the own group's cores.
        (false, false) => match [1, 2, 0].into_iter().find(|k| sends[*k]) {
            Some(k) => (costs[k], false),
            None => (MEMORY, true),
        },
    };
    if write {
        *held = Held {
            by: 1 << core,
            dirty: Some(core),
        };
    } else if !has {
        held.by |= 1 << core;
        // Under MESI memory takes the modified line as it passes.
        held.dirty = held.dirty.filter(|_| moesi);
    }
    answer
}

fn words() -> impl Iterator<Item = [&'static str; 3]> {
    (0..8).map(|n| [0, 1, 2].map(|bit| ["cache", "memory"][n >> bit & 1]))
}

#[test]
fn every_access_costs_what_the_keys_say_of_its_holders() {
    for protocol in ["mesi", "moesi"] {
        for clean in words() {
            let mut rig = build(protocol, clean).rig("coherence,window");
            let mut rng = Rng(11);
            let mut lines = [Held::default(); LINES as usize];
            for step in 0..1200 {
                let (core, line) = (rng.below(8) as usize, rng.below(LINES));
                let write = rng.below(4) == 0;
                let kind = [RefKind::Load, RefKind::Update][usize::from(write)];
                let held = &mut lines[line as usize];
                let wanted = expected(held, core, write, protocol == "moesi", clean);
                rig.settle();
                let before = rig.counters(core);
                let cycles = rig.cycles(core, &[access(kind, line * LINE, 0)]);
                let read = (rig.counters(core) - before).memory_reads == 1;
                let cycles = if read && protocol == "mesi" && cycles == QUEUED {
                    MEMORY
                } else {
                    cycles
                };
                let what = format!("{protocol} {clean:?} step {step}: core {core} line {line}");
                assert_eq!((cycles, read), wanted, "{what}, write {write}");
            }
            rig.machine.validate().unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

/// Memory reads of a line that one core of each group of a socket reads in turn.
fn reads_of_four(clean: [&str; 3]) -> [u64; 4] {
    let mut rig: Rig = build("moesi", clean).rig("coherence,window");
    [0, 1, 2, 4].map(|core| {
        rig.settle();
        rig.run(core, &[access(RefKind::Load, 0, 0)]);
        rig.counters(core).memory_reads
    })
}

#[test]
fn each_key_speaks_for_its_own_distance() {
    assert_eq!(reads_of_four(["cache"; 3]), [1, 0, 0, 0]);
    assert_eq!(reads_of_four(["memory", "cache", "cache"]), [1, 1, 0, 0]);
    assert_eq!(reads_of_four(["cache", "memory", "cache"]), [1, 0, 1, 0]);
    assert_eq!(reads_of_four(["cache", "cache", "memory"]), [1, 0, 0, 1]);
    assert_eq!(reads_of_four(["memory"; 3]), [1, 1, 1, 1]);
}
