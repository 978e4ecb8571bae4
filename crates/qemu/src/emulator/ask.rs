//! The question which plugins a QEMU takes, its answer, and where that is kept.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Sort, Unfit, plugin_option};
use crate::api::Info;
use crate::api::declared::{NEWEST, OLDEST};
use crate::find;

/// The argument with which the plugin answers and ends QEMU.
const QUESTION: (&str, &str) = ("ask", "versions");
/// What the answer begins with.
const ANSWER: &str = "piebald plugin: served versions";

/// Interface versions that a QEMU serves, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Serves {
    /// The oldest one.
    pub oldest: i32,
    /// The newest one.
    pub newest: i32,
}

/// What is worth keeping of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Known {
    Serves(Serves),
    NoPlugins,
}

/// Is this plugin only asked?
pub fn is_question(arguments: &[String]) -> bool {
    let (name, value) = QUESTION;
    arguments.contains(&format!("{name}={value}"))
}

/// Answers on standard output and ends QEMU.
pub fn answer(info: &Info) -> ! {
    let mut out = io::stdout();
    let _ = writeln!(out, "{ANSWER} {} {}", info.version_min, info.version_cur);
    let _ = out.flush();
    // SAFETY: ends the process; nothing is left to be done.
    unsafe { libc::_exit(0) }
}

/// Which versions this QEMU serves, from the cache or by loading the plugin.
///
/// # Errors
/// Why it does not take the plugin.
pub fn versions(qemu: &Path, plugin: &Path, sort: Sort) -> Result<Serves, Unfit> {
    let place = place(qemu);
    if let Some(known) = place.as_deref().and_then(read) {
        return fit(known);
    }
    let known = ask(&|api| load(qemu, plugin, sort, api))?;
    if let Some(place) = &place {
        // Without a cache it is asked again.
        let _ = keep(place, known);
    }
    fit(known)
}

fn fit(known: Known) -> Result<Serves, Unfit> {
    match known {
        Known::NoPlugins => Err(Unfit::NoPlugins),
        Known::Serves(s) if s.newest < OLDEST => Err(Unfit::TooOld),
        Known::Serves(s) if s.oldest > NEWEST => Err(Unfit::TooNew(s.oldest)),
        Known::Serves(s) => Ok(s),
    }
}

/// What a QEMU did with the plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reply {
    Serves(Serves),
    NoPlugins,
    /// It refused the declared version; what it serves ends or begins here.
    UpTo(i32),
    From(i32),
    Other(String),
}

/// Loads the plugin, which first declares what QEMU's functions tell, and if that is refused
/// what the refusal says.
fn ask(load: &dyn Fn(Option<i32>) -> Reply) -> Result<Known, Unfit> {
    let second = match load(None) {
        Reply::UpTo(newest) if newest < OLDEST => return Err(Unfit::TooOld),
        Reply::From(oldest) if oldest > NEWEST => return Err(Unfit::TooNew(oldest)),
        Reply::UpTo(n) | Reply::From(n) => load(Some(n)),
        first => first,
    };
    match second {
        Reply::Serves(serves) => Ok(Known::Serves(serves)),
        Reply::NoPlugins => Ok(Known::NoPlugins),
        Reply::UpTo(n) => Err(Unfit::Fails(format!("it serves versions up to {n}"))),
        Reply::From(n) => Err(Unfit::Fails(format!("it serves versions from {n} on"))),
        Reply::Other(said) => Err(Unfit::Fails(said)),
    }
}

fn load(qemu: &Path, plugin: &Path, sort: Sort, api: Option<i32>) -> Reply {
    let (name, value) = QUESTION;
    let mut command = Command::new(qemu);
    command.arg("-plugin");
    command.arg(plugin_option(plugin, api, &[(name, OsStr::new(value))]));
    match sort {
        // A program has to be named; QEMU ends before it looks for it.
        Sort::Program => command.arg("program"),
        Sort::Machine => command.args(["-machine", "none", "-nodefaults", "-display", "none"]),
    };
    // As when it records: what is meant for the program is none of QEMU's.
    for (name, _) in std::env::vars_os() {
        if name.as_encoded_bytes().starts_with(b"LD_") {
            command.env_remove(name);
        }
    }
    let output = command.stdin(Stdio::null()).output();
    match output {
        Ok(output) => reply(
            &String::from_utf8_lossy(&output.stdout),
            &String::from_utf8_lossy(&output.stderr),
            &output.status.to_string(),
        ),
        Err(error) => Reply::Other(error.to_string()),
    }
}

/// What QEMU's two outputs and its status mean.
fn reply(out: &str, err: &str, status: &str) -> Reply {
    let answer = out.lines().find_map(|l| l.strip_prefix(ANSWER));
    let mut numbers = answer.unwrap_or("").split_whitespace().map(str::parse);
    if let (Some(Ok(oldest)), Some(Ok(newest))) = (numbers.next(), numbers.next()) {
        return Reply::Serves(Serves { oldest, newest });
    }
    // The words of QEMU's loader (`plugins/loader.c`), the same in 7.2 to 11.1.
    if let Some(newest) = number_after(err, "supports only up to version ") {
        return Reply::UpTo(newest);
    }
    if let Some(oldest) = number_after(err, "supports only a minimum version of ") {
        return Reply::From(oldest);
    }
    let without = [
        "unknown option 'plugin'",
        "-plugin: invalid option",
        "plugin interface not enabled",
    ];
    if without.iter().any(|w| err.contains(w)) {
        return Reply::NoPlugins;
    }
    let said = err.lines().next().map(str::trim).unwrap_or("");
    Reply::Other(match said {
        "" => format!("it ended with {status}"),
        said => format!("{said} ({status})"),
    })
}

