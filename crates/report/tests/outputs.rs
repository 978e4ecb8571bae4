//! JSON, CSV and the terminal table of whole studies.

use piebald_report::{
    ColorUse, Metrics, ReportError, Sample, Study, TableStyle, findings, from_json, to_csv,
    to_html, to_json, to_table,
};

use crate::common::sample_study;

/// A study whose numbers are missing, infinite or contradictory.
fn broken_study() -> Study {
    let mut study = sample_study();
    study.host_seconds = 0.0;
    let bad = [
        vec![],
        vec![f64::NAN],
        vec![f64::INFINITY, 1.0],
        vec![f64::NEG_INFINITY; 3],
        vec![0.0; 2],
        vec![1e300, 1e-300],
    ];
    for (i, values) in bad.iter().enumerate() {
        let program = &mut study.policies[i % 3].programs[i / 3];
        let sample = Sample::new(values.clone());
        program.slowdown = Some(sample.clone());
        program.alone = Metrics {
            time_ps: sample.clone(),
            row_hit_rate: Some(sample.clone()),
            dram_bytes_per_s: sample.clone(),
            mpki: program
                .alone
                .mpki
                .iter()
                .cloned()
                .map(|mut l| {
                    l.mpki = sample.clone();
                    l
                })
                .collect(),
            ..Metrics::default()
        };
    }
    study.curves[0].points = vec![(0, 1.0), (1 << 20, f64::NAN), (1 << 21, f64::INFINITY)];
    study.curves[1].points = vec![(u64::MAX, 0.0)];
    study.set_maps[0].shares.truncate(7);
    study.set_maps[1].times_ps.reverse();
    study
}

fn shows_no_float_words(text: &str) {
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        assert!(
            !["NaN", "nan", "inf", "Infinity"].contains(&word),
            "found {word}"
        );
    }
}

#[test]
fn json_comes_back_as_the_same_study() {
    let study = sample_study();
    let text = to_json(&study).unwrap();
    let back = from_json(&text).unwrap();
    assert!(!back.findings.is_empty() && back.findings == findings(&study));
    let findings = Vec::new();
    assert!(
        Study { findings, ..back } == study,
        "the study changed on its way"
    );
    assert_eq!(to_json(&from_json(&text).unwrap()).unwrap(), text);
}

#[test]
fn json_has_its_keys_in_a_fixed_order_and_begins_with_the_schema() {
    let text = to_json(&sample_study()).unwrap();
    let at = |key: &str| {
        text.find(&format!("\n  \"{key}\""))
            .unwrap_or_else(|| panic!("{key}"))
    };
    let keys = [
        "schema", "title", "complete", "machine", "seed", "policies", "curves", "set_maps",
    ];
    assert!(keys.windows(2).all(|w| at(w[0]) < at(w[1])));
    assert!(text.starts_with("{\n  \"schema\": 2,"));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(
        value["policies"][0]["programs"][0]["alone"]["mpki"][2]["level"],
        "L3"
    );
}

#[test]
fn numbers_that_do_not_exist_become_null_and_come_back_unknown() {
    let text = to_json(&broken_study()).unwrap();
    shows_no_float_words(&text);
    let back = from_json(&text).unwrap();
    let program = &back.policies[1].programs[0];
    assert!(program.alone.time_ps.mean.is_nan() && program.alone.time_ps.values[0].is_nan());
    assert!(back.curves[0].points[1].1.is_nan());
}

