//! What a paper reports beside what came out here.
//!
//! Vocabulary: a *target* is a row of results of a paper, a *value* one of its numbers,
//! a *predicate* a statement about curves that holds or does not, a *verdict* what the
//! comparison came to. Whoever compares decides; here is how it is written down and
//! shown, the same for every paper.

mod html;
mod table;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    ReportError,
    format::{clean, number},
    json,
};

pub use html::reproduction_to_html;
pub use table::reproduction_to_table;

/// Schema number of a reproduction's JSON.
pub const REPRODUCTION_SCHEMA: u32 = 1;

/// A paper's results and ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Reproduction {
    /// [`REPRODUCTION_SCHEMA`].
    pub schema: u32,
    /// The system, as the command line names it: `rainbow`.
    pub system: String,
    /// The paper.
    pub title: String,
    /// A short form of the experiments was run.
    pub quick: bool,
    /// Seed of all draws.
    pub seed: u64,
    /// Of the program that made it.
    pub version: String,
    /// Measured references of each program and run.
    pub budget_refs: u64,
    /// References before them.
    pub warmup_refs: u64,
    /// Under what conditions, for people: machine, repetitions, inputs.
    pub conditions: Vec<String>,
    /// The targets, in the paper's order.
    pub targets: Vec<Target>,
    /// The paper's figures, drawn from our numbers.
    pub figures: Vec<PaperFigure>,
    /// References that were simulated in all.
    pub simulated_refs: u64,
    /// Time that it took on the computer that simulated.
    pub host_seconds: f64,
    /// Runs that were not made, as a store had them; not part of the record.
    #[serde(skip)]
    pub stored: u64,
    /// The command that gives the same again.
    pub command: Option<String>,
    /// What the two numbers of a value are, if not a paper's and ours: `paper` and `measured` are
    /// then shown under these names, and their ratio beside them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<[String; 2]>,
}

/// What sort of result a target is, and by which rule it is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub enum TargetKind {
    /// A headline number: sign and rough size.
    H,
    /// A shape: order, knee, trend.
    S,
    /// A constant or derived figure: exact.
    C,
    /// A bound on an overhead.
    O,
    /// Given to the model or cited by the paper: shown, never a match.
    G,
}

/// What a comparison came to.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// By the rule of its kind.
    Match,
    /// The right sign, sure at 95 %, within a factor of two.
    Near,
    /// Neither.
    Miss,
    /// Shown only.
    Given,
    /// Not run, for the reason that is given.
    NotRun,
}

impl Verdict {
    /// As it is printed.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Match => "match",
            Self::Near => "near",
            Self::Miss => "miss",
            Self::Given => "given",
            Self::NotRun => "not run",
        }
    }
}

/// A row of results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Target {
    /// `R-5`.
    pub id: String,
    /// What it is, with its place in the paper.
    pub title: String,
    /// Which rule judges it.
    pub kind: TargetKind,
    /// What the comparison came to.
    pub verdict: Verdict,
    /// Why it is no match, or what has to be known to read it.
    pub why: Option<String>,
    /// Inputs stand in for others that cannot be had.
    pub stand_in: bool,
    /// The model was calibrated with it, so that it can't be a match.
    pub calibrated: bool,
    /// Its numbers.
    pub values: Vec<Value>,
    /// Its statements.
    pub predicates: Vec<Predicate>,
    /// What is behind its numbers, case by case.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<CaseTable>,
}

/// Single cases of a target: of mixes, of programs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CaseTable {
    /// What is shown.
    pub title: String,
    /// Names of the columns, the first of which names the case.
    pub columns: Vec<String>,
    /// As many texts as there are columns, in each.
    pub rows: Vec<Vec<String>>,
}

impl CaseTable {
    /// Without what is no text.
    fn cleaned(&self) -> Self {
        let all = |texts: &Vec<String>| texts.iter().map(|text| clean(text)).collect();
        Self {
            title: clean(&self.title),
            columns: all(&self.columns),
            rows: self.rows.iter().map(all).collect(),
        }
    }
}

