//! The disk below a replay: device, kernel, and where pages lie.

use std::path::{Path, PathBuf};

use piebald_experiment::read_text;
use piebald_hw::disk::{self, Disk, DiskSpec};
use piebald_hw::nearest::did_you_mean;
use piebald_os_model::file::readahead::ReadaheadConfig;
use piebald_os_model::file::{Extent, FileConfig, FileTable, Layout, LayoutError, WriteBack};
use piebald_os_model::io::IoConfig;
use piebald_sim::mix;
use piebald_sim::replay::{DiskSide, Pace, SpaceInfo};
use piebald_trace::block::{self as trace, TargetKind};
use piebald_units::block::SECTORS_SHIFT;
use piebald_units::{FileId, Lba};

use super::{ReplayError, load::Start};

/// A place of AccuSim's: 1 MiB.
const SLOT_SECTORS: u64 = 2048;
/// Inodes of a file system that are drawn from: one for each 8 KiB of 16 GiB, more than a drive of
/// 9 GB has \[ours\].
const MOST_INODES: u64 = 1 << 21;
/// What is drawn for them.
const INODES: u64 = 0x696e_6f64_6573;
const BY_INODES: &str = "every file begins at its inode's number times 1 MiB, modulo the disk, and is \
                         contiguous; inodes are drawn";

/// Longest run whose cost policies may ask for, in pages: DULO's longest sequence.
const LONGEST_RUN: u64 = 128;

/// What kind of disk is below.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// None: hits and misses alone.
    None,
    /// A built-in one.
    Preset(String),
    /// Described in a file.
    File(PathBuf),
}

/// The name of no readahead.
pub(super) const NO_READAHEAD: &str = "none";

/// Generations of readahead and what they are.
pub const READAHEADS: [(&str, ReadaheadConfig); 5] = [
    (NO_READAHEAD, ReadaheadConfig::none()),
    ("2.4", ReadaheadConfig::linux_2_4()),
    ("2.6.11", ReadaheadConfig::linux_2_6_11()),
    ("2.6.30", ReadaheadConfig::linux_2_6_30()),
    ("6.x", ReadaheadConfig::linux_6()),
];

/// Schedulers and what they are.
pub const SCHEDULERS: [(&str, IoConfig); 5] = [
    ("noop", IoConfig::noop()),
    ("deadline-2.6.11", IoConfig::deadline_2_6_11()),
    ("anticipatory", IoConfig::anticipatory_2_6_11()),
    ("deadline", IoConfig::deadline_2_6_30()),
    ("mq-deadline", IoConfig::mq_deadline()),
];

/// The scheduler of kernels that give a drive as many requests as it takes; the older ones
/// give one at a time.
const QUEUEING: &str = "mq-deadline";

/// Where the pages of traces without disk addresses lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LayoutChoice {
    /// Addresses of the trace if it has them; files one after another; blocks without
    /// address scattered at random.
    #[default]
    Auto,
    /// Files one after another in the order of their first use.
    Packed,
    /// Every file at the next multiple of 1 MiB: AccuSim's rule for files whose inodes have
    /// numbers that follow one another.
    Slots,
    /// Every file from its inode's number times 1 MiB on, modulo the disk: AccuSim's rule for
    /// files that are some of a large file system's. The numbers are drawn.
    Inodes,
    /// Pages scattered at random.
    Scatter,
    /// Pages in the order of their first use: the most sequential layout there is.
    FirstTouch,
    /// Extents from a file: `PATH FIRST_PAGE FIRST_PAGE_ON_DISK PAGES`.
    File(PathBuf),
}

fn named<T: Clone>(what: &'static str, value: &str, table: &[(&str, T)]) -> Result<T, ReplayError> {
    let found = table.iter().find(|(name, _)| *name == value);
    found.map(|(_, of)| of.clone()).ok_or_else(|| {
        let names: Vec<_> = table.iter().map(|(name, _)| *name).collect();
        ReplayError::Choice {
            what,
            value: value.to_owned(),
            problem: format!(
                "is not known; allowed: {}{}",
                names.join(", "),
                did_you_mean(value, names.iter().copied())
            ),
        }
    })
}

/// Readahead of this name.
pub(super) fn readahead(name: &str) -> Result<ReadaheadConfig, ReplayError> {
    named("readahead", name, &READAHEADS)
}

