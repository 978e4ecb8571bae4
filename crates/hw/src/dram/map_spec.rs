//! From the written address map to masks, with everything that can be wrong.

use piebald_units::Bytes;

use super::{
    spec::{BitMap, DramSpec, Interleave, NamedMap},
    timing::LINE_BYTES,
};
use crate::SpecError;

/// Banks of one controller over all channels and ranks at most.
pub(super) const MAX_BANKS: u32 = 1 << 14;
/// Bits of a physical address at most (16 TiB behind one controller).
pub(super) const MAX_ADDRESS_BITS: u32 = 44;

/// Address map as masks and bit lists, lowest bit of each field first.
#[derive(Clone, Debug)]
pub(super) struct Masks {
    /// Empty if the channels are round robin.
    pub channel: Vec<u64>,
    pub rank: Vec<u64>,
    pub bank: Vec<u64>,
    pub row: Vec<u8>,
    pub column: Vec<u8>,
    /// log2 of the bytes that the masks tell apart.
    pub address_bits: u32,
    /// Round-robin block.
    pub granule_shift: Option<u32>,
}

impl Masks {
    pub(super) fn new(spec: &DramSpec, memory_bytes: u64, prefix: &str) -> Result<Self, SpecError> {
        let check = Check { spec, prefix };
        check.counts()?;
        let channel = check.channel_lists()?;
        let granule_shift = check.granule_shift()?;
        let address_bits = check.address_bits(memory_bytes, granule_shift.is_some())?;
        let lists = match (&spec.bits, spec.map) {
            (Some(_), Some(_)) => {
                let why = "only one of map and bits";
                return Err(check.error("map", "given together with bits", why));
            }
            (Some(bits), None) => check.explicit(bits, channel, address_bits)?,
            (None, map) => check.named(map.unwrap_or_default(), channel, address_bits)?,
        };
        check.invertible(&lists, address_bits)?;
        let masks = |lists: &[Vec<u8>]| lists.iter().map(|list| mask(list)).collect();
        Ok(Self {
            channel: masks(&lists.channel),
            rank: masks(&lists.rank),
            bank: masks(&lists.bank),
            row: lists.row,
            column: lists.column,
            address_bits,
            granule_shift,
        })
    }
}

/// Address bits of every field.
struct Lists {
    channel: Vec<Vec<u8>>,
    rank: Vec<Vec<u8>>,
    bank: Vec<Vec<u8>>,
    row: Vec<u8>,
    column: Vec<u8>,
}

fn mask(bits: &[u8]) -> u64 {
    bits.iter().fold(0, |mask, bit| mask ^ 1 << bit)
}

struct Check<'a> {
    spec: &'a DramSpec,
    prefix: &'a str,
}

