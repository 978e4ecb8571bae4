//! Where files and processes stand in their sequences, by name.
//!
//! The kernel's own records of files and processes have no room for this, so there is a table
//! of each: 4096 places in groups of four. The name of a file says which file it is, not where
//! its record lies, so a place needs no word when a record goes: it is used again when the
//! file comes back, and else is the first of its group to be given away. A place that is lost
//! costs a sequence that begins anew.

use core::slice;

use piebald_policy::srm::{Sequence, VmTurn};

/// Groups; a power of two.
const GROUPS: usize = 1024;
/// Places in a group.
const WAYS: usize = 4;

/// The name of a file (device and generation, number) or a process (its number, when it
/// started). Zero is nobody's.
pub type Key = [u64; 2];

/// A place. Zero bytes are one that nobody has.
#[derive(Clone, Copy, Debug, Default)]
pub struct Place {
    key: Key,
    /// When it was asked for last.
    used: u64,
    /// The sequence of the file, or of the small files that the process reads.
    pub sequence: Sequence,
    /// Of a process: its round through the colours of memory.
    pub turn: VmTurn,
}

/// A table of places, in memory that is lent.
pub struct Places {
    places: *mut Place,
    clock: u64,
}

impl Places {
    /// Bytes of memory.
    pub const BYTES: usize = GROUPS * WAYS * size_of::<Place>();

    /// A table without memory; it is not used.
    pub const NONE: Self = Self {
        places: core::ptr::null_mut(),
        clock: 0,
    };

    /// A table over zero bytes.
    ///
    /// # Safety
    /// `at` has [`Places::BYTES`] zero bytes, aligned to 8, which nobody else uses while this
    /// is used.
    pub const unsafe fn over(at: *mut u8) -> Self {
        Self {
            places: at.cast(),
            clock: 0,
        }
    }

    fn group(&mut self, key: Key) -> &mut [Place] {
        if self.places.is_null() {
            return &mut [];
        }
        let [a, b] = key;
        let mixed = (a ^ b.rotate_left(32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let group = (mixed >> 32) as usize % GROUPS;
        // SAFETY: the promise of `over`; the group lies within the table.
        unsafe { slice::from_raw_parts_mut(self.places.add(group.wrapping_mul(WAYS)), WAYS) }
    }

    /// The place that a key has.
    pub fn find(&mut self, key: Key) -> Option<&mut Place> {
        self.group(key).iter_mut().find(|place| place.key == key)
    }

    /// The place of a key, a fresh one if it had none, and the sequence of whoever lost it.
    /// `None` for the key that is nobody's.
    pub fn of(&mut self, key: Key) -> Option<(&mut Place, Sequence)> {
        if key == [0; 2] {
            return None;
        }
        self.clock = self.clock.wrapping_add(1);
        let now = self.clock;
        let oldest = |place: &&mut Place| (place.key != key, place.used);
        let place = self.group(key).iter_mut().min_by_key(oldest)?;
        let mut lost = Sequence::NONE;
        if place.key != key {
            lost = place.sequence;
            *place = Place {
                key,
                ..Place::default()
            };
        }
        place.used = now;
        Some((place, lost))
    }

    /// Takes the place of a key away. Answers its sequence.
    pub fn take(&mut self, key: Key) -> Option<Sequence> {
        let place = self.find(key)?;
        let sequence = place.sequence;
        *place = Place::default();
        Some(sequence)
    }
}
