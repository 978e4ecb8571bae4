//! Mapping, unmapping, moving and discarding ranges of pages.

use piebald_units::{Asid, CoreId, Order, Pfn, TaskId, VirtAddr, Vpn, op::Backing};

use super::{Action, Actions, Kernel, KernelError, fault::Site, grant::Who};
use crate::space::{Area, Entry, HUGE_PAGES, Object, ObjectPage};

/// First page beyond what a program can map: 47-bit addresses.
const END: u64 = 1 << 35;

/// A range of pages that a call names.
#[derive(Clone, Copy)]
pub(super) struct PageRange {
    pub first: Vpn,
    pub end: Vpn,
}

impl PageRange {
    pub(super) const fn pages(self) -> u64 {
        self.end.0 - self.first.0
    }

    pub(super) fn overlaps(self, other: Self) -> bool {
        self.first < other.end && other.first < self.end
    }
}

/// Checks a call's address and length. The length may be 0.
pub(super) fn range(
    task: TaskId,
    call: &'static str,
    addr: VirtAddr,
    len: u64,
) -> Result<PageRange, KernelError> {
    let bad = |field, value, allowed| KernelError::Argument {
        task,
        call,
        field,
        value,
        allowed,
    };
    if addr.page_offset() != 0 {
        return Err(bad("addr", addr.0, "a multiple of 4096"));
    }
    let first = addr.0 >> 12;
    let pages = len.div_ceil(4096);
    match first.checked_add(pages) {
        Some(end) if end <= END => Ok(PageRange {
            first: Vpn(first),
            end: Vpn(end),
        }),
        _ if first >= END => Err(bad("addr", addr.0, "below 2^47")),
        _ => Err(bad("len", len, "short enough to end below 2^47")),
    }
}

/// The task and core that make a call.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    pub task: TaskId,
    pub core: CoreId,
    pub process: usize,
}

impl Kernel {
    /// Who a call's kernel memory is for.
    pub(super) fn who(&self, c: Caller) -> Who {
        Who {
            task: c.task,
            core: c.core,
            program: self.process(c.process).program,
        }
    }

    pub(super) fn map_area(
        &mut self,
        c: Caller,
        r: PageRange,
        backing: Backing,
        shared: bool,
        actions: &mut Actions,
    ) -> Result<(), KernelError> {
        let behind = match backing {
            Backing::Anon if shared => Some(ObjectPage {
                object: self.objects.new_shared_anon(),
                index: 0,
            }),
            Backing::Anon => None,
            Backing::File { file, offset } => Some(ObjectPage {
                object: Object::File(file),
                index: offset >> 12,
            }),
        };
        if let Some(b) = behind.filter(|_| shared) {
            self.objects.set_written(b.object);
        }
        self.unmap_range(c, r, actions)?;
        if r.pages() > 0 {
            self.add_area(
                c.process,
                Area {
                    first: r.first,
                    end: r.end,
                    behind,
                    shared,
                    implicit: false,
                },
            );
        }
        Ok(())
    }

    pub(super) fn add_area(&mut self, process: usize, area: Area) {
        if let Some(b) = area.behind {
            self.objects.mapped(b.object, area.end.0 - area.first.0);
        }
        self.process_mut(process).space.areas.insert(area);
    }

    /// Takes a range out of the areas; shared objects that nobody maps any more
    /// lose their pages.
    fn remove_areas(&mut self, process: usize, r: PageRange) -> Vec<Area> {
        self.process_mut(process).space.areas.remove(r.first, r.end)
    }

    fn forget_areas(&mut self, areas: &[Area]) {
        for a in areas {
            let Some(b) = a.behind else { continue };
            if self.objects.unmapped(b.object, a.end.0 - a.first.0) {
                self.drop_object(b.object);
            }
        }
    }

