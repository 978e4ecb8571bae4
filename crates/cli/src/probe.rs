//! `piebald probe`: can programs be isolated on this computer, and by what.

use std::{fmt::Write as _, path::Path, process::ExitCode};

use piebald_linux::{
    BitVerdict, Candidate, Effect, Facts, Hashed, Hypervisor, Measured, Memory, Outlook, Plan,
    Resctrl, Verdict, bytes_of, candidates, hypervisor_name, judge, last_level, level_two, measure,
};
use piebald_report::Sample;
use piebald_units::{Bytes, PAGE_SIZE};
use serde_json::{Value, json};

use crate::{failure::Failure, json::Json, live, numbers};

/// Of the memory that is available, no more than this part is taken.
const MEMORY_SHARE: u64 = 2;

/// Arguments of `piebald probe`.
#[derive(clap::Args)]
#[command(
    after_help = "Measuring takes four times the last level of memory for some seconds, and needs \
    root (CAP_SYS_ADMIN), as only root sees which frame a page has. Nothing is changed."
)]
pub(crate) struct Args {
    #[command(flatten)]
    json: Json,
    /// Only what the kernel tells
    #[arg(long)]
    no_measure: bool,
    /// How often everything is timed
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = numbers::whole::<u32>(3..=1000))]
    rounds: u32,
    /// Seed of the draws of pages
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = numbers::whole::<u64>(numbers::SEEDS))]
    seed: u64,
    /// Say nothing meanwhile
    #[arg(short, long)]
    quiet: bool,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let found = look(args)?;
    if let (Err(hashed), false) = (&found.candidates, args.no_measure) {
        return Err(Failure::usage(format!(
            "probe: {hashed}, or --no-measure for what the kernel tells"
        )));
    }
    args.json.show(&found.text(), &found.json())?;
    Ok(ExitCode::SUCCESS)
}

/// What there is to say of this computer.
pub(crate) struct Found {
    pub(crate) facts: Facts,
    candidates: Result<Vec<Candidate>, Hashed>,
    pub(crate) verdict: Verdict,
}

impl Found {
    pub(crate) fn text(&self) -> String {
        as_text(&self.facts, &bits_text(&self.candidates), &self.verdict)
    }

    pub(crate) fn json(&self) -> Value {
        let candidates = self.candidates.as_deref().unwrap_or_default();
        as_json(&self.facts, candidates, &self.verdict)
    }
}

/// As `probe` does with so many rounds.
pub(crate) fn look_in(rounds: u32, quiet: bool) -> Result<Found, Failure> {
    look(&Args {
        json: Json::default(),
        no_measure: false,
        rounds,
        seed: 1,
        quiet,
    })
}

fn look(args: &Args) -> Result<Found, Failure> {
    let root = live::root();
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let facts = Facts::read(&live::release(&root), hypervisor_name(), &read);
    let candidates = facts.caches.as_deref().map_or(Ok(Vec::new()), candidates);
    let measured = match &candidates {
        Ok(found) => time(args, &root, &facts, found),
        Err(hashed) => Err(hashed.to_string()),
    };
    let verdict = judge(&facts, measured.as_ref().map_err(Clone::clone));
    Ok(Found {
        facts,
        candidates,
        verdict,
    })
}

/// Times the candidates, or says why not.
fn time(args: &Args, root: &Path, facts: &Facts, found: &[Candidate]) -> Result<Measured, String> {
    if args.no_measure {
        return Err("it was not measured (--no-measure)".to_owned());
    }
    let caches = facts.caches.as_ref().map_err(Clone::clone)?;
    let plan = Plan {
        last_level: last_level(caches).map_or(0, bytes_of),
        level_two: level_two(caches).map_or(0, bytes_of),
        rounds: args.rounds,
        seed: args.seed,
    };
    if found.is_empty() {
        return Ok(Measured {
            bits: Vec::new(),
            crowding: None,
        });
    }
    let needed = (plan.pages() as u64).saturating_mul(PAGE_SIZE);
    let most = facts.available_bytes / MEMORY_SHARE;
    if needed > most {
        return Err(format!(
            "measuring takes {} of memory; {} may be taken (half of what is available)",
            Bytes(needed),
            Bytes(most)
        ));
    }
    let mut memory = Memory::new(root, plan.pages()).map_err(|e| e.to_string())?;
    let progress = |round: u32| {
        if !args.quiet {
            crate::failure::say!("piebald: round {round} of {}", args.rounds);
        }
    };
    let measured = measure(&mut memory, found, &plan, &progress).map_err(|e| e.to_string())?;
    memory.check(root).map_err(|e| e.to_string())?;
    Ok(measured)
}

