//! The kernel's frames and page tables, as the file side sees them.

use piebald_policy::{
    contract::{Asker, Cause, Purpose, replacement::PageRef},
    srm::Supply,
};
use piebald_units::{ColorSet, CoreId, Order, Pfn, TaskId};

use super::{
    super::{
        Action, Actions, Kernel,
        fault::{device_fill, zero},
        grant::Ask,
    },
    Slot,
};
use crate::{
    file::{Came, Content, Memory, Place, Spared},
    space::Entry,
};

/// A kernel while its file side is being called.
pub(super) struct Ground<'a> {
    pub kernel: &'a mut Kernel,
    pub actions: &'a mut Actions,
    /// Where the work is done.
    pub core: CoreId,
    /// Only pages in these colours may go: a bound page looks for a frame.
    pub only: Option<ColorSet>,
}

impl Ground<'_> {
    fn slot(&self, page: PageRef) -> Option<&Slot> {
        self.kernel.pool.as_ref()?.slot(page)
    }

    fn slot_mut(&mut self, page: PageRef) -> &mut Slot {
        &mut self.kernel.pool_mut().pages[page.index()]
    }

    pub(super) fn frame(&self, page: PageRef) -> Option<u32> {
        self.slot(page)?.frame
    }

    /// The request for the page's frame. Whoever places pages by colour reads file and
    /// page from here.
    pub(super) fn ask(&self, what: &Came) -> Ask {
        let (purpose, asker, cause) = match what.content {
            Content::File { file, .. } => (
                Purpose::File,
                Asker::File(what.task, file),
                Cause::PageCache,
            ),
            Content::Anon { .. } => (Purpose::Anon, Asker::Task(what.task), Cause::Fault),
        };
        Ask {
            task: what.task,
            core: self.core,
            order: Order(0),
            purpose,
            asker,
            cause,
            page: None,
        }
    }

    fn lies_in(&self, slot: &Slot, set: &ColorSet) -> bool {
        slot.frame
            .is_some_and(|frame| self.kernel.is_in(set, frame))
    }

    /// The last user of a frame has left, and another page gets it.
    fn keep(&mut self, frame: u32) {
        let is_idle = self.kernel.meta.put(frame).is_some();
        // Nobody holds a page that may go.
        debug_assert!(is_idle);
        if is_idle {
            self.kernel.pool_mut().kept = Some(frame);
        }
    }

    fn settle(&mut self, page: PageRef, frame: u32, what: &Came) {
        *self.slot_mut(page) = Slot {
            frame: Some(frame),
            content: Some(what.content),
            is_read: what.is_read,
            ..Slot::default()
        };
        let by_frame = &mut self.kernel.pool_mut().by_frame;
        if by_frame.len() <= frame as usize {
            by_frame.resize(frame as usize + 1, None);
        }
        by_frame[frame as usize] = Some(page);
    }
}

