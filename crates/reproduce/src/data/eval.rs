//! What formulas come to.

use std::{collections::BTreeMap, mem, ops::Deref, path::Path, sync::Arc};

use piebald_lab::host::Hosts;
use piebald_report::{Sample, Verdict};

use super::{
    clocks::Clocks,
    fold::{bounded, combine, folded},
    formula::{Formula, Piece, Sign, Template, Two},
    thresholds,
};
use crate::{row::Found, verdict};

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Number(f64),
    Is(bool),
    Text(String),
    /// One value for each repetition.
    Sample(Sample),
    /// A value of an axis that has columns; `name` is one of them.
    Item(Arc<BTreeMap<String, Self>>),
    /// Values of which an axis's value has several.
    List(Arc<Vec<Self>>),
    /// What outcomes should have given, and why they did not.
    Unknown(Arc<str>),
}

/// Why a formula has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// A run is not there, or says nothing of what is asked.
    Missing(String),
    /// The formula is wrong, whatever was run.
    Wrong(String),
}

/// A value, or why there is none.
pub(super) type Valued<T> = Result<T, Fault>;

/// Values that a formula goes through: of an axis, or of a list that a value has.
enum Values<'a> {
    Axis(&'a [Value]),
    List(Arc<Vec<Value>>),
}

impl Deref for Values<'_> {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        match self {
            Self::Axis(values) => values,
            Self::List(values) => values,
        }
    }
}

/// What chooses among the experiments of a row.
pub(super) const EXPERIMENT: &str = "experiment";
/// What chooses an interval of a course, by its number from 0.
pub(super) const INTERVAL: &str = "interval";
/// The folder of the inputs, which formulas of a grid may name.
pub(super) const INPUTS: &str = "inputs";
/// Known where formulas are only checked: programs and inputs are taken to be there. No formula can name it.
pub(super) const HAS_ALL: &str = "has all";
/// Names that formulas cannot have.
pub(super) const TAKEN: [&str; 8] = [
    "true", "false", "inf", "ran", "program", "policy", "run", EXPERIMENT,
];

/// Formulas by their names.
pub(super) type Lets = BTreeMap<String, Formula>;
/// Values of each axis.
pub(super) type Axes = BTreeMap<String, Vec<Value>>;

/// What the runs of a row counted.
pub(super) trait Cells {
    /// A quantity of a program in a run, or whether an experiment was run, with what is chosen. None if
    /// nothing has this name.
    fn counted(
        &self,
        what: &str,
        of: Option<&str>,
        chosen: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Valued<Value>>;

    /// The clock of a quantity that is a time, as far as the run is known.
    fn clock(&self, _what: &str, _chosen: &dyn Fn(&str) -> Option<String>) -> Clocks {
        Clocks::default()
    }

    /// How many questions were asked, where numbers are made up to check formulas: then what depends on
    /// such a number is evaluated whatever the number is.
    fn asked(&self) -> Option<u64> {
        None
    }
}

/// No runs.
pub(super) struct NoRuns;

impl Cells for NoRuns {
    fn counted(
        &self,
        _: &str,
        _: Option<&str>,
        _: &dyn Fn(&str) -> Option<String>,
    ) -> Option<Valued<Value>> {
        None
    }
}

/// What names stand for.
pub(super) struct Names<'a> {
    pub(super) axes: &'a Axes,
    /// Numbers that are known beside those of runs.
    pub(super) known: &'a BTreeMap<String, Value>,
    /// Formulas, those of the inner table first.
    pub(super) lets: Vec<&'a Lets>,
    pub(super) cells: &'a dyn Cells,
    /// Of programs that guests can have; none where nothing may depend on this computer.
    pub(super) hosts: Option<&'static dyn Hosts>,
}

/// Values that are chosen, the last one of a name holds.
pub(super) type Chosen = Vec<(String, Value)>;

