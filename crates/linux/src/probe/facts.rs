//! What the kernel tells about the computer. Pure: the caller reads the files.

use piebald_hw::presets::derive::{CacheFacts, caches};

/// The kernel series that the module knows, as `kernel/known.tsv` has it.
const SERIES: [&str; 2] = ["6.12.", "7.3."];
/// Memory nodes that a machine may have, as `kernel/piebald.h` has it.
const MAX_NODES: usize = 16;

/// What runs below this system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Hypervisor {
    /// Nothing that shows itself.
    None,
    /// A virtual machine's host; its name, if it tells one.
    Some(Option<String>),
}

/// Partitioning of caches by ways, in hardware.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resctrl {
    /// The processor cannot, or the kernel does not tell.
    Absent,
    /// The processor can; the file system is not mounted.
    NotMounted,
    /// It can be used: the mask of all ways of the last level.
    Mounted(String),
}

/// All that is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Facts {
    /// `uname -r`.
    pub release: String,
    /// Why the module refuses this kernel or machine; empty if it does not.
    pub unsupported: Vec<String>,
    /// The module is loaded.
    pub loaded: bool,
    /// What runs below.
    pub hypervisor: Hypervisor,
    /// Caches of the first processor, or why they are not known.
    pub caches: Result<Vec<CacheFacts>, String>,
    /// Transparent huge pages: `always`, `madvise`, `never`; `None` without them.
    pub transparent_huge_pages: Option<String>,
    /// Pages that were set apart as huge ones.
    pub reserved_huge_pages: u64,
    /// The hardware's own way.
    pub resctrl: Resctrl,
    /// Memory that can be had without swapping, in bytes.
    pub available_bytes: u64,
}

impl Facts {
    /// Reads them. `read` gets paths below `/`, such as `proc/meminfo`, and answers the text, or
    /// `None` if there is no such file; `vendor` is what the processor says of a hypervisor
    /// (leaf 0x40000000), if anything.
    pub fn read(
        release: &str,
        vendor: Option<String>,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let cpu = read("proc/cpuinfo").unwrap_or_default();
        let flags: Vec<&str> = cpu
            .lines()
            .find(|line| line.starts_with("flags"))
            .map_or(Vec::new(), |line| line.split_whitespace().collect());
        let meminfo = read("proc/meminfo").unwrap_or_default();
        let below_sys = |path: &str| Ok(read(&format!("sys/devices/system/cpu/{path}")));
        Self {
            release: release.to_owned(),
            unsupported: unsupported(release, read),
            loaded: read("proc/modules")
                .is_some_and(|all| all.lines().any(|line| line.starts_with("piebald "))),
            hypervisor: hypervisor(flags.contains(&"hypervisor"), vendor, read),
            caches: match caches(&below_sys) {
                Ok(found) if found.is_empty() => Err("Linux describes no caches here".to_owned()),
                found => found.map_err(|e| format!("sys/devices/system/cpu/{e}")),
            },
            transparent_huge_pages: read("sys/kernel/mm/transparent_hugepage/enabled")
                .and_then(|text| chosen(&text)),
            reserved_huge_pages: of_memory(&meminfo, "HugePages_Total:").unwrap_or(0),
            resctrl: match read("sys/fs/resctrl/info/L3/cbm_mask") {
                Some(mask) => Resctrl::Mounted(mask.trim().to_owned()),
                None if flags.contains(&"cat_l3") => Resctrl::NotMounted,
                None => Resctrl::Absent,
            },
            available_bytes: available_bytes(&meminfo).unwrap_or(0),
        }
    }
}

/// A number of `/proc/meminfo`.
fn of_memory(meminfo: &str, name: &str) -> Option<u64> {
    let line = meminfo.lines().find(|line| line.starts_with(name))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Memory that can be had without swapping, in bytes, from the text of `/proc/meminfo`.
pub fn available_bytes(meminfo: &str) -> Option<u64> {
    of_memory(meminfo, "MemAvailable:").map(|kib| kib.saturating_mul(1024))
}

/// The word in brackets.
fn chosen(text: &str) -> Option<String> {
    let (_, rest) = text.split_once('[')?;
    Some(rest.split_once(']')?.0.to_owned())
}

/// How many numbers a list of the kernel's has, such as `0-3,8`.
fn count_of(list: &str) -> usize {
    let ends = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some((first.parse::<usize>().ok()?, last.parse::<usize>().ok()?))
    };
    let counts = list.split(',').filter_map(ends);
    counts
        .map(|(first, last)| last.saturating_sub(first).saturating_add(1))
        .fold(0, usize::saturating_add)
}

