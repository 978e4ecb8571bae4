//! Finding a QEMU, and asking it which plugins it takes.
//!
//! Not every QEMU takes plugins: Debian's `qemu-user` is linked statically from 10.0 on, and
//! a static program loads none. Those that do serve a range of interface versions, and refuse
//! all others ([`crate::api`]). A QEMU is asked by loading the plugin, which answers instead of
//! recording; the answer is kept in the cache folder under the SHA-256 of QEMU's file.

mod ask;

use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::api::declared::{NEWEST, OLDEST};
use crate::find;

pub(crate) use ask::{answer, is_question};

/// What is emulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A program (`qemu-x86_64`).
    Program,
    /// A machine (`qemu-system-x86_64`).
    Machine,
}

impl Sort {
    /// File name of the emulator.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Program => "qemu-x86_64",
            Self::Machine => "qemu-system-x86_64",
        }
    }

    /// The variable that names one to be used.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Program => "PIEBALD_QEMU",
            Self::Machine => "PIEBALD_QEMU_SYSTEM",
        }
    }
}

/// A QEMU that takes the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Emulator {
    /// Its path.
    pub qemu: PathBuf,
    /// The plugin's path.
    pub plugin: PathBuf,
    /// Interface version that the plugin has to declare.
    pub api: i32,
}

impl Emulator {
    /// Finds a QEMU for this plugin: the one given; the one that the variable of its sort names;
    /// or the first that takes it of: the one that comes with the plugin, that of `PATH`, and those
    /// that `scripts/qemu.sh` has built, the newest first.
    ///
    /// # Errors
    /// What there is instead.
    pub fn find(sort: Sort, given: Option<&Path>, plugin: &Path) -> Result<Self, NoEmulator> {
        let mut tried = Vec::new();
        for Candidate { qemu, sum } in candidates(sort, given) {
            let whole = is_whole(&qemu, sum.as_deref());
            match whole.and_then(|()| ask::versions(&qemu, plugin, sort)) {
                Ok(serves) => {
                    return Ok(Self {
                        qemu,
                        plugin: plugin.to_owned(),
                        api: serves.newest.min(NEWEST),
                    });
                }
                Err(why) => tried.push(Tried {
                    version: version(&qemu),
                    qemu,
                    why,
                }),
            }
        }
        Err(NoEmulator {
            sort,
            named: named(sort, given),
            tried,
        })
    }

    /// The SHA-256 of QEMU's file, in hexadecimal: what is recorded depends on it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn digest(&self) -> io::Result<String> {
        ask::digest(&self.qemu)
    }

    /// One that nothing is run with.
    #[cfg(test)]
    pub(crate) fn example() -> Self {
        Self {
            qemu: "qemu".into(),
            plugin: "plugin".into(),
            api: 1,
        }
    }

    /// The value of QEMU's option `-plugin`: the library, its version, and its arguments.
    pub fn option(&self, arguments: &[(&str, &OsStr)]) -> std::ffi::OsString {
        plugin_option(&self.plugin, Some(self.api), arguments)
    }
}

/// A plugin and its arguments, as QEMU takes them: commas in values are doubled.
fn plugin_option(
    plugin: &Path,
    api: Option<i32>,
    arguments: &[(&str, &OsStr)],
) -> std::ffi::OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut option = escaped(plugin.as_os_str().as_bytes());
    for (name, value) in arguments {
        option.extend(format!(",{name}=").bytes());
        option.extend(escaped(value.as_bytes()));
    }
    if let Some(api) = api {
        option.extend(format!(",{}={api}", crate::api::declared::ARGUMENT).bytes());
    }
    std::ffi::OsString::from_vec(option)
}

fn escaped(value: &[u8]) -> Vec<u8> {
    let twice = |&b: &u8| std::iter::repeat_n(b, if b == b',' { 2 } else { 1 });
    value.iter().flat_map(twice).collect()
}

/// The one that is to be used, whatever there is. An empty variable names none.
fn named(sort: Sort, given: Option<&Path>) -> Option<PathBuf> {
    let variable = || {
        env::var_os(sort.variable())
            .filter(|name| !name.is_empty())
            .map(PathBuf::from)
    };
    given.map(Path::to_owned).or_else(variable)
}

/// A QEMU that may be asked.
struct Candidate {
    qemu: PathBuf,
    /// The SHA-256 that its file had when it was built, if that is known.
    sum: Option<String>,
}