/// Formulas, and those that they name, are so deep at most.
const DEEPEST: usize = 250;
/// So many steps are taken for one value at most.
const MOST_STEPS: u64 = 1_000_000;
/// Most digits of a number that is rounded.
const MOST_DIGITS: f64 = 15.0;
/// Most choices of values of axes.
const MOST_CHOICES: usize = 100_000;

/// What is asked of one value.
struct Eval<'n, 'a> {
    names: &'n Names<'a>,
    chosen: Chosen,
    depth: usize,
    steps: u64,
    /// Of the times that were read since somebody looked.
    clocks: Clocks,
}

pub(super) fn wrong<T>(says: impl Into<String>) -> Valued<T> {
    Err(Fault::Wrong(says.into()))
}

/// A sample, or the reason why it is not there.
pub(super) fn found(found: Found) -> Valued<Value> {
    found.map(Value::Sample).map_err(Fault::Missing)
}

impl Value {
    /// What sort of value it is, for messages.
    pub(super) fn sort(&self) -> &'static str {
        match self {
            Self::Number(_) => "a number",
            Self::Is(_) => "a statement",
            Self::Text(_) => "a text",
            Self::Sample(_) => "a sample",
            Self::Item(_) => "a value of an axis",
            Self::List(_) => "a list",
            Self::Unknown(_) => "unknown",
        }
    }

    /// Is this its text?
    pub(super) fn is_called(&self, name: &str) -> bool {
        match self {
            Self::Text(text) => text == name,
            Self::Item(columns) => match columns.get("name") {
                Some(Self::Text(own)) => own == name,
                _ => false,
            },
            other => other.text().is_ok_and(|text| text == name),
        }
    }

    /// As text, as it chooses and is printed.
    pub(super) fn text(&self) -> Valued<String> {
        match self {
            Self::Number(n) => Ok(n.to_string()),
            Self::Is(is) => Ok(is.to_string()),
            Self::Text(text) => Ok(text.clone()),
            Self::Item(columns) => match columns.get("name") {
                Some(Self::Text(name)) => Ok(name.clone()),
                _ => wrong("a value of an axis without a name: allowed: one of its columns"),
            },
            Self::Sample(_) => wrong("a sample: allowed: its .mean, .low, .high or .half"),
            Self::List(_) => {
                wrong("a list: allowed: what goes through it, such as count(mix.member: 1)")
            }
            Self::Unknown(why) => Err(Fault::Missing(why.to_string())),
        }
    }
}

impl<'a> Names<'a> {
    /// The value of a formula.
    pub(super) fn value(&self, formula: &Formula, chosen: &Chosen) -> Valued<Value> {
        self.timed(formula, chosen).map(|(value, _)| value)
    }

    /// The value of a formula, and the clocks of the times in it.
    fn timed(&self, formula: &Formula, chosen: &Chosen) -> Valued<(Value, Clocks)> {
        let mut eval = Eval {
            names: self,
            chosen: chosen.clone(),
            depth: 0,
            steps: 0,
            clocks: Clocks::default(),
        };
        let value = eval.value(formula)?;
        Ok((value, eval.clocks))
    }

    /// That two formulas whose values are compared are no times on different clocks.
    pub(super) fn check_clocks(&self, [a, b]: [&Formula; 2], chosen: &Chosen) -> Valued<()> {
        let [(_, a), (_, b)] = [self.timed(a, chosen)?, self.timed(b, chosen)?];
        a.combined(Two::Equal, b).map_err(Fault::Wrong).map(|_| ())
    }

    /// Whether a statement holds.
    pub(super) fn holds(&self, formula: &Formula, chosen: &Chosen) -> Valued<bool> {
        statement(&self.value(formula, chosen)?)
    }

    /// Numbers of a formula; a single number is a sample without an interval.
    pub(super) fn sample(&self, formula: &Formula, chosen: &Chosen) -> Valued<Sample> {
        match self.value(formula, chosen)? {
            Value::Sample(sample) => Ok(sample),
            Value::Number(number) => Ok(Sample::new(vec![number])),
            other => wrong(format!("{}: allowed: a number or a sample", other.sort())),
        }
    }

