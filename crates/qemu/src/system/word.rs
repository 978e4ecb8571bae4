//! What the callbacks store: one word of 64 bits for each reference.
//!
//! | bits | content |
//! |---|---|
//! | 0..34 | physical address, or the payload of a word that is no reference |
//! | 34..37 | log2 of the bytes |
//! | 37..40 | [`Kind`] |
//! | 40..64 | instructions since the word before |

/// Bits of an address: 16 GiB.
pub const ADDRESS_BITS: u32 = 34;
const SIZE: u32 = ADDRESS_BITS;
const KIND: u32 = SIZE + 3;
const GAP: u32 = KIND + 3;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;

/// Most instructions between two words that a word can hold.
pub const MAX_GAP: u64 = (1 << (64 - GAP)) - 1;
/// Largest payload of a word that is no reference.
pub const MAX_PAYLOAD: u64 = ADDRESS;

/// What a word stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// A load.
    Load = 0,
    /// A store.
    Store = 1,
    /// A load by a non-temporal instruction.
    LoadNt = 2,
    /// A store by a non-temporal instruction.
    StoreNt = 3,
    /// A mark of the guest; the payload is its code.
    Mark = 4,
    /// The clock goes on by the payload, without instructions: the processor waited.
    Jump = 5,
    /// As many instructions as the payload says, without a reference.
    Pass = 6,
    /// The store of a locked instruction.
    StoreLocked = 7,
}

/// One word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word(pub u64);

impl Word {
    /// A reference to `1 << size_shift` bytes at `addr`; all arguments in range.
    #[inline(always)]
    pub const fn reference(kind: Kind, addr: u64, size_shift: u32, gap: u64) -> Self {
        Self(addr | (size_shift as u64) << SIZE | (kind as u64) << KIND | gap << GAP)
    }

    /// A word that is no reference.
    pub const fn other(kind: Kind, payload: u64, gap: u64) -> Self {
        Self(payload & ADDRESS | (kind as u64) << KIND | gap << GAP)
    }

    /// What it stands for.
    #[inline]
    pub const fn kind(self) -> Kind {
        match self.0 >> KIND & 7 {
            0 => Kind::Load,
            1 => Kind::Store,
            2 => Kind::LoadNt,
            3 => Kind::StoreNt,
            4 => Kind::Mark,
            5 => Kind::Jump,
            6 => Kind::Pass,
            _ => Kind::StoreLocked,
        }
    }

    /// Address, or payload.
    #[inline]
    pub const fn payload(self) -> u64 {
        self.0 & ADDRESS
    }

    /// Bytes of a reference.
    #[inline]
    pub const fn bytes(self) -> u8 {
        1 << (self.0 >> SIZE & 7)
    }

    /// Instructions since the word before, this one's included.
    #[inline]
    pub const fn gap(self) -> u64 {
        self.0 >> GAP
    }

    /// By how much it moves its processor's clock.
    #[inline]
    pub const fn advance(self) -> u64 {
        match self.kind() {
            Kind::Jump | Kind::Pass => self.payload(),
            _ => self.gap(),
        }
    }

    /// Does it refer to memory?
    #[inline]
    pub const fn is_reference(self) -> bool {
        let kind = self.0 >> KIND & 7;
        kind & 4 == 0 || kind == Kind::StoreLocked as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_gives_back_what_was_put_in() {
        let kinds = [
            Kind::Load,
            Kind::Store,
            Kind::LoadNt,
            Kind::StoreNt,
            Kind::StoreLocked,
        ];
        for kind in kinds {
            for shift in 0..7 {
                let word = Word::reference(kind, ADDRESS, shift, MAX_GAP);
                assert_eq!(word.kind(), kind);
                assert!(word.is_reference());
                assert_eq!(word.payload(), ADDRESS);
                assert_eq!(word.bytes(), 1 << shift);
                assert_eq!(word.advance(), MAX_GAP);
                let empty = Word::reference(kind, 0, shift, 0);
                assert_eq!((empty.payload(), empty.gap()), (0, 0));
            }
        }
    }

    #[test]
    fn waiting_moves_the_clock_and_marks_do_so_by_their_instructions() {
        for kind in [Kind::Jump, Kind::Pass] {
            let word = Word::other(kind, 123_456_789, 0);
            assert_eq!((word.kind(), word.advance()), (kind, 123_456_789));
            assert!(!word.is_reference());
        }
        let mark = Word::other(Kind::Mark, 0x12, 7);
        assert_eq!((mark.payload(), mark.advance()), (0x12, 7));
        assert!(!mark.is_reference());
    }
}
