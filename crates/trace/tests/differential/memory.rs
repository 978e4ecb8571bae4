//! Memory formats: the references that a writer of its own puts down.

use piebald_trace::foreign::{Fetches, ForeignThread, Format, Options};
use piebald_units::op::{MemRef, Next, OpSource, RefKind, SysOp};
use proptest::prelude::*;

/// An instruction with its data.
#[derive(Clone, Debug)]
struct Instr {
    pc: u64,
    size: u8,
    /// Whether it is written, where, and how many bytes.
    data: Vec<(bool, u64, u32)>,
    /// Instructions without data before it.
    idle: u32,
    spice: u64,
}

impl Instr {
    fn pick<T: Copy>(&self, shift: u32, list: &[T]) -> T {
        list[(self.spice >> shift) as usize % list.len()]
    }
}

/// Kind, address, size and gap.
type Ref = (RefKind, u64, u8, u32);

/// A trace, its references, and how many instructions and system calls it has.
#[derive(Debug, Default)]
struct Written {
    bytes: Vec<u8>,
    refs: Vec<Ref>,
    /// Instructions since the last reference.
    gap: u32,
    calls: Vec<u32>,
}

impl Written {
    fn line(&mut self, text: impl AsRef<str>) {
        self.bytes.extend(text.as_ref().as_bytes());
        self.bytes.push(b'\n');
    }

    /// A reference of any size, in parts of up to 64 bytes.
    fn refer(&mut self, kind: RefKind, addr: u64, size: u32) {
        let mut done = 0;
        while done < size {
            let part = (size - done).min(64);
            let gap = std::mem::take(&mut self.gap);
            let at = addr.wrapping_add(done.into());
            self.refs.push((kind, at, part as u8, gap));
            done += part;
        }
    }

    /// A reference whose size the format does not say: up to the line's end.
    fn refer_in_line(&mut self, kind: RefKind, addr: u64, most: u64) {
        self.refer(kind, addr, most.min(64 - addr % 64) as u32);
    }
}

const fn kind(writes: bool) -> RefKind {
    match writes {
        true => RefKind::Store,
        false => RefKind::Load,
    }
}

fn lackey(instrs: &[Instr], out: &mut Written) {
    out.line("==7== Lackey, an example Valgrind tool\n==7== Command: ./x\n");
    for instr in instrs {
        let blanks = instr.pick(0, &[" ", "  "]);
        for _ in 0..=instr.idle % 3 {
            out.line(format!("I{blanks}{:08x},{}", instr.pc, instr.size));
            out.gap += 1;
        }
        for &(writes, addr, size) in &instr.data {
            let size = size % 16384 + 1;
            let (letter, kind) = match (writes, instr.pick(8, &[true, false])) {
                (true, true) => ('M', RefKind::Update),
                (true, false) => ('S', RefKind::Store),
                (false, _) => ('L', RefKind::Load),
            };
            out.line(format!(" {letter} {addr:08x},{size}"));
            out.refer(kind, addr, size);
        }
    }
}

/// Stored and loaded places of a ChampSim record, with so many destinations.
fn champsim_record(instr: &Instr, stores: usize, out: &mut Written) {
    let of = |wanted: bool, most: usize| {
        let data = instr.data.iter().filter(|d| d.0 == wanted && d.1 != 0);
        let mut places: Vec<u64> = data.map(|d| d.1).take(most).collect();
        places.resize(most, 0);
        places
    };
    let (stored, loaded) = (of(true, stores), of(false, 4));
    out.bytes.extend(instr.pc.max(1).to_le_bytes());
    out.bytes
        .extend([instr.pick(0, &[0, 1]), instr.pick(1, &[0, 1])]);
    let registers = instr.spice.to_le_bytes();
    out.bytes.extend(&registers[..stores]);
    out.bytes.extend(&registers[4..]);
    if stores == 4 {
        out.bytes.extend([9; 6]);
    }
    for place in stored.iter().chain(&loaded) {
        out.bytes.extend(place.to_le_bytes());
    }
    if stores == 4 {
        out.bytes.extend([9; 8]);
    }
    out.gap += 1;
    for &addr in loaded.iter().filter(|a| **a != 0) {
        let kind = match stored.contains(&addr) {
            true => RefKind::Update,
            false => RefKind::Load,
        };
        out.refer_in_line(kind, addr, 8);
    }
    for &addr in stored.iter().filter(|a| **a != 0 && !loaded.contains(a)) {
        out.refer_in_line(RefKind::Store, addr, 8);
    }
}

