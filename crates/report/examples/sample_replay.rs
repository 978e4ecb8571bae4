//! Writes an invented replay in all forms, to look at the outputs without replaying
//! anything: `cargo run -p piebald-report --example sample_replay [DIRECTORY]`.

use std::{env, error::Error, path::PathBuf};

use piebald_report::{
    TableStyle, replay_curves_to_csv, replay_sequences_to_csv, replay_to_csv, replay_to_html,
    replay_to_json, replay_to_table, write_atomically,
};

#[path = "../tests/sample.rs"]
mod sample;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = PathBuf::from(env::args().nth(1).unwrap_or_else(|| ".".to_owned()));
    let replay = sample::sample_replay();
    print!("{}", replay_to_table(&replay, &TableStyle::default()));
    let files = [
        ("replay.html", replay_to_html(&replay)?),
        ("replay.json", replay_to_json(&replay)?),
        ("replay.csv", replay_to_csv(&replay)?),
        ("replay-sequences.csv", replay_sequences_to_csv(&replay)?),
        ("replay-curves.csv", replay_curves_to_csv(&replay)?),
    ];
    for (name, text) in files {
        write_atomically(&directory.join(name), text.as_bytes())?;
    }
    Ok(())
}
