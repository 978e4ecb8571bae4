//! The table `[deal]`.

use piebald_units::{CoreSet, Count};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{KeyPath, Problem, Program, Text};

/// Hardware threads that are dealt out: each repetition draws which of them a program without `cores` runs on, and
/// no two have the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Deal {
    /// These.
    pub cores: Text<CoreSet>,
    /// Those of which a program alone is dealt one. Default: `cores`.
    pub alone: Option<Text<CoreSet>>,
    /// Draws with another name, or another number, deal otherwise.
    #[serde(default)]
    pub name: String,
    /// As `name`.
    pub number: Option<Text<Count>>,
}

impl Deal {
    /// The hardware threads of which a program alone is dealt one.
    pub fn of_one(&self) -> CoreSet {
        self.alone.map_or(self.cores.0, |alone| alone.0)
    }

    /// There is a hardware thread for each program that needs one, and one program at least.
    pub(crate) fn check(&self, programs: &[Program], problems: &mut Vec<Problem>) {
        let at = KeyPath::of("deal");
        let needed = programs.iter().filter(|p| p.cores.0.is_empty()).count();
        if needed == 0 {
            let says = "all programs have cores; allowed: where one has none";
            problems.push(Problem::at(at, says));
        } else if needed > self.cores.0.bits().count_ones() as usize {
            let Text(cores) = self.cores;
            let allowed = format!("as many as there are programs without cores, {needed}, or more");
            problems.push(Problem::refuse(
                at.key("cores"),
                format!("\"{cores}\""),
                allowed,
            ));
        }
    }
}
