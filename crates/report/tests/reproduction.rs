//! A paper's results beside ours, in all forms.

use piebald_report::{
    CaseTable, Curve, CurvePoint, Panel, PaperFigure, Predicate, Published, REPRODUCTION_SCHEMA,
    Reproduction, TableStyle, Target, TargetKind, Value, Verdict, reproduction_to_html,
    reproduction_to_json, reproduction_to_table,
};

fn target(id: &str, verdict: Verdict) -> Target {
    Target {
        id: id.to_owned(),
        title: "slowdown <of> all".to_owned(),
        kind: TargetKind::H,
        verdict,
        why: Some("a cause".to_owned()),
        stand_in: true,
        calibrated: false,
        values: vec![
            Value {
                name: "bzip2".to_owned(),
                paper: Published::Number(40.0),
                measured: Some(38.25),
                ci95: Some([37.0, 39.5]),
                unit: "%".to_owned(),
            },
            Value {
                name: "mcf".to_owned(),
                paper: Published::Text(">= 25".to_owned()),
                measured: None,
                ci95: None,
                unit: "%".to_owned(),
            },
        ],
        predicates: vec![
            Predicate {
                text: "it falls".to_owned(),
                holds: Some(false),
            },
            Predicate {
                text: "it ends".to_owned(),
                holds: None,
            },
        ],
        tables: vec![CaseTable {
            title: "Cases".to_owned(),
            columns: vec!["mix".to_owned(), "gain <%>".to_owned()],
            rows: vec![vec!["mix 7".to_owned(), "12.5".to_owned()]],
        }],
    }
}

fn curve(name: &str, dashed: bool, y: [f64; 3]) -> Curve {
    let point = |(x, y): (usize, f64)| CurvePoint {
        x: x as f64,
        y,
        ci95: Some(1.0),
    };
    Curve {
        name: name.to_owned(),
        dashed,
        points: y.into_iter().enumerate().map(point).collect(),
    }
}

fn sample() -> Reproduction {
    let panel = |title: &str, curves: Vec<Curve>| Panel {
        title: title.to_owned(),
        curves,
    };
    Reproduction {
        schema: REPRODUCTION_SCHEMA,
        system: "rainbow".to_owned(),
        title: "A paper".to_owned(),
        seed: 42,
        version: "1.2.3".to_owned(),
        budget_refs: 1_000,
        conditions: vec!["On a machine.".to_owned()],
        targets: vec![target("R-1", Verdict::Match), target("R-2", Verdict::Miss)],
        figures: vec![PaperFigure {
            name: "Figure 1".to_owned(),
            text: "Read it.".to_owned(),
            x: "size [MiB]".to_owned(),
            y: "%".to_owned(),
            panels: vec![
                panel(
                    "one",
                    vec![
                        curve("slowdown", false, [3.0, 2.0, 0.0]),
                        curve("slowdown", true, [3.0, f64::NAN, -1.0]),
                        curve("misses", false, [90.0, 50.0, 10.0]),
                    ],
                ),
                panel("nothing known", vec![curve("misses", false, [f64::NAN; 3])]),
            ],
            ..PaperFigure::default()
        }],
        simulated_refs: 10,
        host_seconds: 0.5,
        command: Some("piebald reproduce rainbow".to_owned()),
        ..Reproduction::default()
    }
}

#[test]
fn the_table_has_the_papers_numbers_beside_ours_and_every_verdict() {
    let text = reproduction_to_table(&sample(), &TableStyle::default());
    let has = |part: &str| assert!(text.contains(part), "{part}:\n{text}");
    has("1 match, 1 miss.");
    has("40.0");
    has("38.2");
    has("37.0 to 39.5");
    has(">= 25");
    has("[fails] it falls");
    has("[not run] it ends");
    has("a cause");
    has("Programs stand in");
    has("gain <%>");
    has("mix 7");
    let mut many = sample();
    many.targets[0].tables[0].rows = vec![vec!["mix".to_owned(), "1".to_owned()]; 41];
    let text = reproduction_to_table(&many, &TableStyle::default());
    assert!(
        text.contains("Cases: 41 rows, in report.html and in the JSON."),
        "{text}"
    );
    assert!(
        text.lines().all(|l| !l.contains('\x1b')),
        "no codes in a pipe"
    );
}

