//! Drives the sampler and the manager of programs through their public calls.

use core::fmt::Write;

use piebald_policy::{
    color_map::{BitClass, ColorMap},
    contract::FrameRequest,
    hvr::{
        Arrival, Class, Config, Framework, Manager, Mixed, MonitorConfig, NeverReused,
        OtherRegions, PageRecord, Profile, Program, ProgramId, Reach, Sample, Sampler, Spare, Turn,
        Watched, Window, utility,
    },
};
use piebald_units::{Color, ColorSet, CoreId, Picos, TaskId, Vpn};

use super::Sink;

type Kernel = Manager<&'static ColorMap, &'static mut [Program]>;

/// What a kernel keeps in static memory, since no stack holds it.
static mut RECORDS: [PageRecord; 512] = [PageRecord::UNUSED; 512];
static mut SLOTS: [Program; 16] = [Program::EMPTY; 16];
static mut COLORS: ColorMap = ColorMap::PLAIN;
static mut MANAGER: Option<Kernel> = None;

#[inline(never)]
pub fn programs(word: u64) -> u64 {
    let mut sink = Sink(0);
    let config = config(word);
    let window = sample(config.monitor, word, &mut sink);
    colors(word);
    make(config, &mut sink);
    // SAFETY: one thread; the reference ends with this function.
    let Some(hvr) = (unsafe { (&mut *(&raw mut MANAGER)).as_mut() }) else {
        return sink.0;
    };
    let id = arrive(hvr, word, &mut sink);
    let seen = id.map_or(0, |id| {
        change(hvr, id, word, &window, &mut sink) ^ moves(hvr, id, word) ^ leave(hvr, id, &mut sink)
    });
    if let Err(e) = hvr.validate() {
        let _ = write!(sink, "{e}");
    }
    seen ^ divide(word, &mut sink) ^ sink.0
}

fn config(word: u64) -> Config {
    Config {
        monitor: MonitorConfig {
            passes: word as u8,
            bounds: (word as u32).to_le_bytes(),
            watched: match word & 1 {
                0 => Watched::Used,
                _ => Watched::Mapped,
            },
            never_reused: match word & 2 {
                0 => NeverReused::WholeWindow,
                _ => NeverReused::Nothing,
            },
            averaged: (word >> 3) as u8,
            confirm: (word >> 5) as u8,
            interval: Picos(word),
            step: Picos(word >> 1),
            ..MonitorConfig::PAPER
        },
        framework: match word >> 7 & 3 {
            0 => Framework::Static,
            1 => Framework::Coalescing,
            2 => Framework::Curve,
            _ => Framework::Hvr,
        },
        few: (word >> 9) as u32,
        segregate_from: (word >> 11) as u32,
        mixed: match word & 4 {
            0 => Mixed::Everyone,
            _ => Mixed::Alone,
        },
        small_region: (word >> 13) as u8,
        other_regions: match word & 8 {
            0 => OtherRegions::Used,
            _ => OtherRegions::Left,
        },
        spare: match word & 16 {
            0 => Spare::Lent,
            _ => Spare::Kept,
        },
        move_cost: Picos(word >> 2),
        ..Config::PAPER
    }
}

#[inline(never)]
fn sample(config: MonitorConfig, word: u64, sink: &mut Sink) -> Window {
    // SAFETY: one thread; the reference ends with this function.
    let records = unsafe { (&mut *(&raw mut RECORDS)).as_mut_slice() };
    let mut sampler = match Sampler::new(records, config) {
        Ok(sampler) => sampler,
        Err(e) => {
            let _ = write!(sink, "{e}");
            return Window::default();
        }
    };
    let sample = Sample::draw(word as u32, (word >> 32) as u32, word);
    let slots = sampler.begin(sample.slots(), word);
    for pass in 0..word & 0xff {
        for slot in 0..slots {
            let page = sample.page(slot).unwrap_or(0);
            if word.rotate_left(page) & pass != 0 {
                sampler.touched(slot ^ word as u32 & 1);
            }
        }
        sampler.end_pass();
    }
    sink.0 ^= sampler.ignored() ^ u64::from(sample.scale(slots));
    match sampler.window() {
        Ok(window) => window,
        Err(e) => {
            let _ = write!(sink, "{e}");
            Window::default()
        }
    }
}

#[inline(never)]
fn colors(word: u64) {
    // SAFETY: one thread; the reference ends with this function.
    let map = unsafe { &mut *(&raw mut COLORS) };
    let classes = [BitClass::Both, BitClass::Cache, BitClass::Bank];
    let mut masks = [(0, BitClass::Unknown); 5];
    for (mask, n) in masks.iter_mut().zip(0u32..) {
        let class = classes.get((word >> n & 3) as usize).copied();
        *mask = (word.rotate_left(n) & 0xffff, class.unwrap_or_default());
    }
    if let Ok(made) = ColorMap::from_masks(&masks) {
        *map = made;
    }
}

