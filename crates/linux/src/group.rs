//! Control groups (version 2) for single processes.

use std::{
    env, fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use crate::error::ModuleError;

/// How long systemd may take to put a process into a scope.
const SCOPE_WAIT: Duration = Duration::from_secs(60);
/// Between two looks whether it has.
const SCOPE_LOOK: Duration = Duration::from_millis(5);

/// Where version 2 of control groups is mounted, below a root.
#[derive(Clone, Debug)]
pub(crate) struct Groups {
    root: PathBuf,
    mount: PathBuf,
}

/// A group's path: as the kernel shows it, and as a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) path: String,
    pub(crate) dir: PathBuf,
}

impl Group {
    fn write(&self, file: &str, value: &str) -> Result<(), ModuleError> {
        let path = self.dir.join(file);
        // The kernel takes each write by itself.
        let mut open = fs::OpenOptions::new();
        let opened = open.write(true).create(true).truncate(true).open(&path);
        let written = opened.and_then(|mut file| file.write_all(value.as_bytes()));
        written.map_err(|source| match source.kind() {
            io::ErrorKind::PermissionDenied => ModuleError::NotPermitted { path },
            _ => ModuleError::Io { path, source },
        })
    }

    /// Moves a process here. Its pages stay where they are.
    pub(crate) fn enter(&self, pid: u32) -> Result<(), ModuleError> {
        self.write("cgroup.procs", &pid.to_string())
    }
}

impl Groups {
    /// Finds where they are mounted.
    pub(crate) fn find(root: &Path) -> Result<Self, ModuleError> {
        let mounts = fs::read_to_string(root.join("proc/self/mounts")).unwrap_or_default();
        let line = mounts
            .lines()
            .map(|line| line.split(' ').collect::<Vec<_>>());
        let mut mount = line
            .filter(|words| words.get(2) == Some(&"cgroup2"))
            .filter_map(|words| words.get(1).copied());
        match mount.next() {
            Some(at) => Ok(Self {
                root: root.to_owned(),
                mount: root.join(at.trim_start_matches('/')),
            }),
            None => Err(ModuleError::NoGroups {
                path: root.join("proc/self/mounts"),
            }),
        }
    }

    fn group(&self, path: &str) -> Group {
        Group {
            path: path.to_owned(),
            dir: self.mount.join(path.trim_start_matches('/')),
        }
    }

    /// The group of a process.
    pub(crate) fn of(&self, pid: u32) -> Result<Group, ModuleError> {
        let name = if pid == std::process::id() {
            "self".to_owned()
        } else {
            pid.to_string()
        };
        let file = self.root.join(format!("proc/{name}/cgroup"));
        let text = fs::read_to_string(file).map_err(|_| ModuleError::NoProcess { pid })?;
        let path = text.lines().find_map(|line| line.strip_prefix("0::"));
        path.map(|path| self.group(path))
            .ok_or(ModuleError::NoGroups {
                path: self.mount.clone(),
            })
    }

    /// Bytes that this process can take before its group, or one above, is at its limit (`memory.max`, or `memory.high`, where it is slowed
    /// down); none if nothing limits it. What the groups could drop is not counted.
    pub(crate) fn room(&self) -> Option<u64> {
        let own = self.of(std::process::id()).ok()?;
        let mut least: Option<u64> = None;
        for dir in own.dir.ancestors().take_while(|dir| *dir != self.mount) {
            let number = |file: &str| -> Option<u64> {
                fs::read_to_string(dir.join(file)).ok()?.trim().parse().ok()
            };
            let limit = ["memory.max", "memory.high"]
                .into_iter()
                .filter_map(number)
                .min();
            let left =
                limit.map(|limit| limit.saturating_sub(number("memory.current").unwrap_or(0)));
            least = left.into_iter().chain(least).min();
        }
        least
    }

    /// A new group for a process, beside its own, so that what limits the group above goes on
    /// limiting it. The process is not in it yet, unless it is a scope of systemd.
    pub(crate) fn make_for(&self, pid: u32, name: &str) -> Result<Group, ModuleError> {
        let own = self.of(pid)?;
        if self.root == Path::new("/") && Path::new("/run/systemd/system").is_dir() {
            return self.scope(pid, name, &own);
        }
        let above = match own.path.rsplit_once('/') {
            Some((above, _)) => self.group(if above.is_empty() { "/" } else { above }),
            None => self.group("/"),
        };
        let enabled = fs::read_to_string(above.dir.join("cgroup.subtree_control"));
        if !enabled.is_ok_and(|words| words.split_whitespace().any(|word| word == "memory")) {
            above.write("cgroup.subtree_control", "+memory")?;
        }
        let group = self.group(&format!("{}/{name}", above.path.trim_end_matches('/')));
        fs::create_dir(&group.dir).map_err(|source| ModuleError::Io {
            path: group.dir.clone(),
            source,
        })?;
        Ok(group)
    }

