//! What SRM-buffer costs beyond the replacement policy that it is built on, in steady
//! state: memory is full, every fault evicts a page, and the zone is refilled from the
//! cold end.
//!
//! `cargo run --release -p piebald-policy --example srm_cost`, with `FRAMES` (default
//! 262,144: 1 GiB), `COLOR_BITS` (6), `THRESHOLD` (256), `FILES` (8, read side by side),
//! `FAULTS` (4,000,000) and `RUNS` (5) from the environment. The fastest run counts: what
//! it costs when nobody else uses the core.

#[path = "../tests/random.rs"]
mod random;

use std::time::Instant;

use piebald_policy::{
    color_map::{BitClass, ColorMap},
    contract::replacement::{Gone, Insert, PageRef, Replacement, Touch},
    replacement::{self, Lru, Slots, TwoLists, TwoListsConfig},
    srm::{
        Answer, Config, FileFault, Holds, Limited, Link, List, Sequence, Sets, Slices, Srm, Supply,
        VmTurn,
    },
};
use piebald_units::{Pfn, Picos};
use random::Random;

const NOW: Picos = Picos(0);
/// Pages that one look at the cold end proposes.
const BATCH: usize = 32;

type Memory = Slots<Vec<replacement::Link>, Vec<u8>>;
type Zone = Srm<Slices<ColorMap, Vec<Link>, Vec<List>, Box<Sets>>>;

fn setting(name: &str, default: u32) -> u32 {
    let value = random::setting(name, default.into());
    value.try_into().unwrap_or(u32::MAX)
}

/// A full memory under a policy: each frame has a page, and no page has a name.
struct Host<R> {
    order: R,
    page_of: Vec<u32>,
    frame_of: Vec<u32>,
    /// The number that is free: one page more than frames.
    spare: u32,
}

impl<R: Replacement> Host<R> {
    fn new(mut order: R, frames: u32) -> Self {
        // Memory was filled in no order that colours know of.
        let mut frame_of: Vec<u32> = (0..frames).collect();
        let mut random = Random(1);
        for last in (1..frames as usize).rev() {
            frame_of.swap(last, random.below(last as u64 + 1) as usize);
        }
        let mut page_of = vec![0; frames as usize];
        for page in 0..frames {
            page_of[frame_of[page as usize] as usize] = page;
            order.miss(None, &Insert::default(), NOW);
            order.insert(PageRef(page), &Insert::default(), NOW);
        }
        frame_of.push(u32::MAX);
        Self {
            order,
            page_of,
            frame_of,
            spare: frames,
        }
    }

    /// The page of a frame leaves, and a new one comes there.
    fn replace(&mut self, frame: u32, is_there: bool) {
        let insert = Insert::default();
        let old = self.page_of[frame as usize];
        if is_there {
            self.order.forget(PageRef(old), Gone::Evicted);
        }
        while self.order.dropped().is_some() {}
        let new = std::mem::replace(&mut self.spare, old);
        (self.page_of[frame as usize], self.frame_of[new as usize]) = (new, frame);
        self.order.insert(PageRef(new), &insert, NOW);
    }

    fn plain_fault(&mut self) {
        self.order.miss(None, &Insert::default(), NOW);
        let page = self.order.evict().expect("memory is full");
        self.replace(self.frame_of[page.index()], false);
    }

    /// Refills until the shortest list is long, as the room's documentation says.
    fn refill(&mut self, zone: &mut Zone) -> Supply {
        let mut batch = [PageRef(0); BATCH];
        let frame_of = &self.frame_of;
        let frame = |page: PageRef| Some(Pfn(u64::from(frame_of[page.index()])));
        let mut supply = Supply::Spent;
        while zone.pull(&mut self.order, &mut batch, frame).pages > 0 {
            supply = Supply::More;
        }
        supply
    }

    fn srm_fault(&mut self, zone: &mut Zone, mut ask: impl FnMut(&mut Zone, Supply) -> Answer) {
        let mut supply = Supply::More;
        self.order.miss(None, &Insert::default(), NOW);
        let taken = loop {
            match ask(zone, supply) {
                Answer::Frame(taken) => break taken,
                Answer::Refill => supply = self.refill(zone),
                Answer::Empty(_) => unreachable!("every page may go"),
            }
        };
        self.replace(taken.frame.0 as u32, taken.holds == Holds::Cold);
    }
}

/// What to measure.
#[derive(Clone, Copy)]
struct Plan {
    frames: u32,
    faults: u32,
    files: u64,
}

/// Nanoseconds per call of a phase.
fn timed(calls: u32, mut phase: impl FnMut()) -> f64 {
    let start = Instant::now();
    (0..calls).for_each(|_| phase());
    start.elapsed().as_nanos() as f64 / f64::from(calls)
}

/// Faults, then hits of random pages.
fn plain<R: Replacement>(order: R, plan: Plan) -> [f64; 2] {
    let mut host = Host::new(order, plan.frames);
    (0..plan.frames).for_each(|_| host.plain_fault());
    let faults = timed(plan.faults, || host.plain_fault());
    let mut random = Random(2);
    let hits = timed(plan.faults, || {
        let frame = random.below(u64::from(plan.frames)) as usize;
        let page = PageRef(host.page_of[frame]);
        host.order.hit(page, Touch::default(), NOW);
    });
    [faults, hits]
}

