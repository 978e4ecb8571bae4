//! What the values of a formula over an axis come to.

use super::eval::{Fault, Value, Valued, found, known_sample, number, statement, unknown, wrong};
use crate::row::{self, Found};
use piebald_report::Sample;

pub(super) fn folded(what: &str, columns: &[Vec<Value>]) -> Valued<Value> {
    let none = || Fault::Missing("no case was run".to_owned());
    let numbers = |column: &[Value]| column.iter().map(number).collect::<Valued<Vec<f64>>>();
    match (what, columns) {
        ("correlation", [a, b]) => Ok(Value::Number(row::correlation(&numbers(a)?, &numbers(b)?))),
        ("rank_correlation", [a, b]) => {
            let ranks = |column: &[Value]| numbers(column).map(|all| row::ranks(&all));
            Ok(Value::Number(row::correlation(&ranks(a)?, &ranks(b)?)))
        }
        ("at_max", [of, by]) => {
            let by = by.iter().map(mean_of).collect::<Valued<Vec<f64>>>()?;
            if by.iter().any(|n| n.is_nan()) {
                return unknown();
            }
            let largest = of.iter().zip(&by).max_by(|a, b| a.1.total_cmp(b.1));
            largest.map(|(of, _)| of.clone()).ok_or_else(none)
        }
        ("first", [of]) => of.first().cloned().ok_or_else(none),
        ("last", [of]) => of.last().cloned().ok_or_else(none),
        ("count", [of]) => Ok(Value::Number(of.len() as f64)),
        ("names", [of]) => {
            let names: Valued<Vec<String>> = of.iter().map(Value::text).collect();
            Ok(Value::Text(names?.join(", ")))
        }
        ("all" | "any", [of]) => {
            let holds: Valued<Vec<bool>> = of.iter().map(statement).collect();
            let holds = holds?;
            if holds.is_empty() {
                return Err(none());
            }
            let mut holds = holds.into_iter();
            Ok(Value::Is(match what {
                "all" => holds.all(|is| is),
                _ => holds.any(|is| is),
            }))
        }
        ("cases", [of]) => {
            let all = numbers(of)?;
            if all.is_empty() {
                return Err(none());
            }
            if all.iter().any(|n| n.is_nan()) {
                return unknown();
            }
            Ok(Value::Sample(Sample::new(all)))
        }
        ("falls", [of]) => {
            let all = numbers(of)?;
            if all.iter().any(|n| n.is_nan()) {
                return unknown();
            }
            if all.len() < 2 {
                return Err(none());
            }
            Ok(Value::Is(all.windows(2).all(|w| w[1] < w[0])))
        }
        ("falls", [of, bounds]) => {
            let (all, bounds) = (numbers(of)?, numbers(bounds)?);
            if all.iter().chain(&bounds).any(|n| n.is_nan()) {
                return unknown();
            }
            if all.len() < 2 {
                return Err(none());
            }
            let mut each = all.iter().skip(1).zip(&bounds);
            Ok(Value::Is(each.all(|(x, bound)| x <= bound)))
        }
        ("ranked", [texts, by]) => {
            let texts: Valued<Vec<String>> = texts.iter().map(Value::text).collect();
            let mut all: Vec<(f64, String)> = numbers(by)?.into_iter().zip(texts?).collect();
            if all.iter().any(|(n, _)| n.is_nan()) {
                return unknown();
            }
            all.sort_by(|(a, _), (b, _)| a.total_cmp(b));
            let texts: Vec<String> = all.into_iter().map(|(_, text)| text).collect();
            Ok(Value::Text(texts.join(", ")))
        }
        ("mean" | "sum" | "min" | "max" | "farthest", [of])
            if of.iter().any(|v| matches!(v, Value::Sample(_))) =>
        {
            let samples: Vec<Found> = of.iter().map(sampled).collect::<Valued<_>>()?;
            let lengths = samples.iter().flatten().map(Sample::n);
            if let (Some(least), Some(most)) = (lengths.clone().min(), lengths.max())
                && least != most
            {
                return Err(Fault::Missing(format!("{least} repetitions beside {most}")));
            }
            found(match what {
                "mean" => row::mean(&samples),
                "sum" => row::sum(&samples),
                "farthest" => row::farthest(&samples),
                _ => row::extreme(&samples, what == "max"),
            })
        }
        ("mean" | "min" | "max" | "sum" | "span" | "rise", [of]) => {
            let all = numbers(of)?;
            if all.is_empty() {
                return Err(none());
            }
            if all.iter().any(|n| n.is_nan()) {
                return unknown();
            }
            let least = all.iter().copied().fold(f64::INFINITY, f64::min);
            let most = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let sum = all.iter().sum::<f64>();
            Ok(Value::Number(match what {
                "min" => least,
                "max" => most,
                "sum" => sum,
                "span" => most - least,
                "rise" => all.windows(2).map(|w| w[1] - w[0]).fold(0.0, f64::max),
                _ => sum / all.len() as f64,
            }))
        }
        _ => wrong(format!(
            "\"{what}\" of {} formulas over an axis: allowed: mean, min, max, sum, span, rise, falls, \
             farthest, first, last, count, names, all, any, cases of one, correlation, rank_correlation, at_max, falls and ranked of \
             two, thresholds of five",
            columns.len()
        )),
    }
}

/// A number, or the mean of a sample.
fn mean_of(value: &Value) -> Valued<f64> {
    match value {
        Value::Sample(sample) => Ok(known_sample(sample.clone())?.mean),
        other => number(other),
    }
}

fn sampled(value: &Value) -> Valued<Found> {
    match value {
        Value::Sample(sample) => Ok(Ok(known_sample(sample.clone())?)),
        other => wrong(format!("{} among samples", other.sort())),
    }
}