    pub(super) fn unmap_range(
        &mut self,
        c: Caller,
        r: PageRange,
        actions: &mut Actions,
    ) -> Result<(), KernelError> {
        self.drop_pages(c, r, actions)?;
        let gone = self.remove_areas(c.process, r);
        self.forget_areas(&gone);
        Ok(())
    }

    /// Gives up all pages of a range; the areas stay.
    pub(super) fn drop_pages(
        &mut self,
        c: Caller,
        r: PageRange,
        actions: &mut Actions,
    ) -> Result<(), KernelError> {
        self.split_edges(c, r)?;
        self.drop_swapped(c, r.first, r.end, actions);
        let pages = self.mapped_pages(c.process, r);
        for (vpn, entry, level) in &pages {
            self.charge_entry(c.process, *vpn, entry.frame(), actions);
            self.unmap_page(c.process, *vpn, c.core);
            if self.is_paged() {
                self.put_mapping(c.process, *vpn, *entry, c.core, actions);
                continue;
            }
            self.lose(*entry, *level, c.core);
        }
        self.flush(c.process, &pages, actions);
        actions.instrs(
            self.config
                .costs
                .per_page_instrs
                .saturating_mul(pages.len() as u32),
        );
        Ok(())
    }

    /// 2 MiB pages that reach over an end of the range become small.
    fn split_edges(&mut self, c: Caller, r: PageRange) -> Result<(), KernelError> {
        for edge in [r.first, r.end] {
            if r.pages() > 0 && edge.0 & (HUGE_PAGES - 1) != 0 {
                let found = self.process(c.process).space.tables.lookup(edge);
                if matches!(found, Some((_, 1))) {
                    self.split_huge(c, edge)?;
                }
            }
        }
        Ok(())
    }

    /// All pages of a range that have a frame.
    pub(super) fn mapped_pages(&mut self, process: usize, r: PageRange) -> Vec<(Vpn, Entry, u8)> {
        let mut pages = Vec::new();
        let tables = &mut self.process_mut(process).space.tables;
        tables.visit(r.first, r.end, &mut |vpn, e, level| {
            pages.push((vpn, e, level));
            e
        });
        pages
    }

    /// Takes a page out of the tables; its frame keeps its user.
    pub(super) fn unmap_page(&mut self, process: usize, vpn: Vpn, core: CoreId) {
        let mut nodes = Vec::new();
        let space = &mut self.process_mut(process).space;
        let before = space.resident.total();
        if let Some((e, level)) = space.tables.unmap(vpn, &mut nodes) {
            space
                .resident
                .sub(e, if level == 1 { HUGE_PAGES } else { 1 });
        }
        self.count_pages(process, before);
        for n in nodes {
            self.free_block(Pfn(u64::from(n)), Order(0), core);
        }
    }

    /// Makes stale translations of these pages disappear.
    pub(super) fn flush(
        &mut self,
        process: usize,
        pages: &[(Vpn, Entry, u8)],
        actions: &mut Actions,
    ) {
        if pages.is_empty() {
            return;
        }
        let space = &mut self.process_mut(process).space;
        space.epoch = space.epoch.wrapping_add(1);
        let asid = Asid(process as u32 + 1);
        if pages.len() as u64 > self.config.flush_ceiling {
            actions.push(Action::ShootDown { asid, page: None });
            return;
        }
        for (vpn, ..) in pages {
            let page = Some(vpn.base());
            actions.push(Action::ShootDown { asid, page });
        }
    }

    /// `mremap`: grows or shrinks in place, or moves the pages.
    pub(super) fn remap(
        &mut self,
        c: Caller,
        old: PageRange,
        new: PageRange,
        actions: &mut Actions,
    ) -> Result<(), KernelError> {
        let kept = old.pages().min(new.pages());
        let tail = PageRange {
            first: Vpn(old.first.0 + kept),
            end: old.end,
        };
        if tail.pages() > 0 {
            self.unmap_range(c, tail, actions)?;
        }
        let from = PageRange {
            first: old.first,
            end: Vpn(old.first.0 + kept),
        };
        if old.first == new.first {
            let more = PageRange {
                first: Vpn(new.first.0 + kept),
                end: new.end,
            };
            return self.grow(c, from, more, actions);
        }
        self.unmap_range(c, new, actions)?;
        self.move_pages(c, from, new.first, actions)?;
        let moved = PageRange {
            first: new.first,
            end: Vpn(new.first.0 + kept),
        };
        let more = PageRange {
            first: moved.end,
            end: new.end,
        };
        self.grow(c, moved, more, actions)
    }

