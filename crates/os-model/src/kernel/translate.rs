//! From virtual to physical, batch by batch: the path that every reference of
//! every program takes.

use piebald_units::{
    VirtAddr, Vpn,
    memory::PhysRef,
    op::{MemRef, RefKind},
};

use crate::space::{AddressSpace, Entry, VPN_MASK, frame_in};

/// Entries of a task's translation cache.
const SLOTS: usize = 512;
/// Epoch bits in a tag, above the page's 36. One less than would fit, so that
/// no tag equals [`EMPTY`].
const EPOCH_BITS: u32 = 27;
const EMPTY: u64 = u64::MAX;
/// Split loads that are remembered. Dependences are short; one that reaches
/// back over more splits comes out a few loads too near.
const MAX_SPLITS: usize = 8;
/// Where load numbers begin: a dependence never reaches below 0.
const FIRST_LOAD: u64 = 1 << 16;

/// A reference that cannot be translated before the kernel acts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// First byte on the page that is missing or may not be stored to.
    pub addr: VirtAddr,
    /// What the reference does.
    pub kind: RefKind,
}

/// What [`Kernel::translate`](super::Kernel::translate) did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Translated {
    /// References translated, from the front of the batch.
    pub consumed: usize,
    /// Why the next one was not; `None` if the batch is done.
    pub fault: Option<Fault>,
}

#[derive(Clone, Copy)]
struct Slot {
    /// Page and, above its 36 bits, the low bits of the epoch: what was filled
    /// under another epoch does not match, so nothing needs clearing.
    tag: u64,
    frame: u32,
    /// 1 if the page may be stored to and is already marked dirty.
    writable: u32,
}

const NO_SLOT: Slot = Slot {
    tag: EMPTY,
    frame: 0,
    writable: 0,
};

/// Recent translations of one task. A page is here only if its access bit is
/// set, and writable only if its dirty bit is, so that a hit changes nothing.
#[derive(Clone)]
pub(crate) struct TranslationCache {
    slots: Box<[Slot; SLOTS]>,
    /// The space's epoch of the last batch.
    epoch: u32,
    /// Loads translated so far, for the renumbering of dependences.
    loads: u64,
    /// Load numbers at which a load was split into two, newest last.
    splits: Vec<u64>,
}

impl TranslationCache {
    pub(crate) fn new() -> Self {
        Self {
            slots: Box::new([NO_SLOT; SLOTS]),
            epoch: 0,
            loads: FIRST_LOAD,
            splits: Vec::new(),
        }
    }

    /// Forgets everything: another address space follows.
    pub(crate) fn reset(&mut self) {
        self.slots.fill(NO_SLOT);
        self.epoch = 0;
    }

    pub(crate) fn batch(
        &mut self,
        space: &mut AddressSpace,
        refs: &[MemRef],
        out: &mut Vec<PhysRef>,
    ) -> Translated {
        if self.epoch >> EPOCH_BITS != space.epoch >> EPOCH_BITS {
            self.reset();
        }
        self.epoch = space.epoch;
        let epoch = self.epoch_tag();
        if self
            .splits
            .last()
            .is_some_and(|s| self.loads - s > u64::from(u16::MAX))
        {
            self.splits.clear();
        }
        out.reserve(refs.len() + 8);
        let mut i = 0;
        loop {
            i += self.hits(epoch, &refs[i..], out);
            let Some(r) = refs.get(i) else { break };
            if let Err(fault) = self.slow(space, r, out) {
                return Translated {
                    consumed: i,
                    fault: Some(fault),
                };
            }
            i += 1;
        }
        Translated {
            consumed: refs.len(),
            fault: None,
        }
    }

    /// Translates references from the cache up to the first that is not there
    /// or crosses a page's end; returns how many.
    #[inline]
    fn hits(&mut self, epoch: u64, refs: &[MemRef], out: &mut Vec<PhysRef>) -> usize {
        if !self.splits.is_empty() {
            return self.hits_after_split(epoch, refs, out);
        }
        let before = out.len();
        let slots = &*self.slots;
        out.extend(refs.iter().map_while(|r| {
            let frame = cached(slots, epoch, r)?;
            Some(physical(r, frame, r.dep))
        }));
        out.len() - before
    }

    /// The same while dependences may reach over a split load.
    #[cold]
    fn hits_after_split(&mut self, epoch: u64, refs: &[MemRef], out: &mut Vec<PhysRef>) -> usize {
        for (i, r) in refs.iter().enumerate() {
            let Some(frame) = cached(&self.slots, epoch, r) else {
                return i;
            };
            let dep = self.dependence(r);
            out.push(physical(r, frame, dep));
        }
        refs.len()
    }