#[test]
fn a_later_schema_is_refused_even_if_nothing_else_is_known() {
    let error = from_json(r#"{"schema": 7, "policies": "elsewhere"}"#).unwrap_err();
    assert!(matches!(error, ReportError::Schema { found: 7 }));
    assert_eq!(error.to_string(), "schema: is 7, allowed: 1 to 2");
    assert!(matches!(
        from_json(r#"{"schema": 0}"#),
        Err(ReportError::Schema { found: 0 })
    ));
    let error = from_json("{\"schema\": 1,\n \"seed\": \"x\"}")
        .unwrap_err()
        .to_string();
    assert!(error.contains("line 2"), "{error}");
    assert!(from_json("").is_err() && from_json("[]").is_err());
}

#[test]
fn csv_has_one_line_per_number_and_reads_back_exactly() {
    let study = sample_study();
    let text = to_csv(&study).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header: Vec<_> = reader
        .headers()
        .unwrap()
        .iter()
        .map(str::to_owned)
        .collect();
    assert_eq!(
        header.join(","),
        "policy,program,role,phase,metric,unit,mean,ci95,n,status,verdict"
    );
    let lines: Vec<csv::StringRecord> = reader.records().map(Result::unwrap).collect();
    // 9 programs; each phase has 9 fields, 3 levels, TLB, row hits and 1 extra.
    let fields = 8 + 3 + 2 + 1;
    // One of each policy's programs has two regions of six numbers, and two errors.
    assert_eq!(lines.len(), 9 * (2 * fields + 1) + 3 * (2 * 6 + 2));
    let line = lines
        .iter()
        .find(|l| &l[0] == "rainbow" && &l[1] == "mcf" && &l[3] == "alone" && &l[4] == "mpki_L3");
    let line = line.expect("a line for the L3 misses of mcf");
    let expected = &study.policies[1].programs[1].alone.mpki[2].mpki;
    assert_eq!(line[6].parse::<f64>().unwrap(), expected.mean);
    assert_eq!(line[7].parse::<f64>().ok(), expected.ci95);
    assert_eq!(
        (&line[2], &line[5], &line[8], &line[9]),
        ("target", "1/1000 instr", "5", "complete")
    );
}

#[test]
fn csv_keeps_names_with_commas_quotes_and_line_ends_in_one_field() {
    let mut study = sample_study();
    study.policies[0].name = "a,\"b\"\nc".to_owned();
    let text = to_csv(&study).unwrap();
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let first = reader.records().next().unwrap().unwrap();
    assert_eq!(&first[0], "a,\"b\"\nc");
}

#[test]
fn table_has_units_intervals_and_both_phases() {
    let text = to_table(&sample_study(), &TableStyle::default());
    let wanted = [
        "time [ms]",
        "slowdown [%]",
        "IPC [instr/cycle]",
        "L3 misses [/1000 instr]",
        "DRAM row hits [%]",
        "DRAM traffic [GB/s]",
        "instructions [million]",
        "alone",
        "together",
        " ± ",
        "95 % interval",
        "seed 42",
    ];
    for text_part in wanted {
        assert!(text.contains(text_part), "no {text_part:?} in\n{text}");
    }
    assert!(!text.contains('\x1b'), "escape codes in a pipe");
}

#[test]
fn a_study_without_a_budget_says_nothing_of_one() {
    let mut study = sample_study();
    let table = to_table(&study, &TableStyle::default());
    assert!(table.contains("references per program and run"));
    assert!(
        to_html(&study)
            .expect("HTML")
            .contains("warm-up references")
    );
    study.budget_refs = 0;
    let table = to_table(&study, &TableStyle::default());
    assert!(!table.contains("per program and run"), "{table}");
    assert!(
        !to_html(&study)
            .expect("HTML")
            .contains("warm-up references")
    );
}

#[test]
fn a_study_that_ends_by_time_says_when() {
    let mut study = sample_study();
    study.until_us = Some(120_000.0);
    let both = |study: &Study| {
        let table = to_table(study, &TableStyle::default());
        let html = to_html(study).expect("HTML");
        [table, html].map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let [table, html] = both(&study);
    assert!(
        table.contains(", together until 120,000 us, seed"),
        "{table}"
    );
    assert!(html.contains("until 120,000 us<"), "{html}");
    study.measured_from_us = Some(40_000.0);
    for text in both(&study) {
        assert!(text.contains("until 120,000 us, measured from 40,000"));
        assert!(text.contains("references per program and run alone"));
        assert!(!text.contains("references per program and run<"));
        assert!(!text.contains("references per program and run after"));
    }
    // Programs of a guest run to their end.
    study.budget_refs = 0;
    let [table, html] = both(&study);
    assert!(table.contains("together until") && !table.contains("run alone"));
    assert!(html.contains("programs together") && !html.contains("run alone"));
}

#[test]
fn table_keeps_to_the_width_where_two_programs_fit() {
    for width in [100, 120, 160] {
        let text = to_table(&sample_study(), &TableStyle { width, bold: false });
        let tables = text
            .lines()
            .filter(|l| l.starts_with(' ') || l.starts_with('─'));
        let longest = tables.map(|l| l.chars().count()).max().unwrap();
        assert!(longest <= width, "{longest} columns at width {width}");
    }
}

#[test]
fn values_in_the_table_are_those_of_the_study() {
    let mut study = sample_study();
    study.policies.truncate(1);
    study.policies[0].programs.truncate(1);
    study.policies[0].programs[0].alone.time_ps = Sample::new(vec![10e9, 12e9, 14e9]);
    let text = to_table(&study, &TableStyle::default());
    let row = text.lines().find(|l| l.contains("time [ms]")).unwrap();
    assert!(row.contains("12.0 ± 5.0"), "{row}");
}

#[test]
fn interrupted_studies_say_partial_everywhere() {
    let mut study = sample_study();
    assert!(!to_table(&study, &TableStyle::default()).contains("PARTIAL"));
    assert!(!to_html(&study).unwrap().contains("PARTIAL"));
    study.complete = false;
    assert!(to_table(&study, &TableStyle::default()).starts_with("PARTIAL"));
    assert!(to_html(&study).unwrap().contains("PARTIAL"));
    assert!(to_json(&study).unwrap().contains("\"complete\": false"));
    let csv = to_csv(&study).unwrap();
    assert!(csv.lines().skip(1).all(|l| l.contains(",PARTIAL,")));
}

#[test]
fn missing_and_infinite_numbers_are_shown_as_not_available() {
    let study = broken_study();
    let table = to_table(&study, &TableStyle::default());
    assert!(table.contains("n/a"));
    shows_no_float_words(&table);
    shows_no_float_words(&to_csv(&study).unwrap());
    shows_no_float_words(&to_html(&study).unwrap());
}

#[test]
fn an_empty_study_gives_every_output() {
    for study in [
        Study::default(),
        Study {
            policies: vec![Default::default()],
            ..Study::default()
        },
    ] {
        shows_no_float_words(&to_table(
            &study,
            &TableStyle {
                width: 0,
                bold: true,
            },
        ));
        shows_no_float_words(&to_html(&study).unwrap());
        assert_eq!(to_csv(&study).unwrap().lines().count(), 1);
        let text = to_json(&study).unwrap();
        assert_eq!(to_json(&from_json(&text).unwrap()).unwrap(), text);
    }
}

#[test]
fn names_cannot_steer_the_terminal() {
    let mut study = sample_study();
    study.title = "\x1b]0;owned\x07".to_owned();
    study.machine.title = "\x1b[2J".to_owned();
    for policy in &mut study.policies {
        policy.programs[0].name = "bz\x1b[31mip2\r\n".to_owned();
        policy.programs[0].alone.extra[0].name = "\x1b[5m".to_owned();
    }
    study.notes.push("\x1b[31m".to_owned());
    let text = to_table(&study, &TableStyle::default());
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
}

#[test]
fn many_programs_with_long_names_stay_within_the_width() {
    let mut study = sample_study();
    for policy in &mut study.policies {
        let copies: Vec<_> = (0..5).flat_map(|_| policy.programs.clone()).collect();
        policy.programs = copies;
        for (i, program) in policy.programs.iter_mut().enumerate() {
            program.name = format!("/usr/lib/a/very/long/path/to/program-{i}");
        }
    }
    let text = to_table(
        &study,
        &TableStyle {
            width: 110,
            bold: false,
        },
    );
    assert!(text.lines().all(|l| l.chars().count() <= 110), "{text}");
    for i in 0..15 {
        assert!(
            text.contains(&format!("program-{i}")),
            "program {i} is missing"
        );
    }
}

#[test]
fn every_output_shows_the_regions_that_stand_for_a_program() {
    let study = sample_study();
    let policies = study.policies.len();
    let text = to_table(&study, &TableStyle::default());
    let title = "Regions of bzip2, 10,000,000 instructions each: 2.46 % of 812,000,000";
    assert_eq!(text.matches(title).count(), policies, "{text}");
    for part in ["120,000,000", "650,000,000", "weighted", "all, run once"] {
        assert!(text.matches(part).count() >= policies, "{part}: {text}");
    }
    let html = to_html(&study).expect("HTML");
    assert_eq!(html.matches("Regions of bzip2").count(), policies);
    assert!(html.contains("650,000,000"));
    let csv = to_csv(&study).expect("CSV");
    let line = |policy: &str, phase: &str, metric: &str| {
        let start = format!("{policy},bzip2,target,{phase},{metric},");
        let found = csv.lines().find_map(|l| l.strip_prefix(&start));
        found.unwrap_or_else(|| panic!("{start}: {csv}")).to_owned()
    };
    let first = study.policies[0].name.as_str();
    assert!(line(first, "alone", "region_2_weight").starts_with("1,0.3,"));
    assert!(line(first, "together", "region_1_cpi").starts_with("cycles/instr,0.8"));
    assert!(line(first, "alone", "regions_last_level_mpki_error").starts_with("1,0.1,"));
    // A program that is run as it is has none.
    assert!(
        !csv.lines()
            .any(|l| l.contains(",scan,") && l.contains("region"))
    );
    // Numbers that do not exist stay readable.
    let mut study = study;
    let set = study.policies[0].programs[0].regions.as_mut();
    let set = set.expect("regions");
    set.regions[0].weight = f64::NAN;
    set.regions[0].alone.cpi = Sample::new(vec![f64::INFINITY]);
    set.coverage = f64::NAN;
    shows_no_float_words(&to_table(&study, &TableStyle::default()));
    shows_no_float_words(&to_csv(&study).expect("CSV"));
    let json = to_json(&study).expect("JSON");
    assert!(from_json(&json).is_ok());
}

#[test]
fn colors_and_pages_are_shown_where_there_are_colors() {
    let mut study = sample_study();
    let without = to_json(&study).expect("JSON");
    assert!(!without.contains("\"pages\": ["), "no key without colors");
    assert!(!to_table(&study, &TableStyle::default()).contains("colors / pages"));
    let program = &mut study.policies[1].programs[0];
    program.alone.pages = Sample::new(vec![1200.0; 3]);
    program.alone.colors = Some(ColorUse {
        owned: Some("0-3".to_owned()),
        allowed: Some("0-3\u{1b}".to_owned()),
        pages: vec![Sample::new(vec![300.0; 3]); 4],
        in_parts: Vec::new(),
        peak_pages: Sample::new(vec![1300.0; 3]),
    });
    let table = to_table(&study, &TableStyle::default());
    let row = table.lines().find(|l| l.contains("colors / pages (4 KiB)"));
    assert!(
        row.expect("a row").contains("0-3\u{fffd} / 1200"),
        "{table}"
    );
    assert!(!table.contains('\u{1b}'));
    assert!(
        to_html(&study)
            .expect("HTML")
            .contains("0-3\u{fffd} / 1200")
    );
    let csv = to_csv(&study).expect("CSV");
    assert!(
        csv.lines()
            .any(|l| l.contains(",alone,peak_pages,") && l.contains(",1300,"))
    );
    let json = to_json(&study).expect("JSON");
    let back = from_json(&json).expect("the same");
    assert_eq!(
        back.policies[1].programs[0].alone.colors,
        study.policies[1].programs[0].alone.colors
    );
    // With all colours, that is what stands there.
    let colors = study.policies[1].programs[0].alone.colors.as_mut();
    colors.expect("set above").allowed = None;
    assert!(to_table(&study, &TableStyle::default()).contains("all / 1200"));
}
