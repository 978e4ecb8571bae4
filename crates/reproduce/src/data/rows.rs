//! `rows.toml`: the rows of a paper, and its figures.

use piebald_report::{Published, Sample, Target, TargetKind};
use serde::{Deserialize, Deserializer, de};

use super::{
    eval::{Chosen, Lets, Names, Valued},
    formula::{Formula, Template},
    grid::SCHEMA,
    shown::{FigureFile, TableFile, known, names},
};
use crate::{
    row::{self, Row, sampled},
    verdict,
};

/// The file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Rows {
    #[serde(rename = "schema", deserialize_with = "schema")]
    _schema: (),
    /// The paper.
    pub(super) title: String,
    /// Heads of the two columns of numbers, where the paper's is measured as well.
    pub(super) columns: Option<[String; 2]>,
    /// Sentences on how all rows were run.
    #[serde(default)]
    pub(super) conditions: Vec<Template>,
    /// What makes the inputs of the stand-ins.
    pub(super) inputs_by: Option<String>,
    /// Formulas for all rows.
    #[serde(default, rename = "let")]
    pub(super) lets: Lets,
    pub(super) row: Vec<RowFile>,
    #[serde(default)]
    pub(super) figure: Vec<FigureFile>,
}

fn schema<'de, D: Deserializer<'de>>(d: D) -> Result<(), D::Error> {
    match i64::deserialize(d)? {
        SCHEMA => Ok(()),
        other => Err(de::Error::custom(format!(
            "schema = {other}: allowed: {SCHEMA}"
        ))),
    }
}

/// How a row is judged.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Kind {
    Headline,
    Shape,
    Constant,
    Bound,
    Given,
}

