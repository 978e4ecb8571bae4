//! The table `[course]`.

use piebald_units::Picos;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{KeyPath, Micros, Problem};

/// A time within a run: 1 microsecond to a minute.
pub(crate) type RunTime = Micros<1_000, 60_000_000_000>;

/// Runs that end by time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Course {
    /// When runs of several programs end.
    pub until_us: RunTime,
    /// Time between two looks at the programs. Default: a fiftieth of the run, at least 1.
    pub every_us: Option<RunTime>,
    /// Times count from when all programs that are there at the start have set up their data.
    #[serde(default)]
    pub after_setup: bool,
    /// What happens before this time is not counted.
    pub warmup_us: Option<RunTime>,
    /// Runs of one program end by time as well.
    #[serde(default)]
    pub alone: bool,
}

impl Course {
    /// Time between two looks.
    pub fn every(&self) -> Picos {
        let fiftieth = Picos((self.until_us.picos().0 / 50).max(1_000_000));
        self.every_us.map_or(fiftieth, Micros::picos)
    }

    pub(crate) fn check(&self, at: &KeyPath, problems: &mut Vec<Problem>) {
        let until = self.until_us.picos();
        if let Some(every) = self.every_us.filter(|every| every.picos() > until) {
            let allowed = format!("up to until_us, {}", self.until_us);
            problems.push(Problem::refuse(at.key("every_us"), every, allowed));
        }
        if let Some(warmup) = self.warmup_us.filter(|warmup| warmup.picos() >= until) {
            let allowed = format!("less than until_us, {}", self.until_us);
            problems.push(Problem::refuse(at.key("warmup_us"), warmup, allowed));
        }
    }
}
