//! How the result of a study is shown and kept.

use std::path::{Path, PathBuf};

use piebald_report::{
    Study, TableStyle, sweep_to_csv, sweep_to_json, sweep_to_table, to_csv, to_html, to_json,
    to_table, write_atomically,
};

use crate::{
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
    /// Can so many studies be written as asked?
    pub(crate) fn check(&self, studies: usize) -> Result<(), Failure> {
        match (&self.html, studies) {
            (Some(_), 2..) => Err(Failure::usage(
                "--html: a report is of one study, and the scenario has a sweep; allowed: \
                 --output, which writes a report of each point, --json and --csv",
            )),
            _ => Ok(()),
        }
    }

    /// Prints the table, unless a machine-readable form goes to standard output, and
    /// writes the files asked for; of the points of a sweep one table, one list, and a folder for
    /// each report.
    pub(crate) fn show(&self, studies: &[Study]) -> Result<(), Failure> {
        let stdout = Path::new(STDOUT);
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
        let pages: Result<Vec<String>, _> = studies.iter().map(to_html).collect();
        let pages = pages.map_err(Failure::failed)?;
        let mut outputs: Vec<(PathBuf, &str)> = Vec::new();
        let html_path = self.html.as_deref();
        for (path, text) in [(self.json.path(), &json), (self.csv.as_deref(), &csv)]
            .into_iter()
            .chain(pages.iter().map(|page| (html_path, page)))
        {
            outputs.extend(path.map(|p| (p.to_owned(), text.as_str())));
        }
        if let Some(folder) = &self.output {
            make(folder)?;
            outputs.push((folder.join("study.json"), &json));
            outputs.push((folder.join("study.csv"), &csv));
            for (number, page) in pages.iter().enumerate() {
                let at = match single {
                    Some(_) => folder.clone(),
                    None => folder.join(format!("point-{}", number + 1)),
                };
                make(&at)?;
                outputs.push((at.join("report.html"), page));
            }
        }
        if !outputs.iter().any(|(path, _)| path == stdout) {
            let style = table_style();
            print(&match single {
                Some(study) => to_table(study, &style),
                None => sweep_to_table(studies, &style),
            })?;
        }
        for (path, text) in outputs {
            match path == stdout {
                true => print(text)?,
                false => write_atomically(&path, text.as_bytes()).map_err(Failure::failed)?,
            }
        }
        Ok(())
    }
}

fn make(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder)
        .map_err(|e| Failure::failed(format!("{}: {e}", folder.display())))
}

/// Tables for standard output as it is: bold where it takes that.
pub(crate) fn table_style() -> TableStyle {
    TableStyle {
        bold: terminal::takes_escapes(&std::io::stdout()),
        ..TableStyle::default()
    }
}
