//! H-B3, beyond the paper's row: the arrivals and departures of H-14 with nothing told. HVR watches
//! the programs that come and go, and finds their classes.

use piebald_os_model::kernel::HvrEvent;
use piebald_policy::hvr::{Class, Policy};
use piebald_report::{Sample, TargetKind};
use piebald_sim::Outcome;
use piebald_units::Picos;
use rayon::prelude::*;

use super::{
    Given,
    arrivals::{
        Classes, Guest, SAMPLE, SAMPLES, guests, instructions, name_all, per_reference, run,
    },
    rows::Runs,
    ways::Way,
};
use crate::row::Row;

/// What times are divided by. Three windows of JOB2 take 12 to 120 ms whatever the scale; a sample is
/// 15 ms here, so that programs are known after some samples, as in the paper.
const SCALE: u64 = 200;

pub(super) const TITLE: &str = "Beyond: arrivals with classes that HVR finds";

const LINUX: (Way, Classes) = (Way::Linux, Classes::Told);
const FOUND: (Way, Classes) = (Way::Hvr, Classes::Found);
const ALL: [(&str, (Way, Classes)); 5] = [
    ("Linux", LINUX),
    ("HVR that finds classes", FOUND),
    ("HVR that is told", (Way::Hvr, Classes::Told)),
    ("cache-only", (Way::Fixed(Policy::CacheOnly), Classes::Told)),
    ("bank-only", (Way::Fixed(Policy::BankOnly8), Classes::Told)),
];

/// H-B3: what HVR gains at three scales, and what it knew. No verdict.
pub(super) fn found(runs: &Runs<'_>) -> Given {
    if runs.form.quick {
        return Err(
            "it is run in the full form: programs take tens of milliseconds to be known".to_owned(),
        );
    }
    let guests = guests(runs.bench.seed, |c| runs.of(c))
        .ok_or("a class has no program: no course can be drawn")?;
    let mut row = Row::new("H-B3", TITLE, TargetKind::G);
    name_all(runs, &mut row, &guests);
    show(runs, &mut row, &guests)?;
    Ok((vec![row.given()], Vec::new()))
}

/// # Errors
/// What ended a run.
fn show(runs: &Runs<'_>, row: &mut Row, guests: &[Guest]) -> Result<(), String> {
    let others = [SCALE * 2, SCALE / 2].map(|scale| (scale, &ALL[..2]));
    let all = [(SCALE, &ALL[..])].into_iter().chain(others);
    let keys: Vec<_> = all
        .flat_map(|(scale, ways)| ways.iter().map(move |way| (scale, *way)))
        .collect();
    let found: Result<Vec<Outcome>, String> = keys
        .par_iter()
        .with_max_len(1)
        .map(|(scale, (_, way))| run(runs, *way, guests, (0, *scale)))
        .collect();
    let mut linux: Option<(&Outcome, Vec<f64>)> = None;
    let found = found?;
    for ((scale, (name, way)), outcome) in keys.iter().zip(&found) {
        let every = Picos(SAMPLE.0 / scale);
        if *way == LINUX {
            // It comes first at each scale.
            linux = Some((outcome, per_reference(outcome)));
            let again: u32 = outcome.programs.iter().map(|p| p.restarts).sum();
            let name = format!("programs that began again under Linux, 1/{scale}");
            row.show(&name, &one(f64::from(again)), "programs");
            continue;
        }
        let Some((base, each)) = &linux else { continue };
        let [plain, _] = instructions(outcome, each, every);
        let [under, _] = instructions(base, each, every);
        let gains = plain.iter().zip(&under).map(|(a, b)| 100.0 * (a / b - 1.0));
        let mean = gains.sum::<f64>() / plain.len() as f64;
        row.show(
            &format!("{name}: over Linux, mean, 1/{scale}"),
            &one(mean),
            "%",
        );
        if *way == FOUND {
            knew(runs, row, guests, outcome, *scale);
        }
    }
    Ok(())
}

