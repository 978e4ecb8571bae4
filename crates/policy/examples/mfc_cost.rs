//! What a decision of MFC costs: per access, per assignment of a file to a core, and
//! with two threads at once (paper: 0.495 us and 4.101 us, section 6.6.1, Figure 11).
//!
//! `cargo run --release -p piebald-policy --example mfc_cost`, with `READS` (default
//! 2,000,000), `FILES` (128), `READERS` (32) and `RUNS` (5) from the environment.
//!
//! The load is the paper's: readers of whole files of 256 KB by Zipf's law on 16 cores,
//! 128 files for Figure 11 and 512 for what does not fit. No data is copied: the time is
//! that of `before` and `after` alone, on this computer. Each thread has half of the
//! readers; the fastest run counts.

#[path = "../tests/random.rs"]
mod random;

use std::{
    sync::{Barrier, OnceLock},
    thread,
    time::{Duration, Instant},
};

use piebald_policy::{
    contract::reads::{Among, ReadOutcome, ReadPlacement, ReadRequest, Reader},
    mfc::{
        Cell, Config, CoreState, Domain, DomainState, Entry, FileRecord, Level, Mfc, SetState,
        SharedState, Sizes, Slices, Topology, Why,
    },
};
use piebald_units::{Bytes, CoreId, CoreSet, FileId, Picos};
use random::{Random, setting};

type Memory = Slices<
    Vec<DomainState>,
    Vec<SharedState>,
    Vec<CoreState>,
    Vec<FileRecord>,
    Vec<SetState>,
    Vec<Cell>,
    Vec<Entry>,
    Vec<u8>,
>;

const FILE: Bytes = Bytes(256 * Bytes::KIB);
const CORES: u16 = 16;

/// Files by Zipf's law with exponent 1.
fn zipf(files: u64, reads: u64, seed: u64) -> Vec<u64> {
    let mut random = Random(seed);
    let mut sum = 0.0;
    let weights: Vec<f64> = (1..=files)
        .map(|rank| {
            sum += 1.0 / rank as f64;
            sum
        })
        .collect();
    let mut draw = || {
        let mark = (random.next() >> 11) as f64 / (1u64 << 53) as f64 * sum;
        weights
            .partition_point(|w| *w < mark)
            .min(weights.len() - 1) as u64
    };
    (0..reads).map(|_| draw()).collect()
}

/// The paper's machine.
fn mfc(files: u32) -> (Mfc<Memory>, Sizes) {
    let level = |bytes| Level::of(Bytes(bytes));
    let domains: Vec<Domain> = (0..CORES)
        .map(|core| Domain {
            cores: CoreSet::one(CoreId(core)),
            node: core as u8 / 4,
            own: [level(64 * Bytes::KIB), level(512 * Bytes::KIB)],
            shared: Some(core as u8 / 4),
        })
        .collect();
    let topology = Topology {
        cores: CoreSet::first(CORES.into()),
        domains: &domains,
        shared: &[level(2 * Bytes::MIB); 4],
        nodes: 4,
        hops: &[0, 1, 1, 2, 1, 0, 2, 1, 1, 2, 0, 1, 2, 1, 1, 0],
    };
    let sizes = Sizes::of(&topology, &Config::PAPER, files).expect("a machine that fits");
    let mfc = Mfc::new(Memory::collect(&sizes), &topology, Config::PAPER);
    (mfc.expect("memory that fits"), sizes)
}

/// Where the readers of a thread are. Each run queue has the readers that are there.
struct Readers {
    at: Vec<u16>,
    queue: Vec<u32>,
}

impl Readers {
    fn new(first: u64, nr: u64) -> Self {
        let at: Vec<u16> = (first..first + nr)
            .map(|r| (r % u64::from(CORES)) as u16)
            .collect();
        let mut queue = vec![0; usize::from(CORES)];
        at.iter().for_each(|c| queue[usize::from(*c)] += 1);
        Self { at, queue }
    }

    fn go(&mut self, mfc: &Mfc<Memory>, reader: usize, to: u16) {
        let from = self.at[reader];
        self.at[reader] = to;
        for (core, by) in [(from, -1i32), (to, 1)] {
            let queue = &mut self.queue[usize::from(core)];
            *queue = queue.saturating_add_signed(by);
            mfc.set_runnable(CoreId(core), *queue);
        }
    }

    /// The kernel's balancer takes a reader from the longest queue to the shortest.
    fn balance(&mut self, mfc: &Mfc<Memory>) {
        let cores = || (0..CORES).map(|c| (self.queue[usize::from(c)], c));
        let (Some((most, busy)), Some((least, idle))) = (cores().max(), cores().min()) else {
            return;
        };
        let reader = self.at.iter().position(|c| *c == busy);
        if let Some(reader) = reader.filter(|_| most > least + 1) {
            self.go(mfc, reader, idle);
        }
    }
}

fn request(core: u16, file: u64) -> ReadRequest {
    ReadRequest {
        reader: Reader::on(CoreId(core)),
        file: FileId(file),
        size: FILE,
        offset: 0,
        len: FILE,
        among: Among::First,
    }
}

/// Time that this thread has had on a processor, where the system tells it; else time.
/// Other programs on this computer then do not count, but for the caches they take.
fn spent() -> Duration {
    static START: OnceLock<Instant> = OnceLock::new();
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = told.and_then(|t| t.split(' ').next()?.parse().ok());
    ns.map_or_else(
        || START.get_or_init(Instant::now).elapsed(),
        Duration::from_nanos,
    )
}

