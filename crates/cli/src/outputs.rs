//! How the result of a study is shown and kept.

use std::{
    io::IsTerminal,
    path::{Path, PathBuf},
};

use piebald_report::{Study, TableStyle, to_csv, to_html, to_json, to_table, write_atomically};

use crate::failure::{Failure, print};

/// Options of every verb that makes a study.
#[derive(clap::Args)]
pub(crate) struct Outputs {
    /// Write report.html, study.json and study.csv to this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Write the results as JSON to this file, or to standard output with -
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the results as CSV to this file, or to standard output with -
    #[arg(long, value_name = "FILE")]
    csv: Option<PathBuf>,
    /// Write a self-contained HTML report with charts to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Outputs {
    /// Prints the table, unless a machine-readable form goes to standard output, and
    /// writes the files asked for.
    pub(crate) fn show(&self, study: &Study) -> Result<(), Failure> {
        let stdout = Path::new("-");
        let json = to_json(study).map_err(Failure::failed)?;
        let csv = to_csv(study).map_err(Failure::failed)?;
        let html = to_html(study).map_err(Failure::failed)?;
        let mut outputs: Vec<(PathBuf, &str)> = Vec::new();
        for (path, text) in [(&self.json, &json), (&self.csv, &csv), (&self.html, &html)] {
            outputs.extend(path.clone().map(|p| (p, text.as_str())));
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
            let terminal = std::io::stdout().is_terminal();
            let style = TableStyle {
                bold: terminal,
                ..TableStyle::default()
            };
            print(&to_table(study, &style))?;
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
