//! What a program did, measured or put together from its regions.

use piebald_hw::{LevelFill, Machine, Options, spec::MachineSpec};
use piebald_report::{LevelMpki, Metrics, Sample};
use piebald_sim::Region;

/// What a machine counted in a program's measured part, whoever its kernel was.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// Picoseconds.
    pub time_ps: f64,
    /// The kernel's for the program included.
    pub instructions: f64,
    /// References.
    pub refs: f64,
    /// Misses of the data path's levels, innermost first.
    pub misses: [f64; 3],
    /// Accesses of them.
    pub accesses: [f64; 3],
    /// Of the accesses to rows of DRAM, those that found theirs open.
    pub row_hits: f64,
    /// All of them.
    pub row_accesses: f64,
    /// Bytes from and to memory.
    pub memory_bytes: f64,
    /// Lines that came from memory.
    pub memory_lines: f64,
}

/// Sums over a program's measured part. Those of a program that regions stand for are estimates
/// for all of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    pub(crate) counted: Counted,
    /// Of the lines that came from memory, those that demands waited for: the others were prefetched.
    pub(crate) demand_lines: f64,
    pub(crate) walks: f64,
    pub(crate) faults: f64,
    /// Time of faults that move pages to the colours that HVR gives.
    pub(crate) following_ps: f64,
    /// Mapped at the end; of regions, the mean by weight.
    pub(crate) pages: f64,
    pub(crate) huge_pages: f64,
    /// Pages of files that were read or written by calls, and those that were waited for.
    pub(crate) io_pages: f64,
    pub(crate) io_waits: f64,
    /// Those that read calls came to, and those of them that the disk had to be asked for.
    pub(crate) io_reads: f64,
    pub(crate) disk_reads: f64,
    /// Of the pages that read calls came to, those that were waited for.
    pub(crate) read_waits: f64,
    pub(crate) major_faults: f64,
    /// Waited for files and pages.
    pub(crate) blocked_ps: f64,
    /// Bytes that read calls returned, and those of them that passed the caches by.
    pub(crate) read_bytes: f64,
    pub(crate) past_bytes: f64,
    /// Threads that came to another core, and those of them that a read was the reason for.
    pub(crate) migrations: f64,
    pub(crate) read_moves: f64,
    /// Of each level of the data path, how full the sets that it used were; of regions, the
    /// mean by weight.
    pub(crate) fill: [Fill; 3],
    /// The coloured zone of the run, if there is one.
    pub(crate) zone: Option<Zone>,
}

/// A coloured zone, of all programs of a run together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Zone {
    /// Pages just after the last refill, and the most after any.
    pub(crate) refilled: f64,
    pub(crate) largest: f64,
    /// Sequences that began, and those of them that share a list with another.
    pub(crate) sequences: f64,
    pub(crate) shared: f64,
    /// Pages of memory.
    pub(crate) memory: f64,
}

/// How full the sets of a level were, in lines, as [`LevelFill`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fill {
    pub(crate) room: f64,
    pub(crate) start: f64,
    pub(crate) end: f64,
    pub(crate) own_start: f64,
    pub(crate) own_end: f64,
}

impl Fill {
    fn add(&mut self, other: &Self, weight: f64) {
        self.room += weight * other.room;
        self.start += weight * other.start;
        self.end += weight * other.end;
        self.own_start += weight * other.own_start;
        self.own_end += weight * other.own_end;
    }
}

impl From<&LevelFill> for Fill {
    fn from(fill: &LevelFill) -> Self {
        Self {
            room: fill.room as f64,
            start: fill.start as f64,
            end: fill.end as f64,
            own_start: fill.own_start as f64,
            own_end: fill.own_end as f64,
        }
    }
}

impl Counted {
    /// Each figure times `count`.
    fn add(&mut self, other: &Self, count: f64) {
        let sums = [
            (&mut self.time_ps, other.time_ps),
            (&mut self.instructions, other.instructions),
            (&mut self.refs, other.refs),
            (&mut self.row_hits, other.row_hits),
            (&mut self.row_accesses, other.row_accesses),
            (&mut self.memory_bytes, other.memory_bytes),
            (&mut self.memory_lines, other.memory_lines),
        ];
        let levels = self.misses.iter_mut().zip(other.misses);
        let levels = levels.chain(self.accesses.iter_mut().zip(other.accesses));
        for (sum, value) in sums.into_iter().chain(levels) {
            *sum += count * value;
        }
    }

    /// What it comes to, of a program in its repetitions. What only a kernel can tell is not there.
    pub fn metrics(counted: &[Self], spec: &MachineSpec) -> Metrics {
        let of = |f: &dyn Fn(&Self) -> f64| -> Sample { counted.iter().map(f).collect() };
        let hertz = spec.core.clock.0 as f64;
        let levels = level_names(spec).into_iter().enumerate();
        let mpki = levels.map(|(k, level)| LevelMpki {
            level,
            mpki: of(&|t| t.per_kilo(t.misses[k])),
            accesses: of(&|t| t.per_kilo(t.accesses[k])),
        });
        Metrics {
            time_ps: of(&|t| t.time_ps),
            instructions: of(&|t| t.instructions),
            refs: of(&|t| t.refs),
            ipc: of(&|t| t.instructions / (t.time_ps * 1e-12 * hertz)),
            mpki: mpki.collect(),
            row_hit_rate: Some(of(&|t| t.row_hits / t.row_accesses)),
            dram_bytes_per_s: of(&|t| t.memory_bytes / (t.time_ps * 1e-12)),
            memory_reads: of(&|t| t.per_kilo(t.memory_lines)),
            ..Metrics::default()
        }
    }

