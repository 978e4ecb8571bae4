//! Moving pages after a partition has changed.
//!
//! A [`Plan`] is a cursor over frames that the host lists: it says which have to
//! move, and to which colour each. The host moves as many at a time as it likes.
//! If the colours change meanwhile, the plan notices, says so, and goes on for
//! the new ones; nothing that was moved is moved back without need.

use core::fmt;

use piebald_units::{Color, ColorSet, MAX_COLORS, Pfn, Picos};

use super::{Gone, Partition, PartitionId, Registry, config::Balance, search};
use crate::color_map::ColorMap;

/// Whose pages are moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Owner {
    /// Tasks without a partition: their pages leave colours that were reserved
    /// since. The thesis leaves them there.
    Unreserved,
    /// The tasks of a partition.
    Partition(PartitionId),
}

/// One page that has to move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Move {
    /// Where it is.
    pub frame: Pfn,
    /// Its colour.
    pub from: Color,
    /// The colour that its new frame should have.
    pub to: Color,
}

/// What a call of [`Plan::next`] came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The first `examined` frames are dealt with; the first `moves` entries of the
    /// output say which of them have to move.
    Moves {
        /// Frames of the input that were looked at.
        examined: usize,
        /// Entries of the output that were written.
        moves: usize,
    },
    /// The colours have changed since the last call, and the plan is for the new
    /// ones now: begin again at the first frame. Moves that were handed out and not
    /// made may lead to colours that are not allowed any more; see
    /// [`Plan::holds`].
    Changed,
}

/// What is still to be done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Estimate {
    /// Pages that have to move.
    pub moves: u64,
    /// Time that it takes: [`Config::move_cost`](super::Config::move_cost) for each,
    /// at most 2^64 - 1 ps.
    pub cost: Picos,
}

/// Why there is no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanError {
    /// The partition does not exist any more.
    Gone(PartitionId),
    /// No colour is unreserved, so pages of other tasks have nowhere to go.
    NoColors,
    /// The lent counts are too few.
    ShortCounts {
        /// How many there are.
        len: usize,
        /// How many are needed: one per colour.
        needed: usize,
    },
    /// The colour map has another number of colours than the registry.
    OtherMap {
        /// Those of the map.
        map: u32,
        /// Those of the registry.
        colors: u32,
    },
}

impl From<Gone> for PlanError {
    fn from(gone: Gone) -> Self {
        Self::Gone(gone.0)
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gone(id) => Gone(*id).fmt(f),
            Self::NoColors => f.write_str("every color is reserved: no color to move pages to"),
            Self::ShortCounts { len, needed } => {
                write!(f, "counts has length {len}; allowed: {needed} or more")
            }
            Self::OtherMap { map, colors } => {
                write!(f, "the color map has {map} colors; allowed: {colors}")
            }
        }
    }
}

impl core::error::Error for PlanError {}

/// The colours that a plan leads to.
struct Goal<'a> {
    own: &'a ColorSet,
    nr: u32,
    changed: u64,
}

/// A recolouring plan. *Exclusive*; it reads the registry and changes nothing in it.
///
/// `C` is whatever can be seen as a slice of `u32`, one per colour: frames of each
/// colour. [`Plan::survey`] counts them; without a survey the plan knows only of
/// the frames that it moves itself.
#[derive(Clone, Debug)]
pub struct Plan<C> {
    counts: C,
    owner: Owner,
    /// When the colours that the plan is for were set.
    changed: u64,
    /// Frames that were surveyed.
    surveyed: u64,
    /// Where the search for the next target starts.
    next: u16,
    /// No own colour had fewer frames when all were looked at last.
    floor: u32,
    handed_out: u64,
}

impl<C: AsRef<[u32]> + AsMut<[u32]>> Plan<C> {
    /// A plan for the colours that `owner` has now. Zeroes the counts.
    ///
    /// # Errors
    /// If the owner does not exist or has no colours, or there are fewer counts
    /// than colours.
    pub fn new<P>(registry: &Registry<P>, owner: Owner, mut counts: C) -> Result<Self, PlanError>
    where
        P: AsRef<[Partition]> + AsMut<[Partition]>,
    {
        let changed = goal(registry, owner)?.changed;
        let (len, needed) = (counts.as_ref().len(), registry.colors() as usize);
        if len < needed {
            return Err(PlanError::ShortCounts { len, needed });
        }
        counts.as_mut().fill(0);
        Ok(Self {
            counts,
            owner,
            changed,
            surveyed: 0,
            next: 0,
            floor: 0,
            handed_out: 0,
        })
    }

    /// Counts frames, as many at a time as the host likes, each once. Pages that
    /// come and go later make targets less even and estimates less exact, no more.
    pub fn survey(&mut self, map: &ColorMap, frames: &[Pfn]) {
        for frame in frames {
            if let Some(n) = self.count_mut(map.color(*frame)) {
                *n = n.saturating_add(1);
                self.surveyed = self.surveyed.saturating_add(1);
            }
        }
    }

    /// What is still to be done for the colours that the owner has now, as far as
    /// frames were surveyed. A step per colour.
    ///
    /// # Errors
    /// If the owner does not exist or has no colours any more.
    pub fn estimate<P>(&self, registry: &Registry<P>) -> Result<Estimate, PlanError>
    where
        P: AsRef<[Partition]> + AsMut<[Partition]>,
    {
        let goal = goal(registry, self.owner)?;
        let most = self.most(&goal, registry.config().balance);
        let counts = (0u16..).zip(self.counts.as_ref()).take(MAX_COLORS);
        let moves = counts.map(|(c, n)| match goal.own.contains(Color(c)) {
            true => u64::from(n.saturating_sub(most)),
            false => u64::from(*n),
        });
        let moves = moves.fold(0, u64::saturating_add);
        let cost = registry.config().move_cost.0.saturating_mul(moves);
        let cost = Picos(cost);
        Ok(Estimate { moves, cost })
    }

