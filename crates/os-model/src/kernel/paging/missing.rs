//! Page faults, when memory is paged.

use piebald_units::Vpn;

use super::{
    super::{
        Actions, FaultKind, Kernel, KernelError,
        fault::{Site, copy},
    },
    Held, SPACE,
};
use crate::{
    file::Request,
    space::{Area, Entry, Object, ObjectPage},
};

/// Flags of a page that its process may store to.
const STORED: u64 = Entry::WRITE | Entry::ACCESSED | Entry::DIRTY;

fn anon(id: u32, write: bool) -> Request {
    Request::Anon {
        space: SPACE,
        page: id.into(),
        write,
    }
}

impl Kernel {
    /// A page that has no entry.
    pub(super) fn missing_paged(
        &mut self,
        s: Site,
        actions: &mut Actions,
    ) -> Result<Option<FaultKind>, KernelError> {
        let area = self.area(s);
        if let Some(page) = area.page_behind(s.vpn) {
            return self.object_paged(s, &area, page, actions);
        }
        let known = self.process(s.process).space.swapped.get(&s.vpn).copied();
        let id = match known {
            Some(id) => id,
            None if !s.write && self.config.zero_page => {
                self.map_zero(s)?;
                return Ok(Some(FaultKind::ZeroPage));
            }
            None => {
                let id = self.new_id()?;
                self.process_mut(s.process).space.swapped.insert(s.vpn, id);
                id
            }
        };
        self.anon_paged(s, id, actions)
    }

    fn map_zero(&mut self, s: Site) -> Result<(), KernelError> {
        let zero = self.boot.zero_frame;
        let flags = Entry::ZERO | Entry::COW | Entry::ACCESSED;
        self.map(s, Entry::new(zero, flags))?;
        self.counters.zero_faults += 1;
        Ok(())
    }

    fn new_id(&mut self) -> Result<u32, KernelError> {
        self.swap.take().ok_or(KernelError::Config {
            field: "anonymous pages",
            value: u64::from(u32::MAX),
            allowed: "below 2^32 - 1",
        })
    }

    /// A page of the process's own that is not mapped: new, on disk, or in memory.
    fn anon_paged(
        &mut self,
        s: Site,
        id: u32,
        actions: &mut Actions,
    ) -> Result<Option<FaultKind>, KernelError> {
        let is_alone = self.swap.users()[id as usize] == 1;
        let write = s.write && is_alone;
        let held = match self.old_of(s, id) {
            Some(held) => held,
            None => match self.page(s.caller(), anon(id, write), actions)? {
                Some(held) => held,
                None => return Ok(None),
            },
        };
        if s.write && !is_alone {
            return self.copy_paged(s, held, actions);
        }
        let kind = match self.pool_mut().slot_in(held) {
            Some(slot) if !slot.is_read && !slot.was_mapped => FaultKind::Anon,
            _ => FaultKind::SwappedIn,
        };
        self.counters.anon_faults += u64::from(kind == FaultKind::Anon);
        if kind == FaultKind::SwappedIn {
            self.usage_mut(s.process).swap_ins += 1;
        }
        let flags = match write {
            true => STORED,
            false => Entry::ACCESSED | Entry::COW,
        };
        self.map_held(s, held, flags)?;
        Ok(Some(kind))
    }

    /// What the task began to copy before it waited.
    fn old_of(&mut self, s: Site, id: u32) -> Option<Held> {
        let pool = self.pool_mut();
        let held = pool.task(s.task).old?;
        let same =
            pool.page_in(held.frame) == Some(held.page) && pool.id_in(held.frame) == Some(id);
        same.then(|| pool.task(s.task).old.take()).flatten()
    }

    /// Maps a page that is held, and releases it.
    fn map_held(&mut self, s: Site, held: Held, flags: u64) -> Result<(), KernelError> {
        self.meta.get(held.frame);
        let mapped = self.map_or_put(s, Entry::new(held.frame, flags));
        if mapped.is_ok() {
            self.pool_mut().mapped(held.frame, s.process, s.vpn);
            self.process_mut(s.process).space.swapped.remove(&s.vpn);
        }
        self.release(held, s.core);
        mapped
    }

    /// A page of a file or a shared object, or a private copy of it.
    fn object_paged(
        &mut self,
        s: Site,
        area: &Area,
        page: ObjectPage,
        actions: &mut Actions,
    ) -> Result<Option<FaultKind>, KernelError> {
        // A private copy that was made before and is not mapped now.
        if let Some(id) = self.process(s.process).space.swapped.get(&s.vpn).copied() {
            return self.anon_paged(s, id, actions);
        }
        let write = s.write && area.shared;
        let request = self.object_request(page, write)?;
        let Some(held) = self.page(s.caller(), request, actions)? else {
            return Ok(None);
        };
        self.counters.file_faults += 1;
        if s.write && !area.shared {
            return self.copy_paged(s, held, actions);
        }
        let kind = match self.pool_mut().slot_in(held) {
            Some(slot) if slot.is_read && !slot.was_mapped => FaultKind::NotCached,
            _ => FaultKind::Cached,
        };
        let rights = match (area.shared, write) {
            (true, true) => STORED,
            (true, false) => Entry::ACCESSED,
            (false, _) => Entry::ACCESSED | Entry::COW,
        };
        self.map_held(s, held, Entry::CACHED | rights)?;
        Ok(Some(kind))
    }

