//! D-8 and D-9: tables 3 and 4, time by the sizes of bank and evicting section.

use std::collections::BTreeMap;

use piebald_report::{Predicate, Published, Target, Value};

use super::inputs::List;
use super::runs::{DULO, Runs, Wanted, seconds, sections};
use crate::verdict;

/// The sizes that the other table's rows and figure 4 are run with, in MB.
pub(super) const BANK_MB: u32 = 8;
pub(super) const EVICTING_MB: u32 = 64;

/// Banks among which the least time has to be, in MB.
const BEST_BANKS: [u32; 3] = [4, 8, 16];
/// Least fall of time from 32 to 64 MB of evicting section, in percent.
const KNEE: f64 = 5.0;
/// Largest change beyond 128 MB, and of tpc-h, in percent.
const FLAT: f64 = 5.0;

/// Table 3: seconds by bank, of tpc-h, glimpse, multi1 and multi2.
const TABLE3: [(u32, [f64; 4]); 6] = [
    (1, [16_325.0, 3652.0, 1732.0, 18_197.0]),
    (2, [16_115.0, 3611.0, 1703.0, 17_896.0]),
    (4, [15_522.0, 3392.0, 1465.0, 16_744.0]),
    (8, [15_698.0, 3392.0, 1483.0, 16_737.0]),
    (16, [15_853.0, 3412.0, 1502.0, 17_001.0]),
    (32, [15_954.0, 3452.0, 1542.0, 17_226.0]),
];
/// Table 4: seconds by evicting section; NaN where memory does not hold it.
const TABLE4: [(u32, [f64; 4]); 6] = [
    (32, [15_750.0, 3852.0, 1613.0, 18_716.0]),
    (64, [15_698.0, 3392.0, 1483.0, 16_737.0]),
    (128, [f64::NAN, 3382.0, 1406.0, 16_685.0]),
    (192, [f64::NAN, 3361.0, f64::NAN, 16_665.0]),
    (256, [f64::NAN, 3312.0, f64::NAN, 16_540.0]),
    (320, [f64::NAN, 3342.0, f64::NAN, 16_538.0]),
];
const COLUMNS: [&str; 4] = ["tpc-h", "glimpse", "multi1", "multi2"];

/// What is run of the tables.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub inputs: Vec<String>,
    pub banks: Vec<u32>,
    pub evictings: Vec<u32>,
}

/// The policy of a pair of sizes: that of figures 3 and 4 where the sizes are.
fn policy(bank: u32, evicting: u32) -> String {
    match (bank, evicting) {
        (BANK_MB, EVICTING_MB) => DULO.to_owned(),
        _ => sections(bank, evicting),
    }
}

fn printed(table: &[(u32, [f64; 4])], input: &str, mb: u32) -> Option<f64> {
    let column = COLUMNS.iter().position(|c| *c == input)?;
    let row = table.iter().find(|(size, _)| *size == mb)?;
    row.1.get(column).copied().filter(|v| v.is_finite())
}

/// Adds what the tables want of an input.
pub(super) fn want(plan: &Plan, list: &List, input: &str, wanted: &mut Wanted, rows: [bool; 2]) {
    let Some(memory) = list.sensitivity.inputs.get(input) else {
        return;
    };
    if rows == [false; 2] || !plan.inputs.iter().any(|i| i == input) {
        return;
    }
    let policies = wanted.entry(*memory).or_default();
    let [banks, evictings] = rows;
    if banks {
        policies.extend(plan.banks.iter().map(|b| policy(*b, EVICTING_MB)));
    }
    if evictings {
        let held = plan
            .evictings
            .iter()
            .filter(|e| printed(&TABLE4, input, **e).is_some());
        policies.extend(held.map(|e| policy(BANK_MB, *e)));
    }
}

/// Mean times of a table's column, by size.
fn column(
    runs: &Runs,
    list: &List,
    input: &str,
    sizes: &[u32],
    policy: impl Fn(u32) -> String,
) -> BTreeMap<u32, f64> {
    let memory = list.sensitivity.inputs.get(input).copied().unwrap_or(0);
    let mean = |mb: &u32| {
        let sample = runs.sample(input, memory, &policy(*mb), seconds)?;
        sample.is_known().then_some((*mb, sample.mean))
    };
    sizes.iter().filter_map(mean).collect()
}

/// Shows times in seconds, and over the one at a size in percent, beside the paper's.
fn show(
    t: &mut Target,
    table: &[(u32, [f64; 4])],
    input: &str,
    times: &BTreeMap<u32, f64>,
    to: u32,
    what: &str,
) {
    for (mb, time) in times {
        t.values.push(Value {
            name: format!("{input}: time with {what} of {mb} MB"),
            paper: printed(table, input, *mb).map_or(Published::Nothing, Published::Number),
            measured: Some(*time),
            ci95: None,
            unit: "s".to_owned(),
        });
    }
    let Some((base, paper_base)) = times.get(&to).copied().zip(printed(table, input, to)) else {
        return;
    };
    for (mb, time) in times {
        let paper = printed(table, input, *mb).map(|p| (1000.0 * p / paper_base).round() / 10.0);
        t.values.push(Value {
            name: format!("{input}: time with {what} of {mb} MB, over that with {to}"),
            paper: paper.map_or(Published::Nothing, Published::Number),
            measured: Some(100.0 * time / base),
            ci95: None,
            unit: "%".to_owned(),
        });
    }
}

