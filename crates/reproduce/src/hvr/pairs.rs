//! Rows of mixes that are drawn by class: H-8, H-10, H-11, H-17 and H-20.

use piebald_policy::hvr::{Class, Policy};
use piebald_report::{Published, Sample, TargetKind};

use super::{
    Given,
    mixes::Mix,
    rows::Runs,
    told::tell,
    ways::{BUS, Way},
};
use crate::{
    row::{Found, Row, mean},
    verdict,
};

const CACHE: Way = Way::Fixed(Policy::CacheOnly);
const CURVE: Way = Way::Fixed(Policy::CurveVp);
/// All share an eighth of the cache, or the whole of it, by the coloured allocator.
const EIGHTH: Way = Way::Eighths(1);
const WHOLE: Way = Way::Eighths(8);
const NEEDY: [Class; 2] = [Class::Llch, Class::Llcm];

/// Mixes of some programs of each of these classes.
fn drawn(
    runs: &Runs<'_>,
    name: &'static str,
    count: u64,
    wanted: &[(&[Class], usize)],
) -> Vec<Mix> {
    let sets: Vec<(Vec<usize>, usize)> = wanted.iter().map(|(c, n)| (runs.of(c), *n)).collect();
    let sets: Vec<(&[usize], usize)> = sets.iter().map(|(s, n)| (s.as_slice(), *n)).collect();
    let mixes = (0..count).filter_map(|n| Mix::drawn((name, n), &sets));
    mixes.collect()
}

fn gains(runs: &Runs<'_>, mixes: &[Mix], way: Way) -> Vec<Found> {
    let gain = |m: &Mix| runs.bench.gain(m, way, Way::Linux, BUS);
    mixes.iter().map(gain).collect()
}

fn within(found: &[Found], percent: f64) -> Result<bool, String> {
    let all: Result<Vec<Sample>, String> = found.iter().cloned().collect();
    Ok(all?.iter().all(|s| s.mean.abs() <= percent))
}

/// H-8.
pub(super) fn few_classes(runs: &Runs<'_>) -> Given {
    let others = [Class::Llch, Class::Llcm, Class::Ccf];
    let without = drawn(
        runs,
        "H-8 without",
        runs.form.mixes(20, 1),
        &[(&NEEDY, 4), (&others, 4)],
    );
    let llct = drawn(
        runs,
        "H-8 LLCT",
        runs.form.mixes(10, 1),
        &[(&[Class::Llct], 4)],
    );
    let ccf = drawn(
        runs,
        "H-8 CCF",
        runs.form.mixes(10, 1),
        &[(&[Class::Ccf], 4)],
    );
    for mixes in [&without, &ccf] {
        runs.bench.prepare(mixes, &[Way::Linux, CACHE], BUS);
    }
    let shared = [Way::Linux, CACHE, WHOLE, EIGHTH, CURVE];
    runs.bench.prepare(&llct, &shared, BUS);
    let mut row = Row::new("H-8", "Section 5.2: mixes of few classes", TargetKind::S);
    let of = |mixes: &[Mix]| gains(runs, mixes, CACHE);
    row.show("cache-only without LLCT", &mean(&of(&without)), "%");
    row.show("cache-only, LLCT only", &mean(&of(&llct)), "%");
    row.show("cache-only, CCF only", &mean(&of(&ccf)), "%");
    for (name, way) in [
        ("LLCT that share an eighth of the cache", EIGHTH),
        ("LLCT that share all, by colors", WHOLE),
        (
            "LLCT that share an eighth, with a quarter of the banks (Curve-VP)",
            CURVE,
        ),
    ] {
        row.show(name, &mean(&gains(runs, &llct, way)), "%");
    }
    let losses = of(&without).into_iter().collect::<Result<Vec<_>, _>>();
    row.states(
        "cache-only loses in at least 80 % of the mixes without LLCT",
        losses.map(|all| all.iter().filter(|s| s.mean < 0.0).count() * 5 >= all.len() * 4),
    );
    row.states("it is within 1 % for LLCT only", within(&of(&llct), 1.0));
    row.states("and for CCF only", within(&of(&ccf), 1.0));
    row.states(
        "LLCT that share an eighth are within 2 % of sharing all",
        within(&gains(runs, &llct, EIGHTH), 2.0),
    );
    for mixes in [&without, &ccf] {
        tell(runs, &mut row, mixes, &[Way::Linux, CACHE]);
    }
    tell(runs, &mut row, &llct, &shared);
    Ok((vec![row.finish()], Vec::new()))
}