    /// Extends the last area of `base` over `more`.
    fn grow(
        &mut self,
        c: Caller,
        base: PageRange,
        more: PageRange,
        actions: &mut Actions,
    ) -> Result<(), KernelError> {
        if more.pages() == 0 {
            return Ok(());
        }
        self.unmap_range(c, more, actions)?;
        let areas = &self.process(c.process).space.areas;
        let last = base.end.0.checked_sub(1).filter(|_| base.pages() > 0);
        let before = last.and_then(|v| areas.find(Vpn(v))).copied();
        let anon = Area {
            first: more.first,
            end: more.end,
            behind: None,
            shared: false,
            implicit: false,
        };
        let area = before.map_or(anon, |b| Area {
            behind: b.page_behind(more.first),
            shared: b.shared,
            implicit: b.implicit,
            ..anon
        });
        self.add_area(c.process, area);
        Ok(())
    }

    fn move_pages(
        &mut self,
        c: Caller,
        from: PageRange,
        to: Vpn,
        actions: &mut Actions,
    ) -> Result<(), KernelError> {
        self.split_edges(c, from)?;
        let aligned = (to.0 ^ from.first.0) & (HUGE_PAGES - 1) == 0;
        if !aligned {
            self.split_all(c, from)?;
        }
        let shift = |v: Vpn| Vpn(v.0 - from.first.0 + to.0);
        let pages = self.mapped_pages(c.process, from);
        for area in self.remove_areas(c.process, from) {
            let moved = Area {
                first: shift(area.first),
                end: shift(area.end),
                ..area
            };
            self.process_mut(c.process).space.areas.insert(moved);
        }
        let PageRange { first, end } = from;
        self.move_swapped(c.process, first, end, to);
        let mut result = Ok(());
        for (vpn, entry, level) in &pages {
            self.charge_entry(c.process, *vpn, entry.frame(), actions);
            self.unmap_page(c.process, *vpn, c.core);
            let site = Site {
                task: c.task,
                core: c.core,
                process: c.process,
                vpn: shift(*vpn),
                write: false,
            };
            if let Err(e) = self.map(site, *entry) {
                match self.is_paged() {
                    true => self.put_mapping(c.process, *vpn, *entry, c.core, actions),
                    false => self.lose(*entry, *level, c.core),
                }
                result = Err(e);
                continue;
            }
            self.move_mapping(c.process, *vpn, site.vpn, *entry);
            self.charge_entry(c.process, site.vpn, entry.frame(), actions);
        }
        self.flush(c.process, &pages, actions);
        actions.instrs(
            self.config
                .costs
                .per_page_instrs
                .saturating_mul(pages.len() as u32),
        );
        result
    }

    /// Gives up the frames of an entry that is no longer mapped.
    pub(super) fn lose(&mut self, entry: Entry, level: u8, core: CoreId) {
        if entry.has(Entry::ZERO) {
            return;
        }
        let frames = if level == 1 { HUGE_PAGES as usize } else { 1 };
        for f in (entry.frame()..).take(frames) {
            self.put_frame(f, core);
        }
    }

    fn split_all(&mut self, c: Caller, r: PageRange) -> Result<(), KernelError> {
        for (vpn, _, level) in self.mapped_pages(c.process, r) {
            if level == 1 {
                self.split_huge(c, vpn)?;
            }
        }
        Ok(())
    }
}
