//! The allocators that are compared, behind one trait.

use std::alloc::Layout;

use bitmap_allocator::{BitAlloc, BitAlloc1M};
use piebald_policy::{
    buddy::{Buddy, List, Sizes, Slices},
    color_map::{BitClass, ColorMap},
    contract::{FrameRequest, Mode},
};
use piebald_units::{Color, ColorSet, CoreId, Order, Pfn, TaskId, Vpn};

use crate::plain::Plain;

/// A zone of frames, numbered from 0.
pub trait Zone {
    /// A block of an order.
    fn alloc(&mut self, order: u8) -> Option<u32>;
    /// Takes a block back.
    fn free(&mut self, at: u32, order: u8);
}

impl Zone for Plain {
    #[inline]
    fn alloc(&mut self, order: u8) -> Option<u32> {
        Plain::alloc(self, order)
    }

    #[inline]
    fn free(&mut self, at: u32, order: u8) {
        assert!(Plain::free(self, at, order));
    }
}

/// Our buddy on vectors.
pub type Ours = Buddy<Slices<ColorMap, Vec<u8>, Vec<[u32; 2]>, Vec<u32>, Vec<List>, Vec<u64>>>;

/// Which colours the requests name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ask {
    /// None.
    Any,
    /// A wish for the next colour each time.
    Wish,
    /// A set of half of the colours: every second request one, then the other.
    Halves,
}

/// Our allocator with its way of asking.
pub struct Colored {
    pub buddy: Ours,
    ask: Ask,
    turn: u16,
    colors: u16,
    halves: [ColorSet; 2],
}

/// 2^bits colours by frame bits from `shift` on.
pub fn map_of(shift: u32, bits: u32) -> ColorMap {
    let masks: Vec<_> = (shift..shift + bits)
        .map(|b| (1u64 << b, BitClass::Unknown))
        .collect();
    ColorMap::from_masks(&masks).expect("independent bits")
}

/// Our buddy with all of its frames free.
pub fn ours(map: &ColorMap, frames: u32) -> Ours {
    let sizes = Sizes::of(map, u64::from(frames)).expect("a size in range");
    let store = Slices {
        map: map.clone(),
        states: vec![0; sizes.frames],
        links: vec![[0; 2]; sizes.frames],
        pageblocks: vec![0; sizes.pageblocks],
        lists: vec![List::EMPTY; sizes.lists],
        words: vec![0; sizes.words],
    };
    let mut buddy = Buddy::new(store, u64::from(frames), Pfn(0)).expect("enough memory");
    buddy
        .add_range(Pfn(0)..Pfn(u64::from(frames)))
        .expect("a range of the table");
    buddy
}

/// A request without colours.
pub fn request(order: u8) -> FrameRequest<'static> {
    FrameRequest {
        order: Order(order),
        ..FrameRequest::fault(TaskId(1), CoreId(0), Vpn(0))
    }
}

impl Colored {
    /// All frames free.
    pub fn new(map: &ColorMap, frames: u32, ask: Ask) -> Self {
        let colors = map.colors();
        let low = ColorSet::first(colors / 2);
        let mut high = ColorSet::EMPTY;
        for c in colors / 2..colors {
            high.insert(Color(c as u16));
        }
        Self {
            buddy: ours(map, frames),
            ask,
            turn: 0,
            colors: colors as u16,
            halves: [low, high],
        }
    }
}

impl Zone for Colored {
    #[inline]
    fn alloc(&mut self, order: u8) -> Option<u32> {
        let mut r = request(order);
        if order == 0 {
            match self.ask {
                Ask::Any => {}
                Ask::Wish => {
                    self.turn = (self.turn + 1) & (self.colors - 1);
                    r.wish = Some(Color(self.turn));
                }
                Ask::Halves => {
                    self.turn ^= 1;
                    r.allowed = self.halves.get(usize::from(self.turn));
                    r.mode = Mode::Hint;
                }
            }
        }
        let grant = self.buddy.alloc(&r).ok()?;
        Some(grant.frame.0 as u32)
    }

    #[inline]
    fn free(&mut self, at: u32, order: u8) {
        let freed = self.buddy.free(Pfn(u64::from(at)), Order(order));
        assert!(freed.is_ok());
    }
}

/// `buddy_system_allocator`'s frame allocator.
pub struct Rcore(buddy_system_allocator::FrameAllocator<33>);

impl Rcore {
    /// All frames free.
    pub fn new(frames: u32) -> Self {
        let mut inner = buddy_system_allocator::FrameAllocator::new();
        // In blocks of order 10, the largest that the others have.
        for at in (0..frames as usize).step_by(1024) {
            inner.add_frame(at, at + 1024);
        }
        Self(inner)
    }
}

impl Zone for Rcore {
    fn alloc(&mut self, order: u8) -> Option<u32> {
        self.0.alloc(1 << order).map(|at| at as u32)
    }

    fn free(&mut self, at: u32, order: u8) {
        self.0.dealloc(at as usize, 1 << order);
    }
}

/// `buddy-alloc`, which keeps its lists in the memory that it manages.
pub struct InPlace {
    inner: buddy_alloc::buddy_alloc::BuddyAlloc,
    base: *mut u8,
    layout: Layout,
}

// SAFETY: the memory is owned by this value alone, and used through `&mut`.
unsafe impl Send for InPlace {}

impl InPlace {
    /// All frames free but those that hold its bitmaps.
    pub fn new(frames: u32) -> Self {
        let layout = Layout::from_size_align(frames as usize * 4096, 1 << 22).expect("a layout");
        // SAFETY: the layout is not empty.
        let base = unsafe { std::alloc::alloc(layout) };
        assert!(!base.is_null(), "no memory for the zone");
        // SAFETY: the memory is ours, as long as `inner` lives.
        let inner = unsafe {
            buddy_alloc::buddy_alloc::BuddyAlloc::new(
                buddy_alloc::buddy_alloc::BuddyAllocParam::new(base, layout.size(), 4096),
            )
        };
        Self {
            inner,
            base,
            layout,
        }
    }
}

impl Drop for InPlace {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout; `inner` is not used any more.
        unsafe { std::alloc::dealloc(self.base, self.layout) };
    }
}

impl Zone for InPlace {
    fn alloc(&mut self, order: u8) -> Option<u32> {
        let p = self.inner.malloc(4096 << order);
        (!p.is_null()).then(|| ((p as usize - self.base as usize) >> 12) as u32)
    }

    fn free(&mut self, at: u32, _: u8) {
        self.inner.free(self.base.wrapping_add(at as usize * 4096));
    }
}

/// `bitmap-allocator`: a tree of bitmaps for 2^20 frames.
pub struct Bitmap(Box<BitAlloc1M>);

impl Bitmap {
    /// All frames free.
    pub fn new(frames: u32) -> Self {
        let mut inner = Box::new(BitAlloc1M::DEFAULT);
        inner.insert(0..frames as usize);
        Self(inner)
    }
}

impl Zone for Bitmap {
    fn alloc(&mut self, order: u8) -> Option<u32> {
        match order {
            0 => self.0.alloc(),
            o => self.0.alloc_contiguous(None, 1 << o, usize::from(o)),
        }
        .map(|at| at as u32)
    }

    fn free(&mut self, at: u32, order: u8) {
        match order {
            0 => self.0.dealloc(at as usize),
            o => self.0.dealloc_contiguous(at as usize, 1 << o),
        };
    }
}
