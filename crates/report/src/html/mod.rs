//! The study as one HTML file: no script, nothing loaded from elsewhere, light
//! and dark, fit to print. It is well-formed XML too, so that any parser reads it.

mod figures;
mod numbers;

use askama::Template;

use crate::{
    Finding, ReportError, Role, Study,
    advice::{self, AdviceTable},
    format::{clean, effort, grouped},
    headline::{findings, findings_together, sentences},
    marks::Marks,
    regions::{Detail, RegionTable, region_table},
    rows,
    sysmon::{self, SysMonTable},
    table::{at_most, repetitions, until},
};
use figures::sections;
pub(crate) use figures::{Figure, Section};
use numbers::{ProgramNumbers, program_numbers};

#[derive(Template)]
#[template(path = "report.html")]
struct Page {
    title: String,
    css: &'static str,
    partial: bool,
    warnings: Vec<String>,
    headline: String,
    sentences: Vec<String>,
    facts: Vec<(&'static str, String)>,
    programs: Vec<Legend>,
    policies: Vec<(String, String)>,
    sections: Vec<Section>,
    advice: Vec<AdviceTable>,
    /// What SysMon sees: title and table.
    sysmon: Option<(&'static str, SysMonTable)>,
    /// Policy and table.
    regions: Vec<(String, RegionTable)>,
    numbers: Vec<ProgramNumbers>,
    /// Why marked slowdowns are not claimed.
    remarks: Vec<String>,
    machine: String,
    machine_lines: Vec<String>,
    features: Vec<String>,
    missing: Vec<String>,
    notes: Vec<String>,
    command: Option<String>,
    scenario: Option<String>,
    repeated: bool,
    version: String,
}

/// A program's line in the legend.
pub(crate) struct Legend {
    /// Class of its colour.
    class: String,
    name: String,
    about: String,
}

/// The study as a self-contained HTML page.
///
/// # Errors
/// [`ReportError::Chart`] or [`ReportError::Html`] if the drawing library or the
/// template fails; no content of a study is known to make them.
pub fn to_html(study: &Study) -> Result<String, ReportError> {
    page(study, &findings(study))
}

/// A page for each point of a sweep. What one of them says is as sure as all questions of the sweep together
/// allow, as in their table.
///
/// # Errors
/// As [`to_html`].
pub fn sweep_to_html(points: &[Study]) -> Result<Vec<String>, ReportError> {
    let found = findings_together(points);
    points
        .iter()
        .zip(&found)
        .map(|(study, findings)| page(study, findings))
        .collect()
}

fn page(study: &Study, findings: &[Finding]) -> Result<String, ReportError> {
    let mut sentences = sentences(study, findings).into_iter();
    let first = sentences.next().unwrap_or_else(|| nothing_found(study));
    let marks = Marks::of(study, findings);
    let page = Page {
        title: clean(&study.title),
        css: include_str!("../../templates/report.css"),
        partial: !study.complete,
        warnings: cleaned(&study.warnings),
        headline: first,
        sentences: sentences.collect(),
        facts: facts(study),
        programs: legend(study),
        policies: study
            .policies
            .iter()
            .map(|p| (clean(&p.name), clean(&p.description)))
            .collect(),
        sections: sections(
            study,
            &|policy, program| marks.mark(policy, program),
            marks.remarks(),
        )?,
        advice: study.advice.iter().flat_map(advice::tables).collect(),
        sysmon: sysmon::table(&study.sysmon).map(|table| (sysmon::TITLE, table)),
        regions: regions(study, &marks),
        numbers: program_numbers(study, &marks),
        remarks: marks.remarks(),
        machine: format!(
            "{} ({})",
            clean(&study.machine.title),
            clean(&study.machine.name)
        ),
        machine_lines: cleaned(&study.machine.lines),
        features: cleaned(&study.features),
        missing: cleaned(&study.missing),
        notes: cleaned(&study.notes),
        command: study.command.as_deref().map(clean),
        scenario: study.scenario.as_deref().map(clean_lines),
        repeated: study.repetitions > 1,
        version: clean(&study.version),
    };
    Ok(page.render()?)
}

fn nothing_found(study: &Study) -> String {
    let partial = if study.complete { "" } else { "PARTIAL: " };
    format!("{partial}No program was measured beside another, so there is no slowdown to state.")
}

/// Tables of regions, program by program.
fn regions(study: &Study, marks: &Marks) -> Vec<(String, RegionTable)> {
    let names = rows::program_names(&study.policies);
    let of_program = |name: &str| -> Vec<(String, RegionTable)> {
        let tables = study.policies.iter().filter_map(|policy| {
            let mark = marks.mark(&policy.name, name);
            let program = rows::find(policy, name)?;
            let table = region_table(program, Detail::Intervals, mark.as_deref())?;
            Some((clean(&policy.name), table))
        });
        tables.collect()
    };
    names.into_iter().flat_map(of_program).collect()
}

fn cleaned(texts: &[String]) -> Vec<String> {
    texts.iter().map(|t| clean(t)).collect()
}

/// Like [`clean`], but lines stay lines.
fn clean_lines(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| clean(&line.replace('\t', "    ")))
        .collect();
    lines.join("\n")
}

/// Conditions of the measurement, each with its name.
fn facts(study: &Study) -> Vec<(&'static str, String)> {
    let references = match study.until_us {
        Some(_) => "references per program and run alone",
        None => "references per program and run",
    };
    let mut facts = vec![
        ("machine", clean(&study.machine.title)),
        ("repetitions", repetitions(study)),
        (
            references,
            format!("{}{}", at_most(study), grouped(study.budget_refs)),
        ),
        ("warm-up references", grouped(study.warmup_refs)),
        ("seed", study.seed.to_string()),
        ("references simulated", grouped(study.simulated_refs)),
        (
            "simulation took",
            effort(study.simulated_refs, study.host_seconds, study.stored),
        ),
    ];
    // Programs of a guest run to their end.
    if study.budget_refs == 0 {
        let budget = [references, "warm-up references"];
        facts.retain(|(name, _)| !budget.contains(name));
    }
    if let Some(time) = until(study) {
        facts.insert(2, ("programs together", time));
    }
    facts
}

fn legend(study: &Study) -> Vec<Legend> {
    let names = rows::program_names(&study.policies);
    let entry = |(index, name): (usize, &&str)| {
        let program = study.policies.iter().find_map(|p| rows::find(p, name))?;
        let role = match program.role {
            Role::Target => "target",
            Role::Polluter => "polluter",
        };
        let mut about = vec![role.to_owned()];
        if !program.cores.is_empty() {
            about.push(format!("cores {}", clean(&program.cores)));
        }
        if !program.input.is_empty() {
            about.push(clean(&program.input));
        }
        Some(Legend {
            class: format!("p{}", index % crate::chart::PALETTE.len()),
            name: clean(name),
            about: about.join(", "),
        })
    };
    names.iter().enumerate().filter_map(entry).collect()
}
