//! Replays in which speed decides what is asked next: clients of a server, and programs that page their memory.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    time::Instant,
};

use piebald_hw::disk::{Disk, DiskSpec};
use piebald_os_model::{
    file::{FileConfig, FileTable, Layout, SwapArea},
    replace::PolicySpec,
};
use piebald_report::{REPLAY_SCHEMA, Replay, ReplayConditions, ReplayRun, ReplayTrace};
use piebald_sim::replay::{
    ClientSetup, DiskOutcome, FileSide, LoopOutcome, Snapshot, clients_with, paging_with,
};
use piebald_trace::block as trace;
use piebald_units::{Bytes, Lba, PAGE_SHIFT, Picos, block::SECTORS_SHIFT};
use rayon::prelude::*;

use super::{
    ClientsAsked, LayoutChoice, Load, Paging, Queries, ReplayError, ReplayRequest, disk,
    draws::{self, Random},
    fill,
    load::Start,
    passes,
    plan::stopped,
    sizes,
};
use crate::study::Hooks;

const PS_PER_S: f64 = 1e12;

/// Clients, ready to be run.
struct Server<'a> {
    asked: &'a ClientsAsked,
    queries: Queries,
    /// With the beginnings that are drawn.
    clients: Vec<Vec<usize>>,
    side: FileSide,
    start: Start,
    stop: Option<&'a AtomicBool>,
}

/// What a policy at a size came to.
struct Done {
    outcome: DiskOutcome,
    references: u64,
    extra: Vec<(&'static str, f64, &'static str)>,
    figures: Vec<(&'static str, u64)>,
}

/// Runs what is asked, if it is no trace.
///
/// # Errors
/// See [`ReplayError`].
pub(super) fn run(
    request: &ReplayRequest,
    hooks: Hooks<'_>,
) -> Option<Result<Replay, ReplayError>> {
    match &request.load {
        Load::Requests => None,
        Load::Clients(asked) => Some(clients(request, asked, hooks)),
        Load::Touches(asked) => Some(touches(request, asked, hooks)),
    }
}

fn choice(what: &'static str, value: impl ToString, problem: impl ToString) -> ReplayError {
    ReplayError::Choice {
        what,
        value: value.to_string(),
        problem: problem.to_string(),
    }
}

/// The disk below, which there must be.
fn device(request: &ReplayRequest) -> Result<(DiskSpec, Disk, FileConfig), ReplayError> {
    let spec = disk::device(&request.device)?;
    let spec = spec.ok_or_else(|| {
        choice(
            "device",
            "none",
            "speed decides what is asked next; allowed: a disk",
        )
    })?;
    let made = Disk::new(&spec).map_err(|e| choice("device", &spec.name, e))?;
    let config = disk::kernel(&request.readahead, &request.scheduler, &spec)?;
    Ok((spec, made, config))
}

fn clients(
    request: &ReplayRequest,
    asked: &ClientsAsked,
    hooks: Hooks<'_>,
) -> Result<Replay, ReplayError> {
    let (spec, disk, config) = device(request)?;
    let LayoutChoice::File(layout) = &request.layout else {
        let allowed = "allowed: { file = \"x.layout\" }, which says where the files of queries lie";
        return Err(choice("layout", "a rule", allowed));
    };
    let queries = Queries::read(&traces(&asked.queries)?)?;
    let sequences = sequences(&asked.sequences, queries.queries.len())?;
    let places = trace::Layout::open(layout);
    let places = places.map_err(|e| choice("layout", layout.display(), e))?;
    let mut random = Random::new(request.seed);
    let sectors = places.end() << SECTORS_SHIFT;
    let start = draws::start(request.start, &mut random, &disk, sectors);
    let turned = sequences.into_iter().map(|mut sequence| {
        let by = random.below(sequence.len() as u64) as usize;
        sequence.rotate_left(by);
        sequence
    });
    let clients = turned.collect();
    let server = Server {
        asked,
        side: queries.on(layout, start.shift_sectors, config, disk)?,
        queries,
        clients,
        start,
        stop: hooks.stop,
    };
    let setup = server.setup();
    setup
        .check()
        .map_err(|e| choice("clients", asked.sequences.display(), e))?;
    let calls = server.queries.queries.iter().map(|q| q.reads.len() as u64);
    let pages = server.queries.queries.iter().flat_map(|q| &q.reads);
    let about = ReplayTrace {
        path: asked.sequences.display().to_string(),
        format: "clients".to_owned(),
        requests: calls.sum(),
        references: pages.clone().map(|read| read.pages).sum(),
        reads: pages.map(|read| read.pages).sum(),
        unique_pages: server.queries.pages(),
        sequential_share: f64::NAN,
        ..ReplayTrace::default()
    };
    let notes = vec![
        format!(
            "{} clients ask for {} queries for {} s; runs differ by what they got",
            server.clients.len(),
            server.queries.queries.len(),
            asked.length.0 as f64 / PS_PER_S
        ),
        "the trace's numbers are those of each query once".to_owned(),
    ];
    let layout = format!("files lie where {} says", layout.display());
    let plan = Plan {
        request,
        spec: &spec,
        title: super::title(&[asked.queries.clone(), asked.sequences.clone()]),
        pace: "clients",
        about,
        layout,
        notes,
    };
    plan.run(hooks, &|policy, pages| server.run(policy, pages))
}

impl Server<'_> {
    fn setup(&self) -> ClientSetup<'_> {
        ClientSetup {
            queries: &self.queries.queries,
            clients: &self.clients,
            begin: self.start.at,
            length: self.asked.length,
            processor: self.asked.processor,
            stop: self.stop,
        }
    }

    fn run(&self, policy: &PolicySpec, pages: u32) -> Result<Done, String> {
        let setup = self.setup();
        let done = clients_with(policy, pages, &self.side, setup).map_err(|e| e.to_string())?;
        let seconds = setup.length.0 as f64 / PS_PER_S;
        let programs = &done.programs;
        let busy = programs.processor.0 as f64 / setup.length.0 as f64;
        let extra = vec![
            (
                "throughput",
                programs.result.0 as f64 * 8.0 / 1e6 / seconds,
                "Mbit/s",
            ),
            ("queries", programs.queries as f64, ""),
            ("processor busy", busy * 100.0, "%"),
        ];
        let end = programs.end.clone();
        let references = end.stats.uses().references;
        Ok(of_loop(done, end, setup.begin, references, extra))
    }
}

