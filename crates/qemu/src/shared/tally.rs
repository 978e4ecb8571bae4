//! What a program asked of the kernel and did not get from QEMU as it would have from the kernel.

use core::sync::atomic::{AtomicU64, Ordering::*};

use super::Shared;

/// Different system calls of which refusals are counted.
const NR_REFUSED: usize = 64;

/// Counts by system call.
#[repr(C)]
pub struct Refused {
    /// Call number + 1; 0 = the place is free.
    number: [AtomicU64; NR_REFUSED],
    count: [AtomicU64; NR_REFUSED],
    /// Refusals of calls for which no place was free.
    others: AtomicU64,
}

impl Refused {
    /// Counts a refusal of this call.
    pub fn add(&self, call: u32) {
        let wanted = u64::from(call) + 1;
        for (number, count) in self.number.iter().zip(&self.count) {
            let there = match number.compare_exchange(0, wanted, AcqRel, Acquire) {
                Ok(_) => wanted,
                Err(there) => there,
            };
            if there == wanted {
                count.fetch_add(1, Relaxed);
                return;
            }
        }
        self.others.fetch_add(1, Relaxed);
    }

    /// Numbers and counts, by number; and how many refusals of further calls there were.
    pub fn counts(&self) -> (Vec<(u32, u64)>, u64) {
        let pairs = self.number.iter().zip(&self.count);
        let taken = pairs.filter_map(|(number, count)| {
            let call = number.load(Acquire).checked_sub(1)?;
            Some((call as u32, count.load(Acquire)))
        });
        let mut all: Vec<_> = taken.collect();
        all.sort_unstable();
        (all, self.others.load(Acquire))
    }
}

/// What is counted beside refused calls.
#[repr(C)]
pub struct Tally {
    /// System calls that QEMU answered by `ENOSYS`.
    pub refused: Refused,
    /// `clone` that shares memory with a new process, which QEMU answered by `EINVAL`.
    pub shared_clones: AtomicU64,
    /// Children of `vfork` that ended without starting a program.
    pub vfork_ends: AtomicU64,
    /// Instructions that access a whole area.
    pub areas: Areas,
    /// By resource (`RLIMIT_...`): how often the program limited it.
    pub limits: [AtomicU64; NR_LIMITS],
}

/// Loads and stores of x87 numbers of 80 bits and of states of registers. From QEMU 9.1 on a
/// program's are reported only by one that was built with a correction (`scripts/qemu.sh`).
#[repr(C)]
pub struct Areas {
    /// Instructions executed.
    pub executed: AtomicU64,
    /// Accesses reported, several for each.
    pub reports: AtomicU64,
}

/// `RLIM_NLIMITS`: resources that can be limited.
pub const NR_LIMITS: usize = 16;

impl Tally {
    /// Counts that the program limited a resource.
    pub fn limited(&self, resource: u64) {
        if let Some(count) = self.limits.get(resource as usize) {
            count.fetch_add(1, Relaxed);
        }
    }

    /// Did the program limit this resource?
    pub fn is_limited(&self, resource: libc::__rlimit_resource_t) -> bool {
        let count = self.limits.get(resource as usize);
        count.is_some_and(|c| c.load(Acquire) != 0)
    }
}

impl Shared {
    /// What differs from a run on the kernel itself.
    pub fn tally(&self) -> &Tally {
        &self.tally
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_counted_by_call_and_beyond_the_places_together() {
        // SAFETY: all zeroes is valid, as in fresh shared memory.
        let refused: Refused = unsafe { core::mem::zeroed() };
        for call in [425, 334, 425, 0] {
            refused.add(call);
        }
        assert_eq!(refused.counts(), (vec![(0, 1), (334, 1), (425, 2)], 0));
        for call in 1000..1000 + NR_REFUSED as u32 {
            refused.add(call);
        }
        let (places, others) = refused.counts();
        assert_eq!((places.len(), others), (NR_REFUSED, 3));
    }
}
