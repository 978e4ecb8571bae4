//! From the lines that the last level held to the picture of who had which sets.

use piebald_experiment::Policy;
use piebald_qemu::system::{held::LastLevel, results::Results};
use piebald_report::SetMap;

use crate::scenario::{Scenario, vcpu};

/// Who held which sets of the last level that the target's processor has, over the whole boot;
/// `None` if nothing was sampled.
pub(crate) fn set_map(
    scenario: &Scenario,
    policy: &Policy,
    together: bool,
    results: &Results,
) -> Option<SetMap> {
    let target = scenario.target();
    let shares_it = |level: &&LastLevel| level.vcpus.contains(&vcpu(target));
    let level = results.last_levels.iter().find(shares_it)?;
    let ranges = level.samples.first()?.lines.len();
    let capacity = f64::from(level.lines) / ranges.max(1) as f64;
    // What a processor without a program brings in is the kernel's.
    let mut owners = vec!["empty".to_owned(), "kernel".to_owned()];
    let mut of_vcpu = vec![1usize; usize::from(scenario.vcpus())];
    let running = scenario
        .experiment
        .program
        .iter()
        .filter(|p| together || p.name() == target.name());
    for program in running {
        let place = of_vcpu.get_mut(usize::from(vcpu(program)))?;
        match *place {
            1 => {
                *place = owners.len();
                owners.push(program.name().into_owned());
            }
            shared => {
                owners[shared].push_str(" + ");
                owners[shared].push_str(&program.name());
            }
        }
    }
    let share = |lines: f64| (255.0 * lines / capacity).round().clamp(0.0, 255.0) as u8;
    let mut shares = Vec::new();
    for sample in &level.samples {
        if sample.lines.len() != ranges {
            return None;
        }
        for range in &sample.lines {
            let mut held = vec![0.0; owners.len()];
            for (vcpu, lines) in range.iter().enumerate() {
                let owner = of_vcpu.get(vcpu).copied().unwrap_or(1);
                held[owner] += f64::from(*lines);
            }
            held[0] = (capacity - held.iter().sum::<f64>()).max(0.0);
            shares.extend(held.into_iter().map(share));
        }
    }
    let caches = &scenario.machine.cache;
    let last = caches.iter().max_by_key(|cache| cache.level)?;
    Some(SetMap {
        policy: policy.name.clone(),
        cache: last.name.clone(),
        place: (!together).then(|| format!("{} alone", target.name())),
        nr_sets: level.sets,
        nr_groups: ranges as u32,
        owners,
        times_ps: level.samples.iter().map(|s| s.time_ps).collect(),
        shares,
        speeds: Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use piebald_qemu::system::held::HeldAt;

    use super::*;

    fn scenario() -> Scenario {
        let text = r#"
            schema = 1
            [machine]
            preset = "w3540"
            [guest]
            vcpus = 3
            [[program]]
            name = "sort"
            command = ["mergesort", "1024", "1"]
            vcpu = 1
            [[program]]
            name = "scan"
            command = ["scan", "/data/a", "1"]
            vcpu = 0
            role = "polluter"
            [[policy]]
            name = "stock"
        "#;
        Scenario::parse(text, Path::new("guest.toml")).expect("a scenario")
    }

    fn results(lines: Vec<Vec<u32>>) -> Results {
        let level = LastLevel {
            vcpus: vec![0, 1, 2],
            sets: 128,
            lines: 1024,
            samples: vec![HeldAt { time_ps: 7, lines }],
        };
        Results {
            last_levels: vec![level],
            ..crate::study::tests::results()
        }
    }

    #[test]
    fn lines_are_those_of_the_programs_on_a_processor() {
        let scenario = scenario();
        let results = results(vec![vec![512, 0, 0], vec![128, 256, 64]]);
        let map = set_map(&scenario, &scenario.policies()[0], true, &results).expect("a map");
        assert_eq!(map.owners, ["empty", "kernel", "sort", "scan"]);
        assert_eq!((map.nr_sets, map.nr_groups), (128, 2));
        assert_eq!(map.times_ps, [7]);
        let share = |group, owner| map.share(0, group, owner).map(|s| (s * 8.0).round());
        let of = |group| (0..4).map(|owner| share(group, owner)).collect::<Vec<_>>();
        assert_eq!(of(0), [Some(0.0), Some(0.0), Some(0.0), Some(8.0)]);
        assert_eq!(of(1), [Some(1.0), Some(1.0), Some(4.0), Some(2.0)]);
        // Alone, what the other processor holds is the kernel's.
        let alone = set_map(&scenario, &scenario.policies()[0], false, &results).expect("a map");
        assert_eq!(alone.owners, ["empty", "kernel", "sort"]);
        assert_eq!(alone.share(0, 0, 1), Some(1.0));
    }

    #[test]
    fn what_was_not_sampled_gives_no_map() {
        let scenario = scenario();
        let mut results = results(vec![vec![1, 1, 1]; 2]);
        let policy = &scenario.policies()[0];
        results.last_levels[0].samples.push(HeldAt::default());
        assert!(set_map(&scenario, policy, true, &results).is_none());
        results.last_levels[0].samples.clear();
        assert!(set_map(&scenario, policy, true, &results).is_none());
        results.last_levels.clear();
        assert!(set_map(&scenario, policy, true, &results).is_none());
    }
}