const fn effect_word(effect: Effect) -> &'static str {
    match effect {
        Effect::Isolates => "isolates",
        Effect::Partly => "partly",
        Effect::Nothing => "nothing",
        Effect::Hidden => "hidden",
        Effect::Unclear => "unclear",
    }
}

const fn outlook_word(outlook: Outlook) -> &'static str {
    match outlook {
        Outlook::Isolates => "isolates",
        Outlook::SplitsLevelTwo => "splits-second-level",
        Outlook::DoesNot => "does-not-isolate",
        Outlook::Unknown => "unknown",
    }
}

/// Mean and interval.
fn value(sample: &Sample) -> Value {
    json!({ "mean": sample.mean, "ci95": sample.interval().map(|(low, high)| [low, high]) })
}

fn as_json(facts: &Facts, found: &[Candidate], verdict: &Verdict) -> Value {
    let caches = facts.caches.as_ref().map(|caches| {
        let each = caches.iter().map(|c| {
            json!({
                "level": c.level, "holds": c.holds.name(),
                "bytes": bytes_of(c), "line_bytes": c.line, "ways": c.ways,
                "sets": c.sets, "shared_with": c.shared_with,
            })
        });
        each.collect::<Vec<Value>>()
    });
    let (virtual_machine, hypervisor) = match &facts.hypervisor {
        Hypervisor::None => (false, None),
        Hypervisor::Some(name) => (true, name.clone()),
    };
    let bits = verdict.bits.iter().map(|bit| {
        let [clean, colored, control] = &bit.times_ns;
        json!({
            "bit": bit.candidate.bit, "effect": effect_word(bit.effect),
            "isolation": value(&bit.isolation), "clean_ns": value(clean),
            "colored_ns": value(colored), "control_ns": value(control),
        })
    });
    let bits: Vec<Value> = bits.collect();
    let crowding = verdict.crowding.as_ref().map(|(crowding, slower)| {
        json!({
            "colors": crowding.colors, "pages": crowding.pages, "slower": value(slower),
            "colored_ns": crowding.colored, "control_ns": crowding.control,
        })
    });
    let candidates: Vec<Value> = found
        .iter()
        .map(|c| json!({ "bit": c.bit, "in_level_two": c.in_level_two }))
        .collect();
    json!({
        "schema": 1,
        "kernel": facts.release,
        "module": { "loaded": facts.loaded, "unsupported": facts.unsupported },
        "virtual_machine": virtual_machine,
        "hypervisor": hypervisor,
        "caches": caches.as_ref().ok(),
        "caches_unknown": facts.caches.as_ref().err(),
        "huge_pages": {
            "transparent": facts.transparent_huge_pages,
            "reserved": facts.reserved_huge_pages,
        },
        "resctrl": match &facts.resctrl {
            Resctrl::Absent => json!("absent"),
            Resctrl::NotMounted => json!("not-mounted"),
            Resctrl::Mounted(mask) => json!({ "last_level_ways": mask }),
        },
        "candidates": candidates,
        "measured": { "bits": bits, "crowding": crowding },
        "verdict": outlook_word(verdict.outlook),
        "map_bits": verdict.map_bits,
        "sentences": verdict.sentences,
    })
}

