//! What a repetition draws: where the layout lies on the drive, how far the platters have
//! turned, how much of each program is passed over, and which programs lead.

use std::collections::BTreeMap;

use piebald_hw::disk::{Disk, by_name};
use piebald_lab::replay::Start;
use piebald_sim::replay::{Excerpt, TaskPart};
use piebald_trace::block::Layout;
use piebald_units::{Picos, block::SECTORS_SHIFT};

use super::inputs::{Counts, Folder};

/// The drive.
pub(super) const DEVICE: &str = "st39102lw";

/// Share of a program's accesses that are passed over, at most (protocol).
const SKIP: f64 = 0.02;
/// Lead of a program of a mix, as a share of the mix, at most (protocol).
const LEAD: f64 = 0.01;

/// SplitMix64 (Steele, Lea, Flood 2014): the same numbers in every version.
struct Random(u64);

impl Random {
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
}

/// The drive's places that a layout may be moved to.
#[derive(Clone, Debug)]
pub(super) struct Places {
    disk: Disk,
    /// Sectors from 0 to the end of the layout.
    end: u64,
    revolution: Picos,
}

impl Places {
    /// Of the layout in a folder.
    pub(super) fn read(folder: &Folder) -> Result<Self, String> {
        let layout = Layout::open(&folder.layout()).map_err(|e| e.to_string())?;
        let spec = by_name(DEVICE).map_err(|e| e.to_string())?;
        let disk = Disk::new(&spec).map_err(|e| e.to_string())?;
        let end = layout.end() << SECTORS_SHIFT;
        if end > disk.capacity_sectors() {
            return Err(format!(
                "{}: reaches behind the disk's end",
                folder.layout().display()
            ));
        }
        let rpm = spec.zoned.as_ref().map_or(0, |z| z.mechanics.rpm);
        Ok(Self {
            disk,
            end,
            revolution: Picos(60_000_000_000_000 / u64::from(rpm.max(1))),
        })
    }

    fn cylinder(&self, sector: u64) -> u32 {
        self.disk
            .zoned()
            .map_or(0, |z| z.map().place(sector).cylinder)
    }

    /// First block of a cylinder (or of the next that has any), on a page's boundary.
    fn first_of(&self, cylinder: u32) -> u64 {
        let (mut low, mut high) = (0, self.disk.capacity_sectors());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.cylinder(middle) < cylinder {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low >> SECTORS_SHIFT << SECTORS_SHIFT
    }

    /// Where the layout is moved to, and the platter's angle.
    fn start(&self, random: &mut Random) -> Start {
        let room = self.disk.capacity_sectors() - self.end;
        let cylinders = f64::from(self.cylinder(room)) + 1.0;
        let shift = self.first_of((random.share() * cylinders) as u32);
        Start {
            shift_sectors: shift.min(room >> SECTORS_SHIFT << SECTORS_SHIFT),
            at: Picos((random.share() * self.revolution.0 as f64) as u64),
        }
    }
}

/// A repetition's draws for a trace.
pub(super) fn draw(
    seed: u64,
    places: &Places,
    counts: &Counts,
    limit: Option<u64>,
) -> (Start, Excerpt) {
    let mut random = Random(seed);
    // The start is drawn first, so that it is the same for all inputs.
    let start = places.start(&mut random);
    let replayed = counts.accesses.min(limit.unwrap_or(u64::MAX));
    let used = replayed as f64 / counts.accesses.max(1) as f64;
    let is_mix = counts.tasks.len() > 1;
    let mut tasks = BTreeMap::new();
    for (&task, &accesses) in &counts.tasks {
        let (skip, lead) = (random.share() * SKIP, random.share() * LEAD);
        let part = TaskPart {
            skip_pages: (skip * used * accesses as f64) as u64,
            lead_pages: match is_mix {
                true => (lead * replayed as f64) as u64,
                false => 0,
            },
        };
        tasks.insert(task, part);
    }
    let excerpt = Excerpt {
        limit_pages: limit,
        tasks,
    };
    (start, excerpt)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn places(end: u64) -> Places {
        let spec = by_name(DEVICE).unwrap_or_else(|e| panic!("{e}"));
        Places {
            disk: Disk::new(&spec).unwrap_or_else(|e| panic!("{e}")),
            end,
            revolution: Picos(5_979_000_000),
        }
    }

    fn counts(tasks: &[(u32, u64)]) -> Counts {
        Counts {
            accesses: tasks.iter().map(|t| t.1).sum(),
            tasks: tasks.iter().copied().collect(),
            ..Counts::default()
        }
    }

    #[test]
    fn draws_depend_on_the_seed_alone_and_stay_within_the_protocol() {
        let places = places(9_000_000);
        let mix = counts(&[(1, 500_000), (2, 1_500_000)]);
        let mut shifts = std::collections::BTreeSet::new();
        for seed in 42..62 {
            let (start, excerpt) = draw(seed, &places, &mix, None);
            assert_eq!((start, excerpt.clone()), draw(seed, &places, &mix, None));
            assert!(start.shift_sectors + places.end <= places.disk.capacity_sectors());
            assert_eq!(start.shift_sectors % 8, 0);
            assert!(start.at < places.revolution);
            for (task, part) in &excerpt.tasks {
                assert!(part.skip_pages as f64 <= SKIP * mix.tasks[task] as f64);
                assert!(part.lead_pages as f64 <= LEAD * mix.accesses as f64);
            }
            shifts.insert(start.shift_sectors);
        }
        assert!(shifts.len() > 15);
        // The middle of the room is reached.
        assert!(shifts.iter().any(|s| *s > 4_000_000) && shifts.iter().any(|s| *s < 4_000_000));
    }

    #[test]
    fn a_single_program_has_no_lead_and_a_cut_one_skips_less() {
        let places = places(9_000_000);
        let one = counts(&[(1, 1_000_000)]);
        let (_, whole) = draw(43, &places, &one, None);
        let (_, part) = draw(43, &places, &one, Some(100_000));
        assert_eq!(whole.tasks[&1].lead_pages, 0);
        assert_eq!(part.limit_pages, Some(100_000));
        assert!(
            part.tasks[&1]
                .skip_pages
                .abs_diff(whole.tasks[&1].skip_pages / 10)
                <= 1
        );
    }

    #[test]
    fn a_shift_is_the_beginning_of_a_cylinder() {
        let places = places(0);
        for cylinder in [1, 100, 3000] {
            let sector = places.first_of(cylinder);
            assert!(
                places.cylinder(sector + 7) >= cylinder && places.cylinder(sector - 1) < cylinder
            );
        }
    }
}
