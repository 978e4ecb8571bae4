//! Unpacks bzip2.
//!
//! Own code, because the well-kept crate for it comes under a licence that the project does not take
//! on, and the free one stops silently at the end of a file's first stream (parallel packers write
//! many). Written from the format's description: a stream is `BZh`, a block size from 1 to 9 (times
//! 100,000 bytes), blocks, and an end mark with a checksum of all blocks. A block is packed by run
//! lengths, the Burrows-Wheeler transform, move-to-front, run lengths again, and Huffman codes that
//! change every 50 symbols. Randomised blocks, which packers stopped writing in 1996 (version 0.9.5
//! still reads them), are refused.

use std::io::{self, Read};

const BLOCK: u64 = 0x3141_5926_5359;
const END: u64 = 0x1772_4538_5090;
/// Symbols that one choice of table is good for.
const GROUP: usize = 50;
const MAX_CODE_BITS: usize = 20;
/// Literals, two run symbols, end of block.
const MAX_SYMBOLS: usize = 258;
const BUFFER: usize = 1 << 15;

fn damaged(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("bzip2: {what}"))
}

/// Table of the CRC that bzip2 uses: the usual polynomial, highest bit first.
const CRC: [u32; 256] = {
    let mut table = [0u32; 256];
    let mut n = 0;
    while n < 256 {
        let mut crc = (n as u32) << 24;
        let mut bit = 0;
        while bit < 8 {
            crc = match crc >> 31 {
                0 => crc << 1,
                _ => crc << 1 ^ 0x04c1_1db7,
            };
            bit += 1;
        }
        table[n] = crc;
        n += 1;
    }
    table
};

/// Bits of the packed file, highest first.
struct Bits<R> {
    inner: R,
    buffer: Box<[u8]>,
    start: usize,
    end: usize,
    held: u64,
    have: u32,
}

