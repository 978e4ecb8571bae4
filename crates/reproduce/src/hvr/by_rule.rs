//! What each way gains in the mixes that a rule speaks of, as a table beside H-6.

use piebald_report::Sample;

use super::mixes::Mix;
use crate::row::Row;

/// A mix with what is asked of it: the rule of 1 to 3 that speaks of it, and what each way gains over
/// Linux, in percent, in the order of the table; none for a way that it was not run under.
pub(super) struct Gained<'m> {
    pub mix: &'m Mix,
    pub rule: Option<usize>,
    pub gains: Vec<Option<f64>>,
}

/// Mixes of a table's row.
struct Group {
    name: String,
    /// Of so many programs only.
    size: Option<usize>,
    /// Of this rule only, or of none.
    rule: Option<Option<usize>>,
}

impl Group {
    fn has(&self, mix: &Gained<'_>) -> bool {
        self.size.is_none_or(|size| mix.mix.members.len() == size)
            && self.rule.is_none_or(|rule| mix.rule == rule)
    }
}

/// All mixes, those of each size, those of each rule and size, and those that no rule speaks of.
fn groups() -> Vec<Group> {
    let group = |name: String, size, rule| Group { name, size, rule };
    let mut all = vec![group("all".to_owned(), None, None)];
    for size in [4, 8] {
        all.push(group(format!("of {size} programs"), Some(size), None));
    }
    for rule in 1..=3 {
        for size in [4, 8] {
            let name = format!("rule {rule}, of {size}");
            all.push(group(name, Some(size), Some(Some(rule))));
        }
    }
    all.push(group("no rule".to_owned(), None, Some(None)));
    all
}

/// The mean, with its 95 % interval over mixes if there are several.
fn cell(gains: Vec<f64>) -> String {
    let gains = Sample::new(gains);
    match (gains.values.is_empty(), gains.ci95) {
        (true, _) => "-".to_owned(),
        (_, Some(half)) => format!("{:.1} ± {half:.1}", gains.mean),
        _ => format!("{:.1}", gains.mean),
    }
}

/// Adds the table; rows without mixes are left out, and so are ways that not all mixes of a row were
/// run under.
pub(super) fn show(row: &mut Row, ways: &[&str], mixes: &[Gained<'_>]) {
    let mut rows = Vec::new();
    for group in groups() {
        let mine: Vec<&Gained<'_>> = mixes.iter().filter(|m| group.has(m)).collect();
        if mine.is_empty() {
            continue;
        }
        let cells = (0..ways.len()).map(|at| {
            let all: Option<Vec<f64>> = mine.iter().map(|m| m.gains[at]).collect();
            cell(all.unwrap_or_default())
        });
        let head = [group.name, mine.len().to_string()];
        rows.push(head.into_iter().chain(cells).collect());
    }
    let columns = ["mixes", ""].iter().chain(ways);
    let title = "Mean gains over Linux in % (95 % interval over mixes)";
    row.cases(
        title,
        columns.map(|name| (*name).to_owned()).collect(),
        rows,
    );
}

#[cfg(test)]
mod tests {
    use piebald_report::TargetKind;

    use super::*;

    fn mix(size: usize) -> Mix {
        Mix {
            name: "t",
            number: 0,
            members: (0..size).map(|at| (at, 0)).collect(),
        }
    }

    #[test]
    fn mixes_stand_in_the_rows_of_their_size_and_of_their_rule() {
        let (four, eight) = (mix(4), mix(8));
        let gained = |mix, rule, first, second| Gained {
            mix,
            rule,
            gains: vec![Some(first), second],
        };
        let all = [
            gained(&four, Some(1), 1.0, Some(2.0)),
            gained(&eight, Some(1), -4.0, None),
            gained(&four, None, 6.0, Some(-3.0)),
        ];
        let mut row = Row::new("H-6", "t", TargetKind::G);
        show(&mut row, &["a", "b"], &all);
        let tables = row.given().tables;
        assert_eq!(tables[0].columns, ["mixes", "", "a", "b"]);
        let rows: Vec<String> = tables[0].rows.iter().map(|r| r.join(" | ")).collect();
        assert_eq!(
            rows,
            [
                "all | 3 | 1.0 ± 12.4 | -",
                "of 4 programs | 2 | 3.5 ± 31.8 | -0.5 ± 31.8",
                "of 8 programs | 1 | -4.0 | -",
                "rule 1, of 4 | 1 | 1.0 | 2.0",
                "rule 1, of 8 | 1 | -4.0 | -",
                "no rule | 1 | 6.0 | -3.0",
            ]
        );
    }
}
