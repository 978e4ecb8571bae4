//! Page faults.

use piebald_policy::contract::{Asker, Cause, Purpose};
use piebald_units::{CoreId, Order, PageSize, Pfn, TaskId, Vpn};

use super::{Action, Actions, Fault, Kernel, KernelError, Path, Thp, grant::Ask, mapping::Caller};
use crate::space::{Area, Entry, HUGE_PAGES, Object, ObjectPage, VPN_MASK};

/// What a fault turned out to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FaultKind {
    /// The page was there: another thread had faulted it in.
    Spurious,
    /// A new page of zeroes.
    Anon,
    /// A load from untouched memory got the shared page of zeroes.
    ZeroPage,
    /// A page of a file or shared object that was in memory.
    Cached,
    /// A page of a file or shared object that was not; with a disk, this is
    /// where the task would wait.
    NotCached,
    /// A store to a page with other users: copied.
    CopyOnWrite,
    /// A store to a copy-on-write page whose other users are gone.
    Reuse,
    /// A page that was read back from swap space, or was still in memory when it was
    /// needed again.
    SwappedIn,
    /// A page that HVR wants elsewhere was touched: it moved, or stays because it cannot.
    Followed,
    /// Not resolved yet: the task waits, and faults again when it is woken. The frame
    /// means nothing.
    Blocked,
}

/// A resolved fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FaultWork {
    /// What it was.
    pub kind: FaultKind,
    /// The frame that the faulting 4 KiB page now has.
    pub frame: Pfn,
    /// Size of the page that was mapped.
    pub size: PageSize,
}

const BLOCKED: FaultWork = FaultWork {
    kind: FaultKind::Blocked,
    frame: Pfn(0),
    size: PageSize::Base,
};

/// Who faults where.
#[derive(Clone, Copy)]
pub(super) struct Site {
    pub task: TaskId,
    pub core: CoreId,
    pub process: usize,
    pub vpn: Vpn,
    pub write: bool,
}

impl Site {
    pub(super) const fn caller(&self) -> Caller {
        Caller {
            task: self.task,
            core: self.core,
            process: self.process,
        }
    }
}

impl Kernel {
    /// Resolves a fault of [`translate`](Kernel::translate) and appends what it
    /// costs: the handler, zeroing or copying, the stores to page table and
    /// `struct page`, and TLB shoot-downs. Afterwards the reference translates.
    ///
    /// # Errors
    /// No such task, or no memory; then nothing is mapped.
    pub fn fault(
        &mut self,
        task: TaskId,
        core: CoreId,
        fault: Fault,
        actions: &mut Actions,
    ) -> Result<FaultWork, KernelError> {
        let process = self.process_of(task)?;
        let again = self.was_blocked(task);
        if !again {
            self.charge(Path::Fault, core, Some(task), actions);
            self.counters.faults += 1;
        }
        let site = Site {
            task,
            core,
            process,
            vpn: Vpn(fault.addr.0 >> 12 & VPN_MASK),
            write: fault.kind.writes(),
        };
        self.resolve(site, actions)
    }

    pub(super) fn resolve(
        &mut self,
        s: Site,
        actions: &mut Actions,
    ) -> Result<FaultWork, KernelError> {
        let followed = self.follow(s, actions)?;
        let kind = match self.process(s.process).space.tables.lookup(s.vpn) {
            Some((e, _)) if followed && (!s.write || e.has(Entry::WRITE)) => FaultKind::Followed,
            _ if self.is_paged() => match self.resolve_paged(s, actions)? {
                Some(kind) => kind,
                None => return Ok(BLOCKED),
            },
            Some((e, _)) if !s.write || e.has(Entry::WRITE) => FaultKind::Spurious,
            Some((e, 1)) => self.cow_huge(s, e, actions)?,
            Some((e, _)) => self.cow(s, e, actions)?,
            None => self.missing(s, actions)?,
        };
        let space = &self.process(s.process).space;
        let (entry, level) = space.tables.lookup(s.vpn).expect("the fault was resolved");
        let frame = crate::space::frame_in(entry, level, s.vpn);
        self.process_mut(s.process).note_fault(s.vpn);
        self.charge_entry(s.process, s.vpn, frame, actions);
        Ok(FaultWork {
            kind,
            frame: Pfn(u64::from(frame)),
            size: if level == 1 {
                PageSize::Huge
            } else {
                PageSize::Base
            },
        })
    }

