//! The programs that come with Piebald and run in guests.

use std::{ffi::OsStr, path::Path, process::Command};

use piebald_qemu::find;

use crate::boot::{BootError, failed, run, write};

const MARKS: (&str, &str) = ("mark.h", include_str!("../programs/mark.h"));
/// What the distribution's PostMark reads: SRM-buffer's settings on 64 files.
const POSTMARK: (&str, &str) = ("postmark.conf", include_str!("../programs/postmark.conf"));
const PROGRAMS: [(&str, &str); 10] = [
    ("fft", include_str!("../programs/fft.c")),
    ("graph", include_str!("../programs/graph.c")),
    ("launch", include_str!("../programs/launch.c")),
    ("lu", include_str!("../programs/lu.c")),
    ("mergesort", include_str!("../programs/mergesort.c")),
    ("mm", include_str!("../programs/mm.c")),
    ("records", include_str!("../programs/records.c")),
    ("scan", include_str!("../programs/scan.c")),
    ("session", include_str!("../programs/session.c")),
    ("walk", include_str!("../programs/walk.c")),
];

/// Compiles the programs that come with Piebald, without shared libraries, into the folder
/// `programs` of a folder: those that guests run, for recordings of the same.
///
/// # Errors
/// What is missing or failed.
pub(crate) fn compile(folder: &Path) -> Result<(), BootError> {
    let programs = folder.join("programs");
    std::fs::create_dir_all(&programs).map_err(|e| failed(&programs, e))?;
    write(folder, MARKS.0, MARKS.1)?;
    write(&programs, POSTMARK.0, POSTMARK.1)?;
    for source in &PROGRAMS {
        compile_one(folder, source, &programs, &[])?;
    }
    Ok(())
}

/// Compiles a program that comes with Piebald from `folder` to `programs`.
pub(crate) fn compile_one(
    folder: &Path,
    (name, text): &(&str, &str),
    programs: &Path,
    options: &[&str],
) -> Result<(), BootError> {
    let source = write(folder, &format!("{name}.c"), text)?;
    let mut cc = Command::new("cc");
    cc.args(["-O2", "-static"]).args(options).arg("-o");
    cc.arg(programs.join(name)).arg(source).arg("-lm");
    run("cc", &mut cc).map(drop)
}

/// Is it a program that comes with Piebald, or is on this computer?
pub(crate) fn has_program(name: &str) -> bool {
    own(name).is_some() || find::program(OsStr::new(name)).is_some()
}

/// Does it come with Piebald?
pub fn own_program(name: &str) -> bool {
    own(name).is_some()
}

/// The texts that are compiled of the programs that come with Piebald, and what they read.
pub fn sources() -> impl Iterator<Item = &'static str> {
    let programs = PROGRAMS.iter().map(|(_, text)| *text);
    programs.chain([MARKS.1, POSTMARK.1])
}

/// The source of a program that comes with Piebald.
pub(crate) fn own(name: &str) -> Option<&'static (&'static str, &'static str)> {
    PROGRAMS.iter().find(|(ours, _)| *ours == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn graphs_are_worked_on_and_checked() {
        let folder = tempfile::tempdir().expect("a folder");
        let source = own("graph").expect("is ours");
        write(folder.path(), MARKS.0, MARKS.1).expect("is written");
        let programs = folder.path().join("programs");
        std::fs::create_dir(&programs).expect("is made");
        compile_one(
            folder.path(),
            source,
            &programs,
            &["-Wall", "-Wextra", "-Werror"],
        )
        .expect("compiles");
        let code = |words: &str| {
            let mut graph = Command::new(programs.join("graph"));
            graph.args(words.split_whitespace());
            graph.output().expect("it ran").status.code()
        };
        for what in ["bfs", "pr", "cg"] {
            for size in ["2 1 1", "1000 1 3", "1000 8 40"] {
                assert_eq!(code(&format!("{what} {size}")), Some(0), "{what} {size}");
            }
        }
        for words in [
            "",
            "dfs 10 1 1",
            "pr 1 1 1",
            "pr 10 0 1",
            "pr 10 65 1",
            "pr 10 1 0",
            "pr 10 1",
        ] {
            assert_eq!(code(words), Some(2), "{words}");
        }
    }
}
