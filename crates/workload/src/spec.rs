//! Names, parameters and values of built-in programs.

use core::fmt;

use piebald_units::Bytes;

/// What a parameter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bytes; written with a unit, as in `64MiB`.
    Bytes,
    /// A plain number; `K`, `M` and `G` stand for 10^3, 10^6 and 10^9.
    Count,
}

/// One parameter of a built-in program.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name.
    pub key: &'static str,
    /// What it counts.
    pub unit: Unit,
    /// Value if it is not given.
    pub default: u64,
    /// Least value.
    pub min: u64,
    /// Largest value.
    pub max: u64,
    /// Only powers of two are allowed.
    pub pow2: bool,
    /// What it means.
    pub about: &'static str,
}

/// A built-in program's name and parameters. The first parameter may be given
/// without its name.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// Its name.
    pub name: &'static str,
    /// What it computes and what it is for, in one line.
    pub about: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
}

/// A parameter's value as text could not be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key} = \"{value}\" {problem}; allowed: {allowed}")]
pub struct ParamError {
    /// The parameter.
    pub key: String,
    /// What was given.
    pub value: String,
    /// What is wrong with it.
    pub problem: String,
    /// What is allowed.
    pub allowed: String,
}

/// Values for all parameters of a spec, in its order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Values(Vec<u64>);

impl Values {
    /// Every parameter's default.
    pub fn defaults(spec: &Spec) -> Self {
        Self(spec.params.iter().map(|p| p.default).collect())
    }

    /// Value of the parameter at `index` of the spec; 0 beyond its end.
    pub fn get(&self, index: usize) -> u64 {
        self.0.get(index).copied().unwrap_or(0)
    }

    pub(crate) fn set(&mut self, index: usize, value: u64) {
        if let Some(slot) = self.0.get_mut(index) {
            *slot = value;
        }
    }
}

impl Param {
    /// A count without further restriction.
    pub(crate) const fn count(
        key: &'static str,
        about: &'static str,
        default: u64,
        min: u64,
        max: u64,
    ) -> Self {
        Self {
            key,
            unit: Unit::Count,
            default,
            min,
            max,
            pow2: false,
            about,
        }
    }

    /// Number of threads.
    pub(crate) const fn threads() -> Self {
        Self::count("threads", "threads that share the arrays", 1, 1, 64)
    }

    /// Reads a value.
    ///
    /// # Errors
    /// Names the parameter, the text and what is allowed.
    pub fn read(&self, text: &str) -> Result<u64, ParamError> {
        let parsed = match self.unit {
            Unit::Bytes => text
                .parse::<Bytes>()
                .map(|b| b.0)
                .map_err(|e| e.to_string()),
            Unit::Count => read_count(text),
        };
        let checked = parsed.and_then(|v| match v {
            v if v < self.min || v > self.max => Err("is out of range".to_owned()),
            v if self.pow2 && !v.is_power_of_two() => Err("is not a power of two".to_owned()),
            v => Ok(v),
        });
        checked.map_err(|problem| ParamError {
            key: self.key.to_owned(),
            value: text.to_owned(),
            problem,
            allowed: self.allowed(),
        })
    }

    /// What is allowed, as text.
    pub fn allowed(&self) -> String {
        let kind = if self.pow2 { ", a power of two" } else { "" };
        format!("{} to {}{kind}", self.show(self.min), self.show(self.max))
    }

    /// A value as a user would write it.
    pub fn show(&self, value: u64) -> String {
        match self.unit {
            Unit::Bytes => Bytes(value).to_string(),
            Unit::Count => value.to_string(),
        }
    }
}

/// Reads `1000`, `100K`, `1_000_000`, `1M`.
fn read_count(text: &str) -> Result<u64, String> {
    let text = text.trim();
    let (digits, scale) = match text.as_bytes().last() {
        Some(b'K') => (&text[..text.len() - 1], 1_000),
        Some(b'M') => (&text[..text.len() - 1], 1_000_000),
        Some(b'G') => (&text[..text.len() - 1], 1_000_000_000),
        _ => (text, 1),
    };
    let digits: String = digits.chars().filter(|&c| c != '_').collect();
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err("is not a whole number, as in 1000, 100K or 1M".to_owned());
    }
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(scale))
        .ok_or_else(|| "is out of range".to_owned())
}

impl fmt::Display for Spec {
    /// One line for the program and one for each parameter.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<10} {}", self.name, self.about)?;
        for p in self.params {
            let default = p.show(p.default);
            write!(
                f,
                "\n    {:<9} {} (default {default}; {})",
                p.key,
                p.about,
                p.allowed()
            )?;
        }
        Ok(())
    }
}
