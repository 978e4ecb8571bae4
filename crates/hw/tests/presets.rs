//! The presets: every value has a source, and the numbers agree with the papers.

use std::collections::BTreeSet;

use piebald_hw::{
    Machine, Options,
    dram::Dram,
    presets::{self, PresetError},
    spec::{CacheSpec, Holds, MachineSpec},
};
use piebald_units::{PhysAddr, Picos};

const PAGE: u64 = 4096;

fn machine(name: &str) -> MachineSpec {
    presets::load(name).unwrap_or_else(|e| panic!("{e}"))
}

fn all() -> impl Iterator<Item = MachineSpec> {
    presets::names().map(machine)
}

fn dram(machine: &MachineSpec) -> Dram {
    let bytes = machine.memory.size.0 / u64::from(machine.memory.controllers);
    Dram::new(&machine.memory.dram, bytes, "memory.dram")
        .unwrap_or_else(|e| panic!("{}: {e}", machine.name))
}

fn cache<'a>(machine: &'a MachineSpec, name: &str) -> &'a CacheSpec {
    machine
        .cache
        .iter()
        .find(|c| c.name == name)
        .expect("the preset has this cache")
}

/// Sets of one slice.
fn sets(cache: &CacheSpec) -> u64 {
    (cache.size.0 / u64::from(cache.ways) / 64) >> cache.slice_hash.len()
}

/// Page colours of a linear cache.
fn colors(cache: &CacheSpec) -> u64 {
    sets(cache) * 64 / PAGE
}

#[test]
fn every_preset_is_a_machine_under_its_own_name() {
    assert_eq!(presets::names().count(), 8);
    for name in presets::names() {
        let machine = machine(name);
        assert_eq!(machine.name, name);
        dram(&machine);
        let cores = machine.core.sockets * machine.core.per_socket * machine.core.smt;
        assert!((1..=64).contains(&cores), "{name}");
        for cache in &machine.cache {
            assert!(sets(cache).is_power_of_two(), "{name} {}", cache.name);
            assert!(
                machine.core.per_socket.is_multiple_of(cache.shared_by),
                "{name} {}",
                cache.name
            );
            let whole = (sets(cache) * u64::from(cache.ways) * 64) << cache.slice_hash.len();
            assert_eq!(whole, cache.size.0, "{name} {}", cache.name);
        }
        let tlb = machine.tlb.expect("a preset has TLBs");
        for level in [tlb.l1, tlb.l1_huge, tlb.l1i].into_iter().chain(tlb.l2) {
            let sets = level.entries / u32::from(level.ways);
            assert!(
                sets.is_power_of_two() && sets * u32::from(level.ways) == level.entries,
                "{name}"
            );
        }
        for row in &machine.links.hops {
            assert_eq!(row.len(), machine.links.hops.len(), "{name}");
        }
    }
}

#[test]
fn every_value_names_a_source_that_its_file_explains() {
    for name in presets::names() {
        let text = presets::get(name).unwrap();
        let known: BTreeSet<String> = machine(name).sources.into_keys().collect();
        let mut used = BTreeSet::new();
        let mut table = "";
        for (n, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.starts_with('[') {
                table = line;
                continue;
            }
            let (value, comment) = line.split_once('#').unwrap_or((line, ""));
            let Some((key, _)) = value.split_once('=') else {
                continue;
            };
            if table == "[sources]" || matches!(key.trim(), "name" | "title") {
                continue;
            }
            let marks: Vec<&str> = comment
                .split('[')
                .skip(1)
                .filter_map(|part| part.split_once(']').map(|(mark, _)| mark))
                .collect();
            assert!(
                comment.trim_start().starts_with('['),
                "{name}:{}: no mark: {line}",
                n + 1
            );
            for mark in marks {
                assert!(
                    known.contains(mark),
                    "{name}:{}: [{mark}] is not explained",
                    n + 1
                );
                used.insert(mark.to_string());
            }
        }
        // A source may also be named in prose only; it must be named.
        for source in &known {
            let named = text.matches(&format!("[{source}]")).count();
            assert!(named > 0, "{name}: source {source} is never used");
        }
        assert!(used.len() >= 2, "{name}: marks were not found");
    }
}

