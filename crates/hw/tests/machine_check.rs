//! Values that no machine has are refused when its file is read; odd ones are named.

use piebald_hw::{
    Machine, Options,
    presets::{self, check::oddities},
};

/// The text of a preset with some of its lines changed, each where it stands first behind
/// the cache or table that is named.
fn changed(preset: &str, changes: &[(&str, &str, &str)]) -> String {
    let mut text = presets::get(preset).expect("a preset").to_owned();
    for (behind, from, to) in changes {
        let start = text.find(behind).expect("the place");
        let at = start + text[start..].find(from).expect("the line");
        text.replace_range(at..at + from.len(), to);
    }
    text
}

#[track_caller]
fn refused(preset: &str, changes: &[(&str, &str, &str)], says: &str) {
    let text = changed(preset, changes);
    let error = presets::parse(&text, "m.toml")
        .expect_err("refused")
        .to_string();
    let (behind, _, to) = changes[0];
    let start = text.find(behind).expect("the place");
    let line = 1 + text[..start + text[start..].find(to).expect("the line")]
        .matches('\n')
        .count();
    assert!(error.starts_with(&format!("m.toml:{line}: ")), "{error}");
    assert!(error.contains(says), "{error}");
}

#[test]
fn what_no_machine_has_is_refused_with_line_key_value_and_what_is_allowed() {
    let l1 = "name = \"L1D\"";
    let l2 = "name = \"L2\"";
    let l3 = "name = \"L3\"";
    let tiny = [
        (l1, "size = \"32KiB\"", "size = \"64B\""),
        (l1, "ways = 8", "ways = 1"),
    ];
    refused("w3540", &tiny, "cache[1].size = 64B: 1KiB or more");
    refused(
        "w3540",
        &[(l2, "size = \"256KiB\"", "size = \"16KiB\"")],
        "cache[2].size = 16KiB: 32KiB or more, the size of L1I inside it, unless inclusion",
    );
    refused(
        "w3540",
        &[(l3, "size = \"8MiB\"", "size = \"128KiB\"")],
        "cache[3].size = 128KiB: 256KiB or more, the size of L2 inside it",
    );
    refused(
        "w3540",
        &[(l2, "latency = 10", "latency = 3")],
        "cache[2].latency = 3: 4 cycles or more, those of L1I inside it",
    );
    refused(
        "w3540",
        &[(l3, "latency = 44", "latency = 9")],
        "cache[3].latency = 9: 10 cycles or more, those of L2 inside it",
    );
    refused(
        "w3540",
        &[(l1, "latency = 4 ", "latency = 0 ")],
        "cache[1].latency = 0: 1 cycle or more",
    );
    // An inclusive level holds all that the inner ones have.
    refused(
        "zen",
        &[(l2, "size = \"512KiB\"", "size = \"16KiB\"")],
        "cache[2].size = 16KiB: 32KiB or more",
    );
}

/// The oddities of a machine that can be built.
fn odd(preset: &str, changes: &[(&str, &str, &str)]) -> Vec<String> {
    let text = changed(preset, changes);
    let spec = presets::parse(&text, "m.toml").unwrap_or_else(|e| panic!("{e}"));
    Machine::new(&spec, &Options::default()).unwrap_or_else(|e| panic!("{e}"));
    oddities(&spec).iter().map(ToString::to_string).collect()
}

#[test]
fn no_preset_is_odd() {
    for preset in presets::names() {
        assert_eq!(odd(preset, &[]), Vec::<String>::new(), "{preset}");
    }
}

