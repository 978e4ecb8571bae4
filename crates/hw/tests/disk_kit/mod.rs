//! What the tests of disks share.

#![allow(dead_code, reason = "every test binary uses its part")]

use piebald_hw::disk::{self, Disk, DiskSpec};
use piebald_units::{
    Lba, Picos,
    block::{BlockDir, BlockReq},
};

/// Picoseconds of a millisecond.
pub const MS: f64 = 1e9;

/// Description of a preset.
pub fn spec(name: &str) -> DiskSpec {
    disk::by_name(name).unwrap_or_else(|e| panic!("{e}"))
}

/// A disk of a description.
pub fn open(spec: &DiskSpec) -> Disk {
    Disk::new(spec).unwrap_or_else(|e| panic!("{}: {e}", spec.name))
}

/// A disk of a preset.
pub fn preset(name: &str) -> Disk {
    open(&spec(name))
}

/// In milliseconds.
pub fn ms(time: Picos) -> f64 {
    time.0 as f64 / MS
}

/// A read.
pub fn read(lba: u64, sectors: u32) -> BlockReq {
    BlockReq {
        lba: Lba(lba),
        sectors,
        dir: BlockDir::Read,
    }
}

/// A write.
pub fn write(lba: u64, sectors: u32) -> BlockReq {
    BlockReq {
        dir: BlockDir::Write,
        ..read(lba, sectors)
    }
}

/// Numbers from a multiplicative generator: the tests need spread, not chance.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 20) % end
    }
}

/// Fails unless a figure lies within a share of what is expected.
pub fn close(found: f64, expected: f64, share: f64, what: &str) {
    let off = (found / expected - 1.0).abs();
    assert!(
        off <= share,
        "{what}: {found}, expected {expected} within {share}"
    );
}