#[test]
fn the_page_is_well_formed_and_draws_what_is_known() {
    let html = reproduction_to_html(&sample()).unwrap();
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    let tree = roxmltree::Document::parse_with_options(&html, options).unwrap();
    assert!(
        html.contains("gain &#60;%&#62;") && html.contains("mix 7"),
        "{html}"
    );
    let count = |name: &str| {
        tree.descendants()
            .filter(|n| n.tag_name().name() == name)
            .count()
    };
    assert_eq!(count("svg"), 1, "a panel without a point is not drawn");
    // Eight points that are known, each with its value under the pointer.
    let tips = tree
        .descendants()
        .filter(|n| n.attribute("class") == Some("tip"));
    assert_eq!(tips.count(), 8);
    assert!(html.contains("slowdown (dashed)"));
    assert!(html.contains("slowdown &#60;of&#62; all") || html.contains("slowdown &lt;of&gt; all"));
}

#[test]
fn the_json_has_the_form_that_all_systems_share_and_null_for_what_is_unknown() {
    let json = reproduction_to_json(&sample()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    let t = &value["targets"][0];
    assert_eq!(t["kind"], "H");
    assert_eq!(t["verdict"], "match");
    assert_eq!(t["values"][0]["ci95"], serde_json::json!([37.0, 39.5]));
    assert_eq!(t["values"][1]["paper"], ">= 25");
    assert!(t["values"][1]["measured"].is_null());
    assert_eq!(
        t["predicates"][0],
        serde_json::json!({"text": "it falls", "holds": false})
    );
    assert!(value["figures"][0]["panels"][1]["curves"][0]["points"][0]["y"].is_null());
    let back: Reproduction = serde_json::from_str(&json).unwrap();
    assert_eq!(back.targets, sample().targets);
}

/// A figure with one panel, of one curve.
fn drawn(x_names: &[&str], ci95: f64) -> String {
    let points = (1..=2).map(|x| CurvePoint {
        x: f64::from(x),
        y: 10.0 * f64::from(x),
        ci95: Some(ci95),
    });
    let curve = Curve {
        name: "slowdown".to_owned(),
        dashed: false,
        points: points.collect(),
    };
    let mut r = sample();
    r.figures = vec![PaperFigure {
        name: "Figure 1".to_owned(),
        x_names: x_names.iter().map(|n| (*n).to_owned()).collect(),
        y: "%".to_owned(),
        panels: vec![Panel {
            title: "one".to_owned(),
            curves: vec![curve],
        }],
        ..PaperFigure::default()
    }];
    reproduction_to_html(&r).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn places_with_names_show_them_and_join_no_points() {
    let named = drawn(&["mergesort", "lu<b>"], 1.0);
    assert!(named.contains("mergesort") && !named.contains("lu<b>"));
    let strokes = |html: &str| html.matches("stroke-width=\"2\"").count();
    assert_eq!(strokes(&drawn(&[], 1.0)), strokes(&named) + 1);
}

#[test]
fn an_interval_that_a_picture_cuts_is_said_to_go_on() {
    let cut = "A bar without an end goes on";
    assert!(!drawn(&[], 1.0).contains(cut));
    assert!(drawn(&[], 1000.0).contains(cut));
}

#[test]
fn runs_that_are_not_measured_by_references_name_none() {
    let style = TableStyle::default();
    let words = "references per program and run";
    for budget_refs in [0, 1000] {
        let r = Reproduction {
            budget_refs,
            ..sample()
        };
        for text in [
            reproduction_to_table(&r, &style),
            reproduction_to_html(&r).unwrap(),
        ] {
            // Lines of the table break between words.
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(text.contains(words), budget_refs > 0, "{text}");
            assert!(text.contains("42"), "the seed");
        }
    }
}

#[test]
fn numbers_that_are_no_papers_have_their_own_names_and_a_ratio() {
    let mut r = sample();
    let before = reproduction_to_table(&r, &TableStyle::default());
    assert!(
        before.contains("paper") && !before.contains("ratio"),
        "{before}"
    );
    r.columns = Some(["modelled".to_owned(), "re<al".to_owned()]);
    let after = reproduction_to_table(&r, &TableStyle::default());
    let line = |text: &str| after.lines().find(|l| l.contains(text)).map(str::to_owned);
    let head = line("modelled").unwrap_or_default();
    assert!(head.contains("re<al") && head.contains("ratio"), "{after}");
    // 38.25 of 40; nothing where one of the two is missing.
    assert!(
        line("bzip2").is_some_and(|l| l.contains("0.956")),
        "{after}"
    );
    assert_eq!(r.targets[0].values[1].ratio(), None);
    let html = reproduction_to_html(&r).unwrap_or_else(|e| panic!("{e}"));
    assert!(
        html.contains("re&#60;al") && html.contains("0.956"),
        "{html}"
    );
    let json = reproduction_to_json(&r).unwrap_or_else(|e| panic!("{e}"));
    let back: Reproduction = serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(back.columns, r.columns);
}
