//! The command line as words: which word belongs to `--json` or `--csv`.
//!
//! The file of these options is optional, so a word behind one of them could be the file or what
//! the verb works on. One rule for all verbs: the word is the file if it is `-` or ends in `.json`
//! (`.csv`); any file is one behind `=`. What the rule gives no meaning is read once more as
//! earlier versions did, with a note.

use std::{ffi::OsString, io::Read, path::Path};

use clap::{Arg, Command, CommandFactory, Parser};
use piebald_experiment::reference;
use piebald_lab::scenario::is_scenario;
use piebald_report::check_file;
use piebald_trace::{detect::detect, recording::is_recording};

use crate::{
    failure::{Failure, print},
    json::STDOUT,
    outputs::is_stdout,
    terminal::takes_escapes,
};

/// The option that writes a scenario.
pub(crate) const SAVE: &str = "--save";
/// The option of `machine derive` that writes a machine.
pub(crate) const MACHINE: &str = "--output";
/// Options whose file is optional, and how a word ends that is their file.
const OUTPUTS: [(&str, &str); 2] = [("--json", ".json"), ("--csv", ".csv")];
/// The verb for the keys of scenario files.
const KEYS: &str = "keys";
/// Verbs whose `--json` and `--csv` always took the next word.
const TOOK_THE_NEXT: [&str; 3] = ["study", "guest", "reproduce"];

/// Reads the command line; what is wrong with it ends the program as clap does, and so do help and the
/// version after they were printed.
///
/// # Errors
/// An output that is somebody's trace or otherwise no output; help that cannot be printed.
pub(crate) fn read<C: Parser + CommandFactory>(words: &[OsString]) -> Result<C, Failure> {
    let end = end_of_ours(words, &C::command());
    let by_rule = joined(words, end, is_file_of);
    let (command, words) = match parse::<C>(&by_rule) {
        Ok(command) => (command, by_rule),
        Err(error) => {
            let (old, note) = old_form(words, end);
            match parse::<C>(&old) {
                Ok(command) if error.use_stderr() && old != by_rule => {
                    crate::failure::say!("piebald: note: {note}");
                    (command, old)
                }
                _ if error.use_stderr() => error.exit(),
                // Help and the version are output like others.
                _ => {
                    let text = error.render();
                    let printed = if takes_escapes(&std::io::stdout()) {
                        text.ansi().to_string()
                    } else {
                        text.to_string()
                    };
                    print(&printed)?;
                    std::process::exit(0)
                }
            }
        }
    };
    let printed = outputs(&words, end).filter(|(_, file)| is_stdout(Path::new(file)));
    if printed.count() > 1 {
        return Err(Failure::usage(
            "--json and --csv: both go to standard output; allowed: one, and the other with =FILE",
        ));
    }
    outputs(&words, end).try_for_each(|(option, file)| check_output(option, Path::new(file)))?;
    Ok(command)
}

/// Reads the words with the definitions.
fn parse<C: Parser + CommandFactory>(words: &[OsString]) -> Result<C, clap::Error> {
    let mut command = with_negative_values(C::command());
    if words.iter().any(|word| word == KEYS) {
        command = with_reference(command);
    }
    let matches = command.try_get_matches_from_mut(words)?;
    C::from_arg_matches(&matches).map_err(|error| error.format(&mut command))
}

/// The same command, where the long help of the verb for keys ends with them. Making them takes longer than all else
/// that a program does to begin, so that only those who may ask for them do.
pub(crate) fn with_reference(command: Command) -> Command {
    if command.find_subcommand(KEYS).is_none() {
        return command;
    }
    command.mut_subcommand(KEYS, |verb| verb.after_long_help(reference()))
}

/// A negative number is the value of the option before it, which says what is allowed, and no
/// unknown option.
fn with_negative_values(command: Command) -> Command {
    let values = |arg: Arg| {
        if arg.get_action().takes_values() && !arg.is_trailing_var_arg_set() {
            arg.allow_negative_numbers(true)
        } else {
            arg
        }
    };
    command
        .mut_args(values)
        .mut_subcommands(with_negative_values)
}

/// The rule.
fn is_file_of(option: &str, word: &str) -> bool {
    let ending = OUTPUTS.iter().find(|(name, _)| *name == option);
    let ends = |(_, ending): &(&str, &str)| word.len() > ending.len() && word.ends_with(ending);
    word == STDOUT || !word.starts_with('-') && ending.is_some_and(ends)
}

