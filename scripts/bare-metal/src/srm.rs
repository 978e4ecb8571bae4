//! Drives the colored zone over LRU through its public calls.

use core::fmt::Write;

use piebald_policy::{
    color_map::ColorMap,
    contract::{
        Mode,
        replacement::{Gone, Insert, PageRef, Replacement, Touch},
    },
    replacement::{self, Lru, Slots},
    srm::{
        Answer, Config, FileFault, Limited, Link, List, Sequence, Sets, Sizes, Slices, Srm, Supply,
        VmTurn,
    },
};
use piebald_units::{Color, ColorSet, Pfn, Picos};

use super::Sink;

type Lent<T> = &'static mut [T];
type Order = Lru<Slots<Lent<replacement::Link>, Lent<u8>>>;
type Memory = Slices<&'static ColorMap, Lent<Link>, Lent<List>, &'static mut Sets>;

const PAGES: usize = 64;

/// What a kernel keeps in static memory, since no stack holds it.
static mut MARKS: [u8; PAGES] = [0; PAGES];
static mut ORDER: [replacement::Link; PAGES] = [replacement::Link::NONE; PAGES];
static mut LINKS: [Link; PAGES] = [Link::OUT; PAGES];
static mut LISTS: [List; 16] = [List::EMPTY; 16];
static mut SETS: Sets = Sets::EMPTY;
static mut OWN: ColorSet = ColorSet::EMPTY;
static mut ZONE: Option<Srm<Memory>> = None;

#[inline(never)]
pub fn zone(word: u64) -> u64 {
    let mut sink = Sink(0);
    make(word, &mut sink);
    // SAFETY: one thread; the reference ends with this function.
    let Some(zone) = (unsafe { (&mut *(&raw mut ZONE)).as_mut() }) else {
        return sink.0;
    };
    frames_come(zone, word, &mut sink);
    let taken = faults(zone, word);
    frames_leave(zone, word);
    if let Err(e) = zone.reconfigure(config(word >> 7)) {
        let _ = write!(sink, "{e}");
    }
    if let Err(e) = zone.validate() {
        let _ = write!(sink, "{e}");
    }
    taken ^ order(zone, word) ^ questions(zone, word) ^ sink.0
}

fn config(word: u64) -> Config {
    Config {
        threshold: word as u32,
        max_pages: (word & 1 == 0).then_some((word >> 8) as u32),
        idle_after: (word & 2 == 0).then_some(word >> 16),
    }
}

#[inline(never)]
fn make(word: u64, sink: &mut Sink) {
    // SAFETY: one thread, and this runs once.
    let store = unsafe {
        Slices {
            map: &ColorMap::PLAIN,
            links: (&mut *(&raw mut LINKS)).as_mut_slice(),
            lists: (&mut *(&raw mut LISTS)).as_mut_slice(),
            sets: &mut *(&raw mut SETS),
        }
    };
    match Srm::new(store, word & 127, Pfn(word >> 3), config(word)) {
        // SAFETY: one thread, and this runs once.
        Ok(zone) => unsafe { ZONE = Some(zone) },
        Err(e) => {
            let _ = write!(sink, "{e}");
        }
    }
}

#[inline(never)]
fn frames_come(zone: &mut Srm<Memory>, word: u64, sink: &mut Sink) {
    for n in 0..word & 1023 {
        if let Err(e) = zone.add_cold(Pfn(word.rotate_left(n as u32))) {
            let _ = write!(sink, "{e}");
        }
    }
    let mut next = word;
    let filled = zone.fill(word as u32, |color| {
        next = next.wrapping_add(u64::from(color.0));
        (next & 7 != 0).then_some(Pfn(next))
    });
    if let Err(e) = filled {
        let _ = write!(sink, "{e}");
    }
}

#[inline(never)]
fn faults(zone: &mut Srm<Memory>, word: u64) -> u64 {
    // SAFETY: one thread; the reference ends with this function.
    let own = unsafe { &mut *(&raw mut OWN) };
    own.insert(Color(word as u16));
    let limited = Limited {
        allowed: (word & 1 == 0).then_some(&*own),
        mode: if word & 2 == 0 {
            Mode::Hard
        } else {
            Mode::Hint
        },
        supply: if word & 4 == 0 {
            Supply::More
        } else {
            Supply::Spent
        },
    };
    let (mut file, mut process) = (Sequence::NONE, Sequence::NONE);
    let mut turn = VmTurn::default();
    let mut sum = 0;
    for n in 0..word & 255 {
        let block = zone.file_fault(FileFault {
            file: &mut file,
            process: &mut process,
            file_blocks: word >> (n & 31),
            limited,
        });
        let page = zone.vm_fault(&mut turn, limited);
        sum ^= answered(block) ^ answered(page);
        zone.declined(FileFault {
            file: &mut file,
            process: &mut process,
            file_blocks: word,
            limited,
        });
    }
    zone.end(&mut file);
    sum ^ u64::from(turn.color().0)
}

fn answered(answer: Answer) -> u64 {
    match answer {
        Answer::Frame(taken) => taken.frame.0,
        Answer::Refill => 1,
        Answer::Empty(color) => color.map_or(2, |c| u64::from(c.0)),
    }
}

#[inline(never)]
fn frames_leave(zone: &mut Srm<Memory>, word: u64) {
    zone.hit(Pfn(word));
    zone.remove(Pfn(word >> 2));
    while zone.pages() > 3 && zone.take_any().is_some() {}
}

/// Pulls from an order, and tells both of a use.
#[inline(never)]
fn order(zone: &mut Srm<Memory>, word: u64) -> u64 {
    // SAFETY: one thread, and this runs once.
    let store = unsafe {
        Slots {
            links: (&mut *(&raw mut ORDER)).as_mut_slice(),
            marks: (&mut *(&raw mut MARKS)).as_mut_slice(),
        }
    };
    let Ok(mut order) = Order::new(store, replacement::Config::new(PAGES as u32 - 1)) else {
        return 0;
    };
    let now = Picos(word);
    for page in 0..word as u32 & 31 {
        order.insert(PageRef(page), &Insert::default(), now);
    }
    let mut batch = [PageRef(0); 8];
    let frame = |page: PageRef| Some(Pfn(word.wrapping_add(u64::from(page.0))));
    let pulled = zone.pull(&mut order, &mut batch, frame);
    let (page, touch) = (PageRef(word as u32), Touch::default());
    zone.used(&mut order, page, Pfn(word), touch, now);
    order.forget(page, Gone::Evicted);
    u64::from(pulled.pages ^ pulled.seen ^ order.resident())
}

#[inline(never)]
fn questions(zone: &Srm<Memory>, word: u64) -> u64 {
    let color = Color(word as u16);
    let standing = zone.standing(color);
    let short = zone
        .short_color(color)
        .map_or(0, |(c, n)| u32::from(c.0) ^ n);
    let frames = zone.frames_of(color).fold(0, |sum, f| sum ^ f.0);
    let sizes = Sizes::of(zone.map(), word);
    u64::from(standing.pages ^ standing.free ^ short ^ zone.free_pages() ^ zone.short_colors())
        ^ frames
        ^ (sizes.frames ^ sizes.colors) as u64
        ^ zone.counters().sequences
        ^ u64::from(zone.limits().max_pages)
        ^ u64::from(zone.holds(Pfn(word)).is_some() ^ zone.wants_pages())
}
