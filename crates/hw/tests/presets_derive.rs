//! Machine files derived from what Linux tells.

use std::collections::BTreeMap;

use piebald_hw::{
    dram::Dram,
    presets::{
        self,
        derive::{caches, from_sysfs},
    },
    spec::{Holds, MachineSpec},
};
use piebald_units::{Bytes, Hertz};

/// Four cores with two threads each, two L3 groups, and an L3 of 24 slices.
fn files() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    files.insert("online".into(), "0-7\n".into());
    for cpu in 0..8 {
        files.insert(
            format!("cpu{cpu}/topology/physical_package_id"),
            "0\n".into(),
        );
        files.insert(
            format!("cpu{cpu}/topology/core_id"),
            format!("{}\n", cpu % 4),
        );
    }
    files.insert("cpu0/cpufreq/base_frequency".into(), "2900000\n".into());
    let caches = [
        (1, "Data", 8, 64, "0,4"),
        (1, "Instruction", 8, 64, "0,4"),
        (2, "Unified", 16, 1024, "0,4"),
        (3, "Unified", 11, 49152, "0-1,4-5"),
    ];
    for (index, (level, kind, ways, sets, shared)) in caches.into_iter().enumerate() {
        let mut put = |name: &str, value: String| {
            files.insert(format!("cpu0/cache/index{index}/{name}"), value);
        };
        put("level", format!("{level}\n"));
        put("type", format!("{kind}\n"));
        put("ways_of_associativity", format!("{ways}\n"));
        put("number_of_sets", format!("{sets}\n"));
        put("coherency_line_size", "64\n".into());
        put("shared_cpu_list", format!("{shared}\n"));
    }
    files
}

fn derive(files: &BTreeMap<String, String>) -> Result<MachineSpec, String> {
    let text = from_sysfs(&|path| files.get(path).cloned()).map_err(|e| e.to_string())?;
    presets::parse(&text, "derived").map_err(|e| e.to_string())
}

#[test]
fn caches_and_cores_are_those_of_the_files() {
    let machine = derive(&files()).unwrap();
    let core = &machine.core;
    assert_eq!((core.sockets, core.per_socket, core.smt), (1, 4, 2));
    assert_eq!(core.clock, Hertz(2_900_000_000));
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
    // 49152 sets become 32768.
    assert_eq!(machine.cache[3].size, Bytes(32768 * 11 * 64));
    assert_eq!(machine.cache[2].size, Bytes(Bytes::MIB));
    Dram::new(&machine.memory.dram, machine.memory.size.0, "memory.dram").unwrap();
}

#[test]
fn caches_alone_are_told_as_they_are() {
    let mut files = files();
    // What no machine file could say: 128 threads, sets that are no power of two.
    let path = "cpu0/cache/index3/shared_cpu_list";
    files.insert(path.into(), "0-63,128-191\n".into());
    let found = caches(&|path| files.get(path).cloned()).unwrap();
    let last = &found[3];
    assert_eq!(
        (found.len(), last.level, last.holds),
        (4, 3, Holds::Unified)
    );
    assert_eq!((last.line, last.ways, last.sets), (64, 11, 49152));
    assert_eq!(last.shared_with, "0-63,128-191");
    assert_eq!(caches(&|_| None), Ok(Vec::new()));
    files.insert("cpu0/cache/index1/number_of_sets".into(), "many".into());
    let error = caches(&|path| files.get(path).cloned()).unwrap_err();
    assert_eq!(error.path, "cpu0/cache/index1/number_of_sets");
}

#[test]
fn what_linux_does_not_tell_is_marked_generic() {
    let text = from_sysfs(&|path| files().get(path).cloned()).unwrap();
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
    assert!(text.contains("33MiB told"), "{text}");
}

#[test]
fn files_that_make_no_sense_are_named_with_their_value() {
    let cases = [
        ("online", "0-99", "cores 0-63"),
        ("online", "none", "decimal number"),
        ("cpu3/topology/core_id", "x", "\"x\" is not a number"),
        ("cpu7/topology/core_id", "9", "8 threads on 5 cores"),
        ("cpu0/cache/index3/ways_of_associativity", "0", "1..=64"),
        ("cpu0/cache/index1/type", "Trace", "Trace"),
        ("cpu0/cache/index2/coherency_line_size", "128", "64 B"),
        ("cpu0/cache/index3/shared_cpu_list", "0-2,4-6", "3 cores"),
        ("cpu0/cache/index3/level", "4", "1..=3"),
    ];
    for (path, value, says) in cases {
        let mut files = files();
        assert!(files.insert(path.into(), value.into()).is_some());
        let error = derive(&files).unwrap_err();
        assert!(error.contains(says), "{path} = {value}: {error}");
    }
    for path in files().keys() {
        let mut files = files();
        files.remove(path);
        let kept = path.contains("cpufreq")
            || path.ends_with("index3/level")
            || path.contains("index2/level")
            || path.contains("index1/level");
        match derive(&files) {
            Ok(_) => assert!(kept, "{path} was not missed"),
            Err(error) => assert!(error.starts_with(path), "{path}: {error}"),
        }
    }
}

#[test]
fn this_computer_gives_a_machine_or_a_precise_error() {
    let read = |path: &str| std::fs::read_to_string(format!("/sys/devices/system/cpu/{path}")).ok();
    match from_sysfs(&read) {
        Ok(text) => {
            let machine = presets::parse(&text, "derived").unwrap();
            assert_eq!(machine.name, "derived");
            assert!(!machine.cache.is_empty());
        }
        Err(error) => assert!(
            !error.path.is_empty() && !error.problem.is_empty(),
            "{error}"
        ),
    }
}