    /// The area of a page; one is made for a page outside all areas.
    pub(super) fn area(&mut self, s: Site) -> Area {
        let space = &mut self.process_mut(s.process).space;
        if let Some(area) = space.areas.find(s.vpn) {
            return *area;
        }
        let area = Area {
            first: s.vpn,
            end: Vpn(s.vpn.0 + 1),
            behind: None,
            shared: false,
            implicit: true,
        };
        space.areas.insert(area);
        self.counters.implicit_pages += 1;
        area
    }

    fn missing(&mut self, s: Site, actions: &mut Actions) -> Result<FaultKind, KernelError> {
        if self.swap_in(s, actions)? {
            return Ok(FaultKind::SwappedIn);
        }
        let area = self.area(s);
        match area.page_behind(s.vpn) {
            None if self.wants_huge(s, &area) && self.map_huge(s, actions)? => Ok(FaultKind::Anon),
            None if !s.write && self.config.zero_page => {
                let zero = self.boot.zero_frame;
                self.map(
                    s,
                    Entry::new(zero, Entry::ZERO | Entry::COW | Entry::ACCESSED),
                )?;
                self.counters.zero_faults += 1;
                Ok(FaultKind::ZeroPage)
            }
            None => {
                let frame = self.user_frame(s, Cause::Fault, actions)?;
                actions.push(zero(frame, 1));
                self.map_or_put(s, Entry::new(frame, private(s.write)))?;
                self.counters.anon_faults += 1;
                Ok(FaultKind::Anon)
            }
            Some(page) => self.map_object(s, &area, page, actions),
        }
    }

    /// Maps a page of a file or shared object, or a private copy of it.
    fn map_object(
        &mut self,
        s: Site,
        area: &Area,
        page: ObjectPage,
        actions: &mut Actions,
    ) -> Result<FaultKind, KernelError> {
        let (cached, new) = self.object_frame(s.task, s.core, page, actions)?;
        self.counters.file_faults += 1;
        if new && matches!(page.object, Object::File(_)) {
            actions.push(device_fill(cached));
        }
        if s.write && !area.shared {
            // What is copied may not be dropped to make room for the copy.
            self.meta.get(cached);
            let frame = self.user_frame(s, Cause::CopyOnWrite, actions);
            self.put_frame(cached, s.core);
            let frame = frame?;
            actions.push(copy(cached, frame));
            self.map_or_put(s, Entry::new(frame, private(true)))?;
            self.counters.cow_copies += 1;
            return Ok(FaultKind::CopyOnWrite);
        }
        let rights = if area.shared {
            Entry::WRITE
        } else {
            Entry::COW
        };
        let dirty = if s.write { Entry::DIRTY } else { 0 };
        let flags = Entry::CACHED | Entry::ACCESSED | rights | dirty;
        self.meta.get(cached);
        self.map_or_put(s, Entry::new(cached, flags))?;
        Ok(if new {
            FaultKind::NotCached
        } else {
            FaultKind::Cached
        })
    }

    /// The frame of an object's page, granted if it is not in memory; true if
    /// it was not. The caller fills a file's new frame.
    pub(super) fn object_frame(
        &mut self,
        task: TaskId,
        core: CoreId,
        page: ObjectPage,
        actions: &mut Actions,
    ) -> Result<(u32, bool), KernelError> {
        if let Some(frame) = self.objects.get(page) {
            return Ok((frame, false));
        }
        let (purpose, asker, cause) = match page.object {
            Object::File(f) => (Purpose::File, Asker::File(task, f), Cause::PageCache),
            Object::SharedAnon(_) => (Purpose::Anon, Asker::Task(task), Cause::Fault),
        };
        let ask = Ask {
            task,
            core,
            order: Order(0),
            purpose,
            asker,
            cause,
            page: None,
        };
        let grant = self.grant(&ask, actions)?;
        let frame = grant.frame.0 as u32;
        self.objects.insert(page, frame);
        match page.object {
            Object::File(_) => self.counters.file_fills += 1,
            Object::SharedAnon(_) => actions.push(zero(frame, 1)),
        }
        Ok((frame, true))
    }