    /// A single number.
    pub(super) fn number(&self, formula: &Formula, chosen: &Chosen) -> Valued<f64> {
        number(&self.value(formula, chosen)?)
    }

    /// A text with the values of its formulas.
    pub(super) fn text(&self, template: &Template, chosen: &Chosen) -> Valued<String> {
        let mut text = String::new();
        for piece in &template.0 {
            match piece {
                Piece::Text(plain) => text += plain,
                Piece::Of(formula, None) => text += &self.value(formula, chosen)?.text()?,
                Piece::Of(formula, Some(digits)) => {
                    let (value, half) = match self.value(formula, chosen)? {
                        Value::Sample(sample) => (sample.mean, sample.ci95),
                        other => (number(&other)?, None),
                    };
                    let behind = digits.behind;
                    text += &match (digits.sign, half) {
                        (Sign::Any, _) => format!("{value:+.behind$}"),
                        (Sign::Interval, Some(half)) => {
                            format!("{value:.behind$} ± {half:.behind$}")
                        }
                        (Sign::Minus | Sign::Interval, _) => format!("{value:.behind$}"),
                    };
                }
            }
        }
        Ok(text)
    }

    /// Each choice of a value of each of these axes for which `only` holds; the last axis is the fastest.
    pub(super) fn each(
        &self,
        axes: &[String],
        only: Option<&Formula>,
        chosen: &Chosen,
    ) -> Valued<Vec<Chosen>> {
        let mut all = vec![chosen.clone()];
        for (i, axis) in axes.iter().enumerate() {
            if axes[..i].contains(axis) {
                return wrong(format!("\"{axis}\" is there twice"));
            }
            let mut longer = Vec::new();
            for chosen in &all {
                let (name, values) = self.values(axis, chosen)?;
                if longer.len() + values.len() > MOST_CHOICES {
                    return wrong(format!("allowed: {MOST_CHOICES} choices of values"));
                }
                longer.extend(values.iter().map(|value| {
                    let mut chosen = chosen.clone();
                    chosen.push((name.to_owned(), value.clone()));
                    chosen
                }));
            }
            all = longer;
        }
        let Some(only) = only else { return Ok(all) };
        let mut kept = Vec::new();
        for chosen in all {
            let before = self.cells.asked();
            if self.holds(only, &chosen)? || self.cells.asked() != before {
                kept.push(chosen);
            }
        }
        Ok(kept)
    }

    /// The values of an axis, or of a list that the chosen value of an axis has, as in `mix.member`, and what
    /// one of them is called.
    fn values<'n>(&self, axis: &'n str, chosen: &Chosen) -> Valued<(&'n str, Values<'a>)> {
        let Some((of, column)) = axis.split_once('.') else {
            return Ok((axis, Values::Axis(self.axis(axis)?)));
        };
        let value = chosen.iter().rev().find(|(name, _)| name == of);
        let Some((_, value)) = value else {
            return wrong(format!("\"{axis}\": choose a value for {of}"));
        };
        match part_of(value, column)? {
            Value::List(values) => Ok((column, Values::List(values))),
            other => wrong(format!("\"{axis}\": {}: allowed: a list", other.sort())),
        }
    }

    fn axis(&self, name: &str) -> Valued<&'a [Value]> {
        let found = self.axes.get(name).map(Vec::as_slice);
        found.ok_or_else(|| {
            let names: Vec<&str> = self.axes.keys().map(String::as_str).collect();
            Fault::Wrong(format!(
                "\"{name}\" is no axis: allowed: {}",
                names.join(", ")
            ))
        })
    }
}

pub(super) fn statement(value: &Value) -> Valued<bool> {
    match value {
        Value::Is(is) => Ok(*is),
        other => wrong(format!("{}: allowed: a statement", other.sort())),
    }
}

