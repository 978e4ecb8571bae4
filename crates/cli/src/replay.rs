//! `piebald replay TRACE...`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::ValueEnum;
use piebald_experiment::{DiskStart, MemorySize};
use piebald_lab::{
    Hooks,
    replay::{
        CurveRequest, DeviceChoice, LayoutChoice, Load, MIN, OBJECT_POLICIES, POLICIES, Part,
        ReplayRequest, SIZES, USUAL_FOR_OBJECTS, asked, is_replay, replay,
    },
};
use piebald_os_model::replace::{PolicySpec, registry};
use piebald_report::{
    Replay, replay_curves_to_csv, replay_sequences_to_csv, replay_to_csv, replay_to_html,
    replay_to_json, replay_to_table, write_atomically,
};
use piebald_sim::replay::{Align, Excerpt, InputSetup, Pace};
use piebald_trace::{
    block::{Options, PageShift},
    recording::is_recording,
};

use piebald_lab::scenario::is_scenario;
use piebald_units::{Bytes, Count};
use toml::{Table, Value};

use crate::{
    columns,
    command_line::{SAVE, check_output, first_given},
    failure::{Failure, print},
    json::{Json, STDOUT},
    numbers,
    outputs::{self, table_style},
    points::Sets,
    progress, replay_policies, running,
    trace::refuse_scenario,
    trace_formats::{StageName, named_block},
};

/// The disk below unless another is named.
const DEVICE: &str = "sata-7200";
/// Extension of device files.
const DEVICE_FILE: &str = "toml";

/// Arguments of `piebald replay`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Block or file traces, plain or packed by gzip, bzip2, xz, zstd or as the only file of a zip; several are
    /// replayed together; - is standard input. Or a scenario file (TOML) with requests, which
    /// says the rest
    #[arg(required_unless_present = "policy", value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Format of the traces, instead of finding out from their content
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// What is in the columns of texts of other forms (docs/replay.md), such as
    /// time=1:us,op=2,offset=3:B,size=4:B
    #[arg(long, value_name = "LIST", value_parser = columns::given, conflicts_with = "format")]
    columns: Option<columns::Given>,
    /// Leave out wrong records and count them, instead of ending with the first
    #[arg(long)]
    lenient: bool,
    /// Which stage of each request is taken, where a trace tells several (blktrace, blkparse)
    /// [default: queue]
    #[arg(long, value_enum)]
    stage: Option<StageName>,
    /// Policies, separated by commas; options after a colon, separated by semicolons, such
    /// as dulo:bank=4MiB;base=arc or s3-fifo:rule=paper; "help" lists them all; "all"
    /// for every one [default: clock,dulo,arc,s3-fifo,lirs; for objects of different sizes
    /// lru,fifo,clock,s3-fifo,sieve]
    #[arg(long, value_name = "LIST")]
    policy: Option<String>,
    /// Sizes of memory, separated by commas: such as 64MiB, or 10% of all different pages
    /// of the traces, or of the bytes of all different objects [default: 1%,2%,5%,10%,25%]
    #[arg(long, value_name = "LIST")]
    size: Option<String>,
    /// Disk below: a built-in one (piebald machine disks), a .toml file, or none
    /// [default: sata-7200; none with --readahead none]
    #[arg(long, value_name = "NAME|FILE")]
    device: Option<String>,
    /// Readahead: none, 2.4, 2.6.11, 2.6.30 or 6.x (versions of Linux) [default: 6.x]
    #[arg(long, value_name = "NAME")]
    readahead: Option<String>,
    /// I/O scheduler: noop, deadline-2.6.11, anticipatory, deadline or mq-deadline
    /// [default: mq-deadline]
    #[arg(long, value_name = "NAME")]
    scheduler: Option<String>,
    /// Where pages lie on the disk, where the traces do not say it: packed, slots, inodes,
    /// scatter, first-touch, or a file with lines PATH PAGE PAGE_ON_DISK PAGES [default: files
    /// packed, blocks without address scattered]
    #[arg(long, value_name = "RULE|FILE")]
    layout: Option<String>,
    /// How the times of several traces belong together [default: stamps]
    #[arg(long, value_enum)]
    align: Option<AlignName>,
    /// Are files, disks and objects of one name the same in several traces of one format? [default:
    /// same where the traces are merged by their stamps, else apart]
    #[arg(long, value_enum)]
    objects: Option<ObjectsName>,
    /// When requests are made [default: serial]
    #[arg(long, value_enum)]
    pace: Option<PaceName>,
    /// Bytes of a page (with a device: 4KiB) [default: 4KiB]
    #[arg(long, value_name = "SIZE")]
    page: Option<Bytes>,
    /// References before counting begins [default: 0]
    #[arg(long, value_name = "REFS")]
    warmup: Option<Count>,
    /// Let each object take a page although a trace says different sizes
    #[arg(long)]
    ignore_sizes: bool,
    /// Miss-ratio curves of all policies: from full runs where the trace has few pages, else
    /// from samples of the pages that are held against full runs at up to four sizes
    #[arg(long)]
    mrc: bool,
    /// Share of the pages in a sample of --mrc, up to 0.25, or 1 for full runs at all sizes
    /// [default: by the number of pages]
    #[arg(long, value_name = "SHARE", requires = "mrc", value_parser = numbers::fraction)]
    mrc_rate: Option<f64>,
    /// Seed of all draws [default: 42]
    #[arg(long, value_parser = numbers::whole::<u64>(numbers::SEEDS))]
    seed: Option<u64>,
    #[command(flatten)]
    sets: Sets,
    /// Run nothing, but write what the command line asks for as a scenario file, which
    /// `piebald replay FILE` runs
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write report.html, replay.json, replay.csv, sequences.csv and, with --mrc, curves.csv to
    /// this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    json: Json,
    /// As CSV to this file, or to standard output without a name or with -. Without = the next
    /// word is the file only if it ends in .csv
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STDOUT, require_equals = true)]
    csv: Option<PathBuf>,
    /// Write a self-contained HTML report with charts to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Runs at a time; results do not depend on it [default: all cores]
    #[arg(long, value_name = "N", value_parser = numbers::whole::<u16>(1..=1024))]
    threads: Option<u16>,
    /// No progress bar
    #[arg(short, long)]
    quiet: bool,
}

