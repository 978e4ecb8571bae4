//! SRM-buffer's coloured zone under a kernel with paging: which frame a page gets.
//!
//! All decisions are `piebald_policy::srm`'s; this is its host. It keeps a sequence for
//! each file (by file, not by open file) and for each process, and a process's round
//! through the colours. A frame of the zone is free (granted by the allocator, without
//! user) or holds a page that the file side has taken out of its order of replacement.

use serde::{Deserialize, Serialize};
use std::collections::HashMap;

use piebald_policy::{
    color_map::ColorMap,
    contract::{FrameRequest, Mode},
    srm::{
        self, Answer, Config, Counters, FileFault, Holds, Limited, Link, List, Sequence, Sets,
        Slices, Srm, Supply, Taken, VmTurn,
    },
};
use piebald_units::{Color, ColorSet, CoreId, FileId, Order, Pfn};

use super::{
    super::{
        Kernel, KernelBroken, KernelError, boot::kernel_request, colors::prepared, mapping::Caller,
        validate::broken,
    },
    Ground,
};
use crate::file::{Came, Content, Place, Spared};

/// Frames that the zone gives back at a time when the kernel's reserve is short.
const GIVE_BACK: u32 = 32;

type Room = Srm<Slices<ColorMap, Vec<Link>, Vec<List>, Box<Sets>>>;

/// How the zone stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ZoneState {
    /// Frames in it.
    pub pages: u32,
    /// Free ones among them.
    pub free: u32,
    /// Frames in it just after the last refill.
    pub refilled: u32,
    /// Most that there were just after a refill.
    pub largest: u32,
    /// What SRM-buffer did.
    pub counters: Counters,
}

/// Where a process stands.
#[derive(Clone, Copy, Default)]
struct Standing {
    small_files: Sequence,
    turn: VmTurn,
}

/// The zone and the records that its room leaves to the host.
#[derive(Clone)]
pub(in super::super) struct Zone {
    room: Room,
    files: HashMap<FileId, Sequence>,
    /// By number of the process.
    processes: Vec<Standing>,
    /// The frame that is kept as soon as its page has left.
    leaving: Option<u32>,
    /// A refill is under way.
    refilling: bool,
    refilled: u32,
    largest: u32,
}

impl Zone {
    fn new(map: ColorMap, frames: u64, config: Config) -> Result<Self, srm::ConfigError> {
        let store = Slices::collect(map, frames);
        Ok(Self {
            room: Srm::new(store, frames, Pfn(0), config)?,
            files: HashMap::new(),
            processes: Vec::new(),
            leaving: None,
            refilling: false,
            refilled: 0,
            largest: 0,
        })
    }

    pub(super) fn free(&self) -> u32 {
        self.room.free_pages()
    }

    pub(super) fn wants_pages(&self) -> bool {
        self.room.wants_pages()
    }

    pub(super) fn state(&self) -> ZoneState {
        ZoneState {
            pages: self.room.pages(),
            free: self.room.free_pages(),
            refilled: self.refilled,
            largest: self.largest,
            counters: self.room.counters(),
        }
    }

    fn of(&mut self, process: usize) -> &mut Standing {
        if self.processes.len() <= process {
            self.processes.resize_with(process + 1, Standing::default);
        }
        &mut self.processes[process]
    }

    /// What the room says to a page that comes for a process.
    fn ask(&mut self, what: &Came, process: usize, limited: Limited<'_>) -> Answer {
        let mut standing = *self.of(process);
        let answer = match what.content {
            Content::Anon { .. } => self.room.vm_fault(&mut standing.turn, limited),
            Content::File { file, .. } => self.room.file_fault(FileFault {
                file: self.files.entry(file).or_insert(Sequence::NONE),
                process: &mut standing.small_files,
                file_blocks: what.file_pages,
                limited,
            }),
        };
        *self.of(process) = standing;
        answer
    }