fn champsim(instrs: &[Instr], out: &mut Written) {
    instrs.iter().for_each(|i| champsim_record(i, 2, out));
}

fn cloudsuite(instrs: &[Instr], out: &mut Written) {
    instrs.iter().for_each(|i| champsim_record(i, 4, out));
}

fn entry(kind: u16, size: u16, value: u64, out: &mut Written) {
    out.bytes.extend(kind.to_le_bytes());
    out.bytes.extend(size.to_le_bytes());
    out.bytes.extend(value.to_le_bytes());
}

fn drmemtrace(instrs: &[Instr], out: &mut Written) {
    for (kind, size, value) in [(25, 0, 6), (28, 12, 6), (22, 8, 70), (24, 8, 7)] {
        entry(kind, size, value, out);
    }
    for instr in instrs {
        let of_instr = instr.pick(0, &[10, 11, 12, 13, 14, 15, 16, 31, 48, 49]);
        entry(47, 4, instr.spice, out);
        entry(of_instr, u16::from(instr.size % 15) + 1, instr.pc, out);
        out.gap += 1;
        if instr.idle % 3 > 0 {
            let count = instr.idle as u16 % 8 + 1;
            entry(17, count, 0x0302_0104_0f01_0203, out);
            out.gap += u32::from(count);
        }
        // A load that a store of the same bytes follows is an update.
        let mut data = instr
            .data
            .iter()
            .map(|(w, a, s)| (*w, *a, s % 1000 + 1))
            .peekable();
        while let Some((writes, addr, size)) = data.next() {
            entry(writes.into(), size as u16, addr, out);
            let updates = !writes && data.peek() == Some(&(true, addr, size));
            if updates {
                data.next();
                entry(1, size as u16, addr, out);
            }
            let kind = if updates {
                RefKind::Update
            } else {
                kind(writes)
            };
            out.refer(kind, addr, size);
        }
        match instr.pick(16, &[0, 1, 2, 3, 4]) {
            0 => entry(28, 2, instr.spice, out),
            1 => entry(instr.pick(24, &[2, 9, 32, 46]), 8, instr.spice, out),
            2 => entry(18, 64, instr.spice, out),
            3 => {
                let number = instr.spice as u32 >> 20;
                entry(28, 25, number.into(), out);
                out.calls.push(number);
                // What was retired so far belongs to the call.
                out.gap = 0;
            }
            _ => {}
        }
    }
}

fn ramulator_cpu(instrs: &[Instr], out: &mut Written) {
    for instr in instrs {
        for (n, &(writes, addr, back)) in instr.data.iter().enumerate() {
            let bubbles = if n == 0 { instr.idle } else { 0 };
            let place = match instr.pick(n as u32, &[true, false]) {
                true => format!("{addr:#x}"),
                false => addr.to_string(),
            };
            let back = u64::from(back) * 64;
            out.line(match writes {
                true => format!("{bubbles} {place} {back}"),
                false => format!("{bubbles} {place}"),
            });
            out.gap = bubbles + 1;
            out.refer_in_line(RefKind::Load, addr, 64);
            if writes {
                out.refer_in_line(RefKind::Store, back, 64);
            }
        }
    }
}

