//! The colours of requests, and the pages that have to move, when they are touched next.

use core::borrow::Borrow;

use piebald_units::{Color, ColorSet, CoreId, MAX_COLORS, Picos};

use super::{Gone, Manager, Program, ProgramId, config::Interleave};
use crate::{
    color_map::ColorMap,
    contract::{Asker, Cause, FrameRequest, Mode, Purpose},
};

/// Where a program's round through its colours stands. The host keeps one for each
/// program or thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Turn {
    next: u16,
}

impl Turn {
    /// Before the first round.
    pub const START: Self = Self { next: 0 };

    /// Notes the colour of the frame that was granted: the next one is wished for next.
    pub const fn took(&mut self, color: Color) {
        self.next = color.0.saturating_add(1);
    }
}

/// A page that is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The colour of its frame.
    pub from: Color,
    /// The colour that its new frame should have.
    pub to: Color,
}

/// Pages that lie in colours that are not their program's any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Number of pages that would move if all were touched.
    pub pages: u64,
    /// Time that it would take, at most 2^64 - 1 ps.
    pub cost: Picos,
}

impl<M: Borrow<ColorMap>, P: AsRef<[Program]> + AsMut<[Program]>> Manager<M, P> {
    /// A request of a program's with its colours, and one that is wished for unless one
    /// is already: the next of the round, or for several threads what [`Interleave`] says, a
    /// random one for one, which is all that `random` is used for. After the grant, tell the [`Turn`] which colour it
    /// [took](Turn::took). The kernel's own requests may have every colour and are not
    /// changed. At most 64 words are read, by core each colour.
    ///
    /// # Errors
    /// If the program has left.
    pub fn prepare<'a>(
        &'a self,
        request: &FrameRequest<'a>,
        id: ProgramId,
        turn: Turn,
        random: u64,
    ) -> Result<FrameRequest<'a>, Gone> {
        let program = self.get(id)?;
        if is_kernel(request) {
            return Ok(*request);
        }
        let interleave = match program.threads {
            0 | 1 => Interleave::RoundRobin,
            _ => self.config.interleave,
        };
        let wish = || match interleave {
            Interleave::Random => nth(&program.colors, random),
            Interleave::RoundRobin => round(&program.colors, turn.next),
            Interleave::ByCore => self.in_cell_of(request.core, program, turn),
        };
        Ok(FrameRequest {
            allowed: Some(&program.colors),
            wish: request.wish.or_else(wish),
            mode: match program.reach {
                super::Reach::All => Mode::Hint,
                _ => self.config.mode,
            },
            ..*request
        })
    }

    /// The next colour of the round in the cell of a core; cells go round as well.
    fn in_cell_of(&self, core: CoreId, program: &Program, turn: Turn) -> Option<Color> {
        let scheme = &self.layout.scheme;
        let cell = u32::from(core.0) & scheme.cells().wrapping_sub(1);
        let own = || program.colors.iter().filter(|c| scheme.cell(*c) == cell);
        let later = own().find(|c| c.0 >= turn.next);
        later
            .or_else(|| own().next())
            .or_else(|| round(&program.colors, turn.next))
    }

    /// A page of a program is touched: does it have to move? Lazy migration (section
    /// 5.3): asked when a page is touched, only pages in use ever move. The move counts
    /// as made; if it was not, say so with [`Manager::not_moved`].
    ///
    /// # Errors
    /// If the program has left.
    pub fn touched(&mut self, id: ProgramId, from: Color) -> Result<Option<Move>, Gone> {
        let program = self.get_mut(id)?;
        if program.colors.contains(from) {
            return Ok(None);
        }
        let Some(to) = round(&program.colors, program.next) else {
            return Ok(None);
        };
        program.next = to.0.saturating_add(1);
        self.counters.moves = self.counters.moves.saturating_add(1);
        Ok(Some(Move { from, to }))
    }

    /// A page did not move after all: it is pinned, shared, or no frame was free. It is
    /// asked about again when it is touched next.
    pub const fn not_moved(&mut self) {
        self.counters.moves = self.counters.moves.saturating_sub(1);
    }

    /// Time that moving so many pages takes.
    pub const fn cost(&self, pages: u64) -> Picos {
        Picos(self.config.move_cost.0.saturating_mul(pages))
    }

    /// What would move of a program with so many pages of each colour. A step per colour.
    ///
    /// # Errors
    /// If the program has left.
    pub fn estimate(&self, id: ProgramId, pages: &[u32]) -> Result<Estimate, Gone> {
        let colors = &self.get(id)?.colors;
        let counted = (0u16..).zip(pages).take(MAX_COLORS);
        let outside = counted.filter(|(c, _)| !colors.contains(Color(*c)));
        let pages = outside.fold(0u64, |sum, (_, n)| sum.saturating_add(u64::from(*n)));
        let cost = self.cost(pages);
        Ok(Estimate { pages, cost })
    }
}

/// Does a request ask on the kernel's behalf?
const fn is_kernel(request: &FrameRequest<'_>) -> bool {
    let purpose = matches!(
        request.purpose,
        Purpose::Kernel | Purpose::Reclaimable | Purpose::Dma
    );
    purpose || matches!(request.asker, Asker::Kernel) || matches!(request.cause, Cause::Kernel)
}

/// The lowest colour at or above `from`, beginning again at 0.
fn round(set: &ColorSet, from: u16) -> Option<Color> {
    at_or_after(set, from).or_else(|| at_or_after(set, 0))
}

fn at_or_after(set: &ColorSet, from: u16) -> Option<Color> {
    let first = usize::from(from >> 6);
    let here = set.word(first) & u64::MAX.wrapping_shl(u32::from(from & 63));
    if here != 0 {
        return Some(color_in(first, here));
    }
    let later = (first.saturating_add(1)..MAX_COLORS / 64).map(|w| (w, set.word(w)));
    let mut later = later.filter(|(_, bits)| *bits != 0);
    later.next().map(|(w, bits)| color_in(w, bits))
}

/// The lowest colour of a word that is not zero.
const fn color_in(word: usize, bits: u64) -> Color {
    Color((word << 6) as u16 | bits.trailing_zeros() as u16)
}

/// The colour of a set that a random number stands for, each as likely as any other.
fn nth(set: &ColorSet, random: u64) -> Option<Color> {
    let mut left = random.checked_rem(u64::from(set.len()))? as u32;
    for word in 0..MAX_COLORS / 64 {
        let mut bits = set.word(word);
        if left >= bits.count_ones() {
            left = left.saturating_sub(bits.count_ones());
            continue;
        }
        for _ in 0..left {
            bits &= bits.wrapping_sub(1);
        }
        return Some(color_in(word, bits));
    }
    None
}
