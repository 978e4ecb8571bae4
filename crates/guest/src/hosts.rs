//! All hosts, for whoever knows them by [their trait](Hosts) alone.

use std::path::Path;

use piebald_experiment::{HostName, MadeFile, Refused};
use piebald_lab::host::{Hosted, Hosts, ModelAlone};

use crate::{Scenario, boot, programs};

/// The model, and guests.
pub struct AllHosts;

impl Hosts for AllHosts {
    fn read(&self, host: HostName, text: &str, path: &Path) -> Result<Box<dyn Hosted>, Refused> {
        match host {
            HostName::Model => ModelAlone.read(host, text, path),
            HostName::Guest => Ok(Box::new(Scenario::parse(text, path)?)),
        }
    }

    fn has_program(&self, name: &str) -> bool {
        programs::has_program(name)
    }

    fn compile(&self, folder: &Path) -> Result<(), String> {
        programs::compile(folder).map_err(|e| e.to_string())
    }

    fn write_files(&self, files: &[MadeFile], folder: &Path) -> Result<(), String> {
        boot::write_files(files, folder).map_err(|e| e.to_string())
    }
}