/// Why the module refuses this kernel or machine; empty if it does not. `read` as for
/// [`Facts::read`].
pub fn unsupported(release: &str, read: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    let mut why = Vec::new();
    if !SERIES.iter().any(|series| release.starts_with(series)) {
        let [older, newer] = SERIES;
        why.push(format!(
            "kernel {release}; the module knows {older}* and {newer}*"
        ));
    }
    // Only such kernels have the file.
    if read("sys/kernel/realtime").is_some_and(|text| text.trim() == "1") {
        why.push("a real-time kernel (PREEMPT_RT)".to_owned());
    }
    if !cfg!(target_arch = "x86_64") {
        why.push("the module knows x86-64 alone".to_owned());
    }
    let nodes = read("sys/devices/system/node/has_memory").unwrap_or_default();
    let count = count_of(nodes.trim());
    if count > MAX_NODES {
        why.push(format!(
            "{count} memory nodes; the module knows machines with {MAX_NODES} at most"
        ));
    }
    let lockdown = read("sys/kernel/security/lockdown").and_then(|text| chosen(&text));
    if let Some(lockdown) = lockdown.filter(|mode| mode != "none") {
        why.push(format!(
            "kernel lockdown ({lockdown}): only signed modules are loaded"
        ));
    }
    why
}

fn hypervisor(
    flag: bool,
    vendor: Option<String>,
    read: &dyn Fn(&str) -> Option<String>,
) -> Hypervisor {
    let named = |path: &str| {
        let name = read(path)?.trim().to_owned();
        (!name.is_empty()).then_some(name)
    };
    match (flag, named("sys/hypervisor/type")) {
        (false, None) => Hypervisor::None,
        (_, name) => Hypervisor::Some(
            vendor
                .or(name)
                .or_else(|| named("sys/class/dmi/id/sys_vendor")),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(release: &str, files: &[(&str, &str)]) -> Facts {
        let read = |path: &str| {
            let found = files.iter().find(|(known, _)| *known == path);
            found.map(|(_, text)| (*text).to_owned())
        };
        Facts::read(release, None, &read)
    }

    #[test]
    fn an_empty_computer_is_unknown_and_not_virtual() {
        let facts = facts("6.12.9-amd64", &[]);
        assert_eq!(facts.hypervisor, Hypervisor::None);
        assert_eq!((facts.resctrl, facts.loaded), (Resctrl::Absent, false));
        assert!(facts.unsupported.is_empty() && facts.caches.is_err());
        assert_eq!(facts.transparent_huge_pages, None);
    }

    #[test]
    fn machines_and_kernels_that_it_knows_are_not_refused() {
        for nodes in ["", "0", "0-1", "0,2", "0-15"] {
            let files = [("sys/devices/system/node/has_memory", nodes)];
            for release in ["6.12.57+deb13-amd64", "7.3.4+deb13-amd64"] {
                let facts = facts(release, &files);
                assert!(facts.unsupported.is_empty(), "{release}, nodes {nodes}");
            }
        }
        assert!(!facts("6.120.1", &[]).unsupported.is_empty());
    }

    #[test]
    fn what_the_module_refuses_is_told_before_it_is_loaded() {
        let files = [
            ("sys/devices/system/node/has_memory", "0-14,16,18\n"),
            ("sys/kernel/realtime", "1\n"),
            (
                "sys/kernel/security/lockdown",
                "none [integrity] confidentiality\n",
            ),
        ];
        let why = facts("6.1.0-40-amd64", &files).unsupported.join("; ");
        for part in [
            "6.1.0-40-amd64",
            "6.12.* and 7.3.*",
            "PREEMPT_RT",
            "17 memory nodes; the module knows machines with 16",
            "lockdown (integrity)",
        ] {
            assert!(why.contains(part), "{part}: {why}");
        }
    }

    #[test]
    fn the_kernel_s_words_are_read() {
        let cpu = "processor : 0\nflags\t\t: fpu hypervisor cat_l3 lm\n";
        let memory = "MemTotal: 100 kB\nMemAvailable: 64 kB\nHugePages_Total:       3\n";
        let mut files = vec![
            ("proc/cpuinfo", cpu),
            ("proc/meminfo", memory),
            (
                "proc/modules",
                "ext4 1 0 - Live\npiebald 90112 0 - Live 0x0 (O)\n",
            ),
            ("sys/class/dmi/id/sys_vendor", "QEMU\n"),
            (
                "sys/kernel/mm/transparent_hugepage/enabled",
                "always [madvise] never\n",
            ),
        ];
        let found = facts("6.12.1", &files);
        assert!(found.loaded);
        assert_eq!(found.hypervisor, Hypervisor::Some(Some("QEMU".into())));
        assert_eq!(found.resctrl, Resctrl::NotMounted);
        assert_eq!(
            (found.reserved_huge_pages, found.available_bytes),
            (3, 65536)
        );
        assert_eq!(found.transparent_huge_pages.as_deref(), Some("madvise"));
        files.push(("sys/fs/resctrl/info/L3/cbm_mask", "7ff\n"));
        assert_eq!(
            facts("6.12.1", &files).resctrl,
            Resctrl::Mounted("7ff".into())
        );
    }
}
