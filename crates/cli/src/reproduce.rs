//! `piebald reproduce [PAPER]`

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    sync::{Mutex, PoisonError, atomic::Ordering},
};

use piebald_guest::AllHosts;
use piebald_hw::nearest::did_you_mean;
use piebald_report::{
    Reproduction, Verdict, reproduction_to_html, reproduction_to_json, reproduction_to_table,
};
use piebald_reproduce::{
    Hooks, Options, Source, System, Wanted, data::DataPaper, guest_paper, reproduce,
};
use piebald_units::Count;
use serde_json::json;

use crate::{
    command_line::first_given,
    export,
    failure::Failure,
    json::Json,
    numbers,
    outputs::{self, table_style},
    progress, record, rows_status, running, store, terminal,
};

/// Arguments of `piebald reproduce`.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// The system, or a folder with grid.toml and rows.toml; without one, those that can be rerun are
    /// listed
    #[arg(value_name = "PAPER", value_parser = named)]
    paper: Option<Named>,
    /// Say what of each row is in the store, what is missing and why, and what it took; no run that
    /// a store keeps is run. Without a paper, of all
    #[arg(long, conflicts_with = "output")]
    status: bool,
    /// Run what the kernel module has in a real kernel under QEMU, beside the same in the
    /// modelled kernel: rainbow, srm, and folders with experiments in guests
    #[arg(long)]
    guest: bool,
    /// The module, for --guest [default: where kernel/build.sh puts it]
    #[arg(long, value_name = "FILE", requires = "guest")]
    module: Option<PathBuf>,
    /// Fewer sizes, repetitions and references: minutes instead of hours
    #[arg(long)]
    quick: bool,
    /// Targets to run, as in R-2,R-5 [default: all]
    #[arg(long, value_name = "IDS", value_delimiter = ',')]
    only: Vec<String>,
    /// Folder with the inputs that scripts/stand-ins.sh made [default: where it makes them]
    #[arg(long, value_name = "DIR")]
    inputs: Option<PathBuf>,
    /// Write report.html and results.json to this folder
    #[arg(short, long, value_name = "DIR")]
    output: Option<PathBuf>,
    #[command(flatten)]
    json: Json,
    /// Repetitions of every experiment, instead of the form's number
    #[arg(long, value_name = "N", value_parser = numbers::whole::<u32>(1..=1000))]
    repetitions: Option<u32>,
    /// The first N mixes of each list of mixes, instead of the form's number
    #[arg(long, value_name = "N", value_parser = numbers::whole::<u64>(1..=u64::MAX), conflicts_with = "guest")]
    mixes: Option<u64>,
    /// Folder where outcomes of runs are kept: what is there of the same code and inputs is not run
    /// again, so that a reproduction that was interrupted goes on. none = nothing is kept
    /// [default: in the cache folder]
    #[arg(long, value_name = "DIR", alias = "keep")]
    store: Option<String>,
    /// Measured references of each program and run, such as 20M
    #[arg(long, value_name = "REFS")]
    budget: Option<Count>,
    /// Seed of all draws
    #[arg(long, default_value_t = 42, value_parser = numbers::whole::<u64>(numbers::SEEDS))]
    seed: u64,
    /// Runs at a time; results do not depend on it [default: all cores]
    #[arg(long, value_name = "N", value_parser = numbers::whole::<u16>(1..=1024))]
    threads: Option<u16>,
    /// No progress bar
    #[arg(short, long)]
    quiet: bool,
}

/// What is done with a single row.
#[derive(clap::Subcommand)]
enum Verb {
    /// Print a row's experiments as files that `piebald study` or `piebald replay` runs
    Export(export::Args),
}

/// A paper as it is named.
#[derive(Clone, Debug)]
pub(crate) enum Named {
    /// Built in.
    System(System),
    /// In a folder.
    Folder(PathBuf),
}

/// The paper of a name that is built in, or a folder.
pub(crate) fn named(name: &str) -> Result<Named, String> {
    let found = System::ALL.into_iter().find(|s| s.name() == name);
    if let Some(system) = found {
        return Ok(Named::System(system));
    }
    let folder = Path::new(name);
    if folder.is_dir() {
        return Ok(Named::Folder(folder.to_owned()));
    }
    let names = System::ALL.map(System::name).join(", ");
    let near = did_you_mean(name, System::ALL.map(System::name));
    Err(format!(
        "allowed: {names}, or a folder with grid.toml and rows.toml{near}"
    ))
}

impl Named {
    /// The paper itself, or its rows that are run in guests as well.
    pub(crate) fn open(&self, guest: bool) -> Result<Source, Failure> {
        let paper = match self {
            Self::System(system) if guest => {
                guest_paper(*system, &AllHosts).map_err(Failure::failed)?
            }
            Self::System(system) => return Ok(Source::System(*system)),
            Self::Folder(folder) => {
                Some(DataPaper::read(folder, &AllHosts).map_err(Failure::usage)?)
            }
        };
        let has_guests = |paper: &DataPaper| paper.has_guests().map_err(Failure::usage);
        match paper {
            Some(paper) if !guest || has_guests(&paper)? => Ok(Source::Folder(Box::new(paper))),
            _ => Err(Failure::usage(format!(
                "{} --guest: allowed: rainbow, srm, or a folder with an experiment that has host = \"guest\"",
                self.word()
            ))),
        }
    }

