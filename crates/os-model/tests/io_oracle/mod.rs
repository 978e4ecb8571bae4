//! The queue by the obvious means: one list of requests, searched from end to end.

use piebald_os_model::io::{IoConfig, Scheduler};
use piebald_units::block::BlockDir;

/// A waiting request, in pages; times in picoseconds.
#[derive(Clone, Debug)]
struct Waiting {
    start: u64,
    pages: u64,
    dir: BlockDir,
    deadline: u64,
    order: u64,
}

impl Waiting {
    fn end(&self) -> u64 {
        self.start + self.pages
    }
}

/// A queue without plug in front of a disk that serves one request at a time.
pub struct Oracle {
    config: IoConfig,
    list: Vec<Waiting>,
    arrivals: u64,
    dir: BlockDir,
    batched: u32,
    starved: u32,
    last_end: Option<u64>,
    /// First page of the request with which the batch continues.
    next: Option<(BlockDir, u64)>,
}

impl Oracle {
    pub fn new(config: IoConfig) -> Self {
        Self {
            config,
            list: Vec::new(),
            arrivals: 0,
            dir: BlockDir::Read,
            batched: 0,
            starved: 0,
            last_end: None,
            next: None,
        }
    }

    fn fits(&self, a: u64, b: u64) -> bool {
        (a + b) * 8 <= self.config.max_sectors.into()
    }

    fn find(&self, dir: BlockDir, fits: u64, is: impl Fn(&Waiting) -> bool) -> Option<usize> {
        self.list
            .iter()
            .position(|w| w.dir == dir && is(w) && self.fits(w.pages, fits))
    }

    pub fn submit(&mut self, start: u64, pages: u64, dir: BlockDir, now: u64) {
        let most = u64::from(self.config.max_sectors / 8);
        let mut at = start;
        while at < start + pages {
            let n = most.min(start + pages - at);
            self.enter(at, n, dir, now);
            at += n;
        }
    }

    fn enter(&mut self, start: u64, pages: u64, dir: BlockDir, now: u64) {
        let expire = match dir {
            BlockDir::Read => self.config.read_expire,
            BlockDir::Write => self.config.write_expire,
        };
        let new = Waiting {
            start,
            pages,
            dir,
            deadline: now + expire.0,
            order: self.arrivals,
        };
        if let Some(i) = self.find(dir, pages, |w| w.end() == start) {
            self.list[i].pages += pages;
            let (end, pages) = (self.list[i].end(), self.list[i].pages);
            if let Some(j) = self.find(dir, pages, |w| w.start == end) {
                self.join(i, j);
            }
        } else if let Some(i) = self.find(dir, pages, |w| w.start == start + pages) {
            if self.next == Some((dir, start + pages)) {
                self.next = Some((dir, start));
            }
            (self.list[i].start, self.list[i].pages) = (start, self.list[i].pages + pages);
            let pages = self.list[i].pages;
            if let Some(j) = self.find(dir, pages, |w| w.end() == start) {
                self.join(j, i);
            }
        } else {
            self.list.push(new);
            self.arrivals += 1;
        }
    }

    /// `behind` is appended to `into`.
    fn join(&mut self, into: usize, behind: usize) {
        let gone = self.list[behind].clone();
        let kept = &mut self.list[into];
        kept.pages += gone.pages;
        kept.deadline = kept.deadline.min(gone.deadline);
        kept.order = kept.order.min(gone.order);
        self.list.remove(behind);
        if self.next == Some((gone.dir, gone.start)) {
            self.next = self.follower(gone.dir, gone.start);
        }
    }

    /// The request that begins next above a page.
    fn follower(&self, dir: BlockDir, above: u64) -> Option<(BlockDir, u64)> {
        let above = self.list.iter().filter(|w| w.dir == dir && w.start > above);
        above.map(|w| (dir, w.start)).min_by_key(|e| e.1)
    }

    /// The next request for the disk: first page, pages, direction.
    pub fn take(&mut self, now: u64) -> Option<(u64, u64, BlockDir)> {
        let i = match self.config.scheduler {
            Scheduler::Noop => self.oldest(|_| true, |w| w.order),
            Scheduler::Deadline => self.deadline(now, false),
            Scheduler::Deadline2_6_11 => self.deadline(now, true),
            Scheduler::Anticipatory => panic!("there is no oracle for it"),
        }?;
        let w = self.list.remove(i);
        self.last_end = Some(w.end());
        self.next = self.follower(w.dir, w.start);
        Some((w.start, w.pages, w.dir))
    }

    fn oldest(
        &self,
        of: impl Fn(&Waiting) -> bool,
        key: impl Fn(&Waiting) -> u64,
    ) -> Option<usize> {
        let all = self.list.iter().enumerate().filter(|(_, w)| of(w));
        all.min_by_key(|(_, w)| (key(w), w.order)).map(|(i, _)| i)
    }

    fn deadline(&mut self, now: u64, v2_6_11: bool) -> Option<usize> {
        let place =
            |list: &[Waiting], next| list.iter().position(|w| Some((w.dir, w.start)) == next);
        if let Some(i) = place(&self.list, self.next.filter(|n| n.0 == self.dir)) {
            let contiguous = self.last_end == Some(self.list[i].start);
            if self.batched < self.config.fifo_batch && (contiguous || !v2_6_11) {
                self.batched += 1;
                return Some(i);
            }
        }
        let any = |dir| self.list.iter().any(|w| w.dir == dir);
        let (reads, writes) = (any(BlockDir::Read), any(BlockDir::Write));
        if reads && (!writes || self.starved < self.config.writes_starved) {
            self.starved += u32::from(writes);
            self.dir = BlockDir::Read;
        } else if writes {
            self.starved = 0;
            self.dir = BlockDir::Write;
        } else {
            self.starved = 0;
            return None;
        }
        let dir = self.dir;
        let earliest = self.oldest(|w| w.dir == dir, |w| w.deadline)?;
        self.batched = 1;
        if self.list[earliest].deadline <= now {
            return Some(earliest);
        }
        if let Some(i) = place(&self.list, self.next.filter(|n| n.0 == dir)) {
            return Some(i);
        }
        match v2_6_11 {
            true => self.oldest(|w| w.dir == dir, |w| w.start),
            false => Some(earliest),
        }
    }
}
