//! Miss curves of one run beside runs in real partitions: the program really confined to
//! so many colors of the modelled machine.

use std::sync::Arc;

use piebald_hw::{Features, MissCurve, Options, presets, spec::MachineSpec};
use piebald_os_model::{
    frames::{Colored, ColoredConfig},
    kernel::{ColorConfig, Kernel, KernelConfig},
};
use piebald_policy::{
    color_map::{BitClass, ColorMap},
    rainbow,
};
use piebald_sim::{ColorSetup, CurveRequest, Outcome, ProgramSetup, Setup, Stay, Threads, run};
use piebald_trace::recording::ReplayOptions;
use piebald_units::{Bytes, ColorAsk, CoreSet, Picos};
use piebald_workload::{Builtin, Library};

/// Frame bits of the W3540's sixteen colors.
const COLORS: [u64; 4] = [1 << 3, 1 << 4, 1 << 5, 1 << 6];

struct Case {
    machine: MachineSpec,
    features: Features,
    library: Library,
}

impl Case {
    fn new(features: &str) -> Self {
        let mut machine = presets::load("w3540").expect("a preset");
        machine.memory.size = Bytes(1536 * Bytes::MIB);
        Self {
            machine,
            features: features.parse().expect("features"),
            library: Library::new(),
        }
    }

    /// A program alone in the first `colors` colors, taken in turn.
    fn run(
        &self,
        builtin: &str,
        refs: [u64; 2],
        colors: u32,
        sample_shift: Option<u32>,
    ) -> Outcome {
        let masks = COLORS.map(|mask| (mask, BitClass::Cache));
        let map = ColorMap::from_masks(&masks).expect("colors");
        let frames = self.machine.memory.size.0 >> 12;
        let core = &self.machine.core;
        let threads = core.sockets * core.per_socket * core.smt;
        let mut config = KernelConfig::new(threads);
        config.colors = Some(ColorConfig {
            map: map.clone(),
            rainbow: rainbow::Config {
                when_full: rainbow::WhenFull::Others,
                ..rainbow::Config::PAPER
            },
            hvr: None,
        });
        let frames = Colored::new(&ColoredConfig::new(frames, threads, map)).expect("frames");
        let options = ReplayOptions {
            fetches: self.features.fetch,
            dependences: self.features.window,
            ..ReplayOptions::default()
        };
        let builtin = Builtin::parse(builtin).expect("a program");
        let total = refs.iter().sum::<u64>();
        let program = self
            .library
            .program(&builtin, 1, total + total / 4, options);
        run(Setup {
            machine: &self.machine,
            options: Options {
                features: self.features,
                ..Options::default()
            },
            kernel: Kernel::new(config, Box::new(frames)).expect("kernel"),
            programs: vec![ProgramSetup {
                name: "program".to_owned(),
                input: Arc::new(program.expect("recorded")),
                cores: CoreSet::first(1),
                colors: ColorSetup {
                    reserve: Some(ColorAsk::Count(colors)),
                    ..ColorSetup::default()
                },
                stay: Stay::default(),
                start: Picos(0),
                waits: false,
                measured: true,
                skip: 0,
                prime: 0,
                marks_ready: true,
                warmup: refs[0],
                budget: refs[1],
                each: false,
            }],
            threads: Threads::default(),
            map: None,
            fill: false,
            curve: sample_shift.map(|sample_shift| CurveRequest {
                program: 0,
                colors: COLORS.to_vec(),
                sample_shift,
            }),
            quantum: Picos(1_000_000),
            skew: Picos(50_000),
            course: None,
            stop: None,
            progress: None,
        })
        .expect("runs")
    }
}

fn curve(outcome: &Outcome) -> &MissCurve {
    outcome.programs[0].miss_curve.as_ref().expect("asked for")
}

/// Demand misses of the last level.
fn misses(outcome: &Outcome) -> u64 {
    outcome.programs[0].region.counters.level[2].misses
}

/// How far the curve may be off, in percent of the misses, and of the accesses where
/// there are few misses. What is ignored is small here but at one color, where the
/// inclusive last level is no larger than twice the second.
const OFF_PERCENT: u64 = 2;
const OFF_ACCESSES_PERMILLE: u64 = 2;

#[test]
fn one_run_tells_the_misses_in_real_partitions() {
    let case = Case::new("all");
    for (builtin, refs) in [
        ("mergesort:3MiB", [1_200_000, 600_000]),
        ("gups:8MiB", [600_000, 300_000]),
        ("phold", [1_200_000, 600_000]),
    ] {
        let all = case.run(builtin, refs, 16, Some(0));
        let sampled = case.run(builtin, refs, 16, Some(2));
        let (curve, part) = (curve(&all), curve(&sampled));
        assert_eq!(curve.points.len(), 16);
        for colors in [1, 4, 16] {
            let real = case.run(builtin, refs, colors, None);
            let point = curve.points[colors as usize - 1];
            let real_misses = misses(&real);
            let allowed =
                real_misses * OFF_PERCENT / 100 + curve.accesses * OFF_ACCESSES_PERMILLE / 1000;
            assert!(
                point.misses.abs_diff(real_misses) <= allowed,
                "{builtin}, {colors} colors: {point:?}, in fact {real_misses}"
            );
            let seen = part.points[colors as usize - 1];
            assert!(
                seen.misses.abs_diff(point.misses) <= 4 * seen.error,
                "{builtin}, {colors} colors: {point:?} {seen:?}"
            );
            if colors == 16 {
                // The real partition, drawn in the same turn, and nothing was changed.
                assert_eq!(point.misses, real_misses, "{builtin}");
                assert_eq!(all.programs[0].region, real.programs[0].region);
                assert_eq!(sampled.programs[0].region, real.programs[0].region);
                assert_eq!(real.programs[0].miss_curve, None);
                let counters = &real.programs[0].region.counters;
                assert_eq!(curve.accesses, counters.level[2].accesses, "{builtin}");
                assert_eq!(point.prefetch_misses, counters.prefetch_reads, "{builtin}");
            }
        }
        let (one, most) = (curve.points[0].misses, curve.points[11].misses);
        assert!(one > most && most > curve.points[15].misses, "{builtin}");
    }
}

#[test]
fn a_scan_gains_nothing_by_more_colors() {
    let case = Case::new("none");
    let all = case.run("scan:24MiB", [300_000, 200_000], 16, Some(0));
    let curve = curve(&all);
    for point in &curve.points {
        let share = point.misses as f64 / curve.accesses as f64;
        assert!(share > 0.98, "{point:?} of {}", curve.accesses);
    }
}
