//! Marks: how a program in the guest tells the machine model what to count.
//!
//! A mark is an instruction that does nothing, `nopl 0x4b43XXXX(%rax)`, so that the same
//! program runs anywhere. The low 16 bits `XXXX` hold the operation (bits 0-3) and the
//! number of a region (bits 4-15).

/// Bytes of the instruction: `0f 1f 80` and a displacement of 32 bits.
const LENGTH: usize = 7;
const OPCODE: [u8; 3] = [0x0f, 0x1f, 0x80];
/// Upper half of the displacement.
const SIGN: u32 = 0x4b43;

/// What a mark asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// From now on the region counts.
    Start = 1,
    /// From now on it does not.
    Stop = 2,
    /// Its counts go to the results as they are now.
    Dump = 3,
    /// Its counts are 0 again.
    Clear = 4,
    /// What the guest can read is brought up to date; of no region.
    Publish = 5,
}

/// One mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// What it asks for.
    pub op: Op,
    /// Number of the region, 0..=4095.
    pub region: u16,
}

impl Mark {
    /// The mark that an instruction is; `None` for all others, and for operations that do
    /// not exist.
    pub fn of(instruction: &[u8]) -> Option<Self> {
        let (opcode, displacement) = instruction.split_first_chunk()?;
        if instruction.len() != LENGTH || *opcode != OPCODE {
            return None;
        }
        let displacement = u32::from_le_bytes(displacement.try_into().ok()?);
        match displacement >> 16 == SIGN {
            true => Self::from_code(displacement as u16),
            false => None,
        }
    }

    /// Reads [`code`](Self::code).
    pub const fn from_code(code: u16) -> Option<Self> {
        let op = match code & 15 {
            1 => Op::Start,
            2 => Op::Stop,
            3 => Op::Dump,
            4 => Op::Clear,
            5 => Op::Publish,
            _ => return None,
        };
        Some(Self {
            op,
            region: code >> 4,
        })
    }

    /// The low half of the displacement.
    pub const fn code(self) -> u16 {
        self.region << 4 | self.op as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn instruction(displacement: u32) -> Vec<u8> {
        [&OPCODE[..], &displacement.to_le_bytes()].concat()
    }

    #[test]
    fn every_mark_survives_its_instruction() {
        for op in [Op::Start, Op::Stop, Op::Dump, Op::Clear, Op::Publish] {
            for region in [0, 1, 77, 4095] {
                let mark = Mark { op, region };
                let bytes = instruction(SIGN << 16 | u32::from(mark.code()));
                assert_eq!(Mark::of(&bytes), Some(mark));
            }
        }
    }

    #[test]
    fn other_instructions_are_no_marks() {
        let mark = instruction(0x4b43_0001);
        assert!(Mark::of(&mark).is_some());
        assert_eq!(Mark::of(&mark[..6]), None, "too short");
        assert_eq!(Mark::of(&[&mark[..], &[0x90]].concat()), None, "too long");
        assert_eq!(Mark::of(&[]), None);
        assert_eq!(Mark::of(&instruction(0x4b44_0001)), None, "another sign");
        assert_eq!(Mark::of(&instruction(0x4b43_0000)), None, "no operation 0");
        assert_eq!(Mark::of(&instruction(0x4b43_0006)), None, "no operation 6");
        // The compiler's own padding, and another register.
        assert_eq!(Mark::of(&instruction(0)), None);
        let mut other = mark.clone();
        other[2] = 0x81;
        assert_eq!(Mark::of(&other), None);
    }
}
