//! An invented study: shaped like a real one, but every number is made up by
//! the formulas below, so it proves nothing about any policy.

use piebald_report::{
    CourseEvent, CourseIpc, CourseProgram, CourseResult, Extra, LevelMpki, MachineSummary, Metrics,
    MissCurve, PolicyResult, ProgramResult, RegionCheck, RegionFigures, RegionResult, RegionSet,
    Role, Sample, SetMap, SetMapSpeed, Study,
};

const REPETITIONS: u64 = 5;

/// `mean` with a repeatable spread of about `spread` (relative) over repetitions.
fn spread(mean: f64, spread: f64, seed: u64) -> Sample {
    (0..REPETITIONS)
        .map(|i| {
            let mixed = (i + 1 + seed * 31).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let unit = (mixed >> 40) as f64 / (1u64 << 24) as f64 - 0.5;
            mean * (1.0 + 2.0 * spread * unit)
        })
        .collect()
}

/// Counters of a program whose L3 misses are `l3` per 1000 instructions.
fn metrics(cpi: f64, l1: f64, l3: f64, hits: f64, pages: f64, seed: u64) -> Metrics {
    let instructions = 1.42e8;
    let ipc = spread(1.0 / (cpi + l3 * 0.055), 0.012, seed);
    let time_ps = ipc.map(|ipc| instructions / ipc * 1e12 / 2.93e9);
    Metrics {
        dram_bytes_per_s: time_ps.map(|t| l3 / 1000.0 * instructions * 64.0 / (t / 1e12)),
        time_ps,
        instructions: spread(instructions, 0.0, 0),
        refs: spread(5e7, 0.0, 0),
        ipc,
        mpki: [("L1d", l1), ("L2", l1 * 0.55 + l3 * 0.4), ("L3", l3)]
            .into_iter()
            .enumerate()
            .map(|(i, (level, m))| LevelMpki {
                level: level.to_owned(),
                mpki: spread(m, 0.03, seed + i as u64),
                ..LevelMpki::default()
            })
            .collect(),
        occupancy: Vec::new(),
        row_hit_rate: Some(spread(hits, 0.02, seed)),
        tlb_mpki: Some(spread(0.31, 0.05, seed)),
        pages: spread(pages, 0.0, 0),
        huge_pages: spread(0.0, 0.0, 0),
        faults: spread(pages * 1.01, 0.004, seed),
        memory_reads: Sample::default(),
        colors: None,
        extra: vec![Extra {
            name: "frames outside the colors".to_owned(),
            unit: String::new(),
            value: spread(0.0, 0.0, 0),
        }],
    }
}

fn program(
    name: &str,
    role: Role,
    cores: &str,
    alone: Metrics,
    together: Metrics,
) -> ProgramResult {
    ProgramResult {
        name: name.to_owned(),
        role,
        cores: cores.to_owned(),
        colors: None,
        beside: None,
        input: format!("recording {name}.pbr"),
        slowdown: alone.time_ps.slowdown(&together.time_ps),
        alone,
        together: Some(together),
        regions: None,
    }
}

/// Two regions that stand for a program.
fn regions(seed: u64) -> RegionSet {
    let region = |start, weight, cpi, mpki| {
        let figures = |factor: f64| RegionFigures {
            cpi: spread(cpi * factor, 0.01, seed),
            last_level_mpki: spread(mpki * factor, 0.02, seed),
        };
        RegionResult {
            start,
            instructions: 10_000_000,
            refs: 3_400_000,
            warmup_refs: 1_000_000,
            weight,
            alone: figures(1.0),
            together: Some(figures(1.2)),
            slowdown: Some(spread(0.2, 0.05, seed)),
        }
    };
    RegionSet {
        instructions: 812_000_000,
        interval: 10_000_000,
        coverage: 20.0 / 812.0,
        distance: 0.04,
        distance_of_one: 0.61,
        regions: vec![
            region(120_000_000, 0.7, 0.7, 0.4),
            region(650_000_000, 0.3, 1.1, 0.9),
        ],
        check: Some(RegionCheck {
            last_level: "L3".to_owned(),
            whole_cpi: 0.81,
            regions_cpi: 0.82,
            cpi_error: 0.82 / 0.81 - 1.0,
            whole_mpki: 0.5,
            regions_mpki: 0.55,
            mpki_error: Some(0.1),
            whole_refs: 276_000_000,
        }),
    }
}

