//! Fuzz targets for everything that is read from text. They run on the corpus
//! below, on changes of it, and on random bytes; `PIEBALD_FUZZ_CASES` sets how
//! many inputs (default 20000), `PIEBALD_FUZZ_SEED` which.

use std::{env, fmt::Display, str::FromStr};

use piebald_units::{Bytes, ColorSet, CoreSet, Hertz, Picos};

const CORPUS: &[&str] = &[
    "",
    " ",
    "none",
    "0",
    "0-3,8",
    "0-4095",
    "4096",
    "5-3",
    "1,,2",
    "63",
    "64",
    "0-63",
    "-",
    ",",
    "64KiB",
    "1.5GiB",
    "0.5B",
    "16777215TiB",
    "18446744073709551615B",
    "9.2us",
    "340ps",
    "1_000ms",
    "2.93GHz",
    "666.667MHz",
    ".",
    "_",
    "1.",
    ".1",
    "1e9s",
    "00000000000000000000000000000000000001B",
    "340282366920938463463374607431768211456B",
    "0.000000000000000000000000000000000000000001TiB",
    "１ＧｉＢ",
    "1µs",
    "\u{a0}1B",
    "1\0B",
    "0-\u{2003}3",
];

/// Number of inputs and the seed, from the environment.
fn budget() -> (u64, u64) {
    let number = |name: &str, default: u64| match env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}=\"{text}\" is no number")),
        Err(_) => default,
    };
    (
        number("PIEBALD_FUZZ_CASES", 20_000),
        number("PIEBALD_FUZZ_SEED", 1),
    )
}

/// SplitMix64: the stream depends on nothing but the seed, so a failure repeats.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }
}

/// A corpus entry with up to four bytes changed, added or taken away.
fn mutated(random: &mut Random) -> String {
    const ALPHABET: &[u8] = b"0123456789.,-_ BKMGTHzpnumsie";
    let mut bytes = CORPUS[random.below(CORPUS.len())].as_bytes().to_vec();
    for _ in 0..random.below(5) {
        let at = random.below(bytes.len() + 1);
        let byte = match random.below(8) {
            0 => random.next() as u8,
            _ => ALPHABET[random.below(ALPHABET.len())],
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

/// Whatever is read prints, and what it prints reads as the same value.
fn survives<T>(text: &str) -> bool
where
    T: FromStr + Display + PartialEq,
    T::Err: Display,
{
    match text.parse::<T>() {
        Err(error) => {
            assert!(!error.to_string().is_empty());
            false
        }
        Ok(value) => {
            let printed = value.to_string();
            let again = printed.parse::<T>();
            assert!(
                again.is_ok_and(|a| a == value),
                "{text:?} printed as {printed:?}"
            );
            true
        }
    }
}

/// Runs one target and requires that it saw both accepted and refused inputs.
fn fuzz<T>()
where
    T: FromStr + Display + PartialEq,
    T::Err: Display,
{
    let (cases, seed) = budget();
    let mut accepted = CORPUS.iter().filter(|text| survives::<T>(text)).count() as u64;
    let mut random = Random(seed);
    for _ in 0..cases {
        accepted += u64::from(survives::<T>(&mutated(&mut random)));
    }
    assert!(accepted > 0 && accepted < cases + CORPUS.len() as u64);
}

#[test]
fn fuzz_sizes() {
    fuzz::<Bytes>();
}

#[test]
fn fuzz_times() {
    fuzz::<Picos>();
}

#[test]
fn fuzz_clocks() {
    fuzz::<Hertz>();
}

#[test]
fn fuzz_color_sets() {
    fuzz::<ColorSet>();
}

#[test]
fn fuzz_core_sets() {
    fuzz::<CoreSet>();
}
