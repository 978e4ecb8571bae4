//! What formulas come to, and what rules make of it.

use piebald_guest::AllHosts;
use piebald_report::{Published, Verdict};

use super::{
    tests::{options, rows as rows_of},
    *,
};

/// Cells without runs but one quantity.
pub(super) struct Fixed;

impl eval::Cells for Fixed {
    fn counted(
        &self,
        what: &str,
        of: Option<&str>,
        chosen: &dyn Fn(&str) -> Option<String>,
    ) -> Option<eval::Valued<Value>> {
        let n: f64 = chosen("size").map_or(0.0, |size| size.parse().expect("a number"));
        match (what, of) {
            ("x", None) => Some(Ok(Value::Sample(
                [n, n + 1.0, n + 5.0].into_iter().collect(),
            ))),
            ("missing", None) => Some(Err(eval::Fault::Missing("no run".to_owned()))),
            _ => None,
        }
    }
}

#[test]
fn formulas_come_to_what_arithmetic_by_hand_does() {
    let axes = eval::Axes::from([(
        "size".to_owned(),
        [1.0, 2.0, 4.0, 3.0].map(Value::Number).to_vec(),
    )]);
    let known = Known::from([("k".to_owned(), number(10.0))]);
    let lets = eval::Lets::from([(
        "doubled".to_owned(),
        formula::Formula::parse("2 * x").expect("a formula"),
    )]);
    let names = Names {
        axes: &axes,
        known: &known,
        lets: vec![&lets],
        cells: &Fixed,
        hosts: Some(&AllHosts),
    };
    let value = |text: &str| {
        let formula = formula::Formula::parse(text).expect(text);
        match names.value(&formula, &Chosen::new()) {
            Ok(Value::Number(n)) => n,
            Ok(Value::Is(is)) => f64::from(u8::from(is)),
            Ok(Value::Sample(s)) => s.mean,
            Ok(other) => panic!("{text}: {other:?}"),
            Err(fault) => panic!("{text}: {fault:?}"),
        }
    };
    for (text, wanted) in [
        ("x", 2.0),
        ("x[size = 4].mean", 6.0),
        ("doubled[size = 4]", 12.0),
        ("(x[size = 1] - x).mean", 1.0),
        (
            "(x[size = 1] / x[size = 3]).mean",
            (1.0 / 3.0 + 2.0 / 4.0 + 6.0 / 8.0) / 3.0,
        ),
        ("k / 4 - 1", 1.5),
        ("falls(size: -size)", 0.0),
        ("falls(size where size < 4: -size)", 1.0),
        ("falls(size where size > 2: size)", 1.0),
        // 2, 4 and 3 beside what is allowed after 1, 2 and 4.
        ("falls(size: size, 2 * size)", 1.0),
        ("falls(size: size, size + 1)", 0.0),
        ("falls(size: size, size) == falls(size: -size)", 1.0),
        ("ranked(size: size, -size) == \"4, 3, 2, 1\"", 1.0),
        ("ranked(size: size, abs(size - 2)) == \"2, 1, 3, 4\"", 1.0),
        ("has(\"sh\")", 1.0),
        ("has(\"no-such-program\")", 0.0),
        ("at_least(3, k)", 10.0),
        ("at_least(30, k)", 30.0),
        // 0, 1 and 5 repetition by repetition.
        ("at_least(2, x).mean", 3.0),
        ("at_least(x, 2).mean", 3.0),
        ("at_most(3, k)", 3.0),
        ("at_most(2, x).mean", 1.0),
        ("at_most(2 - x, x).mean", -1.0 / 1.5),
        ("at_least(2 - x, x).mean", 8.0 / 3.0),
        ("cases(size: size).mean", 2.5),
        ("cases(size: size).half > 0", 1.0),
        ("mean(size: size)", 2.5),
        ("sum(size where size > 1: size)", 9.0),
        ("max(size: size) - min(size: size)", 3.0),
        ("span(size: size)", 3.0),
        ("rise(size: size)", 2.0),
        ("rise(size: -size)", 1.0),
        ("first(size where size > 1: size)", 2.0),
        ("last(size: size)", 3.0),
        ("count(size where size != 2: size)", 3.0),
        ("mean(size: x).mean", 4.5),
        ("max(size: x).mean", 6.0),
        ("farthest(size: x - 100).mean", -97.0),
        ("correlation(size: size, 3 - 2 * size)", -1.0),
        ("rank_correlation(size: size, size * size)", 1.0),
        (
            "rank_correlation(size where size < 4: size, abs(size - 2))",
            0.0,
        ),
        ("all(size: size < 5) && !any(size: size == 5)", 1.0),
        ("if(k > 3, 1, missing)", 1.0),
        ("k > 3 || missing.mean > 0", 1.0),
        ("first(size: size)", 1.0),
        ("abs(-k)", 10.0),
        ("-x", -2.0),
        ("in_range(10, 20, x)", 0.0),
        ("1 - x", -1.0),
        ("6 / x[size = 1]", (6.0 + 3.0 + 1.0) / 3.0),
    ] {
        let found = value(text);
        assert!(
            (found - wanted).abs() < 1e-12,
            "{text}: {found}, not {wanted}"
        );
    }
    let template = |text: &str| {
        let template = formula::Template::parse(text).expect(text);
        names.text(&template, &Chosen::new())
    };
    assert_eq!(
        template("{k}: {x:.2}, {k / 4}").as_deref(),
        Ok("10: 2.00, 2.5")
    );
    // Of 0, 1 and 5, and of one number, which has no interval.
    assert_eq!(
        template("{x:±.1}; {cases(size where size == 4: size):±.1}; {k:±.0}").as_deref(),
        Ok("2.0 ± 6.6; 4.0; 10")
    );
    assert_eq!(
        template("{names(size where size > 1: size)}").as_deref(),
        Ok("2, 4, 3")
    );
    assert_eq!(
        template("{missing:.1}"),
        Err(eval::Fault::Missing("no run".to_owned()))
    );
    assert!(matches!(template("{x}"), Err(eval::Fault::Wrong(_))));
    assert!(matches!(
        template("{x.high - y}"),
        Err(eval::Fault::Wrong(_))
    ));
}