/// The file side of a kernel with this readahead and scheduler, over a drive. Kernels of
/// 2.x wrote victims page by page.
///
/// # Errors
/// A name that is not in the tables.
pub(crate) fn kernel(
    readahead_name: &str,
    scheduler: &str,
    spec: &DiskSpec,
) -> Result<FileConfig, ReplayError> {
    let mut io = named("scheduler", scheduler, &SCHEDULERS)?;
    if scheduler == QUEUEING {
        io.depth = spec.queue.depth;
    }
    let write_back = match readahead_name.starts_with("2.") {
        true => WriteBack::LINUX_2_6_11,
        false => WriteBack::LINUX_6,
    };
    Ok(FileConfig {
        readahead: readahead(readahead_name)?,
        io,
        write_back,
        ..FileConfig::plain()
    })
}

/// The device that was chosen; `None` for none.
pub(super) fn device(choice: &DeviceChoice) -> Result<Option<DiskSpec>, ReplayError> {
    let bad = |value: String, problem: String| ReplayError::Choice {
        what: "device",
        value,
        problem,
    };
    match choice {
        DeviceChoice::None => Ok(None),
        DeviceChoice::Preset(name) => disk::by_name(name).map(Some).map_err(|e| {
            bad(
                name.clone(),
                format!("{e}; or a file whose name ends in .toml"),
            )
        }),
        DeviceChoice::File(path) => {
            let name = path.display().to_string();
            let text = read_text(path).map_err(|e| bad(name.clone(), e.to_string()))?;
            let spec = disk::parse(&text, &name).map_err(|e| bad(name.clone(), e.to_string()))?;
            Ok(Some(spec))
        }
    }
}

/// What a disk side is made of.
pub(super) struct Parts<'a> {
    pub spec: &'a DiskSpec,
    pub readahead: &'a str,
    pub scheduler: &'a str,
    pub layout: &'a LayoutChoice,
    pub kind: TargetKind,
    pub reads_ahead: bool,
    pub spaces: &'a [SpaceInfo],
    pub pace: Pace,
    pub warmup: u64,
    pub start: Start,
    pub seed: u64,
}

/// The disk side, and the layout in a sentence.
pub(super) fn side(parts: &Parts<'_>) -> Result<(DiskSide, String), ReplayError> {
    let disk = Disk::new(parts.spec).map_err(|e| ReplayError::Choice {
        what: "device",
        value: parts.spec.name.clone(),
        problem: e.to_string(),
    })?;
    let (files, layout) = files(parts, disk.capacity_sectors())?;
    let cost = |pages: u64| {
        let ns = disk.run_cost(pages << SECTORS_SHIFT).0 / 1000;
        u32::try_from(ns).unwrap_or(u32::MAX).max(1)
    };
    let run_costs = (1..=LONGEST_RUN).map(cost).collect();
    let mut config = kernel(parts.readahead, parts.scheduler, parts.spec)?;
    if !parts.reads_ahead {
        config.readahead = readahead(NO_READAHEAD)?;
    }
    let side = DiskSide {
        config,
        files,
        disk,
        run_costs,
        pace: parts.pace,
        warmup: parts.warmup,
        begin: parts.start.at,
    };
    Ok((side, layout))
}

