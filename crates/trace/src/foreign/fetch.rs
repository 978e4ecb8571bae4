//! Which instruction fetches become references.

use piebald_units::op::RefKind;
use piebald_units::{LINE_SHIFT, VirtAddr};

use super::thread::{Sink, site_of};

/// Which instruction fetches of a trace become [`RefKind::Fetch`] references.
///
/// A recording of Piebald holds one fetch per basic block and line. [`Lines`](Self::Lines) is the
/// nearest that can be had without looking ahead: a fetch where control enters a line or jumps
/// within it, with the size of the first instruction there instead of the block's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fetches {
    /// None. Instructions still count in gaps.
    None,
    /// Where control enters a line or jumps.
    #[default]
    Lines,
    /// Each instruction, one per line that it lies on.
    All,
}

/// Decides instruction by instruction.
#[derive(Debug)]
pub(crate) struct FetchFilter {
    mode: Fetches,
    line: Option<u64>,
}

impl FetchFilter {
    pub fn new(mode: Fetches) -> Self {
        Self { mode, line: None }
    }

    /// Emits the fetches of one instruction; `jumped` if it does not follow the one before.
    pub fn fetch(&mut self, pc: u64, size: u32, jumped: bool, sink: &mut Sink<'_>) {
        if self.mode == Fetches::None {
            return;
        }
        let (mut at, mut left, mut entered) = (pc, size, jumped);
        while left > 0 {
            let line = at >> LINE_SHIFT;
            let part = left.min(64 - (at & 63) as u32);
            if self.mode == Fetches::All || entered || self.line != Some(line) {
                sink.push(VirtAddr(at), part, RefKind::Fetch, site_of(pc), 0);
            }
            self.line = Some(line);
            entered = false;
            at = at.wrapping_add(u64::from(part));
            left -= part;
        }
    }
}
