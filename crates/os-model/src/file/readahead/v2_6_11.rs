//! Readahead of Linux 2.6.11: a current window and one ahead of it.
//!
//! A call that continues the last one starts the window ahead as soon as there is
//! none; when it reaches that, it becomes the current window, and the next one
//! starts. Windows double, shrink by two pages after a page of theirs was evicted
//! before its use, and stop altogether when 256 pages in a row were in the cache.
//! A call that does not continue the last one switches readahead off until two
//! calls follow one another again; it reads its own pages, at most a window.
//!
//! Long calls come here again for every largest window's worth of pages.

use super::{Access, Lookup, NOTHING, Plan, Readahead, ReadaheadConfig, Seen, Window};

/// Pages found in the cache in a row at which readahead stops (`VM_MAX_CACHE_HIT`).
const MAX_CACHE_HIT: u64 = 256;
/// By how many pages a window shrinks after a miss in it.
const SHRINK_PAGES: u64 = 2;

/// The current window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Current {
    /// None yet.
    #[default]
    New,
    /// Switched off by a call that did not continue the last one.
    Off,
    On {
        start: u64,
        size: u64,
    },
}

/// State of an open file, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct V2_6_11 {
    current: Current,
    ahead: Option<(u64, u64)>,
    /// Last page of the last call.
    prev: Option<u64>,
    /// The page of a long call at which the next window is due.
    due: u64,
    cache_hits: u64,
    missed: bool,
    in_cache: bool,
    min: u64,
    max: u64,
}

impl V2_6_11 {
    /// A file that was just opened.
    pub fn new(config: &ReadaheadConfig) -> Self {
        Self {
            min: config.min_pages.into(),
            max: config.max_pages.into(),
            ..Self::default()
        }
    }

    /// The first window for a call of `pages` pages.
    fn init_size(&self, pages: u64) -> u64 {
        let size = pages.next_power_of_two();
        match size {
            s if s <= self.max / 64 => s * s,
            s if s <= self.max / 4 => self.max / 4,
            _ => self.max,
        }
    }

    fn next_size(&mut self, size: u64) -> u64 {
        if std::mem::take(&mut self.missed) {
            return size.saturating_sub(SHRINK_PAGES).max(self.min);
        }
        let grown = if size < self.max / 16 {
            4 * size
        } else {
            2 * size
        };
        grown.min(self.max)
    }

    /// A call reaches `page` and has `left` pages from there.
    fn call(&mut self, a: &Access, cache: &dyn Lookup) -> Plan {
        self.due = a.page.saturating_add(1);
        if self.prev == Some(a.page) && a.left == 1 && self.current != Current::New {
            return NOTHING;
        }
        let follows = match self.prev {
            Some(prev) => prev.checked_add(1) == Some(a.page),
            None => a.page == 0,
        };
        if self.in_cache {
            self.prev = Some(a.page);
            return NOTHING;
        }
        let pages = a.left.min(self.max);
        self.due = a.page.saturating_add(pages);
        self.prev = Some(self.due - 1);
        let first = self.current == Current::New && a.page == 0;
        match self.current {
            _ if first || self.current == Current::Off && follows => self.begin(a, pages, cache),
            Current::On { start, size } if follows => self.go_on(a, start, size, cache),
            _ => self.random(a, pages, cache),
        }
    }

    /// A new window at the page; for a long call the next one as well.
    fn begin(&mut self, a: &Access, pages: u64, cache: &dyn Lookup) -> Plan {
        let size = self.init_size(pages);
        self.current = Current::On {
            start: a.page,
            size,
        };
        self.ahead = None;
        let window = self.read(a, a.page, size, cache);
        let second = match a.left >= self.max && !self.in_cache {
            true => self.start_ahead(a, cache),
            false => None,
        };
        [window, second]
    }

    /// Readahead off; the call's own pages.
    fn random(&mut self, a: &Access, pages: u64, cache: &dyn Lookup) -> Plan {
        (self.current, self.ahead) = (Current::Off, None);
        [self.read(a, a.page, pages, cache), None]
    }

    fn go_on(&mut self, a: &Access, start: u64, size: u64, cache: &dyn Lookup) -> Plan {
        let mut first = None;
        if self.ahead.is_none() {
            if a.congested {
                return NOTHING;
            }
            self.current = Current::On { start, size };
            first = self.start_ahead(a, cache);
        }
        let reached = |(ahead, _): &(u64, u64)| self.prev.is_some_and(|p| p >= *ahead);
        let Some((start, size)) = self.ahead.filter(reached) else {
            return [first, None];
        };
        self.current = Current::On { start, size };
        self.ahead = None;
        let second = match a.congested {
            true => None,
            false => self.start_ahead(a, cache),
        };
        [first, second]
    }

    /// The window behind the current one.
    fn start_ahead(&mut self, a: &Access, cache: &dyn Lookup) -> Option<Window> {
        let Current::On { start, size } = self.current else {
            return None;
        };
        let (start, size) = (start.saturating_add(size), self.next_size(size));
        self.ahead = Some((start, size));
        self.read(a, start, size, cache)
    }