pub(super) fn number(value: &Value) -> Valued<f64> {
    match value {
        Value::Number(number) => Ok(*number),
        Value::Sample(_) => wrong("a sample: allowed: its .mean, .low, .high or .half"),
        other => wrong(format!("{}: allowed: a number", other.sort())),
    }
}

impl Eval<'_, '_> {
    fn value(&mut self, formula: &Formula) -> Valued<Value> {
        if self.depth > DEEPEST {
            return wrong("a formula that needs its own value, or is nested too deep");
        }
        if self.steps > MOST_STEPS {
            return wrong(format!("takes more than {MOST_STEPS} steps"));
        }
        self.depth += 1;
        self.steps += 1;
        let value = self.of(formula);
        self.depth -= 1;
        value
    }

    fn of(&mut self, formula: &Formula) -> Valued<Value> {
        match formula {
            Formula::Number(n) => Ok(Value::Number(*n)),
            Formula::Text(text) => Ok(Value::Text(text.clone())),
            Formula::Name(name) => self.name(name),
            Formula::Part(of, part) => {
                let value = self.value(of)?;
                part_of(&value, part)
            }
            Formula::Call(what, list) => self.call(what, list),
            Formula::Over {
                what,
                axis,
                only,
                of,
            } => self.over(what, axis, only.as_deref(), of),
            Formula::At(of, at) => {
                let before = self.chosen.len();
                for (axis, value) in at {
                    let value = self.value(value)?;
                    let value = self.named_value(axis, value)?;
                    self.chosen.push((axis.clone(), value));
                }
                let value = self.value(of);
                self.chosen.truncate(before);
                value
            }
            Formula::Negative(of) => match self.value(of)? {
                Value::Sample(s) => Ok(Value::Sample(s.scaled(-1.0))),
                other => Ok(Value::Number(-number(&other)?)),
            },
            Formula::Not(of) => Ok(Value::Is(!self.holds(of)?)),
            Formula::Two(two @ (Two::And | Two::Or), a, b) => {
                let (first, made) = self.condition(a)?;
                let decides = first == (*two == Two::Or);
                if decides && !made {
                    return Ok(Value::Is(first));
                }
                let second = self.holds(b)?;
                Ok(Value::Is(if decides { first } else { second }))
            }
            Formula::Two(two, a, b) => {
                let before = mem::take(&mut self.clocks);
                let a = self.value(a)?;
                let of_a = mem::take(&mut self.clocks);
                let b = self.value(b)?;
                let of_b = mem::take(&mut self.clocks);
                self.clocks = before.and(of_a.combined(*two, of_b).map_err(Fault::Wrong)?);
                combine(*two, a, b)
            }
        }
    }

    fn holds(&mut self, formula: &Formula) -> Valued<bool> {
        statement(&self.value(formula)?)
    }

    fn number(&mut self, formula: &Formula) -> Valued<f64> {
        number(&self.value(formula)?)
    }

    /// Whether a statement holds, and whether that rests on numbers that are made up.
    fn condition(&mut self, formula: &Formula) -> Valued<(bool, bool)> {
        let before = self.names.cells.asked();
        let holds = self.holds(formula)?;
        Ok((holds, self.names.cells.asked() != before))
    }

    /// The value of an axis with the name that was chosen, with its columns.
    fn named_value(&self, axis: &str, value: Value) -> Valued<Value> {
        let Some(values) = self.names.axes.get(axis) else {
            return match axis {
                "policy" | "program" | "run" | EXPERIMENT | INTERVAL => {
                    Ok(Value::Text(value.text()?))
                }
                _ => self.names.axis(axis).map(|_| value),
            };
        };
        let name = value.text()?;
        let found = values.iter().find(|v| v.is_called(&name));
        match (found, axis) {
            (Some(found), _) => Ok(found.clone()),
            // Programs of an experiment that are no stand-ins.
            (None, "program") => Ok(Value::Text(name)),
            (None, _) => {
                let names: Vec<String> = values.iter().filter_map(|v| v.text().ok()).collect();
                wrong(format!(
                    "{axis} = \"{name}\": allowed: {}",
                    names.join(", ")
                ))
            }
        }
    }

