//! Slowdowns that may not be claimed are marked alike in every output.

use piebald_report::{Sample, Study, TableStyle, to_csv, to_html, to_json, to_table};

use crate::common::sample_study;

/// A study of which one slowdown may be claimed and one may not.
fn half_claimed() -> Study {
    let mut study = sample_study();
    // One target never changes in a way that is told from chance.
    for policy in &mut study.policies {
        let n = policy.programs[0].alone.time_ps.n();
        let wild = (0..n).map(|i| if i % 2 == 0 { 0.4 } else { -0.39 });
        policy.programs[0].slowdown = Some(Sample::new(wild.collect()));
    }
    study
}

#[test]
fn table_html_and_csv_mark_the_same_slowdowns() {
    let study = half_claimed();
    let (first, programs) = (&study.policies[0].name, &study.policies[0].programs);
    let csv = to_csv(&study).unwrap();
    let verdict = |program: &str| {
        let start = format!("{first},{program},target,together,slowdown,");
        let line = csv.lines().find(|l| l.starts_with(&start)).expect("a line");
        line.rsplit(',').next().expect("a verdict").to_owned()
    };
    let (refused, claimed) = (&programs[0].name, &programs[1].name);
    assert_eq!(verdict(refused), "it cannot be told from chance");
    assert_eq!(verdict(claimed), "shown");
    let remark = "(a) no change of speed is claimed: it cannot be told from chance.";
    // JSON names the condition that is not met.
    let json: serde_json::Value = serde_json::from_str(&to_json(&study).unwrap()).expect("JSON");
    let unmet: Vec<&str> = json["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .filter(|finding| finding["shown"] == false)
        .map(|finding| finding["unmet"]["condition"].as_str().expect("a name"))
        .collect();
    assert!(unmet.contains(&"chance"), "{unmet:?}");
    let table = to_table(&study, &TableStyle::default());
    assert!(table.replace('\n', " ").contains(remark), "{table}");
    let row = |name: &str| {
        let line = table.lines().find(|l| l.trim_start().starts_with(name));
        line.unwrap_or_else(|| panic!("{name}: {table}")).to_owned()
    };
    // The row of the first policy in the table of slowdowns, and that of its own table.
    let row_of_first = row(&format!("{first} "));
    assert_eq!(row_of_first.matches("(a)").count(), 1, "{row_of_first}");
    assert_eq!(row("slowdown").matches("(a)").count(), 1, "{table}");
    let html = to_html(&study).unwrap();
    assert!(html.contains(remark), "{html}");
    assert!(html.contains("url(#hatch1)"), "a bar is hatched");
    assert!(html.contains("; not claimed (a)</title>"), "{html}");
    assert!(html.contains("(a)</td>"), "{html}");
}

#[test]
fn nothing_is_marked_where_all_is_claimed() {
    let mut study = sample_study();
    study.policies.truncate(1);
    // The set maps have hatches of their own.
    study.set_maps.clear();
    let csv = to_csv(&study).unwrap();
    let slowdowns = csv
        .lines()
        .filter(|l| l.contains(",target,together,slowdown,"));
    assert_eq!(
        slowdowns.filter(|l| l.ends_with(",shown")).count(),
        2,
        "{csv}"
    );
    let table = to_table(&study, &TableStyle::default());
    assert!(!table.contains("(a)"), "{table}");
    let html = to_html(&study).unwrap();
    assert!(
        !html.contains("url(#hatch1)") && !html.contains("(a)"),
        "{html}"
    );
}
