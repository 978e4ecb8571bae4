//! Studies as text tables for a terminal or a pipe.

use std::fmt::Write as _;

use comfy_table::{Cell, CellAlignment, ContentArrangement, ContentLineStyle, LineStyle, Table};

use crate::{
    PolicyResult, ProgramResult, Study, advice, course,
    format::{Kind, apart, cell, clean, effort, grouped, short},
    gate::share_of_budget,
    headline,
    marks::Marks,
    regions::{Detail, region_table},
    rows, sysmon,
};

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableStyle {
    /// Columns of the terminal. Programs that do not fit beside each other
    /// stand below each other; a single program's table may be wider.
    pub width: usize,
    /// Headings in bold (ANSI). Off for a pipe.
    pub bold: bool,
}

impl Default for TableStyle {
    /// 100 columns, no colour codes: right for a pipe.
    fn default() -> Self {
        Self {
            width: 100,
            bold: false,
        }
    }
}

/// Rules above and below only: columns of numbers need no bars between them.
const RULES: comfy_table::TableStyle = comfy_table::TableStyle::new()
    .top_border(LineStyle::none().fill('─').junction('─'))
    .header_lines(ContentLineStyle::none())
    .header_separator(LineStyle::none().fill('─').junction('─'))
    .content_lines(ContentLineStyle::none())
    .bottom_border(LineStyle::none().fill('─').junction('─'));
/// Sentences of the headline that a terminal shows; the HTML report has all.
const MAX_SENTENCES: usize = 6;
/// Reasons of marks that a terminal shows; the HTML report has all.
const MAX_REMARKS: usize = 8;
/// Longest program name in a column's head.
const NAME_CHARS: usize = 24;

/// The study as text: what was found, slowdowns of all policies side by side,
/// then one block per policy with every quantity alone and together.
pub fn to_table(study: &Study, style: &TableStyle) -> String {
    let mut out = String::new();
    let heading = |text: &str| match style.bold {
        true => format!("\x1b[1m{text}\x1b[0m"),
        false => text.to_owned(),
    };
    if !study.complete {
        let _ = writeln!(
            out,
            "{}\n",
            heading("PARTIAL: not all of the study was run; the numbers cover what was.")
        );
    }
    let _ = writeln!(out, "{}", heading(&clean(&study.title)));
    paragraph(&mut out, &conditions(study), style.width);
    out.push('\n');
    let sentences = headline(study);
    for sentence in sentences.iter().take(MAX_SENTENCES) {
        paragraph(&mut out, sentence, style.width);
    }
    if sentences.len() > MAX_SENTENCES {
        let _ = writeln!(
            out,
            "(further findings in the HTML report: {})",
            sentences.len() - MAX_SENTENCES
        );
    }
    for warning in &study.warnings {
        paragraph(
            &mut out,
            &format!("Warning: {}", clean(warning)),
            style.width,
        );
    }
    let marks = Marks::new(study);
    let summary = slowdowns(study, &marks, style.width);
    if !summary.is_empty() {
        let title = heading("Slowdown: time together / time alone - 1, in %");
        let _ = writeln!(out, "\n{title}");
    }
    let has_summary = !summary.is_empty();
    for table in summary {
        let _ = writeln!(out, "{table}");
    }
    if has_summary {
        remarks(&mut out, &marks, style.width);
    }
    for advice in study.advice.iter().flat_map(advice::tables) {
        let _ = writeln!(out, "\n{}", heading(&advice.title));
        let mut shown = table(advice.head);
        advice
            .rows
            .into_iter()
            .for_each(|row| add_row(&mut shown, row));
        let _ = writeln!(out, "{shown}");
        paragraph(&mut out, &advice.remark, style.width);
    }
    if let Some(seen) = sysmon::table(&study.sysmon) {
        let _ = writeln!(out, "\n{}", heading(sysmon::TITLE));
        let mut shown = table(seen.head);
        seen.rows
            .into_iter()
            .for_each(|row| add_row(&mut shown, row));
        let _ = writeln!(out, "{shown}");
    }
    let is_run = |p: &&PolicyResult| p.programs.iter().any(ProgramResult::is_run);
    for policy in study.policies.iter().filter(is_run) {
        let title = format!("Policy {}", clean(&policy.name));
        let _ = writeln!(out, "\n{} {}", heading(&title), clean(&policy.description));
        for table in blocks(policy, &marks, style.width) {
            let _ = writeln!(out, "{table}");
        }
        if let Some(course) = policy.course.as_ref().filter(|c| !c.events.is_empty()) {
            let head = ["us", "event", "policy", "class and colors of each"];
            let mut shown = table(head.map(str::to_owned));
            let rows = course::rows_of(course);
            rows.into_iter().for_each(|row| add_row(&mut shown, row));
            let _ = writeln!(out, "{shown}");
        }
        for program in &policy.programs {
            let mark = marks.mark(&policy.name, &program.name);
            let Some(regions) = region_table(program, Detail::Means, mark.as_deref()) else {
                continue;
            };
            let mut shown = table(regions.head);
            regions
                .rows
                .into_iter()
                .for_each(|row| add_row(&mut shown, row));
            paragraph(&mut out, &regions.title, style.width);
            let _ = writeln!(out, "{shown}");
        }
    }
    closing(&mut out, study, style.width);
    out
}