/// What objects of one name are in several traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ObjectsName {
    /// The same, as in parts of one log
    Same,
    /// Different, as in logs of different services
    Apart,
}

/// How the times of several traces belong together.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum AlignName {
    /// By their stamps, which count from a date or are of one tracing run
    Stamps,
    /// Each trace begins at the same moment
    Start,
    /// A request of each in turn, whatever their times
    Turn,
}

/// When requests are made.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum PaceName {
    /// One after another, in the trace's order
    Serial,
    /// In the trace's order, but a request that waits stops its own process only
    Ordered,
    /// Each process as fast as it can, all of them at once
    Tasks,
    /// At the trace's times, but not before the process's last request is done
    Timed,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if args.policy.as_deref() == Some("help") {
        replay_policies::list(&args.json)?;
        return Ok(ExitCode::SUCCESS);
    }
    if args.traces.is_empty() {
        return Err(Failure::usage(
            "replay: no TRACE is given; allowed: one or more",
        ));
    }
    running::many_files();
    let mut request = match of_file(args)? {
        Some(request) => request,
        None => {
            args.traces.iter().try_for_each(|path| is_a_trace(path))?;
            if args.sets.is_given() {
                let says = "--set: for a scenario file; allowed for traces: the other options";
                return Err(Failure::usage(says));
            }
            request(args)?
        }
    };
    if let Some(path) = &args.save {
        check_output(SAVE, path)?;
        let text = saved(args, &request)?;
        write_atomically(path, text.as_bytes()).map_err(Failure::failed)?;
        let path = path.display();
        print(&format!("{path}: `piebald replay {path}` runs it\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let files = folder_files(args.mrc || request.curves.is_some());
    let files: Vec<String> = files.map(str::to_owned).collect();
    outputs::ready(&outputs::Wanted {
        folder: args.output.as_deref().map(|folder| (folder, &files[..])),
        files: &[
            ("--json", args.json.path()),
            ("--csv", args.csv.as_deref()),
            ("--html", args.html.as_deref()),
        ],
        inputs: &[&args.traces[..], &request.files()].concat(),
    })?;
    running::threads(args.threads)?;
    let stop = running::stop_flag()?;
    let bar = progress::bar(args.quiet);
    let report = |done: u64, planned: u64| {
        bar.set_length(planned);
        bar.set_position(done);
    };
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    request.available = piebald_linux::available_bytes(&meminfo);
    let hooks = Hooks {
        stop: Some(&stop),
        progress: Some(&report),
        ..Hooks::default()
    };
    let result = replay(&request, hooks);
    bar.finish_and_clear();
    let mut replay = result.map_err(|e| match e.is_usage() {
        true => Failure::usage(e),
        false => Failure::failed(e),
    })?;
    replay.command = Some(command());
    show(args, &replay)?;
    Ok(running::ended(replay.complete))
}

/// The replay that a scenario file asks for, if one is given.
fn of_file(args: &Args) -> Result<Option<ReplayRequest>, Failure> {
    let [path] = &args.traces[..] else {
        return Ok(None);
    };
    if !is_scenario(path) {
        return Ok(None);
    }
    let document = args.sets.document(path)?;
    let point = document.points().map_err(Failure::usage)?;
    let first = point.first().map(|point| point.document.experiment());
    let first = first.transpose().map_err(Failure::usage)?;
    if !first.is_some_and(|experiment| is_replay(&experiment)) {
        // It says what runs it.
        return Ok(None);
    }
    let others = [
        ("--format", args.format.is_some()),
        ("--columns", args.columns.is_some()),
        ("--lenient", args.lenient),
        ("--stage", args.stage.is_some()),
        ("--policy", args.policy.is_some()),
        ("--size", args.size.is_some()),
        ("--device", args.device.is_some()),
        ("--readahead", args.readahead.is_some()),
        ("--scheduler", args.scheduler.is_some()),
        ("--layout", args.layout.is_some()),
        ("--align", args.align.is_some()),
        ("--objects", args.objects.is_some()),
        ("--pace", args.pace.is_some()),
        ("--page", args.page.is_some()),
        ("--warmup", args.warmup.is_some()),
        ("--ignore-sizes", args.ignore_sizes),
        ("--mrc", args.mrc),
        ("--seed", args.seed.is_some()),
        ("--save", args.save.is_some()),
    ];
    if let Some(option) = first_given(&others) {
        let file = path.display();
        return Err(Failure::usage(format!(
            "{option}: {file} says it; allowed: --set KEY=VALUE, as `piebald keys` has them"
        )));
    }
    asked(&document).map(Some).map_err(Failure::usage)
}

/// The command line as a scenario file.
fn saved(args: &Args, request: &ReplayRequest) -> Result<String, Failure> {
    let seed = i64::try_from(request.seed).map_err(|_| {
        Failure::usage(format!(
            "--seed {}: allowed with --save: 0 to {}",
            request.seed,
            i64::MAX
        ))
    })?;
    let mut paths = Vec::new();
    for path in &request.input.paths {
        if path == Path::new(STDOUT) {
            return Err(Failure::usage(
                "-: standard input; allowed with --save: files",
            ));
        }
        let absolute = std::path::absolute(path);
        let absolute = absolute.map_err(|e| Failure::usage(format!("{}: {e}", path.display())))?;
        let in_file = |text: &&str| !text.chars().any(char::is_control);
        let Some(text) = absolute.to_str().filter(in_file) else {
            return Err(Failure::usage(format!(
                "{absolute:?}: allowed with --save: names in UTF-8, without control characters"
            )));
        };
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(Failure::usage(format!(
                "{text}: is no regular file; allowed with --save: files"
            )));
        }
        paths.push(text.to_owned());
    }
    let mut program = Table::new();
    let mut put = |key: &str, value: Option<Value>| {
        program.extend(value.map(|value| (key.to_owned(), value)));
    };
    put("requests", Some(paths.into()));
    put("format", args.format.clone().map(Value::from));
    put(
        "columns",
        args.columns.as_ref().map(|c| c.text.clone().into()),
    );
    put("lenient", args.lenient.then(|| true.into()));
    put("stage", args.stage.as_ref().and_then(word));
    put("align", args.align.as_ref().and_then(word));
    put("objects", args.objects.as_ref().and_then(word));
    put("pace", args.pace.as_ref().and_then(word));
    put("page", args.page.map(|page| page.to_string().into()));
    put("ignore_sizes", args.ignore_sizes.then(|| true.into()));
    let mut file = Table::new();
    file.insert("schema".to_owned(), 2.into());
    file.insert("seed".to_owned(), seed.into());
    if let Some(warmup) = args.warmup.filter(|warmup| warmup.0 > 0) {
        file.insert("warmup_refs".to_owned(), warmup.to_string().into());
    }
    file.insert("program".to_owned(), vec![Value::from(program)].into());
    if args.policy.is_some() {
        let policy = |policy: &PolicySpec| {
            let text = Value::from(policy.to_string());
            Value::from(Table::from_iter(
                ["name", "replace"].map(|key| (key.to_owned(), text.clone())),
            ))
        };
        let policies: Vec<Value> = request.policies.iter().map(policy).collect();
        file.insert("policy".to_owned(), policies.into());
    }
    file.insert("files".to_owned(), saved_files(args, request)?.into());
    let sizes: Vec<Value> = request.sizes.iter().map(|s| s.to_string().into()).collect();
    let axes = Table::from_iter([("memory.size".to_owned(), sizes.into())]);
    file.insert("sweep".to_owned(), axes.into());
    if let Some(curves) = request.curves {
        let ratio = curves.rate.map_or(Value::from(true), Value::from);
        let output = Table::from_iter([("miss_ratio".to_owned(), ratio)]);
        file.insert("output".to_owned(), output.into());
    }
    toml::to_string(&file).map_err(Failure::failed)
}

/// The disk below, as a scenario file has it.
fn saved_files(args: &Args, request: &ReplayRequest) -> Result<Table, Failure> {
    let absolute = |path: &Path| match std::path::absolute(path) {
        Ok(path) => Ok(path.display().to_string()),
        Err(e) => Err(Failure::usage(format!("{}: {e}", path.display()))),
    };
    let device = match &request.device {
        DeviceChoice::None => "none".to_owned(),
        DeviceChoice::Preset(name) => name.clone(),
        DeviceChoice::File(path) => absolute(path)?,
    };
    let layout: Value = match (&request.layout, &args.layout) {
        (LayoutChoice::File(path), _) => {
            Table::from_iter([("file".to_owned(), absolute(path)?.into())]).into()
        }
        (_, Some(rule)) => rule.clone().into(),
        (_, None) => "auto".into(),
    };
    Ok(Table::from_iter([
        ("device".to_owned(), device.into()),
        ("readahead".to_owned(), request.readahead.clone().into()),
        ("scheduler".to_owned(), request.scheduler.clone().into()),
        ("layout".to_owned(), layout),
    ]))
}

/// The word of an option.
fn word(name: &impl ValueEnum) -> Option<Value> {
    let value = name.to_possible_value()?;
    Some(value.get_name().into())
}

/// Scenarios and recordings are named as what they are.
fn is_a_trace(path: &Path) -> Result<(), Failure> {
    refuse_scenario(path)?;
    match is_recording(path).unwrap_or(false) {
        true => Err(Failure::usage(format!(
            "{}: a recording of a program, not a block or file trace; allowed: `piebald study` of \
             a scenario with [[program]] and recording = \"{}\"",
            path.display(),
            path.display()
        ))),
        false => Ok(()),
    }
}

/// The command line as it was given, for the record.
fn command() -> String {
    let quoted = |word: String| match word.contains([' ', ';', '\'', '"', '*', '$']) {
        true => format!("'{}'", word.replace('\'', "'\\''")),
        false => word,
    };
    let words = std::env::args().skip(1).map(quoted);
    std::iter::once("piebald".to_owned())
        .chain(words)
        .collect::<Vec<_>>()
        .join(" ")
}

fn request(args: &Args) -> Result<ReplayRequest, Failure> {
    let format = match &args.format {
        Some(name) => Some(named_block(name).map_err(Failure::usage)?),
        None => None,
    };
    let page = args.page.unwrap_or(Bytes(4096));
    let page = PageShift::from_bytes(page).ok_or_else(|| {
        Failure::usage(format!(
            "--page {page}: allowed: a power of two from 512 B to 1 GiB"
        ))
    })?;
    let readahead = args.readahead.as_deref().unwrap_or("6.x");
    let default = match readahead {
        "none" => "none",
        _ => DEVICE,
    };
    let device = device(args.device.as_deref().unwrap_or(default));
    let of_disks = [
        ("--scheduler", args.scheduler.is_some()),
        ("--layout", args.layout.is_some()),
    ];
    if device == DeviceChoice::None
        && let Some(option) = first_given(&of_disks)
    {
        return Err(Failure::usage(format!(
            "{option}: there is no disk below, by --device none or --readahead none; allowed: with \
             --device and a disk"
        )));
    }
    Ok(ReplayRequest {
        load: Load::Requests,
        part: Part::default(),
        input: InputSetup {
            paths: args.traces.clone(),
            options: Options {
                format,
                columns: args.columns.as_ref().map(|given| given.columns.clone()),
                lenient: args.lenient,
                stage: args.stage.unwrap_or_default().into(),
                ..Options::default()
            },
            page,
            number_ids: false,
            excerpt: Excerpt::default(),
            align: match args.align.unwrap_or(AlignName::Stamps) {
                AlignName::Stamps => Align::Stamps,
                AlignName::Start => Align::Start,
                AlignName::Turn => Align::Turn,
            },
            same_objects: args.objects.map(|objects| objects == ObjectsName::Same),
            sorted: Vec::new(),
        },
        policies: policies(args.policy.as_deref(), &POLICIES, || {
            all(&device, args.quiet)
        })?,
        object_policies: policies(args.policy.as_deref(), &USUAL_FOR_OBJECTS, || {
            OBJECT_POLICIES
                .iter()
                .map(|row| row.name.to_owned())
                .collect()
        })?,
        ignore_sizes: args.ignore_sizes,
        sizes: sizes(args.size.as_deref())?,
        device,
        readahead: readahead.to_owned(),
        scheduler: args.scheduler.clone().unwrap_or("mq-deadline".into()),
        layout: layout(args.layout.as_deref()),
        pace: match args.pace.unwrap_or(PaceName::Serial) {
            PaceName::Serial => Pace::Serial,
            PaceName::Ordered => Pace::Ordered,
            PaceName::Tasks => Pace::Tasks,
            PaceName::Timed => Pace::Timed,
        },
        warmup: args.warmup.map_or(0, |warmup| warmup.0),
        curves: args.mrc.then_some(CurveRequest {
            rate: args.mrc_rate,
        }),
        start: DiskStart::Zero,
        seed: args.seed.unwrap_or(42),
        available: None,
    })
}

/// The policies of a list; without one, the usual ones.
fn policies(
    list: Option<&str>,
    usual: &[&str],
    all: impl FnOnce() -> Vec<String>,
) -> Result<Vec<PolicySpec>, Failure> {
    let names: Vec<String> = match list {
        None => usual.iter().map(|name| (*name).to_owned()).collect(),
        Some("all") => all(),
        // Options are separated by commas in a specification, which separate policies here.
        Some(list) => list.split(',').map(|p| p.replace(';', ",")).collect(),
    };
    let mut policies: Vec<PolicySpec> = Vec::with_capacity(names.len());
    for name in names {
        let policy: PolicySpec = name.parse().map_err(Failure::usage)?;
        if policies.contains(&policy) {
            return Err(Failure::usage(format!("policy {policy} is given twice")));
        }
        policies.push(policy);
    }
    Ok(policies)
}

/// Every policy that can be replayed over this device.
fn all(device: &DeviceChoice, quiet: bool) -> Vec<String> {
    let has_device = *device != DeviceChoice::None;
    if has_device && !quiet {
        crate::failure::say!(
            "piebald: note: {MIN} is left out: it knows the order of references, which a device \
             changes; --device none has it"
        );
    }
    let rows = registry::POLICIES.iter();
    let kept = rows.filter(|row| !(has_device && row.name == MIN));
    kept.map(|row| row.name.to_owned()).collect()
}

fn sizes(list: Option<&str>) -> Result<Vec<MemorySize>, Failure> {
    let texts: Vec<&str> = match list {
        None => SIZES.to_vec(),
        Some(list) => list.split(',').map(str::trim).collect(),
    };
    let parse = |text: &&str| {
        let size = text.parse::<MemorySize>();
        size.map_err(|e| Failure::usage(format!("size \"{text}\" {e}")))
    };
    texts.iter().map(parse).collect()
}

fn device(name: &str) -> DeviceChoice {
    match name {
        "none" => DeviceChoice::None,
        _ if Path::new(name)
            .extension()
            .is_some_and(|e| e == DEVICE_FILE) =>
        {
            DeviceChoice::File(name.into())
        }
        _ => DeviceChoice::Preset(name.to_owned()),
    }
}

fn layout(name: Option<&str>) -> LayoutChoice {
    match name {
        None => LayoutChoice::Auto,
        Some("packed") => LayoutChoice::Packed,
        Some("slots") => LayoutChoice::Slots,
        Some("inodes") => LayoutChoice::Inodes,
        Some("scatter") => LayoutChoice::Scatter,
        Some("first-touch") => LayoutChoice::FirstTouch,
        Some(path) => LayoutChoice::File(path.into()),
    }
}

/// Names of the files in a folder of outputs.
fn folder_files(curves: bool) -> impl Iterator<Item = &'static str> {
    let all = [
        "report.html",
        "replay.json",
        "replay.csv",
        "sequences.csv",
        "curves.csv",
    ];
    all.into_iter()
        .filter(move |name| curves || *name != "curves.csv")
}

