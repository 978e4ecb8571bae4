//! What a computer has and lacks for running guests.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use piebald_qemu::emulator::{Emulator, Sort};
use piebald_qemu::find;

/// One thing that is needed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub what: &'static str,
    /// What was found: a path or a version; `None` = it is missing.
    pub found: Option<String>,
    /// How to get it; of a QEMU that was found, what is wrong with it too.
    pub remedy: String,
}

/// How to get QEMU.
const QEMU: &str = "apt install qemu-system-x86";

/// Programs, what they are for, and the Debian package that has them.
const PROGRAMS: [(&str, &str, &str); 6] = [
    (Sort::Machine.name(), "QEMU system mode", QEMU),
    ("busybox", "the guest's shell", "apt install busybox-static"),
    (
        "cpio",
        "packing the initial file system",
        "apt install cpio",
    ),
    ("xz", "unpacking kernel modules", "apt install xz-utils"),
    ("mke2fs", "images for files", "apt install e2fsprogs"),
    ("modprobe", "finding kernel modules", "apt install kmod"),
];

/// Looks for everything that `guest run` needs. `plugin` as there.
pub fn check(plugin: Option<&Path>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = PROGRAMS.iter().map(look_for).collect();
    let plugin = find::plugin(plugin).ok();
    let asked = |p: &PathBuf| Emulator::find(Sort::Machine, None, p).map_err(|e| e.to_string());
    let emulator = plugin.as_ref().map_or(Err(QEMU.to_owned()), asked);
    findings.push(Finding {
        what: "QEMU 7.2 to 11.1 that takes the plugin",
        found: emulator.as_ref().ok().map(|e| {
            let qemu = e.qemu.display();
            format!("{qemu}, plugin interface {}", e.api)
        }),
        remedy: emulator.err().unwrap_or_default(),
    });
    findings.push(Finding {
        what: "a C compiler that links without shared libraries",
        found: compiles().then(|| "cc -static".into()),
        remedy: "apt install build-essential".to_owned(),
    });
    findings.push(Finding {
        what: "the plugin",
        found: plugin.map(|p| find::told(&p)),
        remedy: "cargo build --release".to_owned(),
    });
    findings.push(Finding {
        what: "a way to fetch kernels (apt-get, dpkg-deb)",
        found: on_path("apt-get")
            .and(on_path("dpkg-deb"))
            .map(|_| "apt-get, dpkg-deb".into()),
        remedy: "a Debian system; kernels fetched before are used without".to_owned(),
    });
    findings
}

fn look_for((program, what, remedy): &(&str, &'static str, &'static str)) -> Finding {
    // The emulator may be named.
    let variable = Sort::Machine.variable();
    let named = std::env::var(variable).ok().filter(|name| !name.is_empty());
    let named = named.filter(|_| *program == Sort::Machine.name());
    let found = on_path(named.as_deref().unwrap_or(program));
    let remedy = match named {
        Some(named) => format!("{variable} names {named}; {remedy}"),
        None => (*remedy).to_owned(),
    };
    Finding {
        what,
        found,
        remedy,
    }
}

/// A program, also where only the superuser's shell looks.
fn on_path(name: &str) -> Option<String> {
    let also = ["/usr/sbin", "/sbin"].map(|dir| format!("{dir}/{name}"));
    let also = also.into_iter().find(|p| Path::new(p).exists());
    let found = find::program(OsStr::new(name)).map(|p| p.display().to_string());
    found.or(also)
}

fn compiles() -> bool {
    let source = "int main(void) { return 0; }";
    let Ok(folder) = tempfile::tempdir() else {
        return false;
    };
    let file = folder.path().join("t.c");
    if std::fs::write(&file, source).is_err() {
        return false;
    }
    let mut cc = Command::new("cc");
    cc.args(["-static", "-o"])
        .arg(folder.path().join("t"))
        .arg(file);
    let status = cc.stdout(Stdio::null()).stderr(Stdio::null()).status();
    status.is_ok_and(|s| s.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_exist_is_missing() {
        assert_eq!(on_path("no-such-program-of-piebald"), None);
        assert!(on_path("sh").is_some());
        let plugin = Path::new("no-such-plugin.so");
        let findings = check(Some(plugin));
        // Which QEMU takes it cannot be asked without it.
        for what in ["the plugin", "QEMU 7.2 to 11.1 that takes the plugin"] {
            let finding = findings.iter().find(|f| f.what == what).expect(what);
            assert_eq!(finding.found, None, "{what}");
        }
    }
}
