//! SRM-buffer's coloured zone beside the pool.
//!
//! While it is there, every frame for a process comes out of the zone: the colour of a file's
//! block is that of its sequence, that of memory the next one of the process. The zone is
//! filled with free frames of the pool, by colour, and with cold pages that the C side takes
//! from the kernel's lists. Processes with colours of their own get only these, and those
//! without get none that somebody owns; where the zone has no such frame, [`Host::take`] looks
//! further.

use core::slice;

use piebald_policy::{
    contract::{FrameRequest, Mode},
    srm::{
        self, Answer, Config, FileFault, Holds, How, Limited, Link, List, PartsMut, Sequence, Sets,
        Sizes, Srm, Standing, Store, Supply, Taken,
    },
};
use piebald_units::{Color, Pfn};

use super::{
    Fault, Host, REQUEST, Seat,
    places::{Key, Places},
};
use crate::lent::Lending;

/// Memory above which sequences are as long as the paper has them: 1 GiB in frames.
const LARGE: u64 = 1 << 18;
/// The zone has at most this part of the memory.
const PART: u64 = 4;

/// A request for a frame out of the zone.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Ask {
    /// The file, if it is known.
    pub file: Key,
    /// Its size in blocks, with this one.
    pub file_blocks: u64,
    /// The process.
    pub process: Key,
    /// 0: memory; 1: a block of a file.
    pub is_file: u32,
    /// 1: the zone cannot be refilled now.
    pub spent: u32,
}

/// A frame that left the zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Found {
    /// Its number.
    pub pfn: u64,
    /// Its colour.
    pub color: u32,
    /// 1: it has a page, which has to be evicted first.
    pub cold: u32,
    /// How it was found, in the order of [`How`].
    pub how: u32,
    /// 1: a sequence begins with it.
    pub begins: u32,
}

/// Why there is no frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// The zone is to be refilled first.
    Refill,
    /// It has none that the process may have, or there is no zone.
    Empty,
}

/// How a colour stands in the zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ZoneColor {
    /// Pages and free frames.
    pub pages: u32,
    /// Free frames among them.
    pub free: u32,
    /// 1: a sequence uses the list.
    pub marked: u32,
}

/// What the zone did; all of them only rise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct ZoneCounters {
    /// Free frames that came.
    pub filled: u64,
    /// Cold pages that came.
    pub pulled: u64,
    /// Free frames that were given.
    pub free: u64,
    /// Cold pages that were given up.
    pub cold: u64,
    /// Of both, those that nobody asked for by colour.
    pub any: u64,
    /// Sequences begun.
    pub sequences: u64,
    /// Of these, begun early since a list ran dry,
    pub cut: u64,
    /// begun in a list whose mark was idle,
    pub idle: u64,
    /// begun in a list that is short,
    pub short: u64,
    /// begun in a list that another sequence uses.
    pub shared: u64,
    /// Pages of memory in another colour than that of the turn.
    pub next: u64,
    /// Requests to refill.
    pub refills: u64,
    /// Requests without a frame.
    pub empty: u64,
    /// Frames that could not be used.
    pub declined: u64,
}

impl ZoneCounters {
    fn plus(&self, now: &srm::Counters) -> Self {
        Self {
            filled: self.filled.wrapping_add(now.filled),
            pulled: self.pulled.wrapping_add(now.pulled),
            free: self.free.wrapping_add(now.free),
            cold: self.cold.wrapping_add(now.cold),
            any: self.any.wrapping_add(now.any),
            sequences: self.sequences.wrapping_add(now.sequences),
            cut: self.cut.wrapping_add(now.cut),
            idle: self.idle.wrapping_add(now.idle),
            short: self.short.wrapping_add(now.short),
            shared: self.shared.wrapping_add(now.shared),
            next: self.next.wrapping_add(now.next),
            refills: self.refills.wrapping_add(now.refills),
            empty: self.empty.wrapping_add(now.empty),
            declined: self.declined.wrapping_add(now.declined),
        }
    }
}

/// Memory of the zone. The C side promises what [`Host::zone_begin`] says.
struct Lent {
    lending: *const Lending,
    links: *mut Link,
    frames: usize,
    lists: *mut List,
    colors: usize,
    sets: *mut Sets,
}

