//! A host: a free memory, a page cache under any replacement policy, and programs that
//! hold memory. It does what the room's documentation tells hosts to do.

use std::collections::{BTreeMap, BTreeSet};

use piebald_policy::{
    color_map::ColorMap,
    contract::{
        Mode,
        replacement::{Gone, Insert, PageRef, Replacement, State, Touch},
    },
    srm::{Answer, FileFault, Holds, Limited, Sequence, Supply, Taken, VmTurn},
};
use piebald_units::{Color, ColorSet, Pfn, Picos};

use super::VecSrm;

const NOW: Picos = Picos(0);

/// A page of the cache.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    pub name: u64,
    pub frame: Pfn,
    /// May not leave now: dirty, locked, pinned.
    pub is_held: bool,
    /// Used through a mapping since it was looked at last.
    pub young: bool,
}

/// Who asks for a block.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    pub file: usize,
    pub process: usize,
    pub file_blocks: u64,
    pub allowed: Option<&'a ColorSet>,
    pub mode: Mode,
}

/// A block of a large file, or of a small one, that anybody may put anywhere.
pub fn reader(file: usize, process: usize, file_blocks: u64) -> Reader<'static> {
    Reader {
        file,
        process,
        file_blocks,
        allowed: None,
        mode: Mode::Hint,
    }
}

pub struct Host<R> {
    pub srm: VecSrm,
    pub order: R,
    map: ColorMap,
    free: BTreeMap<u16, Vec<Pfn>>,
    pub names: BTreeMap<u64, PageRef>,
    pub pages: Vec<Option<Page>>,
    numbers: Vec<PageRef>,
    owner: BTreeMap<u64, PageRef>,
    /// Frames that programs and the kernel hold.
    pub held: Vec<Pfn>,
    pub files: Vec<Sequence>,
    pub processes: Vec<Sequence>,
    pub turns: Vec<VmTurn>,
    frames: u64,
    batch: Vec<PageRef>,
    /// Pages evicted, in order.
    pub evicted: Vec<u64>,
    /// Verdicts that the last fault took.
    pub rounds: u64,
    pub most_rounds: u64,
    pub hits: u64,
    pub misses: u64,
}

impl<R: Replacement> Host<R> {
    pub fn new(srm: VecSrm, order: R, frames: u64, batch: usize) -> Self {
        let map = srm.map().clone();
        let mut free: BTreeMap<u16, Vec<Pfn>> = BTreeMap::new();
        for frame in (0..frames).rev().map(Pfn) {
            free.entry(map.color(frame).0).or_default().push(frame);
        }
        let slots = order.slots();
        Self {
            srm,
            order,
            map,
            free,
            names: BTreeMap::new(),
            pages: vec![None; slots as usize],
            numbers: (0..slots).rev().map(PageRef).collect(),
            owner: BTreeMap::new(),
            held: Vec::new(),
            files: vec![Sequence::NONE; 16],
            processes: vec![Sequence::NONE; 16],
            turns: vec![VmTurn::default(); 16],
            frames,
            batch: vec![PageRef(0); batch],
            evicted: Vec::new(),
            rounds: 0,
            most_rounds: 0,
            hits: 0,
            misses: 0,
        }
    }

    pub fn give_back(&mut self, frame: Pfn) {
        let color = self.map.color(frame).0;
        self.free.entry(color).or_default().push(frame);
    }

    /// The frame that was taken last becomes free.
    pub fn give_back_last(&mut self) {
        let frame = self.held.pop().unwrap();
        self.give_back(frame);
    }

    /// Keeps so many free frames of each colour; the others are the kernel's.
    pub fn keep_free(&mut self, keep: impl Fn(u16) -> usize) {
        for (color, frames) in &mut self.free {
            let keep = keep(*color).min(frames.len());
            self.held.extend(frames.drain(keep..));
        }
    }

    pub fn map_of_frame(&self, frame: Pfn) -> Color {
        self.map.color(frame)
    }

    pub fn free_frames(&self) -> usize {
        self.free.values().map(Vec::len).sum()
    }

    fn page(&mut self, page: PageRef) -> &mut Page {
        self.pages[page.index()].as_mut().unwrap()
    }

    pub fn find(&self, name: u64) -> Option<Page> {
        let page = self.names.get(&name)?;
        let resident = matches!(self.order.state(*page), State::Resident | State::Detached);
        self.pages[page.index()].filter(|_| resident)
    }

