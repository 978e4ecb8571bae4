//! Readahead of Linux 2.4, as the simulator AccuSim has it (Butt, Gniady and Hu,
//! SIGMETRICS 2005, the DULO paper's reference \[5\]).
//!
//! One window per open file. A page that is still being read when it is used
//! (*sync*) begins a new window behind itself; a page that is ready (*async*) and
//! lies in the last window makes the next one start. The length doubles with every
//! window up to the largest. A call outside the window begins anew.
//!
//! A sync window and the page that is demanded are read as one window here; AccuSim
//! submits the page first and clusters what follows with it, which is the same.

use super::{Access, Lookup, NOTHING, Plan, Readahead, ReadaheadConfig, Seen, Window};

/// State of an open file, in pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct V2_4 {
    /// The page behind the last one read ahead.
    raend: u64,
    /// Length of the last window.
    ralen: u64,
    /// Length of the last two.
    rawin: u64,
    /// Length of the next.
    ramax: u64,
    ok: bool,
    min: u64,
    max: u64,
}

impl V2_4 {
    /// A file that was just opened.
    pub fn new(config: &ReadaheadConfig) -> Self {
        Self {
            min: config.min_pages.into(),
            max: config.max_pages.into(),
            ..Self::default()
        }
    }

    /// A call begins.
    fn begin(&mut self, a: &Access) {
        self.ok = a.page <= self.raend && a.page.saturating_add(self.rawin) >= self.raend;
        if !self.ok {
            (self.raend, self.ralen, self.rawin, self.ramax) = (0, 0, 0, 0);
        }
        if a.peek {
            self.ramax = 0;
            return;
        }
        let needed = (a.bytes >> piebald_units::PAGE_SHIFT).saturating_add(1);
        let least = if self.ok { self.min } else { 0 };
        self.ramax = self.ramax.max(needed).max(least).min(self.max);
    }

    fn sync(&mut self, a: &Access) -> u64 {
        let outside = a.page >= self.raend || a.page.saturating_add(self.rawin) < self.raend;
        if self.ralen != 0 && !outside {
            return 0;
        }
        (self.raend, self.rawin, self.ralen) = (a.page, 0, 1);
        self.ramax
    }

    fn async_(&mut self, a: &Access) -> u64 {
        let near = a.page <= self.raend && a.page.saturating_add(self.ralen) >= self.raend;
        if !self.ok || self.ramax == 0 || self.raend == 0 || !near {
            return 0;
        }
        self.raend -= 1;
        (self.rawin, self.ralen) = (self.ralen, 0);
        self.ramax + 1
    }

    /// Up to `most` pages behind `raend`, within the file.
    fn issue(&mut self, most: u64, file_pages: u64) -> Option<Window> {
        let first = self.raend.saturating_add(1);
        let ahead = most.min(file_pages.saturating_sub(first));
        if ahead == 0 {
            return None;
        }
        self.ralen += ahead;
        self.rawin += self.ralen;
        self.raend += ahead + 1;
        self.ramax = (2 * self.ramax).min(self.max);
        Some(Window::plain(first, ahead))
    }
}

impl Readahead for V2_4 {
    fn access(&mut self, a: &Access, _cache: &dyn Lookup) -> Plan {
        if a.first {
            self.begin(a);
        }
        let most = match a.seen {
            Seen::Ready => self.async_(a),
            Seen::Missing | Seen::InFlight => self.sync(a),
        };
        let Some(window) = self.issue(most, a.file_pages) else {
            return NOTHING;
        };
        let window = match a.seen {
            Seen::Ready => window,
            _ => Window::plain(a.page, window.pages + 1),
        };
        [Some(window), None]
    }
}

#[cfg(test)]
mod tests {
    use super::{super::tests::*, *};

    fn open() -> V2_4 {
        V2_4::new(&ReadaheadConfig::linux_2_4())
    }

    #[test]
    fn a_sequential_reader_gets_windows_that_double_before_it_needs_them() {
        let windows = scan(&mut open(), 0..120, 1000);
        let expected = [
            (0, window(0, 4)),
            (1, window(4, 7)),
            (4, window(11, 13)),
            (11, window(24, 25)),
            (24, window(49, 33)),
            (49, window(82, 33)),
            (82, window(115, 33)),
            (115, window(148, 33)),
        ];
        assert_eq!(windows, expected);
    }

    #[test]
    fn a_file_of_four_blocks_is_read_whole_at_its_first_block() {
        // Table 1 of the DULO paper.
        assert_eq!(scan(&mut open(), 0..4, 4), [(0, window(0, 4))]);
    }

    #[test]
    fn a_look_at_the_header_reads_nothing_ahead() {
        let peek = Access {
            peek: true,
            bytes: 2048,
            ..touch(0, 1, Seen::Missing)
        };
        assert_eq!(open().access(&peek, &nothing_cached()), NOTHING);
    }

    #[test]
    fn a_call_outside_the_window_begins_anew_with_the_pages_it_needs() {
        let mut s = open();
        let _ = scan(&mut s, 0..30, 1000);
        let plan = s.access(&touch(500, 1, Seen::Missing), &nothing_cached());
        assert_eq!(
            plan,
            [Some(window(500, 3)), None],
            "its page and (4096 / 4096) + 1"
        );
        // The next page is in the window, so that three are the least from here on.
        let plan = s.access(&touch(501, 1, Seen::Ready), &nothing_cached());
        assert_eq!(plan, [Some(window(503, 5)), None]);
        let plan = s.access(&touch(20, 1, Seen::Missing), &nothing_cached());
        assert_eq!(
            plan,
            [Some(window(20, 3)), None],
            "backwards is outside, too"
        );
    }

    #[test]
    fn a_large_call_gets_the_largest_window_at_once() {
        let plan = open().access(&touch(0, 64, Seen::Missing), &nothing_cached());
        assert_eq!(plan, [Some(window(0, 33)), None]);
    }
}
