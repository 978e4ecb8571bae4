//! DRAM: channels, ranks, banks and rows behind one memory controller.
//!
//! An access names a line; the answer says when its last word has crossed the
//! data bus and what it found in its bank. Each access is turned into the
//! commands that the chips would see (precharge, activate, column read or
//! write), booked at the first times that every constraint allows: `tRCD`,
//! `tRP`, `tRAS`, `tRC`, `tRTP`, `tWR` inside a bank, `tRRD`, `tFAW`, `tWTR`,
//! `tRFC` and `tREFI` inside a rank, `tCCD`, bursts and turnarounds on the
//! channel's data bus. [`Dram::with_log`] hands every command to a log.
//!
//! # Time
//!
//! Requests come from cores whose clocks differ, so `now` may step back by the
//! difference (the *skew*). What a request that arrives late pays for bookings
//! of requests that are later than it in time:
//!
//! * data bus: nothing. It takes the first gap that is wide enough, as long as
//!   the gap is younger than the channel's last 32 bookings;
//! * activates of a rank (`tRRD`, `tFAW`): nothing, within the last 16;
//! * its bank: banks serve rows in the order of calls, so it waits for what is
//!   booked there. With one such request booked, at most the skew plus that
//!   request's own time in the bank (a row conflict after `tRAS`, so less than
//!   `tRC + tRP`), and only when both want the same bank;
//! * a refresh that began within the skew: at most the skew plus `tRFC + tRP`.
//!
//! # Writes
//!
//! Writes are posted to a queue per channel and merge with a queued write to the
//! same line. At the high watermark the queue drains to the low one: oldest
//! first, with every other queued write to the same row right behind it. Reads
//! never wait for queued writes, only for a drain that has begun; a read of a
//! queued line is answered from the queue at once.
//!
//! # Deviations from real controllers
//!
//! * Commands are not aligned with clock edges, and the command bus is never
//!   full: the mean half cycle belongs to the machine's fixed latency.
//! * Row hits go first, as under FR-FCFS, only where this delays no command that
//!   is booked: a row stays open no longer for those that come later. Rows of a
//!   bank are otherwise served in the order of calls.
//! * Writes wait for the watermark even if the bus is idle.
//! * `tCCD` and `tRRD` do not tell bank groups apart; a preset chooses.

mod activates;
mod bus;
mod channel;
mod log;
mod map;
mod map_spec;
pub mod spec;
mod timing;
mod writes;

use piebald_units::{PhysAddr, Picos};

pub use channel::{BankCounters, RowOutcome};
pub use log::{Command, CommandKind, CommandLog, Unlogged};
pub use map::Location;
pub use spec::DramSpec;

use crate::SpecError;
use channel::{Chips, Counts};
use map::AddressMap;
use timing::Timing;
use writes::WriteQueue;

/// Masks over the addresses behind a controller of so much memory whose parities select
/// channel, rank and bank, of a configuration as [`Dram`] takes it. Channels that go round
/// in blocks have no such masks: there are none then.
///
/// # Errors
/// As for a memory of that configuration.
pub fn bank_masks(spec: &DramSpec, memory_bytes: u64) -> Result<Vec<u64>, SpecError> {
    let masks = map_spec::Masks::new(spec, memory_bytes, "memory.dram")?;
    Ok(match masks.granule_shift {
        Some(_) => Vec::new(),
        None => [masks.channel, masks.rank, masks.bank].concat(),
    })
}

/// Can so much memory lie behind a controller with these chips?
pub(crate) fn can_hold(spec: &DramSpec, memory_bytes: u64) -> bool {
    map_spec::Masks::new(spec, memory_bytes, "memory.dram").is_ok()
}

/// The latest time that is told apart, 106 days; keeps sums from overflowing.
const MAX_NOW: u64 = u64::MAX / 2;

/// How an access went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DramDone {
    /// For a read: its last word has arrived. For a write: the queue has taken
    /// it; later than `now` only while a drain blocks the queue, and then the
    /// sender must hold the line until this time.
    pub ready: Picos,
    /// What the access found in its bank. A posted write and a read answered
    /// from the write queue touch no bank and say [`RowOutcome::Hit`]; no bank
    /// counts them.
    pub row: RowOutcome,
    /// Channel of the controller.
    pub channel: u16,
    /// Bank over all channels and ranks, as [`Dram::bank_index`] counts.
    pub bank: u32,
}

/// What happened on one channel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChannelCounters {
    /// Time that the data bus moved data.
    pub busy: Picos,
    /// Refreshes of the channel's ranks up to the last access to each.
    pub refreshes: u64,
    /// Reads answered from the write queue.
    pub forwarded: u64,
    /// Writes that replaced a queued write to the same line.
    pub merged: u64,
    /// Drains of the write queue.
    pub drains: u64,
}

/// The chips behind one controller.
///
/// Work per read: bounded by the bookings kept (64 per channel, 32 per rank)
/// and, once per `tREFI` and rank, its banks. Nothing is allocated after
/// construction. Exclusive: the caller serialises.
#[derive(Clone, Debug)]
pub struct Dram<L = Unlogged> {
    map: AddressMap,
    chips: Chips<L>,
    queues: Box<[WriteQueue]>,
    channels: u16,
}

