//! Which colours to take and to give back: pure operations on two sets.
//!
//! Every function moves colours from one set to the other and is called only
//! when the first holds enough of them.

use piebald_units::{Color, ColorSet, MAX_COLORS};

use super::config::Fit;

/// The lowest colour of a set at or above `from`: at most two words are read.
pub(super) fn at_or_after(set: &ColorSet, from: u16) -> Option<Color> {
    let word = u32::from(from >> 6);
    let here = set.word(word as usize) & u64::MAX.wrapping_shl(u32::from(from & 63));
    if here != 0 {
        return Some(lowest(word, here));
    }
    let beyond = u64::MAX.checked_shl(word.saturating_add(1)).unwrap_or(0);
    let later = set.summary() & beyond;
    if later == 0 {
        return None;
    }
    let word = later.trailing_zeros();
    Some(lowest(word, set.word(word as usize)))
}

/// The lowest colour of a word that is not zero.
fn lowest(word: u32, bits: u64) -> Color {
    Color((word << 6 | bits.trailing_zeros()) as u16)
}

/// The next colour of a set from `from` on, beginning again at 0: the thesis's
/// `find_color_round`, which is not printed there. At most four words are read.
pub(super) fn round(set: &ColorSet, from: u16) -> Option<Color> {
    at_or_after(set, from).or_else(|| at_or_after(set, 0))
}

fn pass(from: &mut ColorSet, to: &mut ColorSet, color: Color) {
    from.remove(color);
    to.insert(color);
}

/// The start of the lowest run of `n` colours, at a multiple of `align`. Visits
/// each colour of the set at most once.
fn find_run(set: &ColorSet, n: u32, align: u32) -> Option<u32> {
    let mut run: Option<(u32, u32)> = None;
    for color in set.iter() {
        let c = u32::from(color.0);
        let start = match run {
            Some((start, last)) if last.saturating_add(1) == c => start,
            _ => c,
        };
        run = Some((start, c));
        let aligned = start.checked_next_multiple_of(align).unwrap_or(u32::MAX);
        if c.saturating_add(1).saturating_sub(aligned) >= n && aligned <= c {
            return Some(aligned);
        }
    }
    None
}

/// Takes `n` free colours. At most three visits of each colour.
pub(super) fn take(free: &mut ColorSet, own: &mut ColorSet, n: u32, fit: Fit) {
    let align = match n {
        0 => return,
        _ => 1u32.wrapping_shl(n.ilog2()),
    };
    let start = match fit {
        Fit::FirstRun => find_run(free, n, 1),
        Fit::AlignedRun => find_run(free, n, align).or_else(|| find_run(free, n, 1)),
        Fit::Scattered => None,
    };
    let mut next = start.unwrap_or(0) as u16;
    for _ in 0..n {
        let Some(color) = at_or_after(free, next) else {
            return;
        };
        pass(free, own, color);
        next = color.0;
    }
}

/// Beyond all colours of two sets, rounded up to a word.
fn end(a: &ColorSet, b: &ColorSet) -> u16 {
    let words = 64u32.saturating_sub((a.summary() | b.summary()).leading_zeros());
    (words << 6) as u16
}

/// Takes `n` free colours for a set that has some: first those that lengthen its
/// runs upwards, the lowest run first, then downwards, then as [`take`]. At most
/// five visits of each colour.
pub(super) fn extend(free: &mut ColorSet, own: &mut ColorSet, n: u32, fit: Fit) {
    let mut left = n;
    let end = end(free, own);
    for c in 1..end {
        if left > 0 && own.contains(Color(c.wrapping_sub(1))) && free.contains(Color(c)) {
            pass(free, own, Color(c));
            left = left.saturating_sub(1);
        }
    }
    for c in (1..end).rev() {
        if left > 0 && own.contains(Color(c)) && free.contains(Color(c.wrapping_sub(1))) {
            pass(free, own, Color(c.wrapping_sub(1)));
            left = left.saturating_sub(1);
        }
    }
    take(free, own, left, fit);
}

/// Gives `n` colours back: first those without a neighbour, then the highest.
/// At most two visits of each colour.
pub(super) fn shed(own: &mut ColorSet, free: &mut ColorSet, n: u32) {
    let mut left = n;
    for alone in [true, false] {
        for c in (0..end(own, own)).rev() {
            if left > 0 && own.contains(Color(c)) && (!alone || is_alone(own, c)) {
                pass(own, free, Color(c));
                left = left.saturating_sub(1);
            }
        }
    }
}