fn policy(
    name: &str,
    description: &str,
    [bzip2, mcf]: [f64; 2],
    alone: f64,
    seed: u64,
) -> PolicyResult {
    let target = |name: &str, cores, cpi, l1, l3: f64, beside, pages, seed| {
        let before = metrics(cpi, l1, l3 * alone, 0.62, pages, seed);
        let after = metrics(cpi, l1 * 1.01, beside, 0.41, pages, seed + 2);
        program(name, Role::Target, cores, before, after)
    };
    PolicyResult {
        name: name.to_owned(),
        description: description.to_owned(),
        programs: vec![
            ProgramResult {
                regions: Some(regions(seed)),
                ..target("bzip2", "0", 0.81, 11.4, 0.52, bzip2, 1893.0, seed)
            },
            target("mcf", "1", 1.92, 48.0, 14.1, mcf, 40_212.0, seed + 7),
            program(
                "scan",
                Role::Polluter,
                "2",
                metrics(0.62, 15.8, 15.2, 0.88, 16_401.0, seed + 11),
                metrics(0.62, 15.8, 15.3, 0.71, 16_401.0, seed + 13),
            ),
        ],
        course: (seed == 9).then(course),
    }
}

/// Two programs, of which one comes later.
fn course() -> CourseResult {
    let program = |name: &str, class: Option<&str>, colors: &str, nr_colors| CourseProgram {
        name: name.to_owned(),
        class: class.map(str::to_owned),
        colors: colors.to_owned(),
        nr_colors,
    };
    let event = |time_ps, what: &str, programs| CourseEvent {
        time_ps,
        what: what.to_owned(),
        policy: "bank-only (4)".to_owned(),
        programs,
    };
    let first = program("bzip2", None, "0-31", 32);
    let later = |class| {
        vec![
            program("bzip2", Some("LLCM"), "0-7,16-23", 16),
            program("mcf", class, "8-15,24-31", 16),
        ]
    };
    let ipc = |program: &str, ipc: &[f64]| CourseIpc {
        program: program.to_owned(),
        ipc: ipc.to_vec(),
    };
    CourseResult {
        times_ps: vec![100_000_000, 200_000_000, 300_000_000],
        ipc: vec![ipc("bzip2", &[1.2, 1.1, 0.9]), ipc("mcf", &[0.3, 0.4, 0.5])],
        events: vec![
            event(0, "bzip2 begins", vec![first]),
            event(120_000_000, "mcf begins", later(None)),
            event(230_000_000, "mcf is LLCH", later(Some("LLCH"))),
        ],
        watching: Some(0.004),
        ..CourseResult::default()
    }
}

