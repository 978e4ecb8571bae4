//! The disk of an experiment, as the model runs it.

use piebald_experiment::{self as experiment, KeyPath, LayoutRule, Problem, Words};
use piebald_hw::{
    disk::{self, DiskSpec},
    nearest::did_you_mean,
    spec::MachineSpec,
};
use piebald_os_model::{
    file::Layout,
    replace::{
        PolicySpec, SpecError,
        registry::{self, BuildError, Setup, Visitor},
    },
};
use piebald_policy::contract::replacement::Replacement;
use piebald_sim::Files;
use piebald_units::{Bytes, Lba, block::SECTORS_SHIFT};

use super::Policy;
use crate::{colors, near, replay::kernel};

/// Pages of a capacity that a policy is tried with, so that its options are checked.
const TRIED_PAGES: u32 = 1 << 14;

/// The disk and the memory that a table asks for.
pub(super) fn files(table: &experiment::Files, seed: u64) -> Result<Files, Problem> {
    let at = KeyPath::of("files");
    let disk = disk::by_name(&table.device).map_err(|_| {
        let known = disk::presets().collect::<Vec<_>>().join(", ");
        let allowed = known + &did_you_mean(&table.device, disk::presets());
        Problem::refuse(at.key("device"), format!("\"{}\"", table.device), allowed)
    })?;
    let config = kernel(table.readahead.word(), table.scheduler.word(), &disk)
        .map_err(|e| Problem::at(at.clone(), e.to_string()))?;
    let swap_pages = swap(table.swap.0, &at)?;
    Ok(Files {
        replace: replacement(&table.replace, &at.key("replace"))?,
        config,
        layout: layout(&table.layout, seed, &disk, swap_pages, &at)?,
        disk,
        swap_pages,
        zone: None,
    })
}

pub(crate) fn swap(size: Bytes, at: &KeyPath) -> Result<u32, Problem> {
    let pages = u32::try_from(size.0 >> 12).ok();
    let pages = pages.filter(|n| *n != 1 && size.0.is_multiple_of(4096));
    pages.ok_or_else(|| {
        let allowed = "0B, or a multiple of 4KiB from 8KiB to 16TiB - 4KiB";
        Problem::refuse(at.key("swap"), size, allowed)
    })
}

fn layout(
    rule: &LayoutRule,
    seed: u64,
    spec: &DiskSpec,
    swap: u32,
    at: &KeyPath,
) -> Result<Layout, Problem> {
    let whole = disk::Disk::new(spec).map_err(|e| Problem::at(at.key("device"), e.to_string()))?;
    let disk_pages = whole.capacity_sectors() >> SECTORS_SHIFT;
    let room = disk_pages.checked_sub(swap.into()).filter(|n| *n > 0);
    let Some(capacity_pages) = room else {
        let says = format!("{swap} pages: the device has {disk_pages}");
        return Err(Problem::at(at.key("swap"), says));
    };
    Ok(match rule {
        // The others are refused where the file is read.
        LayoutRule::Packed
        | LayoutRule::Auto
        | LayoutRule::Inodes
        | LayoutRule::FirstTouch
        | LayoutRule::File(_) => Layout::Packed {
            start: Lba(0),
            gap_pages: 0,
        },
        LayoutRule::Slots => Layout::Slots {
            slot_sectors: 2048,
            capacity_sectors: capacity_pages << SECTORS_SHIFT,
        },
        LayoutRule::Scatter => Layout::Scatter {
            seed,
            capacity_pages,
        },
    })
}

struct Tried;

impl Visitor for Tried {
    type Out = ();

    fn visit<P: Replacement + Clone + Send + Sync + 'static>(self, _: P) {}
}

/// The replacement policy that a key names.
pub(super) fn replacement(text: &str, path: &KeyPath) -> Result<PolicySpec, Problem> {
    let refuse = |says: String| Problem {
        path: path.clone(),
        value: Some(format!("\"{text}\"")),
        says,
    };
    let spec: PolicySpec = text.parse().map_err(|e: SpecError| refuse(e.to_string()))?;
    if spec.name() == "min" {
        let says = "it needs the future; allowed: any other policy";
        return Err(refuse(says.to_owned()));
    }
    let setup = Setup::new(TRIED_PAGES);
    let costs = vec![1u32; 128];
    let built: Result<(), BuildError> = registry::build_spec(&spec, &setup, Some(&costs), Tried);
    built.map_err(|e| refuse(format!("{e}{}", near::policy(&e))))?;
    Ok(spec)
}

/// Checks that SRM-buffer's zone of a policy fits the machine.
pub(super) fn check_zone(
    policy: &Policy,
    (machine, memory): (&MachineSpec, Option<Bytes>),
    at: &KeyPath,
) -> Result<(), Problem> {
    let Some(config) = policy.files else {
        return Ok(());
    };
    let refuse = |says: String| Problem::at(at.key("files"), says);
    let map = colors::zone_map(machine, policy).map_err(refuse)?;
    let frames = memory.unwrap_or(machine.memory.size).0 >> 12;
    let limits = config.limits(frames, map.colors());
    limits.map(|_| ()).map_err(|why| refuse(why.to_string()))
}
