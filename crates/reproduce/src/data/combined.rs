//! Two values of formulas, put together.

use piebald_report::Sample;

use super::{
    eval::{Value, Valued, found, number, unknown, wrong},
    formula::Two,
};

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