fn number_after(text: &str, words: &str) -> Option<i32> {
    let (_, rest) = text.split_once(words)?;
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// The SHA-256 of a QEMU's file, in hexadecimal.
pub fn digest(qemu: &Path) -> io::Result<String> {
    let mut hash = Sha256::new();
    let mut file = File::open(qemu)?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            n => hash.update(&buffer[..n]),
        }
    }
    Ok(hash.finalize().iter().map(|b| format!("{b:02x}")).collect())
}

/// The file that keeps the answer of this QEMU.
fn place(qemu: &Path) -> Option<PathBuf> {
    Some(find::cache_folder()?.join("qemu").join(digest(qemu).ok()?))
}

/// What was kept; nothing if it cannot be read.
fn read(place: &Path) -> Option<Known> {
    serde_json::from_slice(&std::fs::read(place).ok()?).ok()
}

fn keep(place: &Path, known: Known) -> io::Result<()> {
    let folder = place.parent().ok_or(io::ErrorKind::InvalidInput)?;
    std::fs::create_dir_all(folder)?;
    let partial = place.with_extension(format!("{}.partial", std::process::id()));
    std::fs::write(&partial, serde_json::to_vec(&known)?)?;
    std::fs::rename(&partial, place)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const SERVES: Serves = Serves {
        oldest: 2,
        newest: 4,
    };

    #[test]
    fn what_qemu_says_is_understood() {
        let replies = [
            (
                "piebald plugin: served versions 2 4\n",
                "",
                Reply::Serves(SERVES),
            ),
            (
                "",
                "qemu: unknown option 'plugin'\nusage: ...",
                Reply::NoPlugins,
            ),
            (
                "",
                "qemu-system-x86_64: -plugin: invalid option",
                Reply::NoPlugins,
            ),
            (
                "",
                "qemu-x86_64: Could not load plugin p.so: plugin requires API version 2, but this \
                 QEMU supports only up to version 1\n",
                Reply::UpTo(1),
            ),
            (
                "",
                "Could not load plugin p.so: plugin requires API version 1, but this QEMU supports \
                 only a minimum version of 12",
                Reply::From(12),
            ),
            ("", "", Reply::Other("it ended with signal: 11".into())),
            (
                "piebald plugin: served versions many",
                "no such file\nmore",
                Reply::Other("no such file (signal: 11)".into()),
            ),
        ];
        for (out, err, meant) in replies {
            assert_eq!(reply(out, err, "signal: 11"), meant, "{out}{err}");
        }
    }

    /// A QEMU that refuses what it does not serve, and how it was asked.
    fn asked(first: i32, oldest: i32, newest: i32) -> (Result<Known, Unfit>, Vec<Option<i32>>) {
        let asked = RefCell::new(Vec::new());
        let load = |api: Option<i32>| {
            asked.borrow_mut().push(api);
            match api.unwrap_or(first) {
                n if n > newest => Reply::UpTo(newest),
                n if n < oldest => Reply::From(oldest),
                _ => Reply::Serves(Serves { oldest, newest }),
            }
        };
        let known = ask(&load);
        (known, asked.into_inner())
    }

    #[test]
    fn a_refusal_tells_what_to_declare() {
        let known = |oldest, newest| Ok(Known::Serves(Serves { oldest, newest }));
        assert_eq!(asked(1, 0, 1), (known(0, 1), vec![None]));
        assert_eq!(asked(7, 6, 6), (known(6, 6), vec![None, Some(6)]));
        assert_eq!(asked(2, 7, 7), (known(7, 7), vec![None, Some(7)]));
        // Newer than any that is known, but it still serves an older version.
        assert_eq!(asked(7, 7, 9), (known(7, 9), vec![None]));
    }

    #[test]
    fn a_qemu_out_of_reach_is_told_from_one_that_fails() {
        assert_eq!(asked(1, 0, 0), (Err(Unfit::TooOld), vec![None]));
        let newer = NEWEST + 1;
        assert_eq!(
            asked(7, newer, newer),
            (Err(Unfit::TooNew(newer)), vec![None])
        );
        let fails = ask(&|_| Reply::Other("no such file".into()));
        assert_eq!(fails, Err(Unfit::Fails("no such file".into())));
        let kept = Serves {
            oldest: newer,
            newest: newer,
        };
        assert_eq!(fit(Known::Serves(kept)), Err(Unfit::TooNew(newer)));
        assert_eq!(fit(Known::NoPlugins), Err(Unfit::NoPlugins));
    }

    #[test]
    fn what_is_kept_is_read_again_and_what_is_damaged_is_not() {
        let folder = tempfile::tempdir().expect("temporary directory");
        let place = folder.path().join("qemu/0123");
        assert_eq!(read(&place), None);
        for known in [Known::Serves(SERVES), Known::NoPlugins] {
            keep(&place, known).expect("keeps");
            assert_eq!(read(&place), Some(known));
        }
        std::fs::write(&place, r#"{"serves":{"oldest":2"#).expect("write");
        assert_eq!(read(&place), None);
        let files = std::fs::read_dir(folder.path().join("qemu")).expect("folder");
        assert_eq!(files.count(), 1, "nothing half-written stays");
    }
}
