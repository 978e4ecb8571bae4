//! What the command knows of its own making: its version with the commit, and where the
//! recorder's plugin lies that it takes inside (`src/plugin.rs`).

#[path = "build/commit.rs"]
mod commit;

use std::{
    env,
    path::{Path, PathBuf},
};

const PLUGIN: &str = "libpiebald_qemu.so";

fn main() {
    let variable = |name: &str| env::var(name).expect("cargo sets it for build scripts");
    let root = Path::new(&variable("CARGO_MANIFEST_DIR")).join("../..");
    let version = variable("CARGO_PKG_VERSION");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=build");
    // Relative, so that a clone of the same state that shares the target directory finds it unchanged.
    if let Some(log) = commit::log_of(&root) {
        println!(
            "cargo::rerun-if-changed={}",
            Path::new("../..").join(log).display()
        );
    }
    let named = commit::of(&root).map_or(version.clone(), |c| format!("{version} ({c})"));
    println!("cargo::rustc-env=PIEBALD_VERSION={named}");
    println!("cargo::rerun-if-env-changed=PIEBALD_PLUGIN_BUILT");
    let plugin = env::var_os("PIEBALD_PLUGIN_BUILT").map(PathBuf::from);
    let plugin = plugin.unwrap_or_else(|| beside_dependencies(Path::new(&variable("OUT_DIR"))));
    println!("cargo::rustc-env=PIEBALD_PLUGIN_BUILT={}", quoted(&plugin));
}

/// Where cargo leaves the library of `piebald-qemu`, on which the command depends:
/// `OUT_DIR` is `PROFILE/build/NAME/out`, dependencies are in `PROFILE/deps`.
fn beside_dependencies(out: &Path) -> PathBuf {
    // Another clone may lead to the same target directory by a link, and be gone tomorrow.
    let out = out.canonicalize().unwrap_or_else(|_| out.to_owned());
    let profile = out.ancestors().nth(3).unwrap_or(&out);
    profile.join("deps").join(PLUGIN)
}

/// The path inside a string of the assembler.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    text.replace('\\', "\\\\").replace('"', "\\\"")
}