fn zone(frames: u32) -> Zone {
    let bits = setting("COLOR_BITS", 6);
    let masks: Vec<_> = (0..bits).map(|b| (1 << b, BitClass::Cache)).collect();
    let map = ColorMap::from_masks(&masks).expect("at most 12 color bits");
    let config = Config {
        threshold: setting("THRESHOLD", 256),
        ..Config::PAPER
    };
    let frames = u64::from(frames);
    match Srm::new(Slices::collect(map, frames), frames, Pfn(0), config) {
        Ok(zone) => zone,
        Err(e) => panic!("{e}"),
    }
}

/// Faults of files, faults of programs, then hits of random pages.
fn with_srm<R: Replacement>(order: R, plan: Plan) -> ([f64; 3], Zone) {
    let mut host = Host::new(order, plan.frames);
    let mut zone = zone(plan.frames);
    let mut files = vec![Sequence::NONE; plan.files as usize];
    let mut turn = VmTurn::default();
    let mut random = Random(3);
    let mut file_fault = |host: &mut Host<R>, zone: &mut Zone| {
        let file = random.below(plan.files) as usize;
        host.srm_fault(zone, |zone, supply| {
            let limited = Limited {
                supply,
                ..Limited::default()
            };
            zone.file_fault(FileFault {
                file: &mut files[file],
                process: &mut { Sequence::NONE },
                file_blocks: u64::MAX,
                limited,
            })
        });
    };
    (0..plan.frames).for_each(|_| file_fault(&mut host, &mut zone));
    let blocks = timed(plan.faults, || file_fault(&mut host, &mut zone));
    let files = zone.clone();
    let pages = timed(plan.faults, || {
        host.srm_fault(&mut zone, |zone, supply| {
            let limited = Limited {
                supply,
                ..Limited::default()
            };
            zone.vm_fault(&mut turn, limited)
        });
    });
    let mut random = Random(2);
    let hits = timed(plan.faults, || {
        let frame = random.below(u64::from(plan.frames));
        let page = PageRef(host.page_of[frame as usize]);
        zone.used(&mut host.order, page, Pfn(frame), Touch::default(), NOW);
    });
    ([blocks, pages, hits], files)
}

/// The fastest of several runs, phase by phase.
fn best<const N: usize>(mut run: impl FnMut() -> [f64; N]) -> [f64; N] {
    let mut least = [f64::INFINITY; N];
    for _ in 0..setting("RUNS", 5) {
        let times = run();
        least = std::array::from_fn(|i| least[i].min(times[i]));
    }
    least
}

fn show<R: Replacement>(name: &str, make: impl Fn() -> R, plan: Plan) {
    let [fault, hit] = best(|| plain(make(), plan));
    println!("{name}: {fault:.1} ns per fault, {hit:.1} ns per hit");
    let mut last = None;
    let [block, page, srm_hit] = best(|| {
        let (times, zone) = with_srm(make(), plan);
        last = Some(zone);
        times
    });
    println!(
        "  with srm: {block:.1} ns per block of a file ({:+.1}), {page:.1} ns per page of a \
         program ({:+.1}), {srm_hit:.1} ns per hit ({:+.1})",
        block - fault,
        page - fault,
        srm_hit - hit
    );
    if let Some(zone) = last {
        figures(&zone);
    }
}

/// What the blocks of files did to the zone.
fn figures(zone: &Zone) {
    let c = zone.counters();
    let blocks = (c.free + c.cold) as f64;
    println!(
        "  {} pages in the zone at the end, bound {}; {:.1} blocks per sequence, per 1000 \
         blocks {:.2} pages pulled, {:.2} answers Refill, {:.3} sequences cut early, {:.3} in \
         short, {:.3} in shared and {:.3} in idle lists",
        zone.pages(),
        zone.limits().max_pages,
        blocks / c.sequences as f64,
        c.pulled as f64 / blocks * 1000.0,
        c.refills as f64 / blocks * 1000.0,
        c.cut as f64 / blocks * 1000.0,
        c.short as f64 / blocks * 1000.0,
        c.shared as f64 / blocks * 1000.0,
        c.idle as f64 / blocks * 1000.0,
    );
}

fn main() {
    let plan = Plan {
        frames: setting("FRAMES", 262_144),
        faults: setting("FAULTS", 4_000_000),
        files: u64::from(setting("FILES", 8)),
    };
    let room = replacement::Config::new(plan.frames);
    let lru = || {
        Lru::new(
            Memory::collect(room.slots().expect("a capacity that fits")),
            room,
        )
    };
    show("lru", || lru().expect("memory that fits"), plan);
    let config = TwoListsConfig::new(plan.frames);
    let lists = || TwoLists::new(Memory::collect(config.slots().expect("it fits")), config);
    show(
        "active and inactive list",
        || lists().expect("it fits"),
        plan,
    );
}