/// Every `--json FILE` of the first `end` words for which `is_file` holds, as `--json=FILE`.
fn joined(words: &[OsString], end: usize, is_file: impl Fn(&str, &str) -> bool) -> Vec<OsString> {
    let mut out: Vec<OsString> = Vec::with_capacity(words.len());
    let mut option: Option<&str> = None;
    for (at, word) in words.iter().enumerate() {
        let text = word.to_string_lossy();
        if let Some(before) = option.take()
            && at < end
            && is_file(before, &text)
            && let Some(last) = out.last_mut()
        {
            last.push("=");
            last.push(word);
            continue;
        }
        let named = OUTPUTS.iter().find(|(name, _)| text == *name);
        option = named.map(|(name, _)| *name);
        out.push(word.clone());
    }
    out
}

/// The words as earlier versions read them, and what to say of it.
fn old_form(words: &[OsString], end: usize) -> (Vec<OsString>, String) {
    let verb = words.get(1).map(|v| v.to_string_lossy());
    let took = verb.is_some_and(|verb| TOOK_THE_NEXT.contains(&verb.as_ref()));
    match took {
        true => (
            joined(words, end, |_, word| !word.starts_with('-')),
            "--json and --csv take the next word only if it ends in .json or .csv; the next \
             version refuses others without =, as in --json=FILE"
                .to_owned(),
        ),
        false => (
            words.to_vec(),
            "the word behind --json is not taken as its file here, as without it something is \
             missing; put it before --json: the next version takes words that end in .json"
                .to_owned(),
        ),
    }
}

/// Where the words end that are ours: at `--`, and at the program that a verb starts.
fn end_of_ours(words: &[OsString], command: &Command) -> usize {
    let dashes = words.iter().position(|w| w == "--").unwrap_or(words.len());
    let verb = words.get(1).map(|v| v.to_string_lossy());
    let Some(verb) = verb.and_then(|v| command.find_subcommand(v.as_ref())) else {
        return dashes;
    };
    match verb.get_positionals().any(|p| p.is_trailing_var_arg_set()) {
        true => first_positional(words, verb).min(dashes),
        false => dashes,
    }
}

/// The first word behind the verb that is neither an option nor the value of one.
fn first_positional(words: &[OsString], verb: &Command) -> usize {
    let mut at = 2;
    while let Some(word) = words.get(at) {
        let text = word.to_string_lossy();
        if !text.starts_with('-') || text == STDOUT {
            break;
        }
        let next = words.get(at + 1).map(|w| w.to_string_lossy());
        let output = next.is_some_and(|next| is_file_of(&text, &next));
        at += 1 + usize::from(output || wants_next(&text, verb));
    }
    at.min(words.len())
}

/// Is the next word the value of this option?
fn wants_next(option: &str, verb: &Command) -> bool {
    let with_value = |a: &&clap::Arg| a.get_action().takes_values() && !a.is_require_equals_set();
    let takes = |is: &dyn Fn(&clap::Arg) -> bool| {
        let mut options = verb.get_opts().filter(with_value);
        options.any(is)
    };
    match option.strip_prefix("--") {
        Some(long) => takes(&|a| a.get_long() == Some(long)),
        // The first letter that takes a value has the rest of the word, or the next one.
        None => {
            let mut letters = option.chars().skip(1);
            letters.any(|c| takes(&|a| a.get_short() == Some(c))) && letters.next().is_none()
        }
    }
}

