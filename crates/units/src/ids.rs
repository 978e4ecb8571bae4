//! Identifiers: frames, pages, addresses, cores, tasks, files.

use core::fmt;

/// log2 of the base page size: 4 KiB.
pub const PAGE_SHIFT: u32 = 12;
/// Base page size in bytes.
pub const PAGE_SIZE: u64 = 1 << PAGE_SHIFT;
/// log2 of the cache line size of every modelled machine: 64 B.
pub const LINE_SHIFT: u32 = 6;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident($inner:ty), $prefix:literal, $format:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, $format), self.0)
            }
        }
    };
}

id!(
    /// Page frame number: physical address divided by 4 KiB.
    Pfn(u64), "pfn ", "{:#x}"
);
id!(
    /// Virtual page number: virtual address divided by 4 KiB.
    Vpn(u64), "vpn ", "{:#x}"
);
id!(
    /// Physical byte address.
    PhysAddr(u64), "", "{:#x}"
);
id!(
    /// Virtual byte address.
    VirtAddr(u64), "", "{:#x}"
);
id!(
    /// A page colour: the value of a colour map for a frame, 0..4096.
    Color(u16), "color ", "{}"
);
id!(
    /// A hardware thread. Without SMT this is a core.
    CoreId(u16), "cpu", "{}"
);
id!(
    /// A page-sized unit of a disk by its physical position, not by the address that
    /// the disk shows: numbers that follow one another lie next to one another on
    /// the medium. Whoever makes them leaves a number out at every break (track
    /// boundary, spare or defective sector) and gives each disk a range of its own.
    DiskBlock(u64), "disk block ", "{}"
);
id!(
    /// A task (thread) of the modelled or the real operating system.
    TaskId(u32), "task ", "{}"
);
id!(
    /// An address space, as a tagged TLB sees it.
    Asid(u32), "asid ", "{}"
);
id!(
    /// A file, by a number that the host keeps unique over a run.
    FileId(u64), "file ", "{}"
);
id!(
    /// Logical block address of a disk, in 512 B sectors.
    Lba(u64), "lba ", "{}"
);
id!(
    /// Order of a buddy block: the block has 2^order frames.
    Order(u8), "order ", "{}"
);

impl Pfn {
    /// The frame that holds a physical address.
    pub const fn of(addr: PhysAddr) -> Self {
        Self(addr.0 >> PAGE_SHIFT)
    }

    /// Address of the frame's first byte, or `None` beyond 64 bits.
    pub const fn base(self) -> Option<PhysAddr> {
        if self.0 > u64::MAX >> PAGE_SHIFT {
            return None;
        }
        Some(PhysAddr(self.0 << PAGE_SHIFT))
    }

    /// The frame `n` frames further on, or `None` on overflow.
    pub const fn checked_add(self, n: u64) -> Option<Self> {
        match self.0.checked_add(n) {
            Some(v) => Some(Self(v)),
            None => None,
        }
    }
}

impl Vpn {
    /// The page that holds a virtual address.
    pub const fn of(addr: VirtAddr) -> Self {
        Self(addr.0 >> PAGE_SHIFT)
    }

    /// Address of the page's first byte; wraps beyond 64 bits, which no
    /// canonical address reaches.
    pub const fn base(self) -> VirtAddr {
        VirtAddr(self.0 << PAGE_SHIFT)
    }
}

impl VirtAddr {
    /// Byte offset inside the 4 KiB page.
    pub const fn page_offset(self) -> u64 {
        self.0 & (PAGE_SIZE - 1)
    }
}

impl Order {
    /// Largest order of the Linux buddy allocator: 4 MiB blocks.
    pub const MAX: Self = Self(10);

    /// Number of frames in a block of this order, or `None` for an order of 64
    /// or more.
    pub const fn frames(self) -> Option<u64> {
        1u64.checked_shl(self.0 as u32)
    }
}

/// Size of a mapped page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PageSize {
    /// 4 KiB.
    #[default]
    Base,
    /// 2 MiB.
    Huge,
}

impl PageSize {
    /// log2 of the size in bytes.
    pub const fn shift(self) -> u32 {
        match self {
            Self::Base => 12,
            Self::Huge => 21,
        }
    }

    /// Order of the buddy block that backs one such page.
    pub const fn order(self) -> Order {
        match self {
            Self::Base => Order(0),
            Self::Huge => Order(9),
        }
    }
}
