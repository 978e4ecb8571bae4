//! Prints the size of the repository, as `scripts/lines.sh` says.

#![forbid(unsafe_code)]

use std::{env, process::ExitCode};

use piebald_house::{census, root, texts_below};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let json = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => false,
        ["--json"] => true,
        _ => {
            eprintln!("lines: {arguments:?}: allowed: nothing, or --json");
            return ExitCode::from(2);
        }
    };
    let census = match census::count(&texts_below(&root())) {
        Ok(census) => census,
        Err(error) => {
            eprintln!("lines: {error}");
            return ExitCode::FAILURE;
        }
    };
    if json {
        println!("{:#}", census.to_json());
    } else {
        print!("{}", census.to_text());
    }
    ExitCode::SUCCESS
}
