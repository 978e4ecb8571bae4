//! The fuzz entry points on a corpus, on mutations of it and on random bytes, from a fixed seed.

use piebald_trace::foreign::fuzz;

use super::support::own_bytes;

const SEED: u64 = 0x5eed_f00d;
const ROUNDS: usize = 2000;

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

/// One to eight changes: a bit, a byte, a removed, repeated or moved piece.
fn mutate(bytes: &mut Vec<u8>, random: &mut Random) {
    for _ in 0..=random.below(8) {
        let at = random.below(bytes.len());
        let length = random.below(40).min(bytes.len() - at);
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
                const WORDS: [&[u8]; 6] = [
                    b"\n",
                    b" ",
                    b"0x",
                    b"==7==",
                    b"18446744073709551615",
                    b"\xff\xff\xff\xff",
                ];
                let word = WORDS[random.below(WORDS.len())];
                bytes.splice(at..at, word.iter().copied());
            }
        }
    }
}

fn campaign(target: fn(&[u8]), corpus: &[Vec<u8>]) {
    let mut random = Random(SEED);
    target(&[]);
    for input in corpus {
        target(input);
        for _ in 0..ROUNDS {
            let mut bytes = input.clone();
            mutate(&mut bytes, &mut random);
            target(&bytes);
        }
    }
    for _ in 0..ROUNDS {
        let bytes: Vec<u8> = (0..random.below(400))
            .map(|_| random.next() as u8)
            .collect();
        target(&bytes);
    }
}

#[test]
fn fuzz_lackey_keeps_its_promises() {
    campaign(
        fuzz::lackey,
        &[own_bytes("chase.lackey"), own_bytes("chase.lackey.zst")],
    );
}

#[test]
fn fuzz_champsim_keeps_its_promises() {
    let names = ["chase.champsim", "chase.champsim.xz", "chase.cloudsuite"];
    campaign(fuzz::champsim, &names.map(own_bytes));
}

#[test]
fn fuzz_drmemtrace_keeps_its_promises() {
    let packed = own_bytes("chase.drmemtrace.7.trace.gz");
    let mut plain = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut plain)
        .expect("unpacked");
    let zip = own_bytes("chase.drmemtrace.7.trace.zip");
    campaign(fuzz::drmemtrace, &[plain, packed, zip]);
}

#[test]
fn fuzz_ramulator_keeps_its_promises() {
    let cpu = b"3 9618752\n0 9618816 9618880\n4294967294 0x40\n".to_vec();
    let dram = b"0x12345680 R\n0x4cbd56c0 W\n".to_vec();
    let load_store = b"LD 0x12345680\nST 4096\n".to_vec();
    let read_write = b"R 0,1,2,3,4\nW 1,0,5,262143,2047\n".to_vec();
    campaign(fuzz::ramulator, &[cpu, dram, load_store, read_write]);
}

#[test]
fn fuzz_din_keeps_its_promises() {
    let text = b"2 400d7d4\n0 7ff0005c8\n1 7ff0005c8\n4 0\n3 1 x\n".to_vec();
    campaign(fuzz::din, &[text]);
}

#[test]
fn fuzz_pinatrace_keeps_its_promises() {
    let text = b"0x7f0a1b2c: R 0x7ffd0010\n0x7f0a1b2c: W 0x7ffd0010\n0x7f0a1b30: W 0x7ffd0018\n\
        0x7f0a1b34: R 0x40\n#eof\n";
    campaign(fuzz::pinatrace, &[text.to_vec()]);
}

#[test]
fn fuzz_loadstore_keeps_its_promises() {
    let text = b"s 0x1fffff50 1\nl 0x1fffff58 1 2 3\nl 0xffffffff 4294967294\n".to_vec();
    campaign(fuzz::loadstore, &[text]);
}
