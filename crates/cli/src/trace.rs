//! `piebald trace info|head|convert|repair|regions|formats`

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use clap::Subcommand;
use piebald_lab::scenario::is_scenario;
use piebald_trace::{
    block::{self, Columns},
    convert::{self, ConvertError, Converted},
    detect::{TraceFormat, detect},
    foreign::{ForeignTrace, Format, Options},
    printable,
    recording::{Recording, Recovered, ReplayOptions, WriteError},
};
use piebald_units::op::OpSource;
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    columns,
    failure::Failure,
    json::Json,
    numbers,
    outputs::apart,
    programs,
    recordings::is_recording,
    regions, trace_block,
    trace_formats::{self, StageName},
    trace_head, trace_info, trace_repair,
};

/// Arguments of `piebald trace`.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// What a recording or trace holds
    Info {
        /// A recording, a memory trace, or a block or file trace
        file: PathBuf,
        /// Format of a foreign trace, if it is not to be found out
        #[arg(long, value_parser = trace_formats::named)]
        format: Option<TraceFormat>,
        /// What is in the columns of a text with requests to disks or objects (docs/replay.md), such
        /// as time=1:us,op=2,offset=3:B,size=4:B
        #[arg(long, value_name = "LIST", value_parser = columns::parse, conflicts_with = "format")]
        columns: Option<Columns>,
        /// Which stage of each request is taken, where a trace tells several (blktrace, blkparse)
        /// [default: queue]
        #[arg(long, value_enum)]
        stage: Option<StageName>,
        /// Leave out wrong records of a block or file trace, and count them
        #[arg(long, conflicts_with = "recover")]
        lenient: bool,
        /// Rebuild the index of a recording that has none (in memory only)
        #[arg(long)]
        recover: bool,
        #[command(flatten)]
        json: Json,
    },
    /// The first references of a thread, or requests of a block or file trace
    Head {
        /// A recording, a memory trace, or a block or file trace
        file: PathBuf,
        /// Format of a foreign trace, if it is not to be found out
        #[arg(long, value_parser = trace_formats::named)]
        format: Option<TraceFormat>,
        /// What is in the columns of a text with requests to disks or objects (docs/replay.md), such
        /// as time=1:us,op=2,offset=3:B,size=4:B
        #[arg(long, value_name = "LIST", value_parser = columns::parse, conflicts_with = "format")]
        columns: Option<Columns>,
        /// Which stage of each request is taken, where a trace tells several (blktrace, blkparse)
        /// [default: queue]
        #[arg(long, value_enum)]
        stage: Option<StageName>,
        /// Which thread
        #[arg(long, default_value_t = 0, value_parser = numbers::whole::<u32>(0..=u32::MAX.into()))]
        thread: u32,
        /// How many references or requests
        #[arg(short, default_value_t = 20, value_parser = numbers::whole::<u64>(0..=u64::MAX))]
        n: u64,
        #[command(flatten)]
        json: Json,
    },
    /// Make a recording of a foreign trace, and say what it loses
    Convert {
        /// A memory trace, or a folder with one file for each thread
        input: PathBuf,
        /// Recording to write
        output: PathBuf,
        /// Format of the trace, if it is not to be found out
        #[arg(long, value_parser = trace_formats::named_memory)]
        format: Option<Format>,
        /// Refused: columns hold no references of a program
        #[arg(long, hide = true)]
        columns: Option<String>,
        #[command(flatten)]
        json: Json,
    },
    /// Make a whole recording of what can be read of a damaged one, and say what is lost
    Repair(trace_repair::Args),
    /// Choose parts of a recording that stand for the whole
    Regions(regions::Args),
    /// List the formats of traces, or say what is in one of them
    Formats(trace_formats::Args),
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    match &args.what {
        What::Info {
            file,
            format,
            columns,
            stage,
            lenient,
            recover,
            json,
        } => match kind(file, *format, columns.as_ref())? {
            Kind::Block(options) => {
                let options = block::Options {
                    lenient: *lenient,
                    stage: stage.unwrap_or_default().into(),
                    ..options
                };
                trace_block::info(file, options, json, *recover)
            }
            _ if stage.is_some() => Err(of_blocks(file, "--stage")),
            _ if *lenient => Err(of_blocks(file, "--lenient")),
            Kind::Memory(format) => info(file, format, *recover, json),
        },
        What::Head {
            file,
            format,
            columns,
            stage,
            thread,
            n,
            json,
        } => match kind(file, *format, columns.as_ref())? {
            Kind::Block(_) if *thread > 0 => Err(Failure::usage(format!(
                "{}: --thread: allowed with recordings and memory traces",
                file.display()
            ))),
            Kind::Block(options) => {
                let stage = stage.unwrap_or_default().into();
                trace_block::head(file, block::Options { stage, ..options }, *n, json)
            }
            Kind::Memory(_) if stage.is_some() => Err(of_blocks(file, "--stage")),
            Kind::Memory(format) => head(file, format, *thread, *n, json),
        },
        What::Convert {
            input,
            columns: Some(_),
            ..
        } => Err(Failure::usage(format!(
            "{}: --columns: allowed with replay, trace info and trace head; a recording is made of \
             a memory trace",
            input.display()
        ))),
        What::Convert {
            input,
            output,
            format,
            json,
            ..
        } => convert(input, output, *format, json),
        What::Repair(args) => trace_repair::run(args),
        What::Regions(args) => regions::run(args),
        What::Formats(args) => trace_formats::run(args),
    }?;
    Ok(ExitCode::SUCCESS)
}

