//! A call, page by page.

use piebald_policy::contract::replacement::{Fetch, PageRef, Replacement, Touch, Via};
use piebald_units::{
    Picos,
    block::{BlockDir, BlockPort},
};

use super::{
    super::{
        cache::flag,
        key::Key,
        layout::FileIndex,
        memory::Memory,
        readahead::{Access, Plan, Readahead, Seen, Stream, Window},
        span::Span,
        stats::Uses,
    },
    FileHost,
    load::Incoming,
};

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    /// `old_pages`: length of the file before the call; behind it nothing is read.
    Write {
        old_pages: u64,
    },
    Mapped {
        write: bool,
    },
    Anon {
        write: bool,
    },
}

/// A call under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub kind: Kind,
    /// File or task, by number.
    pub owner: u32,
    first: u64,
    pub next: u64,
    /// Where the program's request ends, which is what readahead looks at.
    pub end: u64,
    /// Where this call ends: there, or before.
    until: u64,
    span: Span,
    /// The page `next` was counted, and readahead has seen it.
    counted: bool,
    /// The page was not in memory, or had been read ahead: the program faults.
    pub faults: bool,
    /// The page that it waits for.
    pub waits: Option<PageRef>,
    pub blocked_at: Option<Picos>,
}

/// How far a page got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Done,
    /// Waits until that page is up to date.
    Page(PageRef),
    /// Waits for memory.
    Memory,
    /// The page is done, but its task may not write more now.
    Throttled,
}

impl Call {
    pub fn new(kind: Kind, owner: u32, first: u64, end: u64, span: Span) -> Self {
        Self {
            kind,
            owner,
            first,
            next: first,
            end,
            until: end,
            span,
            counted: false,
            faults: false,
            waits: None,
            blocked_at: None,
        }
    }

    /// The part of the call that is this page.
    pub fn only(self, page: u64) -> Self {
        Self {
            next: page,
            until: page.saturating_add(1),
            ..self
        }
    }

    pub fn key(&self) -> Key {
        match self.kind {
            Kind::Anon { .. } => Key::anon(self.owner, self.next),
            _ => Key::file(FileIndex(self.owner), self.next),
        }
    }

    pub fn touch(&self) -> Touch {
        let via = match self.kind {
            Kind::Read | Kind::Write { .. } => Via::Call,
            Kind::Mapped { .. } | Kind::Anon { .. } => Via::Mapping,
        };
        Touch {
            via,
            next_use: None,
        }
    }
}