impl Store for Lent {
    fn parts(&self) -> srm::Parts<'_> {
        // SAFETY: the promise of `zone_begin`; the lifetimes are those of this borrow.
        unsafe {
            srm::Parts {
                map: &(*self.lending).map,
                links: slice::from_raw_parts(self.links, self.frames),
                lists: slice::from_raw_parts(self.lists, self.colors),
                sets: &*self.sets,
            }
        }
    }

    fn parts_mut(&mut self) -> PartsMut<'_> {
        // SAFETY: as above; the arrays are distinct, and the borrow is exclusive. The map is
        // only read as long as there is a zone.
        unsafe {
            PartsMut {
                map: &(*self.lending).map,
                links: slice::from_raw_parts_mut(self.links, self.frames),
                lists: slice::from_raw_parts_mut(self.lists, self.colors),
                sets: &mut *self.sets,
            }
        }
    }
}

/// The zone and who stands where in it.
pub(super) struct Zone {
    srm: Option<Srm<Lent>>,
    files: Places,
    processes: Places,
    /// Counts of the zones before this one.
    before: ZoneCounters,
    /// Free frames that came out of the pool, and that processes got, since the map was set.
    pub(super) from_pool: u64,
    pub(super) given: u64,
}

impl Zone {
    /// No zone.
    pub(super) const NONE: Self = Self {
        srm: None,
        files: Places::NONE,
        processes: Places::NONE,
        before: ZoneCounters {
            filled: 0,
            pulled: 0,
            free: 0,
            cold: 0,
            any: 0,
            sequences: 0,
            cut: 0,
            idle: 0,
            short: 0,
            shared: 0,
            next: 0,
            refills: 0,
            empty: 0,
            declined: 0,
        },
        from_pool: 0,
        given: 0,
    };

    /// Sequences that the zone began.
    fn sequences(&self) -> u64 {
        self.srm.as_ref().map_or(0, |srm| srm.counters().sequences)
    }

    fn answer(&mut self, ask: &Ask, limited: Limited<'_>) -> Answer {
        let Some(srm) = self.srm.as_mut() else {
            return Answer::Empty(None);
        };
        let Some((process, mut lost)) = self.processes.of(ask.process) else {
            return Answer::Empty(None);
        };
        srm.end(&mut lost);
        if ask.is_file == 0 {
            return srm.vm_fault(&mut process.turn, limited);
        }
        // A file that nobody can name counts as a small one.
        let mut nobody = Sequence::NONE;
        let (file, file_blocks) = match self.files.of(ask.file) {
            Some((file, mut lost)) => {
                srm.end(&mut lost);
                (&mut file.sequence, ask.file_blocks)
            }
            None => (&mut nobody, 0),
        };
        srm.file_fault(FileFault {
            file,
            process: &mut process.sequence,
            file_blocks,
            limited,
        })
    }
}

/// The number of a way of finding, as [`Found`] has it.
const fn number(how: How) -> u32 {
    match how {
        How::Meant => 0,
        How::Idle => 1,
        How::Short => 2,
        How::Shared => 3,
        How::Next => 4,
        How::Outside => 5,
        How::Any => 6,
    }
}

fn found(taken: &Taken, begins: bool) -> Found {
    Found {
        pfn: taken.frame.0,
        color: u32::from(taken.color.0),
        cold: u32::from(taken.holds == Holds::Cold),
        how: number(taken.how),
        begins: u32::from(begins),
    }
}

impl Host {
    /// T_l where nobody sets it, for so many frames of memory.
    pub const fn zone_default(frames: u64) -> u32 {
        match frames < LARGE {
            true => Config::SMALL.threshold,
            false => Config::PAPER.threshold,
        }
    }

    /// The thresholds for a zone on a machine with so many frames of memory.
    fn zone_config(&self, threshold: u32, memory: u64) -> Result<Config, Fault> {
        let most = memory.checked_div(PART).unwrap_or(0);
        let least = u64::from(threshold)
            .saturating_add(1)
            .saturating_mul(u64::from(self.colors()));
        if threshold == 0 || least > most {
            return Err(Fault::Threshold {
                threshold,
                allowed: most
                    .checked_div(u64::from(self.colors()))
                    .unwrap_or(0)
                    .saturating_sub(1),
            });
        }
        Ok(Config {
            threshold,
            max_pages: Some(least.saturating_mul(2).min(most) as u32),
            ..Config::PAPER
        })
    }

