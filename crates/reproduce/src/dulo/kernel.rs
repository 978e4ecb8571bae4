//! What the rows of section 4.2 share: the drive, the kernel's two policies, the draws of a
//! repetition, and the runs of all sizes side by side.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use piebald_hw::disk::{Disk, by_name};
use piebald_os_model::{
    file::FileConfig,
    io::IoConfig,
    replace::{PolicySpec, SpecError},
};
use piebald_report::{Predicate, Sample};
use piebald_units::{Picos, block::SECTORS_SHIFT};
use rayon::prelude::*;
use serde::Deserialize;

use crate::{Hooks, Options, experiment::unless_stopped};

/// The drive of section 4.2.3.
const DEVICE: &str = "wd400bb";
/// The kernel as it is.
pub(super) const LINUX: &str = "linux-2.6.11";

pub(super) const PAGES_PER_MB: u32 = 256;

/// As it is in the repository.
const TEXT: &str = include_str!("../../../../reproduce/dulo/inputs.toml");

/// The parts of the list of inputs that are meant for the kernel's rows.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct List {
    pub lxr: Lxr,
    pub smm: Smm,
}

/// Figure 5.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Lxr {
    pub clients: usize,
    pub minutes: u64,
    pub sequences: String,
    pub results: String,
    pub layouts: Layouts,
    pub memory_mb: Vec<u32>,
    pub bank_mb: u32,
    pub evicting_mb: u32,
}

/// Where its files lie.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Layouts {
    pub real: String,
    pub contiguous: String,
}

/// Figure 6.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Smm {
    pub rows: u64,
    pub elements: u64,
    pub products: u64,
    pub window_rows: u64,
    pub memory_mb: Vec<u32>,
    pub kernel_mb: u32,
    pub bank_mb: u32,
    pub evicting_mb: u32,
}

impl List {
    /// The list of the repository.
    pub(super) fn read() -> Result<Self, String> {
        toml::from_str(TEXT).map_err(|e| format!("inputs.toml: {e}"))
    }
}

/// DULO in the inactive list, with its sections in MB.
pub(super) fn dulo(bank_mb: u32, evicting_mb: u32) -> String {
    format!("dulo-linux:bank={bank_mb}MiB,evicting={evicting_mb}MiB")
}

