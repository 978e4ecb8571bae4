//! The coloured buddy of the policy core, as this host runs it.
//!
//! The decisions are `piebald_policy::buddy`'s; here is what every host has to add:
//! memory for its tables, lists for each core and migrate type, and the order of
//! asking: the core's list, a refill of it, the buddy, and when nothing is left,
//! the lists of all cores given back and the buddy once more.
//!
//! A host that is a kernel trusts its frees. This one keeps a byte per frame to
//! refuse wrong ones at once, which frames on a core's list would else be found
//! out only when they go back.

use piebald_policy::{
    buddy::{Buddy, CoreLists, CoreSlices, Ends, List, MigrateType, Put, Sizes, Slices, Slot},
    color_map::ColorMap,
    contract::{
        AllocError, Broken, FrameAllocator, FrameCounters, FrameRequest, FreeError, Grant, Mode,
    },
};
use piebald_units::{Color, CoreId, Order, Pfn};

use super::{FramesError, check_frames};

/// Configuration of the coloured buddy.
#[derive(Clone, Debug)]
pub struct ColoredConfig {
    /// Memory in 4 KiB frames, at most 2^28.
    pub frames: u64,
    /// Cores that the machine has, 1 to 1024.
    pub cores: u16,
    /// What a colour is.
    pub map: ColorMap,
    /// Frames that each core's lists hold at most, for each migrate type, 1 to 65535.
    pub core_frames: u16,
    /// Frames that a refill brings, 1 to `core_frames`.
    pub batch: u16,
    /// A request for a page without a wish or colours of its own wishes for the
    /// colour of its virtual page: page colouring (Kessler and Hill, ACM TOCS
    /// 10(4), 1992, section 3.1).
    pub like_virtual: bool,
}

impl ColoredConfig {
    /// Lists of 512 frames per core, filled 64 at a time.
    pub const fn new(frames: u64, cores: u16, map: ColorMap) -> Self {
        Self {
            frames,
            cores,
            map,
            core_frames: 512,
            batch: 64,
            like_virtual: false,
        }
    }
}

type Lent = Slices<ColorMap, Vec<u8>, Vec<[u32; 2]>, Vec<u32>, Vec<List>, Vec<u64>>;
type Lists = CoreLists<CoreSlices<ColorMap, Vec<Slot>, Vec<Ends>>>;

/// Migrate types, in the order of a core's lists.
const KINDS: usize = MigrateType::ALL.len();

/// The coloured buddy with lists per core.
#[derive(Clone)]
pub struct Colored {
    buddy: Buddy<Lent>,
    /// For each core, one per migrate type.
    lists: Vec<Lists>,
    /// 0 = the frame begins no grant, else the grant's order plus 1.
    granted: Vec<u8>,
    like_virtual: bool,
    counters: FrameCounters,
}

impl Colored {
    /// All memory free.
    ///
    /// # Errors
    /// Names the field that is out of range.
    pub fn new(config: &ColoredConfig) -> Result<Self, FramesError> {
        check_frames(config.frames)?;
        let bad = |field, value, allowed| FramesError {
            field,
            value,
            allowed,
        };
        if !(1..=1024).contains(&config.cores) {
            return Err(bad("cores", u64::from(config.cores), "1 to 1024"));
        }
        if !(1..=config.core_frames).contains(&config.batch) {
            return Err(bad("batch", u64::from(config.batch), "1 to core_frames"));
        }
        let too_many = |_| bad("frames", config.frames, "1 to 268435456 (4 KiB each)");
        let sizes = Sizes::of(&config.map, config.frames).map_err(too_many)?;
        let lent = Slices {
            map: config.map.clone(),
            states: vec![0; sizes.frames],
            links: vec![[0; 2]; sizes.frames],
            pageblocks: vec![0; sizes.pageblocks],
            lists: vec![List::EMPTY; sizes.lists],
            words: vec![0; sizes.words],
        };
        let mut buddy = Buddy::new(lent, config.frames, Pfn(0)).map_err(too_many)?;
        buddy
            .add_range(Pfn(0)..Pfn(config.frames))
            .map_err(|_| bad("frames", config.frames, "1 to 268435456 (4 KiB each)"))?;
        let list = |kind| {
            let memory = CoreSlices {
                map: config.map.clone(),
                slots: vec![Slot::EMPTY; usize::from(config.core_frames)],
                ends: vec![Ends::EMPTY; config.map.colors() as usize],
            };
            CoreLists::new(memory, Pfn(0), kind, u32::from(config.batch))
                .map_err(|_| bad("core_frames", u64::from(config.core_frames), "1 to 65534"))
        };
        let mut lists = Vec::new();
        for _ in 0..config.cores {
            for kind in MigrateType::ALL {
                lists.push(list(kind)?);
            }
        }
        Ok(Self {
            buddy,
            lists,
            granted: vec![0; config.frames as usize],
            like_virtual: config.like_virtual,
            counters: FrameCounters::default(),
        })
    }

