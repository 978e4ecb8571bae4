//! The points of a file's axes.

use std::collections::HashMap;

use crate::{Document, KeyPath, Problem, Refused, document::SWEEP};

/// Most points of all axes together.
const MAX_POINTS: usize = 10_000;

/// One point of a sweep.
pub struct Point {
    /// The file with the values of this point laid over it.
    pub document: Document,
    /// Keys of the axes, and the value of each.
    pub axes: Vec<(String, String)>,
}

impl Document {
    /// The points of the file's axes, the last axis fastest; without axes the file itself.
    ///
    /// # Errors
    /// An axis without values or with one twice, in the same words or in others, one that is no key, two of one
    /// key, one whose key a command line gives, or too many points.
    pub fn points(&self) -> Result<Vec<Point>, Refused> {
        let axes = self.axes()?;
        self.check_axes(&axes)?;
        let mut points = vec![Point {
            document: self.clone(),
            axes: Vec::new(),
        }];
        let mut problems = Vec::new();
        for (at, values) in axes {
            let name = match at.parts().last() {
                Some(crate::Part::Key(name)) => name.clone(),
                _ => continue,
            };
            let key: KeyPath = match name.parse() {
                Ok(key) => key,
                Err(says) => {
                    problems.push(Problem::at(at, says));
                    continue;
                }
            };
            if values.is_empty() {
                problems.push(Problem::at(at, "allowed: a list of at least one value"));
            } else if points.len() * values.len() > MAX_POINTS {
                let says = format!("allowed: {MAX_POINTS} points of all axes together");
                problems.push(Problem::at(at, says));
            } else {
                let with = |point: &Point, i: usize, value: &String| Point {
                    document: point.document.clone().at(key.clone(), at.item(i)),
                    axes: [&point.axes[..], &[(name.clone(), value.clone())]].concat(),
                };
                let each = |point: &Point| -> Vec<Point> {
                    let values = values.iter().enumerate();
                    values.map(|(i, value)| with(point, i, value)).collect()
                };
                points = points.iter().flat_map(each).collect();
            }
        }
        if problems.is_empty() {
            problems.extend(same(&points));
        }
        if problems.is_empty() {
            Ok(points)
        } else {
            Err(self.refuse(problems))
        }
    }
}

/// The first two points that ask for the same in other words, such as `20k` and `20000`. What is wrong with a point
/// is told when it is read.
fn same(points: &[Point]) -> Option<Problem> {
    let mut seen: HashMap<String, &Point> = HashMap::new();
    for point in points.iter().filter(|point| !point.axes.is_empty()) {
        let experiment = point.document.experiment().ok();
        let Some(text) = experiment.and_then(|e| serde_json::to_string(&e).ok()) else {
            continue;
        };
        let Some(first) = seen.insert(text, point) else {
            continue;
        };
        let differ = first.axes.iter().zip(&point.axes).filter(|(a, b)| a != b);
        let told: Vec<String> = differ
            .map(|((key, a), (_, b))| format!("{key} = {a} and {b}"))
            .collect();
        let says = format!(
            "{} ask for the same; allowed: each value once",
            told.join(", ")
        );
        return Some(Problem::at(KeyPath::of(SWEEP), says));
    }
    None
}