    /// A store to a 4 KiB page that may not be stored to.
    fn cow(&mut self, s: Site, e: Entry, actions: &mut Actions) -> Result<FaultKind, KernelError> {
        let old = e.frame();
        let shared = e.flags() & (Entry::CACHED | Entry::ZERO) != 0;
        let kind = if !shared && self.meta.refs(old) == 1 {
            self.counters.cow_reuses += 1;
            self.replace(s, e.without(Entry::COW).with(private(true)), 1);
            FaultKind::Reuse
        } else {
            let from_zero = e.has(Entry::ZERO);
            if !from_zero {
                self.meta.get(old);
            }
            let frame = self.user_frame(s, Cause::CopyOnWrite, actions);
            if !from_zero {
                self.put_frame(old, s.core);
            }
            let frame = frame?;
            actions.push(if from_zero {
                zero(frame, 1)
            } else {
                copy(old, frame)
            });
            self.replace(s, Entry::new(frame, private(true)), 1);
            if from_zero {
                self.counters.anon_faults += 1;
                FaultKind::Anon
            } else {
                self.put_frame(old, s.core);
                self.counters.cow_copies += 1;
                FaultKind::CopyOnWrite
            }
        };
        self.shoot(s, actions);
        Ok(kind)
    }

    /// A store to a 2 MiB copy-on-write page: kept if this is its only user,
    /// else split, so that only the stored-to 4 KiB are copied (Linux since
    /// 5.8).
    fn cow_huge(
        &mut self,
        s: Site,
        e: Entry,
        actions: &mut Actions,
    ) -> Result<FaultKind, KernelError> {
        let first = e.frame();
        if (first..first + HUGE_PAGES as u32).all(|f| self.meta.refs(f) == 1) {
            self.counters.cow_reuses += 1;
            self.replace(s, e.without(Entry::COW).with(private(true)), HUGE_PAGES);
            self.shoot(s, actions);
            return Ok(FaultKind::Reuse);
        }
        self.split_huge(s.caller(), s.vpn)?;
        let space = &self.process(s.process).space;
        let e = space.entry(s.vpn).expect("a split page stays mapped");
        self.cow(s, e, actions)
    }

    /// Makes 512 small pages of the 2 MiB page at `vpn`.
    pub(super) fn split_huge(&mut self, c: Caller, vpn: Vpn) -> Result<(), KernelError> {
        let node = self.kernel_frame(self.who(c))?;
        let Caller { process, core, .. } = c;
        let space = &mut self.process_mut(process).space;
        let Some((_, 1)) = space.tables.lookup(vpn) else {
            self.free_block(node, Order(0), core);
            return Ok(());
        };
        space.tables.split_huge(vpn, node.0 as u32);
        space.resident.huge -= 1;
        self.counters.huge_splits += 1;
        Ok(())
    }

    fn wants_huge(&self, s: Site, area: &Area) -> bool {
        let p = self.process(s.process);
        let first = s.vpn.0 & !(HUGE_PAGES - 1);
        self.config.thp == Thp::Always
            && !area.implicit
            && self.may_span_colors(p)
            && first >= area.first.0
            && first + HUGE_PAGES <= area.end.0
            && p.space.tables.huge_slot_free(s.vpn)
            && p.space
                .swapped
                .range(Vpn(first)..Vpn(first + HUGE_PAGES))
                .next()
                .is_none()
    }