    /// Goes on with `frames`, those that follow the ones examined before, until all
    /// are examined or `out` is full. Each target is the own colour with the fewest
    /// frames, so the pages end up spread as evenly as the plan may. Per move, at
    /// most a step per own colour.
    ///
    /// # Errors
    /// If the owner does not exist or has no colours any more, or the map is not
    /// the registry's.
    pub fn next<P>(
        &mut self,
        registry: &Registry<P>,
        map: &ColorMap,
        frames: &[Pfn],
        out: &mut [Move],
    ) -> Result<Step, PlanError>
    where
        P: AsRef<[Partition]> + AsMut<[Partition]>,
    {
        let goal = goal(registry, self.owner)?;
        let (of_map, colors) = (map.colors(), registry.colors());
        if of_map != colors {
            let map = of_map;
            return Err(PlanError::OtherMap { map, colors });
        }
        if goal.changed != self.changed {
            (self.changed, self.next, self.floor) = (goal.changed, 0, 0);
            return Ok(Step::Changed);
        }
        let most = self.most(&goal, registry.config().balance);
        Ok(self.fill(&goal, most, map, frames, out))
    }

    /// Writes moves until the frames or the output end.
    fn fill(
        &mut self,
        goal: &Goal<'_>,
        most: u32,
        map: &ColorMap,
        frames: &[Pfn],
        out: &mut [Move],
    ) -> Step {
        let (mut examined, mut moves) = (0usize, 0usize);
        let mut out = out.iter_mut();
        for frame in frames {
            let from = map.color(*frame);
            if !goal.own.contains(from) || self.count(from) > most {
                let Some(slot) = out.next() else {
                    break;
                };
                let Some(to) = self.emptiest(goal) else {
                    break;
                };
                let frame = *frame;
                *slot = Move { frame, from, to };
                self.shift(from, to);
                self.handed_out = self.handed_out.saturating_add(1);
                moves = moves.saturating_add(1);
            }
            examined = examined.saturating_add(1);
        }
        Step::Moves { examined, moves }
    }

    /// Notes that a move was not made (the page is gone, or cannot move).
    pub fn not_made(&mut self, m: &Move) {
        self.shift(m.to, m.from);
        self.floor = self.floor.min(self.count(m.to));
        self.handed_out = self.handed_out.saturating_sub(1);
    }

    /// Does a move that was handed out still lead to a colour of the owner? Worth
    /// asking if the registry may have changed since.
    pub fn holds<P>(&self, registry: &Registry<P>, m: &Move) -> bool
    where
        P: AsRef<[Partition]> + AsMut<[Partition]>,
    {
        goal(registry, self.owner).is_ok_and(|goal| goal.own.contains(m.to))
    }

    /// Moves handed out, less those that were not made.
    pub const fn handed_out(&self) -> u64 {
        self.handed_out
    }

    /// Frames of a colour, as far as the plan knows: surveyed, with all moves made.
    pub fn count(&self, color: Color) -> u32 {
        let count = self.counts.as_ref().get(usize::from(color.0));
        count.copied().unwrap_or(0)
    }

    fn count_mut(&mut self, color: Color) -> Option<&mut u32> {
        self.counts.as_mut().get_mut(usize::from(color.0))
    }

    fn shift(&mut self, from: Color, to: Color) {
        if let Some(n) = self.count_mut(from) {
            *n = n.saturating_sub(1);
        }
        if let Some(n) = self.count_mut(to) {
            *n = n.saturating_add(1);
        }
    }

    /// Most frames that an own colour keeps: any number, or the mean rounded up.
    fn most(&self, goal: &Goal<'_>, balance: Balance) -> u32 {
        match balance {
            Balance::Spread if self.surveyed > 0 => {
                let rest = self.surveyed.saturating_sub(1);
                let mean = rest.checked_div(u64::from(goal.nr)).unwrap_or(0);
                mean.saturating_add(1).try_into().unwrap_or(u32::MAX)
            }
            _ => u32::MAX,
        }
    }

    /// The own colour with the fewest frames; of several, the next in the round.
    fn emptiest(&mut self, goal: &Goal<'_>) -> Option<Color> {
        let mut best: Option<(u32, Color)> = None;
        let mut from = self.next;
        for _ in 0..goal.nr {
            let color = search::round(goal.own, from)?;
            let n = self.count(color);
            if best.is_none_or(|(fewest, _)| n < fewest) {
                best = Some((n, color));
            }
            // None has fewer than the floor.
            if n <= self.floor {
                break;
            }
            from = color.0.saturating_add(1);
        }
        let (fewest, color) = best?;
        self.floor = fewest;
        self.next = color.0.saturating_add(1);
        Some(color)
    }
}

/// The colours that an owner has.
fn goal<P>(registry: &Registry<P>, owner: Owner) -> Result<Goal<'_>, PlanError>
where
    P: AsRef<[Partition]> + AsMut<[Partition]>,
{
    let (own, nr, changed) = match owner {
        Owner::Partition(id) => {
            let p = registry.get(id)?;
            (&p.colors, p.nr_colors, p.changed)
        }
        Owner::Unreserved => {
            let (nr, changed) = (registry.nr_unreserved, registry.unreserved_changed);
            (&registry.unreserved, nr, changed)
        }
    };
    match nr {
        0 => Err(PlanError::NoColors),
        _ => Ok(Goal { own, nr, changed }),
    }
}
