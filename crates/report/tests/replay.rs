//! Replays in all forms: the terminal, JSON and CSV, and what their numbers say.

use piebald_report::{
    Replay, ReplayIo, ReplayRun, ReportError, TableStyle, replay_curves_to_csv, replay_from_json,
    replay_sequences_to_csv, replay_to_csv, replay_to_html, replay_to_json, replay_to_table,
};

use crate::sample::{SIZES_MIB, sample_replay, without_device};

fn table(replay: &Replay) -> String {
    replay_to_table(replay, &TableStyle::default())
}

/// The table as one line: sentences are broken where the width ends.
pub fn sentences(replay: &Replay) -> String {
    let style = TableStyle {
        width: 100_000,
        bold: false,
    };
    replay_to_table(replay, &style)
}

/// The cells of a policy's row in the block below a heading.
fn row<'a>(text: &'a str, heading: &str, policy: &str) -> Vec<&'a str> {
    let mut lines = text.lines().skip_while(|l| !l.starts_with(heading));
    let found = lines.find(|l| l.split_whitespace().next() == Some(policy));
    let found = found.unwrap_or_else(|| panic!("no row of {policy} below {heading} in\n{text}"));
    found.split_whitespace().skip(1).collect()
}

fn shows_no_float_words(text: &str) {
    for word in text.split(|c: char| !c.is_ascii_alphanumeric()) {
        assert!(
            !["NaN", "nan", "inf", "Infinity"].contains(&word),
            "found {word} in\n{text}"
        );
    }
}

/// Two policies at one size.
pub fn pair(misses: [u64; 2], elapsed_s: [f64; 2]) -> Replay {
    let mut replay = sample_replay();
    replay.policies.truncate(2);
    replay.sizes = vec![1024];
    replay.curves.clear();
    let run = |i: usize| ReplayRun {
        parts: None,
        policy: ["lru", "dulo"][i].to_owned(),
        size_pages: 1024,
        references: 1000,
        hits: 1000 - misses[i],
        misses: misses[i],
        bytes: None,
        io: Some(ReplayIo {
            elapsed_s: elapsed_s[i],
            read_requests: misses[i] / [2, 8][i],
            sequences: vec![([2, 8][i], 80)],
            ..ReplayIo::default()
        }),
        extra: vec![],
    };
    replay.runs = vec![run(0), run(1)];
    replay
}

/// A replay whose numbers are missing, infinite or contradictory.
fn broken_replay() -> Replay {
    let mut replay = sample_replay();
    replay.host_seconds = 0.0;
    replay.traces[0].sequential_share = f64::NAN;
    replay.traces[0].references = 0;
    for (i, run) in replay.runs.iter_mut().enumerate() {
        let io = run.io.as_mut().expect("the sample has a disk");
        match i % 8 {
            0 => run.references = 0,
            1 => io.elapsed_s = f64::NAN,
            2 => io.elapsed_s = f64::INFINITY,
            3 => io.sequences = vec![(0, 0), (0, u64::MAX), (u32::MAX, u64::MAX)],
            4 => io.elapsed_s = -1.0,
            5 => run.io = None,
            6 => run.extra.push(("x".to_owned(), f64::NAN, "y".to_owned())),
            _ => io.elapsed_s = 0.0,
        }
    }
    let points = &mut replay.curves[0].points;
    points[0].miss_ratio = f64::NAN;
    points[1].size_pages = u64::MAX;
    replay.curves[1].points[2].ci95 = Some([f64::NAN, 1.0]);
    replay.curves[1].checks[0].full = f64::NAN;
    replay
}

