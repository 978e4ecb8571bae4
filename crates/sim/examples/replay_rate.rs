//! References per second of replacement policies and of the LRU curve on a trace of ids
//! that is held in memory, so that nothing but the cache is timed.
//!
//! `cargo run --release -p piebald-sim --example replay_rate -- FILE PAGES POLICY...`,
//! FILE in the oracleGeneral format; `curve` stands for the LRU curve. Prints, in a line for
//! each: policy, pages, references, misses, millions of references per second of processor
//! time, and the bytes that the cache took for each page that fits (on Linux).

use std::{env, fs, process::ExitCode, sync::LazyLock, time::Instant};

use piebald_os_model::replace::registry::{Setup, Visitor, build};
use piebald_policy::contract::replacement::Replacement;
use piebald_sim::replay::{Cache, LruCurve, PageKey, Reference, Use};

/// Seconds of processor time of this thread, as Linux counts it; elsewhere those passed.
fn seconds() -> f64 {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    let counted = fs::read_to_string("/proc/thread-self/schedstat").ok();
    let first = counted.as_deref().and_then(|text| text.split(' ').next());
    match first.and_then(|nanos| nanos.parse::<f64>().ok()) {
        Some(nanos) => nanos / 1e9,
        None => START.elapsed().as_secs_f64(),
    }
}

/// Bytes of this process in memory that come from no file.
fn memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|l| l.strip_prefix("RssAnon:"))?;
    let kib: f64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0)
}

/// What was found of a policy.
struct Found {
    misses: u64,
    seconds: f64,
    bytes: Option<f64>,
}

/// Runs something and notes what it took, while what it made is there. `before` is the memory
/// before any of it was.
fn timed<T>(before: Option<f64>, run: impl FnOnce() -> T, misses: impl Fn(&T) -> u64) -> Found {
    let began = seconds();
    let made = run();
    let seconds = seconds() - began;
    Found {
        misses: misses(&made),
        seconds,
        bytes: memory().zip(before).map(|(now, before)| now - before),
    }
}

struct Timed<'a> {
    references: &'a [Reference],
    next_use: &'a [u64],
    before: Option<f64>,
}

impl Visitor for Timed<'_> {
    type Out = Found;

    fn visit<P: Replacement + Send + 'static>(self, policy: P) -> Self::Out {
        let run = || {
            let mut cache = Cache::new(policy, 0, false);
            cache.run(self.references, self.next_use);
            cache
        };
        timed(self.before, run, |cache| cache.counts().misses)
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let [path, pages, policies @ ..] = args.as_slice() else {
        eprintln!("usage: replay_rate FILE PAGES POLICY...");
        return ExitCode::from(2);
    };
    let (Ok(bytes), Ok(pages)) = (fs::read(path), pages.parse()) else {
        eprintln!("replay_rate: {path} cannot be read or {pages} is no number of pages");
        return ExitCode::FAILURE;
    };
    let number = |record: &[u8], at| {
        let mut field = [0; 8];
        field.copy_from_slice(&record[at..at + 8]);
        u64::from_le_bytes(field)
    };
    let records = bytes.chunks_exact(24);
    let next_use: Vec<u64> = records.clone().map(|r| number(r, 16)).collect();
    let references: Vec<_> = records
        .map(|record| Reference {
            key: PageKey(number(record, 4)),
            what: Use::Read,
        })
        .collect();
    for policy in policies {
        let found = match policy.as_str() {
            "curve" => {
                let run = || {
                    let mut curve = LruCurve::default();
                    curve.run(&references);
                    curve
                };
                timed(memory(), run, |curve| curve.misses(&[u64::from(pages)])[0])
            }
            _ => {
                let next_use: &[u64] = if policy == "min" { &next_use } else { &[] };
                let timed = Timed {
                    references: &references,
                    next_use,
                    before: memory(),
                };
                match build(policy, &Setup::new(pages), timed) {
                    Ok(found) => found,
                    Err(e) => {
                        eprintln!("replay_rate: {e}");
                        return ExitCode::from(2);
                    }
                }
            }
        };
        let rate = references.len() as f64 / found.seconds / 1e6;
        let bytes = found.bytes.unwrap_or(f64::NAN) / f64::from(pages);
        let (references, misses) = (references.len(), found.misses);
        println!("{policy} {pages} {references} {misses} {rate:.2} {bytes:.1}");
    }
    ExitCode::SUCCESS
}
