//! Escape codes go to terminals that take them, and to nothing else.

use std::{
    fs::{File, OpenOptions},
    io::Read,
    path::Path,
    process::{Command, Stdio},
};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

const SCENARIO: &str = "schema = 1\nrepetitions = 2\nbudget_refs = \"20k\"\nwarmup_refs = \"1k\"\n\
    [machine]\npreset = \"w3540\"\nmemory = \"192MiB\"\n\
    [[program]]\nbuiltin = \"chase:64KiB\"\ncores = \"0\"\n";

/// What a study writes to a terminal that is its standard output and error.
fn on_terminal(folder: &Path, variables: &[(&str, &str)]) -> String {
    let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&terminal).expect("granted");
    unlockpt(&terminal).expect("unlocked");
    let name = ptsname(&terminal, Vec::new()).expect("a name");
    let name = name.into_string().expect("UTF-8");
    let open = || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(&name)
            .expect("opens")
    };
    let (out, err) = (open(), open());
    let mut command = Command::new(env!("CARGO_BIN_EXE_piebald"));
    command.args(["study", "s.toml"]).current_dir(folder);
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    command.envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(out).stderr(err);
    let mut child = command.spawn().expect("starts");
    // The command keeps the terminal's other end open until it is dropped.
    drop(command);
    let reader = std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // Reading fails when the last writer has gone.
        let _ = File::from(terminal).read_to_end(&mut bytes);
        bytes
    });
    assert!(child.wait().expect("ends").success());
    let bytes = reader.join().expect("read");
    String::from_utf8(bytes).expect("UTF-8")
}

#[test]
fn a_terminal_gets_bold_text_unless_it_refuses() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("s.toml"), SCENARIO).expect("written");
    let plain =
        |variables: &[(&str, &str)]| !on_terminal(folder.path(), variables).contains('\u{1b}');
    assert!(!plain(&[]), "bold headings");
    assert!(!plain(&[("NO_COLOR", "")]), "empty is unset");
    assert!(plain(&[("NO_COLOR", "1")]));
    assert!(plain(&[("TERM", "dumb")]));
    let text = on_terminal(folder.path(), &[("NO_COLOR", "1")]);
    assert!(text.contains("chase"), "the table is there: {text}");
}