    /// As a command line has it.
    fn word(&self) -> String {
        match self {
            Self::System(system) => system.name().to_owned(),
            Self::Folder(folder) => folder.display().to_string(),
        }
    }

    /// Where its inputs are made without being told; of guests, their programs and files for recordings.
    pub(crate) fn inputs(&self, guest: bool) -> PathBuf {
        let name = match self {
            Self::Folder(folder) => return folder.join("inputs"),
            Self::System(_) if guest => "guest",
            Self::System(system) => system.name(),
        };
        match record::cache_folder() {
            Ok(cache) if name != System::Rainbow.name() => cache.join("reproduce").join(name),
            _ => Path::new("out/reproduce").join(name).join("inputs"),
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<ExitCode, Failure> {
    if let Some(Verb::Export(args)) = &args.verb {
        return export::run(args);
    }
    if args.status {
        return rows_status(args);
    }
    let Some(paper) = &args.paper else {
        if let Some(option) = of_a_paper(args) {
            let papers = System::ALL.map(System::name).join(", ");
            let text = format!("{option}: allowed with a paper only: one of {papers}");
            return Err(Failure::usage(text));
        }
        return list(&args.json);
    };
    // Checking a paper's files takes threads already.
    running::threads(args.threads)?;
    let source = paper.open(args.guest)?;
    check(args, &source)?;
    let files = ["report.html", "results.json"].map(str::to_owned);
    outputs::ready(&outputs::Wanted {
        folder: args.output.as_deref().map(|folder| (folder, &files[..])),
        files: &[("--json", args.json.path())],
        inputs: &[],
    })?;
    let stop = running::stop_flag()?;
    let bar = progress::bar(args.quiet);
    let shown = Mutex::new(String::new());
    // A log has no bar, but shall say what is under way.
    let say = |text: String| match terminal::takes_escapes(&std::io::stderr()) {
        _ if args.quiet => {}
        true => bar.println(text),
        false => crate::failure::say!("{text}"),
    };
    let show = |stage: &str, done: u64, planned: u64| {
        let mut last = shown.lock().unwrap_or_else(PoisonError::into_inner);
        if *last != stage {
            *last = stage.to_owned();
            bar.reset();
            say(format!("piebald: {stage}"));
        }
        bar.set_length(planned);
        bar.set_position(done);
    };
    let recorder = |wanted: &Wanted<'_>, inputs: &Path| {
        if stop.load(Ordering::Relaxed) {
            return Err("interrupted".to_owned());
        }
        say(format!(
            "piebald: {} is recorded or found",
            wanted.program.name
        ));
        record::stand_in(wanted, inputs)
    };
    let options = options(args, paper)?;
    let store = store::open(args.store.as_deref(), store::Default::Cache)?;
    let hooks = Hooks {
        stop: Some(&stop),
        progress: Some(&show),
        record: &recorder,
        store: store.as_ref(),
    };
    let result = reproduce(&source, &options, hooks);
    bar.finish_and_clear();
    store::tell(store.as_ref(), args.quiet);
    let mut found = result.map_err(Failure::failed)?;
    found.command = Some(command(args, paper));
    found.stored = store.as_ref().map_or(0, |store| store.tally().found);
    show_results(args, &found)?;
    let silent = |t: &piebald_report::Target| t.verdict == Verdict::NotRun && t.why.is_none();
    let stopped = found.targets.iter().any(silent) || stop.load(Ordering::Relaxed);
    Ok(running::ended(!stopped))
}

/// Where the rows stand, of one paper or of all.
fn rows_status(args: &Args) -> Result<ExitCode, Failure> {
    let papers = match &args.paper {
        Some(paper) => vec![paper.clone()],
        None if !args.only.is_empty() || args.mixes.is_some() || args.guest => {
            let text = "--status: allowed with a paper only: --only, --mixes, --guest";
            return Err(Failure::usage(text));
        }
        None => System::ALL.map(Named::System).to_vec(),
    };
    running::threads(args.threads)?;
    let mut asked = Vec::new();
    for paper in &papers {
        let source = paper.open(args.guest)?;
        check(args, &source)?;
        asked.push((source, options(args, paper)?));
    }
    rows_status::show(&asked, args.store.as_deref(), (&args.json, args.quiet))
}

/// What the command line chooses of a paper.
fn options(args: &Args, paper: &Named) -> Result<Options, Failure> {
    let module = args.guest.then(|| module(args.module.as_deref()));
    Ok(Options {
        quick: args.quick,
        seed: args.seed,
        repetitions: args.repetitions,
        budget_refs: args.budget.map(|n| n.0),
        only: args.only.clone(),
        inputs: (args.inputs.clone()).unwrap_or_else(|| paper.inputs(args.guest)),
        mixes: args.mixes,
        module: module.transpose()?,
    })
}

/// The module that was named, or the one built beside this program.
pub(crate) fn module(named: Option<&Path>) -> Result<PathBuf, Failure> {
    if let Some(path) = named {
        if path.is_file() {
            return Ok(path.to_owned());
        }
        return Err(Failure::usage(format!(
            "--module {}: no such file (kernel/build.sh makes the module)",
            path.display()
        )));
    }
    let this =
        std::env::current_exe().map_err(|e| Failure::failed(format!("this program: {e}")))?;
    let beside = |folder: &Path| folder.join("kernel/module/piebald.ko");
    let found = this.ancestors().skip(2).take(2).map(beside);
    found.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Failure::usage("--guest: no piebald.ko near this program: kernel/build.sh makes it, or name it with --module")
    })
}

