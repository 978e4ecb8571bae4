//! Drives MFC through its public calls, as a kernel's threads would.

use core::fmt::Write;

use piebald_policy::{
    contract::reads::{Among, ObjectId, ReadOutcome, ReadPlacement, ReadRequest, Reader, Stay},
    mfc::{
        Cell, Config, CoreState, Domain, DomainId, DomainState, Entry, FileRecord, Level, Mfc,
        Second, SetState, SharedState, Sizes, Slices, Switches, Topology, Why,
    },
};
use piebald_units::{Bytes, CoreId, CoreSet, FileId, Picos};

use super::Sink;

type Lent<T> = &'static mut [T];
type Memory = Slices<
    Lent<DomainState>,
    Lent<SharedState>,
    Lent<CoreState>,
    Lent<FileRecord>,
    Lent<SetState>,
    Lent<Cell>,
    Lent<Entry>,
    Lent<u8>,
>;

const FILES: usize = 64;

/// What a kernel keeps in static memory, since no stack holds it. Zeros are as good as
/// any: `Mfc::new` sets all of it up.
struct Static {
    domains: [DomainState; 2],
    shared: [SharedState; 1],
    cores: [CoreState; 4],
    files: [FileRecord; FILES],
    sets: [SetState; FILES / 8],
    cells: [Cell; FILES * 2],
    entries: [Entry; FILES * 2],
    hops: [u8; 4],
}

// SAFETY: all of it is numbers.
static mut LENT: Static = unsafe { core::mem::zeroed() };
static mut MFC: Option<Mfc<Memory>> = None;

#[inline(never)]
pub fn reads(word: u64) -> u64 {
    let mut sink = Sink(0);
    make(word, &mut sink);
    // SAFETY: one thread; the reference ends with this function.
    let Some(mfc) = (unsafe { (&*(&raw const MFC)).as_ref() }) else {
        return sink.0;
    };
    host_tells(mfc, word);
    threads_read(mfc, word);
    if let Err(e) = mfc.validate_alone() {
        let _ = write!(sink, "{e}");
    }
    questions(mfc, word, &mut sink) ^ sink.0
}

#[inline(never)]
fn make(word: u64, sink: &mut Sink) {
    let level = Level::of(Bytes(word));
    let domain = |at: u8| Domain {
        cores: CoreSet::from_bits(word >> (8 * at)),
        node: at,
        own: [level, Level::default()],
        shared: Some(0),
    };
    let domains = [domain(0), domain(1)];
    let topology = Topology {
        cores: CoreSet::first(word as u32),
        domains: &domains,
        shared: &[level],
        nodes: 2,
        hops: &[0, 1, 1, 0],
    };
    let config = match word & 1 {
        0 => Config::PAPER,
        _ => Config::FIGURE_2,
    };
    sink.0 ^= sizes(&topology, &config, word as u32);
    match Mfc::new(lent(), &topology, config) {
        // SAFETY: one thread, and this runs once.
        Ok(mfc) => unsafe { MFC = Some(mfc) },
        Err(e) => {
            let _ = write!(sink, "{e}");
        }
    }
}

#[inline(never)]
fn sizes(topology: &Topology<'_>, config: &Config, files: u32) -> u64 {
    let sizes = Sizes::of(topology, config, files);
    sizes.map_or(0, |s| (s.file_bytes() ^ s.machine_bytes()) as u64)
}

#[inline(never)]
fn lent() -> Memory {
    // SAFETY: one thread, and this runs once.
    let lent = unsafe { &mut *(&raw mut LENT) };
    Slices {
        domains: &mut lent.domains,
        shared: &mut lent.shared,
        cores: &mut lent.cores,
        files: &mut lent.files,
        sets: &mut lent.sets,
        cells: &mut lent.cells,
        entries: &mut lent.entries,
        hops: &mut lent.hops,
    }
}

fn request(word: u64) -> ReadRequest {
    ReadRequest {
        reader: Reader {
            core: CoreId(word as u16 & 3),
            allowed: CoreSet::from_bits(word),
        },
        file: FileId(word >> 8),
        size: Bytes(word >> 3),
        offset: word >> 5,
        len: Bytes(word >> 7),
        among: Among::First,
    }
}

#[inline(never)]
fn threads_read(mfc: &Mfc<Memory>, word: u64) {
    for n in 0..word & 1023 {
        let request = request(word.rotate_left(n as u32));
        let read = mfc.before(&request, Picos(n));
        let ran_on = CoreId(n as u16 & 3);
        mfc.after(
            &ReadOutcome {
                request,
                read,
                ran_on,
            },
            Picos(word),
        );
    }
    mfc.place(ObjectId(word), Bytes(word), Reader::on(CoreId(0)));
    mfc.advise(&request(word));
}

#[inline(never)]
fn host_tells(mfc: &Mfc<Memory>, word: u64) {
    let core = CoreId(word as u16);
    mfc.set_runnable(core, word as u32);
    mfc.quantum(core, &[word as u32; 3]);
    mfc.set_online(core, word & 2 == 0);
    mfc.tick(core, Picos(word));
    mfc.forget(FileId(word), Bytes(word));
    mfc.resize(FileId(word), Bytes(word), Bytes(word >> 9));
    mfc.forget_object(ObjectId(word));
    mfc.set_switches(Switches {
        on: word & 4 == 0,
        second: Second::Ignore,
        ..mfc.switches()
    });
}

#[inline(never)]
fn questions(mfc: &Mfc<Memory>, word: u64, sink: &mut Sink) -> u64 {
    let verdict = mfc.decide(&request(word));
    let _ = write!(sink, "{}", verdict.why);
    let counters = mfc.counters();
    let (file, size) = (FileId(word), Bytes(word));
    let domain = DomainId(word as u8);
    let stay = Stay.before(&request(word), Picos(0));
    counters.reads()
        ^ counters.verdicts(Why::Held)
        ^ mfc.available(domain).0
        ^ mfc.holders(file, size, word)
        ^ u64::from(mfc.uses(file, size, word, domain))
        ^ u64::from(stay.core.0 ^ verdict.read.core.0)
        ^ u64::from(mfc.config().busy)
        ^ mfc
            .domain_of(CoreId(word as u16))
            .map_or(0, |d| u64::from(d.0))
}
