//! `piebald trace formats`, and the page that it writes.

use std::path::Path;
use std::process::Command;

use piebald_trace::detect::TraceFormat;

fn run(args: &[&str]) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_piebald"))
        .args(args)
        .output()
        .expect("piebald runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

fn formats(args: &[&str]) -> String {
    let (code, out, err) = run(&[&["trace", "formats"], args].concat());
    assert_eq!(code, Some(0), "{err}");
    out
}

#[test]
fn the_page_of_formats_is_what_the_readers_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == formats(&["--page"]),
        "docs/formats.md is stale; this remakes it:\n\
         cargo run -p piebald -- trace formats --page > formats.md && mv formats.md docs/"
    );
}

#[test]
fn every_format_is_listed_and_has_its_section() {
    let (list, page) = (formats(&[]), formats(&["--page"]));
    for format in TraceFormat::all() {
        let row = format!("  {:<22} {}\n", format.name(), format.about().what);
        assert!(list.contains(&row), "{format}");
        let section = formats(&[format.name()]);
        assert!(section.starts_with(&format!("### {format}\n")), "{format}");
        assert!(page.contains(&section), "{format}");
        for alias in format.aliases() {
            assert_eq!(formats(&[alias]), section, "{alias}");
        }
    }
}

#[test]
fn an_unknown_name_is_told_the_nearest_one() {
    let cases: [(&[&str], &str); 5] = [
        (&["trace", "formats", "blktracr"], "blktrace"),
        (&["trace", "formats", "msr-cambrige"], "msr-cambridge"),
        (&["trace", "info", "x", "--format", "pinatrac"], "pinatrace"),
        (
            &["trace", "convert", "x", "y", "--format", "lacky"],
            "lackey",
        ),
        (&["replay", "x", "--format", "tencnet"], "tencent"),
    ];
    for (args, near) in cases {
        let (code, _, err) = run(args);
        assert_eq!(code, Some(2), "{err}");
        assert!(err.contains(&format!("did you mean {near}?")), "{err}");
    }
    let (code, _, err) = run(&["trace", "formats", "iso"]);
    assert_eq!(code, Some(2));
    assert!(
        err.contains("allowed:") && !err.contains("did you mean"),
        "{err}"
    );
}