impl From<PathBuf> for Candidate {
    fn from(qemu: PathBuf) -> Self {
        Self { qemu, sum: None }
    }
}

/// Whether a file is the one that was built.
fn is_whole(qemu: &Path, sum: Option<&str>) -> Result<(), Unfit> {
    let same = sum.is_none_or(|sum| ask::digest(qemu).is_ok_and(|digest| digest == sum));
    same.then_some(()).ok_or(Unfit::Changed)
}

fn candidates(sort: Sort, given: Option<&Path>) -> Vec<Candidate> {
    let absolute = |name: &OsStr| {
        let found = find::program(name)?;
        std::path::absolute(found).ok().map(Candidate::from)
    };
    if let Some(named) = named(sort, given) {
        return absolute(named.as_os_str()).into_iter().collect();
    }
    let shipped = find::near_executable(sort.name());
    let shipped = shipped.into_iter().filter(|p| p.is_file());
    let mut found: Vec<Candidate> = shipped.map(Candidate::from).collect();
    found.extend(absolute(OsStr::new(sort.name())));
    if sort == Sort::Program {
        found.extend(built());
    }
    found
}

/// What `scripts/qemu.sh` has built, the newest first.
fn built() -> Vec<Candidate> {
    let tools = find::cache_folder().map(|c| c.join("tools"));
    tools.as_deref().map_or_else(Vec::new, built_in)
}

fn built_in(tools: &Path) -> Vec<Candidate> {
    let folders = std::fs::read_dir(tools).into_iter().flatten().flatten();
    let whole = |folder: std::fs::DirEntry| {
        let name = folder.file_name().into_string().ok()?;
        let version = numbers(name.strip_prefix("qemu-")?);
        // Without this file a build was interrupted.
        let facts = std::fs::read_to_string(folder.path().join("complete")).ok()?;
        let sum = facts.lines().find_map(|line| line.strip_prefix("program "));
        let qemu = folder.path().join("bin").join(Sort::Program.name());
        let candidate = Candidate {
            sum: sum.map(str::to_owned),
            qemu,
        };
        candidate.qemu.is_file().then_some((version, candidate))
    };
    let mut found: Vec<(Vec<u64>, Candidate)> = folders.filter_map(whole).collect();
    found.sort_by(|(a, _), (b, _)| b.cmp(a));
    found.into_iter().map(|(_, candidate)| candidate).collect()
}

/// The numbers of a version, in order.
fn numbers(version: &str) -> Vec<u64> {
    let parts = version.split(|c: char| !c.is_ascii_digit());
    parts.filter_map(|p| p.parse().ok()).collect()
}

/// What a QEMU says of its version, such as `7.2.22`.
fn version(qemu: &Path) -> Option<String> {
    let output = std::process::Command::new(qemu).arg("--version").output();
    let text = String::from_utf8(output.ok()?.stdout).ok()?;
    let mut words = text.split_whitespace();
    words.find(|w| *w == "version")?;
    Some(words.next()?.to_owned())
}

/// Why a QEMU does not do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// It takes no plugins at all.
    NoPlugins,
    /// It serves no version from [`OLDEST`] on.
    TooOld,
    /// It serves no version up to [`NEWEST`]; its oldest one.
    TooNew(i32),
    /// It did not come as far as the plugin; what it said.
    Fails(String),
    /// Its file is not the one that was built.
    Changed,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoPlugins => f.write_str(
                "takes no plugins (as Debian's qemu-user from 10.0 on, which is linked statically)",
            ),
            Self::TooOld => write!(f, "is too old: its plugin interface is older than {OLDEST}"),
            Self::TooNew(oldest) => write!(
                f,
                "is too new: it takes plugins from interface version {oldest} on, and this one \
                 knows {OLDEST} to {NEWEST}"
            ),
            Self::Fails(said) => write!(f, "does not load the plugin: {said}"),
            Self::Changed => f.write_str(
                "is not the file that was built (by its SHA-256; piebald record --build-qemu builds \
                 it anew)",
            ),
        }
    }
}

/// A QEMU that was asked in vain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tried {
    /// Its path.
    pub qemu: PathBuf,
    /// Its version, if it says one.
    pub version: Option<String>,
    /// Why it does not do.
    pub why: Unfit,
}

/// No QEMU takes the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoEmulator {
    /// What was to be emulated.
    pub sort: Sort,
    /// The one that was to be used, if one was named.
    pub named: Option<PathBuf>,
    /// Those that there are.
    pub tried: Vec<Tried>,
}

