//! What single mixes did, beside rows of few mixes: which programs lost or gained.

use super::{
    mixes::{BUS, Mix, Way},
    rows::Runs,
};
use crate::row::Row;

/// Rows of more mixes than this say nothing of single ones, except where each is named by itself.
const MOST: usize = 4;

/// Page faults for 1000 references that are worth a word: one for 50.
const MANY: f64 = 20.0;

/// A way in a word or two.
fn named(way: Way) -> String {
    match way {
        Way::Linux => "Linux".to_owned(),
        Way::Fixed(policy) => policy.to_string(),
        Way::Among(policy) => format!("{policy} among threads"),
        Way::Svp => "SVP".to_owned(),
        Way::Uvp => "UVP".to_owned(),
        Way::Coalescing => "baseline HVR".to_owned(),
        Way::Hvr => "HVR".to_owned(),
        Way::Cut(cut) => cut.name().to_owned(),
    }
}

/// Notes of each mix the speed of each program, in percent of its speed alone, under each way that
/// was run, in the order in which they are named; its page faults if it has many in its measured
/// part; and the weighted speedups.
pub(super) fn tell(runs: &Runs<'_>, row: &mut Row, mixes: &[Mix], ways: &[Way]) {
    if mixes.len() > MOST {
        return;
    }
    for mix in mixes {
        let known = ways.iter().filter_map(|way| {
            let found = runs.bench.relative(mix, *way, BUS);
            Some((*way, found.ok()?))
        });
        let (ways, all): (Vec<Way>, Vec<_>) = known.unzip();
        let each = mix.members.iter().enumerate().map(|(at, member)| {
            let class = runs.class(*member).map_or("none", |c| c.name());
            let speeds = ways.iter().zip(&all).map(|(way, of)| {
                let speed = format!("{:.1}", 100.0 * of[at].mean);
                match runs.bench.faults(mix, *way, BUS) {
                    Ok(faults) if faults[at] >= MANY => {
                        format!("{speed} ({:.0} faults per 1000 references)", faults[at])
                    }
                    _ => speed,
                }
            });
            let speeds: Vec<String> = speeds.collect();
            let name = &runs.bench.programs[member.0].name;
            format!("{name} ({class}) {}", speeds.join(" "))
        });
        let each: Vec<String> = each.collect();
        let sums = all.iter().map(|of| {
            let sum: f64 = of.iter().map(|speed| speed.mean).sum();
            format!("{sum:.3}")
        });
        let sums: Vec<String> = sums.collect();
        let ways: Vec<String> = ways.iter().map(|way| named(*way)).collect();
        row.note(&format!(
            "{} {}, speed in % of alone under {}: {}, weighted speedup {}",
            mix.name,
            mix.number,
            ways.join(", "),
            each.join(", "),
            sums.join(" ")
        ));
    }
}

#[cfg(test)]
mod tests {
    use piebald_lab::rooms::policy::hvr::Policy;

    use super::*;
    use crate::hvr::today::Cut;

    #[test]
    fn ways_have_names_of_their_own() {
        let mut all: Vec<Way> = Policy::ALL.into_iter().map(Way::Fixed).collect();
        all.extend([Way::Linux, Way::Svp, Way::Uvp, Way::Coalescing, Way::Hvr]);
        all.extend(Cut::ALL.map(Way::Cut));
        let mut names: Vec<String> = all.iter().map(|way| named(*way)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
