//! `piebald trace regions FILE`

use std::{fmt::Write as _, path::PathBuf};

use piebald_hw::presets;
use piebald_lab::regions::{Check, Figures, RegionError, Span, check, plan};
use piebald_trace::recording::{
    Recording, VectorBudget,
    regions::{RegionOptions, Regions, choose},
};
use piebald_units::Count;
use serde_json::{Value, json};

use crate::{failure::Failure, json::Json, numbers, recordings::is_recording};

/// Arguments of `piebald trace regions`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A recording
    file: PathBuf,
    /// Instructions of an interval: the length of a region
    #[arg(long, default_value = "10M", value_name = "INSTRS")]
    interval: Count,
    /// Most regions of a thread
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = numbers::whole::<u64>(1..=1000))]
    max_k: u64,
    /// Seed of the projection and of the starting centres
    #[arg(long, default_value_t = 1, value_parser = numbers::whole::<u64>(numbers::SEEDS))]
    seed: u64,
    /// Simulate the whole and the regions on this machine (a preset) and compare
    #[arg(long, value_name = "MACHINE")]
    check: Option<String>,
    /// With --check: choose from the first so many references and compare these
    #[arg(long, value_name = "REFS", requires = "check")]
    budget: Option<Count>,
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let name = args.file.display();
    if args.interval.0 == 0 {
        return Err(Failure::usage("--interval 0: allowed: 1 or more"));
    }
    if !is_recording(&args.file)? {
        return Err(Failure::usage(format!(
            "{name}: no recording; allowed: a recording, or what `piebald trace convert` makes of a trace"
        )));
    }
    let recording = Recording::open(&args.file).map_err(Failure::usage)?;
    let options = RegionOptions {
        seed: args.seed,
        max_regions: args.max_k as usize,
        ..RegionOptions::default()
    };
    match &args.check {
        Some(machine) => checked(args, &recording, &options, machine),
        None => listed(args, &recording, &options),
    }
}

/// All threads, nothing simulated.
fn listed(args: &Args, recording: &Recording, options: &RegionOptions) -> Result<(), Failure> {
    let vectors = recording.block_vectors(args.interval.0, VectorBudget::default());
    let mut out = String::new();
    let mut threads = Vec::new();
    for vectors in vectors.map_err(|e| failure(e.into()))? {
        let regions = choose(&vectors, options);
        let _ = writeln!(
            out,
            "thread {}: {} intervals of {} instructions",
            vectors.thread,
            vectors.intervals.len(),
            args.interval
        );
        out += &table(&regions);
        threads.push(value(vectors.thread, vectors.intervals.len(), &regions));
    }
    args.json.show(&out, &head(args, threads))
}

fn checked(
    args: &Args,
    recording: &Recording,
    options: &RegionOptions,
    machine: &str,
) -> Result<(), Failure> {
    let machine =
        presets::load(machine).map_err(|e| Failure::usage(format!("--check {machine}: {e}")))?;
    let span = Span {
        from: 0,
        refs: args.budget.map(|n| n.0),
    };
    let plan = plan(recording, args.interval.0, span, options).map_err(failure)?;
    let found = check(recording, &plan, &machine).map_err(failure)?;
    let intervals = plan.instrs.div_ceil(args.interval.0) as usize;
    let mut value = head(args, vec![value(0, intervals, &plan.regions)]);
    value["check"] = serde_json::to_value(&found).map_err(Failure::failed)?;
    let mut out = format!(
        "{} instructions in intervals of {}\n",
        plan.instrs, args.interval
    );
    out += &table(&plan.regions);
    out += &comparison(&found);
    args.json.show(&out, &value)
}

fn failure(error: RegionError) -> Failure {
    match error {
        RegionError::Threads { .. } | RegionError::TooShort { .. } | RegionError::Read(_) => {
            Failure::usage(error)
        }
        _ => Failure::failed(error),
    }
}

fn table(regions: &Regions) -> String {
    let mut out = String::from("  cluster  first instruction  instructions   weight\n");
    for (n, region) in regions.regions.iter().enumerate() {
        let _ = writeln!(
            out,
            "  {n:>7}  {:>17}  {:>12}  {:>6.2}%",
            region.start,
            region.instrs,
            100.0 * region.weight
        );
    }
    let _ = writeln!(
        out,
        "  mean distance from the region that stands for an interval: {:.4} (one region alone: {:.4})",
        regions.error, regions.spread
    );
    out
}

fn comparison(check: &Check) -> String {
    let row = |name: &str, f: &Figures| {
        format!(
            "  {name:<12}  {:>7.4}  {:>9.4}  {:>12}\n",
            f.cpi, f.last_level_mpki, f.refs
        )
    };
    let mut out = format!(
        "on {}, each region after a warm-up of one interval:\n  {:<12}  {:>7}  {:>9}  {:>12}\n",
        check.machine,
        "",
        "CPI",
        format!("{} MPKI", check.last_level),
        "references"
    );
    out += &row("whole", &check.whole);
    out += &row("regions", &check.weighted);
    for (n, region) in check.regions.iter().enumerate() {
        out += &row(&format!("  cluster {n}"), &region.figures);
    }
    let mpki = check
        .mpki_error
        .map_or("undefined (the whole has no misses)".to_owned(), percent);
    let _ = writeln!(
        out,
        "  error of the regions: CPI {}, MPKI {mpki}; {:.1}% of the references were simulated",
        percent(check.cpi_error),
        100.0 * check.simulated_share
    );
    out
}

fn percent(share: f64) -> String {
    format!("{:+.2}%", 100.0 * share)
}

fn value(thread: u32, intervals: usize, regions: &Regions) -> Value {
    let list: Vec<Value> = regions
        .regions
        .iter()
        .enumerate()
        .map(|(cluster, r)| {
            json!({"cluster": cluster, "start": r.start, "instructions": r.instrs, "weight": r.weight})
        })
        .collect();
    json!({
        "thread": thread,
        "intervals": intervals,
        "regions": list,
        "error": regions.error,
        "spread": regions.spread,
    })
}

fn head(args: &Args, threads: Vec<Value>) -> Value {
    json!({
        "schema": 1,
        "file": args.file.display().to_string(),
        "interval": args.interval.0,
        "seed": args.seed,
        "threads": threads,
    })
}
