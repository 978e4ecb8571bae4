//! Memory that a machine cannot have is refused in plain words, with the nearest that it can.

use piebald_hw::{Machine, Options, presets, spec::MachineSpec};
use piebald_units::Bytes;

fn machine(preset: &str, memory: &str) -> MachineSpec {
    let mut spec = presets::load(preset).unwrap_or_else(|e| panic!("{e}"));
    spec.memory.size = memory.parse().expect("a size");
    spec
}

fn refused(spec: &MachineSpec) -> Option<String> {
    let built = Machine::new(spec, &Options::default());
    built.map(|_| ()).err().map(|e| e.to_string())
}

#[test]
fn three_channels_say_so_and_what_fits() {
    let error = refused(&machine("w3540", "4GiB")).expect("refused");
    assert_eq!(
        error,
        "memory.size = 4GiB: not a size that this machine can have (its 3 channels hold equal \
         parts, and each must be a power of two); allowed: 3GiB or 6GiB"
    );
}

#[test]
fn each_kind_of_machine_says_what_shares_its_memory() {
    for (preset, memory, parts) in [
        ("w3540", "16GiB", &["3 channels", "12GiB or 24GiB"][..]),
        (
            "x7560",
            "12GiB",
            &["(it must be a power of two)", "8GiB or 16GiB"],
        ),
        (
            "i7-860",
            "4GiB",
            &["address map names the bits of one size", "allowed: 8GiB"],
        ),
        (
            "opteron4x4",
            "12GiB",
            &["8 controllers hold equal parts", "8GiB or 16GiB"],
        ),
        ("skylake-sp", "64GiB", &["6 channels", "48GiB or 96GiB"]),
        ("w3540", "96KiB", &["too little", "allowed: 768KiB"]),
    ] {
        let error = refused(&machine(preset, memory)).expect("refused");
        assert!(
            error.starts_with(&format!("memory.size = {memory}: ")),
            "{error}"
        );
        for part in parts {
            assert!(error.contains(part), "{preset}: {part}: {error}");
        }
    }
    // Seven of eight controllers: nothing that is a power of two can be divided by seven.
    let options = Options {
        disabled_controllers: vec![3],
        ..Options::default()
    };
    let built = Machine::new(&machine("opteron4x4", "16GiB"), &options);
    let error = built.map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("7 controllers hold equal parts"), "{error}");
    assert!(error.contains("14GiB or 28GiB"), "{error}");
}

#[test]
fn the_nearest_sizes_are_the_nearest_that_can_be_built() {
    // Every multiple of 512 MiB is tried; what is offered must be built, and nothing between.
    let step = 512 * Bytes::MIB;
    for preset in presets::names() {
        let sizes: Vec<u64> = (1..=96).map(|n| n * step).collect();
        let tried: Vec<(u64, Option<String>)> = sizes
            .iter()
            .map(|bytes| {
                (
                    *bytes,
                    refused(&machine(preset, &Bytes(*bytes).to_string())),
                )
            })
            .collect();
        let fits: Vec<u64> = tried
            .iter()
            .filter(|t| t.1.is_none())
            .map(|t| t.0)
            .collect();
        assert!(fits.len() > 3 || preset == "i7-860", "{preset}: {fits:?}");
        for (bytes, error) in &tried {
            let Some(error) = error else { continue };
            let offered = error.rsplit_once("allowed: ").expect("an offer").1;
            let offered: Vec<u64> = offered
                .split(" or ")
                .map(|size| size.parse::<Bytes>().expect("a size").0)
                .collect();
            for size in &offered {
                let spec = machine(preset, &Bytes(*size).to_string());
                assert_eq!(refused(&spec), None, "{preset} {}", Bytes(*size));
            }
            let (low, high) = (offered[0], *offered.last().expect("one"));
            let between = fits
                .iter()
                .any(|fit| (low.min(*bytes)..high).contains(fit) && *fit != low);
            assert!(!between, "{preset} {}: {error}", Bytes(*bytes));
        }
    }
}

#[test]
fn what_no_size_would_cure_is_said_as_it_is() {
    let mut spec = machine("w3540", "12GiB");
    spec.memory.dram.banks = 6;
    let error = refused(&spec).expect("refused");
    assert!(error.starts_with("memory.dram.banks = 6: "), "{error}");
    let mut spec = machine("w3540", "12GiB");
    spec.memory.dram.timing.ras = 1;
    let error = refused(&spec).expect("refused");
    assert!(error.starts_with("memory.dram.timing.ras = 1: "), "{error}");
}