/// Repetitions, and how many of them were run if that are fewer.
pub(crate) fn repetitions(study: &Study) -> String {
    let programs = study.policies.iter().flat_map(|p| &p.programs);
    let of = |p: &ProgramResult| {
        let together = p.together.as_ref().map_or(0, |m| m.time_ps.n());
        p.alone.time_ps.n().max(together)
    };
    let planned = study.repetitions as usize;
    match programs.map(of).max() {
        Some(run) if run < planned && run > 0 => format!("{run} of {planned}"),
        _ => planned.to_string(),
    }
}

/// Machine, repetitions and budget on one line.
fn conditions(study: &Study) -> String {
    let intervals = match study.repetitions {
        0 | 1 => "no intervals",
        _ => "mean ± 95 % interval",
    };
    // Programs of a guest run to their end.
    let budget = match study.budget_refs {
        0 => String::new(),
        refs => format!(
            ", {}{} references per program and run{} after {} of warm-up",
            at_most(study),
            grouped(refs),
            if study.until_us.is_some() {
                " alone"
            } else {
                ""
            },
            grouped(study.warmup_refs)
        ),
    };
    let time = until(study).map_or(String::new(), |time| format!(", together {time}"));
    format!(
        "{}; {} repetition{} ({intervals}){budget}{time}, seed {}",
        clean(&study.machine.title),
        repetitions(study),
        if study.repetitions == 1 { "" } else { "s" },
        study.seed,
    )
}

/// What stands before the references of a run where a program's recording holds fewer.
pub(crate) fn at_most(study: &Study) -> &'static str {
    let mut programs = study.policies.iter().flat_map(|policy| &policy.programs);
    let is_short = programs.any(|p| share_of_budget(&p.alone, study.budget_refs) < 1.0);
    if is_short { "at most " } else { "" }
}

/// When runs of several programs end, if by time, and from when on they are measured.
pub(crate) fn until(study: &Study) -> Option<String> {
    let us = |us: f64| grouped(us.max(0.0).round() as u64);
    let from = |from: f64| format!(", measured from {}", us(from));
    let measured = study.measured_from_us.map_or(String::new(), from);
    Some(format!("until {} us{measured}", us(study.until_us?)))
}

/// Breaks text at spaces.
pub(crate) fn paragraph(out: &mut String, text: &str, width: usize) {
    let mut used = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if used > 0 && used + 1 + len > width.max(20) {
            out.push('\n');
            used = 0;
        } else if used > 0 {
            out.push(' ');
            used += 1;
        }
        out.push_str(word);
        used += len;
    }
    out.push('\n');
}

pub(crate) fn table(header: impl IntoIterator<Item = String>) -> Table {
    let mut table = Table::new();
    table
        .load_style(RULES)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(header.into_iter().enumerate().map(|(i, text)| match i {
            0 => Cell::new(text),
            _ => Cell::new(text).set_alignment(CellAlignment::Right),
        }));
    table
}

/// A row of texts, the first to the left.
pub(crate) fn add_row(table: &mut Table, row: Vec<String>) {
    let cells = row.into_iter().enumerate().map(|(i, text)| match i {
        0 => Cell::new(text),
        _ => right(text),
    });
    table.add_row(cells);
}

pub(crate) fn right(text: String) -> Cell {
    Cell::new(text).set_alignment(CellAlignment::Right)
}

/// Policies down, programs across; as many as fit side by side. Empty if nothing
/// ran together.
fn slowdowns(study: &Study, marks: &Marks, width: usize) -> Vec<Table> {
    let mut names = rows::program_names(&study.policies);
    names.retain(|name| {
        let mut found = study.policies.iter().filter_map(|p| rows::find(p, name));
        found.any(|p| p.slowdown.is_some())
    });
    side_by_side(&names, width, |names| slowdown_table(study, marks, names))
}

fn slowdown_table(study: &Study, marks: &Marks, names: &[&str]) -> Table {
    let heads = names.iter().map(|name| {
        let program = study.policies.iter().find_map(|p| rows::find(p, name));
        let role = program.map_or("", |p| p.role.as_str());
        format!("{}\n{role}", short(name, NAME_CHARS))
    });
    let mut out = table(std::iter::once("policy".to_owned()).chain(heads));
    let scale = Kind::Change.scale(1.0);
    let policies = apart(study.policies.iter().map(|p| p.name.as_str()), NAME_CHARS);
    for (policy, shown_name) in study.policies.iter().zip(policies) {
        let cells = names.iter().map(|name| {
            let slowdown = rows::find(policy, name).and_then(|p| p.slowdown.as_ref());
            let shown = |s| marks.marked(&policy.name, name, cell(s, &Kind::Change, &scale));
            right(slowdown.map_or_else(|| "-".to_owned(), shown))
        });
        out.add_row(std::iter::once(Cell::new(shown_name)).chain(cells));
    }
    out
}