fn files(parts: &Parts<'_>, sectors: u64) -> Result<(FileTable, String), ReplayError> {
    let disk_pages = sectors >> SECTORS_SHIFT;
    let one = parts.spaces.len() <= 1;
    let largest = parts.spaces.iter().map(|s| s.pages).max().unwrap_or(0);
    let packed = Layout::Packed {
        start: Lba(0),
        gap_pages: 0,
    };
    let scatter = Layout::Scatter {
        seed: parts.seed,
        capacity_pages: disk_pages,
    };
    let layout = match (parts.layout, parts.kind) {
        (LayoutChoice::Auto, TargetKind::Device) if one => Layout::Device {
            wrap_pages: (largest > disk_pages).then_some(disk_pages),
        },
        (LayoutChoice::Auto, TargetKind::Device) => Layout::Slots {
            slot_sectors: largest.max(1) << SECTORS_SHIFT,
            capacity_sectors: sectors,
        },
        (LayoutChoice::Auto, TargetKind::Id) | (LayoutChoice::Scatter, _) => scatter,
        (LayoutChoice::Auto, TargetKind::File) | (LayoutChoice::Packed, _) => packed,
        (LayoutChoice::File(_) | LayoutChoice::Inodes, _) => packed,
        (LayoutChoice::Slots, _) => Layout::Slots {
            slot_sectors: SLOT_SECTORS,
            capacity_sectors: sectors,
        },
        (LayoutChoice::FirstTouch, _) => Layout::FirstTouch { start: Lba(0) },
    };
    let placed = match parts.layout {
        LayoutChoice::File(path) => {
            let placed = placed(path, parts, disk_pages)?;
            let sentence = placed.describe(path, parts.spaces.len());
            Some((placed, sentence))
        }
        LayoutChoice::Inodes => {
            let placed = by_inodes(parts.spaces, parts.seed, disk_pages);
            Some((placed, BY_INODES.to_owned()))
        }
        _ => None,
    };
    let layout = match &placed {
        Some((placed, _)) => Layout::Packed {
            start: Lba(placed.end << SECTORS_SHIFT),
            gap_pages: 0,
        },
        None => layout,
    };
    let mut table = FileTable::new(layout).map_err(wrong)?;
    let sentence = match &placed {
        Some((placed, sentence)) => {
            placed.add_to(&mut table, parts.spaces).map_err(wrong)?;
            sentence.clone()
        }
        None => layout.describe(),
    };
    for (n, space) in parts.spaces.iter().enumerate() {
        let id = FileId(n as u64);
        if table.index(id).is_none() {
            table.add(id, space.pages).map_err(wrong)?;
        }
    }
    fits(&table, parts, sectors)?;
    Ok((table, sentence))
}

fn wrong(error: LayoutError) -> ReplayError {
    ReplayError::Choice {
        what: "layout",
        value: "files".to_owned(),
        problem: error.to_string(),
    }
}

/// A layout that does not wrap must end on the disk.
fn fits(table: &FileTable, parts: &Parts<'_>, sectors: u64) -> Result<(), ReplayError> {
    let pages: u64 = match table.layout() {
        Layout::Packed { .. } | Layout::FirstTouch { .. } => {
            parts.spaces.iter().map(|s| s.pages).sum()
        }
        _ => 0,
    };
    match pages << SECTORS_SHIFT > sectors {
        false => Ok(()),
        true => Err(ReplayError::Choice {
            what: "device",
            value: parts.spec.name.clone(),
            problem: format!(
                "the trace's files have {pages} pages, the disk {}; allowed: a larger device, or a layout that wraps (slots)",
                sectors >> SECTORS_SHIFT
            ),
        }),
    }
}

/// Where a layout file puts the files of a trace.
struct Placed {
    /// Page of the disk that counts as the first.
    base: u64,
    /// Pages by which all are moved.
    shift: u64,
    /// The page behind the last that a file has.
    end: u64,
    extents: Vec<Vec<Extent>>,
    missing: usize,
}

/// Reads a layout file and finds the trace's files in it, by path. The lowest page of
/// all files becomes the disk's first if they would not fit otherwise. All are moved
/// together as the start says.
fn placed(path: &Path, parts: &Parts<'_>, disk_pages: u64) -> Result<Placed, ReplayError> {
    let bad = |problem: String| ReplayError::Choice {
        what: "layout",
        value: path.display().to_string(),
        problem,
    };
    let layout = trace::Layout::open(path).map_err(|e| bad(e.to_string()))?;
    let find = |space: &SpaceInfo| {
        let name = space.name.as_deref().unwrap_or_default();
        layout.extents(name.as_bytes())
    };
    let found: Vec<_> = parts.spaces.iter().map(find).collect();
    let all = || found.iter().flat_map(|extents| extents.iter());
    let lowest = all().map(|e| e.physical).min();
    let highest = all().map(|e| e.physical + e.pages).max();
    let (Some(lowest), Some(highest)) = (lowest, highest) else {
        return Err(bad("has none of the traces' files".to_owned()));
    };
    let base = if highest > disk_pages { lowest } else { 0 };
    let shift = parts.start.shift_sectors >> SECTORS_SHIFT;
    let end = (highest - base).saturating_add(shift);
    if end > disk_pages {
        return Err(bad(format!(
            "the files end at page {end} of the disk, which has {disk_pages}; allowed: a larger device, or a smaller shift"
        )));
    }
    let at = |e: &trace::Extent| Extent {
        page: e.logical,
        lba: Lba((e.physical - base + shift) << SECTORS_SHIFT),
        pages: e.pages,
    };
    // A file with holes has no place for some of its pages.
    let place = |of: &&[trace::Extent]| match is_whole(of) {
        true => of.iter().map(at).collect(),
        false => Vec::new(),
    };
    let extents: Vec<Vec<Extent>> = found.iter().map(place).collect();
    Ok(Placed {
        base,
        shift,
        end,
        missing: extents.iter().filter(|of| of.is_empty()).count(),
        extents,
    })
}