impl Memory for Ground<'_> {
    fn room(&self) -> i64 {
        let reserve = self.kernel.pool.as_ref().map_or(0, |pool| pool.reserve);
        let zone = self
            .kernel
            .pool
            .as_ref()
            .and_then(|pool| pool.zone.as_ref());
        let idle = zone.map_or(0, |zone| zone.free());
        self.kernel.free_frames() as i64 + i64::from(idle) - reserve as i64
    }

    fn is_selective(&self) -> bool {
        true
    }

    fn came(&mut self, page: PageRef, what: &Came) -> bool {
        let ask = self.ask(what);
        let kept = self.kernel.pool_mut().kept.take();
        let granted = match kept {
            Some(frame) => self.kernel.grant_kept(&ask, frame),
            None => self.kernel.grant(&ask, self.actions),
        };
        let frame = match granted {
            Ok(grant) => grant.frame.0 as u32,
            Err(error) => {
                self.kernel.pool_mut().trouble = Some(error);
                return false;
            }
        };
        self.settle(page, frame, what);
        match what.content {
            Content::File { .. } => self.kernel.counters.file_fills += 1,
            Content::Anon { page, .. } => {
                // What is copied over need not be cleared.
                let copied = self.kernel.fresh_of(what.task) == Some(page as u32);
                if !what.is_read && !copied {
                    self.actions.push(zero(frame, 1));
                }
                self.kernel.counters.swap_ins += u64::from(what.is_read);
            }
        }
        true
    }

    fn left(&mut self, page: PageRef) {
        self.unmap(page);
        let Some(frame) = self.frame(page) else {
            return;
        };
        *self.slot_mut(page) = Slot::default();
        self.kernel.pool_mut().by_frame[frame as usize] = None;
        let kept = self.kernel.zone_mut().is_some_and(|zone| zone.left(frame));
        match kept {
            true => self.keep(frame),
            false => self.kernel.put_frame(frame, self.core),
        }
    }

    fn may_go(&self, page: PageRef) -> bool {
        let Some(slot) = self.slot(page) else {
            return true;
        };
        // One reference may need both pages that a process faulted in last.
        let recent = |&(process, vpn): &(usize, _)| {
            let process = self.kernel.processes.get(process).and_then(Option::as_ref);
            process.is_some_and(|p| p.recent.contains(&vpn))
        };
        let fits = || self.only.as_ref().is_none_or(|set| self.lies_in(slot, set));
        slot.holds == 0 && !slot.maps.iter().any(recent) && fits()
    }

    fn young(&mut self, page: PageRef) -> bool {
        let maps = self.slot(page).map_or_else(Vec::new, |s| s.maps.clone());
        let mut young = false;
        for &(process, vpn) in &maps {
            let space = &mut self.kernel.process_mut(process).space;
            if let Some((entry, _)) = space.tables.lookup(vpn)
                && entry.has(Entry::ACCESSED)
            {
                space.tables.update(vpn, entry.without(Entry::ACCESSED));
                space.epoch = space.epoch.wrapping_add(1);
                young = true;
            }
        }
        let look = self.kernel.config.costs.per_scan_instrs;
        self.actions.instrs(look.saturating_mul(maps.len() as u32));
        young
    }

    fn unmap(&mut self, page: PageRef) {
        let slot = self.slot_mut(page);
        let (maps, content) = (std::mem::take(&mut slot.maps), slot.content);
        for (process, vpn) in maps {
            let space = &self.kernel.process(process).space;
            let Some((entry, _)) = space.tables.lookup(vpn) else {
                continue;
            };
            let frame = entry.frame();
            self.kernel.charge_entry(process, vpn, frame, self.actions);
            self.kernel.unmap_page(process, vpn, self.core);
            self.kernel
                .flush(process, &[(vpn, Entry::NONE, 0)], self.actions);
            if let Some(Content::Anon { page, .. }) = content
                && !entry.has(Entry::CACHED)
            {
                let swapped = &mut self.kernel.process_mut(process).space.swapped;
                swapped.insert(vpn, page as u32);
            }
            self.kernel.put_frame(frame, self.core);
        }
    }

    fn filled(&mut self, page: PageRef) {
        if let Some(frame) = self.frame(page) {
            self.actions.push(device_fill(frame));
        }
    }

    fn drained(&mut self, page: PageRef) {
        let Some(slot) = self.slot(page) else { return };
        let is_anon = matches!(slot.content, Some(Content::Anon { .. }));
        if let Some(frame) = slot.frame {
            self.actions.push(Action::DeviceDrain {
                frame: Pfn(frame.into()),
            });
        }
        self.kernel.counters.swap_outs += u64::from(is_anon);
    }

    fn got(&mut self, task: TaskId, page: PageRef) {
        let held = self.kernel.hold(page);
        let before = std::mem::replace(&mut self.kernel.pool_mut().task(task).got, held);
        if let Some(before) = before {
            self.kernel.release(before, self.core);
        }
    }

    fn has_zone(&self) -> bool {
        self.kernel
            .pool
            .as_ref()
            .is_some_and(|pool| pool.zone.is_some())
    }

    fn is_bound(&self, what: &Came) -> bool {
        let process = self.kernel.process_of(what.task);
        process.is_ok_and(|process| self.kernel.is_bound(process))
    }

    fn place(&mut self, what: &Came, supply: Supply) -> Place {
        self.unplace();
        match self.has_zone() {
            true => self.place_in_zone(what, supply),
            false => self.place_outside(what, true),
        }
    }

    fn declined(&mut self, what: &Came) {
        self.declined_in_zone(what);
    }

    fn unplace(&mut self) {
        if let Some(frame) = self.kernel.pool_mut().kept.take() {
            let frame = Pfn(frame.into());
            self.kernel.free_block(frame, Order(0), self.core);
        }
    }

    fn wants_cold(&self) -> bool {
        let zone = self
            .kernel
            .pool
            .as_ref()
            .and_then(|pool| pool.zone.as_ref());
        zone.is_some_and(|zone| zone.wants_pages())
    }

    fn take_cold(&mut self, page: PageRef) -> bool {
        let frame = self.frame(page);
        let zone = self.kernel.zone_mut();
        frame
            .zip(zone)
            .is_some_and(|(frame, zone)| zone.take_cold(frame))
    }

    fn only_for(&mut self, what: Option<&Came>) {
        self.only = what.and_then(|what| {
            let process = self.kernel.process_of(what.task).ok()?;
            let allowed = self.kernel.allowed(self.kernel.process(process))?;
            allowed.set().cloned()
        });
    }

    fn warmed(&mut self, page: PageRef) {
        if let Some(frame) = self.frame(page)
            && let Some(zone) = self.kernel.zone_mut()
        {
            zone.warmed(frame);
        }
    }

    fn spare(&mut self) -> Option<Spared> {
        self.spare_in_zone()
    }
}
