//! A policy as a user asks for it: a name, and for some policies options.

use std::fmt;
use std::str::FromStr;

/// `NAME` or `NAME:OPTION=VALUE,OPTION=VALUE`, such as `arc` or `dulo:bank=4MiB,base=arc`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PolicySpec {
    name: String,
    options: Vec<(String, String)>,
}

impl PolicySpec {
    /// A policy without options.
    pub fn plain(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            options: Vec::new(),
        }
    }

    /// The policy's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Options and their values, in the order given.
    pub fn options(&self) -> impl Iterator<Item = (&str, &str)> {
        let options = self.options.iter();
        options.map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        for (n, (name, value)) in self.options.iter().enumerate() {
            let before = if n == 0 { ':' } else { ',' };
            write!(f, "{before}{name}={value}")?;
        }
        Ok(())
    }
}

/// Why a text is no policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// No name.
    #[error("policy \"{0}\" has no name; allowed: NAME or NAME:OPTION=VALUE,...")]
    NoName(String),
    /// An option without value.
    #[error("policy \"{text}\": \"{part}\" is no option; allowed: OPTION=VALUE")]
    NoValue {
        /// All of it.
        text: String,
        /// The part.
        part: String,
    },
    /// An option twice.
    #[error("policy \"{text}\": option \"{option}\" is given twice")]
    Twice {
        /// All of it.
        text: String,
        /// The option.
        option: String,
    },
}

impl FromStr for PolicySpec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let (name, rest) = match text.split_once(':') {
            Some((name, rest)) => (name, Some(rest)),
            None => (text, None),
        };
        if name.trim().is_empty() {
            return Err(SpecError::NoName(text.to_owned()));
        }
        let mut options: Vec<(String, String)> = Vec::new();
        for part in rest.iter().flat_map(|rest| rest.split(',')) {
            let Some((option, value)) = part.split_once('=') else {
                return Err(SpecError::NoValue {
                    text: text.to_owned(),
                    part: part.to_owned(),
                });
            };
            if options.iter().any(|(known, _)| known == option.trim()) {
                return Err(SpecError::Twice {
                    text: text.to_owned(),
                    option: option.trim().to_owned(),
                });
            }
            options.push((option.trim().to_owned(), value.trim().to_owned()));
        }
        Ok(Self {
            name: name.trim().to_owned(),
            options,
        })
    }
}

/// An option that a policy does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("option {option} is \"{value}\"; allowed: {allowed}")]
pub struct OptionError {
    /// Its name.
    pub option: &'static str,
    /// Its value.
    pub value: String,
    /// What it may be.
    pub allowed: String,
}

impl OptionError {
    /// An option that the policy does not have.
    pub(super) fn unknown(name: &str, known: &[&str]) -> Self {
        Self {
            option: "name",
            value: name.to_owned(),
            allowed: match known {
                [] => "none: the policy has no options".to_owned(),
                _ => known.join(", "),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_specification_is_what_it_shows() {
        for text in ["arc", "dulo:bank=4MiB,base=arc"] {
            let spec: PolicySpec = text.parse().expect(text);
            assert_eq!(spec.to_string(), text);
        }
        let spaced: PolicySpec = "dulo: bank = 4MiB".parse().expect("spaces");
        assert_eq!(spaced.to_string(), "dulo:bank=4MiB");
    }

    #[test]
    fn broken_specifications_are_refused_with_their_text() {
        for text in ["", ":bank=1", "dulo:bank", "dulo:", "dulo:bank=1,bank=2"] {
            let error = text.parse::<PolicySpec>().expect_err(text).to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
