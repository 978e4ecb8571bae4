//! Pages come in: room is made, the policy told, the read handed to the queue.

use piebald_policy::contract::replacement::{Fetch, Gone, Insert, PageKind, PageRef, Replacement};
use piebald_units::{
    Lba, Picos,
    block::{BlockDir, BlockPort, SECTORS_SHIFT},
};

use super::{
    super::{
        cache::{Cold, Page, flag},
        key::Key,
        layout::FileIndex,
        memory::{Came, Content, Memory},
        readahead::{Plan, Window},
    },
    FileHost,
    call::Call,
};
use crate::io::Run;

/// A page that is to come in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Incoming {
    pub key: Key,
    /// In whose call.
    pub task: u32,
    /// Where it lies, if it has a place.
    pub lba: Option<Lba>,
    pub fetch: Fetch,
    pub flags: u16,
}

impl<P: Replacement, D: BlockPort> FileHost<P, D> {
    /// Brings a page in, after making room. `None` if there is none: the coldest pages
    /// are dirty (and are being written now) or under I/O.
    pub(super) fn admit<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        page: Incoming,
        now: Picos,
    ) -> Option<PageRef> {
        let came = self.came(&page);
        let is_placed = mem.has_zone() || mem.is_bound(&came);
        let way = match is_placed {
            true => self.placed(mem, &came, now).then_some(None),
            false => self.way(mem, now),
        };
        let Some(spare) = way else {
            self.queue.unplug(now);
            return None;
        };
        let insert = Insert {
            name: page.key.name(),
            kind: match page.key.is_anon() {
                true => PageKind::Anon,
                false => PageKind::File,
            },
            dirty: page.flags & flag::DIRTY != 0,
            fetch: page.fetch,
            at: page.lba.map(|lba| self.queue.place(lba)),
            next_use: None,
        };
        self.cache.announce(page.key, &insert, now);
        if !is_placed {
            self.reclaim(mem, spare, now);
        }
        let lba = page.lba.unwrap_or_default();
        let (key, flags) = (page.key, page.flags);
        let unused = match page.fetch {
            Fetch::Readahead => flag::UNUSED,
            Fetch::Demand => 0,
        };
        let new = Page {
            key,
            lba,
            flags: flags | unused,
            pins: 0,
        };
        let number = self.cache.insert(new, &insert, now)?;
        if mem.came(number, &came) {
            return Some(number);
        }
        self.cache.forget(number, Gone::Deleted);
        None
    }

    fn came(&self, page: &Incoming) -> Came {
        Came {
            content: self.content(page.key),
            fetch: page.fetch,
            task: self.tasks[page.task as usize].id,
            file_pages: match page.key.is_anon() {
                true => 0,
                false => self.files.pages(FileIndex(page.key.owner())),
            },
            is_read: page.flags & flag::LOCKED != 0,
        }
    }

    /// The name of a page as others know it.
    fn content(&self, key: Key) -> Content {
        let page = key.page();
        // A page only comes for a call, and a call on a file that is gone ends.
        let file = self.files.id(FileIndex(key.owner()));
        match (key.is_anon(), file) {
            (false, file) => Content::File {
                file: file.unwrap_or_default(),
                page,
            },
            (true, _) => Content::Anon {
                space: key.owner(),
                page,
            },
        }
    }

    /// Pages that can come in without one leaving.
    pub(super) fn room<M: Memory + ?Sized>(&self, mem: &M) -> i64 {
        i64::from(self.cache.free()).min(mem.room())
    }

    /// Sees to it that there is room for a page, or will be when one more has left:
    /// the inner page, if it is not clear that any can. The policy is not told yet
    /// what comes. `None` if nothing can go.
    fn way<M: Memory + ?Sized>(&mut self, mem: &mut M, now: Picos) -> Option<Option<PageRef>> {
        while self.room(mem) < 0 {
            let page = self.victim(mem, now)?;
            self.evict(mem, page);
        }
        let any_can = self.cache.all_clean() && !mem.is_selective();
        if self.room(mem) > 0 || any_can {
            return Some(None);
        }
        self.victim(mem, now).map(Some)
    }

    pub(super) fn evict<M: Memory + ?Sized>(&mut self, mem: &mut M, page: PageRef) {
        self.cache.forget(page, Gone::Evicted);
        mem.left(page);
    }

    /// Makes room for one page; up to the high mark if free memory is low. What came
    /// may have changed the order, so that the coldest pages are unclean now: then the
    /// `spare` page goes, which could go before.
    fn reclaim<M: Memory + ?Sized>(&mut self, mem: &mut M, spare: Option<PageRef>, now: Picos) {
        let goal = match self.config.watermarks {
            Some(w) if self.room(mem) <= w.low.into() => w.high.min(self.cache.capacity()).max(1),
            _ => 1,
        };
        while self.room(mem) < goal.into()
            && let Some(page) = self.victim(mem, now)
        {
            self.evict(mem, page);
        }
        if let Some(page) = spare.filter(|_| self.room(mem) == 0) {
            self.evict(mem, page);
        }
    }

    /// The coldest page that can go at once. Dirty ones on the way to it are written,
    /// and leave when that is over.
    pub(super) fn victim<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        now: Picos,
    ) -> Option<PageRef> {
        let cold = self.cold(mem, now);
        // What was young is not any more: who looks again finds it.
        let again = cold.victim.is_none() && !cold.young.is_empty();
        match again && cold.dirty.is_empty() && cold.writing.is_empty() {
            true => self.cold(mem, now).victim,
            false => cold.victim,
        }
    }

    fn cold<M: Memory + ?Sized>(&mut self, mem: &mut M, now: Picos) -> Cold {
        let swap = self.swap.as_ref();
        let place = |key: Key| !key.is_anon() || swap.is_some_and(|s| s.has_place(key));
        let cold = self.cache.cold(place, mem, now);
        for page in &cold.writing {
            self.cache.launder(*page);
        }
        self.write_victims(mem, &cold.dirty, now);
        cold
    }

    /// Executes the windows of a plan, in their order.
    pub(super) fn issue<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        call: &Call,
        plan: Plan,
        now: Picos,
    ) {
        for window in plan.into_iter().flatten() {
            self.issue_window(mem, task, call, window, now);
        }
    }

    fn issue_window<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        call: &Call,
        window: Window,
        now: Picos,
    ) {
        let file = FileIndex(call.owner);
        let end = window.start.saturating_add(window.pages);
        let mut run = Gathered::default();
        for page in window.start..end.min(self.files.pages(file)) {
            let key = Key::file(file, page);
            if self.cache.find(key).is_some() {
                continue;
            }
            let lba = self.files.locate(file, page);
            let demanded = page == call.next;
            let marked = window.mark == Some(page);
            let incoming = Incoming {
                key,
                task,
                lba: Some(lba),
                fetch: if demanded {
                    Fetch::Demand
                } else {
                    Fetch::Readahead
                },
                flags: flag::LOCKED | if marked { flag::MARK } else { 0 },
            };
            let Some(number) = self.admit(mem, incoming, now) else {
                break;
            };
            self.stats.prefetched += u64::from(!demanded);
            self.gather(task, &mut run, number, lba, now);
        }
        self.submit_run(task, &mut run, now);
    }

    /// Adds a page to a run; one that does not continue it begins the next.
    pub(super) fn gather(
        &mut self,
        task: u32,
        run: &mut Gathered,
        page: PageRef,
        lba: Lba,
        now: Picos,
    ) {
        if run.end() != lba {
            self.submit_run(task, run, now);
            run.lba = lba;
        }
        run.pages.push(page);
    }

    pub(super) fn submit_run(&mut self, task: u32, run: &mut Gathered, now: Picos) {
        if !run.pages.is_empty() {
            self.submit(task, run.lba, &run.pages, BlockDir::Read, now);
            run.pages.clear();
        }
    }

    pub(super) fn submit(
        &mut self,
        task: u32,
        lba: Lba,
        units: &[PageRef],
        dir: BlockDir,
        now: Picos,
    ) {
        let task = self.tasks[task as usize].id;
        let run = Run {
            lba,
            units,
            dir,
            task,
        };
        self.queue.submit(run, now);
    }

    /// Reads the page that somebody waits for.
    pub(super) fn demand<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        key: Key,
        now: Picos,
    ) -> Option<PageRef> {
        let lba = self.files.locate(FileIndex(key.owner()), key.page());
        let incoming = Incoming {
            key,
            task,
            lba: Some(lba),
            fetch: Fetch::Demand,
            flags: flag::LOCKED,
        };
        let page = self.admit(mem, incoming, now)?;
        self.submit(task, lba, &[page], BlockDir::Read, now);
        Some(page)
    }
}

/// Pages to be read that follow one another on the disk.
#[derive(Clone, Debug, Default)]
pub(super) struct Gathered {
    lba: Lba,
    pages: Vec<PageRef>,
}

impl Gathered {
    fn end(&self) -> Lba {
        let sectors = (self.pages.len() as u64) << SECTORS_SHIFT;
        Lba(self.lba.0.saturating_add(sectors))
    }
}