fn touches(
    request: &ReplayRequest,
    asked: &Paging,
    hooks: Hooks<'_>,
) -> Result<Replay, ReplayError> {
    let (spec, disk, config) = device(request)?;
    let slots = asked.swap;
    let size = Bytes(u64::from(slots) << PAGE_SHIFT);
    let mut random = Random::new(request.seed);
    let sectors = u64::from(slots) << SECTORS_SHIFT;
    if sectors > disk.capacity_sectors() {
        let problem = format!("{} has no room for it; allowed: less", spec.name);
        return Err(choice("swap", size, problem));
    }
    let start = draws::start(request.start, &mut random, &disk, sectors);
    let swap = (slots > 0).then(|| SwapArea::new(Lba(start.shift_sectors), slots));
    let side = FileSide {
        config: FileConfig { swap, ..config },
        files: FileTable::new(Layout::Extents).map_err(|e| choice("layout", "none", e))?,
        disk,
    };
    let run = |policy: &PolicySpec, pages: u32| {
        // An interrupt ends it early.
        let all = &mut asked.touches.all().take_while(|_| !stopped(hooks));
        let done = paging_with(policy, pages, &side, all, start.at).map_err(|e| e.to_string())?;
        let end = done.programs.end.clone();
        let stats = end.stats;
        let count = |name, count: u64| (name, count as f64, "");
        let extra = vec![
            count("swap-ins", stats.swap_ins),
            count("read along", stats.swap_readahead),
            count("read along and unused", stats.prefetched_unused),
            count("swap-outs", stats.swap_outs),
        ];
        let references = done.programs.touches;
        Ok(of_loop(done, end, start.at, references, extra))
    };
    let pages = asked.touches.pages();
    let about = ReplayTrace {
        path: asked.name.clone(),
        format: "touches".to_owned(),
        unique_pages: pages,
        sequential_share: f64::NAN,
        ..ReplayTrace::default()
    };
    let layout = format!("swap space of {size}");
    let plan = Plan {
        request,
        spec: &spec,
        title: asked.name.clone(),
        pace: "tasks",
        about,
        layout,
        notes: Vec::new(),
    };
    plan.run(hooks, &run)
}

fn of_loop<T>(
    done: LoopOutcome<T>,
    end: Snapshot,
    begin: Picos,
    references: u64,
    extra: Vec<(&'static str, f64, &'static str)>,
) -> Done {
    let before = Snapshot {
        at: begin,
        ..Snapshot::default()
    };
    Done {
        outcome: DiskOutcome {
            before,
            after: end,
            disk: done.disk,
        },
        references,
        extra,
        figures: done.figures,
    }
}

/// Policies at sizes over one load.
struct Plan<'a> {
    request: &'a ReplayRequest,
    spec: &'a DiskSpec,
    title: String,
    pace: &'static str,
    about: ReplayTrace,
    layout: String,
    notes: Vec<String>,
}

type One<'o> = dyn Fn(&PolicySpec, u32) -> Result<Done, String> + Sync + 'o;

