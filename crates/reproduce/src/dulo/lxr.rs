//! D-11 and D-12: figure 5, clients of a source browser whose searches read whole
//! partitions of files, on the layout that a file system gave and on a contiguous one.

use std::path::{Path, PathBuf};

use piebald_hw::disk::Disk;
use piebald_lab::replay::Queries;
use piebald_os_model::file::CpuCost;
use piebald_report::{Published, Sample, Target, TargetKind};
use piebald_sim::replay::{ClientSetup, clients_with};
use piebald_trace::block::Layout;
use piebald_units::{Bytes, Picos, block::SECTORS_SHIFT};

use super::kernel::{
    Cells, Figures, Job, LINUX, List, PAGES_PER_MB, draw, drive, dulo, jobs, kernel, policy, seeds,
    states,
};
use crate::{
    Hooks, Options,
    row::{blank, sampled, shown},
    verdict,
};

/// The layouts, as [`Job::variant`].
const REAL: usize = 0;
const CONTIGUOUS: usize = 1;

/// Figure 5's smallest and largest gain, in percent.
const GAINS: [f64; 2] = [5.1, 16.9];
/// D-12: "little difference", in percent (protocol).
const LITTLE: f64 = 5.0;
/// Sizes of the short form, in MB, and its minutes (protocol: two sizes, 3 minutes).
const QUICK_MB: [u32; 2] = [128, 192];
const QUICK_MINUTES: u64 = 3;

const MINUTE: u64 = 60_000_000_000_000;

/// The server's inputs.
struct Server {
    queries: Queries,
    clients: Vec<Vec<usize>>,
    layouts: [PathBuf; 2],
    /// Sectors from 0 to each layout's end.
    ends: [u64; 2],
    disk: Disk,
    length: Picos,
}

/// Runs both rows, or says why they are not run.
pub(super) fn lxr(options: &Options, hooks: Hooks<'_>) -> Vec<Target> {
    let mut real = blank(
        "D-11",
        "figure 5: throughput of LXR by memory",
        TargetKind::H,
    );
    let mut contiguous = blank(
        "D-12",
        "4.2.3: the same with contiguous partitions",
        TargetKind::S,
    );
    match both(options, hooks) {
        Ok((sizes, cells, policy)) => {
            let gains = judge_real(&mut real, &cells, &sizes, &policy);
            if options.wants("D-12") {
                judge_contiguous(&mut contiguous, &cells, &sizes, &policy, gains);
            }
        }
        Err(why) => {
            real.why = Some(why.clone());
            contiguous.why = Some(why);
        }
    }
    let wanted = [real, contiguous].into_iter();
    wanted.filter(|t| options.wants(&t.id)).collect()
}

type Done = (Vec<u32>, Cells, String);

fn both(options: &Options, hooks: Hooks<'_>) -> Result<Done, String> {
    let list = List::read()?;
    let server = Server::read(&options.inputs, &list, options.quick)?;
    let sizes = match options.quick {
        true => QUICK_MB.to_vec(),
        false => list.lxr.memory_mb.clone(),
    };
    let dulo = dulo(list.lxr.bank_mb, list.lxr.evicting_mb);
    let mut all = jobs(REAL, &sizes, &[LINUX, &dulo], &seeds(options));
    if options.wants("D-12") {
        all.extend(jobs(CONTIGUOUS, &sizes, &[LINUX, &dulo], &seeds(options)));
    }
    let cells = Cells::run(all, "LXR", hooks, |job| server.run(job))?;
    Ok((sizes, cells, dulo))
}

impl Server {
    fn read(folder: &Path, list: &List, quick: bool) -> Result<Self, String> {
        let lxr = &list.lxr;
        let results = folder.join(&lxr.results);
        let traces = traces(&results)?;
        let queries = Queries::read(&traces).map_err(|e| e.to_string())?;
        let clients = clients(&folder.join(&lxr.sequences), queries.queries.len())?;
        if clients.len() != lxr.clients {
            return Err(format!(
                "{}: {} clients; allowed: {}",
                lxr.sequences,
                clients.len(),
                lxr.clients
            ));
        }
        let layouts = [&lxr.layouts.real, &lxr.layouts.contiguous].map(|name| folder.join(name));
        let end = |path: &Path| {
            let layout = Layout::open(path).map_err(|e| e.to_string())?;
            Ok::<u64, String>(layout.end() << SECTORS_SHIFT)
        };
        let minutes = if quick { QUICK_MINUTES } else { lxr.minutes };
        Ok(Self {
            ends: [end(&layouts[REAL])?, end(&layouts[CONTIGUOUS])?],
            queries,
            clients,
            layouts,
            disk: drive()?,
            length: Picos(minutes * MINUTE),
        })
    }

