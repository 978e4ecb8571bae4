//! The HTML report as a document: well-formed, self-contained, escaped.

use piebald_report::{Study, replay_to_html, to_html};
use roxmltree::{Document, Node, ParsingOptions};

use crate::{
    common::sample_study,
    sample::{sample_replay, without_device},
};

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

/// A study in which everything that comes from outside tries to break out.
fn hostile(evil: &str) -> Study {
    let mut study = sample_study();
    study.title = evil.to_owned();
    study.version = evil.to_owned();
    study.machine.title = evil.to_owned();
    study.machine.lines.push(evil.to_owned());
    for list in [
        &mut study.features,
        &mut study.missing,
        &mut study.notes,
        &mut study.warnings,
    ] {
        list.push(evil.to_owned());
    }
    study.command = Some(evil.to_owned());
    study.scenario = Some(format!("{evil}\n\t{evil}"));
    for policy in &mut study.policies {
        policy.name += evil;
        policy.description = evil.to_owned();
        let program = &mut policy.programs[0];
        program.name = evil.to_owned();
        program.input = evil.to_owned();
        program.cores = evil.to_owned();
        program.alone.mpki[2].level = evil.to_owned();
        program.alone.extra[0].name = evil.to_owned();
        program.alone.extra[0].unit = evil.to_owned();
    }
    study.curves[0].program = evil.to_owned();
    study.curves[0].cache = evil.to_owned();
    study.set_maps[0].cache = evil.to_owned();
    study.set_maps[0].owners[2] = evil.to_owned();
    study
}

#[test]
fn the_legend_of_set_maps_has_the_lines_of_its_areas() {
    let html = to_html(&sample_study()).unwrap();
    let document = parse(&html);
    let legend = all(&document, "ul").find(|list| {
        let of_maps = list.attribute("class") == Some("legend");
        of_maps && text(*list).contains("kernel")
    });
    let chips: Vec<&str> = legend
        .expect("a legend")
        .descendants()
        .filter_map(|n| n.attribute("class")?.strip_prefix("chip "))
        .collect();
    assert_eq!(chips, ["empty", "kernel", "p0", "p1 h1", "p2 h2"]);
    for kind in ["hatch1", "hatch2"] {
        assert!(html.contains(&format!("fill=\"url(#{kind})\"")), "{kind}");
    }
    for class in [".chip.h1 {", ".chip.h2 {"] {
        assert!(html.contains(class), "{class}");
    }
}

#[test]
fn lines_of_speeds_have_a_legend_beside_them() {
    let study = sample_study();
    let html = to_html(&study).unwrap();
    let document = parse(&html);
    let section = all(&document, "section").find(|s| text(*s).contains("Programs over time"));
    let legend = section.expect("a section").descendants();
    let legend: Vec<String> = legend
        .filter(|n| n.attribute("class") == Some("legend"))
        .flat_map(|list| list.descendants().filter(|n| n.tag_name().name() == "li"))
        .map(text)
        .collect();
    let courses = study.policies.iter().filter_map(|p| p.course.as_ref());
    let lines: Vec<&str> = courses
        .flat_map(|c| &c.ipc)
        .map(|line| line.program.as_str())
        .collect();
    assert!(!lines.is_empty());
    for line in lines {
        assert!(legend.iter().any(|name| name == line), "{line}: {legend:?}");
    }
}

#[test]
fn the_report_is_well_formed_and_has_every_picture() {
    let html = to_html(&sample_study()).unwrap();
    let document = parse(&html);
    // Slowdown, three levels, TLB, IPC, traffic, row hits, a curve, three maps.
    assert_eq!(all(&document, "svg").count(), 14);
    assert_eq!(
        all(&document, "svg")
            .filter(|s| s.attribute("aria-label").is_none())
            .count(),
        0
    );
    assert_eq!(all(&document, "table").count(), 6);
    let bars = all(&document, "title").filter(|t| text(*t).contains("alone under buddy"));
    assert_eq!(bars.count(), 3 * 7, "one tip per bar of the phase alone");
    let headline = document
        .descendants()
        .find(|n| n.attribute("class") == Some("headline"))
        .unwrap();
    assert!(text(headline).contains("bzip2 runs"), "{}", text(headline));
}

