//! Physical address to channel, rank, bank, row and column.

use piebald_units::PhysAddr;

use super::{
    map_spec::{MAX_ADDRESS_BITS, MAX_BANKS, Masks},
    spec::DramSpec,
};
use crate::SpecError;

/// Where a line lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Location {
    /// Channel of the controller.
    pub channel: u16,
    /// Rank of the channel.
    pub rank: u16,
    /// Bank of the rank.
    pub bank: u16,
    /// Row of the bank.
    pub row: u32,
    /// Column of the row, in words of the bus.
    pub column: u32,
}

/// A checked address map.
#[derive(Clone, Debug)]
pub(super) struct AddressMap {
    masks: Masks,
    /// The bank over all channels is linear over GF(2) in the address: one
    /// table per address byte above the line offset, XORed together.
    tables: Box<[[u16; 256]; TABLES]>,
    /// Bits of the address inside a channel that make the row.
    row_mask: u64,
    modulo: Option<Modulo>,
    address_mask: u64,
    banks_per_channel: u16,
}

/// Round-robin channels.
#[derive(Clone, Copy, Debug)]
struct Modulo {
    channels: u64,
    granule_shift: u32,
    /// ceil(2^64 / channels): turns the division into a multiplication, exact
    /// for block numbers below 2^58, since there are at most 64 channels.
    reciprocal: u128,
}

impl Modulo {
    /// Channel, and address inside it.
    fn split(&self, addr: u64) -> (u64, u64) {
        let block = addr >> self.granule_shift;
        let turn = ((u128::from(block) * self.reciprocal) >> 64) as u64;
        let offset = addr & ((1 << self.granule_shift) - 1);
        (
            block - turn * self.channels,
            turn << self.granule_shift | offset,
        )
    }
}

/// What scheduling needs of an address.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// Bank over all channels and ranks.
    pub bank: u32,
    /// Equal for two addresses of one bank exactly if they share a row.
    pub row_key: u64,
}

impl AddressMap {
    pub(super) fn new(spec: &DramSpec, memory_bytes: u64, prefix: &str) -> Result<Self, SpecError> {
        let masks = Masks::new(spec, memory_bytes, prefix)?;
        let modulo = masks.granule_shift.map(|granule_shift| Modulo {
            channels: u64::from(spec.channels),
            granule_shift,
            reciprocal: (1u128 << 64).div_ceil(u128::from(spec.channels)),
        });
        Ok(Self {
            tables: tables(&masks),
            row_mask: masks.row.iter().fold(0, |all, bit| all | 1 << bit),
            modulo,
            // Modulo interleaves give sizes that are no power of two; there an
            // address beyond the end wraps inside its channel.
            address_mask: match modulo {
                Some(_) => (1 << MODULO_ADDRESS_BITS) - 1,
                None => memory_bytes - 1,
            },
            banks_per_channel: spec.ranks * spec.banks,
            masks,
        })
    }

    #[inline]
    pub(super) fn target(&self, addr: PhysAddr) -> Target {
        let addr = addr.0 & self.address_mask;
        let (channel, local) = match &self.modulo {
            Some(modulo) => modulo.split(addr),
            None => (0, addr),
        };
        let mut rest = local >> piebald_units::LINE_SHIFT;
        let mut bank = 0;
        for table in self.tables.iter() {
            bank ^= table[(rest & 0xff) as usize];
            rest >>= 8;
        }
        Target {
            bank: u32::from(bank) + channel as u32 * u32::from(self.banks_per_channel),
            row_key: local & self.row_mask,
        }
    }

    pub(super) fn locate(&self, addr: PhysAddr) -> Location {
        let addr = addr.0 & self.address_mask;
        let (channel, local) = match &self.modulo {
            Some(modulo) => modulo.split(addr),
            None => (xor_field(&self.masks.channel, addr), addr),
        };
        Location {
            channel: channel as u16,
            rank: xor_field(&self.masks.rank, local) as u16,
            bank: xor_field(&self.masks.bank, local) as u16,
            row: bit_field(&self.masks.row, local),
            column: bit_field(&self.masks.column, local),
        }
    }
}

/// Bits of the largest address with 64 round-robin channels.
const MODULO_ADDRESS_BITS: u32 = MAX_ADDRESS_BITS + 6;

/// Parities of the address under each mask, lowest bit first.
fn xor_field(masks: &[u64], addr: u64) -> u64 {
    let bit = |(i, mask): (usize, &u64)| u64::from((addr & mask).count_ones() % 2) << i;
    masks.iter().enumerate().map(bit).sum()
}

/// The listed bits of the address, lowest first.
fn bit_field(bits: &[u8], addr: u64) -> u32 {
    let bit = |(i, bit): (usize, &u8)| ((addr >> bit & 1) as u32) << i;
    bits.iter().enumerate().map(bit).sum()
}

fn tables(masks: &Masks) -> Box<[[u16; 256]; TABLES]> {
    let index = |addr: u64| {
        let channel = xor_field(&masks.channel, addr) << masks.rank.len();
        let rank = (channel | xor_field(&masks.rank, addr)) << masks.bank.len();
        (rank | xor_field(&masks.bank, addr)) as u16
    };
    let reach = (1u64 << masks.address_bits) - 1;
    let mut tables = Box::new([[0; 256]; TABLES]);
    for (byte, table) in tables.iter_mut().enumerate() {
        for (value, entry) in table.iter_mut().enumerate() {
            let shift = piebald_units::LINE_SHIFT as usize + 8 * byte;
            *entry = index((value as u64) << shift & reach);
        }
    }
    tables
}

/// Tables that every address needs: one per byte of the line number. A fixed
/// number keeps the look-up free of a loop.
const TABLES: usize = (MAX_ADDRESS_BITS - piebald_units::LINE_SHIFT).div_ceil(8) as usize;

const _: () = assert!(MAX_BANKS <= 1 << 14, "bank indices are tabled in 16 bits");