#[test]
fn what_is_merely_odd_is_built_and_named() {
    let l1 = "name = \"L1D\"";
    let l2 = "name = \"L2\"";
    let l3 = "name = \"L3\"";
    let links = "[links]";
    for (preset, change, says) in [
        (
            "opteron4x4",
            (l2, "size = \"512KiB\"", "size = \"32KiB\""),
            "cache[2].size = 32KiB: smaller than L1I inside it (64KiB), whose victims it holds",
        ),
        (
            "w3540",
            (l3, "size = \"8MiB\"", "size = \"1MiB\""),
            "cache[3].size = 1MiB: no more than all caches inside it together (4 x 256KiB L2), \
             which it includes, so that they can never be full",
        ),
        (
            "w3540",
            (l2, "size = \"256KiB\"", "size = \"64KiB\""),
            "no more than all caches inside it together (1 x 32KiB L1I and 1 x 32KiB L1D)",
        ),
        (
            "w3540",
            (l2, "latency = 10", "latency = 4"),
            "cache[2].latency = 4: no more than L1I inside it takes",
        ),
        (
            "w3540",
            (l3, "latency = 44", "latency = 4400"),
            "cache[3].latency = 4400: more than 1000 cycles",
        ),
        (
            "w3540",
            (l1, "size = \"32KiB\"", "size = \"2KiB\""),
            "cache[1].size = 2KiB: a first level has 4KiB to 1MiB",
        ),
        (
            "w3540",
            ("[core]", "2.93GHz", "29.3MHz"),
            "core.clock = 29.3MHz",
        ),
        (
            "w3540",
            ("[core]", "base_cpi = 0.6", "base_cpi = 0.1"),
            "core.base_cpi = 0.1: less than 1 / width = 1 / 4",
        ),
        (
            "w3540",
            (
                links,
                "same_group_transfer = 75",
                "same_group_transfer = 43",
            ),
            "links.same_group_transfer = 43: less than the 44 cycles of L3, which is nearer",
        ),
        (
            "zen",
            (
                links,
                "other_socket_transfer = 340",
                "other_socket_transfer = 34",
            ),
            "links.other_socket_transfer = 34: less than the 290 cycles of links.same_socket",
        ),
        (
            "w3540",
            ("[memory]", "size = \"12GiB\"", "size = \"6MiB\""),
            "memory.size = 6MiB: all of it fits into the 1 x 8MiB of L3",
        ),
        (
            "w3540",
            ("[tlb]", "l2 = { entries = 512", "l2 = { entries = 32"),
            "tlb.l2 = 32: fewer entries than tlb.l1 has (64)",
        ),
        (
            "w3540",
            ("[memory.dram.timing]", "cl = 7 ", "cl = 700 "),
            "memory.dram.timing.cl = 700: 700 cycles of 1.875ns are 1312 ns: 5 to 60 ns are usual",
        ),
        (
            "w3540",
            ("[memory.dram.timing]", "rcd = 7 ", "rcd = 1 "),
            "memory.dram.timing.rcd = 1: 1 cycles of 1.875ns are 1 ns: 5 to 60 ns are usual",
        ),
        (
            "w3540",
            (l3, "slice_hash = [] ", "slice_hash = [\"0x2000000000\"] "),
            "cache[3].slice_hash[0] = 0x2000000000: tells no slices apart in 12GiB",
        ),
    ] {
        let found = odd(preset, &[change]);
        assert!(found.iter().any(|o| o.contains(says)), "{says}: {found:?}");
    }
}

#[test]
fn sources_of_values_are_read_beside_them() {
    let text = presets::get("w3540").expect("a preset");
    let remark = presets::remark(text, "cache[3].slice_hash");
    assert_eq!(remark, Some("[S3] 8192 sets, bits 6-18"));
    assert_eq!(presets::remark(text, "cache[3].slices"), None);
    assert_eq!(presets::remark("name = \"x\"", "name"), None);
}

#[test]
fn a_slip_in_a_preset_s_name_is_told() {
    for (typed, meant) in [
        ("w3541", "w3540"),
        ("skylake", "skylake-sp"),
        ("Zen2", "zen"),
    ] {
        let error = presets::load(typed).unwrap_err().to_string();
        let says = format!("no machine preset \"{typed}\"; did you mean {meant}?");
        assert_eq!(error, says);
    }
}
