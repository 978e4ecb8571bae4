//! What comes into the zone and leaves it other than by a fault.

use core::fmt;

use piebald_units::{Color, Pfn, Picos};

use super::{Holds, Srm, Store, search::View, zone::link};
use crate::contract::replacement::{PageRef, Replacement, Touch};

/// Why a frame was not added. The zone is unchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddError {
    /// The zone does not cover the frame.
    Foreign(Pfn),
    /// The frame is in the zone already.
    Twice(Pfn),
}

impl fmt::Display for AddError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Foreign(frame) => write!(f, "{frame} is not one of the zone's frames"),
            Self::Twice(frame) => write!(f, "{frame} is in the zone already"),
        }
    }
}

impl core::error::Error for AddError {}

/// What a look at the cold end of a replacement order brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pulled {
    /// Pages that are in the zone now.
    pub pages: u32,
    /// Pages that the order proposed.
    pub seen: u32,
}

impl<S: Store> Srm<S> {
    /// Should the zone get more pages? Some colour has no more than T_l, and the zone
    /// is below [`Limits::max_pages`](super::Limits::max_pages). A host may ask at any
    /// time and refill in the background.
    #[inline]
    pub const fn wants_pages(&self) -> bool {
        self.books.short > 0 && self.books.pages < self.limits.max_pages
    }

    /// Pages without which the zone wants more, whatever their colours: what all short
    /// colours lack to one above T_l, or what there is room for. 0 if it wants none. A
    /// host that detaches so many at most has none to put back. Looks at each colour.
    pub fn missing_pages(&self) -> u32 {
        let threshold = self.limits.threshold;
        let room = self.limits.max_pages.saturating_sub(self.books.pages);
        let colors = self.store.parts().map.colors() as usize;
        let lists = self.store.parts().lists.iter().take(colors);
        let short = lists.filter(|list| list.len <= threshold);
        let lacks = short.map(|list| threshold.saturating_sub(list.len).saturating_add(1));
        lacks.fold(0, u32::saturating_add).min(room)
    }

    /// The next colour from `from` on, going round, that has no more than T_l pages, and
    /// how many more would be one above.
    pub fn short_color(&self, from: Color) -> Option<(Color, u32)> {
        let color = View::new(self.store.parts(), None).short(from)?;
        let missing = self.limits.threshold.saturating_sub(self.list_len(color));
        Some((color, missing.saturating_add(1)))
    }

    /// A free frame comes into the zone. It is taken before others of its colour.
    ///
    /// # Errors
    /// If the zone does not cover it or has it.
    pub fn add_free(&mut self, frame: Pfn) -> Result<(), AddError> {
        self.add(frame, Holds::Free)
    }

    /// The frame of a page that the host has detached from its replacement order comes
    /// into the zone. It is taken after others of its colour. The page must be such
    /// that it can be evicted without waiting: clean, not locked, not pinned.
    ///
    /// # Errors
    /// If the zone does not cover it or has it.
    pub fn add_cold(&mut self, frame: Pfn) -> Result<(), AddError> {
        self.add(frame, Holds::Cold)
    }

    fn add(&mut self, frame: Pfn, holds: Holds) -> Result<(), AddError> {
        let at = self.index(frame).ok_or(AddError::Foreign(frame))?;
        let mut parts = self.store.parts_mut();
        if link(parts.links, at).holds().is_some() {
            return Err(AddError::Twice(frame));
        }
        let color = parts.map.color(frame);
        self.books.push(&mut parts, color, at, holds);
        self.counters.added(holds);
        Ok(())
    }

    /// What a frame holds; `None` if it is not in the zone.
    #[inline]
    pub fn holds(&self, frame: Pfn) -> Option<Holds> {
        link(self.store.parts().links, self.index(frame)?).holds()
    }

