//! Writes a report of an invented study, to look at the outputs without running
//! one: `cargo run -p piebald-report --example sample_report [DIRECTORY]`.

use std::{env, error::Error, path::PathBuf};

use piebald_report::{TableStyle, to_csv, to_html, to_json, to_table, write_atomically};

#[path = "../tests/common/mod.rs"]
mod common;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let study = common::sample_study();
    print!("{}", to_table(&study, &TableStyle::default()));
    write_atomically(&directory.join("sample.html"), to_html(&study)?.as_bytes())?;
    write_atomically(&directory.join("sample.json"), to_json(&study)?.as_bytes())?;
    write_atomically(&directory.join("sample.csv"), to_csv(&study)?.as_bytes())?;
    Ok(())
}