/// Reads files in turn; the time of all of it.
fn run(mfc: &Mfc<Memory>, readers: &mut Readers, files: &[u64]) -> Duration {
    let start = spent();
    for (n, file) in files.iter().enumerate() {
        let reader = n % readers.at.len();
        let request = request(readers.at[reader], *file);
        // 20,000 reads of 50 us each in a second.
        let now = Picos(n as u64 * 50_000_000);
        let read = mfc.before(&request, now);
        if read.core != request.reader.core {
            readers.go(mfc, reader, read.core.0);
        }
        let ran_on = read.core;
        mfc.after(
            &ReadOutcome {
                request,
                read,
                ran_on,
            },
            now,
        );
        if n % 64 == 0 {
            readers.balance(mfc);
        }
    }
    spent().saturating_sub(start)
}

/// Nanoseconds per access with so many threads, each of which makes all the reads.
fn access_ns(files: u64, threads: u64) -> (f64, Mfc<Memory>) {
    let reads = setting("READS", 2_000_000);
    let per_thread = setting("READERS", 32) / threads;
    let streams: Vec<Vec<u64>> = (0..threads).map(|t| zipf(files, reads, 42 + t)).collect();
    let mut best = (f64::MAX, mfc(files as u32).0);
    for _ in 0..setting("RUNS", 5) {
        let mfc = mfc(files as u32).0;
        let barrier = Barrier::new(threads as usize);
        let slowest = thread::scope(|scope| {
            let workers: Vec<_> = (0u64..)
                .zip(&streams)
                .map(|(t, stream)| {
                    let (mfc, barrier) = (&mfc, &barrier);
                    scope.spawn(move || {
                        let mut readers = Readers::new(t * per_thread, per_thread);
                        run(mfc, &mut readers, &stream[..stream.len() / 4]);
                        barrier.wait();
                        run(mfc, &mut readers, stream)
                    })
                })
                .collect();
            let times = workers.into_iter().map(|w| w.join().expect("no panic"));
            times.max().unwrap_or_default()
        });
        let ns = slowest.as_nanos() as f64 / reads as f64;
        if ns < best.0 {
            best = (ns, mfc);
        }
    }
    best
}

/// Nanoseconds of a decision that gives a file to a core: the mean of those, each timed
/// alone, without what the clock itself takes.
fn assignment_ns() -> (f64, usize) {
    let files = 4096;
    let (mfc, _) = mfc(files);
    let timed = |core: u16, file: u64| {
        let start = Instant::now();
        let verdict = mfc.decide(&request(core, file));
        (start.elapsed(), verdict.why)
    };
    let mut times = Vec::new();
    // Each file is read once more often than those before it: it comes in their place.
    for file in 0..u64::from(files) {
        let core = (file % u64::from(CORES)) as u16;
        for _ in 0..file / 64 + 2 {
            let (time, why) = timed(core, file);
            if why == Why::Replaced {
                times.push(time.as_nanos() as f64);
                break;
            }
        }
    }
    let clock = (0..1000)
        .map(|_| Instant::now().elapsed().as_nanos())
        .sum::<u128>() as f64
        / 1000.0;
    times.sort_by(f64::total_cmp);
    // Without the slowest hundredth: interrupts.
    times.truncate(times.len() * 99 / 100);
    let mean = times.iter().sum::<f64>() / times.len().max(1) as f64;
    (mean - clock, times.len())
}

fn print(title: &str, ns: f64, mfc: &Mfc<Memory>) {
    let counters = mfc.counters();
    let part = |n: u64| n as f64 / counters.reads() as f64;
    let past = counters.verdicts(Why::Unpopular);
    if std::env::var("WHY").is_ok() {
        for why in Why::ALL {
            println!("  {why}: {:.4}", part(counters.verdicts(why)));
        }
        println!("  evicted: {:.4}", part(counters.evicted));
    }
    let placed = [
        Why::RoomHere,
        Why::RoomElsewhere,
        Why::Replaced,
        Why::CopiedToRoom,
        Why::Copied,
        Why::Brought,
    ];
    let placed = placed.iter().map(|w| counters.verdicts(*w)).sum();
    println!(
        "{title}: {ns:.1} ns per access; {:.3} moved, {:.3} read past the caches, {:.4} placed, \
         {:.6} gave way to another thread",
        part(counters.moved),
        part(past),
        part(placed),
        part(counters.contended),
    );
}

fn main() {
    let files = setting("FILES", 128);
    let (_, sizes) = mfc(files as u32);
    println!(
        "{files} files, {CORES} cores: {:.0} B per file, {} B for the machine",
        sizes.file_bytes() as f64 / sizes.files as f64,
        sizes.machine_bytes(),
    );
    for threads in [1, 2] {
        let (ns, mfc) = access_ns(files, threads);
        print(&format!("{files} files, {threads} thread(s)"), ns, &mfc);
    }
    for threads in [1, 2] {
        let (ns, mfc) = access_ns(files * 4, threads);
        print(
            &format!("{} files, {threads} thread(s)", files * 4),
            ns,
            &mfc,
        );
    }
    let (ns, nr) = assignment_ns();
    println!("assignment in place of another file: {ns:.0} ns (mean of {nr})");
}