    /// A page was used: if its frame is in the zone, it leaves it, and the host
    /// reattaches the page to its replacement order (section 3.2: "when a page in the
    /// colored zone is hit, it is moved to the normal zone"). See
    /// [`used`](Self::used) for all of this in one call.
    #[inline]
    pub fn hit(&mut self, frame: Pfn) -> bool {
        let is_hit = self.holds(frame) == Some(Holds::Cold) && self.remove(frame).is_some();
        self.counters.hits = self.counters.hits.wrapping_add(u64::from(is_hit));
        is_hit
    }

    /// A frame leaves the zone without a fault: its page is deleted or written to, its
    /// memory taken away. `None` if it is not in the zone.
    pub fn remove(&mut self, frame: Pfn) -> Option<Holds> {
        let at = self.index(frame)?;
        let mut parts = self.store.parts_mut();
        let color = parts.map.color(frame);
        self.books.unlink(&mut parts, color, at)
    }

    /// Fills short colours with free frames, as many as `most`. `give` looks for one of a
    /// colour; `None` means that there is none to spare, and the next colour is asked
    /// for. A frame of another colour than asked for is added to its own. Returns how
    /// many came.
    ///
    /// # Errors
    /// The first frame that could not be added; the host keeps it.
    pub fn fill(
        &mut self,
        most: u32,
        mut give: impl FnMut(Color) -> Option<Pfn>,
    ) -> Result<u32, AddError> {
        let mut came = 0u32;
        let mut from = Color(0);
        // At most once round the colours.
        for _ in 0..self.store.parts().map.colors() {
            let Some((color, missing)) = self.short_color(from) else {
                break;
            };
            if color < from {
                break;
            }
            for _ in 0..missing {
                if came >= most || !self.wants_pages() {
                    return Ok(came);
                }
                let Some(frame) = give(color) else {
                    break;
                };
                self.add_free(frame)?;
                came = came.saturating_add(1);
            }
            from = Color(color.0.saturating_add(1));
        }
        Ok(came)
    }

    /// Moves pages from the cold end of a replacement order into the zone: what
    /// `batch` has room for and the zone still wants. `frame_of` tells the frame of a
    /// page that may go, `None` for one that may not (dirty, locked, pinned, not a page
    /// that can be evicted at once); pages whose frame the zone does not cover stay.
    ///
    /// To refill, call it until [`wants_pages`](Self::wants_pages) is false or no page
    /// came; then go on with [`Supply::Spent`](super::Supply::Spent). Who has more
    /// pages at the cold end that may not go than `batch` has room for needs a larger
    /// one.
    pub fn pull<R: Replacement + ?Sized>(
        &mut self,
        order: &mut R,
        batch: &mut [PageRef],
        mut frame_of: impl FnMut(PageRef) -> Option<Pfn>,
    ) -> Pulled {
        let mut pulled = Pulled::default();
        if !self.wants_pages() {
            return pulled;
        }
        let proposed = order.propose(batch);
        for page in batch.iter().take(proposed).copied() {
            if !self.wants_pages() {
                break;
            }
            pulled.seen = pulled.seen.saturating_add(1);
            let added = frame_of(page).map(|frame| self.add_cold(frame));
            if let Some(Ok(())) = added {
                order.detach(page);
                pulled.pages = pulled.pages.saturating_add(1);
            }
        }
        pulled
    }

    /// A page in memory was used, wherever it is: the replacement order learns of it, and
    /// if the page's frame is in the zone, the page goes back to the order.
    #[inline]
    pub fn used<R: Replacement + ?Sized>(
        &mut self,
        order: &mut R,
        page: PageRef,
        frame: Pfn,
        touch: Touch,
        now: Picos,
    ) {
        order.hit(page, touch, now);
        if self.hit(frame) {
            order.reattach(page);
        }
    }

    /// The number of a frame in the table.
    #[inline]
    fn index(&self, frame: Pfn) -> Option<u32> {
        let at = frame.0.checked_sub(self.origin.0)?;
        (at < u64::from(self.frames)).then_some(at as u32)
    }
}
