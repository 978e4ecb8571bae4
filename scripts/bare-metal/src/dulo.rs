//! Drives DULO on CLOCK, and a block table of its own, through their public calls.

use core::fmt::Write;

use piebald_policy::{
    contract::replacement::{Gone, Insert, PageRef, Replacement, Touch, Via},
    dulo::{
        BlockTable, Bucket, Config, Cost, Dulo, Hits, Link, Sections, Sequence, Sizes, Slices,
        TableNode,
    },
    replacement::{self, Clock, ClockConfig, Slots},
};
use piebald_units::{DiskBlock, Picos};

use super::Sink;

type Lent<T> = &'static mut [T];
type Base = Clock<Slots<Lent<replacement::Link>, Lent<u8>>>;
type Memory =
    Slices<Lent<Link>, Lent<u64>, Lent<Sequence>, Lent<PageRef>, Lent<Bucket>, Lent<TableNode>>;

const PAGES: usize = 64;

/// What a kernel keeps in static memory, since no stack holds it.
static mut MARKS: [u8; PAGES] = [0; PAGES];
// SAFETY: links are numbers, and the policy sets each before it reads it.
static mut ORDER: [replacement::Link; PAGES] = unsafe { core::mem::zeroed() };
static mut LINKS: [Link; PAGES] = [Link::EMPTY; PAGES];
static mut PLACES: [u64; PAGES] = [0; PAGES];
static mut SEQUENCES: [Sequence; PAGES] = [Sequence::EMPTY; PAGES];
static mut BANK: [PageRef; PAGES] = [PageRef(0); PAGES];
static mut BUCKETS: [Bucket; 128] = [Bucket::EMPTY; 128];
static mut TABLE: [TableNode; 32] = [TableNode::EMPTY; 32];
static mut NODES: [TableNode; 32] = [TableNode::EMPTY; 32];
static COSTS: [u32; 128] = [9; 128];
static mut DULO: Option<Dulo<Base, Memory>> = None;

#[inline(never)]
pub fn sequences(word: u64) -> u64 {
    let mut sink = Sink(0);
    make(word, &mut sink);
    // SAFETY: one thread; the reference ends with this function.
    let Some(dulo) = (unsafe { (&mut *(&raw mut DULO)).as_mut() }) else {
        return table(word) ^ sink.0;
    };
    pages_come(dulo, word);
    host_decides(dulo, word);
    if let Err(e) = dulo.validate() {
        let _ = write!(sink, "{e}");
    }
    questions(dulo, word) ^ table(word) ^ sizes(word, &mut sink) ^ sink.0
}

#[inline(never)]
fn base() -> Option<Base> {
    // SAFETY: one thread, and this runs once.
    let store = unsafe {
        Slots {
            links: (&mut *(&raw mut ORDER)).as_mut_slice(),
            marks: (&mut *(&raw mut MARKS)).as_mut_slice(),
        }
    };
    Clock::new(store, ClockConfig::new(PAGES as u32 - 1)).ok()
}

#[inline(never)]
fn make(word: u64, sink: &mut Sink) {
    // SAFETY: one thread, and this runs once.
    let store = unsafe {
        Slices {
            links: (&mut *(&raw mut LINKS)).as_mut_slice(),
            places: (&mut *(&raw mut PLACES)).as_mut_slice(),
            sequences: (&mut *(&raw mut SEQUENCES)).as_mut_slice(),
            bank: (&mut *(&raw mut BANK)).as_mut_slice(),
            buckets: (&mut *(&raw mut BUCKETS)).as_mut_slice(),
            table: (&mut *(&raw mut TABLE)).as_mut_slice(),
        }
    };
    let config = Config {
        hits: match word & 3 {
            0 => Hits::Promote,
            1 => Hits::Restore,
            _ => Hits::Mark,
        },
        ..Config::scaled((word >> 2) as u32)
    };
    let cost = match word & 4 {
        0 => Cost::Uniform,
        _ => Cost::Runs(&COSTS),
    };
    let Some(base) = base() else { return };
    match Dulo::new(base, store, config, cost) {
        // SAFETY: one thread, and this runs once.
        Ok(dulo) => unsafe { DULO = Some(dulo) },
        Err(e) => {
            let _ = write!(sink, "{e}");
        }
    }
}