    fn declined(&mut self, what: &Came, process: usize) {
        let Content::File { file, .. } = what.content else {
            return;
        };
        let mut standing = *self.of(process);
        self.room.declined(FileFault {
            file: self.files.entry(file).or_insert(Sequence::NONE),
            process: &mut standing.small_files,
            file_blocks: what.file_pages,
            limited: Limited::default(),
        });
        *self.of(process) = standing;
    }

    /// The frame leaves the zone because its page does. Is it kept for another?
    pub(super) fn left(&mut self, frame: u32) -> bool {
        self.room.remove(Pfn(frame.into()));
        let kept = self.leaving == Some(frame);
        if kept {
            self.leaving = None;
        }
        kept
    }

    pub(super) fn warmed(&mut self, frame: u32) {
        self.room.hit(Pfn(frame.into()));
    }

    pub(super) fn take_cold(&mut self, frame: u32) -> bool {
        self.room.add_cold(Pfn(frame.into())).is_ok()
    }

    /// A page has moved to another frame.
    pub(super) fn moved(&mut self, from: u32, to: u32) {
        if self.room.remove(Pfn(from.into())) == Some(Holds::Cold) {
            let added = self.room.add_cold(Pfn(to.into()));
            debug_assert_eq!(added, Ok(()), "a frame that was granted is in no zone");
        }
    }

    /// A refill, if there was one, is over.
    fn note_refill(&mut self) {
        if std::mem::take(&mut self.refilling) {
            self.refilled = self.room.pages();
            self.largest = self.largest.max(self.refilled);
        }
    }
}

impl Kernel {
    /// Puts SRM-buffer between the files' order of replacement and free memory: from
    /// now on pages that come get frames by sequence and colour. The colours are those
    /// of `map`; if the kernel has colours of its own, it must be the same.
    ///
    /// # Errors
    /// Memory is not paged, programs have started, the map is another than the
    /// kernel's, or the configuration does not fit the memory.
    pub fn color_files(&mut self, map: ColorMap, config: Config) -> Result<(), KernelError> {
        let bad = |field, value, allowed| {
            Err(KernelError::Config {
                field,
                value,
                allowed,
            })
        };
        if !self.tasks.is_empty() {
            let tasks = self.tasks.len() as u64;
            return bad("tasks", tasks, "0: a zone comes before programs do");
        }
        if self.colors.as_ref().is_some_and(|own| own.map != map) {
            let colors = u64::from(map.colors());
            return bad("colors of the zone", colors, "the kernel's own color map");
        }
        let frames = self.total_frames();
        let Some(pool) = &mut self.pool else {
            return bad("paging", 0, "1: a zone needs paging");
        };
        let zone = Zone::new(map, frames, config).map_err(KernelError::Zone)?;
        pool.zone = Some(Box::new(zone));
        Ok(())
    }

    /// How the zone stands; `None` without one.
    pub fn zone(&self) -> Option<ZoneState> {
        Some(self.pool.as_ref()?.zone.as_ref()?.state())
    }

    /// A child goes on with a copy of its parent's round through the colours.
    pub(in super::super) fn fork_turn(&mut self, parent: usize, child: usize) {
        if let Some(zone) = self.zone_mut() {
            let turn = zone.of(parent).turn;
            zone.of(child).turn = turn;
        }
    }

    /// A process is no more.
    pub(in super::super) fn end_sequence(&mut self, process: usize) {
        if let Some(zone) = self.zone_mut() {
            let mut ended = std::mem::take(zone.of(process));
            zone.room.end(&mut ended.small_files);
        }
    }

    /// A file is no more.
    pub(super) fn end_file(&mut self, file: FileId) {
        if let Some(zone) = self.zone_mut()
            && let Some(mut ended) = zone.files.remove(&file)
        {
            zone.room.end(&mut ended);
        }
    }

    pub(super) fn zone_mut(&mut self) -> Option<&mut Zone> {
        self.pool.as_mut()?.zone.as_deref_mut()
    }

