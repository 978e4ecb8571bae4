//! What the seed draws of a replay: where data lie on the drive, how far its platters have turned, how much of each
//! process is passed over, and which processes lead.

use std::collections::{BTreeMap, HashSet};

use piebald_experiment::DiskStart;
use piebald_hw::disk::Disk;
use piebald_sim::replay::{Excerpt, InputSetup, TaskPart};
use piebald_trace::block::{BlockTrace, PageSpan, Space};
use piebald_units::{Picos, block::SECTORS_SHIFT};
use serde::{Deserialize, Serialize};

use super::{
    ReplayError, ReplayRequest,
    load::{Part, Start},
    plan::stopped,
};
use crate::study::Hooks;

/// What a trace consists of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Pages referenced.
    pub accesses: u64,
    /// Bytes of the files that they are of.
    pub bytes: u64,
    /// These files.
    pub files: u64,
    /// References to the page after the one that the same process referred to before.
    pub sequential: u64,
    /// Pages referenced by each process.
    pub tasks: BTreeMap<u32, u64>,
}

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers in every version.
pub(super) struct Random(u64);

impl Random {
    /// Of a seed.
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// 0 to 1.
    fn share(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// 0 to `end`, which is not reached; 0 for an `end` of 0.
    pub(super) fn below(&mut self, end: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(end)) >> 64) as u64
    }
}

/// Where what takes `sectors` from 0 on lies on a drive. As many numbers are drawn whatever is asked for, so that
/// what is drawn behind is the same.
pub(super) fn start(rule: DiskStart, random: &mut Random, disk: &Disk, sectors: u64) -> Start {
    let room = disk.capacity_sectors().saturating_sub(sectors);
    let cylinders = u64::from(cylinder(disk, room)) + 1;
    let shift = first_of(disk, random.below(cylinders) as u32).min(room);
    let rpm = disk.spec().zoned.as_ref().map(|z| z.mechanics.rpm);
    // What does not turn has no angle.
    let turn = rpm.map_or(0, |rpm| 60_000_000_000_000 / u64::from(rpm.max(1)));
    let at = Picos(random.below(turn));
    if rule == DiskStart::Zero {
        return Start::default();
    }
    Start {
        shift_sectors: shift >> SECTORS_SHIFT << SECTORS_SHIFT,
        at,
    }
}

fn cylinder(disk: &Disk, sector: u64) -> u32 {
    let sector = sector.min(disk.capacity_sectors().saturating_sub(1));
    disk.zoned().map_or(0, |z| z.map().place(sector).cylinder)
}

