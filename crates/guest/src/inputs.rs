//! The files that programs in the guest read: words from a seed.

use std::io::{self, Write};

use piebald_experiment::MadeFile;

/// Words of the vocabulary.
const WORDS: u64 = 4096;
/// Words of a line.
const LINE: u64 = 10;
/// The last line.
const LAST: &[u8] = b"here ends the marmalade\n";

/// Writes a file: lines of random words, and a last line with a word that is not among them.
///
/// # Errors
/// Those of the writer.
pub fn write(input: &MadeFile, to: &mut impl Write) -> io::Result<()> {
    let mut random = Random(input.seed.get());
    let vocabulary: Vec<Vec<u8>> = (0..WORDS).map(|_| word(&mut random)).collect();
    let mut left = input.size.0.0 - LAST.len() as u64;
    let mut line = Vec::new();
    while left > 0 {
        line.clear();
        for i in 0..LINE {
            line.extend_from_slice(&vocabulary[random.below(WORDS) as usize]);
            line.push(if i + 1 < LINE { b' ' } else { b'\n' });
        }
        line.truncate(left.min(line.len() as u64) as usize);
        if line.len() as u64 == left
            && let Some(end) = line.last_mut()
        {
            *end = b'\n';
        }
        to.write_all(&line)?;
        left -= line.len() as u64;
    }
    to.write_all(LAST)
}

/// 2 to 8 letters, none of which is an m.
fn word(random: &mut Random) -> Vec<u8> {
    let length = 2 + random.below(7);
    (0..length)
        .map(|_| b"abcdefghijklnopqrstuvwxyz"[random.below(25) as usize])
        .collect()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(z ^ z >> 31) * u128::from(n)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use piebald_experiment::{Text, Whole};
    use piebald_units::Bytes;

    use super::*;

    fn text(size: u64, seed: u64) -> Vec<u8> {
        let mut out = Vec::new();
        let input = MadeFile {
            name: "text".into(),
            size: Text(Bytes(size)),
            seed: Whole::new(seed),
        };
        write(&input, &mut out).expect("memory takes all");
        out
    }

    #[test]
    fn files_have_their_size_and_the_word_once() {
        for size in [4096, 4097, 100_000] {
            let text = text(size, 3);
            assert_eq!(text.len() as u64, size);
            let text = String::from_utf8(text).expect("letters");
            assert_eq!(text.matches("marmalade").count(), 1);
            assert!(text.ends_with("marmalade\n"));
            assert_eq!(text.matches('m').count(), 2, "only in the last line");
        }
    }

    #[test]
    fn the_seed_decides() {
        assert_eq!(text(5000, 1), text(5000, 1));
        assert_ne!(text(5000, 1), text(5000, 2));
    }
}
