//! What the verbs that touch this computer's own kernel share.

use std::path::{Path, PathBuf};

use piebald_linux::{Module, ModuleError, Share, Wanted};
use piebald_policy::contract::Mode;

use crate::failure::Failure;

/// Where `proc`, `sys` and `lib` are: `/`, or what PIEBALD_ROOT says (a copy, for tests).
pub(crate) fn root() -> PathBuf {
    std::env::var_os("PIEBALD_ROOT").map_or(PathBuf::from("/"), PathBuf::from)
}

/// The kernel's release: of the copy, if there is one.
pub(crate) fn release(root: &Path) -> String {
    let copied = std::fs::read_to_string(root.join("proc/sys/kernel/osrelease"));
    copied.map_or_else(|_| piebald_linux::release(), |text| text.trim().to_owned())
}

/// The module, which has to be loaded.
pub(crate) fn module() -> Result<Module, Failure> {
    Module::attach(&root()).map_err(failure)
}

/// The module with colouring on.
pub(crate) fn module_on() -> Result<Module, Failure> {
    let module = module()?;
    match module.is_on().map_err(failure)? {
        true => Ok(module),
        false => Err(Failure::failed(
            "coloring is off, so colors would mean nothing; `piebald load --map BITS` switches it \
             on, `piebald probe` says which bits",
        )),
    }
}

/// As a failed verb.
pub(crate) fn failure(error: ModuleError) -> Failure {
    Failure::failed(error)
}

/// Which colours are asked for.
#[derive(Clone, Debug, clap::Args)]
#[group(multiple = false)]
pub(crate) struct Ask {
    /// The colors, as in 0-3,8
    #[arg(long, value_name = "COLORS", value_parser = Wanted::colors)]
    colors: Option<Wanted>,
    /// A share of all colors, as in 25%; which ones, the module chooses
    #[arg(long, value_name = "PERCENT")]
    share: Option<Share>,
}

impl Ask {
    /// As the module is asked; `None` if no colours were named.
    pub(crate) fn wanted(&self) -> Option<Wanted> {
        self.colors.clone().or(self.share.map(Wanted::Share))
    }
}

/// The mode that `--hard` or its absence means.
pub(crate) const fn mode(hard: bool) -> Mode {
    match hard {
        true => Mode::Hard,
        false => Mode::Hint,
    }
}