/// H-10.
pub(super) fn by_llct(runs: &Runs<'_>) -> Given {
    let names = ["H-10 one", "H-10 two", "H-10 three", "H-10 four"];
    let ways = [
        CACHE,
        CURVE,
        Way::Fixed(Policy::BankOnly8),
        Way::Fixed(Policy::CVp),
        Way::Linux,
    ];
    let mut found: Vec<[Found; 4]> = Vec::new();
    let mut row = Row::new("H-10", "Figure 15: 1 to 4 LLCT", TargetKind::H);
    for (llct, name) in (1..).zip(names) {
        let count = runs.form.mixes(20, 1);
        let mixes = drawn(
            runs,
            name,
            count,
            &[(&[Class::Llct], llct), (&NEEDY, 8 - llct)],
        );
        runs.bench.prepare(&mixes, &ways, BUS);
        tell(runs, &mut row, &mixes, &ways);
        let of = |way| mean(&gains(runs, &mixes, way));
        for (title, way) in ["cache-only", "Curve-VP", "bank-only", "C-VP"]
            .iter()
            .zip(ways)
        {
            row.show(&format!("{title} with {llct} LLCT"), &of(way), "%");
        }
        let over = mixes.iter().map(|m| runs.bench.gain(m, CURVE, CACHE, BUS));
        let over = mean(&over.collect::<Vec<_>>());
        found.push([of(CACHE), of(CURVE), over, of(ways[2])]);
    }
    row.headline("Curve-VP over Linux with 2 LLCT", 16.0, found[1][1].clone());
    row.headline(
        "Curve-VP over cache-only with 2 LLCT",
        4.0,
        found[1][2].clone(),
    );
    let one = || -> Result<bool, String> {
        let [cache, curve] = [found[0][0].clone()?.mean, found[0][1].clone()?.mean];
        let bank = found[0][3].clone()?.mean;
        Ok(cache > 0.0 && bank > 0.0 && curve > cache.max(bank))
    };
    row.states(
        "with 1 LLCT cache-only, bank-only and Curve-VP gain, and Curve-VP most",
        one(),
    );
    let equal = || within(&[found[2][2].clone(), found[3][2].clone()], 2.0);
    row.states("with 3 and 4 they are within 2 % of one another", equal());
    Ok((vec![row.finish()], Vec::new()))
}

/// H-11.
pub(super) fn four_and_four(runs: &Runs<'_>) -> Given {
    let mut row = Row::new(
        "H-11",
        "Figure 16: four LLCT and four others",
        TargetKind::S,
    );
    let named = |names: &[&str], class: Class| -> Vec<usize> {
        let all = (0..runs.bench.programs.len()).filter(|at| {
            names.contains(&runs.bench.programs[*at].name.as_str())
                && (class != Class::Llct || runs.bench.classes[*at] == Some(Class::Llct))
        });
        all.collect()
    };
    let mut llct = named(
        &["libquantum", "leslie3d", "fields", "lattice"],
        Class::Llct,
    );
    let more = runs
        .of(&[Class::Llct])
        .into_iter()
        .filter(|at| !llct.contains(at));
    let more: Vec<usize> = more.take(4 - llct.len()).collect();
    llct.extend(more);
    let others = named(&["omnetpp", "mcf", "soplex", "xalan"], Class::Llch);
    if llct.len() < 4 || others.len() < 4 {
        return Err("fewer than four programs of a kind".to_owned());
    }
    let members: Vec<(usize, u32)> = llct.iter().chain(&others).map(|at| (*at, 0)).collect();
    let mix = Mix {
        name: "H-11",
        number: 0,
        members,
    };
    runs.bench
        .prepare(std::slice::from_ref(&mix), &[Way::Linux, CACHE, CURVE], BUS);
    let ways = [Way::Linux, CACHE, CURVE];
    tell(runs, &mut row, std::slice::from_ref(&mix), &ways);
    let cache = runs.bench.relative(&mix, CACHE, BUS)?;
    let curve = runs.bench.relative(&mix, CURVE, BUS)?;
    let change: Vec<Found> = (0..8)
        .map(|i| crate::row::change(&cache[i], &curve[i]))
        .collect();
    for (found, member) in change.iter().zip(&mix.members) {
        let name = &runs.bench.programs[member.0].name;
        row.show(&format!("{name}: Curve-VP over cache-only"), found, "%");
    }
    let faster: Result<Vec<Sample>, String> = change[4..].iter().cloned().collect();
    row.states(
        "each of omnetpp, mcf, soplex and xalan is faster with Curve-VP than with cache-only",
        faster.map(|all| all.iter().all(|s| s.mean > 0.0)),
    );
    row.states(
        "the LLCT are slower on average",
        mean(&change[..4]).map(|s| s.mean < 0.0),
    );
    Ok((vec![row.finish()], Vec::new()))
}

