//! The four hardware prefetchers of Intel parts, and AMD's of consecutive lines, each a key of the
//! preset.
//!
//! Their published descriptions say what triggers them, not every number; the
//! numbers chosen here are named constants. All of them stay inside the 4 KiB
//! page that they see.

use crate::{
    cache::Line,
    spec::{PrefetchInto, PrefetchSpec},
};

/// Lines of a page.
const PAGE_LINES: Line = 64;
/// Strides that the streamer tracks at once, one forward or backward per page.
const STREAMS: usize = 32;
/// Entries of the stride table, indexed by the low bits of the site.
const SITES: usize = 256;
/// Lines that the streamer may run ahead.
const REACH: i64 = 20;
/// Lines that one access makes it fetch.
const BURST: usize = 2;
/// Lines that the prefetcher of consecutive lines is ahead (publication 25112, section 5.6).
const AHEAD: i64 = 2;
/// Longest stride of the first-level stride prefetcher, in bytes.
const MAX_STRIDE: i64 = 2048;

/// A line to fetch, and into which level (0 = first).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(crate) line: Line,
    pub(crate) into: u8,
}

/// What the first level's prefetchers ask for: the next line, then the stride's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    next: Line,
    stride: Line,
}

/// No wish.
const NONE: Line = Line::MAX;

impl Pair {
    pub(crate) const NOTHING: Self = Self {
        next: NONE,
        stride: NONE,
    };

    #[inline]
    pub(crate) const fn is_empty(self) -> bool {
        self.next == NONE && self.stride == NONE
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Line> {
        [self.next, self.stride].into_iter().filter(|l| *l != NONE)
    }
}

/// Up to eight wishes of one access.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wishes {
    lines: [Line; 8],
    into: [u8; 8],
    len: usize,
}