    /// Maps a 2 MiB page if a block is free; false if not.
    fn map_huge(&mut self, s: Site, actions: &mut Actions) -> Result<bool, KernelError> {
        let ask = Ask {
            order: PageSize::Huge.order(),
            ..self.ask(s, Cause::Fault)
        };
        let Ok(grant) = self.grant(&ask, actions) else {
            self.counters.huge_fallbacks += 1;
            return Ok(false);
        };
        let frame = grant.frame.0 as u32;
        let base = Site {
            vpn: Vpn(s.vpn.0 & !(HUGE_PAGES - 1)),
            ..s
        };
        let entry = Entry::new(frame, private(s.write) | Entry::HUGE);
        if let Err(e) = self.map(base, entry) {
            for f in frame..frame + HUGE_PAGES as u32 {
                self.put_frame(f, s.core);
            }
            return Err(e);
        }
        actions.push(zero(frame, HUGE_PAGES as u16));
        self.counters.anon_faults += 1;
        self.counters.huge_faults += 1;
        Ok(true)
    }

    fn ask(&self, s: Site, cause: Cause) -> Ask {
        Ask {
            task: s.task,
            core: s.core,
            order: Order(0),
            purpose: Purpose::Anon,
            asker: Asker::Task(s.task),
            cause,
            page: Some(s.vpn),
        }
    }

    /// A frame for a private page, with one user.
    pub(super) fn user_frame(
        &mut self,
        s: Site,
        cause: Cause,
        actions: &mut Actions,
    ) -> Result<u32, KernelError> {
        let ask = self.ask(s, cause);
        Ok(self.grant(&ask, actions)?.frame.0 as u32)
    }

    /// Maps a page whose frame has a user counted for it already.
    pub(super) fn map(&mut self, s: Site, entry: Entry) -> Result<(), KernelError> {
        let level = u8::from(entry.has(Entry::HUGE));
        let missing = self.process(s.process).space.tables.missing(s.vpn, level);
        let who = self.who(s.caller());
        let mut nodes = Vec::with_capacity(usize::from(missing));
        for _ in 0..missing {
            match self.kernel_frame(who) {
                Ok(frame) => nodes.push(frame.0 as u32),
                Err(e) => {
                    for f in nodes {
                        self.free_block(Pfn(u64::from(f)), Order(0), s.core);
                    }
                    return Err(e);
                }
            }
        }
        let space = &mut self.process_mut(s.process).space;
        let before = space.resident.total();
        space.tables.map(s.vpn, level, entry, &mut nodes);
        space
            .resident
            .add(entry, if level == 1 { HUGE_PAGES } else { 1 });
        self.count_pages(s.process, before);
        Ok(())
    }

    /// Maps a page, or gives its frame's user up.
    pub(super) fn map_or_put(&mut self, s: Site, entry: Entry) -> Result<(), KernelError> {
        self.map(s, entry)
            .inspect_err(|_| self.put_frame(entry.frame(), s.core))
    }

    /// Exchanges the entry of a mapped page.
    pub(super) fn replace(&mut self, s: Site, entry: Entry, pages: u64) {
        let space = &mut self.process_mut(s.process).space;
        let Some((old, _)) = space.tables.lookup(s.vpn) else {
            return;
        };
        let before = space.resident.total();
        space.resident.sub(old, pages);
        space.resident.add(entry, pages);
        space.tables.update(s.vpn, entry);
        space.epoch = space.epoch.wrapping_add(1);
        self.count_pages(s.process, before);
    }

    pub(super) fn shoot(&self, s: Site, actions: &mut Actions) {
        actions.push(Action::ShootDown {
            asid: piebald_units::Asid(s.process as u32 + 1),
            page: Some(s.vpn.base()),
        });
    }
}

/// Flags of a private page that its process may store to.
const fn private(write: bool) -> u64 {
    let dirty = if write { Entry::DIRTY } else { 0 };
    Entry::WRITE | Entry::ACCESSED | dirty
}

pub(super) const fn zero(frame: u32, frames: u16) -> Action {
    Action::Zero {
        frame: Pfn(frame as u64),
        frames,
    }
}

pub(super) const fn device_fill(frame: u32) -> Action {
    Action::DeviceFill {
        frame: Pfn(frame as u64),
    }
}

pub(super) const fn copy(from: u32, to: u32) -> Action {
    Action::Copy {
        from: Pfn(from as u64),
        to: Pfn(to as u64),
    }
}
