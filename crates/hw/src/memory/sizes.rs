//! Why a machine cannot have so much memory, in words, and how much it could have.

use piebald_units::Bytes;

use super::{MAX_LINES, part};
use crate::{
    dram::{can_hold, spec::Interleave},
    error::SpecError,
    spec::MemorySpec,
};

/// What to say instead of `cause`, which refused the chips behind one of the controllers
/// that are enabled: if other sizes are possible, the size is what is wrong. Of them a smaller one is offered from
/// `least` on.
pub(super) fn in_words(
    memory: &MemorySpec,
    enabled: usize,
    least: Bytes,
    cause: SpecError,
) -> SpecError {
    let size = memory.size.0;
    if can_hold(&memory.dram, part(size, enabled)) {
        return cause;
    }
    let possible = possible(memory, enabled);
    let channels = channels_with_parts(memory);
    let below = possible.iter().rfind(|bytes| **bytes < size);
    let above = possible.iter().find(|bytes| **bytes > size);
    let (why, nearest) = match (below, above) {
        (None, None) => return cause,
        _ if possible.len() == 1 => {
            let why = "its address map names the bits of one size";
            (why.into(), Bytes(possible[0]).to_string())
        }
        (Some(below), Some(above)) => {
            let smaller = Some(Bytes(*below)).filter(|below| *below >= least);
            let smaller = smaller.map_or(String::new(), |below| format!("{below} or "));
            let nearest = format!("{smaller}{}", Bytes(*above));
            (parts_in_words(enabled, channels), nearest)
        }
        (Some(most), None) => ("too much for its chips".into(), Bytes(*most).to_string()),
        (None, Some(smallest)) => {
            let why =
                "too little: each bank has a row at least, and the address map's bits must exist";
            (why.into(), Bytes(*smallest).to_string())
        }
    };
    let allowed = format!("not a size that this machine can have ({why}); allowed: {nearest}");
    SpecError::new("memory.size", memory.size, allowed)
}

/// The size next to what `memory` asks for that its machine can have, of at least `least`, all controllers
/// being enabled; `None` if there is none.
pub fn nearest_size(memory: &MemorySpec, least: Bytes) -> Option<Bytes> {
    let all = possible(memory, usize::from(memory.controllers.max(1)));
    let near = all
        .into_iter()
        .filter(|bytes| *bytes >= least.0)
        .min_by_key(|bytes| bytes.abs_diff(memory.size.0));
    near.map(Bytes)
}

/// Channels that hold equal parts, if it is they that take turns.
fn channels_with_parts(memory: &MemorySpec) -> u64 {
    match memory.dram.interleave {
        Some(Interleave::Modulo(_)) => u64::from(memory.dram.channels),
        _ => 1,
    }
}

/// All sizes that the machine can have, rising.
fn possible(memory: &MemorySpec, enabled: usize) -> Vec<u64> {
    let equal_parts = enabled as u64 * channels_with_parts(memory);
    (0..u64::BITS)
        .filter_map(|n| equal_parts.checked_mul(1 << n))
        .filter(|bytes| bytes.is_multiple_of(4096 * u64::from(memory.controllers)))
        .filter(|bytes| bytes >> 6 < MAX_LINES)
        .filter(|bytes| can_hold(&memory.dram, part(*bytes, enabled)))
        .collect()
}

/// What shares the memory, and what each part must be.
fn parts_in_words(controllers: usize, channels: u64) -> String {
    match (controllers, channels) {
        (1, 1) => "it must be a power of two".into(),
        (1, n) => format!("its {n} channels hold equal parts, and each must be a power of two"),
        (m, 1) => format!("its {m} controllers hold equal parts, and each must be a power of two"),
        (m, n) => format!(
            "its {m} controllers with {n} channels each hold equal parts, and each channel's must \
             be a power of two"
        ),
    }
}