    fn name(&mut self, name: &str) -> Valued<Value> {
        let chosen = self.chosen.iter().rev().find(|(axis, _)| axis == name);
        if let Some((_, value)) = chosen {
            return Ok(value.clone());
        }
        let names = self.names;
        if let Some(formula) = names.lets.iter().find_map(|lets| lets.get(name)) {
            return self.value(formula);
        }
        if let Some(value) = names.known.get(name) {
            return Ok(value.clone());
        }
        match name {
            "true" => return Ok(Value::Is(true)),
            "false" => return Ok(Value::Is(false)),
            "inf" => return Ok(Value::Number(f64::INFINITY)),
            _ if names.axes.contains_key(name) => {
                return wrong(format!("choose a value for {name}"));
            }
            _ => {}
        }
        self.counted(name, None)
            .unwrap_or_else(|| wrong(format!("\"{name}\" is the name of nothing")))
    }

    fn counted(&mut self, what: &str, of: Option<&str>) -> Option<Valued<Value>> {
        let chosen = |axis: &str| {
            let found = self.chosen.iter().rev().find(|(name, _)| name == axis);
            found.and_then(|(_, value)| value.text().ok())
        };
        let counted = self.names.cells.counted(what, of, &chosen)?;
        let clock = self.names.cells.clock(what, &chosen);
        self.clocks = mem::take(&mut self.clocks).and(clock);
        Some(counted)
    }

    fn call(&mut self, what: &str, list: &[Formula]) -> Valued<Value> {
        match (what, list) {
            ("if", [is, yes, no]) => {
                let (holds, made) = self.condition(is)?;
                let (chosen, other) = if holds { (yes, no) } else { (no, yes) };
                if made {
                    self.value(other)?;
                }
                return self.value(chosen);
            }
            ("abs", [of]) => {
                let value = self.value(of)?;
                return Ok(match value {
                    Value::Sample(s) => Value::Sample(s.map(f64::abs)),
                    other => Value::Number(number(&other)?.abs()),
                });
            }
            ("at_least" | "at_most", [bound, of]) => {
                let bound = self.value(bound)?;
                return bounded(what == "at_least", bound, self.value(of)?);
            }
            ("rounded", [digits, of]) => {
                let digits = self.number(digits)?;
                if !(0.0..=MOST_DIGITS).contains(&digits) || digits.fract() != 0.0 {
                    let allowed = format!("allowed: 0 to {MOST_DIGITS} digits");
                    return wrong(format!("rounded({digits}, number): {allowed}"));
                }
                let power = 10f64.powf(digits);
                let rounded = (self.number(of)? * power).round() / power;
                return Ok(Value::Number(rounded));
            }
            ("in_range", [low, high, of]) => {
                let (low, high) = (self.number(low)?, self.number(high)?);
                let Value::Sample(sample) = self.value(of)? else {
                    return wrong("in_range(low, high, sample): the third is no sample");
                };
                let verdict = verdict::range(low, high, &known_sample(sample)?);
                return Ok(Value::Is(verdict == Verdict::Match));
            }
            ("classified", [of, hot, reuse, wpd]) => {
                let of = self.value(of)?;
                let [hot, reuse, wpd] = [hot, reuse, wpd].map(|formula| self.value(formula));
                return thresholds::classified(&of, [&hot?, &reuse?, &wpd?]);
            }
            ("has" | "has_input", [of]) => {
                let name = self.value(of)?.text()?;
                if self.names.known.contains_key(HAS_ALL) {
                    return Ok(Value::Is(true));
                }
                return Ok(Value::Is(if what == "has" {
                    let none = || Fault::Wrong("has: not allowed in a draw".into());
                    self.names.hosts.ok_or_else(none)?.has_program(&name)
                } else {
                    self.has_input(&name)?
                }));
            }
            (_, [of]) => {
                let text = self.value(of)?.text()?;
                if let Some(value) = self.counted(what, Some(&text)) {
                    return value;
                }
            }
            _ => {}
        }
        let n = list.len();
        wrong(format!("\"{what}\" is nothing that takes {n} values"))
    }