impl<R: Read> Bits<R> {
    fn byte(&mut self) -> io::Result<Option<u8>> {
        while self.start == self.end {
            match self.inner.read(&mut self.buffer) {
                Ok(0) => return Ok(None),
                Ok(n) => (self.start, self.end) = (0, n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        self.start += 1;
        Ok(Some(self.buffer[self.start - 1]))
    }

    /// The next `n` bits, up to 32.
    fn take(&mut self, n: u32) -> io::Result<u32> {
        while self.have < n {
            let Some(byte) = self.byte()? else {
                return Err(io::ErrorKind::UnexpectedEof.into());
            };
            self.held = self.held << 8 | u64::from(byte);
            self.have += 8;
        }
        self.have -= n;
        Ok((self.held >> self.have & ((1 << n) - 1)) as u32)
    }

    fn bit(&mut self) -> io::Result<bool> {
        Ok(self.take(1)? == 1)
    }

    fn mark(&mut self) -> io::Result<u64> {
        Ok(u64::from(self.take(24)?) << 24 | u64::from(self.take(24)?))
    }
}

/// A Huffman code: symbols in order of code, and for each length the codes that have it.
struct Code {
    symbols: Vec<u16>,
    /// By length: one more than the last code, and the place of code 0 in `symbols` if codes of
    /// this length began there.
    limits: [(u32, i32); MAX_CODE_BITS + 1],
    shortest: u32,
}

impl Code {
    fn new(lengths: &[u8]) -> Self {
        let mut symbols = Vec::with_capacity(lengths.len());
        let mut limits = [(0, 0); MAX_CODE_BITS + 1];
        let (mut code, mut shortest) = (0u32, 0);
        for length in 1..=MAX_CODE_BITS as u8 {
            let first = symbols.len() as i32 - code as i32;
            for (symbol, _) in lengths.iter().enumerate().filter(|(_, l)| **l == length) {
                symbols.push(symbol as u16);
                code += 1;
            }
            if shortest == 0 && !symbols.is_empty() {
                shortest = u32::from(length);
            }
            limits[usize::from(length)] = (code, first);
            code <<= 1;
        }
        Self {
            symbols,
            limits,
            shortest: shortest.max(1),
        }
    }

    fn decode<R: Read>(&self, bits: &mut Bits<R>) -> io::Result<u16> {
        let mut code = bits.take(self.shortest)?;
        for &(limit, first) in &self.limits[self.shortest as usize..] {
            if code < limit {
                let symbol = usize::try_from(code as i32 + first).ok();
                let symbol = symbol.and_then(|s| self.symbols.get(s));
                return symbol.copied().ok_or_else(|| damaged("a wrong code"));
            }
            code = code << 1 | bits.take(1)?;
        }
        Err(damaged("a wrong code"))
    }
}

/// The tables at the beginning of a block.
struct Tables {
    /// Bytes that occur, in order.
    used: Vec<u8>,
    selectors: Vec<u8>,
    codes: Vec<Code>,
}

impl Tables {
    fn read<R: Read>(bits: &mut Bits<R>) -> io::Result<Self> {
        let used = used_bytes(bits)?;
        let groups = bits.take(3)? as usize;
        let count = bits.take(15)? as usize;
        if !(2..=6).contains(&groups) || count == 0 {
            return Err(damaged("a block without tables"));
        }
        let mut order: Vec<u8> = (0..groups as u8).collect();
        let mut selectors = Vec::with_capacity(count);
        for _ in 0..count {
            let mut at = 0;
            while bits.bit()? {
                at += 1;
            }
            if at >= groups {
                return Err(damaged("a wrong choice of table"));
            }
            order[..=at].rotate_right(1);
            selectors.push(order[0]);
        }
        let symbols = used.len() + 2;
        let codes = (0..groups).map(|_| Ok(Code::new(&lengths(symbols, bits)?)));
        Ok(Self {
            codes: codes.collect::<io::Result<_>>()?,
            used,
            selectors,
        })
    }
}

fn used_bytes<R: Read>(bits: &mut Bits<R>) -> io::Result<Vec<u8>> {
    let rows = bits.take(16)?;
    let mut used = Vec::new();
    for row in (0..16u8).filter(|row| rows >> (15 - row) & 1 == 1) {
        let columns = bits.take(16)?;
        let in_row = (0..16u8).filter(|column| columns >> (15 - column) & 1 == 1);
        used.extend(in_row.map(|column| row << 4 | column));
    }
    match used.is_empty() {
        true => Err(damaged("a block without bytes")),
        false => Ok(used),
    }
}

fn lengths<R: Read>(symbols: usize, bits: &mut Bits<R>) -> io::Result<Vec<u8>> {
    let mut lengths = Vec::with_capacity(MAX_SYMBOLS);
    let mut length = bits.take(5)? as u8;
    for _ in 0..symbols {
        loop {
            if !(1..=MAX_CODE_BITS as u8).contains(&length) {
                return Err(damaged("a code's wrong length"));
            }
            if !bits.bit()? {
                break;
            }
            length = match bits.bit()? {
                false => length + 1,
                true => length - 1,
            };
        }
        lengths.push(length);
    }
    Ok(lengths)
}

/// Unpacks bzip2, also several streams one behind the other.
pub(crate) struct Bunzip2<R> {
    bits: Bits<R>,
    /// Bytes of a block at most; 0 between streams.
    block_size: usize,
    /// A stream was read to its end.
    any: bool,
    finished: bool,
    /// Nothing can be read behind damage.
    failed: bool,
    stream_crc: u32,
    block: Block,
}

/// A block that is being handed out.
#[derive(Default)]
struct Block {
    /// The byte in the low 8 bits, above it the place of the next.
    chain: Vec<u32>,
    place: u32,
    left: usize,
    /// The byte handed out last, how often in a row, and how often it is to be repeated.
    last: u8,
    run: u8,
    repeats: u8,
    crc: u32,
    expected: u32,
}

impl<R: Read> Bunzip2<R> {
    pub fn new(inner: R) -> Self {
        Self {
            bits: Bits {
                inner,
                buffer: vec![0; BUFFER].into_boxed_slice(),
                start: 0,
                end: 0,
                held: 0,
                have: 0,
            },
            block_size: 0,
            any: false,
            finished: false,
            failed: false,
            stream_crc: 0,
            block: Block::default(),
        }
    }

    /// Goes to the next block; `false` at the end of the last stream.
    fn advance(&mut self) -> io::Result<bool> {
        loop {
            if self.block_size == 0 && !self.begin_stream()? {
                return Ok(false);
            }
            match self.bits.mark()? {
                BLOCK => {
                    self.begin_block()?;
                    return Ok(true);
                }
                END => self.end_stream()?,
                _ => return Err(damaged("neither a block nor an end")),
            }
        }
    }

    fn begin_stream(&mut self) -> io::Result<bool> {
        // Streams begin on whole bytes.
        self.bits.have -= self.bits.have % 8;
        if self.bits.have == 0 {
            match self.bits.byte()? {
                None if self.any => return Ok(false),
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
                Some(byte) => {
                    self.bits.held = byte.into();
                    self.bits.have = 8;
                }
            }
        }
        let magic = self.bits.take(32)?;
        match magic {
            0x425a_6831..=0x425a_6839 => {
                self.block_size = (magic & 15) as usize * 100_000;
                self.stream_crc = 0;
                Ok(true)
            }
            _ => Err(damaged("no stream where one should begin")),
        }
    }

    fn end_stream(&mut self) -> io::Result<()> {
        if self.bits.take(32)? != self.stream_crc {
            return Err(damaged("wrong checksum of the stream"));
        }
        self.block_size = 0;
        self.any = true;
        Ok(())
    }

    fn begin_block(&mut self) -> io::Result<()> {
        let expected = self.bits.take(32)?;
        if self.bits.bit()? {
            return Err(damaged("a randomised block, as packers before 1997 made"));
        }
        let origin = self.bits.take(24)? as usize;
        let mut chain = std::mem::take(&mut self.block.chain);
        chain.clear();
        let counts = self.symbols(&mut chain)?;
        if origin >= chain.len() {
            return Err(damaged("a block that begins outside itself"));
        }
        link(&mut chain, &counts);
        self.block = Block {
            place: chain[origin] >> 8,
            left: chain.len(),
            chain,
            crc: u32::MAX,
            expected,
            ..Block::default()
        };
        Ok(())
    }

    /// Undoes Huffman codes, runs and move-to-front; counts how often each byte occurs.
    fn symbols(&mut self, out: &mut Vec<u32>) -> io::Result<[u32; 256]> {
        let mut tables = Tables::read(&mut self.bits)?;
        let end = tables.used.len() as u16 + 1;
        let mut counts = [0; 256];
        let (mut run, mut weight) = (0usize, 1usize);
        for selector in tables.selectors {
            let code = &tables.codes[usize::from(selector)];
            for _ in 0..GROUP {
                let symbol = code.decode(&mut self.bits)?;
                if symbol <= 1 {
                    run += weight << symbol;
                    weight <<= 1;
                    if run > self.block_size {
                        return Err(damaged("a run longer than a block"));
                    }
                    continue;
                }
                if out.len() + run + 1 > self.block_size + usize::from(symbol == end) {
                    return Err(damaged("a block that is too long"));
                }
                if run > 0 {
                    let byte = tables.used[0];
                    counts[usize::from(byte)] += run as u32;
                    out.resize(out.len() + run, byte.into());
                    (run, weight) = (0, 1);
                }
                if symbol == end {
                    return Ok(counts);
                }
                let front = tables.used.get_mut(..usize::from(symbol));
                let front = front.ok_or_else(|| damaged("a wrong symbol"))?;
                front.rotate_right(1);
                let byte = front[0];
                counts[usize::from(byte)] += 1;
                out.push(byte.into());
            }
        }
        Err(damaged("a block without end"))
    }

    fn end_block(&mut self) -> io::Result<()> {
        let found = !self.block.crc;
        if found != self.block.expected {
            return Err(damaged("wrong checksum of a block"));
        }
        self.stream_crc = self.stream_crc.rotate_left(1) ^ found;
        Ok(())
    }
}

/// Links each byte to the one that follows it, by the Burrows-Wheeler transform.
fn link(chain: &mut [u32], counts: &[u32; 256]) {
    let mut starts = [0u32; 256];
    let mut sum = 0;
    for (start, count) in starts.iter_mut().zip(counts) {
        *start = sum;
        sum += count;
    }
    for place in 0..chain.len() {
        let start = &mut starts[(chain[place] & 0xff) as usize];
        chain[*start as usize] |= (place as u32) << 8;
        *start += 1;
    }
}

impl Block {
    /// Hands out bytes, undoing the first run lengths: four equal bytes are followed by a number of
    /// repetitions.
    fn fill(&mut self, out: &mut [u8]) -> usize {
        let mut used = 0;
        while used < out.len() {
            if self.repeats > 0 {
                self.repeats -= 1;
            } else if self.left == 0 {
                break;
            } else {
                let entry = self.chain[self.place as usize];
                self.place = entry >> 8;
                self.left -= 1;
                let byte = entry as u8;
                if self.run == 4 {
                    (self.repeats, self.run) = (byte, 0);
                    continue;
                }
                self.run = match byte == self.last && self.run > 0 {
                    true => self.run + 1,
                    false => 1,
                };
                self.last = byte;
            }
            out[used] = self.last;
            let index = (self.crc >> 24) as u8 ^ self.last;
            self.crc = self.crc << 8 ^ CRC[usize::from(index)];
            used += 1;
        }
        used
    }
}

impl<R: Read> Bunzip2<R> {
    fn unpack(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while !out.is_empty() && !self.finished {
            let n = self.block.fill(out);
            if n > 0 {
                return Ok(n);
            }
            if !self.block.chain.is_empty() {
                self.end_block()?;
                self.block.chain.clear();
            }
            self.finished = !self.advance()?;
        }
        Ok(0)
    }
}

impl<R: Read> Read for Bunzip2<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.failed {
            return Err(damaged("there is nothing to read behind damage"));
        }
        let unpacked = self.unpack(out);
        self.failed = unpacked.is_err();
        unpacked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with `bzip2 -9` of known texts.
    const LINES: &str = "425a68393141592653598f604194000002d800001040007540200021a0da9a10c0825834\
                         6c58a78bb9229c284847b020ca00";
    const RUNS: &str = "425a683931415926535907cba4320000035100e00000203c00000820002234c26843021384\
                        720d8bc44ca7c5dc914e142401f2e90c80";
    const EMPTY: &str = "425a683917724538509000000000";

    fn bytes(hex: &str) -> Vec<u8> {
        let digit = |b: u8| (b as char).to_digit(16).expect("a digit") as u8;
        let pairs = hex.as_bytes().as_chunks::<2>().0.iter();
        pairs.map(|[a, b]| digit(*a) << 4 | digit(*b)).collect()
    }

    fn unpack(packed: &[u8]) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        Bunzip2::new(packed).read_to_end(&mut out)?;
        Ok(out)
    }

    fn runs() -> Vec<u8> {
        let runs = [(b'a', 4), (b'b', 5), (b'c', 300), (b'd', 3)];
        runs.iter().flat_map(|&(b, n)| vec![b; n]).collect()
    }

    #[test]
    fn streams_unpack_alone_and_behind_one_another() {
        let lines = b"0 64 128\n1 64\n".to_vec();
        assert_eq!(unpack(&bytes(LINES)).expect("unpacks"), lines);
        assert_eq!(unpack(&bytes(RUNS)).expect("unpacks"), runs());
        assert_eq!(unpack(&bytes(EMPTY)).expect("unpacks"), b"");
        let all = [bytes(LINES), bytes(EMPTY), bytes(RUNS), bytes(LINES)].concat();
        let expected = [lines.clone(), runs(), lines].concat();
        assert_eq!(unpack(&all).expect("unpacks"), expected);
        // One byte at a time.
        let mut small = Bunzip2::new(&all[..]);
        let mut out = Vec::new();
        let mut byte = [0];
        while small.read(&mut byte).expect("unpacks") == 1 {
            out.push(byte[0]);
        }
        assert_eq!(out, expected);
    }

    #[test]
    fn every_cut_is_seen() {
        let all = [bytes(LINES), bytes(RUNS)].concat();
        for at in 0..all.len() {
            let whole = at == bytes(LINES).len();
            assert_eq!(unpack(&all[..at]).is_ok(), whole, "{at}");
        }
    }

    #[test]
    fn no_flipped_bit_passes_unseen() {
        let sound = bytes(RUNS);
        for at in 0..sound.len() * 8 {
            let mut flipped = sound.clone();
            flipped[at / 8] ^= 1 << (at % 8);
            match unpack(&flipped) {
                Err(_) => {}
                // The block size, and bits that fill the last byte.
                Ok(out) => assert_eq!(out, runs(), "bit {at}"),
            }
        }
    }

    #[test]
    fn damage_is_final() {
        let mut cut = bytes(RUNS);
        cut.extend(b"rubbish behind the stream");
        let mut unpacker = Bunzip2::new(&cut[..]);
        let mut out = Vec::new();
        assert!(unpacker.read_to_end(&mut out).is_err());
        assert_eq!(out, runs());
        assert!(unpacker.read(&mut [0; 8]).is_err());
    }
}