/// A line for each reference, which is an instruction.
fn each(instrs: &[Instr], out: &mut Written, line: impl Fn(bool, u64, &Instr) -> String) {
    for instr in instrs {
        for &(writes, addr, _) in &instr.data {
            out.line(line(writes, addr, instr));
            out.gap = 1;
            out.refer_in_line(kind(writes), addr, 64);
        }
    }
}

fn ramulator_dram(instrs: &[Instr], out: &mut Written) {
    each(instrs, out, |writes, addr, _| {
        format!("{addr:#x} {}", if writes { 'W' } else { 'R' })
    });
}

fn load_store_2(instrs: &[Instr], out: &mut Written) {
    each(instrs, out, |writes, addr, instr| {
        let word = if writes { "ST" } else { "LD" };
        match addr <= i64::MAX as u64 && instr.pick(0, &[true, false]) {
            true => format!("{word} {addr}"),
            false => format!("{word} {addr:#x}"),
        }
    });
}

/// Coordinates of 3 to 7 levels: the lowest are a column of 11 bits in units of 8 bytes and a row of
/// 18; the others share 15 bits, of which the first takes what is left.
fn read_write_2(instrs: &[Instr], out: &mut Written) {
    for instr in instrs {
        let levels = instr.pick(0, &[3, 4, 5, 6, 7]);
        let share = 15 / (levels - 2);
        for &(writes, addr, _) in &instr.data {
            let addr = addr % (1 << 47) / 8 * 8;
            let mut numbers = vec![addr >> 3 & 0x7ff, addr >> 14 & 0x3_ffff];
            let mut rest = addr >> 32;
            for _ in 3..levels {
                numbers.push(rest & ((1 << share) - 1));
                rest >>= share;
            }
            numbers.push(rest);
            numbers.reverse();
            let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
            let letter = if writes { 'W' } else { 'R' };
            out.line(format!("{letter} {}", numbers.join(",")));
            out.gap = 1;
            out.refer_in_line(kind(writes), addr, 64);
        }
    }
}

fn load_store(instrs: &[Instr], out: &mut Written) {
    for instr in instrs {
        for &(writes, addr, size) in &instr.data {
            let letter = if writes { 's' } else { 'l' };
            let more = instr.pick(0, &["", " 2 40"]);
            out.line(format!("{letter} {addr:#x} {size}{more}"));
            out.gap = size + 1;
            out.refer_in_line(kind(writes), addr, 4);
        }
    }
}

fn din(instrs: &[Instr], out: &mut Written) {
    for instr in instrs {
        out.line(format!("2 {:x}", instr.pc));
        out.gap += 1;
        for &(writes, addr, _) in &instr.data {
            let more = instr.pick(0, &["", " a comment"]);
            out.line(format!("{} {addr:x}{more}", u8::from(writes)));
            out.refer_in_line(kind(writes), addr, 4);
        }
        if let label @ 3..=4 = instr.pick(8, &[0, 3, 4]) {
            out.line(format!("{label} 0"));
        }
    }
}

/// An instruction without data has no line. Two of one address would look like one.
fn pinatrace(instrs: &[Instr], out: &mut Written) {
    for (n, instr) in (1..).zip(instrs) {
        let pc = instr.pc >> 8 << 8 | n;
        let read = instr.data.iter().find(|d| !d.0).map(|d| d.1);
        let written = instr.data.iter().find(|d| d.0).map(|d| d.1);
        if let Some(addr) = read {
            out.line(format!("{pc:#x}: R {addr:#x}"));
        }
        if let Some(addr) = written {
            out.line(format!("{pc:#x}: W {addr:#x}"));
        }
        out.gap = 1;
        match (read, written) {
            (Some(a), Some(b)) if a == b => out.refer_in_line(RefKind::Update, a, 8),
            _ => {
                if let Some(addr) = read {
                    out.refer_in_line(RefKind::Load, addr, 8);
                }
                if let Some(addr) = written {
                    out.refer_in_line(RefKind::Store, addr, 8);
                }
            }
        }
    }
    out.line("#eof");
}

