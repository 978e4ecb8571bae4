//! The same stream through independent cache simulators.

use std::{path::Path, process::Command};

use crate::machine_kit::{Build, Rig, Rng, cache, load};

/// Numbers that the script prints.
///
/// # Panics
/// If the simulator, which is in this Debian package or got by means of it, is absent.
fn ask(arguments: &[String], package: &str) -> Vec<u64> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = root.join("scripts/compare-simulators.sh");
    let out = Command::new(script).args(arguments).output();
    let out = out.expect("the script starts (Debian package bash)");
    let said = String::from_utf8_lossy(&out.stderr);
    let is_absent = out.status.code() == Some(77);
    assert!(!is_absent, "{} (Debian package {package})", said.trim());
    assert!(out.status.success(), "{said}");
    let text = String::from_utf8(out.stdout).expect("UTF-8");
    let numbers = text.split_whitespace().map(|n| n.parse());
    numbers.map(|n| n.expect("a number")).collect()
}

fn misses(rig: &Rig) -> [u64; 3] {
    rig.counters(0).level.map(|l| l.misses)
}

#[test]
#[ignore = "needs python3-venv: ./test.sh simulators"]
fn lru_misses_of_three_levels_equal_those_of_pycachesim() {
    let shape = [(64, 8), (512, 8), (2048, 16)];
    let latency = [4, 10, 40];
    let build = Build {
        caches: (0..3)
            .map(|k| cache(k as u8 + 1, shape[k].0, shape[k].1, latency[k], ""))
            .collect(),
        ..Build::default()
    };
    let mut rng = Rng(2024);
    let mut place = 0;
    let stream: Vec<u64> = (0..120_000)
        .map(|_| {
            // Scans, random jumps and a hot part.
            match rng.below(16) {
                0 => place = rng.below(6 << 20),
                1..6 => place += 64,
                6..9 => return rng.below(1 << 15) * 8,
                _ => place = (place + 8) % (6 << 20),
            }
            place % (6 << 20) / 8 * 8
        })
        .collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("stream.u64");
    let bytes: Vec<u8> = stream.iter().flat_map(|a| a.to_le_bytes()).collect();
    std::fs::write(&file, bytes).expect("the stream is written");
    let mut arguments = vec!["pycachesim".to_owned(), file.display().to_string()];
    arguments.extend(
        shape
            .iter()
            .flat_map(|(s, w)| [s.to_string(), w.to_string()]),
    );
    let theirs = ask(&arguments, "python3-venv");
    let mut rig = build.rig("window");
    rig.run(0, &stream.iter().map(|a| load(*a)).collect::<Vec<_>>());
    println!("{:?}", misses(&rig));
    assert_eq!(misses(&rig)[..], theirs[..]);
    assert!(theirs[2] > 10_000 && theirs[0] > theirs[1] && theirs[1] > theirs[2]);
}

#[test]
#[ignore = "needs valgrind and build-essential: ./test.sh simulators"]
fn lru_misses_of_a_real_program_equal_those_of_cachegrind() {
    let (loads, bytes) = (200_000u64, 2u64 << 20);
    let arguments = ["cachegrind", "32768,8,64", "1048576,16,64"].map(str::to_owned);
    let mut arguments = arguments.to_vec();
    arguments.extend([loads.to_string(), bytes.to_string()]);
    let theirs = ask(&arguments, "valgrind");
    let build = Build {
        caches: vec![cache(1, 64, 8, 4, ""), cache(2, 1024, 16, 30, "")],
        ..Build::default()
    };
    let mut rig = build.rig("window");
    let mut x = 1u64;
    let mut round = || -> Vec<_> {
        (0..loads)
            .map(|_| {
                x = x.wrapping_mul(6_364_136_223_846_793_005);
                x = x.wrapping_add(1_442_695_040_888_963_407);
                load((x >> 33) & (bytes - 1))
            })
            .map(|r| piebald_units::memory::PhysRef { size: 1, ..r })
            .collect()
    };
    rig.run(0, &round());
    let before = misses(&rig);
    rig.run(0, &round());
    let after = misses(&rig);
    let ours = [after[0] - before[0], after[1] - before[1]];
    println!("ours {ours:?}, cachegrind {theirs:?}");
    // The program's stack and the loader have a few lines of their own.
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert!(ours.abs_diff(*theirs) <= theirs / 1000, "{ours} {theirs}");
    }
}