impl std::error::Error for NoEmulator {}

impl fmt::Display for NoEmulator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for each in &self.tried {
            let version = each.version.as_deref().unwrap_or("of an unknown version");
            write!(f, "{} ({version}) {}; ", each.qemu.display(), each.why)?;
        }
        if self.tried.is_empty() {
            let name = self.named.as_deref().unwrap_or(Path::new(self.sort.name()));
            write!(f, "{} is not found; ", name.display())?;
        }
        f.write_str("needed is QEMU 7.2 to 11.1 with plugins: ")?;
        f.write_str(match self.sort {
            Sort::Program => {
                "install qemu-user on Debian 12 (apt install qemu-user); on later ones build it \
                 from Debian's source package (piebald record --build-qemu, some minutes)"
            }
            Sort::Machine => "install QEMU system mode (apt install qemu-system-x86)",
        })?;
        write!(f, "; or name one in {}", self.sort.variable())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_of_paths_are_doubled_and_the_version_comes_last() {
        let emulator = Emulator {
            qemu: "/usr/bin/qemu".into(),
            plugin: "/a,b.so".into(),
            api: 4,
        };
        let option = emulator.option(&[("state", OsStr::new("/x,y")), ("n", OsStr::new("1"))]);
        assert_eq!(option, "/a,,b.so,state=/x,,y,n=1,api=4");
    }

    #[test]
    fn versions_are_ordered_by_their_numbers() {
        let older = numbers("9.2.4+ds-1");
        let newer = numbers("10.0.13+ds-0+deb13u1");
        assert!(older < newer, "{older:?} {newer:?}");
    }

    #[test]
    fn what_was_built_is_known_by_its_sum() {
        let tools = tempfile::tempdir().expect("a folder");
        let build = |version: &str, facts: Option<&str>| {
            let bin = tools.path().join(format!("qemu-{version}/bin"));
            std::fs::create_dir_all(&bin).expect("a folder");
            std::fs::write(bin.join("qemu-x86_64"), version).expect("a program");
            if let Some(facts) = facts {
                std::fs::write(bin.join("../complete"), facts).expect("a file");
            }
        };
        // Of another file.
        let sum = "b94d1c1ac6e9ab0f5bb0b8b0a2ee0a1a";
        build("9.2", Some(&format!("version 9.2\nprogram {sum}\n")));
        build("10.0", Some("version 10.0\nrecipe 2\n"));
        build("11.1", None);
        let found = built_in(tools.path());
        let [newest, older] = &found[..] else {
            panic!("{}", found.len());
        };
        assert!(newest.qemu.ends_with("qemu-10.0/bin/qemu-x86_64"));
        assert_eq!(is_whole(&newest.qemu, newest.sum.as_deref()), Ok(()));
        assert_eq!(older.sum.as_deref(), Some(sum));
        assert_eq!(
            is_whole(&older.qemu, older.sum.as_deref()),
            Err(Unfit::Changed)
        );
        let digest = ask::digest(&older.qemu).expect("a file");
        assert_eq!(is_whole(&older.qemu, Some(&digest)), Ok(()));
        assert!(Unfit::Changed.to_string().contains("SHA-256"));
    }

    #[test]
    fn what_is_wrong_with_each_is_told_and_what_to_do() {
        let tried = |path: &str, version: Option<&str>, why| Tried {
            qemu: path.into(),
            version: version.map(str::to_owned),
            why,
        };
        let error = NoEmulator {
            sort: Sort::Program,
            named: None,
            tried: vec![
                tried("/usr/bin/qemu-x86_64", Some("10.0.13"), Unfit::NoPlugins),
                tried("/opt/qemu-x86_64", None, Unfit::TooNew(9)),
            ],
        };
        let text = error.to_string();
        for part in [
            "/usr/bin/qemu-x86_64 (10.0.13) takes no plugins",
            "/opt/qemu-x86_64 (of an unknown version) is too new: it takes plugins from interface version 9 on",
            "QEMU 7.2 to 11.1",
            "apt install qemu-user",
            "piebald record --build-qemu",
            "PIEBALD_QEMU",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let none = NoEmulator {
            sort: Sort::Machine,
            named: Some("/no/qemu".into()),
            tried: Vec::new(),
        };
        assert!(none.to_string().starts_with("/no/qemu is not found; "));
    }
}
