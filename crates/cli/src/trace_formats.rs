//! `piebald trace formats`: the table entries of the trace readers, as a list, one by one, or as the
//! page `docs/formats.md`.

use std::fmt::Write as _;

use clap::ValueEnum;
use piebald_hw::nearest::did_you_mean;
use piebald_trace::{
    about::{About, Field, Form, Kind, Part, Radix, Stamps},
    block::{self, TargetKind, Traits},
    detect::{Found, TraceFormat},
    foreign,
};

use serde_json::{Value, json};

use crate::{failure::Failure, json::Json};

/// Arguments of `piebald trace formats`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A format; without one, all are listed
    name: Option<String>,
    /// The page docs/formats.md, with all of them
    #[arg(long, conflicts_with = "name")]
    page: bool,
    #[command(flatten)]
    json: Json,
}

/// Which stage of a request in the block layer is taken as the request.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum StageName {
    /// When it is queued: what programs and the file system ask for
    #[default]
    Queue,
    /// When it is issued to the disk: after merging
    Issue,
}

impl From<StageName> for block::Stage {
    fn from(name: StageName) -> Self {
        match name {
            StageName::Queue => Self::Queue,
            StageName::Issue => Self::Issue,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<(), Failure> {
    let json = &args.json;
    match &args.name {
        Some(name) => {
            let format = named(name).map_err(Failure::usage)?;
            let value = json!({ "schema": 1, "formats": [entry(format)] });
            json.show(&section(format), &value)
        }
        None => {
            let all: Vec<Value> = TraceFormat::all().map(entry).collect();
            let text = if args.page { page() } else { list() };
            json.show(&text, &json!({ "schema": 1, "formats": all }))
        }
    }
}

/// What programs get of a format.
fn entry(format: TraceFormat) -> Value {
    let about = format.about();
    let kind = match format {
        TraceFormat::Block(_) => "block",
        TraceFormat::Memory(_) => "memory",
    };
    json!({
        "name": format.name(),
        "other_names": format.aliases(),
        "kind": kind,
        "what": about.what,
        "source": about.source,
        "stamps": stamps(&about.stamps),
        "left_out": about.left_out,
        "found_out": found(format.found_out()),
    })
}

/// The format of this name, or what to say with the name that is nearest.
pub(crate) fn named(name: &str) -> Result<TraceFormat, String> {
    name.parse()
        .map_err(|e| format!("{e}{}", near(name, |_| true)))
}

/// The same of memory traces alone.
pub(crate) fn named_memory(name: &str) -> Result<foreign::Format, String> {
    let memory = |format: &TraceFormat| matches!(format, TraceFormat::Memory(_));
    name.parse()
        .map_err(|e| format!("{e}{}", near(name, memory)))
}

/// The same of block and file traces alone.
pub(crate) fn named_block(name: &str) -> Result<block::Format, String> {
    let block = |format: &TraceFormat| matches!(format, TraceFormat::Block(_));
    name.parse()
        .map_err(|e| format!("{e}{}", near(name, block)))
}

fn near(name: &str, kind: fn(&TraceFormat) -> bool) -> String {
    let formats: Vec<TraceFormat> = TraceFormat::all().filter(kind).collect();
    let names = formats.iter().map(TraceFormat::name);
    did_you_mean(
        name,
        names.chain(formats.iter().flat_map(|f| f.aliases()).copied()),
    )
}

/// Two kinds of readers: the heading of each, and its formats.
fn kinds() -> [(&'static str, Vec<TraceFormat>); 2] {
    let (block, memory) =
        TraceFormat::all().partition(|format| matches!(format, TraceFormat::Block(_)));
    [("Block and file traces", block), ("Memory traces", memory)]
}

fn list() -> String {
    let mut out = String::new();
    for (heading, formats) in kinds() {
        let _ = writeln!(out, "{heading}");
        for format in formats {
            let _ = writeln!(out, "  {:<22} {}", format.name(), format.about().what);
        }
    }
    out + "piebald trace formats NAME says what is in one\n"
}

const PREFACE: &str = "\
# Formats of traces

This page is written by `piebald trace formats --page`; change the entry beside the reader in
`crates/trace`, not the page. `piebald trace formats NAME` prints one section.

All traces may be packed by gzip, bzip2, xz or zstd, or be the only file of a zip. The content tells the format, but for `w106`,
`w106-be` and `valpin`, which have to be named, and texts in columns, which need `--columns`; `--format NAME`
settles it. Lines may end in either way. Numbers in samples are made up but fit one another.

[How traces are replayed](replay.md) says what is assumed where a format has no times or places.
";

fn page() -> String {
    let mut out = String::from(PREFACE);
    for (heading, formats) in kinds() {
        let _ = write!(out, "\n## {heading}\n\n");
        let rows = formats.iter().map(|f| {
            let link = format!("[`{name}`](#{name})", name = f.name());
            [link, f.about().what.to_owned()]
        });
        out += &table(["format", "what it is"], rows);
        for format in formats {
            let _ = write!(out, "\n{}", section(format));
        }
    }
    out
}

/// All that is said of a format, as Markdown.
fn section(format: TraceFormat) -> String {
    let about = format.about();
    let mut out = format!("### {}\n\n{}.\n\n", format.name(), about.what);
    match about.form {
        Form::Text {
            line,
            fields,
            sample,
        } => {
            let _ = write!(out, "A line is `{line}`:\n\n```text\n{sample}```\n\n");
            let rows = fields.iter().map(|(name, holds)| [*name, *holds]);
            out += &table(["field", "what it holds"], rows);
        }
        Form::Binary { order, parts } => {
            let _ = writeln!(out, "Binary, {}.", order.name());
            for part in parts {
                out += &layout(part);
            }
        }
    }
    out.push('\n');
    for (name, text) in facts(format, about) {
        let _ = writeln!(out, "* {name}: {text}.");
    }
    out
}

fn layout(part: &Part) -> String {
    let mut at = 0;
    let rows = part.fields.iter().map(|field| {
        let begin = at.to_string();
        at += field.bytes();
        [
            begin,
            field.name.to_owned(),
            kind(field),
            field.holds.to_owned(),
            sample(field),
        ]
    });
    let header = ["byte", "field", "type", "what it holds", "sample"];
    let rows = table(header, rows);
    let note = match part.note {
        "" => String::new(),
        note => format!(" {note}"),
    };
    format!("\n{} of {} B.{note}\n\n{rows}", part.what, part.bytes())
}

fn sample(field: &Field) -> String {
    match (field.holds, field.shown) {
        ("not used", _) => String::new(),
        (_, Radix::Hexadecimal) => format!("{:#x}", field.sample),
        (_, Radix::Decimal) => field.sample.to_string(),
    }
}

fn kind(field: &Field) -> String {
    match (field.kind, field.times) {
        (Kind::Bytes(n), _) => format!("{n} B"),
        (kind, 1) => kind.name().to_owned(),
        (kind, times) => format!("{times} x {}", kind.name()),
    }
}

/// What holds for a format whatever its records.
fn facts(format: TraceFormat, about: &About) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("Source", about.source.to_owned()),
        ("Stamps", stamps(&about.stamps)),
    ];
    match format {
        TraceFormat::Block(format) => {
            let said = format.traits().map(requests);
            facts.push((
                "Requests",
                said.unwrap_or_else(|| "as the list says".to_owned()),
            ));
        }
        TraceFormat::Memory(format) => {
            facts.push(("References", references(format)));
            if let Some(assumed) = format.assumes() {
                facts.push(("Assumed", assumed.to_owned()));
            }
        }
    }
    facts.push(("Left out", about.left_out.to_owned()));
    facts.push(("Found out by content", found(format.found_out()).to_owned()));
    if !format.aliases().is_empty() {
        facts.push(("Other names", format.aliases().join(", ")));
    }
    facts
}

fn stamps(stamps: &Stamps) -> String {
    match stamps {
        Stamps::Absent => "absent".to_owned(),
        Stamps::Absolute(unit) => format!("absolute, {unit}"),
        Stamps::Shared(unit) => format!("shared by the files of one tracing run, {unit}"),
        Stamps::Relative(unit) => format!("relative, {unit}"),
        Stamps::Optional(which) => (*which).to_owned(),
    }
}

fn requests(traits: Traits) -> String {
    let target = match traits.target {
        TargetKind::Device => "sectors of disks",
        TargetKind::File => "bytes of files, whose places on a disk are not told",
        TargetKind::Id => "numbered blocks, which say nothing about places",
    };
    let directions = match traits.directions {
        true => "reads and writes are told apart",
        false => "all are taken as reads",
    };
    let tasks = match traits.tasks {
        true => "with the process",
        false => "without the process",
    };
    format!("{target}; {directions}; {tasks}")
}

fn references(format: foreign::Format) -> String {
    let mut text = match format.has_instructions() {
        true => "with addresses of instructions",
        false => "without addresses of instructions",
    }
    .to_owned();
    if format.filtered() {
        text += "; only what caches let through";
    }
    text
}

fn found(found: Found) -> &'static str {
    match found {
        Found::Always => "yes, where no other reader takes its records",
        Found::UnlessAlike => {
            "yes, where no other reader takes its records and nothing in them is like another tool's"
        }
        Found::Unless => "only where its records show more than that they can be read",
        Found::Never => "no, any file could be one: it must be named",
    }
}

/// A table of Markdown whose columns are aligned, so that it can be read in a terminal as well. The
/// last column is as wide as it has to be.
fn table<const N: usize, S: Into<String>>(
    header: [&str; N],
    rows: impl IntoIterator<Item = [S; N]>,
) -> String {
    let cells = |row: [S; N]| row.map(|cell| cell.into().replace('|', "\\|"));
    let rows: Vec<[String; N]> = rows.into_iter().map(cells).collect();
    let width = |n: usize| {
        let widths = rows.iter().map(|row| row[n].chars().count());
        widths.max().unwrap_or(0).max(header[n].len()).min(WIDEST)
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let line = |cells: [&str; N]| {
        let padded = cells.iter().zip(widths);
        let padded = padded.map(|(cell, width)| format!("{cell:<width$}"));
        format!("| {} |\n", padded.collect::<Vec<_>>().join(" | "))
    };
    let rule = widths.map(|w| "-".repeat(w + 2)).join("|");
    let mut out = line(header) + &format!("|{rule}|\n");
    for row in &rows {
        out += &line(std::array::from_fn(|n| row[n].as_str()));
    }
    out
}

/// Cells up to this are padded; longer ones make their own lines longer.
const WIDEST: usize = 60;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_aligned_and_bars_are_escaped() {
        let rows = [["a|b", "long cell"], ["c", ""]];
        let wanted = "\
| x    | y         |
|------|-----------|
| a\\|b | long cell |
| c    |           |
";
        assert_eq!(table(["x", "y"], rows), wanted);
    }
}