/// The first of these options that is given.
pub(crate) fn first_given(options: &[(&'static str, bool)]) -> Option<&'static str> {
    options
        .iter()
        .find(|(_, is_given)| *is_given)
        .map(|(option, _)| *option)
}

/// `--json` and `--csv` with their files.
fn outputs(words: &[OsString], end: usize) -> impl Iterator<Item = (&'static str, &str)> {
    words.iter().take(end).filter_map(|word| {
        let text = word.to_str()?;
        OUTPUTS
            .iter()
            .find_map(|(option, _)| match text.strip_prefix(option)? {
                "" => Some((*option, STDOUT)),
                rest => Some((*option, rest.strip_prefix('=')?)),
            })
    })
}

/// An output may replace an older output, never a trace or another file; and there must be a place
/// for it before the work begins.
pub(crate) fn check_output(option: &str, path: &Path) -> Result<(), Failure> {
    check_kind((option, option), path)
}

/// The same of a file that `option` leads to, and that holds what another option would write.
pub(crate) fn check_kind((option, kind): (&str, &str), path: &Path) -> Result<(), Failure> {
    if is_stdout(path) {
        return Ok(());
    }
    check_file(path).map_err(|e| Failure::usage(format!("{option} {e}")))?;
    let metadata = std::fs::metadata(path);
    if !metadata.is_ok_and(|m| m.is_file() && m.len() > 0) {
        return Ok(());
    }
    std::fs::File::open(path).map_err(|e| {
        Failure::usage(format!(
            "{option} {}: this file is there and cannot be read to see what it holds: {e}; allowed: \
             a new file, or one that can be read",
            path.display()
        ))
    })?;
    let refuse = |what: &str| {
        let holds = match kind {
            SAVE => "a scenario".to_owned(),
            MACHINE => "a machine".to_owned(),
            _ => kind.trim_start_matches('-').to_uppercase(),
        };
        Err(Failure::usage(format!(
            "{option} {}: {what}, and would be overwritten; allowed: a new file, or one that holds \
             {holds}",
            path.display(),
        )))
    };
    if is_recording(path).unwrap_or(false) {
        return refuse("this file is a recording");
    }
    if kind == "--json" {
        let json = std::fs::File::open(path).is_ok_and(|file| {
            let reader = std::io::BufReader::new(file);
            serde_json::from_reader::<_, serde::de::IgnoredAny>(reader).is_ok()
        });
        if !json {
            return refuse("this file is there and is no JSON");
        }
    }
    let begins = |is: fn(&str) -> bool| {
        let mut head = vec![0; HEAD];
        let read = std::fs::File::open(path).and_then(|mut file| file.read(&mut head));
        head.truncate(read.unwrap_or(0));
        is(&String::from_utf8_lossy(&head))
    };
    let (holds, is_none) = match kind {
        SAVE => (is_scenario(path), "no scenario"),
        MACHINE => (is_machine(path), "no machine"),
        "--html" => (begins(is_html), "no HTML"),
        "--csv" => (begins(is_csv), "no CSV"),
        _ => (true, ""),
    };
    if !holds {
        return refuse(&format!("this file is there and is {is_none}"));
    }
    if matches!(kind, SAVE | MACHINE) {
        return Ok(());
    }
    match detect(path) {
        Ok(format) => refuse(&format!("this file is a trace ({})", format.name())),
        Err(_) => Ok(()),
    }
}

/// Bytes by which a file is known.
const HEAD: usize = 4096;

fn is_machine(path: &Path) -> bool {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let table = text.parse::<toml::Table>();
    table.is_ok_and(|table| table.contains_key("core") && table.contains_key("cache"))
}

fn is_html(head: &str) -> bool {
    let head = head
        .trim_start_matches('\u{feff}')
        .trim_start()
        .to_ascii_lowercase();
    head.starts_with("<!doctype html") || head.starts_with("<html") || head.starts_with("<?xml")
}

/// Its first line is a list of names, as those of results are.
fn is_csv(head: &str) -> bool {
    let line = head.lines().next().unwrap_or_default();
    let is_name = |name: &str| {
        // Figures of policies have blanks in their names; prose has them behind commas.
        let word = |b: u8| b.is_ascii_alphanumeric() || b"_.-%[]/ ".contains(&b);
        !name.is_empty() && name.trim() == name && name.bytes().all(word)
    };
    line.contains(',') && line.split(',').all(is_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    fn by_rule(text: &str) -> Vec<OsString> {
        let words = words(text);
        let end = end_of_ours(&words, &crate::Cli::command());
        joined(&words, end, is_file_of)
    }

    #[test]
    fn a_word_is_the_file_of_an_output_by_its_ending_alone() {
        for (given, read) in [
            ("piebald study --json s.toml", "piebald study --json s.toml"),
            (
                "piebald study --json x.json s.toml",
                "piebald study --json=x.json s.toml",
            ),
            ("piebald replay --json t.spc", "piebald replay --json t.spc"),
            ("piebald replay t --json -", "piebald replay t --json=-"),
            (
                "piebald replay --csv t.csv t",
                "piebald replay --csv=t.csv t",
            ),
            (
                "piebald replay --csv t.json t",
                "piebald replay --csv t.json t",
            ),
            (
                "piebald status --json -q.json",
                "piebald status --json -q.json",
            ),
            ("piebald status --json .json", "piebald status --json .json"),
            (
                "piebald replay -- --json x.json",
                "piebald replay -- --json x.json",
            ),
        ] {
            assert_eq!(by_rule(given), words(read), "{given}");
        }
    }

    /// The error for a value of an option or operand of a verb.
    fn refused(verb: &[&str], arg: &Arg, value: &str) -> Option<String> {
        let mut words: Vec<OsString> = verb.iter().map(OsString::from).collect();
        match (arg.get_long(), arg.get_short()) {
            (Some(long), _) => words.push(format!("--{long}={value}").into()),
            (None, Some(short)) => words.extend([format!("-{short}").into(), value.into()]),
            (None, None) => words.push(value.into()),
        }
        let error = parse::<crate::Cli>(&words).err()?;
        Some(error.to_string())
    }

    /// Every verb below `command`, with the words that lead to it.
    fn verbs<'a>(
        command: &'a Command,
        words: &[&'a str],
        out: &mut Vec<(Vec<&'a str>, &'a Command)>,
    ) {
        let words = [words, &[command.get_name()]].concat();
        for verb in command.get_subcommands() {
            verbs(verb, &words, out);
        }
        out.push((words, command));
    }

    /// Every verb gives a document to programs, but for those that print another form.
    #[test]
    fn every_verb_has_a_json_form() {
        /// `run` becomes another program; the others print scripts, pages and files of other languages.
        const NONE: [&str; 6] = [
            "run",
            "schema",
            "completions",
            "man",
            "reproduce export",
            "help",
        ];
        let command = crate::Cli::command();
        let mut all = Vec::new();
        verbs(&command, &[], &mut all);
        let leaves = all.iter().filter(|(_, verb)| !verb.has_subcommands());
        let mut without: Vec<String> = leaves
            .filter(|(_, verb)| verb.get_arguments().all(|arg| arg.get_id() != "json"))
            .map(|(words, _)| words[1..].join(" "))
            .collect();
        // What `hardware-report` starts is no verb for people.
        without
            .retain(|words| !NONE.contains(&words.as_str()) && !words.starts_with("hardware-work"));
        assert!(without.is_empty(), "{without:?}");
        assert!(all.len() > 30, "{}", all.len());
    }

    #[test]
    fn a_wrong_number_is_told_with_what_is_allowed_and_not_in_words_of_libraries() {
        let command = crate::Cli::command();
        let mut all = Vec::new();
        verbs(&command, &[], &mut all);
        let mut numbers = 0;
        for (words, verb) in all {
            for arg in verb
                .get_arguments()
                .filter(|a| a.get_action().takes_values())
            {
                // `-1` in the place of a file or a program is an option that is not there.
                let numbers_here = ["1x", "99999999999999999999", "-1"];
                let is_operand = arg.get_long().is_none() && arg.get_short().is_none();
                let tried = 3 - usize::from(is_operand);
                for value in &numbers_here[..tried] {
                    let Some(said) = refused(&words, arg, value) else {
                        continue;
                    };
                    for text in [
                        "invalid digit",
                        "float literal",
                        "target type",
                        "not in ",
                        "unexpected argument",
                    ] {
                        assert!(!said.contains(text), "{words:?} {}: {said}", arg.get_id());
                    }
                    numbers += usize::from(said.contains("allowed: a whole number from"));
                }
            }
        }
        assert!(numbers > 30, "{numbers} refusals");
        let seed = crate::Cli::command();
        let study = seed.find_subcommand("study").expect("a verb");
        let seed = study.get_arguments().find(|a| a.get_id() == "seed");
        let said = refused(&["piebald", "study"], seed.expect("an option"), "-1");
        assert!(
            said.is_some_and(|said| said.contains("allowed: a whole number from 0 to 184467")),
            "the range is told"
        );
    }

    #[test]
    fn the_words_of_a_program_that_is_started_are_its_own() {
        for (given, read) in [
            (
                "piebald compare prog --json x.json",
                "piebald compare prog --json x.json",
            ),
            (
                "piebald compare --pairs 3 --json x.json prog --json y.json",
                "piebald compare --pairs 3 --json=x.json prog --json y.json",
            ),
            (
                "piebald compare --json prog --json y.json",
                "piebald compare --json prog --json y.json",
            ),
            (
                "piebald record -qo a.pbr prog --json y.json",
                "piebald record -qo a.pbr prog --json y.json",
            ),
            (
                "piebald record -oa.pbr prog --json y.json",
                "piebald record -oa.pbr prog --json y.json",
            ),
        ] {
            assert_eq!(by_rule(given), words(read), "{given}");
        }
    }
}
