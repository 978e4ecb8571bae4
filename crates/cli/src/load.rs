//! `piebald load` and `unload`: the kernel module into the kernel and out of it.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use piebald_linux::{
    BuildError, MapBits, Module, ModuleError, Parameters, build_module, checkout_above, headers_of,
    installed_module, load, memory_end, mount_configfs, unload, unsupported,
};

use serde_json::json;

use crate::{failure::Failure, json::Json, live};

/// Where the module has been run at all.
const TRIED: &str =
    "note: the module has never been run on real hardware, only in guests under QEMU\n";

/// Arguments of `piebald load`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The module; without it, the one that the package piebald-dkms has built for this kernel, or
    /// else it is built by kernel/build.sh of the checkout that this program lies in
    module: Option<PathBuf>,
    /// The address bits that make colors, as in 15-18 or 12,13,16^20 (an XOR); colors are then
    /// switched on
    #[arg(long, value_name = "BITS")]
    map: Option<MapBits>,
    #[command(flatten)]
    json: Json,
}

/// Arguments of `piebald unload`.
#[derive(clap::Args)]
pub(crate) struct UnloadArgs {
    #[command(flatten)]
    json: Json,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let root = live::root();
    args.map.as_ref().map_or(Ok(()), |map| fits(map, &root))?;
    match Module::attach(&root) {
        Ok(module) => again(&module, args)?,
        Err(ModuleError::NotLoaded { .. }) => {
            first(&root, args.module.as_deref(), args.map.as_ref())?;
        }
        Err(error) => return Err(live::failure(error)),
    }
    let text = match &args.map {
        Some(map) => format!(
            "loaded; on, {} colors from address bits {map}\n",
            map.colors()
        ),
        None => "loaded; `piebald status` says what it does, a map (--map) switches coloring on\n"
            .to_owned(),
    };
    let text = text + TRIED;
    let colors = args.map.as_ref().map(MapBits::colors);
    let map = args.map.as_ref().map(ToString::to_string);
    let value = json!({ "schema": 1, "loaded": true, "map": map, "colors": colors });
    args.json.show(&text, &value)?;
    Ok(ExitCode::SUCCESS)
}

/// A bit that is the same in all memory makes colours without frames.
pub(crate) fn fits(map: &MapBits, root: &Path) -> Result<(), Failure> {
    let iomem = std::fs::read_to_string(root.join("proc/iomem")).unwrap_or_default();
    let Some(end) = memory_end(&iomem) else {
        return Ok(());
    };
    let most = (end - 1).checked_ilog2().unwrap_or(0);
    match map.highest() <= most {
        true => Ok(()),
        false => Err(Failure::usage(format!(
            "--map {map}: address bit {} is 0 in all memory of this computer; allowed: 12 to {most}",
            map.highest()
        ))),
    }
}

/// Loads the module, which is not loaded yet.
pub(crate) fn first(
    root: &Path,
    module: Option<&Path>,
    map: Option<&MapBits>,
) -> Result<(), Failure> {
    let file = match module {
        Some(file) => file.to_owned(),
        None => {
            supported(root)?;
            found(root).map_err(Failure::failed)?
        }
    };
    let parameters = Parameters { map: map.cloned() };
    load(&file, &parameters).map_err(Failure::failed)?;
    // Colour sets are directories there.
    if !root.join("sys/kernel/config/piebald").is_dir() {
        mount_configfs()
            .map_err(|e| Failure::failed(format!("/sys/kernel/config: configfs: {e}")))?;
    }
    Ok(())
}

/// Before anything is built: the module takes few kernels and machines.
fn supported(root: &Path) -> Result<(), Failure> {
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let why = unsupported(&live::release(root), &read);
    match why.is_empty() {
        true => Ok(()),
        false => Err(Failure::failed(format!(
            "the module cannot be loaded here: {}",
            why.join("; ")
        ))),
    }
}

/// The module is loaded: it can get a map.
fn again(module: &Module, args: &Args) -> Result<(), Failure> {
    if args.module.is_some() {
        return Err(Failure::failed(
            "the module is loaded already; `piebald unload` takes it out first",
        ));
    }
    let Some(map) = &args.map else {
        return Ok(());
    };
    if module.map().map_err(live::failure)?.as_ref() != Some(map) {
        module.set_map(map).map_err(live::failure)?;
    }
    module.switch(true).map_err(live::failure)
}

/// The module that is installed for this kernel, or one that is built.
fn found(root: &Path) -> Result<PathBuf, BuildError> {
    let release = live::release(root);
    if let Some(module) = installed_module(root, &release) {
        return Ok(module);
    }
    let headers = headers_of(root, &release);
    let program = std::env::current_exe().unwrap_or_default();
    let Some(checkout) = checkout_above(&program) else {
        return Err(BuildError::NoCheckout { program, headers });
    };
    build_module(&checkout, &headers, &release)
}

pub(crate) fn take_out(args: &UnloadArgs) -> Result<ExitCode, Failure> {
    // A kernel that knows no modules at all would refuse in words that say nothing of that.
    match Module::attach(&live::root()) {
        Err(ModuleError::NotLoaded { .. }) => {
            return Err(Failure::failed(
                "the module is not loaded, so there is nothing to unload",
            ));
        }
        module => module.and_then(|m| m.end_sets()).map_err(live::failure)?,
    }
    unload().map_err(Failure::failed)?;
    let value = json!({ "schema": 1, "loaded": false });
    args.json.show("unloaded\n", &value)?;
    Ok(ExitCode::SUCCESS)
}