fn instr() -> impl Strategy<Value = Instr> {
    let addr = prop_oneof![0x1000..0x1100_u64, any::<u64>(), 0..1_u64 << 47];
    let size = prop_oneof![0..70_u32, 0..20_000_u32];
    let data = prop::collection::vec((any::<bool>(), addr.clone(), size), 0..7);
    let idle = prop_oneof![0..4_u32, 0..1_000_000_u32];
    let rest = (addr, 1..=15_u8, data, idle, any::<u64>());
    rest.prop_map(|(pc, size, mut data, idle, spice)| {
        // Some instructions write what they have just read.
        if spice % 3 == 0
            && let Some(&(_, addr, bytes)) = data.first()
        {
            data[0].0 = false;
            data.insert(1, (true, addr, bytes));
        }
        Instr {
            pc,
            size,
            data,
            idle,
            spice,
        }
    })
}

/// References without dependences and sites, and the numbers of system calls.
fn read(format: Format, bytes: &[u8]) -> (Vec<Ref>, Vec<u32>) {
    let options = Options {
        fetches: Fetches::None,
        prefetches: false,
    };
    let thread = ForeignThread::from_bytes("written", bytes, format, options);
    let mut thread = thread.expect("opens");
    let (mut refs, mut calls) = (Vec::new(), Vec::new());
    let mut buffer = [MemRef::default(); 64];
    loop {
        let filled = thread.fill(&mut buffer);
        let read = buffer[..filled.refs].iter();
        refs.extend(read.map(|r| (r.kind, r.addr.0, r.size, r.gap)));
        match filled.next {
            Next::More => {}
            Next::Sys(SysOp::Other { number }) => calls.push(number),
            Next::End => return (refs, calls),
            other => panic!("{other:?}: {:?}", thread.failure()),
        }
    }
}

fn compare(
    format: Format,
    writer: fn(&[Instr], &mut Written),
    instrs: &[Instr],
) -> Result<(), TestCaseError> {
    let mut written = Written::default();
    writer(instrs, &mut written);
    let (refs, calls) = read(format, &written.bytes);
    for (n, (read, wrote)) in refs.iter().zip(&written.refs).enumerate() {
        prop_assert_eq!(read, wrote, "{} reference {} of {:?}", format, n, instrs);
    }
    prop_assert_eq!(refs.len(), written.refs.len(), "{} of {:?}", format, instrs);
    prop_assert_eq!(calls, written.calls);
    Ok(())
}

macro_rules! formats {
    ($($name:ident: $format:ident by $writer:ident,)*) => {
        proptest! {
            $(
                #[test]
                fn $name(instrs in prop::collection::vec(instr(), 1..30)) {
                    compare(Format::$format, $writer, &instrs)?;
                }
            )*
        }

        #[test]
        fn every_format_is_compared() {
            let compared = [$(Format::$format),*];
            for format in Format::ALL {
                assert!(compared.contains(&format), "{format}");
            }
        }
    };
}

formats! {
    lackey_reads_back: Lackey by lackey,
    champsim_reads_back: ChampSim by champsim,
    cloudsuite_reads_back: CloudSuite by cloudsuite,
    drmemtrace_reads_back: DrMemtrace by drmemtrace,
    ramulator_cpu_reads_back: RamulatorCpu by ramulator_cpu,
    ramulator_dram_reads_back: RamulatorDram by ramulator_dram,
    load_store_of_ramulator_2_reads_back: Ramulator2LoadStore by load_store_2,
    read_write_of_ramulator_2_reads_back: Ramulator2ReadWrite by read_write_2,
    load_store_reads_back: LoadStore by load_store,
    din_reads_back: Din by din,
    pinatrace_reads_back: Pinatrace by pinatrace,
}
