//! The fuzz entry points on the samples, on mutations of them and on random bytes, from a fixed
//! seed. `PIEBALD_FUZZ_CASES` sets how many mutations of each sample are tried.

use piebald_trace::block::{Format, fuzz};

use super::support::{options, sample};

const SEED: u64 = 0xb10c_f00d;
const CASES: usize = 400;

fn cases() -> usize {
    match std::env::var("PIEBALD_FUZZ_CASES") {
        Ok(n) => n.parse().expect("PIEBALD_FUZZ_CASES: a number"),
        Err(_) => CASES,
    }
}

/// SplitMix64 (Steele, Lea, Flood 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

const WORDS: [&[u8]; 14] = [
    b"\n",
    b" ",
    b",",
    b"-1",
    b"0",
    b"9223372036854775807",
    b"18446744073709551615",
    b"\xff\xff\xff\xff\xff\xff\xff\xff",
    b"\0\0\0\0",
    b"<unfinished ...>",
    b"\"",
    b"<",
    b")",
    b"\r\n",
];

/// One to four changes: a bit, a byte, a removed, repeated or moved piece, a word.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        let length = random.below(60).min(bytes.len() - at);
        match random.below(6) {
            0 if !bytes.is_empty() => bytes[at] ^= 1 << random.below(8),
            1 if !bytes.is_empty() => bytes[at] = random.next() as u8,
            2 => drop(bytes.drain(at..at + length)),
            3 => {
                let piece = bytes[at..at + length].to_vec();
                let to = random.below(bytes.len() + 1);
                bytes.splice(to..to, piece);
            }
            4 => bytes.truncate(at),
            _ => {
                let word = WORDS[random.below(WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
        }
    }
}

fn campaign(target: impl Fn(&[u8]), seed: u64, corpus: &[u8]) {
    let mut random = Random(SEED ^ seed);
    target(&[]);
    target(corpus);
    for _ in 0..cases() {
        let mut bytes = corpus.to_vec();
        mutate(&mut bytes, &mut random);
        target(&bytes);
    }
    for _ in 0..cases() / 4 {
        let bytes: Vec<u8> = (0..random.below(200))
            .map(|_| random.next() as u8)
            .collect();
        target(&bytes);
    }
}

#[test]
fn fuzz_every_format_keeps_its_promises() {
    for (seed, format) in (0..).zip(Format::ALL) {
        let options = options(format);
        campaign(|bytes| fuzz::read(&options, bytes), seed, &sample(format));
    }
}

#[test]
fn fuzz_detection_keeps_its_promises() {
    for (seed, format) in (100..).zip(Format::ALL) {
        campaign(fuzz::detect, seed, &sample(format));
    }
}

#[test]
fn fuzz_layouts_keep_their_promises() {
    let text = b"a b/c 0 100 3\nx 0 7 1\na b/c 5 300 2\na b/c 3 50 1\n";
    campaign(fuzz::layout, 200, text);
}

#[test]
fn fuzz_descriptions_of_columns_keep_their_promises() {
    for (seed, text) in (300..).zip([
        &b"time=1:us,op=2:R/W/*,offset=3:sector:hex,size=4:block:8KiB,device=1\n1,R,a0,8\n2,W,b0,9\n"[..],
        b"time=t:ms,id=name:text,size=bytes,device=a+b,header=1\nt;name;bytes;a;b\n1;x;7;8;9\n2;y;1;2;3\n",
        b"sep=blanks,op=2,offset=1:page,size=:512B\n# x\n1 r\n0x2 ws\n",
    ]) {
        campaign(fuzz::columns, seed, text);
    }
}