/// What HVR knew of the programs, and what watching them took.
fn knew(runs: &Runs<'_>, row: &mut Row, guests: &[Guest], outcome: &Outcome, scale: u64) {
    let until = Picos(SAMPLE.0 / scale * SAMPLES);
    let times = held_for(&outcome.hvr, guests.len(), until);
    let of = |of: fn(Option<Class>, Option<Class>) -> bool| -> f64 {
        let each = guests.iter().zip(&times).map(|(guest, times)| {
            let real = runs.class(guest.member);
            let mine = HELD.iter().zip(times).filter(|(held, _)| of(**held, real));
            mine.map(|(_, time)| time).sum::<f64>()
        });
        100.0 * each.sum::<f64>() / times.iter().flatten().sum::<f64>()
    };
    for (word, share) in [
        ("right", of(|held, real| held.is_some() && held == real)),
        ("otherwise", of(|held, real| held.is_some() && held != real)),
        ("not yet known", of(|held, _| held.is_none())),
    ] {
        let name = format!("share of programs' time that their class is {word}, 1/{scale}");
        row.show(&name, &one(share), "%");
    }
    let watched = 100.0 * outcome.sample_time.0 as f64 / until.0 as f64;
    let name = format!("time of a hardware thread that watching takes, 1/{scale}");
    row.show(&name, &one(watched), "%");
    let columns = ["divided by", "program", "measured"].map(str::to_owned);
    let held = HELD
        .iter()
        .map(|class| class.map_or("not known", Class::name));
    let columns = columns.into_iter().chain(held.map(str::to_owned));
    let each = guests.iter().zip(&times).map(|(guest, times)| {
        let all: f64 = times.iter().sum();
        let real = runs.class(guest.member).map_or("none", Class::name);
        let name = runs.bench.programs[guest.member.0].name.clone();
        let texts = [scale.to_string(), name, real.to_owned()];
        let shares = times
            .iter()
            .map(|time| format!("{:.0}", 100.0 * time / all));
        texts.into_iter().chain(shares).collect()
    });
    row.cases(
        "Share of its time that each program is held for what, in %",
        columns.collect(),
        each.collect(),
    );
}

/// What a program can be held for.
const HELD: [Option<Class>; 5] = [
    Some(Class::Ccf),
    Some(Class::Llcm),
    Some(Class::Llch),
    Some(Class::Llct),
    None,
];

fn one(value: f64) -> Result<Sample, String> {
    Ok(Sample::new(vec![value]))
}

/// How long each of so many programs is held for each of [`HELD`], in picoseconds.
fn held_for(events: &[HvrEvent], programs: usize, until: Picos) -> Vec<[f64; HELD.len()]> {
    let mut times = vec![[0.0; HELD.len()]; programs];
    let ends = events.iter().skip(1).map(|event| event.time);
    for (event, end) in events.iter().zip(ends.chain([until])) {
        let time = end.min(until).since(event.time).0 as f64;
        for (number, class, _) in &event.programs {
            // The kernel counts programs from one.
            let mine = times.get_mut(usize::from(*number).wrapping_sub(1));
            let at = HELD.iter().position(|held| held == class);
            if let (Some(mine), Some(at)) = (mine, at) {
                mine[at] += time;
            }
        }
    }
    times
}

#[cfg(test)]
mod tests {
    use piebald_os_model::kernel::What;
    use piebald_policy::hvr::Rule;
    use piebald_units::ColorSet;

    use super::*;

    #[test]
    fn what_programs_are_held_for_counts_from_event_to_event_and_to_the_end() {
        let event = |time: u64, programs: &[(u16, Option<Class>)]| HvrEvent {
            time: Picos(time),
            program: 1,
            what: What::Arrived,
            policy: Policy::BankOnly4,
            rule: Rule::Start,
            programs: (programs.iter())
                .map(|(number, class)| (*number, *class, ColorSet::default()))
                .collect(),
        };
        let (right, wrong) = (Some(Class::Llch), Some(Class::Ccf));
        let events = [
            event(0, &[(1, None)]),
            event(10, &[(1, None), (2, wrong)]),
            event(30, &[(1, right), (2, wrong)]),
            // After the end.
            event(90, &[(1, wrong)]),
        ];
        let times = held_for(&events, 2, Picos(50));
        assert_eq!(
            times,
            [[0.0, 0.0, 20.0, 0.0, 30.0], [40.0, 0.0, 0.0, 0.0, 0.0]]
        );
    }
}