fn as_text(facts: &Facts, bits: &str, verdict: &Verdict) -> String {
    let mut out = String::new();
    // Writing to a string cannot fail.
    let mut line = |name: &str, what: &str| {
        let _ = writeln!(out, "{name:<11}{what}");
    };
    let module = match (facts.loaded, facts.unsupported.is_empty()) {
        (true, _) => "the module is loaded",
        (false, true) => "the module can be loaded",
        (false, false) => "the module cannot be loaded",
    };
    line("kernel", &format!("{}: {module}", facts.release));
    line(
        "hypervisor",
        match &facts.hypervisor {
            Hypervisor::None => "none that shows",
            Hypervisor::Some(name) => name.as_deref().unwrap_or("one without a name"),
        },
    );
    match &facts.caches {
        Err(why) => line("caches", &format!("not known: {why}")),
        Ok(caches) => {
            for c in caches {
                let size = Bytes(bytes_of(c));
                let what = format!(
                    "L{} {}: {size}, {} ways, {} sets, shared by processors {}",
                    c.level,
                    c.holds.name(),
                    c.ways,
                    c.sets,
                    c.shared_with
                );
                line("cache", &what);
            }
        }
    }
    line("color bits", bits);
    let thp = facts.transparent_huge_pages.as_deref().unwrap_or("none");
    line(
        "huge pages",
        &format!(
            "transparent: {thp}; reserved: {} (while coloring is on, processes get single pages)",
            facts.reserved_huge_pages
        ),
    );
    let resctrl = match &facts.resctrl {
        Resctrl::Absent => "not there".to_owned(),
        Resctrl::NotMounted => "the processor can; not mounted".to_owned(),
        Resctrl::Mounted(mask) => format!("mounted, ways {mask} of the last level"),
    };
    line("resctrl", &resctrl);
    out.push_str(&measured_text(verdict));
    out.push('\n');
    for sentence in &verdict.sentences {
        let _ = writeln!(out, "{sentence}");
    }
    out
}

fn bits_text(found: &Result<Vec<Candidate>, Hashed>) -> String {
    let Ok(found) = found else {
        return "none: the sets of the last level are no power of two".to_owned();
    };
    let list = |in_level_two| {
        let of = found.iter().filter(|c| c.in_level_two == in_level_two);
        let words: Vec<String> = of.map(|c| c.bit.to_string()).collect();
        words.join(",")
    };
    match (list(false), list(true)) {
        (free, shared) if free.is_empty() && shared.is_empty() => {
            "none: no cache has an index bit above the page".to_owned()
        }
        (free, shared) if shared.is_empty() => format!("{free}, if the index is linear"),
        (free, shared) => {
            format!("{free}, if the index is linear; {shared} index the second level too")
        }
    }
}

fn measured_text(verdict: &Verdict) -> String {
    if verdict.bits.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "\nbit  kept off of what random pages do    ns per line: clean  colored  random\n",
    );
    for BitVerdict {
        candidate,
        effect,
        isolation,
        times_ns,
    } in &verdict.bits
    {
        let interval = isolation
            .ci95
            .map_or(String::new(), |half| format!(" ± {:.0}", 100.0 * half));
        let kept = match effect {
            Effect::Hidden => "random pages do no harm".to_owned(),
            _ => format!(
                "{:.0}{interval} %: {}",
                100.0 * isolation.mean,
                effect_word(*effect)
            ),
        };
        let [clean, colored, control] = times_ns;
        let _ = writeln!(
            out,
            "{:<4} {kept:<36} {:>17.1} {:>8.1} {:>7.1}",
            candidate.bit, clean.mean, colored.mean, control.mean
        );
    }
    if let Some((crowding, slower)) = &verdict.crowding {
        let half = slower
            .ci95
            .map_or(String::new(), |h| format!(" ± {:.0}", 100.0 * h));
        let found = match slower.is_known() {
            true => format!("{:.0}{half} % slower", 100.0 * slower.mean),
            false => "not known".to_owned(),
        };
        let _ = writeln!(
            out,
            "{} of one of {} claimed colors against as much of random pages: {found}",
            Bytes(crowding.pages as u64 * PAGE_SIZE),
            crowding.colors,
        );
    }
    out
}