/// Linux 2.6.11 with the deadline scheduler (protocol).
pub(super) fn kernel() -> FileConfig {
    FileConfig {
        io: IoConfig::deadline_2_6_11(),
        ..FileConfig::linux_2_6_11()
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers in every version.
pub(super) struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to `end`, which is not reached; 0 for an `end` of 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

/// The drive, new.
pub(super) fn drive() -> Result<Disk, String> {
    let spec = by_name(DEVICE).map_err(|e| e.to_string())?;
    Disk::new(&spec).map_err(|e| e.to_string())
}

/// What a repetition draws: where on the drive what takes `sectors` from 0 on lies, and how
/// far the platters have turned. Also gives the numbers for further draws.
pub(super) fn draw(seed: u64, disk: &Disk, sectors: u64) -> (u64, Picos, Random) {
    let mut random = Random(seed);
    let room = disk.capacity_sectors().saturating_sub(sectors);
    let cylinders = u64::from(cylinder(disk, room)) + 1;
    let shift = first_of(disk, random.below(cylinders) as u32).min(room);
    let rpm = disk.spec().zoned.as_ref().map_or(0, |z| z.mechanics.rpm);
    let revolution = 60_000_000_000_000 / u64::from(rpm.max(1));
    let at = Picos(random.below(revolution));
    (shift >> SECTORS_SHIFT << SECTORS_SHIFT, at, random)
}

fn cylinder(disk: &Disk, sector: u64) -> u32 {
    let sector = sector.min(disk.capacity_sectors() - 1);
    disk.zoned().map_or(0, |z| z.map().place(sector).cylinder)
}

/// First block of a cylinder, or of the next that has any.
fn first_of(disk: &Disk, number: u32) -> u64 {
    let (mut low, mut high) = (0, disk.capacity_sectors());
    while low < high {
        let middle = low + (high - low) / 2;
        match cylinder(disk, middle) < number {
            true => low = middle + 1,
            false => high = middle,
        }
    }
    low
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Job {
    /// What differs besides, such as a layout.
    pub variant: usize,
    pub mb: u32,
    pub policy: String,
    pub seed: u64,
}

/// What a run came to that rows are made of.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// Mbit/s, or seconds.
    pub main: f64,
    /// Share of references.
    pub hits: f64,
    pub references: u64,
    /// Further figures, to be read beside them.
    pub more: Vec<(&'static str, f64)>,
}

/// All runs.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells(BTreeMap<Job, Figures>);

impl Cells {
    /// Runs every policy at every size and repetition, on all cores.
    pub(super) fn run(
        jobs: Vec<Job>,
        name: &str,
        hooks: Hooks<'_>,
        one: impl Fn(&Job) -> Result<Figures, String> + Sync,
    ) -> Result<Self, String> {
        let (planned, done) = (jobs.len() as u64, AtomicU64::new(0));
        let run = |job: Job| {
            unless_stopped(hooks.stop)?;
            let figures =
                one(&job).map_err(|e| format!("{name}, {} with {} MB: {e}", job.policy, job.mb))?;
            let done = done.fetch_add(1, Ordering::Relaxed) + 1;
            if let Some(progress) = hooks.progress {
                progress(name, done, planned);
            }
            Ok((job, figures))
        };
        // One at a time from the front: runs at small sizes take longest.
        let all = jobs.into_par_iter().with_max_len(1).map(run);
        Ok(Self(all.collect::<Result<_, String>>()?))
    }

    /// A figure over the repetitions.
    pub(super) fn sample(
        &self,
        variant: usize,
        mb: u32,
        policy: &str,
        of: impl Fn(&Figures) -> f64,
    ) -> Sample {
        let cell = self
            .0
            .iter()
            .filter(|(job, _)| job.variant == variant && job.mb == mb && job.policy == policy);
        cell.map(|(_, figures)| of(figures)).collect()
    }

    /// Names of the further figures.
    pub(super) fn more(&self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for (name, _) in self.0.values().flat_map(|f| &f.more) {
            if !names.contains(name) {
                names.push(*name);
            }
        }
        names
    }
}

impl Figures {
    /// A further figure; 0 if the policy does not have it.
    pub(super) fn get(&self, name: &str) -> f64 {
        let found = self.more.iter().find(|(n, _)| *n == name);
        found.map_or(0.0, |(_, v)| *v)
    }
}

/// Every policy at every size, repetition by repetition.
pub(super) fn jobs(variant: usize, sizes: &[u32], policies: &[&str], seeds: &[u64]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for &seed in seeds {
        for &mb in sizes {
            for policy in policies {
                jobs.push(Job {
                    variant,
                    mb,
                    policy: (*policy).to_owned(),
                    seed,
                });
            }
        }
    }
    jobs
}

/// Seeds of the repetitions: five, three in the short form.
pub(super) fn seeds(options: &Options) -> Vec<u64> {
    let usual = if options.quick { 3 } else { 5 };
    let count = u64::from(options.repetitions.unwrap_or(usual).max(1));
    (0..count).map(|n| options.seed.wrapping_add(n)).collect()
}

/// A policy by its name.
pub(super) fn policy(text: &str) -> Result<PolicySpec, String> {
    text.parse().map_err(|e: SpecError| e.to_string())
}

/// A statement that was looked at.
pub(super) fn states(text: String, holds: bool) -> Predicate {
    Predicate {
        text,
        holds: Some(holds),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_depend_on_the_seed_alone_and_fit_the_drive() {
        let disk = drive().unwrap_or_else(|e| panic!("{e}"));
        let sectors = 20_000_000;
        let mut shifts = std::collections::BTreeSet::new();
        for seed in 42..62 {
            let (shift, at, mut random) = draw(seed, &disk, sectors);
            let again = draw(seed, &disk, sectors);
            assert_eq!(
                (shift, at, random.next()),
                (again.0, again.1, { again.2 }.next())
            );
            assert!(shift + sectors <= disk.capacity_sectors());
            assert_eq!(shift % 8, 0);
            assert!(at < Picos(60_000_000_000_000 / 7200));
            shifts.insert(shift);
        }
        assert!(shifts.len() > 15);
        let half = (disk.capacity_sectors() - sectors) / 2;
        assert!(shifts.iter().any(|s| *s > half) && shifts.iter().any(|s| *s < half));
    }

    #[test]
    fn the_list_names_what_the_paper_prints() {
        let list = List::read().unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((list.lxr.clients, list.lxr.minutes), (25, 15));
        assert_eq!((list.smm.rows, list.smm.elements), (1 << 20, 1 << 23));
        assert!(list.smm.memory_mb.contains(&135));
        for text in [LINUX.to_owned(), dulo(8, 64)] {
            assert!(policy(&text).is_ok(), "{text}");
        }
    }
}
