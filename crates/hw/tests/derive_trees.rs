//! Computers that are not a row of equal processors with known caches: virtual machines,
//! parts of several kinds, processors that are off, many sockets, large last levels.

use crate::sysfs_kit::{L1D, L1I, L2, Shape, Tree, caches_of, cores_of};
use piebald_hw::{presets, spec::Holds};

const L3: Shape = (3, "Unified", 16, 8192, "8192K");

#[test]
fn processors_that_are_off_do_not_matter() {
    // Processor 0 is gone, folder and all, and 5 is off but still there.
    let mut tree = Tree::default();
    tree.put("online", "2-4,6");
    for cpu in [2, 3, 4, 6] {
        let own = cpu.to_string();
        tree.cpu(
            cpu,
            0,
            cpu,
            &[(L1D, &own), (L1I, &own), (L2, &own), (L3, "2-4,6")],
        );
        tree.put(
            format!("cpu{cpu}/cpufreq/cpuinfo_max_freq"),
            3_000_000 + cpu,
        );
    }
    tree.put("cpu5/topology/core_id", "5");
    let derived = tree.derive(None).unwrap();
    let machine = tree.machine(None);
    assert_eq!(cores_of(&machine), (1, 4, 1));
    assert_eq!(machine.cache[3].shared_by, 4);
    assert_eq!(machine.core.clock.0, 3_000_002_000);
    let clock =
        "clock = \"3000002kHz\" # [SYS] the first processor's; there are 3000002kHz to 3000006kHz";
    assert!(derived.text.contains(clock), "{}", derived.text);
    assert!(derived.warnings.is_empty(), "{:?}", derived.warnings);
    // A thread that is off is on nobody's lists.
    let two = tree.machine(Some("3,6"));
    assert_eq!((cores_of(&two), two.cache[3].shared_by), ((1, 2, 1), 2));
    let error = tree.error(Some("2-5"));
    assert_eq!(error, "--cpus 2-5: 5 not online; online are 2-4,6");
}

/// Two processors of a virtual machine on Arm, whose hypervisor hides ways and sets.
fn hidden(ways: u64, sets: u64) -> Tree {
    let mut tree = Tree::default();
    tree.put("online", "0-1");
    for cpu in 0..2 {
        let own = cpu.to_string();
        let caches = [
            ((1, "Data", ways, sets, "64K"), &*own),
            ((1, "Instruction", ways, sets, "48K"), &own),
            ((2, "Unified", ways, sets, "1280K"), &own),
            ((3, "Unified", ways, sets, "116736K"), "0-1"),
        ];
        tree.cpu(cpu, 0, cpu, &caches);
    }
    tree
}

#[test]
fn hidden_ways_are_assumed_and_the_size_is_kept() {
    // KVM: one set of one way; firmware: neither.
    for (ways, sets, why) in [
        (1, 1, "tells 1 way x 1 set x 64 B, as in virtual machines"),
        (0, 0, "tells neither ways nor sets, as"),
        (0, 1, "tells 1 set x 64 B, as"),
    ] {
        let tree = hidden(ways, sets);
        let machine = tree.machine(None);
        let expected = [
            (1, Holds::Data, "64KiB".into(), 4, 1),
            (1, Holds::Instruction, "48KiB".into(), 6, 1),
            (2, Holds::Unified, "1.25MiB".into(), 10, 1),
            (3, Holds::Unified, "114MiB".into(), 16, 2),
        ];
        assert_eq!(caches_of(&machine), expected);
        let derived = tree.derive(None).unwrap();
        assert_eq!(derived.text.matches("# [GEN] assumed: ").count(), 4);
        let assumed = &derived.warnings[0];
        let start = format!("cpu0/cache/index0: size is 64KiB, but Linux {why}");
        assert!(assumed.starts_with(&start), "{assumed}");
        assert!(assumed.ends_with("4 ways are an assumption"), "{assumed}");
        // Four assumptions, and 57 slices of 2048 sets.
        assert_eq!(derived.warnings.len(), 5, "{:?}", derived.warnings);
        assert_eq!(machine.cache[3].slices, Some(57));
    }
}

