//! Address spaces: which page lies where, and which were touched.
//!
//! An [`AddressSpace`] is an ordered map of areas and the page tables that the
//! hardware walks. It decides nothing and allocates nothing: the kernel brings
//! frames, and gets them back. The tables' nodes occupy real frames, so a walk
//! has real entry addresses and page tables compete for cache like other data.
//!
//! Deviations: protection changes are not followed (a recording does not carry
//! them), so every area may be stored to; addresses are cut to 48 bits; where a
//! page lies in swap space is noted beside the tables, not in them, so a table
//! whose pages are all swapped out gives its frame back.

mod entry;
mod table;
mod vma;

use std::collections::BTreeMap;

use piebald_units::{
    Asid, VirtAddr, Vpn,
    memory::{PageTables, Walk},
};

pub use entry::Entry;
pub(crate) use table::{HUGE_PAGES, Tables, VPN_MASK};
pub(crate) use vma::Areas;
pub use vma::{Area, Object, ObjectPage};

/// Pages of a space that have a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resident {
    /// 4 KiB pages of private memory, the parts of 2 MiB pages included.
    pub anon: u64,
    /// 4 KiB pages of the page cache or of shared objects.
    pub file: u64,
    /// 4 KiB pages that map the zero page.
    pub zero: u64,
    /// 2 MiB pages.
    pub huge: u64,
}

impl Resident {
    /// 4 KiB pages with a frame of their own, as `ps` counts them.
    pub const fn total(&self) -> u64 {
        self.anon + self.file
    }

    fn slot(&mut self, entry: Entry) -> &mut u64 {
        if entry.has(Entry::ZERO) {
            &mut self.zero
        } else if entry.has(Entry::CACHED) {
            &mut self.file
        } else {
            &mut self.anon
        }
    }

    pub(crate) fn add(&mut self, entry: Entry, pages: u64) {
        self.huge += u64::from(entry.has(Entry::HUGE));
        *self.slot(entry) += pages;
    }

    pub(crate) fn sub(&mut self, entry: Entry, pages: u64) {
        self.huge -= u64::from(entry.has(Entry::HUGE));
        *self.slot(entry) -= pages;
    }
}

/// What a scan of access bits found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scan {
    /// Page-table entries looked at (a 2 MiB page has one).
    pub entries: u64,
    /// Entries that were accessed.
    pub accessed: u64,
    /// 4 KiB pages behind the accessed entries.
    pub accessed_pages: u64,
}

/// One process's addresses.
#[derive(Clone)]
pub struct AddressSpace {
    asid: Asid,
    pub(crate) areas: Areas,
    pub(crate) tables: Tables,
    pub(crate) resident: Resident,
    /// Pages that lie in swap space: their slots.
    pub(crate) swapped: BTreeMap<Vpn, u32>,
    /// Rises whenever a translation is taken away or restricted; translation
    /// caches filled under an older value are stale.
    pub(crate) epoch: u32,
}

impl AddressSpace {
    pub(crate) fn new(asid: Asid, root_frame: u32) -> Self {
        Self {
            asid,
            areas: Areas::default(),
            tables: Tables::new(root_frame),
            resident: Resident::default(),
            swapped: BTreeMap::new(),
            epoch: 0,
        }
    }

    /// Pages that have a frame.
    pub const fn resident(&self) -> Resident {
        self.resident
    }

    /// Pages that lie in swap space.
    pub fn swapped(&self) -> u64 {
        self.swapped.len() as u64
    }

    /// The mapped areas, by rising address.
    pub fn areas(&self) -> impl Iterator<Item = &Area> {
        self.areas.iter()
    }

    /// The entry that maps a page, if it has a frame. For a page inside a 2 MiB
    /// page the entry is that of the large page.
    pub fn entry(&self, vpn: Vpn) -> Option<Entry> {
        self.tables.lookup(vpn).map(|(e, _)| e)
    }

    /// The frame of a page, 2 MiB pages resolved.
    pub fn frame_of(&self, vpn: Vpn) -> Option<u32> {
        let (e, level) = self.tables.lookup(vpn)?;
        Some(frame_in(e, level, vpn))
    }

    /// Frames that hold the page tables, the root's first.
    pub fn table_frames(&self) -> Vec<u32> {
        self.tables.node_frames()
    }

    /// Reads the access bits of the pages in `first..end` and calls `seen` for
    /// each accessed entry with its first page and the entry as it was. With
    /// `clear` the bits are cleared, so that the next scan shows what was
    /// touched in between.
    pub fn scan_accessed(
        &mut self,
        first: Vpn,
        end: Vpn,
        clear: bool,
        mut seen: impl FnMut(Vpn, Entry),
    ) -> Scan {
        let mut scan = Scan::default();
        self.tables.visit(first, end, &mut |vpn, e, level| {
            scan.entries += 1;
            if !e.has(Entry::ACCESSED) {
                return e;
            }
            scan.accessed += 1;
            scan.accessed_pages += if level == 1 { HUGE_PAGES } else { 1 };
            seen(vpn, e);
            if clear { e.without(Entry::ACCESSED) } else { e }
        });
        if clear && scan.accessed > 0 {
            self.epoch = self.epoch.wrapping_add(1);
        }
        scan
    }
}

/// The frame of one page under an entry.
pub(crate) const fn frame_in(e: Entry, level: u8, vpn: Vpn) -> u32 {
    match level {
        0 => e.frame(),
        _ => e.frame() + (vpn.0 & (HUGE_PAGES - 1)) as u32,
    }
}

impl PageTables for AddressSpace {
    fn asid(&self) -> Asid {
        self.asid
    }

    fn walk(&self, addr: VirtAddr) -> Walk {
        self.tables.walk(addr)
    }
}