impl Plan<'_> {
    /// Runs every policy at every size, on all cores.
    fn run(self, hooks: Hooks<'_>, one: &One<'_>) -> Result<Replay, ReplayError> {
        let began = Instant::now();
        let request = self.request;
        passes::check(request, Some(self.spec))?;
        let page = request.input.page.bytes().0;
        let pages = sizes::in_pages(&request.sizes, page, self.about.unique_pages)?;
        let jobs = request.policies.iter();
        let jobs = jobs.flat_map(|policy| pages.iter().map(move |pages| (policy, *pages)));
        let jobs: Vec<(&PolicySpec, u64)> = jobs.collect();
        let (planned, ended) = (jobs.len() as u64, AtomicU64::new(0));
        let run = |&(policy, pages): &(&PolicySpec, u64)| {
            if stopped(hooks) {
                return Err(ReplayError::Stopped);
            }
            let done = one(policy, pages as u32);
            if stopped(hooks) {
                return Err(ReplayError::Stopped);
            }
            let done = done.map_err(|problem| {
                choice("policy", policy, format!("with {pages} pages: {problem}"))
            })?;
            let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = hooks.progress {
                progress(ended, planned);
            }
            Ok(done.told(policy, pages))
        };
        // One at a time from the front: runs at small sizes take longest.
        let runs = jobs.par_iter().with_max_len(1).map(run);
        let runs = runs.collect::<Result<Vec<ReplayRun>, ReplayError>>()?;
        let conditions = fill::conditions(request, Some(self.spec), self.layout, true);
        Ok(Replay {
            schema: REPLAY_SCHEMA,
            title: self.title,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            complete: true,
            traces: vec![ReplayTrace {
                references: if self.about.references == 0 {
                    runs.first().map_or(0, |run| run.references)
                } else {
                    self.about.references
                },
                ..self.about
            }],
            conditions: ReplayConditions {
                pace: self.pace.to_owned(),
                notes: self.notes,
                ..conditions
            },
            policies: request.policies.iter().map(passes::about).collect(),
            sizes: pages,
            runs,
            host_seconds: began.elapsed().as_secs_f64(),
            ..Replay::default()
        })
    }
}

impl Done {
    /// As the report has it.
    fn told(self, policy: &PolicySpec, pages: u64) -> ReplayRun {
        let misses = self.outcome.after.stats.uses().misses;
        let own = self.extra.iter();
        let own = own.map(|(name, value, unit)| ((*name).to_owned(), *value, (*unit).to_owned()));
        let figures = self.figures.iter();
        let figures = figures.map(|(name, n)| ((*name).to_owned(), *n as f64, String::new()));
        ReplayRun {
            policy: policy.to_string(),
            size_pages: pages,
            references: self.references,
            hits: self.references.saturating_sub(misses),
            misses,
            io: Some(fill::io(&self.outcome)),
            extra: own.chain(figures).collect(),
            ..ReplayRun::default()
        }
    }
}

/// The trace of each query beside the file of results, and the size of its result.
pub(super) fn traces(results: &Path) -> Result<Vec<(PathBuf, Bytes)>, ReplayError> {
    let text = std::fs::read_to_string(results);
    let text = text.map_err(|e| choice("queries", results.display(), e))?;
    let folder = results.parent().unwrap_or(Path::new("."));
    let line = |(nth, line): (usize, &str)| {
        let bad = || {
            let place = format!("{}:{}", results.display(), nth + 1);
            choice("queries", place, format!("\"{line}\"; allowed: NAME BYTES"))
        };
        let (name, bytes) = line.split_once(' ').ok_or_else(bad)?;
        let bytes = bytes.trim().parse().map_err(|_| bad())?;
        Ok((folder.join(format!("{name}.fpt.zst")), Bytes(bytes)))
    };
    text.lines().enumerate().map(line).collect()
}

/// Each client's queries.
fn sequences(path: &Path, queries: usize) -> Result<Vec<Vec<usize>>, ReplayError> {
    let text = if path.extension().is_some_and(|e| e == "zst") {
        std::fs::File::open(path)
            .and_then(zstd::stream::decode_all)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other))
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.map_err(|e| choice("sequences", path.display(), e))?;
    let number = |nth: usize, word: &str| match word.parse() {
        Ok(query) if query < queries => Ok(query),
        _ => {
            let place = format!("{}:{}", path.display(), nth + 1);
            let most = queries.saturating_sub(1);
            let problem = format!("query \"{word}\"; allowed: 0 to {most}");
            Err(choice("sequences", place, problem))
        }
    };
    let line =
        |(nth, line): (usize, &str)| line.split_whitespace().map(|w| number(nth, w)).collect();
    text.lines().enumerate().map(line).collect()
}
