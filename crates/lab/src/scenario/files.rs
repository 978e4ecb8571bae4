//! The table `[files]`: a disk, and one memory for files and programs.

use piebald_sim::{
    Files,
    rooms::{
        hw::{disk, spec::MachineSpec},
        os_model::{
            file::Layout,
            replace::{
                PolicySpec,
                registry::{self, BuildError, Setup, Visitor},
            },
        },
        policy::{contract::replacement::Replacement, srm},
    },
};
use piebald_units::{Bytes, Lba, block::SECTORS_SHIFT};
use toml::Spanned;

use super::{Policy, ScenarioError, Source, file};
use crate::{
    colors, near,
    replay::{READAHEADS, SCHEDULERS, kernel},
};

/// The policy of scenarios that do not name one: the kernel of Rainbow's and SRM's time.
const REPLACE: &str = "linux-2.6.30";
/// The drive of the papers' time that the presets have.
const DEVICE: &str = "wd400bb";
/// Swap space if the scenario does not say.
const SWAP: Bytes = Bytes(1 << 30);
/// Pages of a capacity that a policy is tried with, so that its options are checked.
const TRIED_PAGES: u32 = 1 << 14;

/// Reads the table; without one, there is no disk.
pub(super) fn files(
    file: &file::File,
    source: &Source<'_>,
) -> Result<Option<Files>, ScenarioError> {
    let Some(table) = &file.files else {
        return Ok(None);
    };
    let table = table.get_ref();
    let disk = match &table.device {
        None => disk::by_name(DEVICE).map_err(|e| source.error(0, e.to_string()))?,
        Some(name) => disk::by_name(name.get_ref()).map_err(|_| {
            let allowed = disk::presets().collect::<Vec<_>>().join(", ");
            source.refuse(
                name,
                "files.device",
                format!("\"{}\"", name.get_ref()),
                allowed,
            )
        })?,
    };
    let readaheads = names(&READAHEADS, "2.6.30");
    let readahead = source.choose(&table.readahead, "files.readahead", &readaheads)?;
    let schedulers = names(&SCHEDULERS, "deadline");
    let scheduler = source.choose(&table.scheduler, "files.scheduler", &schedulers)?;
    let config = kernel(readahead, scheduler, &disk).map_err(|e| source.error(0, e.to_string()))?;
    let pages = |bytes: Bytes| u32::try_from(bytes.0 >> 12).ok();
    let swap = match &table.swap {
        None => SWAP.0 as u32 >> 12,
        Some(size) => {
            let bytes = size.get_ref().0;
            let whole = pages(bytes).filter(|n| *n != 1 && bytes.0.is_multiple_of(4096));
            whole.ok_or_else(|| {
                let allowed = "0B, or a multiple of 4KiB from 8KiB to 16TiB - 4KiB";
                source.refuse(size, "files.swap", bytes, allowed)
            })?
        }
    };
    let layout = layout(table, source, file.seed, &disk, swap)?;
    let files = Files {
        replace: replace(&table.replace, source, "files.replace")?
            .unwrap_or_else(|| PolicySpec::plain(REPLACE)),
        config,
        layout,
        disk,
        swap_pages: swap,
        reserve: None,
        zone: None,
    };
    Ok(Some(files))
}