#[test]
fn every_key_of_the_schema_is_written_out() {
    let keys = "sockets per_socket smt clock base_cpi width window l1_fill_buffers \
        shared_fill_buffers store_buffer string_bytes protocol level holds size ways latency line_cycles shared_by index slice_hash replacement \
        inclusion dcu_next_line dcu_ip_stride l2_streamer l2_adjacent_line consecutive l1 l1_huge l1i l2 \
        l2_latency walk_cache fixed_latency controllers spread channels ranks banks row_size \
        bus_bytes page_policy refresh write_queue tck cl cwl bl rcd rp ras rc ccd rrd faw wr wtr \
        rtp rtrs rfc refi same_group_transfer same_socket_transfer other_socket_transfer \
        same_group_clean same_socket_clean other_socket_clean hop_latency hops probes \
        socket_bus_transfers";
    for name in presets::names() {
        let text = presets::get(name).unwrap();
        for key in keys.split_whitespace() {
            let written = text
                .lines()
                .any(|l| l.split_once('=').is_some_and(|(k, _)| k.trim() == key));
            assert!(written, "{name} leaves {key} to a default");
        }
        for optional in ["link_bytes_per_second", "socket_bus_bytes_per_second"] {
            assert!(text.contains(optional), "{name} {optional}");
        }
    }
}

#[test]
fn colours_of_the_papers_follow_from_the_caches() {
    let x5355 = machine("x5355");
    assert_eq!(colors(x5355.last_level()), 64);
    assert_eq!(x5355.memory.size.0 / 64, 256 << 20);
    assert_eq!(colors(machine("i7-860").last_level()), 128);
    let w3540 = machine("w3540");
    assert_eq!(sets(w3540.last_level()), 8192);
    // Bits 12-14 index the private L2 as well: 8 of its colours.
    let usable = colors(w3540.last_level()) / colors(cache(&w3540, "L2"));
    assert_eq!(usable, 16);
    assert_eq!(w3540.last_level().size.0 / usable, 512 << 10);
    let opteron = machine("opteron4x4");
    assert_eq!(
        (colors(cache(&opteron, "L2")), colors(cache(&opteron, "L3"))),
        (8, 16)
    );
    assert_eq!(colors(machine("x7560").last_level()), 256);
    assert_eq!(colors(machine("skylake-sp").last_level()), 32);
}

#[test]
fn the_i7_860_has_64_banks_of_128_mib() {
    let machine = machine("i7-860");
    let dram = dram(&machine);
    assert_eq!(dram.banks(), 64);
    assert_eq!(machine.memory.size.0 / u64::from(dram.banks()), 128 << 20);
    // Bank bits 13-15, 21 and 22; channel 6 xor 16.
    let banks = |bits: &[u32]| {
        let all = 0..1u64 << bits.len();
        let addr = |n: u64| {
            bits.iter()
                .enumerate()
                .map(|(i, bit)| (n >> i & 1) << bit)
                .sum()
        };
        all.map(|n| dram.bank_index(PhysAddr(addr(n))))
            .collect::<BTreeSet<_>>()
            .len()
    };
    assert_eq!(banks(&[13, 14, 15, 21, 22]), 32);
    assert_eq!(banks(&[6, 13, 14, 15, 21, 22]), 64);
    assert_eq!(banks(&[6, 16]), 2);
    assert_eq!(banks(&[7, 8, 9, 10, 11, 12, 17, 18, 19, 20, 23, 24, 32]), 1);
}

#[test]
fn peak_bandwidths_are_those_of_the_sheets() {
    // GB/s of the whole machine, to a tenth.
    let expected = [
        ("i7-860", 21.3),
        ("w3540", 25.6),
        ("x5355", 21.3),
        ("opteron4x4", 28.0),
        ("x7560", 34.1),
        ("skylake-sp", 140.8),
        ("zen", 51.2),
        ("epyc", 204.8),
    ];
    for (name, peak) in expected {
        let machine = machine(name);
        let one = dram(&machine).peak_bytes_per_second();
        let whole = one as f64 * f64::from(machine.memory.controllers) / 1e9;
        assert!(
            (whole - peak).abs() < 0.05,
            "{name}: {whole} GB/s, not {peak}"
        );
    }
}

