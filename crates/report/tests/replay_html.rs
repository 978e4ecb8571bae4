//! The page of a replay as a document: well-formed, self-contained, with every plot.

use crate::sample;
use piebald_report::{MissRatioPoint, Replay, replay_to_html, replay_to_html_at};
use roxmltree::{Document, Node, ParsingOptions};

use crate::sample::{sample_replay, without_device};

fn parse(html: &str) -> Document<'_> {
    let options = ParsingOptions {
        allow_dtd: true,
        ..ParsingOptions::default()
    };
    Document::parse_with_options(html, options).unwrap_or_else(|e| panic!("not well-formed: {e}"))
}

fn all<'a>(document: &'a Document<'a>, name: &'static str) -> impl Iterator<Item = Node<'a, 'a>> {
    document
        .descendants()
        .filter(move |n| n.tag_name().name() == name)
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants()
        .filter_map(|n| n.text().filter(|_| n.is_text()))
        .collect()
}

fn texts(document: &Document<'_>, name: &'static str) -> Vec<String> {
    all(document, name).map(text).collect()
}

/// Titles of the pictures.
fn captions(replay: &Replay, cdf_sizes: &[u64]) -> Vec<String> {
    let html = replay_to_html_at(replay, cdf_sizes).expect("HTML");
    let document = parse(&html);
    assert_eq!(
        all(&document, "svg").count(),
        all(&document, "figure").count()
    );
    texts(&document, "figcaption")
}

#[test]
fn the_page_has_the_papers_plots_and_the_curves() {
    let replay = sample_replay();
    let titles = captions(&replay, &[]);
    assert_eq!(titles.len(), 6, "{titles:?}");
    assert_eq!(titles[..2], ["Execution time", "Hit ratio"]);
    let gap = |i: usize| {
        let time = |r: usize| replay.runs[r].io.as_ref().expect("a disk").elapsed_s;
        100.0 * (time(8 + i) / time(i) - 1.0).abs()
    };
    let gaps: Vec<f64> = (0..8).map(gap).collect();
    let (least, most) = (
        gaps.iter().copied().fold(f64::INFINITY, f64::min),
        gaps.iter().copied().fold(0.0, f64::max),
    );
    assert!(titles[2].ends_with(&format!(
        "smallest gap in time between lru and dulo, {least:.1} %"
    )));
    assert!(titles[3].ends_with(&format!(
        "largest gap in time between lru and dulo, {most:.1} %"
    )));
    let at = gaps
        .iter()
        .position(|g| *g == most)
        .expect("it is one of them");
    assert!(titles[3].starts_with(&format!("{}MiB: ", sample::SIZES_MIB[at])));
    assert_eq!(titles[4..], ["Miss ratio over memory size", KNEE]);
}

/// A picture of its own for the part of the sizes where a curve falls.
const KNEE: &str = "Where a curve falls most steeply";

#[test]
fn only_a_steep_fall_has_a_picture_of_its_own() {
    let mut replay = without_device();
    assert_eq!(captions(&replay, &[])[2..], [KNEE]);
    for curve in &mut replay.curves {
        let points = curve.points.len() as f64;
        for (at, point) in curve.points.iter_mut().enumerate() {
            // As much for each doubling.
            point.miss_ratio = 1.0 - at as f64 / points;
        }
    }
    assert_eq!(captions(&replay, &[])[1..], ["Miss ratio over memory size"]);
}

#[test]
fn every_run_can_be_pointed_at_and_every_number_read() {
    let replay = sample_replay();
    let html = replay_to_html(&replay).expect("HTML");
    let document = parse(&html);
    let tips = texts(&document, "title");
    let count = |part: &str| tips.iter().filter(|t| t.contains(part)).count();
    // Four policies at eight sizes in two plots.
    assert_eq!(count(" s at "), 32);
    assert_eq!(count(" % at "), 32);
    let run = &replay.runs[11];
    let hit = format!(
        "dulo: {:.2} % at 160MiB",
        100.0 * run.hit_ratio().expect("a ratio")
    );
    assert!(tips.contains(&hit), "{hit}");
    assert!(count("in sequences shorter than ") > 4 * 20);
    let cells = texts(&document, "td");
    let io = run.io.as_ref().expect("a disk");
    for number in [
        format!("{:.2}", 100.0 * run.hit_ratio().expect("a ratio")),
        format!("{:.1}", 100.0 * io.share_longer_than(40).expect("a share")),
        io.read_requests.to_string(),
        io.prefetched_unused.to_string(),
        io.waited_hits.to_string(),
        run.misses.to_string(),
    ] {
        let found = cells.iter().any(|c| c.replace(',', "") == number);
        assert!(found, "no cell {number}");
    }
    let headings = texts(&document, "h3");
    assert!(headings.iter().any(|h| h == "merge comparisons per miss"));
    // The best of each column: most hits, least time.
    let best = all(&document, "td").filter(|n| n.attribute("class") == Some("best"));
    assert_eq!(best.count(), 2 * 8);
}