impl Wishes {
    pub(crate) fn push(&mut self, line: Line, into: u8) {
        if self.len < self.lines.len() {
            self.lines[self.len] = line;
            self.into[self.len] = into;
            self.len += 1;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Wish> + '_ {
        (0..self.len).map(|i| Wish {
            line: self.lines[i],
            into: self.into[i],
        })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct Stride {
    site: u32,
    last: u64,
    stride: i64,
    sure: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    page: Line,
    valid: bool,
    last: i64,
    forward: bool,
    run: u8,
    /// Next line of the page to fetch.
    ahead: i64,
}

/// Prefetchers of one core.
#[derive(Clone, Debug)]
pub(crate) struct Prefetcher {
    on: PrefetchSpec,
    last_load: Line,
    strides: Box<[Stride; SITES]>,
    streams: Vec<Stream>,
    /// Page and line of the last accesses, most recent first, for consecutive lines.
    recent: Vec<(Line, i64)>,
}

impl Prefetcher {
    pub(crate) fn new(on: PrefetchSpec) -> Self {
        Self {
            on,
            last_load: 0,
            strides: Box::new([Stride::default(); SITES]),
            streams: vec![Stream::default(); STREAMS],
            recent: vec![(NONE, 0); STREAMS],
        }
    }

    /// Does anything watch the first level?
    pub(crate) const fn watches_l1(&self) -> bool {
        self.on.dcu_next_line || self.on.dcu_ip_stride
    }

    /// Does anything watch the second level?
    pub(crate) const fn watches_l2(&self) -> bool {
        self.on.l2_streamer
            || self.on.l2_adjacent_line
            || !matches!(self.on.consecutive, PrefetchInto::Off)
    }

    /// Does it have to see the first use of a line that it brought into the first level?
    pub(crate) const fn watches_first_use(&self) -> bool {
        matches!(self.on.consecutive, PrefetchInto::L1)
    }

    /// A demand missed the first level, or is the first to use what came there by prefetch.
    pub(crate) fn demand(&mut self, line: Line, wishes: &mut Wishes) {
        let into = match self.on.consecutive {
            PrefetchInto::Off => return,
            PrefetchInto::L1 => 0,
            PrefetchInto::L2 => 1,
        };
        let page = line / PAGE_LINES;
        let at = i64::from(line % PAGE_LINES);
        let place = self.recent.iter().position(|r| r.0 == page);
        self.recent[..=place.unwrap_or(STREAMS - 1)].rotate_right(1);
        let (_, last) = std::mem::replace(&mut self.recent[0], (page, at));
        let step = at - last;
        if place.is_some() && step.abs() == 1 {
            let next = in_page(line, i64::from(line) + AHEAD * step);
            if next != NONE {
                wishes.push(next, into);
            }
        }
    }

    /// A load reached the first level.
    #[inline]
    pub(crate) fn load(&mut self, paddr: u64, site: u32) -> Pair {
        let line = (paddr >> 6) as Line;
        let mut next = NONE;
        if self.on.dcu_next_line && line == self.last_load.wrapping_add(1) {
            next = in_page(line, i64::from(line) + 1);
        }
        self.last_load = line;
        let stride = match self.on.dcu_ip_stride {
            true => self.stride(paddr, site),
            false => NONE,
        };
        Pair { next, stride }
    }

    #[inline]
    fn stride(&mut self, paddr: u64, site: u32) -> Line {
        let entry = &mut self.strides[site as usize % SITES];
        if entry.site != site {
            *entry = Stride {
                site,
                last: paddr,
                stride: 0,
                sure: 0,
            };
            return NONE;
        }
        let stride = paddr as i64 - entry.last as i64;
        entry.last = paddr;
        if stride == 0 {
            return NONE;
        }
        if stride != entry.stride {
            entry.stride = stride;
            entry.sure = 0;
            return NONE;
        }
        entry.sure = (entry.sure + 1).min(3);
        if entry.sure < 2 || stride.abs() > MAX_STRIDE {
            return NONE;
        }
        let next = (paddr as i64 + stride) >> 6;
        match next == (paddr >> 6) as i64 {
            true => NONE,
            false => in_page((paddr >> 6) as Line, next),
        }
    }

    /// A demand missed the first level; `hit` says whether the second had it.
    pub(crate) fn second_level(&mut self, line: Line, hit: bool, wishes: &mut Wishes) {
        if self.on.l2_adjacent_line && !hit {
            wishes.push(line ^ 1, 1);
        }
        if self.on.l2_streamer {
            self.stream(line, wishes);
        }
    }

    fn stream(&mut self, line: Line, wishes: &mut Wishes) {
        let page = line / PAGE_LINES;
        let at = i64::from(line % PAGE_LINES);
        let known = |s: &Stream| s.valid && s.page == page;
        let place = self.streams.iter().position(known);
        // Most recent first; the least recent makes room.
        self.streams[..=place.unwrap_or(STREAMS - 1)].rotate_right(1);
        let stream = &mut self.streams[0];
        if place.is_none() {
            *stream = Stream {
                page,
                valid: true,
                last: at,
                forward: true,
                run: 0,
                ahead: at + 1,
            };
            return;
        }
        let forward = at > stream.last;
        if at == stream.last {
            return;
        }
        stream.last = at;
        if forward != stream.forward {
            stream.forward = forward;
            stream.run = 1;
            stream.ahead = at;
        } else {
            stream.run = (stream.run + 1).min(3);
        }
        if stream.run < 2 {
            return;
        }
        let step = if forward { 1 } else { -1 };
        let mut ahead = match forward {
            true => stream.ahead.max(at + 1),
            false => stream.ahead.min(at - 1),
        };
        for _ in 0..BURST {
            let in_page = (0..i64::from(PAGE_LINES)).contains(&ahead);
            if !in_page || (ahead - at).abs() > REACH {
                break;
            }
            wishes.push(page * PAGE_LINES + ahead as Line, 1);
            ahead += step;
        }
        stream.ahead = ahead;
    }
}

/// `to`, if it lies in the page of `from`.
#[inline]
fn in_page(from: Line, to: i64) -> Line {
    match to >= 0 && to / i64::from(PAGE_LINES) == i64::from(from / PAGE_LINES) {
        true => to as Line,
        false => NONE,
    }
}