/// Why the marked slowdowns are not claimed.
fn remarks(out: &mut String, marks: &Marks, width: usize) {
    let remarks = marks.remarks();
    for remark in remarks.iter().take(MAX_REMARKS) {
        paragraph(out, remark, width);
    }
    if remarks.len() > MAX_REMARKS {
        let rest = remarks.len() - MAX_REMARKS;
        let _ = writeln!(out, "(further reasons in the HTML report: {rest})");
    }
}

/// The policy's tables: alone and together of each program.
fn blocks(policy: &PolicyResult, marks: &Marks, width: usize) -> Vec<Table> {
    let programs: Vec<&ProgramResult> = policy.programs.iter().collect();
    side_by_side(&programs, width, |programs| {
        details(&policy.name, marks, programs)
    })
}

/// Tables of as many columns as the width holds, at least one each.
pub(crate) fn side_by_side<T>(
    items: &[T],
    width: usize,
    make: impl Fn(&[T]) -> Table,
) -> Vec<Table> {
    let mut tables = Vec::new();
    let mut rest = items;
    while !rest.is_empty() {
        let mut n = 1;
        let mut best = make(&rest[..1]);
        while n < rest.len() {
            let wider = make(&rest[..n + 1]);
            if table_width(&wider) > width {
                break;
            }
            (n, best) = (n + 1, wider);
        }
        tables.push(best);
        rest = &rest[n..];
    }
    tables
}

fn table_width(table: &Table) -> usize {
    let longest = table.lines().map(|line| line.chars().count()).max();
    longest.unwrap_or(0)
}

/// Quantities down; alone and together of each program across.
fn details(policy: &str, marks: &Marks, programs: &[&ProgramResult]) -> Table {
    let with_together = |p: &&ProgramResult| p.together.is_some();
    let mut header = vec!["per run".to_owned()];
    for program in programs {
        let name = short(&program.name, NAME_CHARS);
        header.push(format!("{name}\nalone"));
        if with_together(program) {
            header.push(format!("{name}\ntogether"));
        }
    }
    let mut out = table(header);
    let colors: Vec<Option<String>> = programs
        .iter()
        .flat_map(|p| std::iter::once(&p.alone).chain(p.together.as_ref()))
        .map(rows::colors_and_pages)
        .collect();
    if colors.iter().any(Option::is_some) {
        let label = Cell::new(rows::COLORS_AND_PAGES);
        let cells = colors.into_iter().map(|c| right(c.unwrap_or_default()));
        out.add_row(std::iter::once(label).chain(cells));
    }
    for line in rows::lines(programs) {
        let scale = line.kind.scale(line.largest());
        let mut cells = vec![Cell::new(label(&line.label, &scale.unit))];
        for (program, pair) in programs.iter().zip(&line.cells) {
            let phases = 1 + usize::from(with_together(program));
            for sample in &pair[..phases] {
                let shown = |s| match (cell(s, &line.kind, &scale), line.judged) {
                    (text, true) => marks.marked(policy, &program.name, text),
                    (text, false) => text,
                };
                cells.push(right(sample.map_or_else(String::new, shown)));
            }
        }
        out.add_row(cells);
    }
    out
}

fn label(name: &str, unit: &str) -> String {
    match unit {
        "" => clean(name),
        unit => format!("{} [{unit}]", clean(name)),
    }
}

/// What was modelled, what was not, and what it took.
fn closing(out: &mut String, study: &Study, width: usize) {
    out.push('\n');
    let list = |items: &[String]| {
        items
            .iter()
            .map(|i| clean(i))
            .collect::<Vec<_>>()
            .join(", ")
    };
    if !study.features.is_empty() {
        paragraph(
            out,
            &format!("Model features on: {}.", list(&study.features)),
            width,
        );
    }
    if !study.missing.is_empty() {
        paragraph(
            out,
            &format!("Not modelled: {}.", list(&study.missing)),
            width,
        );
    }
    for note in &study.notes {
        paragraph(out, &format!("Note: {}", clean(note)), width);
    }
    let speed = format!(
        "Simulated {} references in {}, piebald {}.",
        grouped(study.simulated_refs),
        effort(study.simulated_refs, study.host_seconds, study.stored),
        clean(&study.version),
    );
    paragraph(out, &speed, width);
    if !study.complete {
        let _ = writeln!(out, "PARTIAL: not all of the study was run.");
    }
}