#[test]
fn a_blank_without_a_size_is_refused() {
    let mut tree = hidden(1, 1);
    (0..2).for_each(|cpu| tree.take(&format!("cpu{cpu}/cache/index2/size")));
    let error = tree.error(None);
    let says = "cpu0/cache/index2/size: no such file, and 1 way x 1 set x 64 B are no cache";
    assert_eq!(error, says);
    (0..2).for_each(|cpu| tree.put(format!("cpu{cpu}/cache/index2/size"), "0K"));
    assert!(tree.error(None).contains("are no cache"));
}

#[test]
fn a_size_that_its_shape_contradicts_is_refused_with_both() {
    let mut tree = Tree::of_cores(2, L3);
    (0..2).for_each(|cpu| tree.put(format!("cpu{cpu}/cache/index3/size"), "6144K"));
    let error = tree.error(None);
    for part in [
        "cpu0/cache/index3/size: 6MiB",
        "16 ways x 8192 sets x 64 B are 8MiB",
        "--from DIR",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    // A line in two partitions makes the sets twice as many.
    for cpu in 0..2 {
        tree.put(format!("cpu{cpu}/cache/index3/size"), "16384K");
        tree.put(
            format!("cpu{cpu}/cache/index3/physical_line_partition"),
            "2",
        );
    }
    assert_eq!(tree.machine(None).cache[3].size.to_string(), "16MiB");
}

/// Four threads of two large cores, and four small cores with a second level for all.
fn hybrid() -> Tree {
    let mut tree = Tree::default();
    tree.put("online", "0-7");
    let third = (3, "Unified", 12, 16384, "12288K");
    for cpu in 0..4 {
        let own = format!("{}-{}", cpu / 2 * 2, cpu / 2 * 2 + 1);
        let first = (1, "Data", 12, 64, "48K");
        let second = (2, "Unified", 10, 2048, "1280K");
        tree.cpu(
            cpu,
            0,
            cpu / 2,
            &[(first, &own), (L1I, &own), (second, &own), (third, "0-7")],
        );
    }
    for cpu in 4..8 {
        let own = cpu.to_string();
        let code = (1, "Instruction", 8, 128, "64K");
        let second = (2, "Unified", 16, 2048, "2048K");
        tree.cpu(
            cpu,
            0,
            cpu,
            &[(L1D, &own), (code, &own), (second, "4-7"), (third, "0-7")],
        );
    }
    tree
}

#[test]
fn unlike_processors_are_refused_with_the_list_of_each_kind() {
    let error = hybrid().error(None);
    for part in [
        "online: unlike processors",
        "0-3 (L1D 48KiB, L1I 32KiB, L2 1.25MiB, L3 12MiB)",
        "4-7 (L1D 32KiB, L1I 64KiB, L2 2MiB, L3 12MiB)",
        "choose --cpus 0-3 or --cpus 4-7",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(hybrid().error(Some("3-4")).contains("--cpus 3 or --cpus 4"));
}

#[test]
fn either_kind_of_a_hybrid_part_can_be_chosen() {
    let large = hybrid().machine(Some("0-3"));
    assert_eq!(cores_of(&large), (1, 2, 2));
    let expected = [
        (1, Holds::Data, "48KiB".into(), 12, 1),
        (1, Holds::Instruction, "32KiB".into(), 8, 1),
        (2, Holds::Unified, "1.25MiB".into(), 10, 1),
        (3, Holds::Unified, "12MiB".into(), 12, 2),
    ];
    assert_eq!(caches_of(&large), expected);
    let small = hybrid().machine(Some("4-7"));
    assert_eq!(cores_of(&small), (1, 4, 1));
    let expected = [
        (1, Holds::Data, "32KiB".into(), 8, 1),
        (1, Holds::Instruction, "64KiB".into(), 8, 1),
        (2, Holds::Unified, "2MiB".into(), 16, 4),
        (3, Holds::Unified, "12MiB".into(), 12, 4),
    ];
    assert_eq!(caches_of(&small), expected);
    let text = hybrid().derive(Some("4-7")).unwrap().text;
    assert!(text.starts_with("# Derived from /sys/devices/system/cpu, processors 4-7."));
    // A thread of each large core.
    assert_eq!(cores_of(&hybrid().machine(Some("0,2"))), (1, 2, 1));
}

#[test]
fn a_missing_level_and_another_part_make_another_kind() {
    // The small cores of a separate tile have no third level.
    let mut tree = Tree::of_cores(6, L3);
    for cpu in 4..6 {
        let own = cpu.to_string();
        tree.0
            .retain(|path, _| !path.starts_with(&format!("cpu{cpu}/cache/index3")));
        tree.cpu(cpu, 0, cpu, &[(L1D, &own), (L1I, &own), (L2, &own)]);
    }
    assert!(tree.error(None).contains("choose --cpus 0-3 or --cpus 4-5"));
    assert_eq!(tree.machine(Some("4-5")).cache.len(), 3);
    // Equal sizes of other ways.
    let mut tree = Tree::of_cores(2, L3);
    tree.put("cpu1/cache/index2/ways_of_associativity", 8);
    tree.put("cpu1/cache/index2/number_of_sets", 2048);
    let error = tree.error(None);
    assert!(
        error.contains("L2 1MiB of 16 ways x 1024 sets x 64 B"),
        "{error}"
    );
    assert!(
        error.contains("L2 1MiB of 8 ways x 2048 sets x 64 B"),
        "{error}"
    );
    // Arm: equal caches, other cores.
    let mut tree = Tree::of_cores(4, L3);
    for cpu in 0..4 {
        let midr = ["0x410fd034", "0x411fd440"][usize::from(cpu > 1)];
        tree.put(format!("cpu{cpu}/regs/identification/midr_el1"), midr);
    }
    let error = tree.error(None);
    assert!(error.contains("MIDR 0x411fd440"), "{error}");
    assert!(error.contains("choose --cpus 0-1 or --cpus 2-3"), "{error}");
    assert_eq!(cores_of(&tree.machine(Some("2-3"))), (1, 2, 1));
}

#[test]
fn last_levels_of_any_number_of_sets_are_kept() {
    for (third, size, slices) in [
        ((3, "Unified", 11, 40960, "28160K"), "27.5MiB", 5),
        ((3, "Unified", 12, 155648, "116736K"), "114MiB", 19),
        ((3, "Unified", 16, 491520, "491520K"), "480MiB", 15),
        ((3, "Unified", 12, 49152, "36864K"), "36MiB", 3),
        ((3, "Unified", 20, 24576, "30720K"), "30MiB", 3),
    ] {
        let tree = Tree::of_cores(2, third);
        let machine = tree.machine(None);
        let last = &machine.cache[3];
        assert_eq!(
            (last.size.to_string(), last.slices),
            (size.into(), Some(slices))
        );
        assert_eq!(u64::from(last.ways), third.2);
        assert_eq!(
            (last.sets(), last.slice_count()),
            (third.3, u64::from(slices))
        );
        let warnings = tree.derive(None).unwrap().warnings;
        assert!(
            warnings[0].contains(&format!("{slices} slices of")),
            "{warnings:?}"
        );
    }
    let plain = Tree::of_cores(2, L3).derive(None).unwrap();
    assert!(plain.warnings.is_empty() && !plain.text.contains("slices ="));
    // A first level too, if its index is physical.
    let mut tree = Tree::of_cores(2, L3);
    for cpu in 0..2 {
        tree.put(format!("cpu{cpu}/cache/index0/number_of_sets"), 48);
        tree.put(format!("cpu{cpu}/cache/index0/size"), "24K");
    }
    assert_eq!(tree.machine(None).cache[0].size.to_string(), "24KiB");
}

#[test]
fn more_processors_than_a_machine_has_can_be_chosen_from() {
    let tree = Tree::of_cores(192, L3);
    let error = tree.error(None);
    assert!(
        error.contains("192 processors; a machine has 64 at most"),
        "{error}"
    );
    assert!(error.contains("--cpus 0-63"), "{error}");
    let machine = tree.machine(Some("96-127"));
    assert_eq!(cores_of(&machine), (1, 32, 1));
    assert_eq!(machine.cache[3].shared_by, 32);
}

#[test]
fn sockets_have_their_own_caches() {
    let mut tree = Tree::default();
    tree.put("online", "0-7");
    for cpu in 0..8u32 {
        let (own, socket) = (cpu.to_string(), cpu % 2);
        let all = ["0,2,4,6", "1,3,5,7"][socket as usize];
        tree.cpu(
            cpu,
            socket,
            cpu / 2,
            &[(L1D, &own), (L1I, &own), (L2, &own), (L3, all)],
        );
    }
    let machine = tree.machine(None);
    assert_eq!(
        (cores_of(&machine), machine.cache[3].shared_by),
        ((2, 4, 1), 4)
    );
    // Three cores in one and four in the other are no machine, but either is.
    tree.put("online", "0-6");
    let error = tree.error(None);
    assert!(
        error.contains("7 threads on 7 cores of 2 sockets"),
        "{error}"
    );
    assert!(error.contains("--cpus 0,2,4,6"), "{error}");
    assert_eq!(cores_of(&tree.machine(Some("1,3,5"))), (1, 3, 1));
    // One cache in two sockets is none.
    for cpu in 0..8 {
        tree.put(format!("cpu{cpu}/cache/index3/shared_cpu_list"), "0-7");
    }
    tree.put("online", "0-7");
    let error = tree.error(None);
    assert!(
        error.contains("0-7 share it, but lie in 2 sockets"),
        "{error}"
    );
    assert_eq!(tree.machine(Some("1,3,5,7")).cache[3].shared_by, 4);
}

#[test]
fn a_cache_is_shared_by_all_who_share_one_inside_it() {
    // A second level of cores 1 and 2 would lie across both last levels.
    let mut tree = Tree::default();
    tree.put("online", "0-3");
    for (cpu, second, third) in [
        (0, "0", "0-1"),
        (1, "1-2", "0-1"),
        (2, "1-2", "2-3"),
        (3, "3", "2-3"),
    ] {
        let own = cpu.to_string();
        let caches = [(L1D, &*own), (L1I, &own), (L2, second), (L3, third)];
        tree.cpu(cpu, 0, cpu, &caches);
    }
    assert!(tree.error(None).contains("--cpus"), "{}", tree.error(None));
    for cpu in [0, 3] {
        tree.put(format!("cpu{cpu}/cache/index2/shared_cpu_list"), "0,3");
    }
    let error = tree.error(None);
    assert!(
        error.starts_with("cpu0/cache/index3/shared_cpu_list: 0-1 share it, but 3 share level 2"),
        "{error}"
    );
    // Those who share both are a machine.
    tree.put("cpu0/cache/index2/shared_cpu_list", "0");
    assert_eq!(tree.machine(Some("0-1")).cache[3].shared_by, 2);
}

#[test]
fn processors_that_share_unlike_are_told_which_to_choose() {
    // Two of six cores of the second complex are off.
    let mut tree = Tree::default();
    tree.put("online", "0-5");
    for cpu in 0..6 {
        let third = if cpu < 4 { "0-3" } else { "4-5" };
        let own = cpu.to_string();
        let caches = [(L1D, &*own), (L1I, &own), (L2, &own), (L3, third)];
        tree.cpu(cpu, 0, cpu, &caches);
    }
    let error = tree.error(None);
    assert!(error.contains("--cpus 0-3 takes those of one"), "{error}");
    assert_eq!(tree.machine(Some("0-3")).cache[3].shared_by, 4);
    // Four and two divide the eight of this socket.
    for (cpu, third) in [(6, "6-7"), (7, "6-7")] {
        let own = cpu.to_string();
        let caches = [(L1D, &*own), (L1I, &own), (L2, &own), (L3, third)];
        tree.cpu(cpu, 0, cpu, &caches);
    }
    tree.put("online", "0-7");
    let error = tree.error(None);
    assert!(error.contains("--cpus 0-3 takes those of one"), "{error}");
}

#[test]
fn cores_are_told_apart_though_their_numbers_repeat() {
    // Core numbers that count from 0 in each die, and in each cluster: no siblings.
    for name in ["die_id", "cluster_id"] {
        let mut tree = Tree::of_cores(4, L3);
        for cpu in 0..4 {
            tree.put(format!("cpu{cpu}/topology/core_id"), cpu % 2);
            tree.put(format!("cpu{cpu}/topology/{name}"), cpu / 2);
        }
        assert_eq!(cores_of(&tree.machine(None)), (1, 4, 1), "{name}");
    }
    // Lists of siblings count for more than numbers.
    for name in ["core_cpus_list", "thread_siblings_list"] {
        let mut tree = Tree::of_cores(4, L3);
        for cpu in 0..4 {
            tree.put(format!("cpu{cpu}/topology/core_id"), 0);
            tree.put(format!("cpu{cpu}/topology/{name}"), cpu);
        }
        assert_eq!(cores_of(&tree.machine(None)), (1, 4, 1), "{name}");
        tree.put(format!("cpu3/topology/{name}"), "0-2");
        let error = tree.error(None);
        assert_eq!(
            error,
            format!("cpu3/topology/{name}: 0-2 does not name cpu3 itself")
        );
    }
}

#[test]
fn a_sibling_that_is_off_leaves_a_choice() {
    let mut tree = Tree::default();
    tree.put("online", "0-2");
    for (cpu, own) in [(0, "0-1"), (1, "0-1"), (2, "2")] {
        let caches = [(L1D, own), (L1I, own), (L2, own), (L3, "0-2")];
        tree.cpu(cpu, 0, cpu / 2, &caches);
    }
    let error = tree.error(None);
    assert!(
        error.contains("3 threads on 2 cores of 1 sockets"),
        "{error}"
    );
    assert!(error.contains("--cpus 0,2 takes one of each"), "{error}");
    assert_eq!(cores_of(&tree.machine(Some("0,2"))), (1, 2, 1));
    assert_eq!(cores_of(&tree.machine(Some("0-1"))), (1, 1, 2));
    // Four threads a core are too many, two of them are not.
    let mut tree = Tree::of_cores(4, L3);
    for cpu in 0..4 {
        tree.put(format!("cpu{cpu}/topology/core_id"), 0);
        for index in 0..3 {
            tree.put(
                format!("cpu{cpu}/cache/index{index}/shared_cpu_list"),
                "0-3",
            );
        }
    }
    assert!(tree.error(None).contains("--cpus 0 takes one of each"));
    assert_eq!(cores_of(&tree.machine(Some("1,3"))), (1, 1, 2));
}

#[test]
fn sockets_that_are_not_told_are_one_and_marked() {
    let mut tree = Tree::of_cores(4, L3);
    (0..4).for_each(|cpu| tree.put(format!("cpu{cpu}/topology/physical_package_id"), "-1"));
    assert_eq!(cores_of(&tree.machine(None)), (1, 4, 1));
    let text = tree.derive(None).unwrap().text;
    assert!(text.contains("sockets = 1 # [GEN] not told here"), "{text}");
}

#[test]
fn levels_that_shrink_outwards_are_refused_where_the_file_is_read() {
    let tree = Tree::of_cores(2, (3, "Unified", 16, 512, "512K"));
    let text = tree.derive(None).unwrap().text;
    let error = presets::parse(&text, "derived").unwrap_err().to_string();
    assert!(
        error.contains("cache[3].size = 512KiB: 1MiB or more"),
        "{error}"
    );
}
