//! What is replayed of requests, and what is replayed besides: clients of a server, and programs of page touches.

use std::{fmt, path::PathBuf, str::FromStr};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Micros, Refs, Text,
    value::{Notation, Whole},
    words::words,
};

/// Keys of programs that are replayed, without a machine.
pub const REPLAYED: [&str; 3] = ["requests", "clients", "touches"];

/// A share in percent, as in `2%`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Percent(f64);

impl Percent {
    /// 0 to 1.
    pub fn ratio(self) -> f64 {
        self.0 / 100.0
    }
}

/// A text that is no share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("is no share in percent; allowed: 0% to 100%, as in 2%")]
pub struct NotPercent;

impl FromStr for Percent {
    type Err = NotPercent;

    fn from_str(text: &str) -> Result<Self, NotPercent> {
        let number = text.strip_suffix('%').ok_or(NotPercent)?.trim();
        let percent: f64 = number.parse().map_err(|_| NotPercent)?;
        let is_share = (0.0..=100.0).contains(&percent);
        is_share.then_some(Self(percent)).ok_or(NotPercent)
    }
}

impl fmt::Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}%", self.0)
    }
}

impl Notation for Percent {
    const WHAT: &'static str = "\"0%\" to \"100%\", as in \"2%\"";
}

words! {
    /// Where data lie on a drive, and how far it has turned, when requests begin.
    pub enum DiskStart {
        /// Where the layout says, and not turned.
        Zero = "zero",
        /// Moved by whole cylinders, so many that all fit, and turned; both drawn by the seed. Only files of a
        /// layout file and swap space are moved.
        Drawn = "drawn",
    }
}

/// A part of a trace of requests, of which the seed draws what each of its processes leaves out and how they meet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Excerpt {
    /// References from the trace's beginning, behind which nothing is replayed. Default: all.
    pub limit: Option<Refs<1>>,
    /// Each process passes over a part of its first requests, up to this share of what it has. Default: none.
    pub skip: Option<Text<Percent>>,
    /// Each process comes earlier than in the trace, by up to this share of the trace; a single one does not.
    /// Default: none does.
    pub lead: Option<Text<Percent>>,
}

/// Clients that ask a server for one query after another until time is up. Each query is a process of its own, which
/// reads files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clients {
    /// A file with a line `NAME BYTES` for each query: the trace of its reads is NAME.fpt.zst beside this
    /// file, and it returns so many bytes.
    pub queries: PathBuf,
    /// A file with a line for each client: the numbers of its queries, from 0, which it repeats. It may be compressed
    /// (NAME.zst). The seed draws where each begins.
    pub sequences: PathBuf,
    /// How long they ask, in simulated seconds.
    pub seconds: Whole<1, 86_400>,
    /// What a read call takes of the server's only processor, in microseconds. Default: 1 (a Pentium 4 of 1.7 GHz).
    pub call_us: Option<ServerTime>,
    /// What each page that it copies takes. Default: 4.
    pub page_us: Option<ServerTime>,
}

/// Time of a processor for a call: up to a second.
pub type ServerTime = Micros<0, 1_000_000_000>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_in_percent_only() {
        for (text, ratio) in [("2%", 0.02), ("0 %", 0.0), ("100%", 1.0), ("0.5%", 0.005)] {
            let share: Percent = text.parse().expect(text);
            assert!((share.ratio() - ratio).abs() < 1e-12, "{text}");
        }
        for text in ["", "%", "2", "-1%", "101%", "NaN%", "inf%", "x%"] {
            assert_eq!(text.parse::<Percent>(), Err(NotPercent), "{text}");
        }
    }
}
