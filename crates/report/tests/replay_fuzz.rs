//! Replays of any content: every output is made, reads back, and shows no number that
//! does not exist. `PIEBALD_FUZZ_CASES` sets how many are tried.

use std::env;

use piebald_report::{
    MissRatioCheck, MissRatioCurve, MissRatioPoint, Replay, ReplayBytes, ReplayIo, ReplayPolicy,
    ReplayRun, ReplayTrace, TableStyle, replay_curves_to_csv, replay_from_json,
    replay_sequences_to_csv, replay_to_csv, replay_to_html, replay_to_json, replay_to_table,
};

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Mostly ordinary, at times at an edge.
    fn count(&mut self) -> u64 {
        match self.below(8) {
            0 => 0,
            1 => u64::MAX,
            2 => 1,
            _ => self.next() >> (8 + self.below(56)),
        }
    }

    fn real(&mut self) -> f64 {
        let edges = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            -0.0,
            0.0,
            1.0,
        ];
        match self.below(3) {
            0 => edges[self.below(edges.len() as u64) as usize],
            1 => self.below(1000) as f64 / 1000.0,
            _ => f64::from_bits(self.next()),
        }
    }

    fn text(&mut self) -> String {
        let texts = [
            "lru",
            "dulo",
            "",
            "<b>&\"'",
            "a\x1b[2J\r\n\t",
            "ä, \u{202e}\"x\"",
            "timed",
            "serial",
        ];
        texts[self.below(texts.len() as u64) as usize].to_owned()
    }

    fn list<T>(&mut self, most: u64, mut make: impl FnMut(&mut Self) -> T) -> Vec<T> {
        let length = self.below(most + 1);
        (0..length).map(|_| make(self)).collect()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(3) > 0).then(|| make(self))
    }
}

fn io(d: &mut Draws) -> ReplayIo {
    ReplayIo {
        elapsed_s: d.real(),
        waited_s: d.real(),
        disk_busy_s: d.real(),
        read_requests: d.count(),
        write_requests: d.count(),
        pages_read: d.count(),
        pages_written: d.count(),
        prefetched: d.count(),
        prefetched_unused: d.count(),
        waited_hits: d.count(),
        sequences: d.list(6, |d| (d.count() as u32, d.count())),
    }
}

fn run(d: &mut Draws) -> ReplayRun {
    ReplayRun {
        parts: None,
        policy: d.text(),
        size_pages: d.count() % 5,
        references: [1000, d.count()][d.below(2) as usize],
        hits: d.count(),
        misses: d.count(),
        bytes: d.maybe(|d| ReplayBytes {
            requested: d.count(),
            missed: d.count(),
            too_large: d.count(),
        }),
        io: d.maybe(io),
        extra: d.list(2, |d| (d.text(), d.real(), d.text())),
    }
}

fn curve(d: &mut Draws) -> MissRatioCurve {
    let point = |d: &mut Draws| MissRatioPoint {
        size_pages: d.count(),
        misses: d.maybe(Draws::count),
        miss_ratio: d.real(),
        ci95: d.maybe(|d| [d.real(), d.real()]),
    };
    MissRatioCurve {
        policy: d.text(),
        exact: d.below(2) == 0,
        sampling_rate: d.real(),
        samples: d.count() as u32,
        references: d.count(),
        points: d.list(20, point),
        checks: d.list(3, |d| MissRatioCheck {
            size_pages: d.count(),
            sampled: d.real(),
            full: d.real(),
        }),
    }
}

fn replay(d: &mut Draws) -> Replay {
    let trace = |d: &mut Draws| ReplayTrace {
        path: d.text(),
        format: d.text(),
        requests: d.count(),
        references: d.count(),
        writes: d.count(),
        unique_pages: d.count(),
        sequential_share: d.real(),
        skipped: d.list(2, |d| (d.text(), d.count())),
        ..ReplayTrace::default()
    };
    let mut out = Replay {
        schema: 1,
        title: d.text(),
        version: d.text(),
        command: d.maybe(Draws::text),
        complete: d.below(2) == 0,
        traces: d.list(2, trace),
        policies: d.list(3, |d| ReplayPolicy {
            name: d.text(),
            about: d.text(),
        }),
        sizes: d.list(3, Draws::count),
        runs: d.list(14, run),
        curves: d.list(2, curve),
        host_seconds: d.real(),
        ..Replay::default()
    };
    out.conditions.page_bytes = [0, 4096, d.count()][d.below(3) as usize];
    out.conditions.pace = d.text();
    out.conditions.layout = d.text();
    out
}

fn shows_no_float_words(text: &str) {
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let found = words.find(|w| ["NaN", "nan", "inf", "Infinity"].contains(w));
    assert_eq!(found, None);
}

fn check(replay: &Replay) {
    let json = replay_to_json(replay).expect("JSON");
    let back = replay_from_json(&json).expect("the same");
    assert_eq!(replay_to_json(&back).expect("JSON"), json);
    let style = TableStyle::default();
    let table = replay_to_table(replay, &style);
    assert!(table.chars().all(|c| c == '\n' || !c.is_control()));
    let html = replay_to_html(replay).expect("HTML");
    let options = roxmltree::ParsingOptions {
        allow_dtd: true,
        ..Default::default()
    };
    roxmltree::Document::parse_with_options(&html, options).expect("well-formed");
    for text in [table, html] {
        shows_no_float_words(&text);
    }
    for text in [
        replay_to_csv(replay),
        replay_sequences_to_csv(replay),
        replay_curves_to_csv(replay),
    ] {
        let text = text.expect("CSV");
        shows_no_float_words(&text);
        let mut reader = csv::Reader::from_reader(text.as_bytes());
        assert!(reader.records().all(|r| r.is_ok()));
    }
}

#[test]
fn fuzz_any_replay_gives_every_output() {
    let cases = env::var("PIEBALD_FUZZ_CASES").ok();
    let cases = cases.map_or(300, |n| {
        let n = n.parse::<u64>().expect("PIEBALD_FUZZ_CASES: a number");
        // A case is a whole report in every form, as long as tens of other rooms' cases.
        n.div_ceil(10)
    });
    for seed in 0..cases {
        let replay = replay(&mut Draws(seed));
        let checked = std::panic::catch_unwind(|| check(&replay));
        assert!(checked.is_ok(), "seed {seed}: {replay:?}");
    }
}