/// A number of a paper and ours.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Value {
    /// What it is.
    pub name: String,
    /// The paper's.
    pub paper: Published,
    /// Ours, if it was measured.
    pub measured: Option<f64>,
    /// Ends of its 95 % interval, if there is one.
    pub ci95: Option<[f64; 2]>,
    /// Of both.
    pub unit: String,
}

impl Value {
    /// `measured / paper`; `None` without both, and where the latter is 0.
    pub fn ratio(&self) -> Option<f64> {
        match (&self.paper, self.measured) {
            (Published::Number(paper), Some(measured)) if *paper != 0.0 => Some(measured / paper),
            _ => None,
        }
    }
}

/// What a paper says of a number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Published {
    /// The number.
    Number(f64),
    /// A range or a word, such as `>= 25`.
    Text(String),
    /// Nothing.
    Nothing,
}

/// A statement that holds or does not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Predicate {
    /// The statement.
    pub text: String,
    /// Whether it holds; `None` = not run.
    pub holds: Option<bool>,
}

/// A figure of a paper from our numbers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PaperFigure {
    /// `Figure 10`.
    pub name: String,
    /// How to read it.
    pub text: String,
    /// Of the horizontal axis, with the unit.
    pub x: String,
    /// Names of the places 1, 2 and so on of the horizontal axis, where it has no numbers: points
    /// are not joined there. Empty = it has numbers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub x_names: Vec<String>,
    /// Of the vertical axis, with the unit.
    pub y: String,
    /// Its parts.
    pub panels: Vec<Panel>,
}

/// One part of a figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Panel {
    /// What it shows.
    pub title: String,
    /// Its curves.
    pub curves: Vec<Curve>,
}

/// A curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Curve {
    /// What it shows; curves of equal names have equal colours in a figure.
    pub name: String,
    /// Drawn with gaps, which the legend says: for what the others are compared with.
    pub dashed: bool,
    /// By rising x.
    pub points: Vec<CurvePoint>,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CurvePoint {
    /// Where.
    pub x: f64,
    /// How much.
    #[serde(with = "json::nullable")]
    #[schemars(with = "Option<f64>")]
    pub y: f64,
    /// Half of its 95 % interval.
    pub ci95: Option<f64>,
}

impl Reproduction {
    /// Headings of the table of a target: name, both numbers, their ratio if
    /// [`columns`](Self::columns) are given, interval, unit.
    pub(crate) fn headings(&self) -> Vec<String> {
        let [paper, measured] = match &self.columns {
            Some(names) => [&names[0], &names[1]].map(|n| clean(n)),
            None => ["paper", "measured"].map(str::to_owned),
        };
        let ratio = self.columns.is_some().then(|| "ratio".to_owned());
        let mut all = vec![String::new(), paper, measured];
        all.extend(ratio);
        all.extend(["95 % interval", "unit"].map(str::to_owned));
        all
    }

    /// The cells of a value below [`headings`](Self::headings).
    pub(crate) fn row(&self, value: &Value) -> Vec<String> {
        let [paper, measured, interval] = table::cells(value);
        let ratio = self.columns.is_some();
        let ratio = ratio.then(|| value.ratio().map_or_else(|| "-".to_owned(), number));
        let mut all = vec![clean(&value.name), paper, measured];
        all.extend(ratio);
        all.extend([interval, clean(&value.unit)]);
        all
    }

    /// How many targets came to a verdict.
    pub fn count(&self, verdict: Verdict) -> usize {
        let mut n = 0;
        for target in &self.targets {
            n += usize::from(target.verdict == verdict);
        }
        n
    }

    /// The verdicts and how often each was given, without those that were not.
    pub fn summary(&self) -> String {
        let all = [
            Verdict::Match,
            Verdict::Near,
            Verdict::Miss,
            Verdict::Given,
            Verdict::NotRun,
        ];
        let given = all.into_iter().filter(|v| self.count(*v) > 0);
        let parts: Vec<String> = given
            .map(|v| format!("{} {}", self.count(v), v.as_str()))
            .collect();
        parts.join(", ")
    }
}

/// A reproduction as JSON, with a final newline.
///
/// # Errors
/// As [`to_json`](crate::to_json).
pub fn reproduction_to_json(reproduction: &Reproduction) -> Result<String, ReportError> {
    json::lines(reproduction)
}