/// Does a set lack both neighbours of a colour?
fn is_alone(set: &ColorSet, c: u16) -> bool {
    let below = c.checked_sub(1).is_some_and(|b| set.contains(Color(b)));
    !below && !set.contains(Color(c.saturating_add(1)))
}

/// Is the set one unbroken run, or empty?
pub(super) fn is_run(set: &ColorSet) -> bool {
    let first = at_or_after(set, 0).map_or(0, |c| c.0);
    let mut colors = set.iter().zip(first..);
    colors.all(|(c, expected)| c.0 == expected)
}

/// The colours below `colors` in a word of a set.
pub(super) fn word_of(colors: u32, word: usize) -> u64 {
    let first = (word as u32).saturating_mul(64);
    match colors.saturating_sub(first) {
        n @ 0..64 => 1u64.wrapping_shl(n).wrapping_sub(1),
        _ => u64::MAX,
    }
}

/// Makes `own` the set `new`; `free` gets what is given back and lends the rest.
pub(super) fn replace(own: &mut ColorSet, free: &mut ColorSet, new: &ColorSet) {
    for word in 0..MAX_COLORS / 64 {
        let (had, has) = (own.word(word), new.word(word));
        if had != has {
            free.set_word(word, free.word(word) & !has | had & !has);
            own.set_word(word, has);
        }
    }
}

/// The lowest colour that two sets have in common.
pub(super) fn first_shared(a: &ColorSet, b: &ColorSet) -> Option<Color> {
    let both = (0u32..MAX_COLORS as u32 / 64).map(|w| {
        let word = w as usize;
        (w, a.word(word) & b.word(word))
    });
    both.filter(|(_, bits)| *bits != 0)
        .map(|(w, bits)| Color((w << 6 | bits.trailing_zeros()) as u16))
        .next()
}

pub(super) fn nr_shared(a: &ColorSet, b: &ColorSet) -> u32 {
    let words = (0..MAX_COLORS / 64).map(|w| (a.word(w) & b.word(w)).count_ones());
    words.fold(0, u32::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str) -> ColorSet {
        text.parse().unwrap_or_default()
    }

    #[test]
    fn the_next_color_is_found_across_words_and_around_the_end() {
        let colors = set("3,63,64,130,4095");
        for (from, next) in [(0, 3), (3, 3), (4, 63), (64, 64), (65, 130), (131, 4095)] {
            assert_eq!(at_or_after(&colors, from), Some(Color(next)), "from {from}");
        }
        assert_eq!(at_or_after(&colors, 4096), None);
        assert_eq!(at_or_after(&colors, u16::MAX), None);
        assert_eq!(round(&colors, 4096), Some(Color(3)));
        assert_eq!(round(&set("3"), 4), Some(Color(3)));
        assert_eq!(round(&ColorSet::EMPTY, 0), None);
    }

    #[test]
    fn runs_are_the_lowest_and_may_have_to_start_at_a_multiple() {
        let free = set("1-2,5-8,60-71,4092-4095");
        assert_eq!(find_run(&free, 2, 1), Some(1));
        assert_eq!(find_run(&free, 2, 2), Some(6));
        assert_eq!(find_run(&free, 4, 1), Some(5));
        assert_eq!(find_run(&free, 4, 4), Some(60));
        assert_eq!(find_run(&free, 8, 8), Some(64));
        assert_eq!(find_run(&free, 12, 1), Some(60));
        assert_eq!(find_run(&free, 13, 1), None);
        assert_eq!(find_run(&set("4092-4095"), 4, 4), Some(4092));
    }

    #[test]
    fn colors_move_from_one_set_to_the_other() {
        let (mut free, mut own) = (set("0-3,6-9"), set("4"));
        extend(&mut free, &mut own, 3, Fit::FirstRun);
        assert_eq!((own, free), (set("2-4,1"), set("0,6-9")));
        let (mut free, mut own) = (set("1,3,8-9"), set("0,7,12"));
        extend(&mut free, &mut own, 4, Fit::FirstRun);
        assert_eq!((own, free), (set("0-1,3,7-9,12"), ColorSet::EMPTY));
        let (mut free, mut own) = (ColorSet::EMPTY, set("0-3,5,7-8"));
        shed(&mut own, &mut free, 3);
        assert_eq!((own, free), (set("0-3"), set("5,7-8")));
    }

    #[test]
    fn one_run_is_told_from_several() {
        assert!(is_run(&ColorSet::EMPTY) && is_run(&set("7")) && is_run(&set("60-70")));
        assert!(!is_run(&set("0,2")) && !is_run(&set("60-70,4095")));
    }
}