#[test]
fn an_unloaded_read_takes_what_was_measured() {
    // Nanoseconds of load-to-use on a closed row, from facts or the preset's own claim.
    let expected = [
        ("i7-860", 60.0..65.0),
        ("w3540", 65.0..70.0),
        // 6 ns more on the front-side bus.
        ("x5355", 107.0..109.0),
        ("opteron4x4", 98.0..102.0),
        ("x7560", 158.0..162.0),
        ("skylake-sp", 88.0..92.0),
        ("zen", 74.0..77.0),
        ("epyc", 94.0..97.0),
    ];
    for (name, range) in expected {
        let machine = machine(name);
        let ready = dram(&machine).read(PhysAddr(0), Picos(0)).ready;
        let cycles = f64::from(machine.last_level().latency);
        let total = cycles * 1e9 / machine.core.clock.0 as f64
            + (machine.memory.fixed_latency.0 + ready.0) as f64 / 1e3;
        assert!(range.contains(&total), "{name}: {total} ns, not {range:?}");
    }
}

#[test]
fn slice_hashes_tell_lines_apart_that_share_a_set() {
    let mut hashed = 0;
    for machine in all() {
        for cache in &machine.cache {
            let mask = |text: &String| {
                let digits = text.strip_prefix("0x").expect("hexadecimal");
                u64::from_str_radix(digits, 16).expect("hexadecimal")
            };
            let masks: Vec<u64> = cache.slice_hash.iter().map(mask).collect();
            let above = sets(cache).trailing_zeros() + 6;
            // Independent above the set index: each slice gets its share of any
            // set, however addresses are drawn.
            for choice in 1u64..1 << masks.len() {
                let sum = masks
                    .iter()
                    .enumerate()
                    .filter(|(i, _)| choice >> i & 1 == 1);
                let sum = sum.fold(0, |sum, (_, mask)| sum ^ mask);
                assert!(sum >> above != 0, "{} {}", machine.name, cache.name);
            }
            hashed += usize::from(!masks.is_empty());
        }
    }
    assert_eq!(hashed, 3);
}

#[test]
fn caches_go_outwards_and_split_only_at_the_first_level() {
    for machine in all() {
        let levels: Vec<u8> = machine.cache.iter().map(|c| c.level).collect();
        assert!(levels.is_sorted(), "{}", machine.name);
        for cache in &machine.cache {
            assert!(
                cache.level == 1 || cache.holds == Holds::Unified,
                "{}",
                machine.name
            );
        }
        for two in machine.cache.windows(2) {
            assert!(two[0].latency <= two[1].latency && two[0].shared_by <= two[1].shared_by);
        }
    }
}

#[track_caller]
fn refused(from: &str, to: &str, key: &str, says: &[&str]) {
    let text = presets::get("w3540").unwrap();
    let at = text.find(from).expect("the preset has this text");
    let line = 1 + text[..at].matches('\n').count();
    let error = presets::parse(&text.replacen(from, to, 1), "w.toml").unwrap_err();
    let PresetError::Parse {
        file,
        line: found,
        key: named,
        message,
    } = &error
    else {
        panic!("{error}");
    };
    assert_eq!((file.as_str(), *found), ("w.toml", line), "{error}");
    assert_eq!(named.as_deref(), Some(key), "{error}");
    for part in says {
        assert!(message.contains(part), "{error}");
    }
    assert!(
        error
            .to_string()
            .starts_with(&format!("w.toml:{line}: {key}: ")),
        "{error}"
    );
}

