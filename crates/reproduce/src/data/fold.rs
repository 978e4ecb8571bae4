//! What values of formulas come to together: over an axis, and two of them.

use super::{
    eval::{Fault, Value, Valued, found, known_sample, number, statement, unknown, wrong},
    formula::Two,
};
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

pub(super) fn combine(two: Two, a: Value, b: Value) -> Valued<Value> {
    match (a, b) {
        (Value::Text(a), Value::Text(b)) => match two {
            Two::Equal => Ok(Value::Is(a == b)),
            Two::Unequal => Ok(Value::Is(a != b)),
            _ => wrong("texts: allowed: == and !="),
        },
        (Value::Is(a), Value::Is(b)) => match two {
            Two::Equal => Ok(Value::Is(a == b)),
            Two::Unequal => Ok(Value::Is(a != b)),
            _ => wrong("statements: allowed: &&, ||, == and !="),
        },
        (a @ Value::Item(_), b) | (a, b @ Value::Item(_)) => {
            combine(two, Value::Text(a.text()?), Value::Text(b.text()?))
        }
        (Value::Sample(a), Value::Sample(b)) => of_samples(two, &a, &b),
        (Value::Sample(a), b) => {
            let b = number(&b)?;
            match two {
                Two::Plus => Ok(Value::Sample(a.map(|v| v + b))),
                Two::Minus => Ok(Value::Sample(a.map(|v| v - b))),
                Two::Times => Ok(Value::Sample(a.scaled(b))),
                Two::Over => Ok(Value::Sample(a.map(|v| v / b))),
                _ => wrong("a sample is compared: allowed: its .mean, .low or .high"),
            }
        }
        (a, Value::Sample(b)) => {
            let a = number(&a)?;
            match two {
                Two::Plus => Ok(Value::Sample(b.map(|v| a + v))),
                Two::Minus => Ok(Value::Sample(b.map(|v| a - v))),
                Two::Times => Ok(Value::Sample(b.scaled(a))),
                Two::Over => Ok(Value::Sample(b.map(|v| a / v))),
                _ => wrong("a sample is compared: allowed: its .mean, .low or .high"),
            }
        }
        (a, b) => {
            let (a, b) = (number(&a)?, number(&b)?);
            if (a.is_nan() || b.is_nan())
                && !matches!(two, Two::Plus | Two::Minus | Two::Times | Two::Over)
            {
                return unknown();
            }
            Ok(match two {
                Two::Plus => Value::Number(a + b),
                Two::Minus => Value::Number(a - b),
                Two::Times => Value::Number(a * b),
                Two::Over => Value::Number(a / b),
                Two::Equal => Value::Is(a == b),
                Two::Unequal => Value::Is(a != b),
                Two::AtMost => Value::Is(a <= b),
                Two::AtLeast => Value::Is(a >= b),
                Two::Less => Value::Is(a < b),
                Two::More => Value::Is(a > b),
                Two::And | Two::Or => return wrong("numbers are no statements"),
            })
        }
    }
}

/// The larger or the smaller of a bound and a value, repetition by repetition.
pub(super) fn bounded(larger: bool, bound: Value, of: Value) -> Valued<Value> {
    // What is unknown stays unknown.
    let choose = |bound: f64, x: f64| {
        let is_beyond = if larger { x < bound } else { x > bound };
        if is_beyond || bound.is_nan() {
            bound
        } else {
            x
        }
    };
    match (bound, of) {
        (Value::Sample(bound), Value::Sample(of)) => {
            let unequal = || format!("{} repetitions beside {}", bound.n(), of.n());
            found(bound.paired(&of, choose).ok_or_else(unequal))
        }
        (Value::Sample(bound), of) => {
            let of = number(&of)?;
            Ok(Value::Sample(bound.map(|bound| choose(bound, of))))
        }
        (bound, of) => {
            let bound = number(&bound)?;
            Ok(match of {
                Value::Sample(of) => Value::Sample(of.map(|x| choose(bound, x))),
                other => Value::Number(choose(bound, number(&other)?)),
            })
        }
    }
}

/// Repetition by repetition.
fn of_samples(two: Two, a: &Sample, b: &Sample) -> Valued<Value> {
    let unequal = || format!("{} repetitions beside {}", a.n(), b.n());
    found(match two {
        Two::Minus => a.paired(b, |a, b| a - b).ok_or_else(unequal),
        Two::Over => a.ratio(b).ok_or_else(unequal),
        Two::Plus => a.paired(b, |a, b| a + b).ok_or_else(unequal),
        Two::Times => a.paired(b, |a, b| a * b).ok_or_else(unequal),
        _ => return wrong("samples are compared: allowed: their .mean, .low or .high"),
    })
}