#[test]
fn sizes_of_the_readers_choice_are_shown_instead() {
    let replay = sample_replay();
    let titles = captions(&replay, &[320 * 256, 5]);
    assert_eq!(titles.len(), 5, "{titles:?}");
    assert_eq!(titles[2], "320MiB");
    assert_eq!(captions(&replay, &[5]), captions(&replay, &[]));
}

#[test]
fn without_a_device_there_are_hit_ratios_alone() {
    let mut replay = without_device();
    assert_eq!(
        captions(&replay, &[]),
        ["Hit ratio", "Miss ratio over memory size", KNEE]
    );
    replay.curves.clear();
    assert_eq!(captions(&replay, &[]), ["Hit ratio"]);
    assert!(captions(&Replay::default(), &[]).is_empty());
}

#[test]
fn one_policy_shows_its_smallest_and_largest_memory() {
    let mut replay = sample_replay();
    replay.policies.truncate(1);
    replay.runs.truncate(8);
    assert_eq!(captions(&replay, &[])[2..4], ["40MiB", "320MiB"]);
}

#[test]
fn a_curve_of_every_size_is_drawn_with_the_points_that_can_be_seen() {
    let mut replay = without_device();
    let point = |size_pages: u64| MissRatioPoint {
        size_pages,
        misses: Some(1),
        miss_ratio: 1.0 / (size_pages as f64).sqrt(),
        ci95: Some([0.0, 1.0]),
    };
    replay.curves.truncate(1);
    replay.curves[0].points = (0..100_000).map(point).collect();
    let html = replay_to_html(&replay).expect("HTML");
    assert!(html.len() < 200_000, "{} bytes", html.len());
    let document = parse(&html);
    let tips = texts(&document, "title");
    let curve = tips.iter().filter(|t| t.starts_with("lru, exact: "));
    assert!((20..=60).contains(&curve.count()), "{tips:?}");
}

#[test]
fn sampled_curves_have_a_band_and_exact_ones_none() {
    let mut replay = without_device();
    let bands = |replay: &Replay| {
        let html = replay_to_html(replay).expect("HTML");
        parse(&html)
            .descendants()
            .filter(|n| n.tag_name().name() == "polygon")
            .count()
    };
    // In the picture of all sizes, and in that of the steepest fall.
    assert_eq!(bands(&replay), 2 * 2);
    replay.curves.truncate(1);
    assert_eq!(bands(&replay), 0);
}

#[test]
fn more_policies_than_colors_are_told_apart_by_dashes() {
    let mut replay = sample_replay();
    for i in 0..6 {
        let name = format!("p{i}");
        let copies: Vec<_> = replay.runs[..8].to_vec();
        replay.runs.extend(copies.into_iter().map(|mut r| {
            r.policy.clone_from(&name);
            r
        }));
    }
    let html = replay_to_html(&replay).expect("HTML");
    let document = parse(&html);
    let names = texts(&document, "li");
    assert!(names.contains(&"p2".to_owned()) && names.contains(&"p3 (dashed)".to_owned()));
}

#[test]
fn what_comes_from_outside_cannot_break_out() {
    for evil in [
        "<script>alert(1)</script>",
        "\"><img src=x>",
        "]]>&amp;\u{0}\u{202e}",
        "'",
    ] {
        let mut replay = sample_replay();
        let put = |texts: &mut [&mut String]| texts.iter_mut().for_each(|t| t.push_str(evil));
        put(&mut [&mut replay.title, &mut replay.version]);
        replay.command = Some(evil.to_owned());
        replay.traces.iter_mut().for_each(|t| {
            put(&mut [&mut t.path, &mut t.format]);
            t.skipped = vec![(evil.to_owned(), 1)];
        });
        let c = &mut replay.conditions;
        put(&mut [
            &mut c.device,
            &mut c.readahead,
            &mut c.scheduler,
            &mut c.pace,
            &mut c.layout,
        ]);
        c.notes.push(evil.to_owned());
        replay
            .policies
            .iter_mut()
            .for_each(|p| put(&mut [&mut p.name, &mut p.about]));
        replay
            .curves
            .iter_mut()
            .for_each(|c| put(&mut [&mut c.policy]));
        for run in &mut replay.runs {
            put(&mut [&mut run.policy]);
            run.extra = vec![(evil.to_owned(), 1.0, evil.to_owned())];
        }
        let html = replay_to_html(&replay).expect("HTML");
        let document = parse(&html);
        for name in ["script", "img"] {
            assert_eq!(all(&document, name).count(), 0, "{evil:?}");
        }
        let svgs = all(&document, "svg").count();
        assert_eq!(svgs, 6, "{evil:?}");
    }
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let html = replay_to_html(&sample_replay()).expect("HTML");
    let document = parse(&html);
    for node in document.descendants() {
        for attribute in node.attributes() {
            let outside = ["src", "href"].contains(&attribute.name());
            assert!(
                !outside || attribute.value().starts_with("data:"),
                "{attribute:?}"
            );
        }
    }
    assert!(!html.contains("@import") && !html.contains("url("));
}
