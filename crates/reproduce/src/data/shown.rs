//! What is shown of rows beside numbers: tables of single cases, and figures.

use piebald_report::{Curve, CurvePoint, Panel, PaperFigure};
use serde::{Deserialize, Deserializer, de};

use super::{
    eval::{Chosen, Fault, Names, Valued},
    formula::{Formula, Template},
    making::words,
};
use crate::row::Row;

/// Single cases, as a table with a line for each choice of values.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TableFile {
    pub(super) title: String,
    #[serde(default)]
    each: Vec<String>,
    when: Option<Formula>,
    column: Vec<ColumnFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnFile {
    /// Columns for each of these values.
    #[serde(default)]
    each: Vec<String>,
    name: Template,
    text: Template,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FigureFile {
    /// Rows with which it is drawn.
    pub(super) rows: Vec<String>,
    #[serde(deserialize_with = "names")]
    pub(super) experiment: Vec<String>,
    pub(super) name: String,
    text: String,
    x: String,
    y: String,
    panel: PanelFile,
    /// The axis along which points lie.
    over: String,
    /// Where a point lies; without it, points lie side by side and have the names of the axis's values.
    at: Option<Formula>,
    curve: Vec<CurveFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PanelFile {
    #[serde(default)]
    each: Vec<String>,
    when: Option<Formula>,
    title: Template,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CurveFile {
    /// A curve for each of these values.
    #[serde(default)]
    each: Vec<String>,
    name: Template,
    is: Formula,
    /// It has a point where this holds.
    when: Option<Formula>,
    #[serde(default)]
    dashed: bool,
}

/// One name of an experiment, or a list of some.
pub(super) fn names<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<String>, D::Error> {
    let value = toml::Value::deserialize(d)?;
    words(Some(value), "experiment").map_err(de::Error::custom)
}

/// What a formula came to for a row: what is missing is a reason, what is wrong ends all.
pub(super) fn known<T>(found: Valued<T>) -> Result<Result<T, String>, String> {
    match found {
        Ok(value) => Ok(Ok(value)),
        Err(Fault::Missing(why)) => Ok(Err(why)),
        Err(Fault::Wrong(says)) => Err(says),
    }
}

impl TableFile {
    /// Adds it to a row, unless it has no line.
    ///
    /// # Errors
    /// What is wrong with a formula.
    pub(super) fn fill(&self, row: &mut Row, names: &Names<'_>) -> Result<(), String> {
        let all = Chosen::new();
        let mut columns = Vec::new();
        for column in &self.column {
            let each = known(names.each(&column.each, None, &all))?.unwrap_or_default();
            columns.extend(each.into_iter().map(|of| (column, of)));
        }
        let heads = columns
            .iter()
            .map(|(column, of)| names.text(&column.name, of));
        let heads = known(heads.collect::<Valued<Vec<String>>>())?.unwrap_or_default();
        let lines = match known(names.each(&self.each, self.when.as_ref(), &all))? {
            Ok(lines) => lines,
            Err(why) => {
                row.lacks(&why);
                return Ok(());
            }
        };
        let mut rows = Vec::new();
        for line in lines {
            let cell = |(column, of): &(&ColumnFile, Chosen)| {
                let chosen = [line.clone(), of.clone()].concat();
                let text = known(names.text(&column.text, &chosen))?;
                // What was not run is told by the row's values.
                Ok::<_, String>(text.unwrap_or_else(|_| "-".to_owned()))
            };
            rows.push(columns.iter().map(cell).collect::<Result<Vec<_>, _>>()?);
        }
        if !rows.is_empty() {
            row.cases(&self.title, heads, rows);
        }
        Ok(())
    }
}

impl FigureFile {
    /// The figure, unless nothing of it was counted.
    ///
    /// # Errors
    /// What is wrong with a formula.
    pub(super) fn draw(&self, names: &Names<'_>) -> Result<Option<PaperFigure>, String> {
        let each = names.each(&self.panel.each, self.panel.when.as_ref(), &Chosen::new());
        let Ok(each) = known(each)? else {
            return Ok(None);
        };
        let mut panels = Vec::new();
        for chosen in each {
            let title = known(names.text(&self.panel.title, &chosen))?;
            let mut curves = Vec::new();
            for curve in &self.curve {
                let each = names.each(&curve.each, None, &chosen);
                for chosen in known(each)?.unwrap_or_default() {
                    curves.push(self.curve(curve, names, &chosen)?);
                }
            }
            panels.push(Panel {
                title: title.unwrap_or_default(),
                curves,
            });
        }
        for panel in &mut panels {
            panel.curves.retain(|curve| !curve.points.is_empty());
        }
        panels.retain(|panel| !panel.curves.is_empty());
        let names_of = |each: Vec<Chosen>| -> Valued<Vec<String>> {
            let text = |chosen: &Chosen| chosen.last().map_or(Ok(String::new()), |(_, v)| v.text());
            each.iter().map(text).collect()
        };
        let x_names = match self.at {
            Some(_) => Vec::new(),
            None => {
                let over = std::slice::from_ref(&self.over);
                let each = names.each(over, None, &Chosen::new());
                known(each.and_then(names_of))?.unwrap_or_default()
            }
        };
        Ok((!panels.is_empty()).then(|| PaperFigure {
            name: self.name.clone(),
            text: self.text.clone(),
            x: self.x.clone(),
            y: self.y.clone(),
            panels,
            x_names,
        }))
    }

    fn curve(
        &self,
        curve: &CurveFile,
        names: &Names<'_>,
        chosen: &Chosen,
    ) -> Result<Curve, String> {
        let mut points = Vec::new();
        let over = std::slice::from_ref(&self.over);
        let each = names.each(over, curve.when.as_ref(), chosen);
        for (place, chosen) in (1u32..).zip(known(each)?.unwrap_or_default()) {
            let x = match &self.at {
                Some(at) => known(names.number(at, &chosen))?,
                None => Ok(place.into()),
            };
            let y = known(names.sample(&curve.is, &chosen))?;
            if let (Ok(x), Ok(y)) = (x, y)
                && x.is_finite()
                && y.is_known()
            {
                points.push(CurvePoint {
                    x,
                    y: y.mean,
                    ci95: y.ci95.filter(|_| !curve.dashed),
                });
            }
        }
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Ok(Curve {
            name: known(names.text(&curve.name, chosen))?.unwrap_or_default(),
            dashed: curve.dashed,
            points,
        })
    }
}
