//! The epoch of the model: a sum of all code that outcomes depend on.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

/// The rooms that a run goes through.
const ROOMS: [&str; 8] = [
    "units", "policy", "hw", "os-model", "trace", "workload", "store", "sim",
];

fn main() {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let rooms = here.parent().unwrap_or(&here);
    let mut hasher = blake3::Hasher::new();
    for name in ROOMS {
        let room = rooms.join(name);
        let mut files = vec![room.join("Cargo.toml")];
        sources(&room.join("src"), &mut files);
        files.sort();
        for file in files {
            let name = file.strip_prefix(rooms).unwrap_or(&file);
            add(&mut hasher, name.to_string_lossy().as_bytes());
            add(&mut hasher, &fs::read(&file).unwrap_or_default());
        }
        // By relative paths: a clone with the same files has nothing to build anew.
        println!("cargo:rerun-if-changed=../{name}");
    }
    let lock = rooms.join("../Cargo.lock");
    println!("cargo:rerun-if-changed=../../Cargo.lock");
    add(&mut hasher, &fs::read(&lock).unwrap_or_default());
    let compiler = env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Command::new(compiler).arg("-vV").output();
    add(&mut hasher, &version.map(|v| v.stdout).unwrap_or_default());
    let epoch = hasher.finalize().to_hex();
    println!("cargo:rustc-env=PIEBALD_EPOCH={epoch}");
}

fn add(hasher: &mut blake3::Hasher, bytes: &[u8]) {
    hasher.update(&(bytes.len() as u64).to_le_bytes());
    hasher.update(bytes);
}

/// All files below a folder.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()) {
        if path.is_dir() {
            sources(&path, files)
        } else {
            files.push(path)
        }
    }
}
