//! Banks and ranks at work: which commands an access needs, and when.

use piebald_units::Picos;

use super::{
    activates::Activates,
    bus::{Bus, Spacing},
    log::{Command, CommandKind, CommandLog},
    map::Target,
    spec::PagePolicy,
    timing::Timing,
};

/// What an access found in its bank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowOutcome {
    /// Its row was open.
    Hit,
    /// No row was open.
    Closed,
    /// Another row was open and had to be closed first.
    Conflict,
}

/// What happened in one bank.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BankCounters {
    /// Column reads.
    pub reads: u64,
    /// Column writes.
    pub writes: u64,
    /// Reads and writes that found their row open.
    pub hits: u64,
    /// Those that found no row open.
    pub closed: u64,
    /// Those that found another row open.
    pub conflicts: u64,
}

/// Times from which a bank takes commands, in ps.
#[derive(Clone, Debug)]
pub(super) struct Bank {
    /// Row key of the open row, or [`NO_ROW`].
    open: u64,
    activate_from: u64,
    precharge_from: u64,
    column_from: u64,
    /// Rows that were open before, latest first.
    past: [Closed; LOOK_BACK],
    pub(super) counters: BankCounters,
}

/// Rows of a bank that may still be open for a request although the commands that
/// close them are booked.
const LOOK_BACK: usize = 4;

/// A row whose precharge is booked.
#[derive(Clone, Copy, Debug)]
struct Closed {
    row: u64,
    column_from: u64,
    precharge_at: u64,
}

/// No row is open: not a row key, as those have no bits below a line.
const NO_ROW: u64 = u64::MAX;

impl Bank {
    /// The row closes at `at`.
    #[inline]
    fn closes(&mut self, at: u64) {
        self.past.copy_within(..LOOK_BACK - 1, 1);
        self.past[0] = Closed {
            row: self.open,
            column_from: self.column_from,
            precharge_at: at,
        };
        self.open = NO_ROW;
    }

    const fn new() -> Self {
        Self {
            open: NO_ROW,
            activate_from: 0,
            precharge_from: 0,
            column_from: 0,
            past: [Closed {
                row: NO_ROW,
                column_from: 0,
                precharge_at: 0,
            }; LOOK_BACK],
            counters: BankCounters {
                reads: 0,
                writes: 0,
                hits: 0,
                closed: 0,
                conflicts: 0,
            },
        }
    }
}

#[derive(Clone, Debug)]
struct Rank {
    activates: Activates,
    refresh_due: u64,
}

/// Everything behind one controller except its write queues.
#[derive(Clone, Debug)]
pub(super) struct Chips<L> {
    pub(super) timing: Timing,
    spacing: Spacing,
    policy: PagePolicy,
    pub(super) banks: Box<[Bank]>,
    ranks: Box<[Rank]>,
    buses: Box<[Bus]>,
    pub(super) refreshes: Box<[u64]>,
    bank_shift: u32,
    rank_shift: u32,
    pub(super) log: L,
}

/// An access that is booked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Booked {
    /// Last word of data is over the bus.
    pub data_end: u64,
    pub row: RowOutcome,
}

/// Channels, ranks of a channel, banks of a rank.
pub(super) struct Counts {
    pub channels: u16,
    pub ranks: u16,
    pub banks: u16,
}

impl<L: CommandLog> Chips<L> {
    pub(super) fn new(timing: Timing, policy: PagePolicy, counts: &Counts, log: L) -> Self {
        let channels = usize::from(counts.channels);
        let ranks = channels * usize::from(counts.ranks);
        let banks = ranks * usize::from(counts.banks);
        // Ranks of a channel are refreshed in turn, as controllers do it to
        // keep the current of a refresh low.
        let due = |rank: usize| {
            let turn = (rank % usize::from(counts.ranks)) as u64 + 1;
            timing
                .refi
                .map_or(u64::MAX, |refi| refi * turn / u64::from(counts.ranks))
        };
        let rank = |rank| Rank {
            activates: Activates::new(),
            refresh_due: due(rank),
        };
        Self {
            spacing: Spacing::new(&timing),
            timing,
            policy,
            banks: vec![Bank::new(); banks].into(),
            ranks: (0..ranks).map(rank).collect(),
            buses: vec![Bus::new(); channels].into(),
            refreshes: vec![0; ranks].into(),
            bank_shift: counts.banks.trailing_zeros(),
            rank_shift: counts.ranks.trailing_zeros(),
            log,
        }
    }

    pub(super) fn rank_of(&self, bank: u32) -> u32 {
        bank >> self.bank_shift
    }

    pub(super) fn channel_of(&self, bank: u32) -> u32 {
        self.rank_of(bank) >> self.rank_shift
    }