#[inline(never)]
fn make(config: Config, sink: &mut Sink) {
    // SAFETY: one thread, and this runs once.
    unsafe {
        let slots = (&mut *(&raw mut SLOTS)).as_mut_slice();
        match Manager::new(&*(&raw const COLORS), slots, config) {
            Ok(manager) => MANAGER = Some(manager),
            Err(e) => {
                let _ = write!(sink, "{e}");
            }
        }
    }
}

fn class(word: u64) -> Option<Class> {
    Class::ALL.get((word & 7) as usize).copied()
}

#[inline(never)]
fn arrive(hvr: &mut Kernel, word: u64, sink: &mut Sink) -> Option<ProgramId> {
    let mut id = None;
    for n in 0..word & 31 {
        let arrival = Arrival {
            task: TaskId((word >> n) as u32),
            threads: (word >> n & 3) as u32,
            class: class(word >> n),
            profile: Profile::NEW,
        };
        match hvr.arrive(&arrival) {
            Ok((new, change)) => {
                let _ = write!(sink, "{} {}", change.policy, hvr.mix());
                id = Some(new);
            }
            Err(e) => {
                let _ = write!(sink, "{e}");
            }
        }
    }
    id
}

#[inline(never)]
fn change(hvr: &mut Kernel, id: ProgramId, word: u64, window: &Window, sink: &mut Sink) -> u64 {
    let mut stamp = 0;
    for n in 0..word & 15 {
        if let Err(e) = hvr.hot_pages(id, (word >> n) as u32) {
            let _ = write!(sink, "{e}");
        }
        match hvr.window(id, window) {
            Ok(change) => stamp = change.stamp,
            Err(e) => {
                let _ = write!(sink, "{e}");
            }
        }
    }
    if let Err(e) = hvr.set_threads(id, word as u32 & 3) {
        let _ = write!(sink, "{e}");
    }
    let _ = hvr.declare(id, class(word));
    let _ = hvr.set_reach(id, [Reach::Zone, Reach::All][usize::from(word & 1 == 0)]);
    hvr.changed_since(stamp).count() as u64
}

#[inline(never)]
fn moves(hvr: &mut Kernel, id: ProgramId, word: u64) -> u64 {
    let mut turn = Turn::START;
    turn.took(Color(word as u16));
    let request = FrameRequest::fault(TaskId(word as u32), CoreId(0), Vpn(word));
    let asked = hvr.prepare(&request, id, turn, word);
    let wish = asked.ok().and_then(|r| r.wish).map_or(0, |c| c.0);
    let moved = hvr.touched(id, Color(word as u16));
    let to = moved.ok().flatten().map_or(0, |m| m.to.0);
    hvr.not_moved();
    let pages = [word as u32; 64];
    let cost = hvr.estimate(id, &pages).map_or(0, |e| e.cost.0);
    let about = hvr.program(id).map_or(0, |p| p.cells() ^ p.lots());
    let due = hvr
        .program(id)
        .map_or(0, |p| p.profile().interval(&hvr.config().monitor).0);
    u64::from(wish ^ to) ^ cost ^ about ^ due ^ hvr.counters().moves
}

#[inline(never)]
fn leave(hvr: &mut Kernel, id: ProgramId, sink: &mut Sink) -> u64 {
    for _ in 0..2 {
        if let Err(e) = hvr.exit(id) {
            let _ = write!(sink, "{e}");
        }
    }
    hvr.iter().count() as u64 ^ hvr.find(TaskId(3)).is_some() as u64
}

#[inline(never)]
fn divide(word: u64, sink: &mut Sink) -> u64 {
    let bytes = word.to_le_bytes();
    let curve = bytes.map(|b| u64::from(b) << 32);
    let mut shares = [0; 3];
    let divided = utility::divide(&[&curve, &curve, &curve], word as u32 & 15, &mut shares);
    if let Err(e) = divided {
        let _ = write!(sink, "{e}");
    }
    if let Err(e) = utility::step(&curve, word as u32, &mut shares) {
        let _ = write!(sink, "{e}");
    }
    let mut own = ColorSet::default();
    // SAFETY: one thread; nobody writes to it here.
    let map = unsafe { &*(&raw const COLORS) };
    let groups = utility::Groups::of(map);
    groups.colors(map, &shares, word as usize, &mut own);
    utility::cells(&shares, word as usize) ^ own.word(0) ^ u64::from(groups.nr())
}