    fn drain(&mut self) {
        while let Some(page) = self.order.dropped() {
            if let Some(old) = self.pages[page.index()].take()
                && self.names.get(&old.name) == Some(&page)
            {
                self.names.remove(&old.name);
            }
            self.numbers.push(page);
        }
    }

    /// The refill of the room's documentation; returns how many pages came.
    pub fn refill(&mut self) -> u32 {
        let free = &mut self.free;
        let give = |color: Color| free.get_mut(&color.0)?.pop();
        let mut came = self.srm.fill(u32::MAX, give).unwrap();
        loop {
            match self.pull() {
                0 => return came,
                pages => came += pages,
            }
        }
    }

    /// One look at the cold end of the order.
    fn pull(&mut self) -> u32 {
        let pages = &self.pages;
        let may_go = |page: PageRef| {
            let page = pages[page.index()].unwrap();
            (!page.is_held).then_some(page.frame)
        };
        let pulled = self.srm.pull(&mut self.order, &mut self.batch, may_go);
        pulled.pages
    }

    fn leave(&mut self, page: PageRef, why: Gone) -> Pfn {
        let Page { name, frame, .. } = *self.page(page);
        self.owner.remove(&frame.0);
        if why == Gone::Evicted {
            self.evicted.push(name);
        }
        self.order.forget(page, why);
        self.drain();
        frame
    }

    /// Evicts what a taken frame holds; false if the page was used meanwhile.
    fn vacate(&mut self, taken: Taken) -> bool {
        if taken.holds == Holds::Free {
            return true;
        }
        let page = self.owner[&taken.frame.0];
        if std::mem::take(&mut self.page(page).young) {
            self.order.reattach(page);
            return false;
        }
        self.leave(page, Gone::Evicted);
        true
    }

    /// Carries out what the room says until there is a frame. `None`: no memory.
    fn frame(
        &mut self,
        allowed: Option<&ColorSet>,
        mode: Mode,
        mut ask: impl FnMut(&mut Self, Limited<'_>) -> Answer,
        mut declined: impl FnMut(&mut Self),
    ) -> Option<Pfn> {
        let mut supply = Supply::More;
        self.rounds = 0;
        loop {
            self.rounds += 1;
            self.most_rounds = self.most_rounds.max(self.rounds);
            assert!(self.rounds <= 3 * self.frames + 9, "the fault does not end");
            let limited = Limited {
                allowed,
                mode,
                supply,
            };
            match ask(self, limited) {
                Answer::Frame(taken) if self.vacate(taken) => return Some(taken.frame),
                Answer::Frame(_) => declined(self),
                Answer::Refill if self.refill() == 0 => supply = Supply::Spent,
                Answer::Refill => {}
                Answer::Empty(_) if allowed.is_none() || mode == Mode::Hint => return None,
                Answer::Empty(_) => {
                    if !self.exchange() {
                        return None;
                    }
                }
            }
        }
    }

    /// A requester that is bound to colours of which the zone has none: a frame leaves
    /// the zone for free memory, and another page comes.
    fn exchange(&mut self) -> bool {
        let before = self.evicted.len() + self.srm.free_pages() as usize;
        if let Some(taken) = self.srm.take_any()
            && self.vacate(taken)
        {
            self.give_back(taken.frame);
        }
        self.pull() > 0 || self.evicted.len() + (self.srm.free_pages() as usize) != before
    }

    /// Reads a block; false if there is no memory for it.
    pub fn read(&mut self, name: u64, reader: Reader<'_>) -> bool {
        if let Some(page) = self.find(name) {
            self.hits += 1;
            let number = self.names[&name];
            let touch = Touch::default();
            self.srm
                .used(&mut self.order, number, page.frame, touch, NOW);
            return true;
        }
        self.misses += 1;
        let insert = Insert::default();
        let ask = |host: &mut Self, limited: Limited<'_>| {
            let (srm, fault) = host.file_fault(reader, limited);
            srm.file_fault(fault)
        };
        let declined = |host: &mut Self| {
            let (srm, fault) = host.file_fault(reader, Limited::default());
            srm.declined(fault);
        };
        let Some(frame) = self.frame(reader.allowed, reader.mode, ask, declined) else {
            return false;
        };
        self.come(name, frame, &insert);
        true
    }

