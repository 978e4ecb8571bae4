//! `piebald compare -- CMD`: one program with and without colouring, in turn.

use std::{ffi::OsString, fmt::Write as _, process::ExitCode};

use piebald_linux::{CompareError, Comparison, Finding, Quantity, Trial, compare};
use piebald_report::Sample;
use serde_json::{Value, json};

use crate::{failure::Failure, json::Json, live, numbers, running};

/// Arguments of `piebald compare`.
#[derive(clap::Args)]
#[command(
    after_help = "Coloring is switched for the whole computer meanwhile, and as it was afterwards. \
    The program runs once more than counted; its standard output is thrown away. Intervals are \
    of 95 %, pair by pair. \"More\" and \"less\" are told from chance among all quantities, and \
    above 1 %. \"No effect\": no pair differs, the whole interval is within 1 %, or it is told from chance and 1 % or \
    less. \"Not told from chance\": it may be either, and more pairs can tell."
)]
pub(crate) struct Args {
    #[command(flatten)]
    ask: live::Ask,
    /// When the colors are used up, kill the program instead of taking others
    #[arg(long)]
    hard: bool,
    /// Pairs of runs, one of each with coloring off and one with it on
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = numbers::whole::<u32>(3..=10_000))]
    pairs: u32,
    /// Empty the page cache before each run, so that files too lie where the run has them
    #[arg(long)]
    cold: bool,
    #[command(flatten)]
    json: Json,
    /// Say nothing meanwhile
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "CMD")]
    command: Vec<OsString>,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let wanted = args.ask.wanted();
    if args.hard && wanted.is_none() {
        return Err(Failure::usage("compare: --hard needs --colors or --share"));
    }
    let module = live::module()?;
    let trial = Trial {
        command: args.command.clone(),
        wanted: wanted.map(|wanted| (wanted, live::mode(args.hard))),
        pairs: args.pairs,
        cold: args.cold,
        root: live::root(),
    };
    let stop = running::stop_flag()?;
    let progress = |pair: u32| {
        if !args.quiet {
            crate::failure::say!("piebald: pair {pair} of {}", args.pairs);
        }
    };
    let found = compare(&module, &trial, &stop, &progress).map_err(|error| match error {
        CompareError::Program { .. } => Failure::usage(error),
        error => Failure::failed(error),
    })?;
    args.json.show(&as_text(&found), &as_json(&found))?;
    Ok(ExitCode::SUCCESS)
}

const fn words(finding: Finding) -> &'static str {
    match finding {
        Finding::NoEffect => "no effect",
        Finding::Untold => "not told from chance",
        Finding::Less => "less",
        Finding::More => "more",
        Finding::Unknown => "not known",
    }
}

pub(crate) fn as_json(found: &Comparison) -> Value {
    let sample = |s: &Sample| json!({ "mean": s.mean, "ci95": s.ci95, "values": s.values });
    let each = found.quantities.iter().zip(found.findings());
    let each = each.map(|(q, finding)| {
        json!({
            "name": q.name, "unit": q.unit, "off": sample(&q.off), "on": sample(&q.on),
            "difference": sample(&q.difference()), "change": sample(&q.change()),
            "finding": words(finding),
        })
    });
    json!({
        "schema": 1,
        "pairs": found.pairs,
        "quantities": each.collect::<Vec<Value>>(),
        "missing_counters": found.missing,
        "modelled_counters": found.modelled,
        "uneven_runs": found.uneven,
    })
}

fn as_text(found: &Comparison) -> String {
    let mut out = format!(
        "{:<24}{:>14}{:>14}   change with coloring, {} pairs\n",
        "", "off", "on", found.pairs
    );
    for (quantity, finding) in found.quantities.iter().zip(found.findings()) {
        let shown = |sample: &Sample| match (sample.is_known(), quantity.unit) {
            (false, _) => "-".to_owned(),
            (true, "") => format!("{:.0}", sample.mean),
            (true, unit) => format!("{:.3} {unit}", sample.mean),
        };
        let _ = writeln!(
            out,
            "{:<24}{:>14}{:>14}   {}",
            quantity.name,
            shown(&quantity.off),
            shown(&quantity.on),
            change(quantity, finding)
        );
    }
    if found.modelled {
        out += "counted by the machine model: cycles, instructions, references, misses, reads, conflicts\n";
    }
    if found.uneven > 0 {
        let _ = writeln!(
            out,
            "{} of {} runs with coloring off began with free memory of some colors more than of others: memory was too full to choose from; a \
             change may be larger than it looks",
            found.uneven, found.pairs
        );
    }
    if !found.missing.is_empty() {
        let _ = writeln!(out, "not counted here: {}", found.missing.join(", "));
    }
    out
}

/// In words: the part by which it changes, if that can be told, and what it is worth.
pub(crate) fn change(quantity: &Quantity, finding: Finding) -> String {
    let finding = words(finding);
    let part = quantity.change();
    match (part.is_known(), part.ci95) {
        (true, Some(half)) => {
            format!(
                "{:+.1} % ± {:.1}: {finding}",
                100.0 * part.mean,
                100.0 * half
            )
        }
        _ => finding.to_owned(),
    }
}
