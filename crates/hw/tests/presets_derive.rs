//! Machine files derived from what Linux tells.

use crate::sysfs_kit::{L1D, L1I, L2, Tree, cores_of};
use piebald_hw::{
    dram::Dram,
    presets::{
        self,
        derive::{CpuList, caches, from_sysfs},
    },
    spec::Holds,
};
use piebald_units::{Bytes, Hertz};

/// Four cores with two threads each, two L3 groups, and an L3 of 24 slices.
fn tree() -> Tree {
    let mut tree = Tree::default();
    tree.put("online", "0-7");
    for cpu in 0..8u32 {
        let (core, pair) = (cpu % 4, cpu % 4 / 2 * 2);
        let own = format!("{core},{}", core + 4);
        let group = format!("{pair}-{},{}-{}", pair + 1, pair + 4, pair + 5);
        let third = (3, "Unified", 11, 49152, "33792K");
        tree.cpu(
            cpu,
            0,
            core,
            &[(L1D, &own), (L1I, &own), (L2, &own), (third, &group)],
        );
        tree.put(format!("cpu{cpu}/cpufreq/base_frequency"), 2_900_000);
    }
    tree
}

#[test]
fn caches_and_cores_are_those_of_the_files() {
    let machine = tree().machine(None);
    assert_eq!(cores_of(&machine), (1, 4, 2));
    assert_eq!(machine.core.clock, Hertz(2_900_000_000));
    let shape: Vec<_> = machine
        .cache
        .iter()
        .map(|c| (c.level, c.holds, c.ways, c.shared_by))
        .collect();
    let expected = [
        (1, Holds::Data, 8, 1),
        (1, Holds::Instruction, 8, 1),
        (2, Holds::Unified, 16, 1),
        (3, Holds::Unified, 11, 2),
    ];
    assert_eq!(shape, expected);
    // 49152 sets stay: three slices of 16384.
    assert_eq!(machine.cache[3].size, Bytes(33 * Bytes::MIB));
    assert_eq!(machine.cache[3].slices, Some(3));
    assert_eq!(machine.cache[2].size, Bytes(Bytes::MIB));
    assert_eq!(machine.cache[2].slices, None);
    Dram::new(&machine.memory.dram, machine.memory.size.0, "memory.dram").unwrap();
}

#[test]
fn caches_alone_are_told_as_they_are() {
    let mut tree = tree();
    // What no machine file could say: 128 threads, sets that are no power of two.
    tree.put("cpu0/cache/index3/shared_cpu_list", "0-63,128-191");
    let found = caches(&tree.read()).unwrap();
    let last = &found[3];
    assert_eq!(
        (found.len(), last.level, last.holds),
        (4, 3, Holds::Unified)
    );
    assert_eq!((last.line, last.ways, last.sets), (64, 11, 49152));
    assert_eq!(last.shared_with, "0-63,128-191");
    assert_eq!(caches(&|_| Ok(None)), Ok(Vec::new()));
    tree.put("cpu0/cache/index1/number_of_sets", "many");
    let error = caches(&tree.read()).unwrap_err();
    assert_eq!(error.path, "cpu0/cache/index1/number_of_sets");
}

#[test]
fn caches_alone_are_those_of_the_first_processor_online_and_agree_with_their_size() {
    let mut tree = tree();
    tree.put("online", "2-7");
    tree.put("cpu2/cache/index2/ways_of_associativity", 8);
    let error = caches(&tree.read()).unwrap_err();
    assert_eq!(error.path, "cpu2/cache/index2/size");
    assert!(
        error
            .problem
            .contains("8 ways x 1024 sets x 64 B are 512KiB"),
        "{error}"
    );
    tree.put("cpu2/cache/index2/size", "512K");
    assert_eq!(caches(&tree.read()).unwrap()[2].ways, 8);
    tree.take("cpu2/cache/index2/size");
    assert_eq!(caches(&tree.read()).unwrap()[2].ways, 8);
}