#[test]
fn bad_files_are_refused_with_line_key_and_what_is_allowed() {
    refused(
        "window = 128",
        "windows = 128",
        "core.windows",
        &["windows", "window", "expected"],
    );
    refused(
        "clock = \"2.93GHz\"",
        "clock = \"2.93\"",
        "core.clock",
        &["2.93", "Hz, kHz, MHz, GHz"],
    );
    refused(
        "size = \"8MiB\"",
        "size = \"8MB\"",
        "cache[3].size",
        &["8MB", "MiB"],
    );
    refused(
        "ways = 16",
        "ways = 70000",
        "cache[3].ways",
        &["70000", "a whole number from 0 to 65535"],
    );
    refused(
        "inclusion = \"inclusive\"",
        "inclusion = \"all\"",
        "cache[3].inclusion",
        &["all", "non-inclusive"],
    );
    refused(
        "ras = 20",
        "ras = \"20\"",
        "memory.dram.timing.ras",
        &["a whole number from 0 to 4294967295"],
    );
    refused(
        "page_policy = \"open\"",
        "page_policy = \"ajar\"",
        "memory.dram.page_policy",
        &["ajar", "closed"],
    );
    refused(
        "tck = \"1.875ns\"",
        "tck = \"1.875\"",
        "memory.dram.timing.tck",
        &["ps, ns"],
    );
    refused("base_cpi = 0.6", "base_cpi = 0.6 0.7", "core.base_cpi", &[]);
    refused(
        "l1_huge = { entries = 32, ways = 4 }",
        "l1_huge = [32, 4, 300]",
        "tlb.l1_huge",
        &["a table"],
    );
}

#[test]
fn names_and_titles_stand_in_one_line() {
    let text = presets::get("w3540").unwrap();
    for (from, to, field) in [
        ("name = \"w3540\"", "name = \" \"", "name"),
        ("title = \"", "title = \"a\\u001b[31m", "title"),
        ("name = \"L3\"", "name = \"L\\n3\"", "cache[3].name"),
    ] {
        assert!(text.contains(from), "{from}");
        let error = presets::parse(&text.replacen(from, to, 1), "w.toml").unwrap_err();
        let PresetError::Value { error: found, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(found.field, field);
        assert!(!error.to_string().contains(char::is_control), "{error}");
    }
}

#[test]
fn a_copied_line_takes_as_long_as_its_bytes_do() {
    let machine = |bytes: &str| {
        let text = presets::get("opteron4x4").unwrap();
        let text = text.replace("string_bytes = 8", &format!("string_bytes = {bytes}"));
        let spec = presets::parse(&text, "o.toml").unwrap();
        Machine::new(&spec, &Options::default())
    };
    // Eight cycles of a quadword each, at 0.8 cycles an instruction.
    assert_eq!(machine("8").unwrap().line_instrs(), 10);
    assert_eq!(machine("64").unwrap().line_instrs(), 2);
    for wrong in ["0", "65"] {
        let error = machine(wrong).map(|_| ()).unwrap_err().to_string();
        assert!(
            error.contains("string_bytes") && error.contains("1 to 64"),
            "{error}"
        );
    }
}

#[test]
fn a_missing_key_is_named() {
    let text = presets::get("w3540")
        .unwrap()
        .replacen("clock = ", "# clock = ", 1);
    let error = presets::parse(&text, "w.toml").unwrap_err().to_string();
    assert!(error.contains("clock"), "{error}");
}

#[test]
fn names_and_texts_load_and_unknown_names_list_the_known() {
    assert_eq!(presets::load("w3540").unwrap().core.per_socket, 4);
    assert_eq!(
        presets::load(presets::get("zen").unwrap()).unwrap().name,
        "zen"
    );
    let error = presets::load("pentium").unwrap_err().to_string();
    assert!(
        error.contains("pentium") && error.contains("i7-860, opteron4x4"),
        "{error}"
    );
}

#[test]
fn fields_of_errors_are_found_in_the_file() {
    let text = presets::get("i7-860").unwrap();
    let line = |field| presets::line_of(text, field).map(|n| text.lines().nth(n - 1).unwrap());
    assert!(
        line("memory.dram.timing.ras")
            .unwrap()
            .starts_with("ras = 24")
    );
    assert!(line("cache[3].ways").unwrap().starts_with("ways = 16"));
    assert_eq!(
        line("memory.dram.timing.nothing"),
        Some("[memory.dram.timing]")
    );
    let masks = line("cache[3].slice_hash[1]").unwrap();
    assert!(masks.starts_with("slice_hash = "), "{masks}");
    assert_eq!(line("nothing"), None);
    assert_eq!(line("cache[9].slice_hash[1]"), None);
}

#[test]
fn no_text_makes_the_reader_panic() {
    let text = presets::get("i7-860").unwrap();
    for cut in (0..text.len()).step_by(7) {
        let _ = presets::parse(&text[..cut], "cut");
        let mut torn = text.to_string();
        torn.remove(cut);
        let _ = presets::parse(&torn, "torn");
    }
}