    fn object_request(&mut self, page: ObjectPage, write: bool) -> Result<Request, KernelError> {
        if let Object::File(file) = page.object {
            self.ensure_file(file, page.index.saturating_add(1))?;
            let page = page.index;
            return Ok(Request::Mapped { file, page, write });
        }
        let id = match self.pool_mut().shared.get(&page) {
            Some(id) => *id,
            None => {
                let id = self.new_id()?;
                self.pool_mut().shared.insert(page, id);
                id
            }
        };
        Ok(anon(id, write))
    }

    /// A store to a page that is mapped without the right to store.
    pub(super) fn store_paged(
        &mut self,
        s: Site,
        e: Entry,
        actions: &mut Actions,
    ) -> Result<Option<FaultKind>, KernelError> {
        if e.has(Entry::ZERO) {
            self.unmap_page(s.process, s.vpn, s.core);
            self.flush(s.process, &[(s.vpn, e, 0)], actions);
            return self.missing_paged(s, actions);
        }
        let Some(request) = self.own_request(s, e)? else {
            let page = self.pool_mut().page_in(e.frame());
            let Some(held) = page.and_then(|page| self.hold(page)) else {
                return Ok(Some(FaultKind::Spurious));
            };
            return self.copy_paged(s, held, actions);
        };
        let Some(held) = self.page(s.caller(), request, actions)? else {
            return Ok(None);
        };
        // What was looked for may have left and come back.
        let now = self.process(s.process).space.tables.lookup(s.vpn);
        if now.is_none_or(|(entry, _)| entry.frame() != held.frame) {
            self.release(held, s.core);
            return self.resolve_paged(s, actions);
        }
        self.replace(s, e.without(Entry::COW).with(STORED), 1);
        self.release(held, s.core);
        self.shoot(s, actions);
        self.counters.cow_reuses += 1;
        Ok(Some(FaultKind::Reuse))
    }

    /// How to ask for a mapped page to store to it; `None` if it must be copied.
    fn own_request(&mut self, s: Site, e: Entry) -> Result<Option<Request>, KernelError> {
        if e.has(Entry::CACHED) {
            let area = self.area(s);
            return match area.page_behind(s.vpn).filter(|_| area.shared) {
                Some(page) => self.object_request(page, true).map(Some),
                None => Ok(None),
            };
        }
        let id = self.pool_mut().id_in(e.frame());
        let is_alone = |id: &u32| self.swap.users()[*id as usize] == 1;
        Ok(id.filter(is_alone).map(|id| anon(id, true)))
    }

    /// Copies a page, which is held, to a new one of the process's own.
    fn copy_paged(
        &mut self,
        s: Site,
        old: Held,
        actions: &mut Actions,
    ) -> Result<Option<FaultKind>, KernelError> {
        let id = match self.fresh_of(s.task) {
            Some(id) => id,
            None => self.new_id()?,
        };
        let mine = self.pool_mut().task(s.task);
        mine.fresh = Some(id);
        let before = mine.old.replace(old);
        if let Some(before) = before {
            self.release(before, s.core);
        }
        let Some(new) = self.page(s.caller(), anon(id, true), actions)? else {
            return Ok(None);
        };
        let mine = self.pool_mut().task(s.task);
        (mine.fresh, mine.old) = (None, None);
        actions.push(copy(old.frame, new.frame));
        self.leave_page(s.process, s.vpn, s, actions);
        self.map_held(s, new, STORED)?;
        self.release(old, s.core);
        self.counters.cow_copies += 1;
        Ok(Some(FaultKind::CopyOnWrite))
    }

    /// The process has a page of its own at `vpn` from now on, not what it had.
    fn leave_page(&mut self, process: usize, vpn: Vpn, s: Site, actions: &mut Actions) {
        if let Some((entry, _)) = self.process(process).space.tables.lookup(vpn) {
            self.unmap_page(process, vpn, s.core);
            self.flush(process, &[(vpn, entry, 0)], actions);
            self.put_mapping(process, vpn, entry, s.core, actions);
        } else if let Some(id) = self.process_mut(process).space.swapped.remove(&vpn) {
            self.put_id(id, s.core, actions);
        }
    }
}