/// The names of a table with the default in front, as choices.
fn names<T>(table: &[(&'static str, T)], default: &str) -> Vec<(&'static str, &'static str)> {
    let mut names: Vec<_> = table.iter().map(|(name, _)| (*name, *name)).collect();
    names.sort_by_key(|(name, _)| *name != default);
    names
}

fn layout(
    table: &file::FilesTable,
    source: &Source<'_>,
    seed: u64,
    spec: &disk::DiskSpec,
    swap: u32,
) -> Result<Layout, ScenarioError> {
    let whole = disk::Disk::new(spec).map_err(|e| source.error(0, format!("files.device: {e}")))?;
    let disk_pages = whole.capacity_sectors() >> SECTORS_SHIFT;
    let room = disk_pages.checked_sub(swap.into()).filter(|n| *n > 0);
    let Some(capacity_pages) = room else {
        let problem = format!("files.swap: {swap} pages: the device has {disk_pages}");
        return Err(source.error(0, problem));
    };
    let layouts = [
        (
            "packed",
            Layout::Packed {
                start: Lba(0),
                gap_pages: 0,
            },
        ),
        (
            "slots",
            Layout::Slots {
                slot_sectors: 2048,
                capacity_sectors: capacity_pages << SECTORS_SHIFT,
            },
        ),
        (
            "scatter",
            Layout::Scatter {
                seed,
                capacity_pages,
            },
        ),
    ];
    source.choose(&table.layout, "files.layout", &layouts)
}

struct Tried;

impl Visitor for Tried {
    type Out = ();

    fn visit<P: Replacement + Clone + Send + Sync + 'static>(self, _: P) {}
}

/// The policy of a key; `None` if it is not given.
pub(super) fn replace(
    value: &Option<Spanned<String>>,
    source: &Source<'_>,
    key: &str,
) -> Result<Option<PolicySpec>, ScenarioError> {
    let Some(value) = value else {
        return Ok(None);
    };
    let text = value.get_ref();
    let refuse = |e: String| source.error(value.span().start, format!("{key} = \"{text}\": {e}"));
    let spec: PolicySpec = text
        .parse()
        .map_err(|e: piebald_sim::rooms::os_model::replace::SpecError| refuse(e.to_string()))?;
    if spec.name() == "min" {
        return Err(refuse(
            "it needs the future; allowed: any other policy".to_owned(),
        ));
    }
    let setup = Setup::new(TRIED_PAGES);
    let costs = vec![1u32; 128];
    let built: Result<(), BuildError> = registry::build_spec(&spec, &setup, Some(&costs), Tried);
    built.map_err(|e| refuse(format!("{e}{}", near::policy(&e))))?;
    Ok(Some(spec))
}

/// What an option of SRM-buffer changes.
type Set = fn(&mut srm::Config, u32);

/// SRM-buffer's options.
const ZONE_OPTIONS: [(&str, Set); 3] = [
    ("threshold", |config, n| config.threshold = n),
    ("max_pages", |config, n| config.max_pages = Some(n)),
    ("idle_after", |config, n| config.idle_after = Some(n.into())),
];

/// SRM-buffer of a policy, `srm` or `srm:threshold=128,...`; whether it fits the memory is
/// seen when the machine is known.
pub(super) fn zone(
    table: &file::PolicyTable,
    source: &Source<'_>,
    key: &str,
    has_files: bool,
) -> Result<Option<srm::Config>, ScenarioError> {
    let Some(value) = &table.files else {
        return Ok(None);
    };
    let text = value.get_ref();
    let refuse = |allowed: &str| source.refuse(value, key, format!("\"{text}\""), allowed);
    if text == "none" {
        return Ok(None);
    }
    let options = ZONE_OPTIONS.map(|(name, _)| name).join(", ");
    let allowed = format!("\"none\", \"srm\", or \"srm:OPTION=NUMBER,...\" with {options}");
    let spec: PolicySpec = text.parse().map_err(|_| refuse(&allowed))?;
    if spec.name() != "srm" {
        return Err(refuse(&allowed));
    }
    if !has_files {
        return Err(refuse("\"none\" without a table [files]"));
    }
    let mut config = srm::Config::PAPER;
    for (name, value) in spec.options() {
        let option = ZONE_OPTIONS.iter().find(|(known, _)| *known == name);
        match (option, value.parse()) {
            (Some((_, set)), Ok(number)) => set(&mut config, number),
            _ => return Err(refuse(&allowed)),
        }
    }
    Ok(Some(config))
}

/// Checks that the zone of policy `i` fits the machine.
pub(super) fn check_zone(
    file: &file::File,
    source: &Source<'_>,
    machine: &MachineSpec,
    policies: &[Policy],
) -> Result<(), ScenarioError> {
    for (i, policy) in policies.iter().enumerate() {
        let (Some(config), Some(table)) = (policy.files, file.policy.get(i)) else {
            continue;
        };
        let at = table.get_ref().files.as_ref().map_or(0, |v| v.span().start);
        let refuse = |why: String| source.error(at, format!("policy[{i}].files: {why}"));
        let map = colors::zone_map(machine, policy).map_err(refuse)?;
        let frames = machine.memory.size.0 >> 12;
        let limits = config.limits(frames, map.colors());
        limits.map_err(|why| refuse(why.to_string()))?;
    }
    Ok(())
}
