//! What passes between caches of different sockets takes time on buses and links, on whole
//! machines: a cycle is 1 ns and a link carries a byte in it.

use crate::machine_kit::{Build, LINE, Rig, cache, load, store};
use crate::stream_kit::{Kernel, bandwidth};
use piebald_hw::presets;
use piebald_units::{Bytes, memory::PhysRef};

/// Two sockets of two groups of two cores, and `more` keys of links.
fn build(more: &str) -> Build {
    Build {
        sockets: 2,
        per_socket: 4,
        caches: vec![
            cache(1, 8, 4, 4, ""),
            cache(2, 64, 8, 10, ""),
            cache(3, 64, 16, 40, "inclusion = \"inclusive\"\nshared_by = 2"),
        ],
        controllers: 2,
        rest: format!(
            "[links]\nprotocol = \"mesi\"\nsame_group_transfer = 60\n\
             same_socket_transfer = 90\nother_socket_transfer = 150\n{more}\n"
        ),
        ..Build::default()
    }
}

fn lines(n: u64) -> Vec<PhysRef> {
    (0..n).map(|i| load(i * LINE)).collect()
}

/// Cycles in which a core takes over lines that another one has modified.
fn passed(more: &str, from: usize, to: usize, n: u64) -> u64 {
    let mut rig: Rig = build(more).rig("coherence,window");
    let stores: Vec<_> = (0..n).map(|i| store(i * LINE)).collect();
    rig.cycles(from, &stores);
    // Nobody waits for stores.
    (0..10).for_each(|_| rig.settle());
    rig.cycles(to, &lines(n))
}

/// Fewer than a core has fill buffers.
const N: u64 = 60;
const BUS: &str = "hops = [[0, 0], [0, 0]]\nsocket_bus_bytes_per_second = \"1000000000B\"\n";
const LINKS: &str = "hops = [[0, 1], [1, 0]]\nlink_bytes_per_second = \"1000000000B\"\n";

#[test]
fn transfers_are_free_unless_keys_say_otherwise() {
    assert_eq!(passed("", 0, 4, N), 150 + N);
    // The bus moves what memory takes over; the one that asked waits for nothing.
    assert_eq!(passed(BUS, 0, 4, N), 150 + N);
}

#[test]
fn modified_lines_cross_a_bus_one_after_the_other() {
    let bus = format!("{BUS}socket_bus_transfers = true\n");
    // The first line ends its passage with its latency, the others 64 cycles apart.
    assert_eq!(passed(&bus, 0, 2, N), 1 + 90 + (N - 1) * 64);
    assert_eq!(passed(&bus, 0, 1, N), 60 + N, "inside a group");
    // Between sockets the second bus follows the first, line by line.
    assert_eq!(passed(&bus, 0, 4, N), 1 + 150 + (N - 1) * 64);
}

#[test]
fn modified_lines_cross_a_link_one_after_the_other_and_stay_free_inside_a_socket() {
    let cycles = passed(LINKS, 0, 4, N);
    // 68 bytes each; their home is socket 0, which also hears that each has come.
    let expected = 1 + 150 + (N - 1) * 68;
    assert!((expected..expected + 80).contains(&cycles), "{cycles}");
    assert_eq!(passed(LINKS, 0, 2, N), 90 + N);
}

#[test]
fn lines_of_another_socket_s_memory_cross_a_link_and_own_ones_do_not() {
    let mut rig = build(LINKS).rig("coherence,window");
    let own = rig.cycles(0, &lines(N));
    rig.settle();
    // Memory is divided in two halves.
    let far: Vec<_> = (0..N).map(|i| load((2 << 30) + i * LINE)).collect();
    let far = rig.cycles(0, &far);
    assert!(own < N * 10, "{own}");
    assert!((N * 68..N * 68 + 300).contains(&far), "{far}");
}

#[test]
fn upgrades_and_write_backs_use_the_link_to_the_home() {
    // Lines of socket 1's memory that two cores of socket 0 share.
    let busy = |more: &str, upgrade: bool| {
        let mut rig = build(more).rig("coherence,window");
        let at = |i: u64| (2 << 30) + i * LINE;
        let loads: Vec<_> = (0..N).map(|i| load(at(i))).collect();
        for core in [0, 4] {
            rig.cycles(core, &loads);
            rig.settle();
        }
        if upgrade {
            rig.run(0, &(0..N).map(|i| store(at(i))).collect::<Vec<_>>());
        }
        // Requests for further lines of that memory go the same way.
        rig.cycles(1, &[load(at(5000))])
    };
    let alone = busy(LINKS, false);
    let behind = busy(LINKS, true);
    // 8 bytes for each upgrade, and 4 when it is done.
    assert!(behind >= alone + N * 8 - N, "{behind} {alone}");
}

#[test]
fn four_sockets_of_opterons_read_from_all_what_is_published_for_their_square() {
    // 14.9 GB/s of data, link-limited (see src/links/tests.rs for the source): with memory
    // that is no limit, 16 cores reach no more than that and no less than five sixths of it.
    let mut spec = presets::load("opteron4x4").unwrap_or_else(|e| panic!("{e}"));
    spec.links.link_bytes_per_second = Some(Bytes(4_000_000_000));
    spec.links.probes = piebald_hw::spec::Probes::Broadcast;
    // Memory and cores are no limit, and every home is asked as often as any other.
    spec.memory.spread = piebald_hw::spec::Spread::Line;
    spec.core.window = 1024;
    spec.core.l1_fill_buffers = 32;
    spec.core.shared_fill_buffers = 32;
    spec.memory.dram.timing.tck = piebald_units::Picos(1000);
    let rate = bandwidth(&spec, "window,coherence", Kernel::WideRead, 16, 60_000);
    println!("{rate:?}");
    assert!((14.9 / 1.2..14.9 * 1.16).contains(&rate.pins), "{rate:?}");
}
