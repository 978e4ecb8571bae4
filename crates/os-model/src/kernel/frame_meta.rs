//! What the kernel knows about every frame: users and owner. 6 B per frame.

use std::collections::HashMap;

use piebald_units::{Order, Pfn};

/// The frame is part of a granted 2 MiB block.
const COMPOUND: u32 = 1 << 31;
const HUGE_FRAMES: u32 = 512;
const FILE: u16 = 1 << 15;

/// Largest program number, inclusive.
pub const MAX_PROGRAM: u16 = 32_000;

/// Who holds a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Nobody.
    Free,
    /// The kernel: text, tables, task data.
    Kernel,
    /// What ageing left behind: memory of programs that are not modelled.
    Other,
    /// A program's own memory.
    Program(u16),
    /// The page cache; the program that brought the page.
    File(u16),
}

impl Owner {
    const fn encode(self) -> u16 {
        match self {
            Self::Free => 0,
            Self::Kernel => 1,
            Self::Other => 2,
            Self::Program(p) => p + 3,
            Self::File(p) => (p + 3) | FILE,
        }
    }

    const fn decode(v: u16) -> Self {
        match v {
            0 => Self::Free,
            1 => Self::Kernel,
            2 => Self::Other,
            v if v & FILE != 0 => Self::File((v & !FILE) - 3),
            v => Self::Program(v - 3),
        }
    }
}

/// Users and owners of all frames.
#[derive(Clone)]
pub(crate) struct FrameMeta {
    refs: Vec<u32>,
    owner: Vec<u16>,
    /// Frames of a 2 MiB block that still have users, by its first frame.
    compound: HashMap<u32, u16>,
}

impl FrameMeta {
    pub(crate) fn new(frames: u64) -> Self {
        Self {
            refs: vec![0; frames as usize],
            owner: vec![0; frames as usize],
            compound: HashMap::new(),
        }
    }

    /// Frame numbers may lie beyond the number of frames when memory has holes.
    fn reach(&mut self, end: usize) {
        if end > self.refs.len() {
            self.refs.resize(end, 0);
            self.owner.resize(end, 0);
        }
    }

    pub(crate) fn set_owner(&mut self, frame: Pfn, order: Order, owner: Owner) {
        let first = frame.0 as usize;
        let n = 1usize << order.0;
        self.reach(first + n);
        self.owner[first..first + n].fill(owner.encode());
    }

    pub(crate) fn owner(&self, frame: Pfn) -> Owner {
        let v = usize::try_from(frame.0)
            .ok()
            .and_then(|i| self.owner.get(i));
        Owner::decode(v.copied().unwrap_or(0))
    }

    /// Records a granted user page with one user per frame.
    pub(crate) fn begin(&mut self, frame: u32, order: u8, owner: Owner) {
        self.set_owner(Pfn(u64::from(frame)), Order(order), owner);
        match order {
            0 => self.refs[frame as usize] = 1,
            _ => {
                let first = frame as usize;
                self.refs[first..first + HUGE_FRAMES as usize].fill(1 | COMPOUND);
                self.compound.insert(frame, HUGE_FRAMES as u16);
            }
        }
    }

    pub(crate) fn refs(&self, frame: u32) -> u32 {
        self.refs[frame as usize] & !COMPOUND
    }

    pub(crate) fn get(&mut self, frame: u32) {
        self.refs[frame as usize] += 1;
    }

    /// One user less. Returns the block that has no users left.
    #[must_use]
    pub(crate) fn put(&mut self, frame: u32) -> Option<(u32, Order)> {
        let r = &mut self.refs[frame as usize];
        *r -= 1;
        if *r & !COMPOUND != 0 {
            return None;
        }
        let compound = *r & COMPOUND != 0;
        *r = 0;
        self.owner[frame as usize] = Owner::Free.encode();
        if !compound {
            return Some((frame, Order(0)));
        }
        let head = frame & !(HUGE_FRAMES - 1);
        let live = self.compound.get_mut(&head)?;
        *live -= 1;
        if *live > 0 {
            return None;
        }
        self.compound.remove(&head);
        Some((head, Order(9)))
    }

    /// All frames with users: frame and number of users.
    pub(crate) fn used(&self) -> impl Iterator<Item = (u32, u32)> {
        let users = self.refs.iter().map(|r| r & !COMPOUND);
        (0u32..).zip(users).filter(|(_, r)| *r > 0)
    }

    /// Frames of 2 MiB blocks that lost their users but whose block lives on.
    pub(crate) fn stranded(&self) -> u64 {
        let live = self.compound.values();
        live.map(|n| u64::from(HUGE_FRAMES) - u64::from(*n)).sum()
    }
}