    /// Books the commands and the burst of one access that asks at `now`.
    #[inline]
    pub(super) fn access(&mut self, target: Target, write: bool, now: u64) -> Booked {
        let rank = self.rank_of(target.bank);
        if now >= self.ranks[rank as usize].refresh_due {
            self.refresh(rank, now);
        }
        let bank = &self.banks[target.bank as usize];
        if bank.open != target.row_key
            && bank.past[0].precharge_at > now
            && let Some(booked) = self.ahead(target, rank, write, now)
        {
            return booked;
        }
        let t = &self.timing;
        let bank = &mut self.banks[target.bank as usize];
        let row = if bank.open == target.row_key {
            bank.counters.hits += 1;
            RowOutcome::Hit
        } else {
            let mut activate_from = bank.activate_from.max(now);
            let row = if bank.open == NO_ROW {
                bank.counters.closed += 1;
                RowOutcome::Closed
            } else {
                bank.counters.conflicts += 1;
                let at = bank.precharge_from.max(now);
                bank.closes(at);
                self.log
                    .command(command(at, CommandKind::Precharge, target.bank));
                activate_from = activate_from.max(at + t.rp);
                RowOutcome::Conflict
            };
            let activates = &mut self.ranks[rank as usize].activates;
            let at = activates.book(t, activate_from);
            self.log
                .command(command(at, CommandKind::Activate, target.bank));
            bank.open = target.row_key;
            bank.activate_from = at + t.rc;
            bank.precharge_from = at + t.ras;
            bank.column_from = at + t.rcd;
            row
        };
        let latency = if write { t.cwl } else { t.cl };
        let earliest = bank.column_from.max(now) + latency;
        let bus = &mut self.buses[(rank >> self.rank_shift) as usize];
        let data = bus.book(&self.spacing, rank as u16, write, earliest);
        let kind = if write {
            CommandKind::Write
        } else {
            CommandKind::Read
        };
        self.log.command(command(data - latency, kind, target.bank));
        let data_end = data + t.burst;
        let done = if write {
            data_end + t.wr
        } else {
            data - latency + t.rtp
        };
        bank.precharge_from = bank.precharge_from.max(done);
        bank.counters.reads += u64::from(!write);
        bank.counters.writes += u64::from(write);
        if self.policy == PagePolicy::Closed {
            self.close(target.bank, now);
        }
        Booked { data_end, row }
    }

    /// A request of a row that is still open when it comes, or will be open again,
    /// before the booked commands of other rows' requests close it: it goes first,
    /// as controllers prefer row hits, if that delays none of these commands.
    #[inline(never)]
    fn ahead(&mut self, target: Target, rank: u32, write: bool, now: u64) -> Option<Booked> {
        let t = &self.timing;
        let bank = &mut self.banks[target.bank as usize];
        let latency = if write { t.cwl } else { t.cl };
        let bus = &mut self.buses[(rank >> self.rank_shift) as usize];
        let row = bank.past.iter().find(|p| p.row == target.row_key)?;
        let earliest = row.column_from.max(now) + latency;
        // The latest data of a request that leaves the precharge where it is.
        let last = match write {
            true => row.precharge_at.checked_sub(t.burst + t.wr)?,
            false => (row.precharge_at + t.cl).checked_sub(t.rtp)?,
        };
        let data = bus.book_before(&self.spacing, rank as u16, write, earliest, last)?;
        let kind = if write {
            CommandKind::Write
        } else {
            CommandKind::Read
        };
        self.log.command(command(data - latency, kind, target.bank));
        bank.counters.hits += 1;
        bank.counters.reads += u64::from(!write);
        bank.counters.writes += u64::from(write);
        Some(Booked {
            data_end: data + t.burst,
            row: RowOutcome::Hit,
        })
    }

    /// Precharges a bank as early as it allows from `now` on.
    fn close(&mut self, index: u32, now: u64) {
        let bank = &mut self.banks[index as usize];
        let at = bank.precharge_from.max(now);
        bank.closes(at);
        bank.activate_from = bank.activate_from.max(at + self.timing.rp);
        self.log.command(command(at, CommandKind::Precharge, index));
    }

    /// Catches up with the refreshes of a rank that fell due up to `now`.
    ///
    /// Only the last one can still be felt: those before it are over, since a
    /// refresh is shorter than the time between two, and they left the rank's
    /// rows closed. A refresh waits for what is booked already; the standards
    /// allow a controller to postpone it.
    #[cold]
    fn refresh(&mut self, rank: u32, now: u64) {
        let Some(refi) = self.timing.refi else {
            return;
        };
        let first_due = self.ranks[rank as usize].refresh_due;
        let skipped = (now - first_due) / refi;
        let due = first_due + skipped * refi;
        let banks = (rank << self.bank_shift)..(rank + 1) << self.bank_shift;
        let mut start = due;
        for bank in banks.clone() {
            if self.banks[bank as usize].open != NO_ROW {
                self.close(bank, first_due);
            }
            start = start.max(self.banks[bank as usize].activate_from);
        }
        for bank in &mut self.banks[banks.start as usize..banks.end as usize] {
            bank.activate_from = start + self.timing.rfc;
        }
        self.log
            .command(command(start, CommandKind::Refresh, banks.start));
        self.ranks[rank as usize].refresh_due = due + refi;
        self.refreshes[rank as usize] += skipped + 1;
    }
}

#[inline]
const fn command(at: u64, kind: CommandKind, bank: u32) -> Command {
    Command {
        at: Picos(at),
        kind,
        bank,
    }
}
