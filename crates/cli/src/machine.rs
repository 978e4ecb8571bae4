//! `piebald machine list|disks|show|check|derive`

use std::{
    fmt::Write as _,
    io::ErrorKind,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;
use piebald_experiment::{Document, read_text, read_text_from};
use piebald_hw::{
    Machine, Options, disk,
    dram::bank_masks,
    nearest::did_you_mean,
    presets::{self, check::oddities, derive::CpuList},
    spec::{CacheSpec, MachineSpec, PrefetchInto},
};
use piebald_lab::machine_lines;
use piebald_policy::color_map::{ColorMap, Geometry, IndexedCache, PrivateL2};
use piebald_report::write_atomically;
use piebald_units::LINE_SHIFT;
use serde_json::json;

use crate::{
    command_line::{MACHINE, check_output},
    failure::{Failure, print},
    json::Json,
    outputs::{apart, is_stdout},
};

/// Arguments of `piebald machine`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// List the machines that come with Piebald
    List {
        #[command(flatten)]
        json: Json,
    },
    /// List the disks that come with Piebald, or show the file of one of them, with the
    /// source of every number
    Disks {
        /// Name of a disk
        disk: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// Show a machine: in words, or the file with the source of every number
    Show {
        /// Name of a preset, or a machine file
        machine: String,
        /// The file itself
        #[arg(long)]
        file: bool,
        #[command(flatten)]
        json: Json,
    },
    /// Check a machine file: syntax, geometry, timing. What is impossible is refused, what
    /// is odd is a warning
    Check {
        /// Name of a preset, or a machine file
        machine: String,
        #[command(flatten)]
        json: Json,
    },
    /// Write a machine file for this computer: what Linux tells, and generic values,
    /// marked as such, for the rest
    Derive {
        /// File to write, instead of standard output
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
        /// A copy of another computer's /sys/devices/system/cpu
        #[arg(long, value_name = "DIR")]
        from: Option<PathBuf>,
        /// Processors that make the machine, such as 0-3,8, instead of all that are online:
        /// those of one kind, where there are several
        #[arg(long, value_name = "LIST")]
        cpus: Option<CpuList>,
        #[command(flatten)]
        json: Json,
    },
}

/// Where Linux describes processors and caches.
const SYSFS: &str = "/sys/devices/system/cpu";

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.what {
        What::List { json } => list(json),
        What::Disks { disk, json } => disks(disk.as_deref(), json),
        What::Show {
            machine,
            file,
            json,
        } => show(machine, *file, json),
        What::Check { machine, json } => check(machine, json),
        What::Derive {
            output,
            from,
            cpus,
            json,
        } => derive(output.as_deref(), from.as_deref(), cpus.as_ref(), json),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn list(json: &Json) -> Result<(), Failure> {
    let mut titles = Vec::new();
    for name in presets::names() {
        let spec = presets::load(name).map_err(Failure::failed)?;
        titles.push((name, spec.title));
    }
    show_titles("machines", &titles, json)
}

/// Names and titles, one in a line.
fn show_titles(what: &str, titles: &[(&str, String)], json: &Json) -> Result<(), Failure> {
    let mut out = String::new();
    let mut values = Vec::new();
    for (name, title) in titles {
        let _ = writeln!(out, "{name:<12} {title}");
        values.push(json!({ "name": name, "title": title }));
    }
    json.show(&out, &json!({ "schema": 1, what: values }))
}

fn disks(name: Option<&str>, json: &Json) -> Result<(), Failure> {
    if let Some(name) = name {
        let spec = disk::by_name(name).map_err(Failure::usage)?;
        let text = disk::text(name).unwrap_or_default();
        let value = json!({ "schema": 1, "name": name, "title": spec.title, "file": text });
        return json.show(text, &value);
    }
    let mut titles = Vec::new();
    for name in disk::presets() {
        let spec = disk::by_name(name).map_err(Failure::failed)?;
        titles.push((name, spec.title));
    }
    show_titles("disks", &titles, json)
}

/// Text and name of a preset or a file.
fn text(machine: &str) -> Result<(String, String), Failure> {
    if let Some(text) = presets::get(machine) {
        return Ok((text.to_owned(), format!("preset {machine}")));
    }
    let path = Path::new(machine);
    if Document::is_stdin(path) {
        let name = "standard input";
        let text = read_text_from(std::io::stdin());
        let text = text.map_err(|e| Failure::usage(format!("{name}: {e}")))?;
        return Ok((text, name.to_owned()));
    }
    match read_text(path) {
        Ok(text) => Ok((text, machine.to_owned())),
        Err(e) if !e.is_missing() => Err(Failure::usage(format!("{machine}: {e}"))),
        Err(e) => {
            let near = did_you_mean(machine, presets::names());
            let names: Vec<&str> = presets::names().collect();
            let names = names.join(", ");
            Err(Failure::usage(format!(
                "{machine}: {e}; allowed: a machine file, or one of {names}{near}"
            )))
        }
    }
}

/// A machine that can be built, and its file.
struct Checked {
    spec: MachineSpec,
    text: String,
    warnings: Vec<String>,
}

/// Reads a machine, and says on standard error what is odd about it.
fn checked(machine: &str) -> Result<Checked, Failure> {
    let (text, name) = text(machine)?;
    let checked = Checked::new(text, &name).map_err(Failure::usage)?;
    warn(&checked.warnings);
    Ok(checked)
}

fn warn(warnings: &[String]) {
    for warning in warnings {
        crate::failure::say!("piebald: warning: {warning}");
    }
}

impl Checked {
    /// `name` is what errors and warnings call the text.
    fn new(text: String, name: &str) -> Result<Self, String> {
        let spec = presets::parse(&text, name).map_err(|e| e.to_string())?;
        let placed = |e: &piebald_hw::SpecError| {
            let line = presets::line_of(&text, &e.field);
            let line = line.map_or(String::new(), |l| format!(":{l}"));
            format!("{name}{line}: {e}")
        };
        Machine::new(&spec, &Options::default()).map_err(|e| placed(&e))?;
        let warnings = oddities(&spec).iter().map(placed).collect();
        Ok(Self {
            spec,
            text,
            warnings,
        })
    }
}

fn show(machine: &str, file: bool, json: &Json) -> Result<(), Failure> {
    if file && json.path().is_none() {
        return print(&text(machine)?.0);
    }
    let Checked { spec, text, .. } = checked(machine)?;
    let mut lines = machine_lines(&spec);
    lines.extend(color_lines(&spec, &text));
    lines.push(format!("prefetchers: {}", prefetchers(&spec)));
    let value = json!({
        "schema": 1,
        "name": spec.name,
        "title": spec.title,
        "lines": lines,
        "sources": spec.sources,
        "file": text,
    });
    if file {
        return json.show(&text, &value);
    }
    let mut out = format!("{}: {}\n", spec.name, spec.title);
    for line in lines {
        let _ = writeln!(out, "  {line}");
    }
    let _ = writeln!(out, "sources (marks stand beside each number, see --file):");
    for (mark, source) in &spec.sources {
        let _ = writeln!(out, "  [{mark}] {source}");
    }
    json.show(&out, &value)
}

fn prefetchers(spec: &MachineSpec) -> String {
    let on = spec.prefetch;
    let flags = [
        ("next line", on.dcu_next_line),
        ("stride", on.dcu_ip_stride),
        ("streamer", on.l2_streamer),
        ("adjacent line", on.l2_adjacent_line),
        ("consecutive lines", on.consecutive != PrefetchInto::Off),
    ];
    let names: Vec<&str> = flags.iter().filter(|f| f.1).map(|f| f.0).collect();
    match names.is_empty() {
        true => "none".to_owned(),
        false => names.join(", "),
    }
}

fn check(machine: &str, json: &Json) -> Result<(), Failure> {
    let Checked { spec, warnings, .. } = checked(machine)?;
    let value = json!({ "schema": 1, "name": spec.name, "warnings": warnings });
    let warnings = match warnings.len() {
        0 => String::new(),
        1 => ", 1 warning".to_owned(),
        n => format!(", {n} warnings"),
    };
    json.show(&format!("{}: ok{warnings}\n", spec.name), &value)
}

/// What page colors a machine has, where the index functions that make them come from, and
/// the bits that pick its banks. `text` is the machine's file.
fn color_lines(spec: &MachineSpec, text: &str) -> Vec<String> {
    let caches = || spec.cache.iter().enumerate();
    let Some((at, last)) = caches().max_by_key(|(_, c)| c.level) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    let private = caches().find(|(_, c)| c.level == 2 && c.shared_by == 1 && last.level > 2);
    let own = colors(Some(last), None, &[]);
    lines.push(match private {
        None => format!("page colors: {own} of the {}", last.name),
        Some((_, l2)) => format!(
            "page colors: {own} of the {}; {} of the private {}; {} of the {} leave the {} whole",
            last.name,
            colors(Some(l2), None, &[]),
            l2.name,
            colors(Some(last), Some(l2), &[]),
            last.name,
            l2.name
        ),
    });
    let indexed = private.into_iter().chain([(at, last)]);
    lines.extend(indexed.map(|(at, cache)| index_line(cache, at, text)));
    lines.push(bank_line(spec, text));
    lines
}

/// Number of page colors, or why there is no such number.
fn colors(llc: Option<&CacheSpec>, l2: Option<&CacheSpec>, banks: &[u64]) -> String {
    let masks = [llc, l2].map(|cache| cache.map_or(Vec::new(), slice_masks));
    let indexed = |cache: Option<&CacheSpec>, slices| {
        cache.map(|cache| IndexedCache {
            line: 1 << LINE_SHIFT,
            sets: cache.sets_of_slice(),
            slices,
        })
    };
    let geometry = Geometry {
        llc: indexed(llc, &masks[0]),
        l2: indexed(l2, &masks[1]),
        banks,
    };
    match ColorMap::from_geometry(&geometry, PrivateL2::Exclude) {
        Ok(map) => map.colors().to_string(),
        Err(e) => format!("no number ({e})"),
    }
}

fn slice_masks(cache: &CacheSpec) -> Vec<u64> {
    let read = |text: &String| u64::from_str_radix(text.trim_start_matches("0x"), 16);
    // All are masks, or the machine would not have been built.
    cache.slice_hash.iter().flat_map(read).collect()
}

/// The index function of a cache, and what its file says about where that is from.
fn index_line(cache: &CacheSpec, at: usize, text: &str) -> String {
    let (slices, each) = (cache.slice_count(), cache.sets_of_slice());
    let index = match (cache.slice_hash.len(), slices.is_power_of_two()) {
        (0, true) => format!("linear over {} sets", cache.sets()),
        (0, false) => format!("{slices} slices of {each} sets in turn"),
        (masks, _) => format!("hashed: {slices} slices of {each} sets, by {masks} parities"),
    };
    let remark = presets::remark(text, &format!("cache[{at}].slice_hash"));
    format!("index of the {}: {}", cache.name, sourced(&index, remark))
}

/// A function of addresses with what its file says of its source. What is generic, or without
/// a source, is not this computer's.
fn sourced(function: &str, remark: Option<&str>) -> String {
    match remark {
        Some(remark) if !remark.starts_with("[GEN]") => format!("{function}; {remark}"),
        _ => format!(
            "not known, taken as {function}: colors may not hold; {}",
            remark.unwrap_or("no source is given")
        ),
    }
}

/// The text of a file; `None` if it is not there. A pipe would be waited for.
fn read_if_there(path: &Path) -> Result<Option<String>, String> {
    match path.metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
        Ok(found) if !found.is_file() => return Err("is no regular file".to_owned()),
        Ok(_) => {}
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let text = String::from_utf8(bytes).map_err(|_| "is no text in UTF-8".to_owned())?;
    Ok(Some(text))
}

/// The bits of addresses that pick channel, rank and bank.
fn bank_line(spec: &MachineSpec, text: &str) -> String {
    let memory = &spec.memory;
    let controllers = u64::from(memory.controllers.max(1));
    let masks = match bank_masks(&memory.dram, memory.size.0 / controllers) {
        Ok(masks) => masks,
        Err(e) => return format!("bank bits: {e}"),
    };
    if masks.is_empty() && memory.dram.channels > 1 {
        let channels = memory.dram.channels;
        return format!("bank bits: none of plain addresses, as {channels} channels take turns");
    }
    let behind = match controllers {
        1 => "",
        _ => " behind each controller",
    };
    let bits = format!(
        "{} of channel, rank and bank{behind}, of which a page's number alone gives {} bank colors",
        masks.len(),
        colors(None, None, &masks)
    );
    let mut keys = ["memory.dram.map", "memory.dram.bits.bank"].iter();
    let remark = keys.find_map(|key| presets::remark(text, key));
    format!("bank bits: {}", sourced(&bits, remark))
}

fn derive(
    output: Option<&Path>,
    from: Option<&Path>,
    cpus: Option<&CpuList>,
    json: &Json,
) -> Result<(), Failure> {
    apart(&[("--output", output), ("--json", json.path())])?;
    if from.is_none() && !cfg!(target_os = "linux") {
        return Err(Failure::failed(format!(
            "machine derive reads {SYSFS}, which only Linux has; allowed here: --from DIR with a \
             copy of a Linux computer's"
        )));
    }
    let root = from.unwrap_or(Path::new(SYSFS));
    let online = root.join("online");
    if let Some(why) = read_if_there(&online).map_or_else(Some, |text| {
        text.is_none().then(|| "no such file".to_owned())
    }) {
        let problem = format!(
            "{}: {why}; allowed: {SYSFS} or a copy of it",
            online.display()
        );
        return Err(match from {
            Some(_) => Failure::usage(format!("--from {problem}")),
            None => Failure::failed(problem),
        });
    }
    let read = |path: &str| read_if_there(&root.join(path));
    let derived = presets::derive::from_sysfs(&read, cpus).map_err(|e| {
        if e.path.starts_with("--cpus") {
            return Failure::usage(e);
        }
        let is_hidden = e.path.contains("/cache/") && e.problem.starts_with("no such file");
        let hidden = match is_hidden {
            true => " (virtual machines often hide their caches: derive on the host)",
            false => "",
        };
        Failure::usage(format!("{}/{e}{hidden}", root.display()))
    })?;
    // What Linux says may still be more than the model has, or nonsense: a second level that
    // is smaller than the first.
    let Checked { text, warnings, .. } = Checked::new(derived.text, "derived").map_err(|e| {
        let root = root.display();
        Failure::usage(format!(
            "{root}: no machine that can be modelled: {e}; what is wrong there can be corrected in \
             a copy of these files, given as --from DIR"
        ))
    })?;
    warn(&derived.warnings);
    warn(&warnings);
    let odd: Vec<&String> = derived.warnings.iter().chain(&warnings).collect();
    let value = json!({ "schema": 1, "file": text, "warnings": odd });
    let Some(output) = output.filter(|output| !is_stdout(output)) else {
        return json.show(&text, &value);
    };
    check_output(MACHINE, output)?;
    write_atomically(output, text.as_bytes()).map_err(Failure::failed)?;
    let values = text.lines().filter(|line| line.contains(" = "));
    let (mut told, mut generic) = (0, 0);
    for line in values {
        told += usize::from(line.contains("[SYS]"));
        generic += usize::from(line.contains("[GEN]"));
    }
    let done = format!(
        "{}: {told} values read from {}, {generic} generic ones (marked GEN)\n",
        output.display(),
        root.display()
    );
    json.show(&done, &value)
}
