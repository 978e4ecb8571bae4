//! How fast recordings are written and replayed, and how small they are.
//!
//! `cargo run --release -p piebald-trace --example recording_speed [MILLION_REFS [PROGRAM]]`
//!
//! `cargo run --release -p piebald-trace --example recording_speed FILE` reads every
//! thread of a recorded program instead.
//!
//! Synthetic streams stand for kinds of program: a strided loop, a random walk
//! over 64 MiB, a pointer chase with a field access, calls with stack frames, and
//! a branchy mixture of many blocks.

use std::{fs, path::Path};

use piebald_trace::recording::{model::*, *};
use piebald_units::op::{MemRef, Next, OpSource};

/// References in a chunk of the recorder.
const CHUNK: usize = 1 << 20;

fn access(insn: u16, kind: AccessKind, regs: u16, loads: u64) -> AccessDef {
    AccessDef {
        insn,
        offset: insn * 4,
        size: 8,
        kind,
        address: Sources { regs, loads },
    }
}

fn block(addr: u64, instrs: u16, accesses: Vec<AccessDef>, outs: Vec<RegOut>) -> BlockDef {
    BlockDef {
        addr,
        bytes: u32::from(instrs) * 4,
        instrs,
        accesses,
        outs,
    }
}

fn random(state: &mut u64) -> u64 {
    *state = state
        .wrapping_mul(6364136223846793005)
        .wrapping_add(1442695040888963407);
    *state >> 33
}

/// Appends what a program does in a step.
type Step = dyn FnMut(u64, &mut Vec<Raw>);

/// Seconds that this thread has spent on a processor: unlike the time of day, this
/// does not count what other work takes.
fn cpu_seconds() -> f64 {
    let stat = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = stat.split(' ').next().and_then(|n| n.parse::<u64>().ok());
    first.unwrap_or(0) as f64 / 1e9
}

/// A program: its blocks, and what it does in its `i`-th step.
struct Program {
    name: &'static str,
    blocks: Vec<BlockDef>,
    step: Box<Step>,
}

fn programs() -> Vec<Program> {
    use AccessKind::{Load, Store, Update};
    let out = |reg, loads| RegOut {
        reg,
        value: Sources { regs: 0, loads },
    };
    let strided = vec![block(
        0x1000,
        8,
        vec![
            access(0, Load, 1, 0),
            access(2, Load, 2, 0),
            access(5, Store, 4, 0),
        ],
        vec![out(0, 1)],
    )];
    let gather = vec![block(
        0x2000,
        6,
        vec![access(0, Load, 1, 0), access(3, Update, 0, 1)],
        vec![out(0, 1)],
    )];
    let chase = vec![block(
        0x3000,
        5,
        vec![
            access(0, Load, 1, 0),
            access(1, Load, 1, 0),
            access(2, Store, 1, 0),
        ],
        vec![out(0, 1)],
    )];
    let frame = |addr| {
        let push = |i| access(i, Store, 1 << 4, 0);
        block(
            addr,
            7,
            vec![
                push(0),
                push(1),
                access(3, Load, 1 << 7, 0),
                access(5, Load, 1 << 4, 0),
            ],
            vec![out(3, 4)],
        )
    };
    let calls = (0..16).map(|i| frame(0x4000 + 0x40 * i)).collect();
    let branchy = (0..4096u64)
        .map(|i| {
            block(
                0x10_0000 + 0x20 * i,
                5,
                vec![
                    access(1, Load, 1 << (i % 16), 0),
                    access(3, Load, 1 << 4, 0),
                ],
                vec![out((i % 16) as u8, 1)],
            )
        })
        .collect();
    let (mut a, mut b, mut c) = (1u64, 2u64, 3u64);
    let mut id = 0u64;
    vec![
        Program {
            name: "strided",
            blocks: strided,
            step: Box::new(|i, raw| {
                let (row, col) = (i / 1000, i % 1000);
                raw.push(Raw::block(0));
                raw.push(Raw::access(0, 0x10_0000_0000 + row * 65536 + col * 8));
                raw.push(Raw::access(1, 0x20_0000_0000 + i * 8));
                raw.push(Raw::access(2, 0x30_0000_0000 + col * 64));
            }),
        },
        Program {
            name: "random",
            blocks: gather,
            step: Box::new(move |i, raw| {
                raw.push(Raw::block(0));
                raw.push(Raw::access(0, 0x10_0000_0000 + i * 8));
                raw.push(Raw::access(
                    1,
                    0x20_0000_0000 + random(&mut a) % (8 << 20) * 8,
                ));
            }),
        },
        Program {
            name: "chase",
            blocks: chase,
            step: Box::new(move |_, raw| {
                let node = 0x10_0000_0000 + random(&mut b) % (1 << 20) * 64;
                raw.push(Raw::block(0));
                raw.push(Raw::access(0, node));
                raw.push(Raw::access(1, node + 8));
                raw.push(Raw::access(2, node + 24));
            }),
        },
        Program {
            name: "calls",
            blocks: calls,
            step: Box::new(|i, raw| {
                let depth = (i % 30).min(30 - i % 30);
                let stack = 0x7fff_0000_0000 - depth * 96;
                raw.push(Raw::block((depth % 16) as u32));
                raw.push(Raw::access(0, stack));
                raw.push(Raw::access(1, stack - 8));
                raw.push(Raw::access(2, 0x10_0000_0000 + i * 16));
                raw.push(Raw::access(3, stack + 24));
            }),
        },
        Program {
            name: "branchy",
            blocks: branchy,
            step: Box::new(move |i, raw| {
                id = match random(&mut c) % 8 {
                    0 => random(&mut c) % 4096,
                    1 => (id * 7 + 3) % 4096,
                    _ => (id + 1) % 4096,
                };
                raw.push(Raw::block(id as u32));
                let heap = 0x10_0000_0000 + id * 4096 + random(&mut c) % 16 * 8;
                raw.push(Raw::access(0, heap));
                raw.push(Raw::access(
                    1,
                    0x7fff_0000_0000 - (i / 64 % 8) * 48 + id % 5 * 8,
                ));
            }),
        },
    ]
}

