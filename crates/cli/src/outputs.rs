//! How the result of a study is shown and kept.

use std::{
    os::{fd::AsFd, unix::fs::MetadataExt},
    path::{Path, PathBuf},
};

use piebald_report::{
    Study, TableStyle, check_folder, sweep_to_csv, sweep_to_html, sweep_to_json, sweep_to_table,
    to_csv, to_json, to_table, write_atomically,
};

use crate::{
    command_line::{SAVE, check_kind, check_output},
    failure::{Failure, print},
    json::{Json, STDOUT},
    terminal,
};

/// Options of every verb that makes a study.
#[derive(clap::Args)]
pub(crate) struct Outputs {
    /// Write report.html, study.json and study.csv to this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    json: Json,
    /// As CSV to this file, or to standard output without a name or with -. Without = the next
    /// word is the file only if it ends in .csv
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = STDOUT, require_equals = true)]
    csv: Option<PathBuf>,
    /// Write a self-contained HTML report with charts to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Outputs {
    /// Can these studies be written as asked, is there a place for them, and is none of these inputs there?
    /// `single` says that there is one study, and no axis.
    pub(crate) fn check(
        &self,
        (studies, single): (usize, bool),
        inputs: &[PathBuf],
    ) -> Result<(), Failure> {
        if self.html.is_some() && studies > 1 {
            return Err(Failure::usage(
                "--html: a report is of one study, and the scenario has a sweep; allowed: \
                 --output, which writes a report of each point, --json and --csv",
            ));
        }
        let pages = if single {
            vec!["report.html".to_owned()]
        } else {
            (1..=studies).map(page_of).collect()
        };
        let files = ["study.json", "study.csv"].map(str::to_owned);
        let names = [&files[..], &pages].concat();
        ready(&Wanted {
            folder: self.output.as_deref().map(|folder| (folder, &names[..])),
            files: &[
                ("--json", self.json.path()),
                ("--csv", self.csv.as_deref()),
                ("--html", self.html.as_deref()),
            ],
            inputs,
        })?;
        let points = if single { 0 } else { studies };
        let of_others = |folder| reports_of_others(folder, points);
        let others = self.output.as_deref().map_or_else(Vec::new, of_others);
        if !others.is_empty() {
            crate::failure::say!(
                "piebald: reports of another study stay there: {}",
                others.join(", ")
            );
        }
        Ok(())
    }

    /// Prints the table, unless a machine-readable form goes to standard output, and
    /// writes the files asked for; of the points of a sweep one table, one list, and a folder for
    /// each report.
    pub(crate) fn show(&self, studies: &[Study]) -> Result<(), Failure> {
        let single = match studies {
            [study] if study.axes.is_empty() => Some(study),
            _ => None,
        };
        let (json, csv) = match single {
            Some(study) => (to_json(study), to_csv(study)),
            None => (sweep_to_json(studies), sweep_to_csv(studies)),
        };
        let (json, csv) = (
            json.map_err(Failure::failed)?,
            csv.map_err(Failure::failed)?,
        );
        let pages = sweep_to_html(studies).map_err(Failure::failed)?;
        let mut outputs: Vec<(PathBuf, &str)> = Vec::new();
        let html_path = self.html.as_deref();
        for (path, text) in [(self.json.path(), &json), (self.csv.as_deref(), &csv)]
            .into_iter()
            .chain(pages.iter().map(|page| (html_path, page)))
        {
            outputs.extend(path.map(|p| (p.to_owned(), text.as_str())));
        }
        let mut folders: Vec<PathBuf> = self.output.iter().cloned().collect();
        if let Some(folder) = &self.output {
            outputs.push((folder.join("study.json"), &json));
            outputs.push((folder.join("study.csv"), &csv));
            for (number, page) in pages.iter().enumerate() {
                let at = match single {
                    Some(_) => folder.join("report.html"),
                    None => folder.join(page_of(number + 1)),
                };
                folders.extend(at.parent().map(Path::to_owned));
                outputs.push((at, page));
            }
        }
        let folders: Vec<&Path> = folders.iter().map(PathBuf::as_path).collect();
        write(&folders, &outputs, || {
            let style = table_style();
            match single {
                Some(study) => to_table(study, &style),
                None => sweep_to_table(studies, &style),
            }
        })
    }
}

/// Where the report of a sweep's point is, in the folder of outputs.
fn page_of(point: usize) -> String {
    format!("point-{point}/report.html")
}

/// Reports in a folder that this study does not replace: of points behind its last one, and, if it has points,
/// that of a study without any.
fn reports_of_others(folder: &Path, points: usize) -> Vec<String> {
    let found = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = found.filter_map(|entry| entry.file_name().into_string().ok());
    let number = |name: &String| name.strip_prefix("point-")?.parse::<usize>().ok();
    let mut behind: Vec<(usize, String)> = names
        .filter_map(|name| Some((number(&name)?, name)))
        .filter(|(number, name)| *number > points && folder.join(name).join("report.html").exists())
        .collect();
    behind.sort();
    let single = "report.html".to_owned();
    let is_left = points > 0 && folder.join(&single).exists();
    let behind = behind.into_iter().map(|(_, name)| name);
    behind.chain(is_left.then_some(single)).collect()
}

/// What a command is to write, and what it reads.
pub(crate) struct Wanted<'a> {
    /// The folder, and the names of the files in it.
    pub folder: Option<(&'a Path, &'a [String])>,
    /// Options and the files that they name.
    pub files: &'a [(&'static str, Option<&'a Path>)],
    pub inputs: &'a [PathBuf],
}