#[inline(never)]
fn pages_come(dulo: &mut Dulo<Base, Memory>, word: u64) {
    let now = Picos(word);
    for n in 0..word & 1023 {
        let insert = Insert {
            at: (n & 7 != 0).then_some(DiskBlock(word.rotate_left(n as u32) ^ n)),
            ..Insert::default()
        };
        dulo.miss(None, &insert, now);
        let page = dulo.evict().unwrap_or(PageRef(n as u32));
        while dulo.dropped().is_some() {}
        dulo.insert(page, &insert, now);
        let touch = Touch {
            via: if n & 1 == 0 { Via::Call } else { Via::Mapping },
            ..Touch::default()
        };
        dulo.hit(PageRef((word >> 8) as u32), touch, now);
    }
}

#[inline(never)]
fn host_decides(dulo: &mut Dulo<Base, Memory>, word: u64) {
    let mut out = [PageRef(0); 4];
    let n = dulo.propose(&mut out);
    for page in out.into_iter().take(n) {
        dulo.detach(page);
        dulo.place(page, Some(DiskBlock(word)));
        dulo.set_dirty(page, word & 1 == 0);
        dulo.reattach(page);
    }
    dulo.forget(PageRef(word as u32), Gone::Evicted);
    dulo.forget(PageRef((word >> 16) as u32), Gone::Deleted);
    dulo.reclaim_table(word as u32, DiskBlock(word >> 8), word as u32);
}

#[inline(never)]
fn questions(dulo: &Dulo<Base, Memory>, word: u64) -> u64 {
    let page = PageRef(word as u32);
    let standing = dulo.standing(page).map_or(0, |s| s.h ^ u64::from(s.left));
    let [latest, before] = dulo.times(DiskBlock(word));
    let counters = dulo.counters();
    let order = dulo.evicting().fold(0u64, |sum, p| sum ^ u64::from(p.0));
    standing
        ^ u64::from(latest ^ before ^ dulo.clock() ^ dulo.table_nodes() ^ dulo.sections().bank)
        ^ dulo.inflation()
        ^ dulo.formed(word as u16)
        ^ counters.comparisons
        ^ dulo.table_counters().recorded
        ^ dulo.effort().scanned
        ^ order
        ^ dulo.state(page) as u64
        ^ u64::from(dulo.resident() ^ dulo.capacity() ^ dulo.slots() ^ dulo.base().resident())
}

/// A block table of its own.
#[inline(never)]
fn table(word: u64) -> u64 {
    // SAFETY: one thread, and this runs once.
    let nodes = unsafe { (&mut *(&raw mut NODES)).as_mut_slice() };
    let mut table = BlockTable::new(nodes);
    for n in 0..word & 255 {
        table.record(DiskBlock(word.rotate_right(n as u32)), n as u32);
    }
    let reclaimed = table.reclaim(word as u32).nodes;
    let stepped = table.reclaim_step(3, DiskBlock(word), 1).nodes;
    let [latest, before] = table.times(DiskBlock(word));
    let seen = table.accessed_at(word as u32).fold(0, |sum, b| sum ^ b.0);
    seen ^ u64::from(latest ^ before ^ table.nodes_in_use() ^ reclaimed ^ stepped)
        ^ table.counters().dropped
        ^ u64::from(table.validate().is_ok())
}

#[inline(never)]
fn sizes(word: u64, sink: &mut Sink) -> u64 {
    let published = Config::published(word as u32).linux();
    match published.sections((word >> 32) as u32) {
        Ok(sections) => needed(&sections, word as u32),
        Err(e) => {
            let _ = write!(sink, "{e}");
            0
        }
    }
}

fn needed(sections: &Sections, slots: u32) -> u64 {
    let sizes = Sizes::of(sections, slots);
    (sizes.slots ^ sizes.sequences ^ sizes.bank ^ sizes.buckets ^ sizes.table) as u64
}
