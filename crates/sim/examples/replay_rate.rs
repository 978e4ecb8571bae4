//! References per second of replacement policies and of the LRU curve on a trace of ids
//! that is held in memory, so that nothing but the cache is timed.
//!
//! `cargo run --release -p piebald-sim --example replay_rate -- FILE PAGES POLICY...`,
//! FILE in the oracleGeneral format; `curve` stands for the LRU curve.

use std::{env, fs, process::ExitCode, time::Instant};

use piebald_policy::contract::replacement::Replacement;
use piebald_sim::replay::{Cache, LruCurve, PageKey, Reference, Use};
use piebald_sim::rooms::os_model::replace::registry::{Setup, Visitor, build};

struct Timed<'a>(&'a [Reference], &'a [u64]);

impl Visitor for Timed<'_> {
    type Out = (u64, f64);

    fn visit<P: Replacement + Send + 'static>(self, policy: P) -> Self::Out {
        let mut cache = Cache::new(policy, 0, false);
        let began = Instant::now();
        cache.run(self.0, self.1);
        (cache.counts().misses, began.elapsed().as_secs_f64())
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
        let (misses, seconds) = match policy.as_str() {
            "curve" => {
                let mut curve = LruCurve::default();
                let began = Instant::now();
                curve.run(&references);
                let seconds = began.elapsed().as_secs_f64();
                (curve.misses(&[u64::from(pages)])[0], seconds)
            }
            _ => {
                let next_use: &[u64] = if policy == "min" { &next_use } else { &[] };
                match build(policy, &Setup::new(pages), Timed(&references, next_use)) {
                    Ok(timed) => timed,
                    Err(e) => {
                        eprintln!("replay_rate: {e}");
                        return ExitCode::from(2);
                    }
                }
            }
        };
        let rate = references.len() as f64 / seconds / 1e6;
        println!("{policy} {pages} {} {misses} {rate:.2}", references.len());
    }
    ExitCode::SUCCESS
}