    fn file_fault<'a>(
        &'a mut self,
        reader: Reader<'_>,
        limited: Limited<'a>,
    ) -> (&'a mut VecSrm, FileFault<'a>) {
        let fault = FileFault {
            file: &mut self.files[reader.file],
            process: &mut self.processes[reader.process],
            file_blocks: reader.file_blocks,
            limited,
        };
        (&mut self.srm, fault)
    }

    fn come(&mut self, name: u64, frame: Pfn, insert: &Insert) {
        let ghost = self.names.get(&name).copied();
        self.order.miss(ghost, insert, NOW);
        self.drain();
        let ghost = self.names.get(&name).copied();
        let number = ghost.unwrap_or_else(|| self.numbers.pop().unwrap());
        self.names.insert(name, number);
        self.pages[number.index()] = Some(Page {
            name,
            frame,
            is_held: false,
            young: false,
        });
        self.owner.insert(frame.0, number);
        self.order.insert(number, insert, NOW);
        self.drain();
    }

    /// A page that lies in a frame from the start.
    pub fn preload(&mut self, name: u64, color: u16) {
        let frame = self.free.get_mut(&color).unwrap().pop().unwrap();
        self.come(name, frame, &Insert::default());
    }

    /// A program touches new memory; `None` if there is no memory for it.
    pub fn fault(&mut self, process: usize) -> Option<Color> {
        let ask = |host: &mut Self, limited: Limited<'_>| {
            host.srm.vm_fault(&mut host.turns[process], limited)
        };
        let frame = self.frame(None, Mode::Hint, ask, |_| {})?;
        self.held.push(frame);
        Some(self.map.color(frame))
    }

    /// The kernel needs frames of any colour: free memory, then the zone, then the
    /// order's own victims.
    pub fn kernel_frame(&mut self) -> Option<Pfn> {
        if let Some(frame) = self.free.values_mut().find_map(Vec::pop) {
            return Some(frame);
        }
        while let Some(taken) = self.srm.take_any() {
            if self.vacate(taken) {
                return Some(taken.frame);
            }
        }
        let found = self.order.propose(&mut self.batch);
        let first = self.batch[..found].iter().copied();
        let page = first
            .into_iter()
            .find(|p| !self.pages[p.index()].unwrap().is_held)?;
        Some(self.leave(page, Gone::Evicted))
    }

    /// A page is deleted, wherever its frame is.
    pub fn delete(&mut self, name: u64) {
        if let Some(page) = self.find(name) {
            self.srm.remove(page.frame);
            let number = self.names[&name];
            self.leave(number, Gone::Deleted);
            self.give_back(page.frame);
        }
    }

    /// Written to, locked, pinned; or no longer. A page that may not leave is none of
    /// the zone's.
    pub fn hold(&mut self, name: u64, is_held: bool) {
        let Some(page) = self.find(name) else { return };
        let number = self.names[&name];
        self.page(number).is_held = is_held;
        if is_held && self.srm.hit(page.frame) {
            self.order.reattach(number);
        }
    }

    /// Used through a mapping: nobody is told.
    pub fn touch_mapping(&mut self, name: u64) {
        if self.find(name).is_some() {
            let number = self.names[&name];
            self.page(number).young = true;
        }
    }

    /// Every frame is in one place, and both sides say the same of each page.
    pub fn check(&self) {
        self.srm.validate().unwrap();
        self.order.validate().unwrap();
        let mut seen = BTreeSet::new();
        let mut once = |frame: Pfn| assert!(seen.insert(frame.0), "{frame} is in two places");
        self.free.values().flatten().copied().for_each(&mut once);
        self.held.iter().copied().for_each(&mut once);
        let mut cold = 0;
        for page in self.names.values() {
            let state = self.order.state(*page);
            if matches!(state, State::Ghost | State::Unknown) {
                continue;
            }
            let frame = self.pages[page.index()].unwrap().frame;
            once(frame);
            let is_cold = self.srm.holds(frame) == Some(Holds::Cold);
            assert_eq!(is_cold, state == State::Detached, "{frame}");
            cold += u32::from(is_cold);
        }
        assert_eq!(cold + self.srm.free_pages(), self.srm.pages());
        for color in (0..self.map.colors() as u16).map(Color) {
            let free = |f: &Pfn| self.srm.holds(*f) == Some(Holds::Free);
            self.srm.frames_of(color).filter(free).for_each(&mut once);
        }
        assert_eq!(seen.len() as u64, self.frames, "frames were lost");
    }
}