fn of_blocks(file: &Path, option: &str) -> Failure {
    Failure::usage(format!(
        "{}: {option}: allowed with block and file traces; this is none",
        file.display()
    ))
}

/// Which reader a file is for.
enum Kind {
    /// A recording, or a memory trace of this format if it is given.
    Memory(Option<Format>),
    Block(block::Options),
}

/// By the format or the columns that are given; else by content.
fn kind(
    file: &Path,
    format: Option<TraceFormat>,
    columns: Option<&Columns>,
) -> Result<Kind, Failure> {
    refuse_scenario(file)?;
    if columns.is_some() {
        return Ok(Kind::Block(block::Options {
            columns: columns.cloned(),
            ..block::Options::default()
        }));
    }
    let format = match format {
        Some(format) => format,
        None if file.is_dir() || is_recording(file)? => return Ok(Kind::Memory(None)),
        None => detect(file).map_err(Failure::usage)?,
    };
    Ok(match format {
        TraceFormat::Memory(format) => Kind::Memory(Some(format)),
        TraceFormat::Block(format) => Kind::Block(block::Options {
            format: Some(format),
            ..block::Options::default()
        }),
    })
}

/// A scenario is named as what it is, and the verb that runs it.
pub(crate) fn refuse_scenario(file: &Path) -> Result<(), Failure> {
    match is_scenario(file) {
        true => Err(Failure::usage(format!(
            "{}: a scenario, not a trace; `piebald study {}` runs it",
            file.display(),
            file.display()
        ))),
        false => Ok(()),
    }
}

fn info(file: &Path, format: Option<Format>, recover: bool, json: &Json) -> Result<(), Failure> {
    if format.is_none() && !file.is_dir() && is_recording(file)? {
        return recording_info(file, recover, json);
    }
    if recover {
        return Err(Failure::usage(format!(
            "{}: --recover: allowed with recordings; this is none",
            file.display()
        )));
    }
    let trace = foreign(file, format)?;
    let summary = trace.summary(FOREIGN_BOUND).map_err(Failure::usage)?;
    let value = with_schema(&summary)?;
    json.show(&trace_info::describe(file, &summary), &value)?;
    match trace_info::damage(&summary) {
        Some(why) => Err(Failure::usage(why)),
        None => Ok(()),
    }
}

fn convert(
    input: &Path,
    output: &Path,
    format: Option<Format>,
    json: &Json,
) -> Result<(), Failure> {
    apart(&[("OUTPUT", Some(output)), ("--json", json.path())])?;
    if format.is_none() && !input.is_dir() && is_recording(input)? {
        return Err(Failure::usage(format!(
            "{}: a recording already; allowed: a trace of another tool",
            input.display()
        )));
    }
    let made = convert::convert(&[input], format, output).map_err(|e| match e {
        ConvertError::Open(_)
        | ConvertError::Broken(_)
        | ConvertError::Nothing { .. }
        | ConvertError::SameFile { .. }
        | ConvertError::Write(WriteError::Taken { .. }) => Failure::usage(e),
        _ => Failure::failed(e),
    })?;
    let value = with_schema(&made)?;
    json.show(&describe_converted(output, &made), &value)
}