    /// Has systemd put a process into a scope of its own; systemd ends it with the last process.
    fn scope(&self, pid: u32, name: &str, own: &Group) -> Result<Group, ModuleError> {
        let mut command = Command::new("busctl");
        command.args(scope_call(pid, name)).stdin(Stdio::null());
        let failed = |why: String| ModuleError::Scope { why };
        let done = command
            .output()
            .map_err(|e| failed(format!("busctl: {e}")))?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(failed(format!("busctl: {}", said.trim())));
        }
        let began = Instant::now();
        loop {
            let now = self.of(pid)?;
            if now != *own {
                return Ok(now);
            }
            if began.elapsed() > SCOPE_WAIT {
                return Err(failed(format!("process {pid} is in {} still", own.path)));
            }
            thread::sleep(SCOPE_LOOK);
        }
    }
}

/// The words of busctl for a transient scope (org.freedesktop.systemd1(5), StartTransientUnit).
fn scope_call(pid: u32, name: &str) -> Vec<String> {
    let mut words: Vec<String> = [
        "call",
        "--quiet",
        "org.freedesktop.systemd1",
        "/org/freedesktop/systemd1",
        "org.freedesktop.systemd1.Manager",
        "StartTransientUnit",
        "ssa(sv)a(sa(sv))",
    ]
    .map(str::to_owned)
    .to_vec();
    words.extend([format!("{name}.scope"), "fail".into(), "4".into()]);
    let program = env::args().next().unwrap_or_default();
    let properties = [
        [
            "Description",
            "s",
            &format!("colors of process {pid} ({program})"),
        ]
        .map(str::to_owned)
        .to_vec(),
        vec!["PIDs".into(), "au".into(), "1".into(), pid.to_string()],
        ["MemoryAccounting", "b", "true"]
            .map(str::to_owned)
            .to_vec(),
        ["CollectMode", "s", "inactive-or-failed"]
            .map(str::to_owned)
            .to_vec(),
    ];
    words.extend(properties.into_iter().flatten());
    words.push("0".into());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(own: &str) -> (tempfile::TempDir, Groups) {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("proc/self")).unwrap();
        fs::create_dir_all(root.path().join("proc/7")).unwrap();
        fs::create_dir_all(root.path().join("cg/user/session")).unwrap();
        let mounts = "proc /proc proc rw 0 0\ncgroup2 /cg cgroup2 rw 0 0\n";
        fs::write(root.path().join("proc/self/mounts"), mounts).unwrap();
        fs::write(root.path().join("proc/7/cgroup"), format!("0::{own}\n")).unwrap();
        let groups = Groups::find(root.path()).unwrap();
        (root, groups)
    }

    #[test]
    fn a_group_is_made_beside_that_of_the_process() {
        let (root, groups) = tree("/user/session");
        let made = groups.make_for(7, "own").unwrap();
        assert_eq!(made.path, "/user/own");
        assert!(root.path().join("cg/user/own").is_dir());
        let control = root.path().join("cg/user/cgroup.subtree_control");
        assert_eq!(fs::read_to_string(&control).unwrap(), "+memory");
        fs::write(&control, "cpu memory\n").unwrap();
        groups.make_for(7, "other").unwrap();
        assert_eq!(fs::read_to_string(control).unwrap(), "cpu memory\n");
        made.enter(7).unwrap();
        let procs = fs::read_to_string(root.path().join("cg/user/own/cgroup.procs"));
        assert_eq!(procs.unwrap(), "7");
    }

    #[test]
    fn the_room_is_that_of_the_group_that_is_nearest_to_its_limit() {
        let (root, groups) = tree("/");
        let write = |path: &str, text: &str| fs::write(root.path().join(path), text).unwrap();
        write("proc/self/cgroup", "0::/user/session\n");
        assert_eq!(groups.room(), None);
        write("cg/user/session/memory.max", "max\n");
        write("cg/user/session/memory.current", "500\n");
        assert_eq!(groups.room(), None);
        write("cg/user/memory.max", "9000\n");
        write("cg/user/memory.current", "2000\n");
        assert_eq!(groups.room(), Some(7000));
        write("cg/user/session/memory.high", "1000\n");
        assert_eq!(groups.room(), Some(500));
        write("cg/user/memory.current", "9500\n");
        assert_eq!(groups.room(), Some(0));
    }

    #[test]
    fn beside_the_root_group_means_below_it() {
        for own in ["/", "/session"] {
            let (root, groups) = tree(own);
            assert_eq!(groups.make_for(7, "own").unwrap().path, "/own");
            assert!(root.path().join("cg/own").is_dir());
        }
    }

    #[test]
    fn processes_and_groups_that_are_not_there_are_named() {
        let (root, groups) = tree("/");
        let error = groups.of(8).expect_err("no process").to_string();
        assert!(error.contains("no process 8"), "{error}");
        fs::write(
            root.path().join("proc/self/mounts"),
            "cgroup /c cgroup rw 0 0\n",
        )
        .unwrap();
        let error = Groups::find(root.path())
            .expect_err("version 1")
            .to_string();
        assert!(error.contains("cgroup2"), "{error}");
    }

    #[test]
    fn systemd_is_asked_for_a_scope_with_the_process() {
        let words = scope_call(7, "piebald-run-7").join(" ");
        for part in [
            "StartTransientUnit ssa(sv)a(sa(sv)) piebald-run-7.scope fail 4 Description s",
            "PIDs au 1 7 MemoryAccounting b true CollectMode s inactive-or-failed 0",
        ] {
            assert!(words.contains(part), "{words}");
        }
    }
}