/// An option that is given and says how a paper is run.
fn of_a_paper(args: &Args) -> Option<&'static str> {
    first_given(&[
        ("--guest", args.guest),
        ("--module", args.module.is_some()),
        ("--quick", args.quick),
        ("--only", !args.only.is_empty()),
        ("--inputs", args.inputs.is_some()),
        ("--output", args.output.is_some()),
        ("--repetitions", args.repetitions.is_some()),
        ("--mixes", args.mixes.is_some()),
        ("--store", args.store.is_some()),
        ("--budget", args.budget.is_some()),
        ("--threads", args.threads.is_some()),
    ])
}

fn list(json: &Json) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    let mut papers = Vec::new();
    for system in System::ALL {
        let ids = system.targets();
        let range = match &ids[..] {
            [first, .., last] => format!("{first} to {last}"),
            _ => ids.join(""),
        };
        text += &format!("{:<10} {} ({range})\n", system.name(), system.title());
        let title = system.title();
        papers.push(json!({ "name": system.name(), "title": title, "targets": ids }));
    }
    json.show(&text, &json!({ "schema": 1, "papers": papers }))?;
    Ok(ExitCode::SUCCESS)
}

/// What the command line says beyond what its parser knows.
fn check(args: &Args, source: &Source) -> Result<(), Failure> {
    if args.guest && args.budget.is_some() {
        return Err(Failure::usage("--budget: not with --guest"));
    }
    let ids = source.ids();
    let known = |id: &&String| {
        let mut all = ids.iter();
        !all.any(|t| t.eq_ignore_ascii_case(id))
    };
    if let Some(id) = args.only.iter().find(known) {
        let allowed = ids.join(", ");
        let near = did_you_mean(&id.to_uppercase(), ids.iter().copied());
        return Err(Failure::usage(format!(
            "--only {id}: allowed: {allowed}{near}"
        )));
    }
    if let Some(mixes) = args.mixes {
        let Some(most) = source.mixes().map_err(Failure::failed)? else {
            let name = source.name();
            let text =
                format!("--mixes {mixes}: {name} has no lists of mixes; allowed with hvr, for one");
            return Err(Failure::usage(text));
        };
        if mixes > most {
            return Err(Failure::usage(format!(
                "--mixes {mixes}: allowed: 1 to {most}"
            )));
        }
    }
    if let Some(budget) = args.budget
        && !(100..=1_000_000_000_000).contains(&budget.0)
    {
        return Err(Failure::usage(format!(
            "--budget {budget}: allowed: 100 to 1T"
        )));
    }
    Ok(())
}

fn command(args: &Args, paper: &Named) -> String {
    let mut text = format!("piebald reproduce {}", paper.word());
    if args.guest {
        text += " --guest";
    }
    if args.quick {
        text += " --quick";
    }
    if !args.only.is_empty() {
        text += &format!(" --only {}", args.only.join(","));
    }
    if let Some(n) = args.repetitions {
        text += &format!(" --repetitions {n}");
    }
    if let Some(n) = args.mixes {
        text += &format!(" --mixes {n}");
    }
    if let Some(n) = args.budget {
        text += &format!(" --budget {n}");
    }
    text + &format!(" --seed {}", args.seed)
}

fn show_results(args: &Args, found: &Reproduction) -> Result<(), Failure> {
    let json = reproduction_to_json(found).map_err(Failure::failed)?;
    let html = reproduction_to_html(found).map_err(Failure::failed)?;
    let mut files: Vec<(PathBuf, &str)> = Vec::new();
    files.extend(
        args.json
            .path()
            .map(|path| (path.to_owned(), json.as_str())),
    );
    if let Some(folder) = &args.output {
        files.push((folder.join("report.html"), &html));
        files.push((folder.join("results.json"), &json));
    }
    outputs::write(
        &args.output.as_deref().into_iter().collect::<Vec<_>>(),
        &files,
        || reproduction_to_table(found, &table_style()),
    )
}
