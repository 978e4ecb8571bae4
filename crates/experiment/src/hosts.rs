//! What runs experiments, and which keys each has.

use toml::de::DeTable;

use crate::{Problem, Words, walk::each_key, words::words};

words! {
    /// What runs an experiment.
    pub enum HostName {
        /// The modelled machine and the modelled kernel.
        Model = "model",
        /// A stock kernel in a guest, watched by the modelled machine.
        Guest = "guest",
    }
}

/// Keys that a file gives and that are another host's.
pub(crate) fn not_of(host: HostName, file: &DeTable<'_>) -> Vec<Problem> {
    let mut problems = Vec::new();
    each_key(file, &mut |(at, _), schema| {
        let other = schema["x-hosts"].as_str();
        let Some(other) = other.filter(|other| *other != host.word()) else {
            return true;
        };
        let says = format!(
            "is for the host {other}, not for {}; allowed: in a table [on.{other}]",
            host.word()
        );
        problems.push(Problem::at(at.clone(), says));
        false
    });
    problems
}
