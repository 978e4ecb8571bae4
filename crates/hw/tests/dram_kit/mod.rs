//! The machine that the DRAM tests share.
#![allow(dead_code)]

use piebald_hw::dram::{Dram, DramSpec};
use piebald_units::{PhysAddr, Picos};

pub const GIB: u64 = 1 << 30;

/// DDR3-1333 9-9-9, two channels, four ranks, map of the HVR paper. `top` goes
/// before the tables.
pub fn text(top: &str) -> String {
    format!(
        r#"
channels = 2
interleave = {{ xor = [[6, 16]] }}
ranks = 4
banks = 8
row_size = "8KiB"
{top}
[bits]
column = [3, 4, 5, 7, 8, 9, 10, 11, 12, 16]
bank = [[13], [14], [15]]
rank = [[21], [22]]
[timing]
tck = "1.5ns"
cl = 9
cwl = 7
bl = 8
rcd = 9
rp = 9
ras = 24
rc = 33
ccd = 4
rrd = 4
faw = 20
wr = 10
wtr = 5
rtp = 5
rfc = 74
refi = 5200
"#
    )
}

pub fn spec(top: &str) -> DramSpec {
    toml::from_str(&text(top)).expect("the test machine parses")
}

pub fn i7(top: &str) -> Dram {
    Dram::new(&spec(top), 8 * GIB, "memory.dram").expect("the test machine is valid")
}

pub fn at(dram: &mut Dram, addr: u64, now: u64) -> u64 {
    dram.read(PhysAddr(addr), Picos(now)).ready.0
}

/// Small fast generator, so that a failing seed can be replayed anywhere.
pub struct Rng(pub u64);

impl Rng {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, n: u64) -> u64 {
        (self.next() >> 16) % n
    }
}