    /// A reference that misses the cache or crosses a page's end; it appends
    /// one reference or two.
    #[cold]
    #[inline(never)]
    fn slow(
        &mut self,
        space: &mut AddressSpace,
        r: &MemRef,
        out: &mut Vec<PhysRef>,
    ) -> Result<(), Fault> {
        let frame = self.fill(space, r.addr, r.kind)?;
        if inside(r) {
            let dep = self.dependence(r);
            out.push(physical(r, frame, dep));
            return Ok(());
        }
        let first = (4096 - r.addr.page_offset()) as u8;
        let second = MemRef {
            addr: VirtAddr(r.addr.0.wrapping_add(u64::from(first))),
            size: r.size - first,
            gap: 0,
            ..*r
        };
        let next = self.fill(space, second.addr, r.kind)?;
        let dep = self.dependence(r);
        let one = MemRef { size: first, ..*r };
        out.push(physical(&one, frame, dep));
        // The second part's dependence reaches one load further back: past the
        // first part.
        let is_load = loads(r.kind);
        let dep = reach(dep, u16::from(is_load));
        out.push(physical(&second, next, dep));
        if is_load {
            self.note_split();
        }
        Ok(())
    }

    fn epoch_tag(&self) -> u64 {
        u64::from(self.epoch & ((1 << EPOCH_BITS) - 1)) << 36
    }

    /// Translates through the page tables, sets the access bits and remembers.
    fn fill(
        &mut self,
        space: &mut AddressSpace,
        addr: VirtAddr,
        kind: RefKind,
    ) -> Result<u32, Fault> {
        let vpn = Vpn(addr.0 >> 12 & VPN_MASK);
        let write = kind.writes();
        let Some((entry, level)) = space.tables.lookup(vpn) else {
            return Err(Fault { addr, kind });
        };
        if entry.has(Entry::HINT) || write && !entry.has(Entry::WRITE) {
            return Err(Fault { addr, kind });
        }
        let bits = Entry::ACCESSED | if write { Entry::DIRTY } else { 0 };
        if !entry.has(bits) {
            space.tables.update(vpn, entry.with(bits));
        }
        let frame = frame_in(entry, level, vpn);
        let writable = entry.with(bits).has(Entry::WRITE | Entry::DIRTY);
        self.slots[slot_of(vpn.0)] = Slot {
            tag: vpn.0 | self.epoch_tag(),
            frame,
            writable: u32::from(writable),
        };
        Ok(frame)
    }

    /// The dependence of a reference, in the numbering that counts both parts
    /// of split loads; counts the reference if it is a load. Loads that hit the
    /// cache while no split is remembered go uncounted: only the distance to
    /// remembered splits matters.
    fn dependence(&mut self, r: &MemRef) -> u16 {
        let now = self.loads;
        self.loads += u64::from(loads(r.kind));
        if self.splits.is_empty() || r.dep == 0 {
            return r.dep;
        }
        let target = now.saturating_sub(u64::from(r.dep));
        let between = self.splits.iter().filter(|s| **s > target).count();
        reach(r.dep, between as u16)
    }

    /// Remembers that the load just counted became two. A dependence on it is
    /// on its second part, so only loads after it reach over both.
    fn note_split(&mut self) {
        if self.splits.len() == MAX_SPLITS {
            self.splits.remove(0);
        }
        self.splits.push(self.loads - 1);
    }
}

/// A dependence that reaches `more` loads further back; too far is none.
const fn reach(dep: u16, more: u16) -> u16 {
    match (dep, dep.checked_add(more)) {
        (0, _) | (_, None | Some(u16::MAX)) => 0,
        (_, Some(sum)) => sum,
    }
}

const fn loads(kind: RefKind) -> bool {
    matches!(kind, RefKind::Load | RefKind::Update | RefKind::LoadNt)
}

/// Does the reference lie within one page?
#[inline]
const fn inside(r: &MemRef) -> bool {
    r.addr.page_offset() + r.size as u64 <= 4096
}

/// The frame of a reference if the cache knows it.
#[inline]
fn cached(slots: &[Slot; SLOTS], epoch: u64, r: &MemRef) -> Option<u32> {
    let vpn = r.addr.0 >> 12 & VPN_MASK;
    let slot = &slots[slot_of(vpn)];
    let hit = slot.tag == (vpn | epoch) && slot.writable >= u32::from(r.kind.writes());
    (hit && inside(r)).then_some(slot.frame)
}

/// Neighbouring pages get neighbouring slots; the higher bits keep arrays that
/// lie 2 MiB apart from sharing one.
#[inline]
fn slot_of(vpn: u64) -> usize {
    ((vpn ^ vpn >> 9) & (SLOTS as u64 - 1)) as usize
}

#[inline]
fn physical(r: &MemRef, frame: u32, dep: u16) -> PhysRef {
    PhysRef {
        vaddr: r.addr,
        frame,
        site: r.site,
        gap: r.gap,
        dep,
        size: r.size,
        kind: r.kind,
    }
}