    fn run(&self, job: &Job) -> Result<Figures, String> {
        let (shift, begin, mut random) = draw(job.seed, &self.disk, self.ends[job.variant]);
        let turned = self.clients.iter().map(|sequence| {
            let mut sequence = sequence.clone();
            let by = random.below(sequence.len() as u64) as usize;
            sequence.rotate_left(by);
            sequence
        });
        let clients: Vec<Vec<usize>> = turned.collect();
        let layout = &self.layouts[job.variant];
        let side = self.queries.on(layout, shift, kernel(), self.disk.clone());
        let setup = ClientSetup {
            queries: &self.queries.queries,
            clients: &clients,
            begin,
            length: self.length,
            processor: CpuCost::P4_1700,
        };
        let side = side.map_err(|e| e.to_string())?;
        let done = clients_with(&policy(&job.policy)?, job.mb * PAGES_PER_MB, &side, setup)
            .map_err(|e| e.to_string())?;
        let (stats, seconds) = (done.programs.end.stats, self.length.0 as f64 / 1e12);
        let reads = stats.swap_ins + stats.reads.misses + stats.prefetched;
        let disk = done.disk;
        Ok(Figures {
            main: done.programs.result.0 as f64 * 8.0 / 1e6 / seconds,
            hits: stats.hit_ratio().unwrap_or(0.0) * 100.0,
            references: stats.uses().references,
            more: vec![
                ("queries", done.programs.queries as f64),
                ("pages asked for", stats.uses().references as f64),
                (
                    "processor busy, %",
                    done.programs.processor.0 as f64 / self.length.0 as f64 * 100.0,
                ),
                ("pages read", reads as f64),
                ("disk requests", (disk.reads + disk.writes) as f64),
            ],
        })
    }
}

/// The trace of each query beside the file of results, and the size of its result.
fn traces(results: &Path) -> Result<Vec<(PathBuf, Bytes)>, String> {
    let text = std::fs::read_to_string(results).map_err(|e| {
        format!(
            "{}: {e}; scripts/stand-ins.sh dulo makes it",
            results.display()
        )
    })?;
    let folder = results.parent().unwrap_or(Path::new("."));
    let line = |(nth, line): (usize, &str)| {
        let bad = || {
            format!(
                "{}:{}: \"{line}\"; allowed: QUERY BYTES",
                results.display(),
                nth + 1
            )
        };
        let (name, bytes) = line.split_once(' ').ok_or_else(bad)?;
        let bytes = bytes.trim().parse().map_err(|_| bad())?;
        Ok((folder.join(format!("{name}.fpt.zst")), Bytes(bytes)))
    };
    text.lines().enumerate().map(line).collect()
}

/// Each client's queries; the file may be compressed, with `.zst` at its end.
fn clients(path: &Path, queries: usize) -> Result<Vec<Vec<usize>>, String> {
    let packed = path.with_extension("zst");
    let text = match path.is_file() {
        true => std::fs::read_to_string(path),
        false => std::fs::File::open(&packed)
            .and_then(zstd::stream::decode_all)
            .and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other)),
    };
    let text = text.map_err(|e| format!("{}: {e}", path.display()))?;
    let number = |nth: usize, word: &str| match word.parse() {
        Ok(query) if query < queries => Ok(query),
        _ => Err(format!(
            "{}:{}: query \"{word}\"; allowed: 0 to {}",
            path.display(),
            nth + 1,
            queries.saturating_sub(1)
        )),
    };
    let lines = text.lines().enumerate();
    lines
        .map(|(nth, line)| line.split_whitespace().map(|w| number(nth, w)).collect())
        .collect()
}