impl Check<'_> {
    fn error(&self, field: &str, value: impl ToString, allowed: impl Into<String>) -> SpecError {
        SpecError::new(format!("{}.{field}", self.prefix), value, allowed)
    }

    fn power_of_two(&self, field: &str, value: u64, low: u64, high: u64) -> Result<(), SpecError> {
        if value.is_power_of_two() && (low..=high).contains(&value) {
            return Ok(());
        }
        let allowed = format!("a power of two, {low} to {high}");
        Err(self.error(field, value, allowed))
    }

    fn counts(&self) -> Result<(), SpecError> {
        let s = self.spec;
        if !(1..=64).contains(&s.channels) {
            return Err(self.error("channels", s.channels, "1 to 64"));
        }
        self.power_of_two("ranks", s.ranks.into(), 1, 64)?;
        self.power_of_two("banks", s.banks.into(), 1, 256)?;
        self.power_of_two("bus_bytes", s.bus_bytes.into(), 1, 32)?;
        self.power_of_two("row_size", s.row_size.0, LINE_BYTES, 1 << 20)?;
        let banks = u32::from(s.channels) * u32::from(s.ranks) * u32::from(s.banks);
        if banks > MAX_BANKS {
            let allowed = format!("at most {MAX_BANKS} banks over all channels and ranks");
            return Err(self.error("banks", s.banks, allowed));
        }
        let queue = &s.write_queue;
        if !(1..=64).contains(&queue.high) {
            return Err(self.error("write_queue.high", queue.high, "1 to 64"));
        }
        if queue.low >= queue.high {
            let allowed = format!("below write_queue.high = {}", queue.high);
            return Err(self.error("write_queue.low", queue.low, allowed));
        }
        Ok(())
    }

    /// XOR lists of the channel bits; none for one channel or a modulo.
    fn channel_lists(&self) -> Result<Vec<Vec<u8>>, SpecError> {
        let channels = self.spec.channels;
        match &self.spec.interleave {
            None if channels == 1 => Ok(Vec::new()),
            None => Err(self.error("interleave", "missing", "xor or modulo, since channels > 1")),
            Some(Interleave::Modulo(_)) => Ok(Vec::new()),
            Some(Interleave::Xor(lists)) => {
                if !channels.is_power_of_two() {
                    let allowed = "a power of two with interleave.xor; other numbers need modulo";
                    return Err(self.error("channels", channels, allowed));
                }
                self.count_lists("interleave.xor", lists.len(), channels.into())?;
                Ok(lists.clone())
            }
        }
    }

    fn count_lists(&self, field: &str, lists: usize, states: u64) -> Result<(), SpecError> {
        let needed = states.trailing_zeros();
        if lists == needed as usize {
            return Ok(());
        }
        let allowed = format!("{needed} lists of bits, for {states}");
        Err(self.error(field, format!("{lists} lists"), allowed))
    }

    fn granule_shift(&self) -> Result<Option<u32>, SpecError> {
        let Some(Interleave::Modulo(granule)) = self.spec.interleave else {
            return Ok(None);
        };
        self.power_of_two("interleave.modulo", granule.0, LINE_BYTES, 1 << 30)?;
        Ok(Some(granule.0.trailing_zeros()))
    }

    /// log2 of the bytes that the masks tell apart.
    fn address_bits(&self, memory_bytes: u64, modulo: bool) -> Result<u32, SpecError> {
        let parts = if modulo {
            u64::from(self.spec.channels)
        } else {
            1
        };
        let bytes = memory_bytes / parts;
        let size = || {
            let parent = self
                .prefix
                .rsplit_once('.')
                .map_or("", |(parent, _)| parent);
            let field = if parent.is_empty() {
                "size".into()
            } else {
                format!("{parent}.size")
            };
            let value = format!("{} behind one controller", Bytes(memory_bytes));
            let of = if modulo {
                format!("{parts} times ")
            } else {
                String::new()
            };
            let least = Bytes(self.smallest() * parts);
            let most = Bytes(parts << MAX_ADDRESS_BITS);
            let allowed = format!("{of}a power of two, {least} to {most}");
            SpecError::new(field, value, allowed)
        };
        let whole = memory_bytes.is_multiple_of(parts) && bytes.is_power_of_two();
        if !whole || bytes < self.smallest() || bytes > 1 << MAX_ADDRESS_BITS {
            return Err(size());
        }
        if let Some(shift) = self.granule_shift()?
            && bytes < 1 << shift
        {
            return Err(size());
        }
        Ok(bytes.trailing_zeros())
    }

    /// Bytes that the masks must tell apart at least: one row in every bank.
    fn smallest(&self) -> u64 {
        let s = self.spec;
        let channels = match s.interleave {
            Some(Interleave::Xor(_)) => u64::from(s.channels),
            _ => 1,
        };
        channels * u64::from(s.ranks) * u64::from(s.banks) * s.row_size.0
    }

    fn bus_bits(&self) -> u8 {
        self.spec.bus_bytes.trailing_zeros() as u8
    }

    fn column_count(&self) -> usize {
        self.spec.row_size.0.trailing_zeros() as usize - usize::from(self.bus_bits())
    }

    /// The bits that a file lists.
    fn explicit(
        &self,
        bits: &BitMap,
        channel: Vec<Vec<u8>>,
        address_bits: u32,
    ) -> Result<Lists, SpecError> {
        self.count_lists("bits.bank", bits.bank.len(), self.spec.banks.into())?;
        self.count_lists("bits.rank", bits.rank.len(), self.spec.ranks.into())?;
        if bits.column.len() != self.column_count() {
            let allowed = format!(
                "{} bits, since a row of {} has so many words of {} B",
                self.column_count(),
                self.spec.row_size,
                self.spec.bus_bytes
            );
            let value = format!("{} bits", bits.column.len());
            return Err(self.error("bits.column", value, allowed));
        }
        let inside: Vec<u8> = (self.bus_bits()..piebald_units::LINE_SHIFT as u8).collect();
        if !bits.column.starts_with(&inside) {
            let allowed = format!("starting with {inside:?}, the words of one line in one burst");
            return Err(self.error("bits.column", format!("{:?}", bits.column), allowed));
        }
        let row = match &bits.row {
            Some(row) => row.clone(),
            None => {
                let taken = taken(&[&channel, &bits.rank, &bits.bank], &bits.column);
                free_bits(self.bus_bits(), address_bits, taken)
            }
        };
        let lists = Lists {
            channel,
            rank: bits.rank.clone(),
            bank: bits.bank.clone(),
            row,
            column: bits.column.clone(),
        };
        Ok(lists)
    }

    /// The bits of a standard map.
    fn named(
        &self,
        map: NamedMap,
        channel: Vec<Vec<u8>>,
        address_bits: u32,
    ) -> Result<Lists, SpecError> {
        // A channel list without bits is refused later, by name.
        let claimed = channel.iter().filter_map(|list| list.first());
        let claimed = claimed.fold(0u64, |mask, &bit| {
            mask | 1u64.checked_shl(bit.into()).unwrap_or(0)
        });
        let mut free = free_bits(self.bus_bits(), address_bits, claimed).into_iter();
        let in_line = usize::from(piebald_units::LINE_SHIFT as u8 - self.bus_bits());
        let bank_bits = self.spec.banks.trailing_zeros() as usize;
        let rank_bits = self.spec.ranks.trailing_zeros() as usize;
        let mut take = |n: usize| free.by_ref().take(n).collect::<Vec<u8>>();
        let mut column = take(in_line);
        let (bank, rank);
        if map == NamedMap::RowColumnRankBank {
            (bank, rank) = (take(bank_bits), take(rank_bits));
            column.extend(take(self.column_count() - in_line));
        } else {
            column.extend(take(self.column_count() - in_line));
            (bank, rank) = (take(bank_bits), take(rank_bits));
        }
        let row: Vec<u8> = free.collect();
        let each = |bits: Vec<u8>| bits.into_iter().map(|bit| vec![bit]).collect::<Vec<_>>();
        let mut bank = each(bank);
        if map == NamedMap::RowRankBankColumnXor {
            for (list, &row_bit) in bank.iter_mut().zip(&row) {
                list.push(row_bit);
            }
        }
        let rank = each(rank);
        Ok(Lists {
            channel,
            rank,
            bank,
            row,
            column,
        })
    }

    /// Every bit list on its own, then the whole as a linear map: as many
    /// fields as address bits, none of them the XOR of others.
    fn invertible(&self, lists: &Lists, address_bits: u32) -> Result<(), SpecError> {
        let single = |bits: &[u8]| bits.iter().map(|&bit| vec![bit]).collect::<Vec<_>>();
        let fields = [
            ("bits.column", single(&lists.column)),
            ("bits.row", single(&lists.row)),
            ("bits.bank", lists.bank.clone()),
            ("bits.rank", lists.rank.clone()),
            ("interleave.xor", lists.channel.clone()),
        ];
        let mut basis = Basis::default();
        let line = piebald_units::LINE_SHIFT as u8;
        for (name, field) in &fields {
            let low = if *name == "bits.column" {
                self.bus_bits()
            } else {
                line
            };
            for bits in field {
                self.bits_in_range(name, bits, low, address_bits)?;
                if !basis.insert(mask(bits)) {
                    let allowed = "bits that other fields do not already use up";
                    return Err(self.error(name, format!("{bits:?} overlaps"), allowed));
                }
            }
        }
        let missing: Vec<u8> = (self.bus_bits()..address_bits as u8)
            .filter(|&bit| !basis.spans(1 << bit))
            .collect();
        if missing.is_empty() {
            if lists.row.len() > 32 {
                let value = format!("{} bits", lists.row.len());
                return Err(self.error(
                    "bits.row",
                    value,
                    "at most 32 bits: more banks or larger rows",
                ));
            }
            return Ok(());
        }
        let value = format!("no field tells addresses apart that differ in bits {missing:?}");
        let allowed = format!("every bit below {address_bits} in some field");
        Err(self.error("bits", value, allowed))
    }

    fn bits_in_range(
        &self,
        field: &str,
        bits: &[u8],
        low: u8,
        address_bits: u32,
    ) -> Result<(), SpecError> {
        let mut seen = 0u64;
        for &bit in bits {
            if bit < low || u32::from(bit) >= address_bits {
                let allowed = format!(
                    "address bits {low} to {} of the installed memory",
                    address_bits - 1
                );
                return Err(self.error(field, format!("bit {bit}"), allowed));
            }
            if seen >> bit & 1 == 1 {
                return Err(self.error(field, format!("{bits:?}"), "each bit once in a list"));
            }
            seen |= 1 << bit;
        }
        if bits.is_empty() {
            return Err(self.error(field, "an empty list", "at least one address bit per list"));
        }
        Ok(())
    }
}