    /// A window as far as it lies in the file. Counts pages that are cached.
    fn read(&mut self, a: &Access, start: u64, size: u64, cache: &dyn Lookup) -> Option<Window> {
        let pages = size.min(a.file_pages.saturating_sub(start));
        if pages == 0 {
            return None;
        }
        if !(start..start + pages).all(|page| cache.cached(page)) {
            self.cache_hits = 0;
            return Some(Window::plain(start, pages));
        }
        self.cache_hits += pages;
        if self.cache_hits >= MAX_CACHE_HIT {
            self.in_cache = true;
            self.cache_hits = 0;
            (self.current, self.ahead) = (Current::Off, None);
        }
        None
    }
}

impl Readahead for V2_6_11 {
    fn access(&mut self, a: &Access, cache: &dyn Lookup) -> Plan {
        let plan = match a.first || a.page == self.due {
            true => self.call(a, cache),
            false => NOTHING,
        };
        let comes = plan.iter().flatten().any(|w| w.holds(a.page));
        if a.seen == Seen::Missing && !comes {
            self.missed = true;
            self.in_cache = false;
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    fn open() -> V2_6_11 {
        V2_6_11::new(&ReadaheadConfig::linux_2_6_11())
    }

    #[test]
    fn windows_ramp_8_16_32_32_one_ahead_of_the_reader() {
        let expected = [
            (0, window(0, 8)),
            (1, window(8, 16)),
            (8, window(24, 32)),
            (24, window(56, 32)),
            (56, window(88, 32)),
        ];
        assert_eq!(scan(&mut open(), 0..80, 1000), expected);
    }

    #[test]
    fn first_windows_have_8_pages_or_the_maximum() {
        let s = open();
        let sizes = [1, 2, 3, 8, 9, 16, 17, 32].map(|n| s.init_size(n));
        assert_eq!(sizes, [8, 8, 8, 8, 32, 32, 32, 32]);
        let large = V2_6_11 { max: 256, ..s };
        let sizes = [1, 2, 3, 4, 5, 64, 65].map(|n| large.init_size(n));
        assert_eq!(sizes, [1, 4, 16, 16, 64, 64, 256]);
    }

    #[test]
    fn a_long_call_starts_two_windows_and_comes_again_after_each() {
        let mut s = open();
        let plan = s.access(&touch(0, 100, Seen::Missing), &nothing_cached());
        assert_eq!(plan, [Some(window(0, 32)), Some(window(32, 32))]);
        for page in 1..32 {
            let inside = Access {
                first: false,
                ..touch(page, 100 - page, Seen::Ready)
            };
            assert_eq!(s.access(&inside, &nothing_cached()), NOTHING);
        }
        let due = Access {
            first: false,
            ..touch(32, 68, Seen::Ready)
        };
        assert_eq!(
            s.access(&due, &nothing_cached()),
            [None, Some(window(64, 32))]
        );
    }

    #[test]
    fn random_calls_read_their_own_pages_and_two_in_a_row_switch_it_on_again() {
        let mut s = open();
        let mut call =
            |page, pages| s.access(&touch(page, pages, Seen::Missing), &nothing_cached());
        assert_eq!(call(0, 1), [Some(window(0, 8)), None]);
        assert_eq!(call(500, 3), [Some(window(500, 3)), None]);
        assert_eq!(
            call(100, 40),
            [Some(window(100, 32)), None],
            "at most a window"
        );
        assert_eq!(call(700, 1), [Some(window(700, 1)), None]);
        assert_eq!(call(700, 1), NOTHING, "the same page again");
        assert_eq!(call(701, 1), [Some(window(701, 8)), None]);
    }

    #[test]
    fn a_page_evicted_from_a_window_before_its_use_shrinks_the_next_by_two() {
        let mut s = open();
        let _ = scan(&mut s, 0..9, 1000); // current 8..24, ahead 24..56
        let lost = touch(9, 1, Seen::Missing);
        assert_eq!(s.access(&lost, &nothing_cached()), NOTHING);
        assert_eq!(scan(&mut s, 10..25, 1000), [(24, window(56, 30))]);
        assert_eq!(scan(&mut s, 25..57, 1000), [(56, window(86, 32))], "once");
    }

    #[test]
    fn after_256_cached_pages_readahead_sleeps_until_a_miss() {
        let mut s = open();
        let all = |_: u64| true;
        for page in 0..300 {
            assert_eq!(s.access(&touch(page, 1, Seen::Ready), &all), NOTHING);
        }
        assert!(s.in_cache);
        assert_eq!(
            s.access(&touch(300, 1, Seen::Missing), &nothing_cached()),
            NOTHING
        );
        assert!(!s.in_cache);
        let plan = s.access(&touch(301, 1, Seen::Missing), &nothing_cached());
        assert_eq!(plan, [Some(window(301, 8)), None]);
    }

    #[test]
    fn a_congested_queue_skips_the_window_ahead_and_it_comes_later() {
        let mut s = open();
        let _ = s.access(&touch(0, 1, Seen::Missing), &nothing_cached());
        let congested = Access {
            congested: true,
            ..touch(1, 1, Seen::Ready)
        };
        assert_eq!(s.access(&congested, &nothing_cached()), NOTHING);
        let plan = s.access(&touch(2, 1, Seen::Ready), &nothing_cached());
        assert_eq!(plan, [Some(window(8, 16)), None]);
    }
}