    /// Bytes of memory that a zone needs, aligned to 8; 0 without a map.
    pub fn zone_bytes(&self) -> usize {
        let Some(pool) = self.pools.first().filter(|_| self.colors() != 0) else {
            return 0;
        };
        let sizes = Sizes::of(self.map(), pool.frames());
        let lists = sizes.colors.saturating_mul(size_of::<List>());
        let links = sizes.frames.saturating_mul(size_of::<Link>());
        let tables = Places::BYTES.saturating_mul(2);
        let parts = [size_of::<Sets>(), lists, links, tables];
        parts.into_iter().fold(0, usize::saturating_add)
    }

    /// Makes an empty zone. The map stays until it ends.
    ///
    /// # Safety
    /// `at` has [`Host::zone_bytes`] zero bytes aligned to 8, which are this zone's until [`Host::zone_end`].
    ///
    /// # Errors
    /// If there is no map or a zone already, the threshold does not fit the machine, or that has
    /// more than one memory node.
    pub unsafe fn zone_begin(
        &mut self,
        at: *mut u8,
        threshold: u32,
        memory: u64,
    ) -> Result<(), Fault> {
        if self.colors() == 0 {
            return Err(Fault::NoMap);
        }
        if self.zone.srm.is_some() {
            return Err(Fault::Zone);
        }
        let [pool] = &*self.pools else {
            return Err(Fault::ZoneNodes(self.pools.len()));
        };
        let (lending, frames, first) = (pool.lending(), pool.frames(), pool.first());
        let config = self.zone_config(threshold, memory)?;
        // SAFETY: the caller's promise. Sets, lists, links and places are made of whole
        // numbers, for which zero bytes are valid; the sizes are those of `zone_bytes`.
        unsafe {
            let colors = self.colors() as usize;
            let lists = at.add(size_of::<Sets>());
            let links = lists.add(colors.wrapping_mul(size_of::<List>()));
            let files = links.add((frames as usize).wrapping_mul(size_of::<Link>()));
            let store = Lent {
                lending,
                links: links.cast(),
                frames: frames as usize,
                lists: lists.cast(),
                colors,
                sets: at.cast(),
            };
            let srm = Srm::new(store, frames, first, config).map_err(Fault::ZoneSizes)?;
            self.zone.srm = Some(srm);
            self.zone.files = Places::over(files);
            self.zone.processes = Places::over(files.add(Places::BYTES));
        }
        Ok(())
    }

    /// Ends the zone, which must be empty, and whose memory is the caller's again.
    ///
    /// # Errors
    /// If it has pages.
    pub fn zone_end(&mut self) -> Result<(), Fault> {
        if self.zone_pages() != 0 {
            return Err(Fault::Zone);
        }
        self.zone.before = self.zone_counters();
        self.zone.srm = None;
        self.zone.files = Places::NONE;
        self.zone.processes = Places::NONE;
        Ok(())
    }

    /// Changes T_l of the zone.
    ///
    /// # Errors
    /// If it does not fit the machine; nothing has changed. No error without a zone.
    pub fn zone_threshold(&mut self, threshold: u32, memory: u64) -> Result<(), Fault> {
        let config = match self.colors() {
            0 if threshold > 0 => return Ok(()),
            _ => self.zone_config(threshold, memory)?,
        };
        match self.zone.srm.as_mut() {
            Some(srm) => srm.reconfigure(config).map_err(Fault::ZoneSizes),
            None => Ok(()),
        }
    }

    /// A frame out of the zone; `None` is a process without colours.
    ///
    /// # Errors
    /// If the zone is to be refilled first, or has none that the process may have.
    pub fn zone_take(&mut self, seat: Option<&Seat>, ask: &Ask) -> Result<Found, Short> {
        let of = seat.and_then(|seat| seat.partition);
        // A set that was taken away leaves its processes without colours.
        let of = of.filter(|id| self.registry.get(*id).is_ok());
        let allowed = self.registry.allowed(&REQUEST, of);
        let limited = Limited {
            allowed: allowed.map_err(|_| Short::Empty)?.set(),
            mode: Mode::Hard,
            supply: match ask.spent {
                0 => Supply::More,
                _ => Supply::Spent,
            },
        };
        let before = self.zone.sequences();
        match self.zone.answer(ask, limited) {
            Answer::Frame(taken) => {
                if taken.holds == Holds::Free {
                    self.zone.given = self.zone.given.wrapping_add(1);
                }
                Ok(found(&taken, self.zone.sequences() != before))
            }
            Answer::Refill => Err(Short::Refill),
            Answer::Empty(_) => Err(Short::Empty),
        }
    }