    /// What a colour is.
    pub fn map(&self) -> &ColorMap {
        self.buddy.map()
    }

    /// The lists of a core for frames of a purpose.
    fn lists_of(&mut self, core: CoreId, kind: MigrateType) -> usize {
        let core = usize::from(core.0) % (self.lists.len() / KINDS);
        let kind = MigrateType::ALL.iter().position(|k| *k == kind);
        core * KINDS + kind.unwrap_or(0)
    }

    fn find(&mut self, r: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        if r.order != Order(0) {
            return self.buddy.alloc(r);
        }
        let at = self.lists_of(r.core, MigrateType::of(r.purpose));
        self.lists[at].alloc(&mut self.buddy, r)
    }

    /// Gives the frames of all cores' lists back; false if there were none.
    fn drain(&mut self) -> bool {
        let given: u32 = self
            .lists
            .iter_mut()
            .map(|lists| lists.give_back(&mut self.buddy, u32::MAX))
            .sum();
        given > 0
    }

    /// The colour of the page that will be mapped, for page colouring.
    fn virtual_color(&self, r: &FrameRequest<'_>) -> Option<Color> {
        let page = r
            .page
            .filter(|_| self.like_virtual && r.allowed.is_none())?;
        Some(self.buddy.map().color(Pfn(page.0)))
    }

    /// Why a frame is not what the caller says.
    fn wrong(&self, frame: Pfn) -> FreeError {
        let inside = |order: u8| {
            let head = frame.0 >> order << order;
            self.granted[head as usize] > order
        };
        match (frame.0 as usize) < self.granted.len() {
            false => FreeError::Foreign,
            true if (0..=Order::MAX.0).any(inside) => FreeError::OrderMismatch,
            true => FreeError::DoubleFree,
        }
    }
}

impl FrameAllocator for Colored {
    fn alloc(&mut self, request: &FrameRequest<'_>) -> Result<Grant, AllocError> {
        let wish = request.wish.or_else(|| self.virtual_color(request));
        let request = &FrameRequest { wish, ..*request };
        let mut found = self.find(request);
        let short = matches!(
            found,
            Err(AllocError::OutOfMemory | AllocError::ColorsExhausted)
        );
        if short && self.drain() {
            found = self.find(request);
        }
        match found {
            Ok(grant) => {
                self.granted[grant.frame.0 as usize] = grant.order.0 + 1;
                self.counters.grants += 1;
                let outside = request.mode == Mode::Hint && grant.fallback;
                self.counters.fallbacks += u64::from(outside);
            }
            Err(_) => self.counters.failures += 1,
        }
        found
    }

    fn free(&mut self, frame: Pfn, order: Order, core: CoreId) -> Result<(), FreeError> {
        let held = self.granted.get(frame.0 as usize).copied();
        if held != Some(order.0.saturating_add(1)) {
            return Err(self.wrong(frame));
        }
        if order == Order(0) {
            let kind = self.buddy.pageblock_type(frame);
            let at = self.lists_of(core, kind);
            let lists = &mut self.lists[at];
            match lists.put(frame) {
                Put::Kept => {}
                Put::High => {
                    lists.give_back(&mut self.buddy, lists.held() / 2);
                }
                _ => self.buddy.free(frame, order)?,
            }
        } else {
            self.buddy.free(frame, order)?;
        }
        self.granted[frame.0 as usize] = 0;
        self.counters.frees += 1;
        Ok(())
    }

    fn free_frames(&self) -> u64 {
        let held: u64 = self.lists.iter().map(|l| u64::from(l.held())).sum();
        self.buddy.free_frames() + held
    }

    fn total_frames(&self) -> u64 {
        self.buddy.total_frames()
    }

    fn counters(&self) -> FrameCounters {
        self.counters
    }

    fn validate(&self) -> Result<(), Broken> {
        Buddy::validate(&self.buddy)?;
        let granted: u64 = self
            .granted
            .iter()
            .filter(|g| **g > 0)
            .map(|g| 1u64 << (g - 1))
            .sum();
        if granted + self.free_frames() != self.total_frames() {
            return Err(Broken {
                rule: "frames granted and free add up to all frames",
                frame: Pfn(0),
            });
        }
        let refused = self.lists.iter().any(|l| l.counters().refused > 0);
        if refused {
            return Err(Broken {
                rule: "what a core's lists give back is what they were given",
                frame: Pfn(0),
            });
        }
        Ok(())
    }
}