impl Dram {
    /// Builds the chips. `memory_bytes` lie behind this controller;
    /// `field_prefix` is the path of `spec` in its file, for errors.
    ///
    /// # Errors
    /// The first field that cannot be: counts that are no power of two, address
    /// bits that overlap, are missing or exceed the memory, timings that
    /// contradict one another.
    pub fn new(spec: &DramSpec, memory_bytes: u64, field_prefix: &str) -> Result<Self, SpecError> {
        Self::with_log(spec, memory_bytes, field_prefix, Unlogged)
    }
}

impl<L: CommandLog> Dram<L> {
    /// As [`Dram::new`]; every command goes to `log`.
    ///
    /// # Errors
    /// As [`Dram::new`].
    pub fn with_log(
        spec: &DramSpec,
        memory_bytes: u64,
        field_prefix: &str,
        log: L,
    ) -> Result<Self, SpecError> {
        let map = AddressMap::new(spec, memory_bytes, field_prefix)?;
        let timing = Timing::new(spec, field_prefix)?;
        let counts = Counts {
            channels: spec.channels,
            ranks: spec.ranks,
            banks: spec.banks,
        };
        let queue = WriteQueue::new(spec.write_queue);
        Ok(Self {
            map,
            chips: Chips::new(timing, spec.page_policy, &counts, log),
            queues: vec![queue; usize::from(spec.channels)].into(),
            channels: spec.channels,
        })
    }

    /// Where an address lies. Addresses beyond the installed memory wrap around.
    pub fn locate(&self, addr: PhysAddr) -> Location {
        self.map.locate(addr)
    }

    /// Bank over all channels and ranks: `(channel * ranks + rank) * banks + bank`.
    pub fn bank_index(&self, addr: PhysAddr) -> u32 {
        self.map.target(addr).bank
    }

    /// Number of banks over all channels and ranks.
    pub fn banks(&self) -> u32 {
        self.chips.banks.len() as u32
    }

    /// Number of channels.
    pub fn channels(&self) -> u16 {
        self.channels
    }

    /// Bytes per second that all data buses together can move.
    pub fn peak_bytes_per_second(&self) -> u64 {
        let line = u128::from(timing::LINE_BYTES * u64::from(self.channels));
        (line * 1_000_000_000_000 / u128::from(self.chips.timing.burst)) as u64
    }

    /// Reads a line.
    #[inline]
    pub fn read(&mut self, addr: PhysAddr, now: Picos) -> DramDone {
        let now = now.0.min(MAX_NOW);
        let target = self.map.target(addr);
        let channel = self.chips.channel_of(target.bank);
        let mut done = DramDone {
            ready: Picos(now),
            row: RowOutcome::Hit,
            channel: channel as u16,
            bank: target.bank,
        };
        if !self.queues[channel as usize].forwards(addr) {
            let booked = self.chips.access(target, false, now);
            done.ready = Picos(booked.data_end);
            done.row = booked.row;
        }
        done
    }

    /// Posts the write of a line.
    pub fn write(&mut self, addr: PhysAddr, now: Picos) -> DramDone {
        let now = now.0.min(MAX_NOW);
        let target = self.map.target(addr);
        let channel = self.chips.channel_of(target.bank);
        let queue = &mut self.queues[channel as usize];
        let ready = queue.post(&mut self.chips, addr, target, now);
        DramDone {
            ready: Picos(ready),
            row: RowOutcome::Hit,
            channel: channel as u16,
            bank: target.bank,
        }
    }

    /// Empties every write queue from `now` on; returns when the last write is
    /// over its bus, or `now` if none was queued.
    pub fn drain(&mut self, now: Picos) -> Picos {
        let now = now.0.min(MAX_NOW);
        let mut end = now;
        for queue in &mut self.queues {
            end = end.max(queue.drain(&mut self.chips, 0, now));
        }
        Picos(end)
    }

    /// Writes that wait in a channel's queue; 0 for a channel that is not there.
    pub fn queued(&self, channel: u16) -> usize {
        self.queues
            .get(usize::from(channel))
            .map_or(0, WriteQueue::len)
    }

    /// Counters of a bank; `None` beyond [`Dram::banks`].
    pub fn bank_counters(&self, bank: u32) -> Option<&BankCounters> {
        Some(&self.chips.banks.get(bank as usize)?.counters)
    }

    /// Counters of a channel; `None` beyond [`Dram::channels`].
    pub fn channel_counters(&self, channel: u16) -> Option<ChannelCounters> {
        let queue = self.queues.get(usize::from(channel))?;
        let per_channel = |n: usize| {
            let size = n / self.queues.len();
            usize::from(channel) * size..(usize::from(channel) + 1) * size
        };
        let banks = &self.chips.banks[per_channel(self.chips.banks.len())];
        let bursts: u64 = banks
            .iter()
            .map(|b| b.counters.reads + b.counters.writes)
            .sum();
        let ranks = per_channel(self.chips.refreshes.len());
        Some(ChannelCounters {
            busy: Picos(bursts * self.chips.timing.burst),
            refreshes: self.chips.refreshes[ranks].iter().sum(),
            forwarded: queue.forwarded,
            merged: queue.merged,
            drains: queue.drains,
        })
    }

    /// The log.
    pub fn log(&self) -> &L {
        &self.chips.log
    }

    /// The log, to be emptied.
    pub fn log_mut(&mut self) -> &mut L {
        &mut self.chips.log
    }
}