fn holds(text: String, holds: bool) -> Predicate {
    Predicate {
        text,
        holds: Some(holds),
    }
}

/// What is stated of a column of table 3, as far as it was run.
fn banks(input: &str, times: &BTreeMap<u32, f64>) -> Vec<Predicate> {
    let mut all = Vec::new();
    let least = times.iter().min_by(|a, b| a.1.total_cmp(b.1));
    if let Some((mb, _)) = least.filter(|_| times.len() > 2) {
        let text = format!("{input}: the least time is at 4, 8 or 16 MB (at {mb})");
        all.push(holds(text, BEST_BANKS.contains(mb)));
    }
    for (small, large) in [(1, 2), (2, 4), (32, 8)] {
        if let Some((a, b)) = times.get(&small).zip(times.get(&large)) {
            let text = format!(
                "{input}: the time at {small} MB exceeds that at {large} ({:+.2} %)",
                100.0 * (a / b - 1.0)
            );
            all.push(holds(text, a > b));
        }
    }
    all
}

/// Fall of time from one size to another, in percent.
fn fall(times: &BTreeMap<u32, f64>, from: u32, to: u32) -> Option<f64> {
    Some(100.0 * (1.0 - times.get(&to)? / times.get(&from)?))
}

/// What is stated of a column of table 4, as far as it was run.
fn evictings(input: &str, times: &BTreeMap<u32, f64>) -> Vec<Predicate> {
    let mut all = Vec::new();
    let Some(first) = fall(times, 32, 64) else {
        return all;
    };
    if input == "tpc-h" {
        let text = format!(
            "tpc-h: from 32 to 64 MB time changes by less than 5 % ({:+.2})",
            -first
        );
        all.push(holds(text, first.abs() < FLAT));
        return all;
    }
    let text = format!("{input}: from 32 to 64 MB time falls by at least 5 % ({first:.2})");
    all.push(holds(text, first >= KNEE));
    if let Some(second) = fall(times, 64, 128) {
        let text = format!("{input}: by more than from 64 to 128 MB ({second:.2})");
        all.push(holds(text, first > second));
    }
    if let Some(rest) = fall(times, 128, 320).filter(|_| input != "multi1") {
        let text = format!(
            "{input}: from 128 to 320 MB it changes by less than 5 % ({:+.2})",
            -rest
        );
        all.push(holds(text, rest.abs() < FLAT));
    }
    all
}

/// Fills D-8 from the runs.
pub(super) fn fill_banks(t: &mut Target, runs: &Runs, list: &List, plan: &Plan) {
    for input in &plan.inputs {
        let times = column(runs, list, input, &plan.banks, |mb| policy(mb, EVICTING_MB));
        show(t, &TABLE3, input, &times, BANK_MB, "a bank");
        t.predicates.extend(banks(input, &times));
    }
    t.verdict = verdict::shape(&t.predicates);
}

/// Fills D-9 from the runs.
pub(super) fn fill_evictings(t: &mut Target, runs: &Runs, list: &List, plan: &Plan) {
    for input in &plan.inputs {
        let times = column(runs, list, input, &plan.evictings, |mb| policy(BANK_MB, mb));
        show(t, &TABLE4, input, &times, EVICTING_MB, "a section");
        t.predicates.extend(evictings(input, &times));
    }
    t.verdict = verdict::shape(&t.predicates);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paper(table: &[(u32, [f64; 4])], column: usize) -> BTreeMap<u32, f64> {
        let all = table.iter().map(|(mb, row)| (*mb, row[column]));
        all.filter(|(_, v)| v.is_finite()).collect()
    }

    #[test]
    fn the_papers_own_numbers_meet_what_is_stated_of_them() {
        for (n, input) in COLUMNS.into_iter().enumerate() {
            let mut all = banks(input, &paper(&TABLE3, n));
            assert_eq!(all.len(), 4, "{input}");
            all.extend(evictings(input, &paper(&TABLE4, n)));
            for p in all {
                assert_eq!(p.holds, Some(true), "{}", p.text);
            }
        }
        assert_eq!(evictings("multi2", &paper(&TABLE4, 3)).len(), 3);
    }

    #[test]
    fn flat_columns_meet_little() {
        let flat: BTreeMap<u32, f64> = TABLE3.iter().map(|(mb, _)| (*mb, 100.0)).collect();
        let all = banks("glimpse", &flat);
        assert!(all.iter().filter(|p| p.holds == Some(false)).count() >= 3);
        let flat: BTreeMap<u32, f64> = TABLE4.iter().map(|(mb, _)| (*mb, 100.0)).collect();
        assert_eq!(evictings("glimpse", &flat)[0].holds, Some(false));
        assert_eq!(evictings("tpc-h", &flat)[0].holds, Some(true));
        assert!(banks("glimpse", &BTreeMap::new()).is_empty());
    }
}
