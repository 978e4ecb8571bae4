//! Dealing frames: some that the kernel has at hand, and some of a pool, to one process.

use piebald_units::{Color, Pfn};

use super::{Given, Host, REQUEST, Reach, Seat, even, even::Even};

impl Host {
    /// Deals frames to a process until `out` is full or nobody has the colour whose turn it is. The
    /// first `nr_spare` of `spare` are frames outside the pool, which are dealt if the process may
    /// have them. A process with colours gets these first, as they come, but for colours that are far
    /// ahead of its others. All else is dealt in the order of the round, of what is left of the spare
    /// ones and of a node's pool. What is left then of the spare ones stands first. Answers how many
    /// were dealt.
    pub fn deal(
        &mut self,
        node: usize,
        mut seat: Option<&mut Seat>,
        spare: &mut [Given],
        nr_spare: &mut usize,
        out: &mut [Given],
    ) -> usize {
        // Those that it may have stand first.
        let mut fitting = self.sift(seat.as_deref(), spare, *nr_spare);
        let mut dealt = 0usize;
        if let Some(even) = self.even_of(seat.as_deref_mut()) {
            dealt = deal_evenly(even, spare, fitting, *nr_spare, out);
            *nr_spare = nr_spare.saturating_sub(dealt);
            fitting = fitting.saturating_sub(dealt);
        }
        for slot in out.iter_mut().skip(dealt) {
            let Some(wish) = self.wish(seat.as_deref()) else {
                break;
            };
            let of_wish = |g: &Given| g.color == u32::from(wish.0);
            let at = spare.iter().take(fitting).position(of_wish);
            *slot = match at {
                Some(at) => {
                    let found = spare.get(at).copied().unwrap_or_default();
                    fitting = fitting.saturating_sub(1);
                    *nr_spare = nr_spare.saturating_sub(1);
                    swap(spare, at, fitting);
                    swap(spare, fitting, *nr_spare);
                    self.took(seat.as_deref_mut(), wish);
                    found
                }
                None => match self.take(node, seat.as_deref_mut(), Reach::Turn) {
                    Ok(given) => given,
                    Err(_) => break,
                },
            };
            dealt = dealt.wrapping_add(1);
        }
        dealt
    }

    /// What a set had by colour, as of the sets that there are now; none where a map has more colours than are counted.
    fn even_of<'a>(&self, seat: Option<&'a mut Seat>) -> Option<&'a mut Even> {
        let seat = seat?;
        let colors = self.colors_of(seat)?.len();
        if self.colors() as usize > even::COUNTED {
            return None;
        }
        let version = self.version();
        if !seat.even.is_of(version) {
            seat.even.begin(version, colors);
        }
        Some(&mut seat.even)
    }

    /// Notes the colours of the first `len` frames, and puts those that a process may have in front, in
    /// their order. Answers how many.
    fn sift(&self, seat: Option<&Seat>, frames: &mut [Given], len: usize) -> usize {
        let Ok(allowed) = self.registry.allowed(&REQUEST, self.set_with(seat)) else {
            return 0;
        };
        let (map, set) = (self.map(), allowed.set());
        let mut fitting = 0usize;
        for at in 0..len.min(frames.len()) {
            let Some(given) = frames.get_mut(at) else {
                break;
            };
            let color = map.color(Pfn(given.pfn));
            (given.color, given.fallback) = (u32::from(color.0), 0);
            if set.is_none_or(|set| set.contains(color)) {
                if at != fitting {
                    swap(frames, at, fitting);
                }
                fitting = fitting.wrapping_add(1);
            }
        }
        if self.colors() == 0 { 0 } else { fitting }
    }
}

/// Deals the first `fitting` of `len` frames, but for those whose colour is far ahead. What stays stands
/// first, in its order. Answers how many were dealt.
fn deal_evenly(
    even: &mut Even,
    spare: &mut [Given],
    fitting: usize,
    len: usize,
    out: &mut [Given],
) -> usize {
    let (mut dealt, mut kept) = (0usize, 0usize);
    for at in 0..len {
        let Some(given) = spare.get(at).copied() else {
            break;
        };
        let color = Color(given.color as u16);
        if at < fitting
            && even.may(color)
            && let Some(slot) = out.get_mut(dealt)
        {
            *slot = given;
            dealt = dealt.wrapping_add(1);
            even.took(color);
        } else if let Some(slot) = spare.get_mut(kept) {
            *slot = given;
            kept = kept.wrapping_add(1);
        }
    }
    dealt
}

/// Exchanges two frames of a slice, if it has both.
fn swap(frames: &mut [Given], one: usize, other: usize) {
    let (Some(a), Some(b)) = (frames.get(one).copied(), frames.get(other).copied()) else {
        return;
    };
    for (at, given) in [(one, b), (other, a)] {
        if let Some(slot) = frames.get_mut(at) {
            *slot = given;
        }
    }
}
