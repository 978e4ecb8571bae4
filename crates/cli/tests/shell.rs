//! What shells, `man` and packagers get: completions, manual pages, and a version with the commit.

#[path = "../build/commit.rs"]
mod commit;

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

use tempfile::TempDir;

const PIEBALD: &str = env!("CARGO_BIN_EXE_piebald");

fn piebald(args: &[&str]) -> Output {
    Command::new(PIEBALD).args(args).output().expect("runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Options and verbs of a help text: the words at the start of its indented lines.
fn named_by_help(verb: &[&str]) -> Vec<String> {
    let help = text(&piebald(&[verb, &["--help"]].concat()).stdout);
    let indented = help.lines().filter(|line| line.starts_with("  "));
    let words = indented.flat_map(|line| line.split([' ', ',', '[', '=']).map(str::to_owned));
    let options = words.filter(|w| w.starts_with("--") && w.len() > 2);
    let verbs = help.split_once("Commands:").map_or("", |(_, rest)| rest);
    let verbs = verbs.lines().skip(1).take_while(|line| !line.is_empty());
    // What wraps is indented further.
    let verbs = verbs.filter(|line| !line.starts_with("   "));
    let verbs = verbs.filter_map(|line| line.split_whitespace().next().map(str::to_owned));
    verbs.filter(|v| v != "help").chain(options).collect()
}

/// What bash offers for the last of these words.
fn offered(folder: &Path, words: &[&str]) -> Vec<String> {
    let script = format!(
        "source completions; COMP_WORDS=({}); COMP_CWORD={}; _piebald piebald \"{}\" x; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        words.iter().map(|w| format!("'{w}' ")).collect::<String>(),
        words.len() - 1,
        words[words.len() - 1],
    );
    let mut bash = Command::new("bash");
    bash.args(["-euc", &script]).current_dir(folder);
    let output = bash.output().expect("bash runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    let out = text(&output.stdout);
    out.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn bash_offers_verbs_options_and_their_values() {
    let folder = tempfile::tempdir().expect("folder");
    let script = piebald(&["completions", "bash"]);
    assert!(script.status.success());
    fs::write(folder.path().join("completions"), script.stdout).expect("written");
    let offered = |words: &[&str]| offered(folder.path(), words);
    assert_eq!(offered(&["piebald", "st"]), ["study", "status", "store"]);
    assert_eq!(offered(&["piebald", "machine", "der"]), ["derive"]);
    assert_eq!(
        offered(&["piebald", "record", "--stop"]),
        ["--stop-at-limit"]
    );
    assert_eq!(
        offered(&["piebald", "completions", ""])
            .iter()
            .rev()
            .take(3)
            .collect::<Vec<_>>(),
        ["fish", "zsh", "bash"]
    );
}

#[test]
fn every_shell_is_told_every_verb() {
    let verbs = named_by_help(&[]);
    assert!(verbs.contains(&"replay".to_owned()), "{verbs:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = text(&piebald(&["completions", shell]).stdout);
        for verb in &verbs {
            // Fish takes long options without dashes.
            assert!(
                script.contains(verb.trim_start_matches('-')),
                "{shell}: {verb}"
            );
        }
    }
    let refused = piebald(&["completions", "tcsh"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("bash, zsh, fish"));
}

#[test]
fn each_verb_has_a_page_with_its_options_and_what_it_stands_under() {
    let folder = tempfile::tempdir().expect("folder");
    let pages = folder.path().join("man/man1");
    let made = piebald(&["man", pages.to_str().expect("UTF-8")]);
    assert!(made.status.success(), "{}", text(&made.stderr));
    let page = |name: &str| {
        let path = pages.join(format!("{name}.1"));
        let page = fs::read_to_string(&path).expect("a page");
        assert!(page.contains(&format!(".TH {name} 1")), "{page}");
        page.replace('\\', "")
    };
    for verb in [
        &["study"][..],
        &["trace", "info"],
        &["machine"],
        &["guest", "run"],
    ] {
        let page = page(&format!("piebald-{}", verb.join("-")));
        let named = named_by_help(verb);
        assert!(named.len() > 1, "{verb:?}");
        for word in named {
            assert!(page.contains(&word), "{verb:?}: {word}");
        }
    }
    let first = page("piebald");
    for part in ["EXIT STATUS", "PIEBALD_PLUGIN", env!("CARGO_PKG_VERSION")] {
        assert!(first.contains(part), "{part}");
    }
}

#[test]
fn pages_that_cannot_be_written_are_an_error_that_names_the_place() {
    let folder = tempfile::tempdir().expect("folder");
    let file = folder.path().join("file");
    fs::write(&file, "x").expect("written");
    let path = file.to_str().expect("UTF-8");
    let refused = piebald(&["man", path]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        text(&refused.stderr).contains(path),
        "{}",
        text(&refused.stderr)
    );
}

#[test]
fn the_version_names_the_commit_that_it_was_built_from() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let commit = commit::of(&root).map_or(String::new(), |c| format!(" ({c})"));
    let expected = format!("piebald {}{commit}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(text(&piebald(&["--version"]).stdout), expected);
    assert_eq!(commit::log_of(&root).is_some(), !commit.is_empty());
}

fn git(folder: &Path, args: &[&str]) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=a", "-c", "user.email=a@b"]);
    let output = git
        .args(args)
        .current_dir(folder)
        .output()
        .expect("git runs");
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).trim().to_owned()
}

/// A repository with one commit that has the file which `git archive` fills in.
fn repository() -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("folder");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let archived = "crates/cli/build/archived-commit";
    fs::create_dir_all(folder.path().join("crates/cli/build")).expect("made");
    for file in [archived, ".gitattributes"] {
        fs::copy(root.join(file), folder.path().join(file)).expect("copied");
    }
    git(folder.path(), &["init", "-q"]);
    git(folder.path(), &["add", "."]);
    git(folder.path(), &["commit", "-q", "-m", "one"]);
    let hash = git(folder.path(), &["rev-parse", "HEAD"]);
    (folder, hash)
}

#[test]
fn a_clone_knows_its_commit_and_a_new_one_changes_the_file_that_is_watched() {
    let (folder, hash) = repository();
    let commit = commit::of(folder.path()).expect("a commit");
    assert!(hash.starts_with(&commit) && commit.len() == 12, "{commit}");
    let log = folder
        .path()
        .join(commit::log_of(folder.path()).expect("a log"));
    let before = fs::read(&log).expect("read");
    git(
        folder.path(),
        &["commit", "-q", "--allow-empty", "-m", "two"],
    );
    assert_ne!(fs::read(&log).expect("read"), before);
    assert_ne!(commit::of(folder.path()), Some(commit));
}

#[test]
fn sources_without_git_say_the_version_alone_and_archived_ones_their_commit() {
    let (outer, hash) = repository();
    // Inside another repository, whose commit is not theirs.
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).expect("made");
    assert_eq!(commit::of(&inner), None);
    git(outer.path(), &["archive", "-o", "a.tar", "HEAD"]);
    let tar = Command::new("tar")
        .args(["-xf", "../a.tar"])
        .current_dir(&inner)
        .status();
    assert!(tar.expect("tar runs").success());
    let commit = commit::of(&inner).expect("the archive says it");
    assert!(hash.starts_with(&commit), "{commit}");
    assert_eq!(commit::log_of(&inner), None);
    // Copied rather than archived: the pattern is not filled in.
    let file = "crates/cli/build/archived-commit";
    fs::copy(outer.path().join(file), inner.join(file)).expect("copied");
    assert_eq!(commit::of(&inner), None);
}