/// Gains of throughput in percent, repetition by repetition.
fn gain(cells: &Cells, variant: usize, mb: u32, dulo: &str) -> Sample {
    let of = |policy| cells.sample(variant, mb, policy, |f| f.main);
    let slower = of(LINUX).slowdown(&of(dulo));
    slower.map_or_else(|| Sample::new(Vec::new()), |gain| gain.scaled(100.0))
}

fn hits(cells: &Cells, variant: usize, mb: u32, dulo: &str) -> Sample {
    let of = |policy| cells.sample(variant, mb, policy, |f| f.hits);
    of(dulo).difference(&of(LINUX))
}

/// Fills in a row's numbers size by size; gives the gains.
fn show(t: &mut Target, cells: &Cells, variant: usize, sizes: &[u32], dulo: &str) -> Vec<Sample> {
    let mut gains = Vec::new();
    for &mb in sizes {
        let gained = gain(cells, variant, mb, dulo);
        t.values
            .push(shown(&format!("{mb} MB: gain"), &gained, "%"));
        gains.push(gained);
        for (name, policy) in [("Linux", LINUX), ("DULO", dulo)] {
            let main = cells.sample(variant, mb, policy, |f| f.main);
            let ratio = cells.sample(variant, mb, policy, |f| f.hits);
            let name = format!("{mb} MB: {name}");
            t.values
                .push(shown(&format!("{name}, throughput"), &main, "Mbit/s"));
            t.values
                .push(shown(&format!("{name}, hit ratio"), &ratio, "%"));
            for more in cells.more() {
                let figure = cells.sample(variant, mb, policy, |f| f.get(more));
                t.values
                    .push(shown(&format!("{name}, {more}"), &figure, ""));
            }
        }
    }
    gains
}

fn by_mean(samples: &[Sample], largest: bool) -> Option<&Sample> {
    let order = |a: &&Sample, b: &&Sample| a.mean.total_cmp(&b.mean);
    match largest {
        true => samples.iter().max_by(order),
        false => samples.iter().min_by(order),
    }
}

fn mean(samples: &[Sample]) -> f64 {
    samples.iter().map(|s| s.mean).sum::<f64>() / samples.len().max(1) as f64
}

/// D-11. Gives the mean gain.
fn judge_real(t: &mut Target, cells: &Cells, sizes: &[u32], dulo: &str) -> f64 {
    let gains = show(t, cells, REAL, sizes, dulo);
    let mut verdicts = Vec::new();
    let names = [
        "smallest gain over the sizes",
        "largest gain over the sizes",
    ];
    for (nth, (name, paper)) in names.into_iter().zip(GAINS).enumerate() {
        let Some(sample) = by_mean(&gains, nth == 1) else {
            continue;
        };
        verdicts.push(verdict::headline(paper, sample));
        t.values
            .insert(nth, sampled(name, Published::Number(paper), sample, "%"));
    }
    for &mb in sizes {
        let more = hits(cells, REAL, mb, dulo);
        t.predicates.push(states(
            format!(
                "{mb} MB: the hit ratio is higher ({:+.2} points)",
                more.mean
            ),
            more.mean > 0.0,
        ));
    }
    t.verdict = verdict::with_statements(verdict::worst(verdicts), &t.predicates);
    mean(&gains)
}

/// D-12.
fn judge_contiguous(t: &mut Target, cells: &Cells, sizes: &[u32], dulo: &str, real: f64) {
    let gains = show(t, cells, CONTIGUOUS, sizes, dulo);
    for (mb, gained) in sizes.iter().zip(&gains) {
        let within = gained.interval();
        t.predicates.push(states(
            format!("{mb} MB: the gain's interval lies within {LITTLE} % of 0"),
            within.is_some_and(|(low, high)| low >= -LITTLE && high <= LITTLE),
        ));
    }
    let ours = mean(&gains);
    t.predicates.push(states(
        format!("the mean gain is below half of D-11's ({ours:.2} %, {real:.2} %)"),
        ours < real / 2.0,
    ));
    t.verdict = verdict::shape(&t.predicates);
}