fn main() {
    let first = std::env::args().nth(1);
    if let Some(path) = first.as_deref().filter(|f| f.parse::<u64>().is_err()) {
        return recorded(path.as_ref());
    }
    let millions: u64 = first.and_then(|a| a.parse().ok()).unwrap_or(50);
    println!("program   encode ns/ref  replay ns/ref  with deps  with fetches  bytes/ref");
    let only = std::env::args().nth(2);
    for program in programs() {
        if only.as_deref().is_some_and(|o| o != program.name) {
            continue;
        }
        measure(program, millions * 1_000_000);
    }
}

/// Replays a recorded program, and encodes its chunks again.
fn recorded(path: &Path) {
    let recording = Recording::open(path).expect("a recording");
    println!("{:?}", recording.header().counts);
    let (mut entries, mut seconds, mut refs) = (0, 0.0, 0u64);
    let mut out = Vec::new();
    for (i, chunk) in recording.index().chunks.iter().enumerate().take(100) {
        let dictionary = recording.block_defs(chunk.process).expect("a dictionary");
        let (raw, events) = recording.raw_chunk(i).expect("a chunk");
        let mut encoder = ChunkEncoder::new(chunk.process, 0, 1, 1).expect("memory");
        // The first pass grows the encoder's buffers.
        for measured in [false, true] {
            out.clear();
            let begun = cpu_seconds();
            let done = encoder.encode(&dictionary, &raw, &events, &mut out);
            let spent = cpu_seconds() - begun;
            if measured {
                seconds += spent;
                refs += u64::from(done.expect("a sound stream").refs);
                entries += out.len();
            }
        }
    }
    println!(
        "encode {:.1} ns/ref, {:.3} bytes/ref (first {refs} references)",
        seconds * 1e9 / refs as f64,
        entries as f64 / refs as f64
    );
    let begun = cpu_seconds();
    recording.verify().expect("an intact recording");
    println!(
        "reading, checksums and decompression alone {:.2} ns/ref",
        (cpu_seconds() - begun) * 1e9 / recording.header().counts.references as f64
    );
    for (dependences, fetches) in [(false, false), (true, false), (true, true)] {
        let (mut count, begun) = (0, cpu_seconds());
        for thread in recording.threads().expect("threads") {
            count += replay(&recording, thread.thread, dependences, fetches);
        }
        let ns = (cpu_seconds() - begun) * 1e9 / count as f64;
        println!(
            "replay {ns:.1} ns/ref, dependences {dependences}, fetches {fetches}, {count} references"
        );
    }
}

/// Reads a thread to its end; returns the number of references.
fn replay(recording: &Recording, thread: u32, dependences: bool, fetches: bool) -> u64 {
    let options = ReplayOptions {
        dependences,
        fetches,
        ..ReplayOptions::default()
    };
    let mut source = recording.source(thread, options).expect("a thread");
    let mut out = vec![MemRef::default(); 1024];
    let (mut count, mut sum) = (0u64, 0u64);
    loop {
        let filled = source.fill(&mut out);
        count += filled.refs as u64;
        sum = sum.wrapping_add(out[0].addr.0);
        match filled.next {
            Next::End => break,
            Next::Broken => panic!("{:?}", source.failure()),
            _ => {}
        }
    }
    std::hint::black_box(sum);
    count
}

fn measure(mut program: Program, target: u64) {
    let mut writer = MemoryWriter::new(FileHeader::new(vec![program.name.into()]));
    let empty = writer.records().len();
    encode_dictionary(0, None, 0, &program.blocks, writer.records()).expect("a sound dictionary");
    let mut encoder = ChunkEncoder::new(0, 0, 1, 1).expect("memory");
    let mut raw = Vec::with_capacity(2 * CHUNK);
    let (mut refs, mut seconds, mut step) = (0u64, 0.0, 0);
    while refs < target {
        raw.clear();
        while raw.len() < CHUNK {
            (program.step)(step, &mut raw);
            step += 1;
        }
        let begun = cpu_seconds();
        let summary = encoder
            .encode(&program.blocks, &raw, &[], writer.records())
            .expect("a sound stream");
        seconds += cpu_seconds() - begun;
        refs += u64::from(summary.refs);
    }
    let bytes = writer.records().len() - empty;
    let recording = writer.finish().expect("a sound recording");
    let recording = Recording::from_bytes(recording, program.name).expect("a sound recording");
    let timed = |dependences, fetches| {
        let begun = cpu_seconds();
        let count = replay(&recording, 0, dependences, fetches);
        (cpu_seconds() - begun) * 1e9 / count as f64
    };
    println!(
        "{:9} {:13.1} {:14.1} {:10.1} {:13.1} {:10.3}",
        program.name,
        seconds * 1e9 / refs as f64,
        timed(false, false),
        timed(true, false),
        timed(true, true),
        bytes as f64 / refs as f64
    );
}