    /// Frames that are neither a page's nor the kernel's though the allocator has granted
    /// them.
    pub(in super::super) fn idle_frames(&self) -> u64 {
        self.pool.as_ref().map_or(0, |pool| {
            let free = pool.zone.as_ref().map_or(0, |zone| zone.free());
            u64::from(free) + u64::from(pool.kept.is_some())
        })
    }

    /// A free frame for the zone, of this colour if the allocator knows colours: what
    /// partitions do not use would fill the zone otherwise, and leave it none for others.
    /// `None` if there is none above the reserve.
    fn zone_frame(&mut self, color: Color, core: CoreId) -> Option<Pfn> {
        let reserve = self.pool.as_ref().map_or(0, |pool| pool.reserve);
        if self.free_frames() <= reserve {
            return None;
        }
        let mut one = ColorSet::EMPTY;
        one.insert(color);
        let request = FrameRequest {
            core,
            allowed: self.colors.is_some().then_some(&one),
            mode: Mode::Hard,
            ..kernel_request(Order(0))
        };
        self.frames.alloc(&request).ok().map(|grant| grant.frame)
    }

    /// The zone's books, the pages in it, and that its free frames are nobody's.
    pub(super) fn check_zone(&self, cold: u32) -> Result<(), KernelBroken> {
        let Some(pool) = &self.pool else {
            return Ok(());
        };
        let Some(zone) = &pool.zone else {
            return match cold {
                0 => Ok(()),
                _ => Err(broken("pages of a zone", "no zone".into(), 0, cold.into())),
            };
        };
        zone.room.validate()?;
        let mut found = 0;
        for color in (0..zone.room.map().colors() as u16).map(Color) {
            for frame in zone.room.frames_of(color) {
                let page = pool.page_in(frame.0 as u32);
                let what = || format!("{frame}");
                if zone.room.holds(frame) == Some(Holds::Cold) {
                    found += 1;
                    if page.is_none() {
                        return Err(broken("a cold frame has a page", what(), 1, 0));
                    }
                } else if page.is_some() || self.meta.refs(frame.0 as u32) > 0 {
                    return Err(broken("a free frame has no page", what(), 0, 1));
                }
            }
        }
        match found == cold {
            true => Ok(()),
            false => Err(broken(
                "pages of the zone",
                "zone".into(),
                cold.into(),
                found.into(),
            )),
        }
    }
}