fn describe_converted(output: &Path, made: &Converted) -> String {
    let counts = &made.counts;
    let length = std::fs::metadata(output).map_or(0, |m| m.len());
    let mut out = format!(
        "{}: {} references and {} instructions of {} thread{} from {}\n",
        output.display(),
        counts.references,
        counts.instructions,
        counts.threads,
        if counts.threads == 1 { "" } else { "s" },
        made.format,
    );
    let _ = writeln!(
        out,
        "  {} distinct blocks, {length} bytes, {:.2} per reference",
        made.distinct_blocks,
        length as f64 / counts.references.max(1) as f64
    );
    for (word, list) in [("loses", &made.loses), ("assumes", &made.assumes)] {
        for line in list {
            let _ = writeln!(out, "  {word}: {line}");
        }
    }
    out
}

/// Distinct pages and lines of a foreign trace are counted exactly up to this.
const FOREIGN_BOUND: usize = 10_000_000;

fn foreign(file: &Path, format: Option<Format>) -> Result<ForeignTrace, Failure> {
    ForeignTrace::at(&[file], format, Options::default()).map_err(Failure::usage)
}

fn recording_info(file: &Path, recover: bool, json: &Json) -> Result<(), Failure> {
    let mut out = String::new();
    let recording = if recover {
        let (recording, found) = Recording::recover(file).map_err(Failure::usage)?;
        out += &recovered(&found);
        recording
    } else {
        Recording::open(file).map_err(Failure::usage)?
    };
    let header = recording.header();
    let counts = recording.index().counts();
    let _ = writeln!(
        out,
        "{}: {}",
        file.display(),
        printable(&header.argv.join(" "))
    );
    let state = if header.complete {
        "complete"
    } else {
        "INCOMPLETE"
    };
    let midway = match header.midway {
        true => ", from the middle of the program",
        false => "",
    };
    let _ = writeln!(out, "  {state}{midway}");
    for missing in &header.missing {
        let _ = writeln!(out, "  missing: {missing}");
    }
    for remark in &header.remarks {
        let _ = writeln!(out, "  note: {remark}");
    }
    if let Some(refused) = programs::describe_refused(&header.refused) {
        let _ = writeln!(out, "  {refused}");
    }
    let length = std::fs::metadata(file).map_or(0, |m| m.len());
    let _ = writeln!(
        out,
        "  {} references, {} instructions, {} block executions, {} events",
        counts.references, counts.instructions, counts.blocks, counts.events
    );
    let _ = writeln!(
        out,
        "  {} processes, {} threads, {} chunks, {length} bytes ({:.2} per reference)",
        counts.processes,
        counts.threads,
        counts.chunks,
        length as f64 / counts.references.max(1) as f64
    );
    // A recording of which a part is lost still tells the rest.
    match recording.programs() {
        Ok(programs) => {
            if let Some(programs) = programs::describe(&programs) {
                let _ = writeln!(out, "  {programs}");
            }
        }
        Err(e) => {
            let _ = writeln!(out, "  which programs ran is not known: {e}");
        }
    }
    if !header.cpu.is_empty() {
        let _ = writeln!(out, "  processor: {}", header.cpu);
    }
    let value = json!({
        "schema": 1,
        "file": file.display().to_string(),
        "format": "recording",
        "command": header.argv,
        "complete": header.complete,
        "midway": header.midway,
        "missing": header.missing,
        "remarks": header.remarks,
        "refused": header.refused,
        "processor": header.cpu,
        "counts": counts,
        "bytes": length,
    });
    json.show(&out, &value)
}

/// What was found without the index, in words.
fn recovered(found: &Recovered) -> String {
    let mut out = format!("recovered: {} whole records\n", found.records);
    for range in &found.lost {
        let bytes = range.end - range.start;
        let _ = writeln!(out, "  lost: {bytes} bytes at offset {}", range.start);
    }
    out
}

/// As JSON, with the number of its form.
pub(crate) fn with_schema(value: &impl Serialize) -> Result<Value, Failure> {
    let mut value = serde_json::to_value(value).map_err(Failure::failed)?;
    value["schema"] = 1.into();
    Ok(value)
}

fn head(
    file: &Path,
    format: Option<Format>,
    thread: u32,
    n: u64,
    json: &Json,
) -> Result<(), Failure> {
    let mut source: Box<dyn OpSource> = if format.is_none() && is_recording(file)? {
        let recording = Recording::open(file).map_err(Failure::usage)?;
        let source = recording.source(thread, ReplayOptions::default());
        Box::new(source.map_err(Failure::usage)?)
    } else {
        let trace = foreign(file, format)?;
        Box::new(trace.open(thread as usize).map_err(Failure::usage)?)
    };
    trace_head::show(source.as_mut(), n, json)
}
