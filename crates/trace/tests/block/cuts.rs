//! Input that is cut at every byte.

use piebald_trace::block::{Format, Options};

use super::support::{open, options, read, sample};

/// Lenient reading gives what strict reading gave before its error.
fn lenient_agrees(bytes: &[u8], format: Format, requests: usize) {
    let lenient = Options {
        lenient: true,
        ..options(format)
    };
    let mut trace = open(bytes, lenient);
    let mut batch = Vec::new();
    let mut n = 0;
    while trace.next_batch(&mut batch).expect("lenient") {
        n += batch.len();
    }
    assert_eq!(n, requests, "{format} cut at {}", bytes.len());
}

fn is_text(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_ok() && !bytes.contains(&0)
}

#[test]
fn a_cut_in_a_binary_file_is_seen_unless_it_falls_between_records() {
    for format in Format::ALL {
        let whole = sample(format);
        if is_text(&whole) {
            continue;
        }
        let (all, failure) = read(&whole, options(format));
        assert_eq!(failure, None, "{format}");
        let mut clean = 0;
        for at in 1..whole.len() {
            let (got, failure) = read(&whole[..at], options(format));
            assert!(all.starts_with(&got), "{format} cut at {at}");
            lenient_agrees(&whole[..at], format, got.len());
            let Some(why) = failure else {
                clean += 1;
                continue;
            };
            let (have, need) = counts(&why);
            assert!(0 < have && have < need, "{format} at {at}: {why}");
        }
        assert!(
            clean >= 2 && clean < whole.len() / 3,
            "{format}: {clean} clean cuts"
        );
    }
}

/// The bytes of a cut record, and those it needs.
fn counts(why: &str) -> (u64, u64) {
    let tail = why.split_once("the file ends inside a ").expect(why).1;
    let tail = tail.split_once(": ").expect(why).1;
    let (have, need) = tail.split_once(" of ").expect(why);
    let need = need.strip_suffix(" bytes").expect(why);
    (have.parse().expect(why), need.parse().expect(why))
}

#[test]
fn a_cut_in_a_text_is_seen_unless_the_last_line_parses() {
    for format in Format::ALL {
        let whole = sample(format);
        if !is_text(&whole) {
            continue;
        }
        let mut unended = 0;
        // The first record tells how many columns there are.
        let told = whole.split_inclusive(|b| *b == b'\n').take(2);
        let first = match format {
            Format::Columns => told.map(<[u8]>::len).sum(),
            _ => 1,
        };
        for at in first..=whole.len() {
            let cut = &whole[..at];
            let lines = cut.iter().rposition(|b| *b == b'\n').map_or(0, |n| n + 1);
            let before = match lines {
                0 => Vec::new(),
                _ => read(&cut[..lines], options(format)).0,
            };
            let (got, failure) = read(cut, options(format));
            assert!(got.starts_with(&before), "{format} cut at {at}");
            lenient_agrees(cut, format, got.len());
            match failure {
                None => {
                    let mut trace = open(cut, options(format));
                    while trace.next_batch(&mut Vec::new()).expect("reads") {}
                    let noted = trace.notes().unended_lines;
                    assert_eq!(noted, u64::from(lines < at), "{format} cut at {at}");
                    unended += noted;
                }
                Some(why) => {
                    assert_eq!(got, before, "{format} cut at {at}");
                    let said = "; no line feed ends this line: the file may have been cut";
                    assert!(why.ends_with(said), "{format} cut at {at}: {why}");
                }
            }
        }
        assert!(unended > 0, "{format}: no cut is taken");
    }
}
