//! Entry points for fuzzing: any bytes go in, packed or not, and the reader's promises are checked.
//!
//! The promises: reading ends; it gives the same references and the same end whatever the buffer's
//! size; sizes are 1 to 64 bytes; a break has a reason that names the input; the end is final.
//!
//! # Panics
//! Each function panics if a promise is broken, which is what a fuzzer looks for. They are not
//! meant for anything else.

use piebald_units::op::{MemRef, Next, OpSource};

use super::fetch::Fetches;
use super::thread::ForeignThread;
use super::{Format, Options};

/// Name that stands for the file in messages.
const NAME: &str = "fuzz";
/// Unpacked bytes after which a run stops: a few packed bytes may unpack to gigabytes.
const MAX_UNPACKED: u64 = 1 << 22;

/// Reads as lackey text.
pub fn lackey(bytes: &[u8]) {
    check(Format::Lackey, bytes);
}

/// Reads as ChampSim records of both forms.
pub fn champsim(bytes: &[u8]) {
    check(Format::ChampSim, bytes);
    check(Format::CloudSuite, bytes);
}

/// Reads as drmemtrace entries, plain or in a zip.
pub fn drmemtrace(bytes: &[u8]) {
    check(Format::DrMemtrace, bytes);
}

/// Reads as all forms of Ramulator and Ramulator 2.
pub fn ramulator(bytes: &[u8]) {
    check(Format::RamulatorCpu, bytes);
    check(Format::RamulatorDram, bytes);
    check(Format::Ramulator2LoadStore, bytes);
    check(Format::Ramulator2ReadWrite, bytes);
}

/// Reads as Dinero's `din`.
pub fn din(bytes: &[u8]) {
    check(Format::Din, bytes);
}

/// Reads as pinatrace's output.
pub fn pinatrace(bytes: &[u8]) {
    check(Format::Pinatrace, bytes);
}

/// Reads as `l|s 0xADDRESS instructions`.
pub fn loadstore(bytes: &[u8]) {
    check(Format::LoadStore, bytes);
}

/// Hash and count of all that a run gave.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    hash: u64,
    refs: u64,
    instructions: u64,
    next: Next,
    failure: Option<String>,
}

fn check(format: Format, bytes: &[u8]) {
    let options = Options {
        fetches: Fetches::All,
        prefetches: true,
    };
    let open = || ForeignThread::from_bytes(NAME, bytes, format, options).ok();
    let (Some(mut large), Some(mut small)) = (open(), open()) else {
        return;
    };
    let expected = run(&mut large, 512);
    let found = run(&mut small, 3);
    if large.offset() < MAX_UNPACKED {
        assert_eq!(
            expected, found,
            "{format}: the buffer's size changes the references"
        );
    }
}

fn run(source: &mut ForeignThread, size: usize) -> Outcome {
    let mut buffer = vec![MemRef::default(); size];
    let mut outcome = Outcome {
        hash: 0,
        refs: 0,
        instructions: 0,
        next: Next::More,
        failure: None,
    };
    loop {
        let filled = source.fill(&mut buffer);
        for r in &buffer[..filled.refs] {
            assert!((1..=64).contains(&r.size), "size {}", r.size);
            outcome.instructions += u64::from(r.gap);
            outcome.refs += 1;
            outcome.hash = mix(outcome.hash, r);
        }
        outcome.instructions += u64::from(filled.tail);
        match filled.next {
            Next::More => assert_eq!(filled.refs, size, "More with a buffer not full"),
            Next::Sys(_) | Next::Mark(_) => {}
            last => {
                assert_eq!(source.fill(&mut buffer).next, last, "the end is not final");
                outcome.next = last;
                break;
            }
        }
        if source.offset() >= MAX_UNPACKED {
            break;
        }
    }
    outcome.failure = source.failure().map(str::to_owned);
    assert_eq!(outcome.failure.is_some(), outcome.next == Next::Broken);
    if let Some(why) = &outcome.failure {
        assert!(why.starts_with(NAME) && why.contains("byte "), "{why}");
    }
    outcome
}

fn mix(hash: u64, r: &MemRef) -> u64 {
    let rest = u64::from(r.site) ^ u64::from(r.gap) << 20 ^ u64::from(r.dep) << 40;
    let rest = rest ^ u64::from(r.size) << 50 ^ (r.kind as u64) << 60;
    (hash.rotate_left(5) ^ r.addr.0 ^ rest.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