/// Prints the table, unless a machine-readable form goes to standard output, and
/// writes the files asked for.
fn show(args: &Args, replay: &Replay) -> Result<(), Failure> {
    let json = replay_to_json(replay).map_err(Failure::failed)?;
    let csv = replay_to_csv(replay).map_err(Failure::failed)?;
    let html = replay_to_html(replay).map_err(Failure::failed)?;
    let sequences = replay_sequences_to_csv(replay).map_err(Failure::failed)?;
    let curves = replay_curves_to_csv(replay).map_err(Failure::failed)?;
    let mut outputs: Vec<(PathBuf, &str)> = Vec::new();
    let (csv_path, html_path) = (args.csv.as_deref(), args.html.as_deref());
    for (path, text) in [
        (args.json.path(), &json),
        (csv_path, &csv),
        (html_path, &html),
    ] {
        outputs.extend(path.map(|p| (p.to_owned(), text.as_str())));
    }
    if let Some(folder) = &args.output {
        let texts = [&html, &json, &csv, &sequences, &curves];
        let files = folder_files(!replay.curves.is_empty()).zip(texts);
        outputs.extend(files.map(|(name, text)| (folder.join(name), text.as_str())));
    }
    outputs::write(
        &args.output.as_deref().into_iter().collect::<Vec<_>>(),
        &outputs,
        || replay_to_table(replay, &table_style()),
    )
}