/// Files by AccuSim's rule, with an inode drawn for each. Two may share places, as they do
/// there, and a file that reaches the disk's end goes on at its start.
fn by_inodes(spaces: &[SpaceInfo], seed: u64, disk_pages: u64) -> Placed {
    let slot = SLOT_SECTORS >> SECTORS_SHIFT;
    let extents = |(n, space): (usize, &SpaceInfo)| {
        let inode = mix(&[seed, INODES, n as u64]) % MOST_INODES;
        let at = inode * slot % disk_pages.max(1);
        let first = space.pages.min(disk_pages - at);
        let part = |page, at: u64, pages| Extent {
            page,
            lba: Lba(at << SECTORS_SHIFT),
            pages,
        };
        let rest = (space.pages - first).min(at);
        let all = [part(0, at, first), part(first, 0, rest)];
        all.into_iter().filter(|e| e.pages > 0).collect()
    };
    Placed {
        base: 0,
        shift: 0,
        end: 0,
        missing: 0,
        extents: spaces.iter().enumerate().map(extents).collect(),
    }
}

/// Do sorted extents cover a file from its first page on, without holes?
fn is_whole(extents: &[trace::Extent]) -> bool {
    let mut end = 0;
    extents.iter().all(|e| {
        let follows = e.logical == end;
        end = e.logical + e.pages;
        follows
    })
}

impl Placed {
    /// Adds the files that the layout has; the rest of a file that it has in part lies
    /// where its table puts it.
    fn add_to(&self, table: &mut FileTable, spaces: &[SpaceInfo]) -> Result<(), LayoutError> {
        for (n, (extents, space)) in self.extents.iter().zip(spaces).enumerate() {
            if extents.is_empty() {
                continue;
            }
            let index = table.add_extents(FileId(n as u64), extents)?;
            table.grow(index, space.pages)?;
        }
        Ok(())
    }

    fn describe(&self, path: &Path, files: usize) -> String {
        let mut text = format!("files lie where {} says", path.display());
        if self.base > 0 {
            text += &format!(", from its page {} on", self.base);
        }
        if self.shift > 0 {
            text += &format!(", moved by {} pages", self.shift);
        }
        if self.missing > 0 {
            text += &format!(
                "; {} of {files} files are not in it, or with holes, and lie one after another behind",
                self.missing
            );
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use piebald_trace::block::Space;

    use super::*;

    #[test]
    fn files_by_inode_begin_at_drawn_places_and_go_round_the_disk() {
        let space = |pages| SpaceInfo {
            trace: 0,
            space: Space::Ids,
            name: None,
            pages,
        };
        let pages = [1, 3, 700, 5000, 0, 40, 40, 40];
        let spaces: Vec<SpaceInfo> = pages.into_iter().map(space).collect();
        let disk = 1000;
        let starts = |seed| {
            let placed = by_inodes(&spaces, seed, disk);
            assert_eq!(placed.extents.len(), spaces.len());
            for (extents, space) in placed.extents.iter().zip(&spaces) {
                // All of a file up to the disk's size, without holes, on the disk.
                let sum: u64 = extents.iter().map(|e| e.pages).sum();
                assert_eq!(sum, space.pages.min(disk));
                let mut page = 0;
                for e in extents {
                    assert_eq!(e.page, page);
                    page += e.pages;
                    assert!((e.lba.0 >> SECTORS_SHIFT) + e.pages <= disk);
                }
                if let [first, second] = extents[..] {
                    let end = (first.lba.0 >> SECTORS_SHIFT) + first.pages;
                    assert_eq!((end, second.lba.0), (disk, 0));
                }
            }
            let firsts = placed.extents.iter().filter_map(|e| e.first());
            firsts.map(|e| e.lba.0).collect::<Vec<u64>>()
        };
        assert_eq!(starts(1), starts(1));
        assert_ne!(starts(1), starts(2));
        // 256 pages times a number, modulo 1000: multiples of 8 pages.
        assert!(starts(3).iter().all(|s| s % (8 << SECTORS_SHIFT) == 0));
        let distinct: std::collections::BTreeSet<u64> = starts(4).into_iter().collect();
        assert!(distinct.len() > 4, "{distinct:?}");
    }
}