impl Kind {
    const fn of_target(self) -> TargetKind {
        match self {
            Self::Headline => TargetKind::H,
            Self::Shape => TargetKind::S,
            Self::Constant => TargetKind::C,
            Self::Bound => TargetKind::O,
            Self::Given => TargetKind::G,
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowFile {
    pub(super) id: String,
    pub(super) title: String,
    pub(super) kind: Kind,
    /// Both numbers of a value are measured: the other one is shown where one is missing.
    #[serde(skip)]
    pairs: bool,
    /// Programs stand in for those of the paper.
    #[serde(default)]
    stand_in: bool,
    /// The paper's numbers of this row chose an input.
    #[serde(default)]
    calibrated: bool,
    /// The experiments whose runs it is about; formulas mean the first if they choose none.
    #[serde(default, deserialize_with = "names")]
    pub(super) experiment: Vec<String>,
    /// Why it is never run.
    missing: Option<String>,
    #[serde(default, rename = "let")]
    pub(super) lets: Lets,
    #[serde(default)]
    value: Vec<ValueFile>,
    #[serde(default)]
    statement: Vec<StatementFile>,
    #[serde(default)]
    part: Vec<PartFile>,
    #[serde(default)]
    table: Vec<TableFile>,
    #[serde(default)]
    note: Vec<NoteFile>,
}

/// Values and statements that follow one another for each value of axes.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PartFile {
    #[serde(default)]
    each: Vec<String>,
    when: Option<Formula>,
    #[serde(default)]
    value: Vec<ValueFile>,
    #[serde(default)]
    statement: Vec<StatementFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueFile {
    #[serde(default)]
    each: Vec<String>,
    when: Option<Formula>,
    name: Template,
    #[serde(default)]
    unit: String,
    /// What is measured; a number of the paper alone has none.
    is: Option<Formula>,
    /// Why it is not measured, so that the row is not run.
    missing: Option<String>,
    paper: Option<Paper>,
    /// Without one, it is shown and not judged.
    rule: Option<Rule>,
}

/// What the paper prints.
#[derive(Debug)]
enum Paper {
    Number(f64),
    Text(Template),
    /// A number that depends on what is chosen.
    Is(Formula),
}

impl<'de> Deserialize<'de> for Paper {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        match toml::Value::deserialize(d)? {
            toml::Value::Integer(n) => Ok(Self::Number(n as f64)),
            toml::Value::Float(n) if n.is_finite() => Ok(Self::Number(n)),
            toml::Value::String(text) => Template::parse(&text)
                .map(Self::Text)
                .map_err(de::Error::custom),
            toml::Value::Table(table) if table.len() == 1 && table.contains_key("is") => {
                let text = table.get("is").and_then(toml::Value::as_str);
                let text = text.ok_or_else(|| {
                    de::Error::custom("paper.is: allowed: a formula, as a text".to_owned())
                })?;
                Formula::parse(text)
                    .map(Self::Is)
                    .map_err(de::Error::custom)
            }
            other => Err(de::Error::custom(format!(
                "paper = {other}: allowed: a number, a text, or {{ is = \"formula\" }}"
            ))),
        }
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct StatementFile {
    #[serde(default)]
    each: Vec<String>,
    when: Option<Formula>,
    text: Template,
    holds: Formula,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteFile {
    when: Option<Formula>,
    text: Template,
}

/// A rule of a verdict, with its bounds: `no_change(5)`.
#[derive(Debug)]
struct Rule {
    name: RuleName,
    bounds: Vec<Formula>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RuleName {
    Headline,
    Factor,
    Amount,
    Share,
    NoChange,
    Range,
    AtMost,
    Below,
    Between,
    Exact,
}

/// Rules by their names, and how many bounds each has.
const RULES: [(&str, RuleName, usize); 12] = [
    ("headline", RuleName::Headline, 0),
    ("factor", RuleName::Factor, 0),
    ("amount", RuleName::Amount, 0),
    ("amount", RuleName::Amount, 1),
    ("share", RuleName::Share, 0),
    ("share", RuleName::Share, 1),
    ("no_change", RuleName::NoChange, 1),
    ("range", RuleName::Range, 2),
    ("at_most", RuleName::AtMost, 1),
    ("below", RuleName::Below, 1),
    ("between", RuleName::Between, 2),
    ("exact", RuleName::Exact, 0),
];

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let (name, bounds) = match Formula::deserialize(d)? {
            Formula::Name(name) => (name, Vec::new()),
            Formula::Call(name, bounds) => (name, bounds),
            _ => (String::new(), Vec::new()),
        };
        let known = RULES.into_iter();
        let mut known = known.filter(|(word, _, n)| *word == name && *n == bounds.len());
        if let Some((_, name, _)) = known.next_back() {
            return Ok(Self { name, bounds });
        }
        let all = RULES.map(|(word, _, n)| match n {
            0 => word.to_owned(),
            1 => format!("{word}(bound)"),
            _ => format!("{word}(low, high)"),
        });
        let all = all.join(", ");
        Err(de::Error::custom(format!("\"{name}\": allowed: {all}")))
    }
}

impl Rule {
    /// Rules that compare with the paper's number.
    const fn needs_number(&self) -> bool {
        matches!(
            self.name,
            RuleName::Headline
                | RuleName::Factor
                | RuleName::Amount
                | RuleName::Share
                | RuleName::Exact
        )
    }

    fn verdict(&self, paper: f64, bounds: &[f64], sample: &Sample) -> piebald_report::Verdict {
        match (self.name, bounds) {
            (RuleName::NoChange, [bound]) => verdict::no_change(*bound, sample),
            (RuleName::Range, [low, high]) => verdict::range(*low, *high, sample),
            (RuleName::AtMost, [bound]) => verdict::at_most(*bound, sample),
            (RuleName::Below, [bound]) => verdict::exact(sample.mean < *bound),
            (RuleName::Between, [low, high]) => {
                verdict::exact((*low..=*high).contains(&sample.mean))
            }
            (RuleName::Factor, _) => verdict::headline(paper.ln(), &sample.map(f64::ln)),
            // Two that come to nothing are alike.
            (RuleName::Amount | RuleName::Share, [nothing])
                if paper.abs() < *nothing && sample.mean.abs() < *nothing =>
            {
                verdict::exact(true)
            }
            (RuleName::Amount, _) => verdict::amount(paper, sample.mean, false),
            (RuleName::Share, _) => verdict::amount(paper, sample.mean, true),
            (RuleName::Exact, _) => verdict::exact(sample.values.iter().all(|v| *v == paper)),
            _ => verdict::headline(paper, sample),
        }
    }
}

impl Rows {
    /// Tells the rows whether both numbers of a value are measured.
    pub(super) fn pair(&mut self) {
        for row in &mut self.row {
            row.pairs = self.columns.is_some();
        }
    }

    /// What can be seen without a run to be wrong.
    ///
    /// # Errors
    /// The row and what is wrong.
    pub(super) fn check(&self, has: &dyn Fn(&str) -> bool) -> Result<(), String> {
        if self.row.is_empty() {
            return Err("row: allowed: one row or more".to_owned());
        }
        for (i, row) in self.row.iter().enumerate() {
            let is_word = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            let begins = row.id.starts_with(|c: char| c.is_ascii_alphanumeric());
            if !begins || !row.id.chars().all(is_word) {
                let id = &row.id;
                return Err(format!(
                    "row[{i}].id = \"{id}\": allowed: a word of letters, digits, -, _ and ."
                ));
            }
            let same = |other: &RowFile| other.id.eq_ignore_ascii_case(&row.id);
            if self.row[..i].iter().any(same) {
                return Err(format!("row[{i}].id = \"{}\": is there already", row.id));
            }
            if let Some(name) = row.experiment.iter().find(|name| !has(name)) {
                return Err(format!(
                    "row {}: experiment = \"{name}\": no experiment of the grid has this name",
                    row.id
                ));
            }
            if row.missing.is_some() && !row.has_nothing() {
                return Err(format!(
                    "row {}: missing: what is never run has neither an experiment nor values, statements, \
                     parts or notes",
                    row.id
                ));
            }
            for value in row
                .value
                .iter()
                .chain(row.part.iter().flat_map(|p| &p.value))
            {
                if value.rule.is_some() && matches!(row.kind, Kind::Shape | Kind::Given) {
                    return Err(format!(
                        "row {}: rule: the rows of this kind have none; allowed: kind = \"headline\", \"constant\" or \"bound\"",
                        row.id
                    ));
                }
                let number = matches!(value.paper, Some(Paper::Number(_) | Paper::Is(_)));
                if value.rule.as_ref().is_some_and(Rule::needs_number) && !number {
                    return Err(format!(
                        "row {}: paper: the rule needs the paper's number",
                        row.id
                    ));
                }
                let is_factor = (value.rule.as_ref()).is_some_and(|r| r.name == RuleName::Factor);
                if let Some(Paper::Number(paper)) = value.paper
                    && is_factor
                    && (paper <= 0.0 || paper == 1.0)
                {
                    return Err(format!(
                        "row {}: paper = {paper}: allowed for a factor: a number above 0 that is not 1",
                        row.id
                    ));
                }
                if value.missing.is_some() && value.is.is_some() {
                    return Err(format!(
                        "row {}: missing: what is not measured has no is",
                        row.id
                    ));
                }
                if value.rule.is_some() && value.is.is_none() {
                    return Err(format!(
                        "row {}: is: the rule needs what is measured",
                        row.id
                    ));
                }
            }
        }
        for figure in &self.figure {
            let place = format!("figure \"{}\"", figure.name);
            if figure.experiment.is_empty() {
                return Err(format!("{place}: experiment: allowed: one name or more"));
            }
            if let Some(name) = figure.experiment.iter().find(|name| !has(name)) {
                return Err(format!(
                    "{place}: experiment = \"{name}\": no experiment of the grid has this name"
                ));
            }
            for id in &figure.rows {
                let Some(row) = self.row.iter().find(|row| row.id == *id) else {
                    return Err(format!("{place}: rows: \"{id}\": no row has this id"));
                };
                if !(figure.experiment.iter()).any(|name| row.experiment.contains(name)) {
                    let names = figure.experiment.join(", ");
                    return Err(format!(
                        "{place}: rows: \"{id}\" runs none of {names}; allowed: rows that run an experiment of \
                         the figure"
                    ));
                }
            }
        }
        Ok(())
    }
}

impl RowFile {
    /// Nothing of it could be run or shown.
    fn has_nothing(&self) -> bool {
        let is_run = !self.experiment.is_empty() || self.calibrated;
        let is_shown = self.values().next().is_some() || !self.note.is_empty();
        let is_stated = !self.statement.is_empty() || !self.part.is_empty();
        !(is_run || is_shown || is_stated)
    }

    fn values(&self) -> impl Iterator<Item = &ValueFile> {
        let of_parts = self.part.iter().flat_map(|part| &part.value);
        self.value.iter().chain(of_parts)
    }

    /// The row without a result.
    pub(super) fn not_run(&self, why: &str) -> Target {
        let mut row = Row::of(self.blank());
        row.missing(why);
        row.finish()
    }

    /// The row before it is run.
    pub(super) fn blank(&self) -> Target {
        Target {
            stand_in: self.stand_in,
            ..row::blank(&self.id, &self.title, self.kind.of_target())
        }
    }

    /// The row of what was counted.
    ///
    /// # Errors
    /// What is wrong with a formula, whatever was counted.
    pub(super) fn fill(&self, names: &Names<'_>) -> Result<Target, String> {
        if let Some(why) = &self.missing {
            return Ok(self.not_run(why));
        }
        let mut row = Row::of(self.blank());
        if self.pairs {
            row = row.paired();
        }
        if self.calibrated {
            row = row.calibrated();
        }
        let all = Chosen::new();
        self.fill_in(&mut row, names, (&self.value, &self.statement), &all)?;
        for part in &self.part {
            let each = names.each(&part.each, part.when.as_ref(), &all);
            match known(each)? {
                Ok(each) => {
                    for chosen in each {
                        self.fill_in(&mut row, names, (&part.value, &part.statement), &chosen)?;
                    }
                }
                Err(why) => row.missing(&why),
            }
        }
        if !row.has_ground() && !matches!(self.kind, Kind::Given) {
            row.missing(
                "nothing of it is judged: no value of its axes has a number or a statement",
            );
        }
        if self.values().any(|value| value.rule.is_some()) && !row.is_judged() {
            row.missing("none of its numbers is judged");
        }
        for table in &self.table {
            let told = |says| format!("table \"{}\": {says}", table.title);
            table.fill(&mut row, names).map_err(told)?;
        }
        for note in &self.note {
            let when = note
                .when
                .as_ref()
                .map_or(Ok(true), |when| names.holds(when, &all));
            let text = when.and_then(|when| {
                if !when {
                    return Ok(None);
                }
                names.text(&note.text, &all).map(Some)
            });
            match known(text) {
                Ok(Ok(Some(text))) => row.note(&text),
                // What is missing is said by the row's values.
                Ok(_) => {}
                // Of runs that are not there, not even their lengths are known.
                Err(_) if row.is_missing() => {}
                Err(says) => return Err(format!("note: {says}")),
            }
        }
        Ok(match self.kind {
            Kind::Given => row.given(),
            _ => row.finish(),
        })
    }

    fn fill_in(
        &self,
        row: &mut Row,
        names: &Names<'_>,
        (values, statements): (&[ValueFile], &[StatementFile]),
        chosen: &Chosen,
    ) -> Result<(), String> {
        for (i, value) in values.iter().enumerate() {
            let each = known(names.each(&value.each, value.when.as_ref(), chosen));
            let told = |says| format!("value[{i}]: {says}");
            match each.map_err(told)? {
                Ok(each) => each
                    .iter()
                    .try_for_each(|chosen| value.fill(row, names, chosen).map_err(told))?,
                Err(why) => row.missing(&why),
            }
        }
        for (i, statement) in statements.iter().enumerate() {
            let each = known(names.each(&statement.each, statement.when.as_ref(), chosen));
            let told = |says| format!("statement[{i}]: {says}");
            match each.map_err(told)? {
                Ok(each) => each
                    .iter()
                    .try_for_each(|chosen| statement.fill(row, names, chosen).map_err(told))?,
                Err(why) => row.missing(&why),
            }
        }
        Ok(())
    }
}

impl ValueFile {
    /// What the paper prints.
    fn paper(&self, names: &Names<'_>, chosen: &Chosen) -> Valued<Published> {
        Ok(match &self.paper {
            None => Published::Nothing,
            Some(Paper::Number(number)) => Published::Number(*number),
            Some(Paper::Text(text)) => Published::Text(names.text(text, chosen)?),
            Some(Paper::Is(formula)) => Published::Number(names.number(formula, chosen)?),
        })
    }

    fn fill(&self, row: &mut Row, names: &Names<'_>, chosen: &Chosen) -> Result<(), String> {
        let name = match known(names.text(&self.name, chosen))? {
            Ok(name) => name,
            Err(why) => {
                row.missing(&why);
                return Ok(());
            }
        };
        let paper = match (known(self.paper(names, chosen))?, &self.is) {
            (Ok(paper), _) => paper,
            (Err(why), Some(is)) if row.pairs => {
                if self.rule.is_some() {
                    row.missing(&why);
                } else {
                    row.lacks(&why);
                }
                let measured = known(names.sample(is, chosen))?;
                row.cite(
                    &name,
                    Published::Nothing,
                    &self.unit,
                    measured.ok().as_ref(),
                );
                return Ok(());
            }
            (Err(why), _) => {
                row.missing(&why);
                return Ok(());
            }
        };
        let Some(is) = &self.is else {
            row.cite(&name, paper, &self.unit, None);
            if let Some(why) = &self.missing {
                row.missing(why);
            }
            return Ok(());
        };
        let measured = known(names.sample(is, chosen))?;
        if let (Some(Paper::Is(paper)), Some(_)) = (&self.paper, &self.rule) {
            // What is missing is told of each by itself.
            let _: Result<(), String> = known(names.check_clocks([paper, is], chosen))?;
        }
        let Some(rule) = &self.rule else {
            match measured {
                Ok(sample) => row
                    .target
                    .values
                    .push(sampled(&name, paper, &sample, &self.unit)),
                Err(why) => {
                    row.lacks(&why);
                    if row.pairs {
                        row.cite(&name, paper, &self.unit, None);
                    }
                }
            }
            return Ok(());
        };
        let bounds = rule.bounds.iter().map(|bound| names.number(bound, chosen));
        let bounds: Valued<Vec<f64>> = bounds.collect();
        if let Ok(sample) = &measured
            && !sample.mean.is_finite()
        {
            row.missing(&format!("{name}: no number came of it"));
            return Ok(());
        }
        match known(bounds)? {
            Ok(bounds) => {
                if let [low, high] = bounds[..]
                    && low >= high
                {
                    let word = RULES.iter().find(|(_, name, _)| *name == rule.name);
                    let word = word.map_or("", |(word, ..)| *word);
                    return Err(format!(
                        "{word}({low}, {high}): allowed: the lower end first"
                    ));
                }
                let number = match paper {
                    Published::Number(number) => number,
                    _ => f64::NAN,
                };
                row.judge(&name, paper, measured, &self.unit, |sample| {
                    rule.verdict(number, &bounds, sample)
                });
            }
            Err(why) => row.missing(&why),
        }
        Ok(())
    }
}

impl StatementFile {
    fn fill(&self, row: &mut Row, names: &Names<'_>, chosen: &Chosen) -> Result<(), String> {
        let holds = known(names.holds(&self.holds, chosen))?;
        match known(names.text(&self.text, chosen))? {
            Ok(text) => row.states(text, holds),
            // What it speaks of was not counted.
            Err(why) => row.missing(&why),
        }
        Ok(())
    }
}
