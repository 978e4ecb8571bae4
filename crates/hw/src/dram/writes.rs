//! The write queue of a channel.

use piebald_units::{LINE_SHIFT, PhysAddr};

use super::{channel::Chips, log::CommandLog, map::Target, spec::WriteQueueSpec};

/// Capacity of the arrays; the high watermark is at most this.
const MAX_QUEUED: usize = 64;

/// Posted writes, oldest first.
#[derive(Clone, Debug)]
pub(super) struct WriteQueue {
    lines: [u64; MAX_QUEUED],
    targets: [Target; MAX_QUEUED],
    len: usize,
    /// One bit per hash of a queued line: most reads need look no further.
    filter: u64,
    high: usize,
    low: usize,
    /// End of the last drain's bursts.
    drained_at: u64,
    pub(super) forwarded: u64,
    pub(super) merged: u64,
    pub(super) drains: u64,
}

fn filter_bit(line: u64) -> u64 {
    1 << (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58)
}

impl WriteQueue {
    pub(super) fn new(spec: WriteQueueSpec) -> Self {
        Self {
            lines: [0; MAX_QUEUED],
            targets: [Target {
                bank: 0,
                row_key: 0,
            }; MAX_QUEUED],
            len: 0,
            filter: 0,
            high: usize::from(spec.high),
            low: usize::from(spec.low),
            drained_at: 0,
            forwarded: 0,
            merged: 0,
            drains: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn holds(&self, line: u64) -> bool {
        self.filter & filter_bit(line) != 0 && self.lines[..self.len].contains(&line)
    }

    /// Is the line queued? Counts if it is.
    #[inline]
    pub(super) fn forwards(&mut self, addr: PhysAddr) -> bool {
        let found = self.holds(addr.0 >> LINE_SHIFT);
        self.forwarded += u64::from(found);
        found
    }

    /// Takes a write; returns when it is taken.
    ///
    /// The write that reaches the high watermark starts a drain. If the bursts
    /// of the drain before are still to come, there is no room yet: it is taken
    /// when they are over.
    pub(super) fn post<L: CommandLog>(
        &mut self,
        chips: &mut Chips<L>,
        addr: PhysAddr,
        target: Target,
        now: u64,
    ) -> u64 {
        let line = addr.0 >> LINE_SHIFT;
        if self.holds(line) {
            self.merged += 1;
            return now;
        }
        self.lines[self.len] = line;
        self.targets[self.len] = target;
        self.filter |= filter_bit(line);
        self.len += 1;
        if self.len < self.high {
            return now;
        }
        let start = now.max(self.drained_at);
        self.drain(chips, self.low, start);
        start
    }

    /// Sends writes from `now` on until `low` are left; returns the end of the
    /// last burst, or `now`.
    pub(super) fn drain<L: CommandLog>(
        &mut self,
        chips: &mut Chips<L>,
        low: usize,
        now: u64,
    ) -> u64 {
        if self.len <= low {
            return now;
        }
        self.drains += 1;
        let mut end = now;
        let mut left = u64::MAX >> (MAX_QUEUED - self.len);
        let mut to_send = self.len - low;
        while to_send > 0 {
            let oldest = self.targets[left.trailing_zeros() as usize];
            // Bits of the queued writes not looked at yet, oldest first.
            let mut rest = left;
            while rest != 0 && to_send > 0 {
                let at = rest.trailing_zeros();
                rest &= rest - 1;
                let target = self.targets[at as usize];
                if target.bank == oldest.bank && target.row_key == oldest.row_key {
                    end = end.max(chips.access(target, true, now).data_end);
                    left &= !(1 << at);
                    to_send -= 1;
                }
            }
        }
        self.keep(left);
        self.drained_at = self.drained_at.max(end);
        end
    }

    /// Closes the ranks of the queue: only the writes of the bitmap stay.
    fn keep(&mut self, mut left: u64) {
        self.len = 0;
        self.filter = 0;
        while left != 0 {
            let at = left.trailing_zeros() as usize;
            left &= left - 1;
            self.lines[self.len] = self.lines[at];
            self.targets[self.len] = self.targets[at];
            self.filter |= filter_bit(self.lines[at]);
            self.len += 1;
        }
    }
}
