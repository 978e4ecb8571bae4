//! What runs the experiments of a paper: the model, or a stock kernel in a guest.

use std::path::Path;

use piebald_experiment::{HostName, Refused, Words};
use piebald_guest::Scenario as Guest;
use piebald_lab::{host::Hosted, scenario::Scenario};

/// Reads an experiment as its host does.
///
/// # Errors
/// What the host cannot run of it.
pub(super) fn read(host: HostName, text: &str, path: &Path) -> Result<Box<dyn Hosted>, Refused> {
    Ok(match host {
        HostName::Model => Box::new(Scenario::parse(text, path)?),
        HostName::Guest => Box::new(Guest::parse(text, path)?),
    })
}

/// The host of this name.
///
/// # Errors
/// Which there are.
pub(super) fn named(name: &str) -> Result<HostName, String> {
    let found = HostName::WORDS.iter().find(|(word, ..)| *word == name);
    found.map(|(_, host, _)| *host).ok_or_else(|| {
        let words: Vec<&str> = HostName::WORDS.iter().map(|(word, ..)| *word).collect();
        format!("\"{name}\": allowed: {}", words.join(", "))
    })
}