    /// Is something of this name in the folder of the inputs?
    fn has_input(&self, name: &str) -> Valued<bool> {
        let folder = self.names.known.get(INPUTS).map(Value::text).transpose()?;
        let folder = folder.ok_or_else(|| Fault::Wrong("has_input: no folder of inputs".into()))?;
        Ok(Path::new(&folder).join(name).exists())
    }

    /// A formula for each value of an axis, and what these come to.
    fn over(
        &mut self,
        what: &str,
        axis: &str,
        only: Option<&Formula>,
        of: &[Formula],
    ) -> Valued<Value> {
        let (name, values) = self.names.values(axis, &self.chosen)?;
        let before = mem::take(&mut self.clocks);
        let mut columns: Vec<Vec<Value>> = vec![Vec::new(); of.len()];
        for value in values.iter() {
            self.chosen.push((name.to_owned(), value.clone()));
            let found = self.row_of(only, of);
            self.chosen.pop();
            for (column, value) in columns.iter_mut().zip(found?.into_iter().flatten()) {
                column.push(value);
            }
            // The first decides alone, and the others need not be there.
            if what == "first" && columns.iter().any(|c| !c.is_empty()) {
                break;
            }
        }
        let clocks = mem::take(&mut self.clocks).folded(what, columns.len());
        self.clocks = before.and(clocks.map_err(Fault::Wrong)?);
        if what == "thresholds" {
            return thresholds::fitted(&columns, self.names.cells.asked().is_some());
        }
        folded(what, &columns)
    }

    /// The values of formulas, unless `only` does not hold.
    fn row_of(&mut self, only: Option<&Formula>, of: &[Formula]) -> Valued<Option<Vec<Value>>> {
        if let Some(only) = only
            && !self.holds(only)?
        {
            return Ok(None);
        }
        let values: Valued<Vec<Value>> = of.iter().map(|f| self.value(f)).collect();
        values.map(Some)
    }
}

fn part_of(value: &Value, part: &str) -> Valued<Value> {
    const NO_INTERVAL: &str = "an interval needs two repetitions at least";
    match value {
        Value::Sample(sample) => {
            let ends = sample.interval();
            let end = match part {
                "mean" => Some(known_sample(sample.clone())?.mean),
                "low" => ends.map(|(low, _)| low),
                "high" => ends.map(|(_, high)| high),
                "half" => sample.ci95,
                "least" | "most" => {
                    let all = known_sample(sample.clone())?.values;
                    let all = all.into_iter();
                    match part {
                        "least" => all.reduce(f64::min),
                        _ => all.reduce(f64::max),
                    }
                }
                _ => {
                    return wrong(format!(
                        ".{part} of a sample: allowed: mean, low, high, half, least, most"
                    ));
                }
            };
            let end = end.ok_or_else(|| Fault::Missing(NO_INTERVAL.to_owned()))?;
            Ok(Value::Number(end))
        }
        Value::Item(columns) => match columns.get(part) {
            Some(Value::Unknown(why)) => Err(Fault::Missing(why.to_string())),
            Some(value) => Ok(value.clone()),
            None => {
                let names: Vec<&str> = columns.keys().map(String::as_str).collect();
                let names = names.join(", ");
                wrong(format!(".{part} of a value of an axis: allowed: {names}"))
            }
        },
        other => wrong(format!(".{part}: {} has no parts", other.sort())),
    }
}

/// Nobody knows a number that is none.
pub(super) fn unknown<T>() -> Valued<T> {
    Err(Fault::Missing(
        "a number is unknown, as after a division by 0".to_owned(),
    ))
}

/// A sample whose mean is a number.
pub(super) fn known_sample(sample: Sample) -> Valued<Sample> {
    if sample.mean.is_nan() {
        unknown()
    } else {
        Ok(sample)
    }
}
