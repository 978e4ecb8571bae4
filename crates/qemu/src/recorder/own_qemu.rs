//! Building a QEMU where the system's takes no plugins.

use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The script, and what it takes from the other one.
const SCRIPTS: [(&str, &str); 2] = [
    ("qemu.sh", include_str!("../../../../scripts/qemu.sh")),
    ("setup.sh", include_str!("../../../../scripts/setup.sh")),
];

/// Why there is none afterwards.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The script could not be run.
    #[error("building QEMU: {0}")]
    System(#[from] io::Error),
    /// It failed, and has said why on standard error.
    #[error("QEMU was not built; the reason is above")]
    Failed,
}

/// Builds QEMU user mode with plugins from Debian's source package, unless that was done
/// before; its path. `suite` is one of Debian's, this system's if `None`. Progress goes to
/// standard error. It is kept where [`Emulator::find`](crate::emulator::Emulator::find) looks.
///
/// # Errors
/// See [`BuildError`]. Nothing is left half-built.
pub fn build(suite: Option<&str>) -> Result<PathBuf, BuildError> {
    let folder = std::env::temp_dir().join(format!("piebald-qemu-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let built = run(&folder, suite);
    let _ = std::fs::remove_dir_all(&folder);
    built
}

fn run(folder: &std::path::Path, suite: Option<&str>) -> Result<PathBuf, BuildError> {
    for (name, text) in SCRIPTS {
        std::fs::write(folder.join(name), text)?;
    }
    let mut bash = Command::new("bash");
    bash.arg(folder.join("qemu.sh")).arg("build").args(suite);
    let output = bash.stderr(Stdio::inherit()).output()?;
    let path = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    if !output.status.success() || path.is_empty() {
        return Err(BuildError::Failed);
    }
    Ok(path.into())
}
