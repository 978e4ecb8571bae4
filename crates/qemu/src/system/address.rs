//! From QEMU's account of an access to a physical address, fast.
//!
//! The public interface searches QEMU's memory blocks for each access, which takes longer
//! than everything else. What it starts from is a host address that stands in a structure
//! of QEMU 7.2 behind two flags ([`Private`]); newer ones have the physical address there, which is
//! a host address with base 0 to this room. This room reads it there, and trusts it only
//! as far as the public interface confirms it: at the first accesses to the machine's
//! memory, then at one of [`CHECK_EACH`]. After one contradiction it asks the public
//! interface for good.

use crate::api::{HwAddr, MemInfo, SystemApi};

/// Confirmations in a row before the structure is trusted.
const CONFIRM: u32 = 256;
/// One of so many accesses is confirmed later on; a power of two.
const CHECK_EACH: u32 = 1 << 14;
/// Below this address of a PC lies memory that is mapped more than once.
const LOW: u64 = 1 << 20;

/// The first words of QEMU's own `struct qemu_plugin_hwaddr`.
#[repr(C)]
struct Private {
    is_io: bool,
    is_store: bool,
    /// Host address, or the memory region of a device (7.2); physical address (10.0).
    host: u64,
}

/// How addresses are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Not decided yet: so many confirmations in a row of a host address.
    Trying {
        /// Host address of physical address 0, if the structure is what it seems.
        base: u64,
        /// Confirmations so far.
        confirmed: u32,
    },
    /// By the structure; the host address of physical address 0.
    Structure {
        /// As above.
        base: u64,
        /// Accesses until the next confirmation.
        check_in: u32,
    },
    /// By the public interface.
    Public,
}

/// Where an access went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The machine's memory, at this physical address.
    Memory(u64),
    /// A device, a read-only memory, or memory that is not the machine's main one.
    Elsewhere,
}

/// Finds addresses.
#[derive(Debug)]
pub struct Addresses {
    way: Way,
    /// Bytes of memory.
    memory: u64,
}

impl Addresses {
    /// For a machine with so many bytes of memory.
    pub const fn new(memory: u64) -> Self {
        Self {
            way: Way::Trying {
                base: 0,
                confirmed: 0,
            },
            memory,
        }
    }

    /// How addresses are found, in words.
    pub const fn way(&self) -> &'static str {
        match self.way {
            Way::Trying { .. } => "public interface (not enough accesses to decide)",
            Way::Structure { base: 0, .. } => "physical address of a structure",
            Way::Structure { .. } => "host address",
            Way::Public => "public interface",
        }
    }

    /// Where the access went that is being reported.
    ///
    /// # Safety
    /// To be called from the report of an access, with what QEMU reported.
    #[inline(always)]
    pub unsafe fn find(&mut self, api: &SystemApi, info: MemInfo, addr: u64) -> Place {
        // SAFETY: the caller's word.
        let hwaddr = unsafe { (api.hwaddr)(info, addr) };
        if hwaddr.is_null() {
            return Place::Elsewhere;
        }
        if let Way::Structure { base, check_in } = &mut self.way
            && *check_in > 0
        {
            *check_in -= 1;
            // SAFETY: QEMU's structure, of which `Private` is the beginning; the public
            // interface has confirmed it.
            let private = unsafe { &*hwaddr.cast::<Private>() };
            let offset = private.host.wrapping_sub(*base);
            if !private.is_io && offset < self.memory {
                return Place::Memory(offset);
            }
        }
        // SAFETY: as above.
        unsafe { self.ask(api, hwaddr) }
    }

    /// Asks the public interface, and compares.
    ///
    /// # Safety
    /// `hwaddr` must be QEMU's, and not null.
    #[cold]
    #[inline(never)]
    unsafe fn ask(&mut self, api: &SystemApi, hwaddr: *const HwAddr) -> Place {
        // SAFETY: the caller's word; `Private` is not larger than any version's structure.
        let (is_io, phys, host) = unsafe {
            if (api.hwaddr_is_io)(hwaddr) {
                (true, 0, 0)
            } else {
                let host = (*hwaddr.cast::<Private>()).host;
                (false, (api.hwaddr_phys_addr)(hwaddr), host)
            }
        };
        if is_io || phys >= self.memory {
            return Place::Elsewhere;
        }
        self.way = self.way.learn(phys, host);
        Place::Memory(phys)
    }
}

impl Way {
    /// What follows from one access to memory, of which both addresses are known.
    const fn learn(self, phys: u64, host: u64) -> Self {
        let base = host.wrapping_sub(phys);
        if phys < LOW {
            return self;
        }
        match self {
            Self::Trying { confirmed: 0, .. } => Self::Trying { base, confirmed: 1 },
            Self::Trying { base: b, confirmed } if b == base => match confirmed + 1 < CONFIRM {
                true => Self::Trying {
                    base,
                    confirmed: confirmed + 1,
                },
                false => Self::Structure {
                    base,
                    check_in: CHECK_EACH,
                },
            },
            Self::Structure { base: b, .. } if b == base => Self::Structure {
                base,
                check_in: CHECK_EACH,
            },
            _ => Self::Public,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Way = Way::Trying {
        base: 0,
        confirmed: 0,
    };

    fn after(accesses: impl Iterator<Item = (u64, u64)>) -> Way {
        accesses.fold(FRESH, |way, (phys, host)| way.learn(phys, host))
    }

    #[test]
    fn the_structure_is_trusted_after_enough_confirmations() {
        let base = 0x7f00_0000_0000;
        let place = |i: u64| (LOW + 4096 * i, base + LOW + 4096 * i);
        let almost = after((0..u64::from(CONFIRM) - 1).map(place));
        assert!(matches!(almost, Way::Trying { .. }), "{almost:?}");
        let enough = after((0..u64::from(CONFIRM)).map(place));
        assert!(matches!(enough, Way::Structure { base: b, .. } if b == base));
    }

    #[test]
    fn one_contradiction_is_enough_to_distrust_it_for_good() {
        let base = 0x7f00_0000_0000;
        let mut accesses: Vec<_> = (0..1000).map(|i| (LOW + i, base + LOW + i)).collect();
        accesses.push((LOW, base + LOW + 8));
        assert_eq!(after(accesses.iter().copied()), Way::Public);
        accesses.extend((0..1000).map(|i| (LOW + i, base + LOW + i)));
        assert_eq!(after(accesses.iter().copied()), Way::Public);
        let early = [(LOW, base + LOW), (LOW + 64, base)];
        assert_eq!(after(early.into_iter()), Way::Public);
    }

    #[test]
    fn low_memory_says_nothing() {
        assert_eq!(after([(0, 5), (LOW - 1, 7)].into_iter()), FRESH);
    }
}
