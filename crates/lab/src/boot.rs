//! The kernel of a run, from what a policy says.

use piebald_experiment::{Frames, MemoryState};
use piebald_hw::spec::MachineSpec;
use piebald_os_model::kernel::SysMonConfig;
use piebald_sim::{Boot, Files, FrameRule, Managed, Zone};
use piebald_units::ColorSet;

use crate::{
    colors::{map_of, zone_map},
    drawn::Repetition,
    scenario::{Policy, Scenario},
};

/// The kernel under a policy, of a repetition's draws, in which these colors are held.
///
/// # Errors
/// The machine has no colors that the policy could use, in words.
pub(crate) fn boot(
    scenario: &Scenario,
    policy: &Policy,
    draw: Repetition,
    held: Vec<ColorSet>,
) -> Result<Boot, String> {
    Ok(Boot {
        memory: scenario.memory,
        frames: frames(&scenario.machine, policy, draw)?,
        aged: (policy.memory == MemoryState::Aged).then(|| draw.memory()),
        thp: policy.thp,
        tick: policy.tick,
        files: files(scenario, policy)?,
        held,
    })
}

fn frames(spec: &MachineSpec, policy: &Policy, draw: Repetition) -> Result<FrameRule, String> {
    Ok(match policy.frames {
        Frames::Stock => FrameRule::Stock,
        Frames::Random => FrameRule::Random(draw.of(4)),
        Frames::BinHopping => FrameRule::BinHopping(page_colors(spec).min(1024)),
        Frames::PageColoring => FrameRule::PageColoring(map_of(spec, policy)?),
        Frames::Rainbow | Frames::Uvp => FrameRule::Owned(map_of(spec, policy)?),
        Frames::Hvr => {
            let map = map_of(spec, policy)?;
            let Some(hvr) = policy.hvr else {
                return Ok(FrameRule::Owned(map));
            };
            let seed = draw.watching();
            FrameRule::Managed(Box::new(Managed {
                map,
                config: hvr.config,
                sysmon: hvr.sysmon.map(|sysmon| SysMonConfig { seed, ..sysmon }),
            }))
        }
    })
}

/// The files of a scenario as a policy has them.
fn files(scenario: &Scenario, policy: &Policy) -> Result<Option<Files>, String> {
    let Some(files) = &scenario.files else {
        return Ok(None);
    };
    let map = (policy.files).map(|_| zone_map(&scenario.machine, policy));
    let zone = map.transpose()?.zip(policy.files);
    Ok(Some(Files {
        replace: policy.replace.clone().unwrap_or(files.replace.clone()),
        zone: zone.map(|(map, config)| Zone { map, config }),
        ..files.clone()
    }))
}

/// Page colors of the last level: set bits above the page offset.
fn page_colors(spec: &MachineSpec) -> u16 {
    let cache = spec.last_level();
    let sets = cache.size.0 / 64 / u64::from(cache.ways);
    (sets / 64).clamp(1, 4096) as u16
}
