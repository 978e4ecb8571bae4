//! Classes of HVR's programs by measurement: each alone at eight sizes of the cache, as a table in
//! Markdown.
//!
//! ```text
//! cargo run --release -p piebald-reproduce --example hvr_classes -- INPUTS [REPETITIONS [MREFS [NAME...]]]
//! ```
//!
//! INPUTS is the folder that `scripts/stand-ins.sh hvr` filled. MREFS million references are measured
//! after as many of warm-up (default: as the protocol says).

use std::{env, path::Path, process::ExitCode};

use piebald_lab::rooms::hw::presets;
use piebald_reproduce::hvr::{
    alone::{EIGHTHS, Form, Profile, profiles},
    programs::{Program, programs},
};

fn main() -> ExitCode {
    match run(&env::args().skip(1).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("hvr_classes: {why}");
            ExitCode::FAILURE
        }
    }
}

fn run(words: &[String]) -> Result<(), String> {
    let inputs = words
        .first()
        .ok_or("allowed: INPUTS [REPETITIONS [MREFS [NAME...]]]")?;
    let number = |at: usize, name: &str, default: u64| match words.get(at) {
        None => Ok(default),
        Some(text) => match text.parse() {
            Ok(n) if (1..=1000).contains(&n) => Ok(n),
            _ => Err(format!("{name} = \"{text}\": allowed: 1 to 1000")),
        },
    };
    let standard = Form::default();
    let refs = number(2, "MREFS", standard.budget_refs / 1_000_000)? * 1_000_000;
    let form = Form {
        warmup_refs: refs,
        budget_refs: refs,
        repetitions: number(1, "REPETITIONS", standard.repetitions.into())? as u32,
        ..standard
    };
    let names = words.get(3..).unwrap_or_default();
    let list = programs().map_err(|e| e.to_string())?;
    let chosen: Vec<Program> = list
        .into_iter()
        .filter(|p| p.threads == 1 && (names.is_empty() || names.contains(&p.name)))
        .collect();
    let unknown = names.iter().find(|n| chosen.iter().all(|p| p.name != **n));
    if let Some(name) = unknown {
        return Err(format!("\"{name}\": no such program of one thread"));
    }
    let spec = presets::load("i7-860").map_err(|e| e.to_string())?;
    let show = |done: usize, all: usize| eprintln!("{done} of {all}");
    let found = profiles(&spec, &chosen, Path::new(inputs), &form, None, &show);
    print(&chosen, &found);
    let failed = found.iter().filter(|f| f.is_err()).count();
    match failed {
        0 => Ok(()),
        n => Err(format!("{n} programs were not measured")),
    }
}

fn print(programs: &[Program], found: &[Result<Profile, String>]) {
    let head: Vec<String> = (1..EIGHTHS).map(|k| format!("{k}/8")).collect();
    println!(
        "| program | stands for | IPC 8/8 | lines | misses 8/8 | 1/8 | {} | class | paper |",
        head.join(" | ")
    );
    println!(
        "|---|---|---|---|---|---|{}---|---|",
        "---|".repeat(head.len())
    );
    for (program, found) in programs.iter().zip(found) {
        match found {
            Ok(profile) => println!("{}", row(program, profile)),
            Err(why) => println!("| {} | NOT MEASURED: {why} |", program.name),
        }
    }
}

fn row(program: &Program, profile: &Profile) -> String {
    let (Some(least), Some(whole)) = (profile.points.first(), profile.points.last()) else {
        return format!("| {} | no points |", program.name);
    };
    let losses: Vec<String> = (1..EIGHTHS)
        .filter_map(|k| profile.loss(k))
        .map(|s| match s.ci95 {
            Some(half) => format!("{:.1} ± {:.1}", 100.0 * s.mean, 100.0 * half),
            None => format!("{:.1}", 100.0 * s.mean),
        })
        .collect();
    let class = profile.class().map_or("-".to_owned(), |c| c.to_string());
    let mark = if profile.is_on_a_border() {
        " (border)"
    } else {
        ""
    };
    let short = if profile.short > 0 { " (short)" } else { "" };
    format!(
        "| {} | {} | {:.2} | {:.2} | {:.2} | {:.2} | {} | {class}{mark}{short} | {} |",
        program.name,
        program.stands_for,
        whole.ipc.mean,
        whole.lines.mean,
        whole.misses.mean,
        least.misses.mean,
        losses.join(" | "),
        program.class,
    )
}
