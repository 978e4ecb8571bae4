//! Reading colour maps from text: what is accepted, what errors name, and that
//! nothing that is read can break the reader.

use crate::kit::{Random, setting};
use piebald_policy::color_map::{BitClass, ColorMap, TextFault};

/// The error of a text as words, with its line and word.
fn error(text: &str) -> (u32, String, TextFault) {
    let error = ColorMap::from_text(text).expect_err(text);
    let words = error.to_string();
    assert!(
        words.starts_with(&format!("line {}: ", error.line)),
        "{words}"
    );
    assert!(words.contains("; allowed: "), "{words}");
    (error.line, error.word.to_owned(), error.fault)
}

#[test]
fn lines_become_color_bits_in_their_order() {
    let text = "# banks\nB 14 18\n\n  B 15,19 # channel\r\nO 16^20^24\n12\n";
    let read = ColorMap::from_text(text).unwrap();
    let map = &read.map;
    assert_eq!((map.bits(), read.no_colors), (4, 0));
    assert_eq!(map.mask(0), 1 << 2 | 1 << 6);
    assert_eq!(map.mask(2), 1 << 4 | 1 << 8 | 1 << 12);
    assert_eq!(map.mask(3), 1);
    let classes: Vec<_> = (0..4).map(|i| map.class(i)).collect();
    let (b, o) = (BitClass::Bank, BitClass::Both);
    assert_eq!(classes, [b, b, o, BitClass::Unknown]);
    assert_eq!(map.to_string(), "B 14 18\nB 15 19\nO 16 20 24\n12\n");
}

#[test]
fn functions_that_change_within_a_page_count_by_what_the_page_fixes() {
    let read = ColorMap::from_text("6 16\n").unwrap();
    assert_eq!((read.map.bits(), read.no_colors), (0, 1));
    // Together, 6 ^ 16 and 6 ^ 17 fix 16 ^ 17.
    let read = ColorMap::from_text("6 16\n13\n6 17\n").unwrap();
    assert_eq!((read.map.bits(), read.no_colors), (2, 1));
    assert_eq!(read.map.to_string(), "13\n16 17\n");
}

#[test]
fn errors_name_the_line_and_the_word() {
    use TextFault::*;
    assert_eq!(error("14\n15 x7\n"), (2, "x7".into(), NotABit));
    assert_eq!(error("14\n\n64"), (3, "64".into(), NotABit));
    assert_eq!(error("-3"), (1, "-3".into(), NotABit));
    assert_eq!(error("14 B"), (1, "B".into(), NotABit));
    assert_eq!(error("B B 14"), (1, "B".into(), NotABit));
    assert_eq!(error("C # nothing"), (1, "C".into(), NotABit));
    assert_eq!(error("14 15 14"), (1, "14".into(), Repeated));
    assert_eq!(error("14\n6 7 # low"), (2, "6 7".into(), InPage));
    assert_eq!(error("14\n15\n15 14"), (3, "15 14".into(), Dependent));
    let lines = |n| (12..12 + n).map(|b| format!("{b}\n")).collect::<String>();
    assert_eq!(error(&lines(13)), (13, "24".into(), TooManyBits));
    let mixed: String = (12..37).map(|b| format!("{} {b}\n", b % 12)).collect();
    assert_eq!(error(&mixed), (25, "0 36".into(), TooManyLines));
    let mixed: String = (12..26).map(|b| format!("0 {b}\n")).collect();
    assert_eq!(error(&mixed), (14, "0 25".into(), TooManyBits));
}

const CORPUS: &[&str] = &[
    "",
    "#",
    "14\n15\n16\n21\n22\n",
    "B 14 18\nB 15 19\nC 16\nO 17\n",
    "6 16\n6 17\n13\n",
    "12,13^14\t15\r\n63\n",
    "B\nC\n",
    "0\n",
    "12 12\n",
    "99999999999999999999\n",
    "1２\n",
    "14 é\n",
    "\n\n\n\u{a0}14\n",
    "12\n13\n14\n15\n16\n17\n18\n19\n20\n21\n22\n23\n24\n",
];

/// A corpus entry with some bytes changed, added or taken away, or two joined.
fn mutated(random: &mut Random) -> String {
    const ALPHABET: &[u8] = b"0123456789 \n\n ,^#BCO\t\r";
    let pick = |r: &mut Random| CORPUS[r.below(CORPUS.len() as u64) as usize];
    let mut bytes = pick(random).as_bytes().to_vec();
    if random.below(3) == 0 {
        bytes.extend_from_slice(pick(random).as_bytes());
    }
    for _ in 0..random.below(8) {
        let at = random.below(bytes.len() as u64 + 1) as usize;
        let byte = match random.below(8) {
            0 => random.next() as u8,
            _ => ALPHABET[random.below(ALPHABET.len() as u64) as usize],
        };
        match random.below(3) {
            0 => bytes.insert(at, byte),
            1 if at < bytes.len() => bytes[at] = byte,
            _ if at < bytes.len() => drop(bytes.remove(at)),
            _ => {}
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whatever is read prints, and what it prints reads as the same map.
fn survives(text: &str) -> bool {
    match ColorMap::from_text(text) {
        Err(error) => {
            assert!(
                error.line > 0 && text.contains(error.word),
                "{text:?}: {error}"
            );
            false
        }
        Ok(read) => {
            let printed = read.map.to_string();
            let again = ColorMap::from_text(&printed);
            assert!(
                again.is_ok_and(|a| a.map == read.map && a.no_colors == 0),
                "{text:?} printed as {printed:?}"
            );
            true
        }
    }
}

#[test]
fn fuzz_color_maps() {
    let cases = setting("PIEBALD_FUZZ_CASES", 20_000);
    let mut random = Random(setting("PIEBALD_FUZZ_SEED", 1));
    let mut accepted = CORPUS.iter().filter(|text| survives(text)).count() as u64;
    for _ in 0..cases {
        accepted += u64::from(survives(&mutated(&mut random)));
    }
    assert!(accepted > 0 && accepted < cases + CORPUS.len() as u64);
}