/// First block of a cylinder, or of the next that has any.
fn first_of(disk: &Disk, number: u32) -> u64 {
    let (mut low, mut high) = (0, disk.capacity_sectors());
    while low < high {
        let middle = low + (high - low) / 2;
        if cylinder(disk, middle) < number {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// What is drawn of a trace.
fn excerpt(part: &Part, random: &mut Random, counts: &Counts) -> Excerpt {
    let replayed = counts.accesses.min(part.limit.unwrap_or(u64::MAX));
    let used = replayed as f64 / counts.accesses.max(1) as f64;
    let is_mix = counts.tasks.len() > 1;
    let mut tasks = BTreeMap::new();
    for (&task, &accesses) in &counts.tasks {
        let (skip, lead) = (random.share() * part.skip, random.share() * part.lead);
        let of_task = TaskPart {
            skip_pages: (skip * used * accesses as f64) as u64,
            lead_pages: if is_mix {
                (lead * replayed as f64) as u64
            } else {
                0
            },
        };
        tasks.insert(task, of_task);
    }
    Excerpt {
        limit_pages: part.limit,
        tasks,
    }
}

/// What of the requests is replayed.
pub(super) fn drawn(
    request: &ReplayRequest,
    random: &mut Random,
    hooks: Hooks<'_>,
) -> Result<Excerpt, ReplayError> {
    let part = &request.part;
    if !part.is_drawn() {
        return Ok(Excerpt {
            limit_pages: part.limit,
            tasks: BTreeMap::new(),
        });
    }
    if request.input.paths.len() > 1 {
        return Err(ReplayError::Choice {
            what: "excerpt",
            value: format!("skip or lead of {} traces", request.input.paths.len()),
            problem: "processes of several traces are not told apart; allowed: one trace".into(),
        });
    }
    let counts = counts(&request.input, hooks)?;
    Ok(excerpt(part, random, &counts))
}

/// Reads traces to their ends.
///
/// # Errors
/// A trace that cannot be read, or an end that the user wanted.
pub fn counts(input: &InputSetup, hooks: Hooks<'_>) -> Result<Counts, ReplayError> {
    let mut counts = Counts::default();
    for path in &input.paths {
        let bad = |problem: String| ReplayError::Choice {
            what: "trace",
            value: path.display().to_string(),
            problem,
        };
        let trace = BlockTrace::open(path, input.options.clone());
        let mut trace = trace.map_err(|e| bad(e.to_string()))?;
        let mut next: BTreeMap<u32, (Space, u64)> = BTreeMap::new();
        let mut used = HashSet::new();
        let mut batch = Vec::new();
        loop {
            batch.clear();
            let more = trace.next_batch(&mut batch);
            let more = more.map_err(|e| bad(e.to_string()))?;
            for request in &batch {
                let PageSpan {
                    space,
                    first,
                    count,
                } = request.pages(input.page);
                let follows =
                    next.insert(request.task, (space, first + count)) == Some((space, first));
                counts.sequential += count.saturating_sub(1) + u64::from(follows);
                counts.accesses += count;
                *counts.tasks.entry(request.task).or_default() += count;
                used.insert(space);
            }
            if stopped(hooks) {
                return Err(ReplayError::Stopped);
            }
            if !more {
                break;
            }
        }
        counts.files += used.len() as u64;
        for space in used {
            if let Space::File(key) = space {
                let size = trace.files().get(key).and_then(|f| f.size);
                counts.bytes += size.unwrap_or(0);
            }
        }
    }
    Ok(counts)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use piebald_hw::disk::by_name;

    use super::*;

    fn disk() -> Disk {
        let spec = by_name("st39102lw").unwrap_or_else(|e| panic!("{e}"));
        Disk::new(&spec).unwrap_or_else(|e| panic!("{e}"))
    }

    fn counted(tasks: &[(u32, u64)]) -> Counts {
        Counts {
            accesses: tasks.iter().map(|t| t.1).sum(),
            tasks: tasks.iter().copied().collect(),
            ..Counts::default()
        }
    }

    const PART: Part = Part {
        limit: None,
        skip: 0.02,
        lead: 0.01,
    };

    fn draw(seed: u64, disk: &Disk, sectors: u64, counts: &Counts, part: Part) -> (Start, Excerpt) {
        let mut random = Random::new(seed);
        let begin = start(DiskStart::Drawn, &mut random, disk, sectors);
        (begin, excerpt(&part, &mut random, counts))
    }

    #[test]
    fn draws_depend_on_the_seed_alone_and_stay_within_their_bounds() {
        let (disk, sectors) = (disk(), 9_000_000);
        let mix = counted(&[(1, 500_000), (2, 1_500_000)]);
        let mut shifts = BTreeSet::new();
        for seed in 42..62 {
            let (start, excerpt) = draw(seed, &disk, sectors, &mix, PART);
            let again = draw(seed, &disk, sectors, &mix, PART);
            assert_eq!((start, excerpt.clone()), again);
            assert!(start.shift_sectors + sectors <= disk.capacity_sectors());
            assert_eq!(start.shift_sectors % 8, 0);
            assert!(start.at < Picos(60_000_000_000_000 / 10_000));
            for (task, part) in &excerpt.tasks {
                assert!(part.skip_pages as f64 <= PART.skip * mix.tasks[task] as f64);
                assert!(part.lead_pages as f64 <= PART.lead * mix.accesses as f64);
            }
            shifts.insert(start.shift_sectors);
        }
        assert!(shifts.len() > 15);
        // The middle of the room is reached.
        assert!(shifts.iter().any(|s| *s > 4_000_000) && shifts.iter().any(|s| *s < 4_000_000));
    }

    #[test]
    fn a_disk_that_does_not_start_anywhere_leaves_the_other_draws_as_they_are() {
        let (disk, one) = (disk(), counted(&[(1, 1_000_000)]));
        let mut random = Random::new(7);
        let begin = start(DiskStart::Zero, &mut random, &disk, 0);
        assert_eq!(begin, Start::default());
        let found = excerpt(&PART, &mut random, &one);
        assert_eq!(found, draw(7, &disk, 0, &one, PART).1);
    }

    #[test]
    fn a_single_process_has_no_lead_and_of_a_cut_trace_less_is_passed_over() {
        let (disk, one) = (disk(), counted(&[(1, 1_000_000)]));
        let cut = Part {
            limit: Some(100_000),
            ..PART
        };
        let (_, whole) = draw(43, &disk, 0, &one, PART);
        let (_, part) = draw(43, &disk, 0, &one, cut);
        assert_eq!(whole.tasks[&1].lead_pages, 0);
        assert_eq!(part.limit_pages, Some(100_000));
        let tenth = whole.tasks[&1].skip_pages / 10;
        assert!(part.tasks[&1].skip_pages.abs_diff(tenth) <= 1);
        let note = cut.note().unwrap_or_default();
        assert!(
            note.contains("first 100000") && note.contains("up to 2 %"),
            "{note}"
        );
        assert_eq!(Part::default().note(), None);
    }

    #[test]
    fn a_shift_is_the_beginning_of_a_cylinder() {
        let disk = disk();
        for number in [1, 100, 3000] {
            let sector = first_of(&disk, number);
            assert!(cylinder(&disk, sector) >= number && cylinder(&disk, sector - 1) < number);
        }
    }

    #[test]
    fn a_trace_is_counted_process_by_process() {
        let folder = tempfile::tempdir().unwrap_or_else(|e| panic!("{e}"));
        let path = folder.path().join("t.fpt");
        let text = "# page trace of files: F id bytes path; R|W task file first_page pages (4 KiB pages).\n\
                    F 0 40960 a\nF 1 5000 b\nF 2 9 c\n\
                    R 1 0 0 2\nR 2 1 0 1\nR 1 0 2 1\nW 2 1 0 1\nR 1 0 9 1\n";
        std::fs::write(&path, text).unwrap_or_else(|e| panic!("{e}"));
        let input = InputSetup {
            paths: vec![path],
            ..InputSetup::default()
        };
        let found = counts(&input, Hooks::default()).unwrap_or_else(|e| panic!("{e}"));
        let expected = Counts {
            accesses: 6,
            bytes: 45_960,
            files: 2,
            sequential: 2,
            tasks: BTreeMap::from([(1, 4), (2, 2)]),
        };
        assert_eq!(found, expected);
        let stop = std::sync::atomic::AtomicBool::new(true);
        let hooks = Hooks {
            stop: Some(&stop),
            ..Hooks::default()
        };
        assert!(counts(&input, hooks).is_err());
    }
}