#[test]
fn the_table_has_the_numbers_of_every_run_with_their_units() {
    let replay = sample_replay();
    let text = table(&replay);
    for part in [
        "st39102lw",
        "deadline",
        "1,600,000",
        "792MiB",
        "Execution time [s]",
        "Execution time against lru [%]",
        "Read requests to the disk",
        "Mean length of a sequence [pages]",
        "32 runs",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    let whole = sentences(&replay);
    assert!(whole.contains("Layout: Every file begins on a slot of 1 MiB of its own."));
    assert!(whole.contains("Note: All numbers of this sample are invented."));
    let last = &replay.runs[15];
    let io = last.io.as_ref().expect("a disk");
    let at_end = |heading: &str| *row(&text, heading, "dulo").last().expect("a cell");
    assert_eq!((last.policy.as_str(), last.size_pages), ("dulo", 320 * 256));
    assert_eq!(
        at_end("Hit ratio"),
        format!("{:.2}", 100.0 * last.hits as f64 / 1.6e6)
    );
    assert_eq!(at_end("Execution time [s]"), format!("{:.0}", io.elapsed_s));
    let first = replay.runs[7].io.as_ref().expect("a disk").elapsed_s;
    let change = format!("{:+.1}", 100.0 * (io.elapsed_s / first - 1.0));
    assert_eq!(at_end("Execution time against"), change);
    assert_eq!(
        at_end("Read requests").replace(',', ""),
        io.read_requests.to_string()
    );
    assert!(!text.contains("Write requests"), "nothing was written");
    assert!(!text.contains('\x1b'), "escape codes in a pipe");
    let bold = TableStyle {
        width: 100,
        bold: true,
    };
    assert!(replay_to_table(&replay, &bold).contains("\x1b[1mHit ratio [%]"));
}

#[test]
fn sizes_that_do_not_fit_beside_each_other_stand_below() {
    let mut replay = sample_replay();
    replay.runs.retain(|r| r.policy != "arc");
    for i in 1..=30u64 {
        for base in 0..3 {
            let mut run = replay.runs[base * 8].clone();
            run.size_pages = 100_000 + i * 5_000;
            replay.runs.push(run);
        }
    }
    for width in [60, 100, 160] {
        let text = replay_to_table(&replay, &TableStyle { width, bold: false });
        let tables = text.lines().skip_while(|l| !l.starts_with("Hit ratio"));
        let longest = tables.clone().map(|l| l.chars().count()).max();
        assert!(
            longest <= Some(width),
            "{longest:?} columns at width {width}"
        );
        let hits = tables.take_while(|l| !l.starts_with("Execution"));
        let hits: Vec<&str> = hits.collect();
        for i in 1..=30u64 {
            let pages = format!("{},000", 100 + i * 5);
            let found = hits
                .iter()
                .any(|l| l.split_whitespace().any(|w| w == pages));
            assert!(found, "no size {pages} at width {width}");
        }
    }
}

#[test]
fn findings_name_the_best_by_misses_and_by_time_and_where_they_part() {
    let text = sentences(&sample_replay());
    let line = |start: &str| {
        let found = text.lines().find(|l| l.starts_with(start));
        found.unwrap_or_else(|| panic!("no {start:?} in\n{text}"))
    };
    let both = "Fewest misses: 2q at all 8 sizes. Least time: dulo from 40MiB to 280MiB; \
                arc at 320MiB.";
    assert_eq!(line("Fewest"), both);
    let conflict = line("Fewer misses are not less time: at ");
    assert!(conflict.contains(" % fewer misses than "), "{conflict}");
    assert!(
        conflict.contains(", as it reads sequences of "),
        "{conflict}"
    );
    assert!(line("Against lru, dulo takes ").contains("over the 8 sizes"));
}

#[test]
fn the_best_policy_is_compared_first_wherever_it_was_listed() {
    // Five policies, of which the first is the worst and the last the best.
    let mut replay = pair([500, 400], [50.0, 40.0]);
    for (name, misses, elapsed_s) in [("arc", 300, 30.0), ("2q", 350, 35.0), ("lirs", 100, 10.0)] {
        let mut run = replay.runs[0].clone();
        run.policy = name.to_owned();
        (run.misses, run.hits) = (misses, 1000 - misses);
        run.io.as_mut().expect("a disk").elapsed_s = elapsed_s;
        replay.runs.push(run);
    }
    let text = sentences(&replay);
    assert!(
        text.contains("Fewest misses: lirs at 4MiB. Least time: lirs at 4MiB."),
        "{text}"
    );
    let compared: Vec<&str> = text
        .lines()
        .filter(|l| l.starts_with("Against lru"))
        .collect();
    assert_eq!(
        compared,
        [
            "Against lru, lirs takes 80 % less time at 4MiB.",
            "Against lru, arc takes 40 % less time at 4MiB.",
            "Against lru, 2q takes 30 % less time at 4MiB.",
        ]
    );
    // The rows of every table are in the same order.
    let times = text
        .lines()
        .skip_while(|l| !l.starts_with("Execution time [s]"));
    let names = times.filter_map(|l| l.split_whitespace().next());
    let names: Vec<&str> = names
        .filter(|n| ["lirs", "arc", "2q", "dulo", "lru"].contains(n))
        .take(5)
        .collect();
    assert_eq!(names, ["lirs", "arc", "2q", "dulo", "lru"]);
}

#[test]
fn the_offline_bound_never_wins_and_the_distance_to_it_is_told() {
    let mut replay = pair([300, 400], [12.0, 10.0]);
    let mut bound = replay.runs[0].clone();
    (bound.policy, bound.misses, bound.hits) = ("min".to_owned(), 100, 900);
    replay.runs.push(bound);
    replay.runs.iter_mut().for_each(|r| r.io = None);
    let text = sentences(&replay);
    assert!(text.contains("Fewest misses: lru at 4MiB."), "{text}");
    assert!(
        text.contains(
            "Against the offline bound (min), the best policy that does not know the future misses 20 \
             points more at 4MiB (lru)."
        ),
        "{text}"
    );
    assert_eq!(
        row(&text, "Misses above the offline bound", "lru"),
        ["20.00"]
    );
    let json = replay_to_json(&replay).expect("JSON");
    assert!(json.contains("\"question\": \"bound\""), "{json}");
    let html = replay_to_html(&replay).expect("HTML");
    assert!(html.contains("min (bound)"));
    // What misses least in the whole need not do so behind a warm-up.
    replay.conditions.warmup_references = 500;
    let text = sentences(&replay);
    assert!(!text.contains("bound"), "{text}");
    assert!(text.contains("min (offline)"), "{text}");
}

#[test]
fn times_that_hardly_differ_have_no_winner() {
    let text = sentences(&pair([300, 400], [12.0, 12.04]));
    assert!(
        text.contains("Fewest misses: lru at 4MiB. Least time: no difference at 4MiB."),
        "{text}"
    );
    let mut three = pair([300, 400], [12.0, 12.04]);
    let mut slow = three.runs[0].clone();
    slow.policy = "arc".to_owned();
    slow.io.as_mut().expect("a disk").elapsed_s = 20.0;
    three.runs.push(slow);
    let text = sentences(&three);
    assert!(
        text.contains("Least time: lru (dulo within 1 %) at 4MiB."),
        "{text}"
    );
}

#[test]
fn equal_arms_give_no_claim_of_a_difference() {
    for n in 1..=100u64 {
        let replay = pair([n * 7 % 997; 2], [n as f64; 2]);
        let text = sentences(&replay);
        for word in [
            " % less time",
            " % more time",
            "fewer misses than",
            "Fewest misses: lru",
        ] {
            assert!(!text.contains(word), "{word:?} in\n{text}");
        }
    }
}

#[test]
fn a_curve_that_was_refused_is_a_warning() {
    let mut replay = sample_replay();
    replay.curves_refused = vec!["The curve of dulo is not shown: off.".to_owned()];
    assert!(table(&replay).contains("Warning: The curve of dulo is not shown: off."));
    assert!(
        replay_to_html(&replay)
            .expect("HTML")
            .contains("The curve of dulo is not shown")
    );
}

#[test]
fn fewer_misses_and_more_time_are_told_with_both_figures() {
    let text = sentences(&pair([300, 400], [12.0, 10.0]));
    let expected = "Fewer misses are not less time: at 4MiB lru has 25 % fewer misses than dulo \
                    and takes 20 % more time, as it reads sequences of 2 pages on average \
                    against 8.\n";
    assert!(text.contains(expected), "{text}");
    assert!(
        text.contains("Against lru, dulo takes 16.7 % less time at 4MiB."),
        "{text}"
    );
}

#[test]
fn agreement_is_told_only_where_it_was_seen() {
    let agreement = "the one with fewer misses also takes less time";
    let text = sentences(&pair([300, 400], [10.0, 12.0]));
    assert!(text.contains(agreement), "{text}");
    for replay in [
        pair([300, 300], [10.0, 12.0]),
        pair([300, 400], [10.0, 10.0]),
        pair([300, 400], [10.0, f64::NAN]),
    ] {
        let text = sentences(&replay);
        assert!(
            !text.contains(agreement) && !text.contains("Fewer misses are"),
            "{text}"
        );
    }
}

#[test]
fn equal_runs_are_called_equal() {
    let text = sentences(&pair([300, 300], [10.0, 10.0]));
    assert!(
        text.contains("Fewest misses: no difference at 4MiB."),
        "{text}"
    );
    assert!(
        text.contains("Least time: no difference at 4MiB."),
        "{text}"
    );
    assert!(
        text.contains("dulo takes about the same time as lru"),
        "{text}"
    );
}

#[test]
fn at_the_traces_own_pace_runs_are_compared_by_the_time_waited() {
    let mut replay = pair([300, 400], [100.0, 100.0]);
    replay.conditions.pace = "timed".to_owned();
    for (run, waited_s) in replay.runs.iter_mut().zip([20.0, 15.0]) {
        run.io.as_mut().expect("a disk").waited_s = waited_s;
    }
    let text = table(&replay);
    assert_eq!(row(&text, "Time waited for the disk [s]", "dulo"), ["15.0"]);
    assert_eq!(
        row(&text, "Time waited for the disk against", "dulo"),
        ["-25.0"]
    );
    assert!(!text.contains("Execution time"), "{text}");
}

#[test]
fn without_a_device_only_hits_are_shown() {
    let text = table(&without_device());
    assert!(text.contains("a cache without a disk below") && text.contains("Hit ratio [%]"));
    for part in ["time", "requests to", "sequence [pages]", "deadline"] {
        assert!(!text.contains(part), "{part:?} in\n{text}");
    }
}

#[test]
fn an_interrupted_replay_says_partial_everywhere_and_compares_no_torso() {
    let mut replay = sample_replay();
    for text in [table(&replay), replay_to_html(&replay).expect("HTML")] {
        assert!(!text.contains("PARTIAL"));
    }
    replay.complete = false;
    // The last run stopped early, with hardly a miss so far; one never began.
    let last = replay.runs.last_mut().expect("runs");
    (last.references, last.hits, last.misses) = (1000, 999, 1);
    last.io.as_mut().expect("a disk").elapsed_s = 0.25;
    replay.runs.remove(30);
    let text = table(&replay);
    assert!(text.starts_with("PARTIAL"), "{text}");
    assert_eq!(row(&text, "Hit ratio", "arc")[6..], ["-", "99.90*"]);
    assert_eq!(
        row(&text, "Execution time against", "arc")[6..],
        ["-", "n/a"]
    );
    assert!(text.contains("Warning: A star marks a run"), "{text}");
    let all = sentences(&replay);
    assert!(
        all.contains("PARTIAL (interrupted): Fewest misses: 2q at all 8 sizes."),
        "{all}"
    );
    let csv = replay_to_csv(&replay).expect("CSV");
    assert!(csv.lines().skip(1).all(|l| l.contains(",PARTIAL")));
    assert_eq!(csv.matches(",no,PARTIAL").count(), 1);
    assert!(
        replay_to_html(&replay)
            .expect("HTML")
            .contains("<title>PARTIAL: ")
    );
}

#[test]
fn records_that_were_left_out_are_a_warning() {
    let mut replay = sample_replay();
    replay.traces[0].skipped = vec![("of no length".to_owned(), 3), ("too far".to_owned(), 1)];
    let warning = "multi1.pbt: bad records were left out: 3 of no length, 1 too far.";
    assert!(sentences(&replay).contains(&format!("Warning: {warning}")));
    assert!(replay_to_html(&replay).expect("HTML").contains(warning));
}

#[test]
fn json_comes_back_as_the_same_replay() {
    let replay = sample_replay();
    let text = replay_to_json(&replay).expect("JSON");
    assert!(text.starts_with("{\n  \"schema\": 2,"));
    let mut back = replay_from_json(&text).expect("the same");
    assert!(back.findings[0].claim.starts_with("Fewest misses: 2q"));
    back.findings.clear();
    assert!(back == replay);
    let broken = replay_to_json(&broken_replay()).expect("JSON");
    shows_no_float_words(&broken);
    let back = replay_from_json(&broken).expect("a replay");
    let io = |i: usize| back.runs[i].io.as_ref().expect("a disk");
    assert!(io(1).elapsed_s.is_nan() && back.curves[0].points[0].miss_ratio.is_nan());
    assert_eq!(back.curves[1].points[2].ci95, None);
    assert!(back.runs[6].extra[0].1.is_nan());
    assert_eq!(replay_to_json(&back).expect("JSON"), broken);
}

#[test]
fn json_of_a_later_schema_or_of_something_else_is_refused() {
    let error = replay_from_json(r#"{"schema": 9, "runs": 3}"#).unwrap_err();
    assert!(matches!(error, ReportError::ReplaySchema { found: 9 }));
    assert_eq!(error.to_string(), "schema: is 9, allowed: 1 to 2");
    let error = replay_from_json("{\"schema\": 1,\n \"title\": 5}").unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("not the JSON of a replay") && text.contains("line 2"),
        "{text}"
    );
    assert!(replay_from_json("").is_err() && replay_from_json("[]").is_err());
}

/// Header and records.
fn parsed(text: &str) -> (Vec<String>, Vec<csv::StringRecord>) {
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().expect("a header");
    let header = header.iter().map(str::to_owned).collect();
    (
        header,
        reader.records().map(|r| r.expect("a record")).collect(),
    )
}

#[test]
fn csv_has_one_line_per_run_and_reads_back_exactly() {
    let replay = sample_replay();
    let (header, lines) = parsed(&replay_to_csv(&replay).expect("CSV"));
    assert_eq!(lines.len(), replay.runs.len());
    let at = |name: &str| {
        let found = header.iter().position(|h| h == name);
        found.unwrap_or_else(|| panic!("no field {name} in {header:?}"))
    };
    for (line, run) in lines.iter().zip(&replay.runs) {
        let io = run.io.as_ref().expect("a disk");
        let number = |name: &str| line[at(name)].parse::<f64>().expect("a number");
        assert_eq!(&line[at("policy")], run.policy);
        assert_eq!(number("size_bytes"), (run.size_pages * 4096) as f64);
        assert_eq!(number("misses"), run.misses as f64);
        assert_eq!(Some(number("hit_ratio")), run.hit_ratio());
        assert_eq!(number("elapsed_s"), io.elapsed_s);
        assert_eq!(Some(number("mean_sequence_pages")), io.mean_sequence());
        assert_eq!(
            Some(number("share_in_sequences_over_40")),
            io.share_longer_than(40)
        );
        assert_eq!(number("read_requests"), io.read_requests as f64);
        let own = if run.policy == "dulo" { "1.7" } else { "" };
        assert_eq!(&line[at("merge comparisons per miss")], own);
        assert_eq!(&line[at("compared")], "yes");
    }
    let change = lines[8][at("time_vs_first")]
        .parse::<f64>()
        .expect("a number");
    let times = [8, 0].map(|i: usize| replay.runs[i].io.as_ref().expect("a disk").elapsed_s);
    assert_eq!(change, times[0] / times[1] - 1.0);
    let (header, lines) = parsed(&replay_to_csv(&without_device()).expect("CSV"));
    let elapsed = header
        .iter()
        .position(|h| h == "elapsed_s")
        .expect("a field");
    assert!(
        lines
            .iter()
            .all(|l| l[elapsed].is_empty() && !l[6].is_empty())
    );
}

#[test]
fn csv_of_sequences_adds_up_to_what_was_read() {
    let replay = sample_replay();
    let (header, lines) = parsed(&replay_sequences_to_csv(&replay).expect("CSV"));
    assert_eq!(header[3..6], ["length_pages", "pages", "share_in_shorter"]);
    let io = replay.runs[9].io.as_ref().expect("a disk");
    let own = lines.iter().filter(|l| &l[0] == "dulo" && &l[1] == "20480");
    let own: Vec<_> = own.collect();
    assert_eq!(own.len(), io.sequences.len());
    let pages: u64 = own
        .iter()
        .map(|l| l[4].parse::<u64>().expect("pages"))
        .sum();
    assert_eq!(pages, io.sequences.iter().map(|(_, p)| p).sum::<u64>());
    for line in own {
        let length: u32 = line[3].parse().expect("a length");
        let share: f64 = line[5].parse().expect("a share");
        let known = io.share_shorter_than(length).expect("something was read");
        assert!((share - known).abs() < 1e-12, "{length}: {share} {known}");
    }
    assert_eq!(
        parsed(&replay_sequences_to_csv(&without_device()).expect("CSV"))
            .1
            .len(),
        0
    );
}

#[test]
fn csv_of_curves_has_every_point() {
    let replay = sample_replay();
    let (_, lines) = parsed(&replay_curves_to_csv(&replay).expect("CSV"));
    assert_eq!(
        lines.len(),
        replay.curves.iter().map(|c| c.points.len()).sum::<usize>()
    );
    let exact = &replay.curves[0].points[5];
    assert_eq!(&lines[5][1], "exact");
    assert_eq!(lines[5][7], exact.misses.expect("exact").to_string());
    assert_eq!(lines[5][8].parse::<f64>(), Ok(exact.miss_ratio));
    assert_eq!((&lines[60][1], &lines[60][7]), ("sampled", ""));
    assert!(!lines[60][9].is_empty() && lines[5][9].is_empty());
}

#[test]
fn sequences_come_to_their_mean_and_shares() {
    // Two sequences of one page, three of four pages: 14 pages in 5 sequences.
    let io = ReplayIo {
        sequences: vec![(1, 2), (4, 12)],
        ..ReplayIo::default()
    };
    assert_eq!(io.mean_sequence(), Some(14.0 / 5.0));
    assert_eq!(io.share_longer_than(1), Some(12.0 / 14.0));
    assert_eq!(io.share_longer_than(4), Some(0.0));
    assert_eq!(io.share_shorter_than(4), Some(2.0 / 14.0));
    assert_eq!(io.share_shorter_than(1), Some(0.0));
    assert_eq!(ReplayIo::default().mean_sequence(), None);
}

#[test]
fn curves_stand_at_some_of_their_sizes_with_their_intervals() {
    let text = table(&sample_replay());
    assert!(text.contains("Miss-ratio curves: misses per reference [%]"));
    assert!(text.contains("lru, exact") && text.contains("arc, sampled"));
    assert!(text.contains("95 % interval") && text.contains("8 samples"));
    let all = sentences(&sample_replay());
    assert!(
        all.contains("1 % of the pages of 1,600,000 references, 8 samples"),
        "{all}"
    );
    assert!(
        all.contains("at most 1.1 percentage points off the full runs at "),
        "{all}"
    );
    // Both ends of the curve, and no more than a dozen sizes between them.
    let rows = all.lines().skip_while(|l| !l.starts_with("Miss-ratio"));
    let pages = rows
        .clone()
        .find(|l| l.starts_with(" pages"))
        .expect("a head");
    let pages: Vec<&str> = pages.split_whitespace().skip(1).collect();
    assert_eq!(
        (pages.first(), pages.last()),
        (Some(&"64"), Some(&"881,744"))
    );
    assert!((10..=12).contains(&pages.len()), "{pages:?}");
}

#[test]
fn missing_and_impossible_numbers_are_shown_as_not_available() {
    let replay = broken_replay();
    let text = table(&replay);
    assert!(text.contains("n/a"), "{text}");
    shows_no_float_words(&text);
    shows_no_float_words(&replay_to_html(&replay).expect("HTML"));
    for csv in [
        replay_to_csv(&replay),
        replay_sequences_to_csv(&replay),
        replay_curves_to_csv(&replay),
    ] {
        shows_no_float_words(&csv.expect("CSV"));
    }
}

#[test]
fn an_empty_replay_and_one_of_one_run_give_every_output() {
    let mut one = sample_replay();
    one.runs.truncate(1);
    one.policies.truncate(1);
    one.sizes.truncate(1);
    for (replay, lines) in [(Replay::default(), 1), (one, 2)] {
        let style = TableStyle {
            width: 0,
            bold: true,
        };
        shows_no_float_words(&replay_to_table(&replay, &style));
        shows_no_float_words(&replay_to_html(&replay).expect("HTML"));
        assert_eq!(replay_to_csv(&replay).expect("CSV").lines().count(), lines);
        let text = replay_to_json(&replay);
        shows_no_float_words(&text.expect("JSON"));
    }
    let mut one = sample_replay();
    one.runs.retain(|r| r.policy == "lru");
    one.policies.truncate(1);
    let text = table(&one);
    assert!(
        text.contains("lru hits 14.13 % at 40MiB, and 75.85 % at 320MiB."),
        "{text}"
    );
    assert!(!text.contains("against lru"), "{text}");
}

#[test]
fn names_cannot_steer_the_terminal() {
    let mut replay = sample_replay();
    let evil = "\x1b]0;owned\x07\r\n";
    replay.title = evil.to_owned();
    replay.traces[0].path = evil.to_owned();
    replay.traces[0].skipped = vec![(evil.to_owned(), 1)];
    replay.conditions.device = evil.to_owned();
    replay.conditions.pace = evil.to_owned();
    replay.conditions.notes.push(evil.to_owned());
    replay.curves[0].policy = evil.to_owned();
    for run in &mut replay.runs {
        run.policy.push_str(evil);
        run.extra = vec![(evil.to_owned(), 1.0, evil.to_owned())];
    }
    let text = table(&replay);
    assert!(text.chars().all(|c| c == '\n' || !c.is_control()));
    assert_eq!(SIZES_MIB.len(), replay.sizes.len());
}
