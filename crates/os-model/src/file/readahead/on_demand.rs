//! On-demand readahead (2.6.23 and later): windows are started by misses and by
//! marked pages.
//!
//! A page that is missing is looked at together with the last window and the last
//! call. In the window's sequence it starts the next window; next to the last call
//! it starts a first one; otherwise its call's pages alone are read. Every window
//! marks a page; whoever touches it starts the next window before it is needed.
//!
//! The order of these questions differs by version:
//! * 2.6.30: sequence; random; a mark without a window; first window.
//! * 2.6.32 and 6.x: page 0 first of all; sequence; a mark without a window; first
//!   window; history in the cache (*context*); random. \[M: order\]
//!
//! 2.6.32 and 6.x also enlarge a window that would put its mark on its own first
//! page. \[M\] Not modelled: large folios of 6.x; every page is a folio of order 0.

use super::{Access, Lookup, NOTHING, Plan, Readahead, ReadaheadConfig, Seen, Window};

/// Which rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Version {
    /// 2.6.30.
    V2_6_30,
    /// 2.6.32: context readahead.
    V2_6_32,
    /// 6.x.
    V6,
}

/// State of an open file, in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnDemand {
    version: Version,
    start: u64,
    size: u64,
    async_size: u64,
    /// Last page of the last call.
    prev: Option<u64>,
    max: u64,
}

impl OnDemand {
    /// A file that was just opened.
    pub fn new(config: &ReadaheadConfig, version: Version) -> Self {
        Self {
            version,
            start: 0,
            size: 0,
            async_size: 0,
            prev: None,
            max: config.max_pages.into(),
        }
    }

    /// The first window for a call of `pages` pages.
    fn init_size(&self, pages: u64) -> u64 {
        let size = pages.checked_next_power_of_two().unwrap_or(self.max);
        match size {
            s if s <= self.max / 32 => 4 * s,
            s if s <= self.max / 4 => 2 * s,
            _ => self.max,
        }
    }

    fn next_size(&self, size: u64) -> u64 {
        let grown = if size < self.max / 16 {
            4 * size
        } else {
            2 * size
        };
        grown.min(self.max)
    }

    fn on_demand(&mut self, a: &Access, cache: &dyn Lookup) -> Plan {
        let early = self.version == Version::V2_6_30;
        if a.page == 0 && !early {
            return self.first(a);
        }
        if self.in_sequence(a.page) {
            self.start = self.start.saturating_add(self.size);
            self.size = self.next_size(self.size);
            self.async_size = self.size;
            return self.read(a);
        }
        if a.marked {
            return self.behind_mark(a, cache);
        }
        if self.is_sequential(a) {
            return self.first(a);
        }
        if !early && self.context(a, cache) {
            return self.read(a);
        }
        [Some(Window::plain(a.page, a.left)), None]
    }

    /// The page is the mark of the last window, or follows it.
    fn in_sequence(&self, page: u64) -> bool {
        let end = self.start.saturating_add(self.size);
        page > 0 && (page == end - self.async_size || page == end)
    }

    fn is_sequential(&self, a: &Access) -> bool {
        let near = match self.prev {
            None => a.page == 0,
            Some(prev) => a.page.checked_sub(prev).is_some_and(|d| d <= 1),
        };
        near || a.left > self.max
    }

    fn first(&mut self, a: &Access) -> Plan {
        self.start = a.page;
        self.size = self.init_size(a.left);
        self.async_size = match self.size > a.left {
            true => self.size - a.left,
            false => self.size,
        };
        self.read(a)
    }

    /// A mark that another stream of the same file left: the next hole behind it
    /// begins a window as long as if this stream had read so far.
    fn behind_mark(&mut self, a: &Access, cache: &dyn Lookup) -> Plan {
        let ahead = 1..=self.max;
        let hole = ahead
            .map(|d| a.page.saturating_add(d))
            .find(|&p| !cache.cached(p));
        let Some(hole) = hole else { return NOTHING };
        self.start = hole;
        self.size = self.next_size((hole - a.page).saturating_add(a.left));
        self.async_size = self.size;
        self.read(a)
    }

    /// Pages before this one are in the cache: somebody reads in sequence.
    fn context(&mut self, a: &Access, cache: &dyn Lookup) -> bool {
        let before = (0..a.page).rev().take(self.max as usize);
        let history = before.take_while(|&p| cache.cached(p)).count() as u64;
        match self.version {
            Version::V2_6_32 if history > 0 => {
                let weight = if history >= a.page {
                    2 * history
                } else {
                    history
                };
                self.size = self.init_size(weight.saturating_add(a.left));
                self.async_size = self.size;
            }
            Version::V6 if history > a.left => {
                self.size = history.saturating_add(a.left).min(self.max);
                self.async_size = 1;
            }
            _ => return false,
        }
        self.start = a.page;
        true
    }

