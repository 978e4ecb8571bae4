//! Pages come in: room is made, the policy told, the read handed to the queue.

use piebald_policy::contract::replacement::{Fetch, Gone, Insert, PageKind, PageRef, Replacement};
use piebald_units::{
    Lba, Picos,
    block::{BlockDir, BlockPort, SECTORS_SHIFT},
};

use super::{
    super::{
        cache::{Page, flag},
        key::Key,
        layout::FileIndex,
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
    /// Where it lies, if it has a place.
    pub lba: Option<Lba>,
    pub fetch: Fetch,
    pub flags: u8,
}

impl<P: Replacement, D: BlockPort> FileHost<P, D> {
    /// Brings a page in, after making room. `None` if there is none: the coldest pages
    /// are dirty (and are being written now) or under I/O.
    pub(super) fn admit(&mut self, page: Incoming, now: Picos) -> Option<PageRef> {
        let mut spare = None;
        if self.cache.free() == 0 && !self.cache.all_clean() {
            spare = self.victim(now);
            if spare.is_none() {
                self.queue.unplug(now);
                return None;
            }
        }
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
        self.reclaim(spare, now);
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
        self.cache.insert(new, &insert, now)
    }

    /// Makes room for one page; up to the high mark if free memory is low. What came
    /// may have changed the order, so that the coldest pages are unclean now: then the
    /// `spare` page goes, which could go before.
    fn reclaim(&mut self, spare: Option<PageRef>, now: Picos) {
        let goal = match self.config.watermarks {
            Some(w) if self.cache.free() <= w.low => w.high.min(self.cache.capacity()).max(1),
            _ => 1,
        };
        while self.cache.free() < goal
            && let Some(page) = self.victim(now)
        {
            self.cache.forget(page, Gone::Evicted);
        }
        if let Some(page) = spare.filter(|_| self.cache.free() == 0) {
            self.cache.forget(page, Gone::Evicted);
        }
    }

    /// The coldest page that can go at once. Dirty ones on the way to it are written,
    /// and leave when that is over.
    fn victim(&mut self, now: Picos) -> Option<PageRef> {
        let swap = self.swap.as_ref();
        let cold = self
            .cache
            .cold(|key| !key.is_anon() || swap.is_some_and(|s| s.has_place(key)));
        for page in cold.writing {
            self.cache.launder(page);
        }
        self.write_victims(&cold.dirty, now);
        cold.victim
    }

    /// Executes the windows of a plan, in their order.
    pub(super) fn issue(&mut self, task: u32, call: &Call, plan: Plan, now: Picos) {
        for window in plan.into_iter().flatten() {
            self.issue_window(task, call, window, now);
        }
    }

    fn issue_window(&mut self, task: u32, call: &Call, window: Window, now: Picos) {
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
                lba: Some(lba),
                fetch: if demanded {
                    Fetch::Demand
                } else {
                    Fetch::Readahead
                },
                flags: flag::LOCKED | if marked { flag::MARK } else { 0 },
            };
            let Some(number) = self.admit(incoming, now) else {
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
    pub(super) fn demand(&mut self, task: u32, key: Key, now: Picos) -> Option<PageRef> {
        let lba = self.files.locate(FileIndex(key.owner()), key.page());
        let incoming = Incoming {
            key,
            lba: Some(lba),
            fetch: Fetch::Demand,
            flags: flag::LOCKED,
        };
        let page = self.admit(incoming, now)?;
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