#[test]
fn verdicts_of_data_are_those_of_the_rules() {
    let rows = |rule: &str, paper: &str| {
        let value = format!(
            "value = [{{ name = \"v\", {paper}unit = \"%\", is = \"n\", rule = \"{rule}\" }}]\n"
        );
        let text = format!(
            "schema = 1\ntitle = \"t\"\n[[row]]\nid = \"X\"\ntitle = \"x\"\nkind = \"headline\"\n{value}"
        );
        let known = Known::from([("n".to_owned(), number(20.0))]);
        let made = DataPaper::new(("x", Path::new("p")), ["schema = 1", &text], None, known);
        let made = made.and_then(DataPaper::checked);
        let made = made.unwrap_or_else(|e| panic!("{e}"));
        let found = rows_of(&made, &options(false));
        (found[0].verdict, found[0].values[0].paper.clone())
    };
    let number = |n| Published::Number(n);
    for (rule, paper, verdict, shown) in [
        ("amount", "paper = 21, ", Verdict::Match, number(21.0)),
        ("amount", "paper = 39, ", Verdict::Near, number(39.0)),
        ("share", "paper = 24.5, ", Verdict::Match, number(24.5)),
        ("exact", "paper = 20, ", Verdict::Match, number(20.0)),
        ("exact", "paper = 20.5, ", Verdict::Miss, number(20.5)),
        ("below(21)", "", Verdict::Match, Published::Nothing),
        ("below(n)", "", Verdict::Miss, Published::Nothing),
        ("between(20, 21)", "", Verdict::Match, Published::Nothing),
        ("between(n, n + 1)", "", Verdict::Match, Published::Nothing),
        ("between(5, 19)", "", Verdict::Miss, Published::Nothing),
        // A single number has no interval that could keep a bound.
        ("at_most(30)", "", Verdict::Miss, Published::Nothing),
        ("range(10, 25)", "", Verdict::Miss, Published::Nothing),
        ("headline", "paper = 20, ", Verdict::Miss, number(20.0)),
        (
            "range(-inf, 25)",
            "paper = \"< {5 * 5}\", ",
            Verdict::Match,
            Published::Text("< 25".to_owned()),
        ),
    ] {
        assert_eq!(rows(rule, paper), (verdict, shown), "{rule} {paper}");
    }
}