    fn read(&mut self, a: &Access) -> Plan {
        if self.version != Version::V2_6_30 && a.page == self.start && self.size == self.async_size
        {
            self.enlarge();
        }
        let mark = self.start.saturating_add(self.size - self.async_size);
        [
            Some(Window {
                start: self.start,
                pages: self.size,
                mark: Some(mark),
            }),
            None,
        ]
    }

    /// The mark would be on the page that is read now: both windows at once.
    fn enlarge(&mut self) {
        let next = self.next_size(self.size);
        if self.version == Version::V6 && self.size + next > self.max {
            (self.size, self.async_size) = (self.max, self.max / 2);
        } else {
            (self.size, self.async_size) = (self.size + next, next);
        }
    }
}

impl Readahead for OnDemand {
    fn access(&mut self, a: &Access, cache: &dyn Lookup) -> Plan {
        let asked = match a.seen {
            Seen::Missing => true,
            _ => a.marked && !a.congested,
        };
        let plan = if asked {
            self.on_demand(a, cache)
        } else {
            NOTHING
        };
        if a.left == 1 {
            self.prev = Some(a.page);
        }
        plan
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    fn open(version: Version) -> OnDemand {
        OnDemand::new(&ReadaheadConfig::linux_2_6_30(), version)
    }

    fn marked(start: u64, pages: u64, mark: u64) -> Window {
        Window {
            mark: Some(mark),
            ..window(start, pages)
        }
    }

    const ALL: [Version; 3] = [Version::V2_6_30, Version::V2_6_32, Version::V6];

    #[test]
    fn windows_ramp_4_8_16_32_32_and_start_at_the_marks() {
        let expected = [
            (0, marked(0, 4, 1)),
            (1, marked(4, 8, 4)),
            (4, marked(12, 16, 12)),
            (12, marked(28, 32, 28)),
            (28, marked(60, 32, 60)),
            (60, marked(92, 32, 92)),
        ];
        for version in ALL {
            assert_eq!(
                scan(&mut open(version), 0..80, 1000),
                expected,
                "{version:?}"
            );
        }
    }

    #[test]
    fn first_windows_are_four_or_two_times_the_call_or_the_maximum() {
        let s = open(Version::V2_6_30);
        let sizes = [1, 2, 3, 4, 5, 8, 9, 16, 32, 100].map(|n| s.init_size(n));
        assert_eq!(sizes, [4, 4, 8, 8, 16, 16, 32, 32, 32, 32]);
    }

    #[test]
    fn random_calls_read_their_own_pages_and_neighbours_begin_a_window() {
        for version in ALL {
            let mut s = open(version);
            let mut call =
                |page, pages| s.access(&touch(page, pages, Seen::Missing), &nothing_cached());
            assert_eq!(call(500, 1), [Some(window(500, 1)), None]);
            assert_eq!(call(100, 1), [Some(window(100, 1)), None]);
            assert_eq!(call(101, 1), [Some(marked(101, 4, 102)), None]);
            assert_eq!(call(300, 33).map(|w| w.map(|w| w.start)), [Some(300), None]);
        }
    }

    #[test]
    fn a_call_of_the_largest_window_marks_its_first_page_or_gets_more_at_once() {
        let first = |version| open(version).access(&touch(0, 32, Seen::Missing), &nothing_cached());
        assert_eq!(first(Version::V2_6_30), [Some(marked(0, 32, 0)), None]);
        assert_eq!(first(Version::V2_6_32), [Some(marked(0, 64, 32)), None]);
        assert_eq!(first(Version::V6), [Some(marked(0, 32, 16)), None]);
    }

    #[test]
    fn a_mark_of_another_stream_continues_behind_what_is_cached() {
        for version in ALL {
            let mut s = open(version);
            let cached = |page| page < 110;
            let hit = Access {
                marked: true,
                ..touch(100, 1, Seen::Ready)
            };
            // (110 - 100) + 1 = 11 pages, doubled.
            assert_eq!(s.access(&hit, &cached), [Some(marked(110, 22, 110)), None]);
            let mut s = open(version);
            assert_eq!(
                s.access(&hit, &|_| true),
                NOTHING,
                "no hole within a window"
            );
            let congested = Access {
                congested: true,
                ..hit
            };
            assert_eq!(s.access(&congested, &cached), NOTHING);
        }
    }

    #[test]
    fn later_versions_take_cached_pages_before_a_miss_for_a_stream() {
        let plan = |version, history: u64| {
            let cached = move |page| (100 - history..100).contains(&page);
            open(version).access(&touch(100, 1, Seen::Missing), &cached)
        };
        assert_eq!(plan(Version::V2_6_30, 6), [Some(window(100, 1)), None]);
        // 2.6.32: 6 + 1 -> 8 -> 16, and the window behind it.
        assert_eq!(
            plan(Version::V2_6_32, 6),
            [Some(marked(100, 48, 116)), None]
        );
        assert_eq!(plan(Version::V6, 6), [Some(marked(100, 7, 106)), None]);
        assert_eq!(
            plan(Version::V6, 1),
            [Some(window(100, 1)), None],
            "too short"
        );
    }
}
