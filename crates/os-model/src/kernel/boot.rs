//! Memory that the kernel takes for itself when it starts, and where in it
//! each path's data lies.

use piebald_policy::contract::{
    AllocError, Asker, Cause, FrameAllocator, FrameRequest, Mode, Purpose,
};
use piebald_units::{
    Asid, CoreId, Order, PageSize, Pfn, PhysAddr, VirtAddr,
    memory::{PageTables, Walk},
};

use super::{
    action::{DIRECT_MAP, Place},
    config::KernelConfig,
};

/// 4 KiB pages of one core's own kernel data.
const CORE_PAGES: u64 = 4;

/// Frames taken at boot.
#[derive(Clone)]
pub(crate) struct BootMemory {
    /// Blocks as granted, for the books.
    pub blocks: Vec<(Pfn, Order)>,
    /// Text and static data, page by page.
    image: Vec<u32>,
    /// The array of `struct page`s, page by page.
    memmap: Vec<u32>,
    /// Per-core data, page by page.
    cores: Vec<u32>,
    /// The page of zeroes.
    pub zero_frame: u32,
    /// Tables of the direct map.
    pub space: KernelSpace,
    struct_page_bytes: u64,
}

impl BootMemory {
    pub(crate) fn take(
        frames: &mut dyn FrameAllocator,
        config: &KernelConfig,
    ) -> Result<Self, AllocError> {
        let total = frames.total_frames();
        let bytes = u64::from(config.struct_page_bytes);
        let mut taker = Taker {
            frames,
            blocks: Vec::new(),
        };
        let gib = total.div_ceil(1 << 18);
        let tables = taker.pages(1 + gib.div_ceil(512) + gib)?;
        let taken = Self {
            image: taker.pages(u64::from(config.image_pages))?,
            memmap: taker.pages((total * bytes).div_ceil(4096))?,
            cores: taker.pages(CORE_PAGES * u64::from(config.cores))?,
            zero_frame: taker.pages(1)?[0],
            space: KernelSpace {
                upper: gib.div_ceil(512) as usize,
                tables,
            },
            struct_page_bytes: bytes,
            blocks: Vec::new(),
        };
        Ok(Self {
            blocks: taker.blocks,
            ..taken
        })
    }

    /// A byte of kernel text, wrapped into the image.
    pub(crate) fn text(&self, byte: u64) -> Place {
        place(&self.image, byte)
    }

    /// A byte of a core's own data.
    pub(crate) fn core(&self, core: CoreId, offset: u64) -> Place {
        let page = u64::from(core.0) * CORE_PAGES;
        place(&self.cores, page * 4096 + offset % (CORE_PAGES * 4096))
    }

    /// The `struct page` of a frame.
    pub(crate) fn struct_page(&self, frame: u32) -> Place {
        place(&self.memmap, u64::from(frame) * self.struct_page_bytes)
    }
}

fn place(pages: &[u32], byte: u64) -> Place {
    let page = (byte >> 12) as usize % pages.len();
    Place {
        frame: Pfn(u64::from(pages[page])),
        offset: (byte & 4095) as u16,
    }
}

struct Taker<'a> {
    frames: &'a mut dyn FrameAllocator,
    blocks: Vec<(Pfn, Order)>,
}

impl Taker<'_> {
    /// Takes pages in the largest blocks that fit; smaller ones when memory is
    /// fragmented.
    fn pages(&mut self, n: u64) -> Result<Vec<u32>, AllocError> {
        let mut out = Vec::with_capacity(n as usize);
        let mut cap = Order::MAX.0;
        while (out.len() as u64) < n {
            let left = n - out.len() as u64;
            let order = (left.ilog2() as u8).min(cap);
            match self.frames.alloc(&kernel_request(Order(order))) {
                Ok(grant) => {
                    let first = grant.frame.0 as u32;
                    out.extend(first..first + (1 << order));
                    self.blocks.push((grant.frame, grant.order));
                }
                Err(_) if order > 0 => cap = order - 1,
                Err(e) => return Err(e),
            }
        }
        Ok(out)
    }
}

/// A request of the kernel for its own data.
pub(crate) const fn kernel_request(order: Order) -> FrameRequest<'static> {
    FrameRequest {
        order,
        purpose: Purpose::Kernel,
        asker: Asker::Kernel,
        cause: Cause::Kernel,
        core: CoreId(0),
        page: None,
        allowed: None,
        wish: None,
        mode: Mode::Hint,
    }
}

/// The kernel's own address space as the walker sees it: all memory at
/// [`DIRECT_MAP`], in 2 MiB pages, the same for every task. Address space 0.
#[derive(Clone)]
pub struct KernelSpace {
    /// Root, then level-2 tables, then level-1 tables of 1 GiB each.
    tables: Vec<u32>,
    /// Number of level-2 tables.
    upper: usize,
}

impl PageTables for KernelSpace {
    fn asid(&self) -> Asid {
        Asid(0)
    }

    fn walk(&self, addr: VirtAddr) -> Walk {
        let unmapped = Walk {
            entries: [PhysAddr(0); 4],
            levels: 0,
            page: PageSize::Huge,
        };
        let Some(phys) = addr.0.checked_sub(DIRECT_MAP) else {
            return unmapped;
        };
        let gib = (phys >> 30) as usize;
        let (Some(l2), Some(l1)) = (
            self.tables
                .get(1 + gib / 512)
                .filter(|_| gib / 512 < self.upper),
            self.tables.get(1 + self.upper + gib),
        ) else {
            return unmapped;
        };
        let entry = |frame: u32, index: u64| PhysAddr((u64::from(frame) << 12) + (index & 511) * 8);
        let entries = [
            entry(self.tables[0], addr.0 >> 39),
            entry(*l2, addr.0 >> 30),
            entry(*l1, addr.0 >> 21),
            PhysAddr(0),
        ];
        Walk {
            entries,
            levels: 3,
            page: PageSize::Huge,
        }
    }
}