/// Looks, before anything is computed, whether there is a place for each output, and whether nothing is lost by
/// it: no input of the command, no other output, and no file that is none of its kind.
///
/// # Errors
/// The output that there is no place for.
pub(crate) fn ready(wanted: &Wanted<'_>) -> Result<(), Failure> {
    const FOLDER: &str = "--output";
    let folder = wanted.folder.into_iter();
    let in_folder: Vec<PathBuf> = folder
        .flat_map(|(folder, names)| names.iter().map(|name| folder.join(name)))
        .collect();
    let named = wanted.files.iter().map(|(option, path)| (*option, *path));
    let all: Vec<(&str, Option<&Path>)> = in_folder
        .iter()
        .map(|path| (FOLDER, Some(path.as_path())))
        .chain(named)
        .collect();
    apart(&all)?;
    // Verbs look at their other outputs before they read anything.
    let page = wanted.files.iter().find(|(option, _)| *option == "--html");
    if let Some(page) = page.and_then(|(_, path)| *path) {
        check_output("--html", page)?;
    }
    let inputs: Vec<PathBuf> = wanted
        .inputs
        .iter()
        .filter_map(|path| place_of(piebald_trace::source::path_of_input(path)))
        .collect();
    for (option, path) in &all {
        let Some(path) = path else { continue };
        if place_of(path).is_some_and(|place| inputs.contains(&place)) {
            return Err(Failure::usage(format!(
                "{option} {}: this command reads it; allowed: another file",
                path.display()
            )));
        }
    }
    if let Some((folder, _)) = wanted.folder {
        check_folder(folder).map_err(Failure::usage)?;
        let place = place_of(folder);
        let is_folder = |path: &Path| place.is_some() && place_of(path) == place;
        if let Some((option, path)) = all.iter().find(|(_, path)| path.is_some_and(is_folder)) {
            return Err(Failure::usage(format!(
                "{option} {}: is the folder of --output; allowed: a file",
                path.unwrap_or(folder).display()
            )));
        }
    }
    for path in &in_folder {
        let kind = match path.extension().and_then(|e| e.to_str()) {
            Some("json") => "--json",
            Some("csv") => "--csv",
            Some("toml") => SAVE,
            _ => "--html",
        };
        if path.exists() {
            check_kind((FOLDER, kind), path)?;
        }
    }
    Ok(())
}

/// Does a name lead to standard output: `-`, `/dev/stdout`, or the file that it was sent to?
pub(crate) fn is_stdout(path: &Path) -> bool {
    let same = || {
        let out = std::io::stdout().as_fd().try_clone_to_owned().ok()?;
        let out = std::fs::File::from(out).metadata().ok()?;
        let named = std::fs::metadata(path).ok()?;
        Some((out.dev(), out.ino()) == (named.dev(), named.ino()))
    };
    path == Path::new(STDOUT) || same().unwrap_or(false)
}

/// Each of these outputs has a file of its own.
///
/// # Errors
/// Two of them are one file: the one that is written last would take the other's place.
pub(crate) fn apart(outputs: &[(&str, Option<&Path>)]) -> Result<(), Failure> {
    let mut places: Vec<(&str, PathBuf)> = Vec::new();
    for (option, path) in outputs {
        let Some((path, place)) = path.and_then(|path| Some((path, place_of(path)?))) else {
            continue;
        };
        if let Some((other, _)) = places.iter().find(|(_, taken)| *taken == place) {
            return Err(Failure::usage(format!(
                "{other} and {option}: {} is one file for both; allowed: a file for each",
                path.display()
            )));
        }
        places.push((option, place));
    }
    Ok(())
}

/// Where a file is or will be, whatever leads there; `None` for standard output, devices and pipes, which
/// take one thing after another.
fn place_of(path: &Path) -> Option<PathBuf> {
    match std::fs::metadata(path) {
        _ if is_stdout(path) => None,
        Ok(found) if !found.is_file() => None,
        Ok(_) => path.canonicalize().ok(),
        Err(_) => {
            let folder = path
                .parent()
                .filter(|folder| !folder.as_os_str().is_empty());
            let folder = folder.unwrap_or(Path::new(".")).canonicalize().ok()?;
            Some(folder.join(path.file_name()?))
        }
    }
}

/// Makes the folders, prints what goes to standard output (the table, if nothing else does), and
/// writes the files. All are tried, whichever fails.
pub(crate) fn write(
    folders: &[&Path],
    outputs: &[(PathBuf, &str)],
    table: impl FnOnce() -> String,
) -> Result<(), Failure> {
    let (printed, files): (Vec<_>, Vec<_>) = outputs.iter().partition(|(path, _)| is_stdout(path));
    let printed = if printed.is_empty() {
        print(&table())
    } else {
        printed.iter().try_for_each(|(_, text)| print(text))
    };
    let made = folders.iter().try_for_each(|folder| {
        std::fs::create_dir_all(folder)
            .map_err(|e| Failure::failed(format!("{}: {e}", folder.display())))
    });
    files
        .iter()
        .map(|(path, text)| write_atomically(path, text.as_bytes()).map_err(Failure::failed))
        .fold(made, Result::and)
        .and(printed)
}

/// Tables for standard output as it is: bold where it takes that.
pub(crate) fn table_style() -> TableStyle {
    TableStyle {
        bold: terminal::takes_escapes(&std::io::stdout()),
        ..TableStyle::default()
    }
}