/// Slowdown against alone under HVR of the programs of some classes, in percent.
fn slower(runs: &Runs<'_>, mixes: &[Mix], classes: &[Class]) -> Found {
    let mut all = Vec::new();
    for mix in mixes {
        let relative = runs.bench.relative(mix, Way::Hvr, BUS)?;
        for (member, found) in mix.members.iter().zip(relative) {
            if runs.class(*member).is_some_and(|c| classes.contains(&c)) {
                let slow = found.values.iter().map(|r| 100.0 * (1.0 / r - 1.0));
                all.push(Ok(slow.collect::<Sample>()));
            }
        }
    }
    mean(&all)
}

/// H-17.
pub(super) fn sharing(runs: &Runs<'_>) -> Given {
    let count = runs.form.mixes(10, 1);
    let ccf: &[Class] = &[Class::Ccf];
    let without = drawn(runs, "H-17 without", count, &[(ccf, 1), (&NEEDY, 3)]);
    let with = drawn(
        runs,
        "H-17 with",
        count,
        &[(ccf, 1), (&[Class::Llct], 1), (&NEEDY, 2)],
    );
    let many = drawn(runs, "H-17 many", count, &[(ccf, 5), (&NEEDY, 3)]);
    for mixes in [&without, &with, &many] {
        runs.bench.prepare(mixes, &[Way::Linux, Way::Hvr], BUS);
    }
    let mut row = Row::new("H-17", "Section 8: what CCF lose", TargetKind::H);
    let four = [without.clone(), with.clone()].concat();
    for (name, [low, high], found) in [
        ("CCF of 4 programs", [1.0, 3.0], slower(runs, &four, ccf)),
        (
            "LLCH and LLCM without LLCT",
            [5.0, 10.0],
            slower(runs, &without, &NEEDY),
        ),
        (
            "LLCH and LLCM with LLCT",
            [10.0, 40.0],
            slower(runs, &with, &NEEDY),
        ),
        (
            "CCF that dominate 8",
            [10.0, 30.0],
            slower(runs, &many, ccf),
        ),
    ] {
        let paper = Published::Text(format!("{low} to {high}"));
        row.judge(name, paper, found, "%", |s| verdict::range(low, high, s));
    }
    for mixes in [&without, &with, &many] {
        tell(runs, &mut row, mixes, &[Way::Linux, Way::Hvr]);
    }
    Ok((vec![row.finish()], Vec::new()))
}

/// H-20.
pub(super) fn workload_22(runs: &Runs<'_>) -> Given {
    let wanted: [(&[Class], usize); 3] = [
        (&[Class::Llct], 5),
        (&[Class::Llch], 2),
        (&[Class::Llcm], 1),
    ];
    let mixes = drawn(runs, "H-20", runs.form.mixes(5, 1), &wanted);
    let ways = [Way::Linux, Way::Svp, Way::Uvp, Way::Hvr];
    runs.bench.prepare(&mixes, &ways, BUS);
    let mut row = Row::new("H-20", "Section 7.3.1: workload 22'", TargetKind::H);
    let apart: Result<Vec<bool>, String> = mixes
        .iter()
        .map(|m| runs.bench.is_segregated(m, Way::Hvr, BUS))
        .collect();
    row.states(
        "HVR has all LLCT in one eighth of the cache, and nobody else there",
        apart.map(|all| all.iter().all(|a| *a)),
    );
    for (name, way) in [("SVP", Way::Svp), ("UVP", Way::Uvp)] {
        let lead: Vec<Found> = mixes
            .iter()
            .map(|m| runs.bench.gain(m, Way::Hvr, way, BUS))
            .collect();
        row.show(&format!("HVR over {name}"), &mean(&lead), "%");
        let all: Result<Vec<Sample>, String> = lead.into_iter().collect();
        row.states(
            format!("HVR is above {name} in each mix"),
            all.map(|all| all.iter().all(|s| s.mean > 0.0)),
        );
    }
    row.show("HVR over Linux", &mean(&gains(runs, &mixes, Way::Hvr)), "%");
    row.note(&format!("{} of 5 mixes", mixes.len()));
    tell(runs, &mut row, &mixes, &ways);
    Ok((vec![row.finish()], Vec::new()))
}
