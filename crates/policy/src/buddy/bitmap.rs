//! Which colours have a free block, per order and migrate type.
//!
//! Called when a list becomes empty or ceases to be. Functions of the parts that
//! they need rather than of the whole [`Work`](super::work::Work), so that the
//! common paths keep theirs in registers.

use piebald_units::{Color, Order};

use super::Books;
use crate::color_map::ColorMap;

/// Notes that a block is the first on its list.
#[inline(never)]
pub(super) fn mark(
    books: &mut Books,
    map: &ColorMap,
    words: &mut [u64],
    kind: u8,
    order: u8,
    at: u32,
    index: u16,
) {
    books.mark_order(kind, order);
    let (first, wide) = (books.bitmap(kind, order), books.is_wide());
    each_word(
        books,
        map,
        order,
        books.color(map, at, index),
        |word, mask| {
            if wide {
                change(words, first, |summary| summary | 1 << (word & 63));
                let at = first.wrapping_add(word).wrapping_add(1);
                change(words, at, |w| w | mask);
            } else {
                change(words, first, |w| w | mask);
            }
        },
    );
}

/// Notes that a block was the last on its list.
#[inline(never)]
pub(super) fn unmark(
    books: &mut Books,
    map: &ColorMap,
    words: &mut [u64],
    kind: u8,
    order: u8,
    at: u32,
    index: u16,
) {
    let (first, wide) = (books.bitmap(kind, order), books.is_wide());
    each_word(
        books,
        map,
        order,
        books.color(map, at, index),
        |word, mask| {
            if !wide {
                change(words, first, |w| w & !mask);
                return;
            }
            let at = first.wrapping_add(word).wrapping_add(1);
            if change(words, at, |w| w & !mask) == 0 {
                change(words, first, |summary| summary & !(1 << (word & 63)));
            }
        },
    );
    if words.get(first).is_none_or(|w| *w == 0) {
        books.unmark_order(kind, order);
    }
}

/// The words of the set of a block's colours.
#[inline]
fn each_word(
    books: &Books,
    map: &ColorMap,
    order: u8,
    color: Color,
    mut visit: impl FnMut(usize, u64),
) {
    let level = books.level(order);
    if level.pattern == 0 {
        return map.visit_block(color, Order(order), visit);
    }
    let mask = level.pattern << (color.0 & level.place & 63);
    visit(usize::from(color.0 >> 6), mask);
}

/// Changes a word and answers what it is now.
#[inline]
fn change(words: &mut [u64], at: usize, f: impl FnOnce(u64) -> u64) -> u64 {
    match words.get_mut(at) {
        Some(word) => {
            *word = f(*word);
            *word
        }
        None => 0,
    }
}
