//! Names, parameters and their errors.

use piebald_workload::{Builtin, list};

fn error(text: &str) -> String {
    match Builtin::parse(text) {
        Ok(b) => panic!("{text} was read as {b}"),
        Err(e) => e.to_string(),
    }
}

#[test]
fn forms_of_the_same_program_are_equal() {
    let forms = [
        "mergesort:1MiB",
        "mergesort:size=1MiB",
        " mergesort : 1024KiB ",
        "mergesort:1048576B",
    ];
    for form in forms {
        assert_eq!(
            Builtin::parse(form).unwrap().to_string(),
            "mergesort:size=1MiB"
        );
    }
    let table = Builtin::from_table("triad", [("threads", "2"), ("size", "1MiB")]).unwrap();
    assert_eq!(table, Builtin::parse("triad:1MiB,threads=2").unwrap());
    assert_eq!(table.threads(), 2);
}

#[test]
fn what_is_printed_reads_back() {
    for text in ["triad", "smm:1K,nz=5K,iterations=2", "gups:8MiB,threads=3"] {
        let builtin = Builtin::parse(text).unwrap();
        assert_eq!(Builtin::parse(&builtin.to_string()).unwrap(), builtin);
    }
    let printed = Builtin::parse("smm:1K,nz=5_000,iterations=2")
        .unwrap()
        .to_string();
    assert_eq!(printed, "smm:n=1000,nz=5000,iterations=2");
    assert_eq!(Builtin::parse("triad:64MiB").unwrap().to_string(), "triad");
}

#[test]
fn defaults_are_accepted_and_defaults_lie_in_their_ranges() {
    for spec in list() {
        Builtin::parse(spec.name).unwrap_or_else(|e| panic!("{e}"));
        for p in spec.params {
            let shown = p.show(p.default);
            assert_eq!(p.read(&shown), Ok(p.default), "{} {}", spec.name, p.key);
            assert_eq!(p.read(&p.show(p.max)), Ok(p.max), "{} {}", spec.name, p.key);
        }
    }
}

#[test]
fn stream_is_another_name_of_triad() {
    let parse = |text: &str| Builtin::parse(text).unwrap();
    assert_eq!(
        parse("stream:1MiB,threads=2"),
        parse("triad:1MiB,threads=2")
    );
    assert_eq!(parse("stream").spec().name, "triad");
    let table = Builtin::from_table("stream", [("size", "1MiB")]).unwrap();
    assert_eq!(table, parse("triad:1MiB"));
    assert!(error("streams").ends_with(", stream"));
}

#[test]
fn errors_name_what_was_given_and_what_is_allowed() {
    let unknown = error("bubblesort:1MiB");
    assert!(unknown.starts_with("builtin \"bubblesort\" is unknown; allowed: triad, gups,"));
    assert_eq!(
        error("chase:nodes=3"),
        "builtin \"chase\" has no parameter \"nodes\"; allowed: size, iterations"
    );
    let unitless = error("chase:64");
    assert!(unitless.starts_with("builtin \"chase\": size = \"64\" has an unknown unit"));
    assert!(unitless.ends_with("; allowed: 4KiB to 8GiB"));
    assert_eq!(
        error("gups:3MiB"),
        "builtin \"gups\": size = \"3MiB\" is not a power of two; allowed: 4KiB to 1GiB, a power of two"
    );
    assert_eq!(
        error("triad:1MiB,size=2MiB"),
        "builtin \"triad\" has parameter \"size\" twice"
    );
    assert_eq!(
        error("smm:5000,nz=1000"),
        "builtin \"smm\": nz = 1000 with n = 5000; nz must be at least n"
    );
}

#[test]
fn malformed_texts_are_refused() {
    for text in [
        "",
        ":",
        "scan:",
        "triad:,",
        "triad:1MiB,2",
        "triad:threads=0",
        "triad:threads=",
        "triad:size",
        "triad:1MiB,,",
        "triad:threads=-1",
        "fft:99999999999999999999",
        "fft:18446744073709551615G",
        "fft:K",
        "fft:é",
        "triad:iterations=x",
    ] {
        let message = error(text);
        assert!(
            message.contains("allowed") || message.contains("twice"),
            "{text}: {message}"
        );
    }
}

#[test]
fn the_listing_names_every_parameter_with_its_default() {
    for spec in list() {
        let text = spec.to_string();
        for p in spec.params {
            assert!(
                text.contains(p.key) && text.contains(&p.show(p.default)),
                "{text}"
            );
        }
    }
}