impl<P: Replacement, D: BlockPort> FileHost<P, D> {
    /// Carries a task's call on, until it is done (the time at which the task may
    /// go on) or waits.
    pub(super) fn go_on<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        now: Picos,
    ) -> Option<Picos> {
        self.account_wait(task, now);
        loop {
            let call = self.tasks[task as usize].call?;
            if call.next >= self.end_of(&call) {
                self.tasks[task as usize].call = None;
                return Some(now + self.config.cpu.call);
            }
            let progress = self.page(mem, task, call, now);
            if matches!(progress, Progress::Done | Progress::Throttled) {
                if let Some(page) = self.cache.find(call.key()) {
                    mem.got(self.tasks[task as usize].id, page);
                }
                self.next_page(task);
            }
            match progress {
                Progress::Done => {}
                wait => return self.wait(task, wait, now),
            }
            let cost = self.config.cpu.page;
            if cost > Picos(0) {
                return self.later(task, now + cost);
            }
        }
    }

    /// Where the call ends; the file may have been deleted since it began.
    fn end_of(&self, call: &Call) -> u64 {
        match call.kind {
            Kind::Anon { .. } => call.until,
            _ => call.until.min(self.files.pages(FileIndex(call.owner))),
        }
    }

    fn edit_call(&mut self, task: u32, edit: impl FnOnce(&mut Call)) {
        if let Some(call) = &mut self.tasks[task as usize].call {
            edit(call);
        }
    }

    fn next_page(&mut self, task: u32) {
        self.edit_call(task, |call| {
            call.next += 1;
            call.counted = false;
        });
    }

    /// The call was blocked until now.
    fn account_wait(&mut self, task: u32, now: Picos) {
        let task = &mut self.tasks[task as usize];
        if let Some(since) = task.call.as_mut().and_then(|c| c.blocked_at.take()) {
            let waited = now.since(since);
            task.blocked += waited;
            self.stats.blocked += waited;
        }
    }

    fn wait(&mut self, task: u32, why: Progress, now: Picos) -> Option<Picos> {
        match why {
            Progress::Page(page) => {
                self.cache.pin(page);
                self.page_waiters.entry(page.0).or_default().push(task);
                self.edit_call(task, |call| call.waits = Some(page));
            }
            Progress::Memory => {
                self.stats.memory_waits += 1;
                self.memory_waiters.push(task);
            }
            Progress::Throttled => {
                self.stats.throttled += 1;
                self.throttled.push(task);
            }
            Progress::Done => {}
        }
        self.edit_call(task, |call| call.blocked_at = Some(now));
        self.queue.unplug(now);
        None
    }

    /// The call goes on by itself; if that was its last page, it is done then.
    fn later(&mut self, task: u32, at: Picos) -> Option<Picos> {
        let call = self.tasks[task as usize].call?;
        if call.next >= self.end_of(&call) {
            self.tasks[task as usize].call = None;
            return Some(at + self.config.cpu.call);
        }
        self.again_at(task, at);
        None
    }

    pub(super) fn again_at(&mut self, task: u32, at: Picos) {
        self.sequence += 1;
        self.going_on
            .push(std::cmp::Reverse((at, self.sequence, task)));
    }

    fn page<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        mut call: Call,
        now: Picos,
    ) -> Progress {
        if !call.counted {
            let seen = self.seen(call.key());
            self.count(call.kind, seen);
            let first = self.use_page(mem, task, &call, seen, now);
            call.faults = first || seen != Seen::Ready;
            call.counted = true;
            self.tasks[task as usize].call = Some(call);
        }
        match call.kind {
            Kind::Read => self.need(mem, task, &call, now),
            Kind::Mapped { write } => match self.need(mem, task, &call, now) {
                Progress::Done if write => self.dirtied(mem, call.key(), now),
                other => other,
            },
            Kind::Write { old_pages } => self.write_page(mem, task, &call, old_pages, now),
            Kind::Anon { write } => self.anon_page(mem, task, &call, write, now),
        }
    }

    pub(super) fn seen(&self, key: Key) -> Seen {
        match self.cache.find(key) {
            None => Seen::Missing,
            Some(page) if self.cache.page(page).is(flag::LOCKED) => Seen::InFlight,
            Some(_) => Seen::Ready,
        }
    }

    fn count(&mut self, kind: Kind, seen: Seen) {
        let uses: &mut Uses = match kind {
            Kind::Read => &mut self.stats.reads,
            Kind::Write { .. } => &mut self.stats.writes,
            Kind::Mapped { .. } => &mut self.stats.mapped,
            Kind::Anon { .. } => &mut self.stats.anon,
        };
        uses.references += 1;
        *match seen {
            Seen::Ready => &mut uses.hits,
            Seen::InFlight => &mut uses.waited,
            Seen::Missing => &mut uses.misses,
        } += 1;
    }

    /// The first look at a page: the policy learns of the use, and readahead runs.
    /// Answers whether the page had been read ahead and is used for the first time.
    fn use_page<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        call: &Call,
        seen: Seen,
        now: Picos,
    ) -> bool {
        let page = self.cache.find(call.key());
        let mut first = false;
        if let Some(page) = page {
            first = self.cache.hit(page, call.touch(), now);
            self.stats.prefetched_used += u64::from(first);
            // Readahead may reclaim, but not the page that is being read.
            self.cache.pin(page);
        }
        match call.kind {
            Kind::Read => self.read_ahead(mem, task, call, seen, now),
            Kind::Mapped { .. } if seen == Seen::Missing => self.read_around(mem, task, call, now),
            _ => {}
        }
        if let Some(page) = page {
            self.cache.unpin(page);
        }
        first
    }

    fn read_ahead<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        call: &Call,
        seen: Seen,
        now: Picos,
    ) {
        let marked = self.take_mark(call.key());
        let plan = self.ask_readahead(task, call, seen, marked);
        self.issue(mem, task, call, plan, now);
        // The window may have put its mark on the very page that was missing.
        if seen == Seen::Missing && self.take_mark(call.key()) {
            let plan = self.ask_readahead(task, call, Seen::InFlight, true);
            self.issue(mem, task, call, plan, now);
        }
    }

    fn take_mark(&mut self, key: Key) -> bool {
        let Some(page) = self.cache.find(key) else {
            return false;
        };
        let marked = self.cache.page(page).is(flag::MARK);
        if marked {
            self.cache.clear(page, flag::MARK);
        }
        marked
    }

    fn ask_readahead(&mut self, task: u32, call: &Call, seen: Seen, marked: bool) -> Plan {
        let file = FileIndex(call.owner);
        let access = Access {
            page: call.next,
            left: call.end - call.next,
            first: call.next == call.first,
            peek: call.span.is_peek(),
            bytes: call.span.bytes_from_page(),
            seen,
            marked,
            congested: self.queue.congested(BlockDir::Read),
            file_pages: self.files.pages(file),
        };
        let slot = call.owner as usize;
        if self.streams.len() <= slot {
            self.streams.resize_with(slot + 1, Vec::new);
        }
        let streams = &mut self.streams[slot];
        let at = streams.iter().position(|(of, _)| *of == task);
        let at = at.unwrap_or_else(|| {
            streams.push((task, Stream::new(&self.config.readahead)));
            streams.len() - 1
        });
        let cache = &self.cache;
        let cached = |page| cache.find(Key::file(file, page)).is_some();
        streams[at].1.access(&access, &cached)
    }

    /// A page that is missing in a mapping is read with its surroundings.
    fn read_around<M: Memory + ?Sized>(&mut self, mem: &mut M, task: u32, call: &Call, now: Picos) {
        if self.config.readahead.read_around {
            let pages = u64::from(self.config.readahead.max_pages);
            let start = call.next.saturating_sub(pages / 2);
            self.issue(
                mem,
                task,
                call,
                [Some(Window::plain(start, pages)), None],
                now,
            );
        }
    }

    /// The page must be in memory and up to date.
    fn need<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        call: &Call,
        now: Picos,
    ) -> Progress {
        let key = call.key();
        let page = match self.cache.find(key) {
            Some(page) => page,
            None => match self.demand(mem, task, key, now) {
                Some(page) => page,
                None => return Progress::Memory,
            },
        };
        match self.cache.page(page).is(flag::LOCKED) {
            true => Progress::Page(page),
            false => Progress::Done,
        }
    }

    fn write_page<M: Memory + ?Sized>(
        &mut self,
        mem: &mut M,
        task: u32,
        call: &Call,
        old_pages: u64,
        now: Picos,
    ) -> Progress {
        let key = call.key();
        let overwritten = call.span.covers(call.next) || call.next >= old_pages;
        if overwritten && self.cache.find(key).is_none() {
            let lba = self.files.locate(FileIndex(call.owner), call.next);
            let page = Incoming {
                key,
                task,
                lba: Some(lba),
                fetch: Fetch::Demand,
                flags: 0,
            };
            if self.admit(mem, page, now).is_none() {
                return Progress::Memory;
            }
        }
        match self.need(mem, task, call, now) {
            Progress::Done => self.dirtied(mem, key, now),
            wait => wait,
        }
    }
}