/// On a narrow screen what is wide is scrolled, and no table is shown twice.
#[test]
fn pictures_and_tables_scroll_and_no_two_tables_are_equal() {
    let pages = [
        to_html(&sample_study()).unwrap(),
        replay_to_html(&sample_replay()).unwrap(),
        replay_to_html(&without_device()).unwrap(),
    ];
    for html in &pages {
        let document = parse(html);
        let inside = |node: Node<'_, '_>, tag: &str, class: Option<&str>| {
            node.ancestors()
                .any(|n| n.has_tag_name(tag) && (class.is_none() || n.attribute("class") == class))
        };
        assert!(all(&document, "svg").all(|svg| inside(svg, "figure", None)));
        let tables: Vec<_> = all(&document, "table").collect();
        assert!(!tables.is_empty());
        assert!(tables.iter().all(|t| inside(*t, "div", Some("scroll"))));
        let mut contents: Vec<String> = tables.iter().map(|t| text(*t)).collect();
        contents.sort_unstable();
        for pair in contents.windows(2) {
            assert_ne!(pair[0], pair[1], "a table is there twice");
        }
        let style: String = all(&document, "style").map(text).collect();
        let narrow = style
            .split("@media screen and (max-width: 600px) {")
            .nth(1)
            .expect("rules for narrow screens");
        for rule in [
            "figure { overflow-x: auto; }",
            ".chart { min-width: 520px; }",
        ] {
            assert!(narrow.contains(rule), "{rule}");
        }
        assert!(style.contains(".scroll { overflow-x: auto; }"));
        let viewport = all(&document, "meta").find(|m| m.attribute("name") == Some("viewport"));
        let viewport = viewport.and_then(|m| m.attribute("content"));
        assert_eq!(viewport, Some("width=device-width, initial-scale=1"));
    }
}

#[test]
fn every_axis_has_a_unit() {
    let html = to_html(&sample_study()).unwrap();
    let document = parse(&html);
    for svg in all(&document, "svg") {
        let words: String = text(svg);
        let unit = [
            "[%]",
            "[1/1000 instructions]",
            "[instr/cycle]",
            "[GB/s]",
            "[ms]",
            "[us]",
            "misses per 1000 instructions",
        ];
        assert!(
            unit.iter().any(|u| words.contains(u)),
            "no unit in {:?}",
            svg.attribute("aria-label")
        );
    }
}

#[test]
fn nothing_is_loaded_from_elsewhere_and_nothing_is_executed() {
    let html = to_html(&hostile(
        "<script src=\"http://example.org/x.js\">alert(1)</script>",
    ))
    .unwrap();
    let document = parse(&html);
    for node in document.descendants().filter(Node::is_element) {
        assert!(!["script", "iframe", "object", "img", "image"].contains(&node.tag_name().name()));
        for attribute in node.attributes() {
            let (name, value) = (attribute.name(), attribute.value());
            assert!(!name.starts_with("on"), "{name}={value}");
            let loads = ["src", "href", "action", "data"].contains(&name);
            assert!(!loads || value == "data:,", "{name}={value}");
        }
    }
    let css: String = all(&document, "style").map(text).collect();
    assert!(!css.contains("url(") && !css.contains("@import"));
}

#[test]
fn text_from_outside_is_shown_as_it_is_and_never_as_markup() {
    for evil in [
        "<script>alert('x')</script>",
        "\"><img src=x onerror=alert(1)>",
        "</style></title><b>",
        "]]>&lt;&amp;'",
        "\u{0}\u{1b}[31m\u{ffff}\r",
        "{{ title }}{% include \"x\" %}",
    ] {
        let html = to_html(&hostile(evil)).unwrap();
        let document = parse(&html);
        assert_eq!(
            all(&document, "script").count()
                + all(&document, "b").filter(|b| text(*b).is_empty()).count(),
            0
        );
        let printable: String = evil
            .chars()
            .map(|c| {
                if c.is_control() || c == '\u{ffff}' {
                    '\u{fffd}'
                } else {
                    c
                }
            })
            .collect();
        let title = all(&document, "h1").next().unwrap();
        assert_eq!(text(title), printable);
        // Nothing that was not markup in the harmless report has become markup.
        let harmless = to_html(&hostile("plain")).unwrap();
        let elements = |d: &Document<'_>| {
            d.descendants()
                .filter(|n| n.is_element() && n.tag_name().name() != "tspan")
                .count()
        };
        assert_eq!(elements(&document), elements(&parse(&harmless)), "{evil:?}");
    }
}

#[test]
fn one_repetition_is_told_as_such() {
    let mut study = sample_study();
    study.repetitions = 1;
    for program in study.policies.iter_mut().flat_map(|p| &mut p.programs) {
        program.slowdown = program
            .slowdown
            .take()
            .map(|s| s.values[..1].to_vec().into());
    }
    let html = to_html(&study).unwrap();
    assert!(html.contains("no intervals") && html.contains("it has one repetition"));
}
