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
    /// How to get it.
    pub remedy: &'static str,
}

/// Programs, what they are for, and the Debian package that has them.
const PROGRAMS: [(&str, &str, &str); 6] = [
    (
        "qemu-system-x86_64",
        "QEMU system mode",
        "apt install qemu-system-x86",
    ),
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
    let emulator = |p: &PathBuf| Emulator::find(Sort::Machine, None, p).ok();
    findings.push(Finding {
        what: "QEMU 7.2 to 11.1 that takes the plugin",
        found: plugin.as_ref().and_then(emulator).map(|e| {
            let qemu = e.qemu.display();
            format!("{qemu}, plugin interface {}", e.api)
        }),
        remedy: "apt install qemu-system-x86",
    });
    findings.push(Finding {
        what: "a C compiler that links without shared libraries",
        found: compiles().then(|| "cc -static".into()),
        remedy: "apt install build-essential",
    });
    findings.push(Finding {
        what: "the plugin",
        found: plugin.map(|p| find::told(&p)),
        remedy: "cargo build --release",
    });
    findings.push(Finding {
        what: "a way to fetch kernels (apt-get, dpkg-deb)",
        found: on_path("apt-get")
            .and(on_path("dpkg-deb"))
            .map(|_| "apt-get, dpkg-deb".into()),
        remedy: "a Debian system; kernels fetched before are used without",
    });
    findings
}

fn look_for((program, what, remedy): &(&str, &'static str, &'static str)) -> Finding {
    Finding {
        what,
        found: on_path(program),
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