#[test]
fn what_linux_does_not_tell_is_marked_generic() {
    let derived = tree().derive(None).unwrap();
    let text = &derived.text;
    for line in text
        .lines()
        .filter(|l| l.contains(" = ") && !l.contains(" = \"read") && !l.contains("= \"generic"))
    {
        let free = line.starts_with("name") || line.starts_with("title");
        assert!(
            free || line.contains("# [SYS]") || line.contains("# [GEN]"),
            "{line}"
        );
    }
    let kept = "size = \"33MiB\" # [SYS]\nways = 11 # [SYS]";
    assert!(text.contains(kept), "{text}");
    assert!(text.contains("slices = 3 # [GEN]"), "{text}");
    assert!(text.starts_with("# Derived from /sys/devices/system/cpu, processors 0-7."));
    let [warning] = &derived.warnings[..] else {
        panic!("{:?}", derived.warnings);
    };
    assert!(
        warning.starts_with("cpu0/cache/index3: 49152 sets are no power of two: 3 slices of 16384"),
        "{warning}"
    );
}

#[test]
fn files_that_make_no_sense_are_named_with_their_value() {
    let cases = [
        ("online", "none", "is not a list of processors"),
        ("online", "0-", "is not a list of processors"),
        ("online", "7-0", "is not a list of processors"),
        ("online", "0-70000", "up to 65535"),
        ("online", "", "names no processor"),
        (
            "online",
            "0-99",
            "8-99 (no caches described); a machine has one kind: choose --cpus 0-7",
        ),
        ("cpu3/topology/core_id", "x", "\"x\" is not a number"),
        ("cpu7/topology/core_id", "9", "8 threads on 5 cores"),
        (
            "cpu7/topology/physical_package_id",
            "1",
            "8 threads on 5 cores of 2 sockets",
        ),
        (
            "cpu3/topology/physical_package_id",
            "-2",
            "\"-2\" is not a number",
        ),
        ("cpu0/cache/index1/type", "Trace", "Trace"),
        ("cpu0/cache/index0/size", "32X", "\"32X\" is not a size"),
        ("cpu0/cache/index0/size", "99999999999G", "is not a size"),
        ("cpu0/cache/index3/shared_cpu_list", "0-2,4-6", "3 cores"),
        (
            "cpu5/cache/index3/shared_cpu_list",
            "0-7",
            "0-7 share it, but 0-1,4-5 by what cpu0 says",
        ),
        (
            "cpu5/cache/index3/shared_cpu_list",
            "0-3",
            "does not name cpu5 itself",
        ),
    ];
    for (path, value, says) in cases {
        let mut tree = tree();
        assert!(tree.0.contains_key(path));
        tree.put(path, value);
        let error = tree.error(None);
        assert!(error.contains(says), "{path} = {value}: {error}");
    }
    for path in tree().0.keys() {
        let mut tree = tree();
        tree.take(path);
        // The size and the rest make up for one another; a processor without a level has
        // other caches than the rest.
        let (of_all, of_rest) = ("unlike processors", path.contains("/level"));
        let spare = [
            "cpufreq",
            "size",
            "partition",
            "line_size",
            "ways_of",
            "number_of_sets",
        ];
        let kept = spare.iter().any(|part| path.contains(part));
        match tree.derive(None) {
            Ok(_) => assert!(
                path.contains("cpufreq") || path.contains("partition"),
                "{path} was not missed"
            ),
            Err(e)
                if e.to_string()
                    .starts_with(&format!("{path}: no such file, although")) =>
            {
                assert!(of_rest, "{path}: {e}");
            }
            Err(e) if kept || of_rest => assert!(e.to_string().contains(of_all), "{path}: {e}"),
            Err(e) => assert!(e.to_string().starts_with(path), "{path}: {e}"),
        }
    }
}

/// The tree with a file of every processor replaced, or taken away.
fn everywhere(index: usize, name: &str, value: Option<&str>) -> Tree {
    let mut tree = tree();
    for cpu in 0..8 {
        let path = format!("cpu{cpu}/cache/index{index}/{name}");
        match value {
            Some(value) => tree.put(path, value),
            None => tree.take(&path),
        }
    }
    tree
}

#[test]
fn what_cannot_be_modelled_is_named_with_its_value() {
    for (index, name, value, says) in [
        (2, "coherency_line_size", "128", "128; only lines of 64 B"),
        (3, "level", "4", "level 4 is none of 1 to 3"),
        (
            3,
            "ways_of_associativity",
            "96",
            "but 96 ways x 49152 sets x 64 B are 288MiB",
        ),
    ] {
        let error = everywhere(index, name, Some(value)).error(None);
        assert!(error.contains(says), "{name} = {value}: {error}");
    }
    // A size that agrees, of more ways than the model has.
    let mut tree = everywhere(3, "ways_of_associativity", Some("96"));
    for cpu in 0..8 {
        tree.put(format!("cpu{cpu}/cache/index3/size"), "294912K");
    }
    let error = tree.error(None);
    assert!(
        error.ends_with("ways_of_associativity: 96 is not a number from 1 to 64"),
        "{error}"
    );
}