/// 48 groups of an 8 MiB cache over 60 samples; `parts` gives each program's
/// range of groups, as shares of all.
fn set_map(policy: &str, parts: [(f64, f64); 3]) -> SetMap {
    let (groups, times) = (48u32, 60u64);
    let mut shares = Vec::new();
    for t in 0..times {
        for g in 0..groups {
            let at = f64::from(g) / f64::from(groups);
            let filled = 1.0 - (-(t as f64) / 6.0).exp();
            let wave = 0.75 + 0.25 * ((t as f64 / 7.0) + f64::from(g) * 0.9).sin();
            let weights = [0.25, 0.2, 0.9]
                .iter()
                .zip(parts)
                .map(|(weight, (low, high))| {
                    if (low..high).contains(&at) {
                        weight * wave
                    } else {
                        0.0
                    }
                });
            let weights: Vec<f64> = weights.collect();
            let sum = weights.iter().sum::<f64>() + 0.05;
            let part = |w: f64| (w / sum * filled * 255.0) as u8;
            let owned: Vec<u8> = std::iter::once(0.04 * sum)
                .chain(weights)
                .map(part)
                .collect();
            shares.push(255 - owned.iter().sum::<u8>());
            shares.extend(owned);
        }
    }
    SetMap {
        policy: policy.to_owned(),
        cache: "L3".to_owned(),
        place: None,
        nr_sets: 8192,
        nr_groups: groups,
        owners: ["empty", "kernel", "bzip2", "mcf", "scan"]
            .map(str::to_owned)
            .to_vec(),
        times_ps: (0..times).map(|t| t * 1_200_000_000).collect(),
        shares,
        speeds: ["bzip2", "mcf", "scan"]
            .into_iter()
            .zip([1.9, 0.8, 2.6])
            .map(|(program, level)| SetMapSpeed {
                program: program.to_owned(),
                instr_per_ns: (1..times)
                    .map(|t| level * (1.0 - 0.3 * (1.0 - (-(t as f64) / 6.0).exp())))
                    .collect(),
            })
            .collect(),
    }
}

fn curve(program: &str, floor: f64, height: f64, knee: f64) -> MissCurve {
    let point = |i: u32| {
        let bytes = 128u64 << 10 << i;
        let x = (bytes as f64 / knee).powf(1.4);
        (bytes, floor + height / (1.0 + x))
    };
    MissCurve {
        program: program.to_owned(),
        cache: "L3".to_owned(),
        points: (0..8).map(point).collect(),
    }
}

/// The invented study.
pub fn sample_study() -> Study {
    let everywhere = [(0.0, 1.0); 3];
    Study {
        title: "bzip2 and mcf beside a scan on a Xeon W3540".to_owned(),
        version: "0.1.0".to_owned(),
        machine: MachineSummary {
            name: "w3540".to_owned(),
            title: "Intel Xeon W3540".to_owned(),
            lines: [
                "4 cores, 2.93GHz, window 128",
                "L1d 32KiB, 8 ways, 4 cycles, private",
                "L2 256KiB, 8 ways, 10 cycles, private",
                "L3 8MiB, 16 ways, 38 cycles, shared",
                "DDR3-1066, 3 channels, 8 banks each, 12GiB",
                "32 page colors (physical address bits 15-18 and 12)",
            ]
            .map(str::to_owned)
            .to_vec(),
        },
        features: ["prefetch", "coherence", "tlb", "dram timing"]
            .map(str::to_owned)
            .to_vec(),
        missing: ["instruction fetch of the kernel", "DRAM refresh"]
            .map(str::to_owned)
            .to_vec(),
        seed: 42,
        repetitions: REPETITIONS as u32,
        budget_refs: 50_000_000,
        warmup_refs: 5_000_000,
        simulated_refs: 4_125_000_000,
        host_seconds: 213.4,
        notes: vec!["All numbers of this sample are invented.".to_owned()],
        warnings: vec![],
        command: Some("piebald study pollute.toml --html report.html".to_owned()),
        scenario: Some(
            "schema = 1\nseed = 42\nrepetitions = 5\n\n[machine]\npreset = \"w3540\"\n".to_owned(),
        ),
        policies: vec![
            policy(
                "buddy",
                "stock buddy allocator, every color for everybody",
                [4.9, 21.0],
                1.0,
                3,
            ),
            policy(
                "rainbow",
                "disjoint colors: bzip2 0-7, mcf 8-27, scan 28-31",
                [0.74, 15.1],
                1.25,
                5,
            ),
            policy("random", "random colors", [4.75, 20.6], 1.0, 9),
        ],
        curves: vec![
            curve("bzip2", 0.1, 6.0, 9e5),
            curve("mcf", 6.0, 30.0, 4e6),
            curve("scan", 15.1, 0.2, 1e7),
        ],
        set_maps: vec![
            set_map("buddy", everywhere),
            set_map("rainbow", [(0.0, 0.25), (0.25, 0.875), (0.875, 1.0)]),
            set_map("random", everywhere),
        ],
        ..Study::default()
    }
}
