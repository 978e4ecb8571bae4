//! How the result of a study is shown and kept.

use std::path::{Path, PathBuf};

use piebald_report::{Study, TableStyle, to_csv, to_html, to_json, to_table, write_atomically};

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
    /// Prints the table, unless a machine-readable form goes to standard output, and
    /// writes the files asked for.
    pub(crate) fn show(&self, study: &Study) -> Result<(), Failure> {
        let stdout = Path::new(STDOUT);
        let json = to_json(study).map_err(Failure::failed)?;
        let csv = to_csv(study).map_err(Failure::failed)?;
        let html = to_html(study).map_err(Failure::failed)?;
        let mut outputs: Vec<(PathBuf, &str)> = Vec::new();
        let (csv_path, html_path) = (self.csv.as_deref(), self.html.as_deref());
        for (path, text) in [
            (self.json.path(), &json),
            (csv_path, &csv),
            (html_path, &html),
        ] {
            outputs.extend(path.map(|p| (p.to_owned(), text.as_str())));
        }
        if let Some(folder) = &self.output {
            std::fs::create_dir_all(folder)
                .map_err(|e| Failure::failed(format!("{}: {e}", folder.display())))?;
            for (name, text) in [
                ("report.html", &html),
                ("study.json", &json),
                ("study.csv", &csv),
            ] {
                outputs.push((folder.join(name), text));
            }
        }
        if !outputs.iter().any(|(path, _)| path == stdout) {
            print(&to_table(study, &table_style()))?;
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

/// Tables for standard output as it is: bold where it takes that.
pub(crate) fn table_style() -> TableStyle {
    TableStyle {
        bold: terminal::takes_escapes(&std::io::stdout()),
        ..TableStyle::default()
    }
}
