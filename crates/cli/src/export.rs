//! `piebald reproduce export ROW`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use piebald_hw::nearest::did_you_mean;
use piebald_reproduce::{Hooks, Options, Source, System, Written, experiments};
use piebald_units::Count;

use crate::{
    failure::Failure,
    numbers, outputs, record,
    reproduce::{self, Named, named},
};

/// Arguments of `piebald reproduce export`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The row, such as R-B1
    #[arg(value_name = "ROW")]
    row: String,
    /// The paper, where it is a folder with grid.toml and rows.toml
    #[arg(long, value_name = "PAPER", value_parser = named)]
    paper: Option<Named>,
    /// Of the rows that are run in a real kernel as well
    #[arg(long)]
    guest: bool,
    /// The module, for --guest [default: where kernel/build.sh puts it]
    #[arg(long, value_name = "FILE", requires = "guest")]
    module: Option<PathBuf>,
    /// Of the form with fewer sizes, repetitions and references
    #[arg(long)]
    quick: bool,
    /// Folder with the inputs that scripts/stand-ins.sh made [default: where it makes them]
    #[arg(long, value_name = "DIR")]
    inputs: Option<PathBuf>,
    /// Write the files to this folder; needed where a row has several
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    /// Repetitions, instead of the form's number
    #[arg(long, value_name = "N", value_parser = numbers::whole::<u32>(1..=1000))]
    repetitions: Option<u32>,
    /// Measured references of each program and run, such as 20M
    #[arg(long, value_name = "REFS")]
    budget: Option<Count>,
    /// Seed of all draws
    #[arg(long, default_value_t = 42, value_parser = numbers::whole::<u64>(numbers::SEEDS))]
    seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    let (paper, source, row) = find(args)?;
    let row = row.as_str();
    let module = (args.guest).then(|| reproduce::module(args.module.as_deref()));
    let options = Options {
        quick: args.quick,
        seed: args.seed,
        repetitions: args.repetitions,
        budget_refs: args.budget.map(|n| n.0),
        inputs: (args.inputs.clone()).unwrap_or_else(|| paper.inputs(args.guest)),
        module: module.transpose()?,
        ..Options::default()
    };
    let hooks = Hooks {
        stop: None,
        progress: None,
        record: &record::stand_in_there,
        store: None,
    };
    args.output
        .as_deref()
        .map_or(Ok(()), |folder| ready(folder, &[]))?;
    let found = experiments(&source, &options, hooks, row).map_err(Failure::usage)?;
    let texts: Vec<String> = found.iter().map(|one| headed(args, row, one)).collect();
    let Some(folder) = &args.output else {
        let [text] = &texts[..] else {
            return Err(Failure::usage(format!(
                "{row} has {} experiments; allowed: --output DIR, where each is a file",
                texts.len()
            )));
        };
        crate::failure::print(text)?;
        return Ok(ExitCode::SUCCESS);
    };
    let names = (1..).zip(&found).map(|(n, one)| file(folder, row, n, one));
    let names: Vec<PathBuf> = names.collect();
    let files = names.iter().filter_map(|name| name.file_name()?.to_str());
    ready(folder, &files.map(str::to_owned).collect::<Vec<_>>())?;
    let files: Vec<(PathBuf, &str)> = (names.iter().cloned())
        .zip(texts.iter().map(String::as_str))
        .collect();
    outputs::write(&[folder], &files, || {
        names
            .iter()
            .map(|name| format!("{}\n", name.display()))
            .collect()
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Is there a place for these files?
fn ready(folder: &Path, files: &[String]) -> Result<(), Failure> {
    outputs::ready(&outputs::Wanted {
        folder: Some((folder, files)),
        files: &[],
        inputs: &[],
    })
}

/// The row of the paper that is named, or of one that is built in, as it is spelled.
fn find(args: &Args) -> Result<(Named, Source, String), Failure> {
    let papers = match &args.paper {
        Some(paper) => vec![paper.clone()],
        None if args.guest => [System::Rainbow, System::Srm].map(Named::System).to_vec(),
        None => System::ALL.map(Named::System).to_vec(),
    };
    let mut all = Vec::new();
    for paper in papers {
        let source = paper.open(args.guest)?;
        let mut ids = source.ids().into_iter();
        if let Some(id) = ids.find(|id| id.eq_ignore_ascii_case(&args.row)) {
            let id = id.to_owned();
            return Ok((paper, source, id));
        }
        all.extend(source.ids().into_iter().map(str::to_owned));
    }
    let wanted = &args.row;
    let near = did_you_mean(&wanted.to_uppercase(), all.iter().map(String::as_str));
    Err(Failure::usage(format!(
        "{wanted}: no such row; allowed: those that `piebald reproduce --status` lists{near}"
    )))
}

/// The file, with what it is of.
fn headed(args: &Args, row: &str, one: &Written) -> String {
    let form = if args.quick { "quick" } else { "full" };
    format!("# {row}, {form} form: {}\n{}", one.name, one.text)
}

/// Its name: words of the experiment in small letters.
fn file(folder: &Path, row: &str, number: usize, one: &Written) -> PathBuf {
    let word = |c: char| {
        if c.is_ascii_alphanumeric() {
            c.to_ascii_lowercase()
        } else {
            '-'
        }
    };
    let words: String = one.name.chars().map(word).collect();
    folder.join(format!("{row}-{number}-{words}.toml"))
}