/// Bits that the first entry of each list, and the column, claim: what is left
/// over for the row.
fn taken(groups: &[&[Vec<u8>]], column: &[u8]) -> u64 {
    let bit = |bit: u8| 1u64.checked_shl(bit.into()).unwrap_or(0);
    let first = groups
        .iter()
        .flat_map(|group| group.iter())
        .filter_map(|list| list.first());
    first.chain(column).fold(0, |mask, &b| mask | bit(b))
}

/// Bits of `low..high` outside a mask.
fn free_bits(low: u8, high: u32, taken: u64) -> Vec<u8> {
    (low..high as u8)
        .filter(|bit| taken >> bit & 1 == 0)
        .collect()
}

/// A basis of a space over GF(2).
#[derive(Default)]
struct Basis {
    /// Vectors with distinct highest bits.
    vectors: Vec<u64>,
}

impl Basis {
    fn reduce(&self, mut vector: u64) -> u64 {
        for &v in &self.vectors {
            vector = vector.min(vector ^ v);
        }
        vector
    }

    fn spans(&self, vector: u64) -> bool {
        self.reduce(vector) == 0
    }

    /// False if the vector was in the space already.
    fn insert(&mut self, vector: u64) -> bool {
        let rest = self.reduce(vector);
        if rest == 0 {
            return false;
        }
        self.vectors.push(rest);
        self.vectors.sort_unstable_by(|a, b| b.cmp(a));
        true
    }
}
