//! What single mixes did, beside rows of few mixes: which programs lost or gained.

use super::{mixes::Mix, rows::Runs, ways::Way};
use crate::row::Row;

/// Page faults for 1000 references that are worth a word: one for 50.
const MANY: f64 = 20.0;

/// A way in a word or two.
fn name(way: Way) -> String {
    match way {
        Way::Linux => "Linux".to_owned(),
        Way::Fixed(policy) => policy.to_string(),
        Way::Uvp => "UVP".to_owned(),
        Way::Coalescing => "baseline HVR".to_owned(),
        Way::Hvr => "HVR".to_owned(),
        Way::Cut(cut) => cut.name().to_owned(),
    }
}

/// Of each mix the speed of each program, in percent of its speed alone, under each way that was
/// run, with its page faults if it has many in its measured part; and the weighted speedups.
pub(super) fn tell(runs: &Runs<'_>, row: &mut Row, mixes: &[Mix], ways: &[Way]) {
    for mix in mixes {
        let known = ways.iter().filter_map(|way| {
            let found = runs.bench.relative(mix, *way);
            Some((*way, found.ok()?))
        });
        let (ways, all): (Vec<Way>, Vec<_>) = known.unzip();
        let mut rows: Vec<Vec<String>> = Vec::new();
        let named = |texts: [String; 3], speeds: Vec<String>| [texts.to_vec(), speeds].concat();
        let title = format!("{} {}", mix.name, mix.number);
        for (at, member) in mix.members.iter().enumerate() {
            let class = runs.class(*member).map_or("none", |c| c.name());
            let speeds = ways.iter().zip(&all).map(|(way, of)| {
                let speed = format!("{:.1}", 100.0 * of[at].mean);
                match runs.bench.faults(mix, *way) {
                    Ok(faults) if faults[at] >= MANY => {
                        format!("{speed} ({:.0} faults per 1000 references)", faults[at])
                    }
                    _ => speed,
                }
            });
            let name = runs.bench.programs[member.0].name.clone();
            let texts = [title.clone(), name, class.to_owned()];
            rows.push(named(texts, speeds.collect()));
        }
        let sums = all.iter().map(|of| {
            let sum: f64 = of.iter().map(|speed| speed.mean).sum();
            format!("{sum:.3}")
        });
        let texts = [title, "weighted speedup".to_owned(), String::new()];
        rows.push(named(texts, sums.collect()));
        let columns = ["mix", "program", "class"].map(str::to_owned);
        let ways = ways.iter().map(|way| name(*way));
        let columns = columns.into_iter().chain(ways).collect();
        row.cases("Speeds in % of the speed alone", columns, rows);
    }
}

#[cfg(test)]
mod tests {
    use piebald_policy::hvr::Policy;

    use super::*;
    use crate::hvr::today::Cut;

    #[test]
    fn ways_have_names_of_their_own() {
        let mut all: Vec<Way> = Policy::ALL.into_iter().map(Way::Fixed).collect();
        all.extend([Way::Linux, Way::Uvp, Way::Coalescing, Way::Hvr]);
        all.extend(Cut::ALL.map(Way::Cut));
        let mut names: Vec<String> = all.iter().map(|way| name(*way)).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all.len());
    }
}