/// The zone's half of [`Memory`](crate::file::Memory).
impl Ground<'_> {
    /// Takes the zone out while the kernel is asked.
    fn with_zone<R>(&mut self, call: impl FnOnce(&mut Zone, &mut Self) -> R) -> Option<R> {
        let mut zone = self.kernel.pool_mut().zone.take()?;
        let result = call(&mut zone, self);
        self.kernel.pool_mut().zone = Some(zone);
        Some(result)
    }

    pub(super) fn place_in_zone(&mut self, what: &Came, supply: Supply) -> Place {
        let nowhere = Place::Nowhere { bound: false };
        self.with_zone(|zone, ground| {
            ground.hold_reserve(zone);
            loop {
                let answer = match ground.ask_zone(zone, what, supply) {
                    Ok(answer) => answer,
                    Err(error) => {
                        ground.kernel.pool_mut().trouble = Some(error);
                        return nowhere;
                    }
                };
                match answer {
                    (Answer::Frame(taken), _) => {
                        zone.note_refill();
                        return ground.taken(zone, taken);
                    }
                    (Answer::Refill, _) => {
                        zone.refilling = true;
                        if ground.fill(zone) == 0 {
                            return Place::Refill;
                        }
                    }
                    (Answer::Empty(_), bound) => return ground.place_outside(what, bound),
                }
            }
        })
        .unwrap_or(nowhere)
    }

    /// The answer, and whether only some colours will do.
    fn ask_zone(
        &self,
        zone: &mut Zone,
        what: &Came,
        supply: Supply,
    ) -> Result<(Answer, bool), KernelError> {
        let kernel = &*self.kernel;
        let process = kernel.process_of(what.task)?;
        let ask = self.ask(what).request();
        let (under, turns) = (kernel.under(process), kernel.turns_of(what.task));
        let request = prepared(kernel.colors.as_ref(), &ask, under, turns).map_err(|why| {
            KernelError::Colors {
                task: what.task,
                call: "a page",
                why,
            }
        })?;
        let limited = Limited {
            allowed: request.allowed,
            mode: request.mode,
            supply,
        };
        let bound = request.allowed.is_some() && request.mode == Mode::Hard;
        Ok((zone.ask(what, process, limited), bound))
    }

    /// A frame of free memory for a page that is bound; a zone may be full of others.
    pub(super) fn place_outside(&mut self, what: &Came, bound: bool) -> Place {
        let nowhere = Place::Nowhere { bound };
        let reserve = self.kernel.pool.as_ref().map_or(0, |pool| pool.reserve);
        if !bound || self.kernel.free_frames() <= reserve {
            return nowhere;
        }
        let Ok(process) = self.kernel.process_of(what.task) else {
            return nowhere;
        };
        let caller = Caller {
            task: what.task,
            core: self.core,
            process,
        };
        let ask = self.ask(what);
        match self.kernel.try_grant(caller, &ask) {
            Ok(Ok(grant)) => {
                self.kernel.pool_mut().kept = Some(grant.frame.0 as u32);
                Place::Kept
            }
            _ => nowhere,
        }
    }

    fn taken(&mut self, zone: &mut Zone, taken: Taken) -> Place {
        let frame = taken.frame.0 as u32;
        let page = self.kernel.pool.as_ref().and_then(|p| p.page_in(frame));
        match (taken.holds, page) {
            (Holds::Cold, Some(page)) => {
                zone.leaving = Some(frame);
                Place::Leaves(page)
            }
            _ => {
                self.kernel.pool_mut().kept = Some(frame);
                Place::Kept
            }
        }
    }

    /// Free frames for short colours; answers how many came.
    fn fill(&mut self, zone: &mut Zone) -> u32 {
        let (kernel, core) = (&mut *self.kernel, self.core);
        let filled = zone
            .room
            .fill(u32::MAX, |color| kernel.zone_frame(color, core));
        // A frame that the zone does not cover can only be one beyond its end.
        debug_assert!(filled.is_ok(), "{filled:?}");
        filled.unwrap_or(0)
    }

    /// Gives free frames back while the kernel's own reserve is short.
    fn hold_reserve(&mut self, zone: &mut Zone) {
        let reserve = self.kernel.pool.as_ref().map_or(0, |pool| pool.reserve);
        for _ in 0..GIVE_BACK {
            if self.kernel.free_frames() >= reserve || zone.free() == 0 {
                return;
            }
            if let Some(taken) = zone.room.take_any() {
                self.kernel.free_block(taken.frame, Order(0), self.core);
            }
        }
    }

    pub(super) fn declined_in_zone(&mut self, what: &Came) {
        let process = self.kernel.process_of(what.task);
        if let (Ok(process), Some(zone)) = (process, self.kernel.zone_mut()) {
            zone.leaving = None;
            zone.declined(what, process);
        }
    }

    pub(super) fn spare_in_zone(&mut self) -> Option<Spared> {
        let taken = self.kernel.zone_mut()?.room.take_any()?;
        let page = self.kernel.pool.as_ref()?.page_in(taken.frame.0 as u32);
        match page.filter(|_| taken.holds == Holds::Cold) {
            Some(page) => Some(Spared::Page(page)),
            None => {
                self.kernel.free_block(taken.frame, Order(0), self.core);
                Some(Spared::Frame)
            }
        }
    }
}
