//! What a computer has and lacks for running guests.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use piebald_qemu::recorder::find;

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
    findings.push(Finding {
        what: "QEMU 7.2 to 8.2, whose plugin interface is served",
        found: version().filter(|v| has_plugins(v)),
        remedy: "apt install qemu-system-x86",
    });
    findings.push(Finding {
        what: "a C compiler that links without shared libraries",
        found: compiles().then(|| "cc -static".into()),
        remedy: "apt install build-essential",
    });
    findings.push(Finding {
        what: "the plugin",
        found: find::plugin(plugin).ok().map(|p| find::told(&p)),
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

/// First line of what QEMU says of itself.
fn version() -> Option<String> {
    let output = Command::new("qemu-system-x86_64").arg("--version").output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    Some(text.lines().next()?.to_owned())
}

/// Does this version have the interface that the plugin is written for?
fn has_plugins(version: &str) -> bool {
    let number = version
        .split_whitespace()
        .find(|w| w.starts_with(|c: char| c.is_ascii_digit()) && w.contains('.'));
    let mut parts = number
        .unwrap_or("")
        .split('.')
        .map(|p| p.parse().unwrap_or(0u32));
    let (major, minor) = (parts.next().unwrap_or(0), parts.next().unwrap_or(0));
    ((7, 2)..(9, 0)).contains(&(major, minor))
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
    fn versions_are_compared_as_numbers() {
        assert!(has_plugins(
            "QEMU emulator version 7.2.22 (Debian 1:7.2+dfsg-7+deb12u18)"
        ));
        assert!(has_plugins("QEMU emulator version 8.2.1"));
        assert!(!has_plugins("QEMU emulator version 10.0.2"));
        assert!(!has_plugins("QEMU emulator version 6.2.0"));
        assert!(!has_plugins("QEMU emulator version 7.1.0"));
        assert!(!has_plugins(""));
    }

    #[test]
    fn what_does_not_exist_is_missing() {
        assert_eq!(on_path("no-such-program-of-piebald"), None);
        assert!(on_path("sh").is_some());
        let plugin = Path::new("no-such-plugin.so");
        let findings = check(Some(plugin));
        let found = findings.iter().find(|f| f.what == "the plugin");
        assert_eq!(found.and_then(|f| f.found.clone()), None);
    }
}