#[test]
fn what_one_of_size_and_shape_lacks_comes_from_the_other() {
    let whole = tree().machine(None);
    for (name, value) in [
        ("size", None),
        ("ways_of_associativity", None),
        ("ways_of_associativity", Some("0")),
        ("number_of_sets", None),
        ("physical_line_partition", None),
        ("coherency_line_size", None),
    ] {
        let machine = everywhere(3, name, value).machine(None);
        let (new, old) = (&machine.cache[3], &whole.cache[3]);
        assert_eq!(
            (new.size, new.ways),
            (old.size, old.ways),
            "{name} = {value:?}"
        );
    }
    // Neither is enough alone.
    for name in ["ways_of_associativity", "number_of_sets"] {
        let mut tree = everywhere(3, name, None);
        (0..8).for_each(|cpu| tree.take(&format!("cpu{cpu}/cache/index3/size")));
        let error = tree.error(None);
        let path = format!("cpu0/cache/index3/{name}: no such file");
        assert!(error.starts_with(&path), "{error}");
    }
}

#[test]
fn what_cannot_be_read_is_no_end_of_the_caches() {
    let tree = Tree::of_cores(2, (3, "Unified", 16, 8192, "8192K"));
    for (file, reason) in [
        ("cpu0/cache/index2/level", "Permission denied"),
        ("cpu1/cache/index3/level", "is no text in UTF-8"),
        ("cpu0/topology/physical_package_id", "Permission denied"),
        ("cpu0/cpufreq/base_frequency", "Permission denied"),
    ] {
        let read = |path: &str| {
            if path == file {
                Err(reason.to_owned())
            } else {
                tree.read()(path)
            }
        };
        let error = from_sysfs(&read, None).expect_err(file).to_string();
        assert_eq!(error, format!("{file}: {reason}"));
    }
    let mut gap = Tree::of_cores(2, (3, "Unified", 16, 8192, "8192K"));
    (0..2).for_each(|cpu| gap.take(&format!("cpu{cpu}/cache/index1/level")));
    let error = gap.error(None);
    assert_eq!(
        error,
        "cpu0/cache/index1/level: no such file, although index2 is there"
    );
}

#[test]
fn what_is_told_of_speeds_must_make_sense() {
    for (file, text) in [
        ("cpu1/cpu_capacity", "garbage"),
        ("cpu0/cpufreq/base_frequency", "99999"),
    ] {
        let mut tree = Tree::of_cores(2, (3, "Unified", 16, 8192, "8192K"));
        tree.put(file, text);
        let error = tree.error(None);
        let expected = format!("{file}: \"{text}\" is not a number from ");
        assert!(error.starts_with(&expected), "{error}");
    }
}

#[test]
fn this_computer_gives_a_machine_or_a_precise_error() {
    let read =
        |path: &str| Ok(std::fs::read_to_string(format!("/sys/devices/system/cpu/{path}")).ok());
    match from_sysfs(&read, None) {
        Ok(derived) => {
            let machine = presets::parse(&derived.text, "derived").unwrap();
            assert_eq!(machine.name, "derived");
            assert!(!machine.cache.is_empty());
        }
        Err(error) => assert!(
            !error.path.is_empty() && !error.problem.is_empty(),
            "{error}"
        ),
    }
}

#[test]
fn lists_of_processors_are_read_and_written() {
    for (text, written) in [
        ("0", "0"),
        ("0-3,8", "0-3,8"),
        ("8, 1 ,0", "0-1,8"),
        ("5-5,7,6,512-1023", "5-7,512-1023"),
    ] {
        let list: CpuList = text.parse().unwrap();
        assert_eq!(list.to_string(), written);
        assert_eq!(written.parse(), Ok(list));
    }
    for text in ["", ",", "1,", "a", "3-1", "-1", "1-2-3", "65536"] {
        assert!(text.parse::<CpuList>().is_err(), "{text}");
    }
}
