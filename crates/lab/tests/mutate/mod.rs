//! Scenarios that were good until something happened to them.

use std::env;

/// Number of inputs and the seed, from the environment.
pub fn budget() -> (u64, u64) {
    let number = |name: &str, default: u64| match env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name}=\"{text}\" is no number")),
        Err(_) => default,
    };
    (
        number("PIEBALD_FUZZ_CASES", 1_500),
        number("PIEBALD_FUZZ_SEED", 1),
    )
}

/// SplitMix64: the stream depends on nothing but the seed, so a failure repeats.
pub struct Random(pub u64);

impl Random {
    /// A number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) % n as u64) as usize
    }

    fn word(&mut self) -> &'static str {
        const WORDS: [&str; 33] = [
            "0",
            "-1",
            "65535",
            "65536",
            "4294967296",
            "9223372036854775807",
            "1e99",
            "nan",
            "\"\"",
            "\"0-63\"",
            "\"63\"",
            "\"none\"",
            "\"all\"",
            "\"18446744073709551615\"",
            "\"16777215TiB\"",
            "\"x5355\"",
            "\"opteron4x4\"",
            "[]",
            "[0]",
            "[[0]]",
            "{}",
            "true",
            "\"chase:\"",
            "[\"\"]",
            "\"\u{0}\"",
            "\"é\"",
            "1979-05-27",
            "{ count = 4 }",
            "{ count = 0, share = \"5%\" }",
            "{ share = \"0.01%\" }",
            "\"100.001%\"",
            "\"0-15\"",
            "\"swap\"",
        ];
        WORDS[self.below(WORDS.len())]
    }
}

/// A good scenario with some lines dropped, doubled, moved, given another
/// value, or changed by a byte.
pub fn mutated(good: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = good.lines().map(str::to_owned).collect();
    for _ in 0..=random.below(3) {
        let at = random.below(lines.len());
        match random.below(6) {
            0 => drop(lines.remove(at)),
            1 => lines.insert(at, lines[at].clone()),
            2 => {
                let other = random.below(lines.len());
                lines.swap(at, other);
            }
            3 => {
                let mut bytes = lines[at].clone().into_bytes();
                if !bytes.is_empty() {
                    let b = random.below(bytes.len());
                    bytes[b] = random.below(256) as u8;
                }
                lines[at] = String::from_utf8_lossy(&bytes).into_owned();
            }
            _ => {
                let key = lines[at]
                    .split('=')
                    .next()
                    .unwrap_or_default()
                    .trim()
                    .to_owned();
                lines[at] = format!("{key} = {}", random.word());
            }
        }
    }
    lines.join("\n")
}