    /// The frame that a request was given could not be used.
    pub fn zone_declined(&mut self, ask: &Ask) {
        let zone = &mut self.zone;
        let Some(srm) = zone.srm.as_mut() else {
            return;
        };
        let (mut nothing, mut nobody) = (Sequence::NONE, Sequence::NONE);
        if ask.is_file == 0 {
            return;
        }
        let process = zone.processes.find(ask.process);
        let (file, file_blocks) = match zone.files.find(ask.file) {
            Some(file) => (&mut file.sequence, ask.file_blocks),
            None => (&mut nobody, 0),
        };
        srm.declined(FileFault {
            file,
            process: process.map_or(&mut nothing, |place| &mut place.sequence),
            file_blocks,
            limited: Limited::default(),
        });
    }

    /// Moves up to `most` free frames of short colours from the pool into the zone. Answers how
    /// many.
    pub fn zone_fill(&mut self, most: u32) -> u32 {
        let Self { pools, zone, .. } = self;
        let (Some(srm), Some(pool)) = (zone.srm.as_mut(), pools.first_mut()) else {
            return 0;
        };
        let came = srm.fill(most, |color| {
            if pool.free_of(color) == 0 {
                return None;
            }
            let request = FrameRequest {
                wish: Some(color),
                ..REQUEST
            };
            Some(Pfn(pool.take(&request).ok()?.pfn))
        });
        // The zone covers what the pool covers, and a frame is in one of them.
        let came = came.unwrap_or(0);
        zone.from_pool = zone.from_pool.wrapping_add(u64::from(came));
        came
    }

    /// Is there a zone?
    pub const fn has_zone(&self) -> bool {
        self.zone.srm.is_some()
    }

    /// Does the zone want pages?
    pub fn zone_missing(&self) -> u32 {
        self.zone.srm.as_ref().map_or(0, Srm::missing_pages)
    }

    /// Does the zone want pages?
    pub fn zone_wants(&self) -> bool {
        self.zone.srm.as_ref().is_some_and(Srm::wants_pages)
    }

    /// A frame comes into the zone, free or with a cold page.
    ///
    /// # Errors
    /// If the zone does not cover it or has it, or there is none.
    pub fn zone_add(&mut self, frame: Pfn, cold: bool) -> Result<(), Fault> {
        let srm = self.zone.srm.as_mut().ok_or(Fault::Zone)?;
        let added = match cold {
            true => srm.add_cold(frame),
            false => srm.add_free(frame),
        };
        added.map_err(|_| Fault::Zone)
    }

    /// A frame that the zone can spare best, for the kernel.
    pub fn zone_spare(&mut self) -> Option<Found> {
        let taken = self.zone.srm.as_mut()?.take_any()?;
        Some(found(&taken, false))
    }

    /// A child begins its round through the colours where its parent stands.
    pub fn zone_fork(&mut self, parent: Key, child: Key) {
        let zone = &mut self.zone;
        let Some(turn) = zone.processes.find(parent).map(|place| place.turn) else {
            return;
        };
        if let (Some(srm), Some((place, mut lost))) = (zone.srm.as_mut(), zone.processes.of(child))
        {
            place.turn = turn;
            srm.end(&mut lost);
        }
    }

    /// A process ends.
    pub fn zone_exit(&mut self, process: Key) {
        let zone = &mut self.zone;
        let sequence = zone.processes.take(process);
        if let (Some(srm), Some(mut sequence)) = (zone.srm.as_mut(), sequence) {
            srm.end(&mut sequence);
        }
    }

    /// Pages and free frames in the zone.
    pub fn zone_pages(&self) -> u32 {
        self.zone.srm.as_ref().map_or(0, Srm::pages)
    }

    /// How a colour stands in the zone.
    pub fn zone_color(&self, color: Color) -> ZoneColor {
        let Some(srm) = self.zone.srm.as_ref() else {
            return ZoneColor::default();
        };
        let Standing {
            pages,
            free,
            marked,
        } = srm.standing(color);
        ZoneColor {
            pages,
            free,
            marked: u32::from(marked),
        }
    }

    /// What the zone did.
    pub fn zone_counters(&self) -> ZoneCounters {
        let now = self.zone.srm.as_ref().map(Srm::counters);
        self.zone.before.plus(&now.unwrap_or_default())
    }

    /// Recounts the zone.
    pub(super) fn zone_check(&self) -> Result<(), &'static str> {
        match self.zone.srm.as_ref() {
            Some(srm) => srm.validate().map_err(|broken| broken.rule),
            None => Ok(()),
        }
    }
}