    /// Clock cycles per instruction.
    pub(crate) fn cpi(&self, hertz: f64) -> f64 {
        self.time_ps * 1e-12 * hertz / self.instructions
    }

    /// Events of which there were `n`, per 1000 instructions.
    pub(crate) fn per_kilo(&self, n: f64) -> f64 {
        1000.0 * n / self.instructions
    }
}

impl Tally {
    /// Each figure times `count`, those that are no sums times `level`.
    fn add(&mut self, other: &Self, count: f64, level: f64) {
        self.counted.add(&other.counted, count);
        let sums = [
            (&mut self.walks, other.walks),
            (&mut self.faults, other.faults),
            (&mut self.following_ps, other.following_ps),
            (&mut self.io_pages, other.io_pages),
            (&mut self.io_waits, other.io_waits),
            (&mut self.io_reads, other.io_reads),
            (&mut self.disk_reads, other.disk_reads),
            (&mut self.read_waits, other.read_waits),
            (&mut self.major_faults, other.major_faults),
            (&mut self.blocked_ps, other.blocked_ps),
            (&mut self.read_bytes, other.read_bytes),
            (&mut self.past_bytes, other.past_bytes),
            (&mut self.migrations, other.migrations),
            (&mut self.read_moves, other.read_moves),
            (&mut self.demand_lines, other.demand_lines),
        ];
        for (sum, value) in sums {
            *sum += count * value;
        }
        for (sum, fill) in self.fill.iter_mut().zip(&other.fill) {
            sum.add(fill, level);
        }
        self.pages += level * other.pages;
        self.huge_pages += level * other.huge_pages;
    }

    /// What `instrs` instructions of a program come to by its regions: of each its weight, its
    /// length in instructions, and what it did.
    pub(crate) fn weighted(regions: impl Iterator<Item = (f64, u64, Self)>, instrs: u64) -> Self {
        let mut sum = Self::default();
        for (weight, length, tally) in regions {
            sum.add(
                &tally,
                weight * instrs as f64 / length.max(1) as f64,
                weight,
            );
        }
        sum
    }
}

/// Names of a machine's data path's levels, innermost first.
pub(crate) fn level_names(spec: &MachineSpec) -> Vec<String> {
    match Machine::new(spec, &Options::default()) {
        Ok(machine) => machine.level_names().to_vec(),
        Err(_) => Vec::new(),
    }
}

impl From<&Region> for Tally {
    fn from(r: &Region) -> Self {
        let c = &r.counters;
        Self {
            counted: Counted {
                time_ps: r.time.0 as f64,
                instructions: c.instructions as f64,
                refs: r.refs as f64,
                misses: c.level.map(|l| l.misses as f64),
                accesses: c.level.map(|l| l.accesses as f64),
                row_hits: c.row_hits as f64,
                row_accesses: c.row_accesses() as f64,
                memory_bytes: c.memory_bytes() as f64,
                memory_lines: (c.memory_reads + c.prefetch_reads) as f64,
            },
            demand_lines: c.memory_reads as f64,
            walks: c.walks as f64,
            faults: r.faults as f64,
            following_ps: r.following.0 as f64,
            pages: r.pages as f64,
            huge_pages: r.huge_pages as f64,
            io_pages: r.io.pages as f64,
            io_waits: r.io.waits as f64,
            io_reads: r.io.reads.pages as f64,
            disk_reads: (r.io.reads.waits + r.io.reads.ahead) as f64,
            read_waits: r.io.reads.waits as f64,
            major_faults: r.io.major_faults as f64,
            blocked_ps: r.io.blocked.0 as f64,
            read_bytes: r.reads.bytes as f64,
            past_bytes: r.reads.past as f64,
            migrations: r.reads.migrations as f64,
            read_moves: r.reads.moves as f64,
            fill: [Fill::default(); 3],
            zone: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_machine_counts_is_what_the_list_says_of_it() {
        let spec = piebald_hw::presets::load("w3540").expect("a preset");
        let metrics = Counted::metrics(&[Counted::default()], &spec);
        for metric in &piebald_report::METRICS {
            let known = (metric.get)(&metrics).is_some_and(|sample| sample.n() == 1);
            let expected = metric.source == piebald_report::Source::Machine;
            assert_eq!(known, expected, "{}", metric.name);
        }
    }

    #[test]
    fn regions_count_by_what_they_stand_for_not_by_their_length() {
        let region = |time_ps, instructions, misses, pages| Tally {
            counted: Counted {
                time_ps,
                instructions,
                misses: [misses, 0.0, 0.0],
                ..Counted::default()
            },
            pages,
            ..Tally::default()
        };
        // 10,000 instructions, of which 7,500 are like the first region.
        let parts = [
            (0.75, 100, region(50.0, 110.0, 4.0, 10.0)),
            (0.25, 50, region(100.0, 50.0, 0.0, 30.0)),
        ];
        let sum = Tally::weighted(parts.into_iter(), 10_000);
        let pages = sum.pages;
        let sum = sum.counted;
        assert_eq!(sum.time_ps, 75.0 * 50.0 + 50.0 * 100.0);
        assert_eq!(sum.instructions, 75.0 * 110.0 + 50.0 * 50.0);
        assert_eq!((sum.misses[0], pages), (300.0, 15.0));
        let cpi = sum.cpi(1e12);
        assert!((cpi - sum.time_ps / sum.instructions).abs() < 1e-12);
        assert!((sum.per_kilo(sum.misses[0]) - 300e3 / 10_750.0).abs() < 1e-9);
    }
}
