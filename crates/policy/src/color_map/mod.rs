//! Which colour a page frame has, and which frames have a colour.
//!
//! A *colour* is what a frame number decides about the place of its page in a
//! shared resource: the sets of the last-level cache, the banks of DRAM, or
//! both. Here it is a linear function of the frame number over GF(2): colour
//! bit *i* is the parity of `frame & mask[i]`. Plain page colouring has masks of
//! one bit, bank and channel hashes have a few, hashed last-level caches many
//! (`docs/decisions/0001-color-is-linear.md`).
//!
//! Three kinds of colour bits matter to policies (HVR, section 3): *C* bits
//! select cache sets only, *B* bits banks only, *O* bits both.
//!
//! The colours in an aligned block of 2^k frames are those of its first frame,
//! XORed with all that the low *k* bits of a frame number can make: a *coset* of
//! a space with 2^`rank(k)` elements. Blocks of order *k* therefore fall into
//! 2^(C - `rank(k)`) kinds, which is how many free lists that order needs. For
//! plain colouring by bits 15-18 this gives the papers' 16, 16, 16, 16, 8, 4, 2,
//! 1, 1, 1, 1 lists for the orders 0 to 10.
//!
//! Beside the colour, which users see and number as they like, a map has an
//! *index*: the same 2^C classes, renumbered so that the blocks of order *k* are
//! told apart by `index >> rank(k)`. For plain colouring by rising bits, colour
//! and index are the same number.

mod geometry;
mod gf2;
mod nearest;
mod shape;
mod text;

use core::fmt;

use piebald_units::{Color, ColorSet, Order, Pfn};

pub use geometry::{Geometry, IndexedCache, PrivateL2};
use gf2::{Basis, Bits, Linear, bit};
use shape::Shape;
pub use text::{FromText, TextError, TextFault};

/// Most colour bits: 4096 colours, as many as a [`ColorSet`] holds.
pub const MAX_BITS: usize = 12;
/// Highest bit of a frame number that a mask may name: 64-bit addresses.
pub const MAX_FRAME_BIT: u32 = 51;

/// Largest order whose cosets are kept ready, inclusive.
const MAX_ORDER: u8 = Order::MAX.0;
const NR_ORDERS: usize = MAX_ORDER as usize + 1;

/// What a colour bit selects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BitClass {
    /// Not known: the map was made from bare masks.
    #[default]
    Unknown,
    /// DRAM banks (or channels, or ranks) only: a B bit.
    Bank,
    /// Sets or slices of the last-level cache only: a C bit.
    Cache,
    /// Both: an O bit.
    Both,
}

/// Why masks or a geometry make no colour map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapError {
    /// More than 12 colour bits.
    TooManyBits,
    /// The mask of this colour bit is zero.
    ZeroMask(u8),
    /// The mask of this colour bit is the XOR of earlier ones: the bit would
    /// tell nothing new.
    Dependent(u8),
    /// The mask of this colour bit names a bit above 51.
    BeyondFrames(u8),
    /// A field of the geometry is out of range.
    Geometry {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooManyBits => write!(
                f,
                "more than {MAX_BITS} color bits; allowed: at most {MAX_BITS}"
            ),
            Self::ZeroMask(i) => write!(f, "color bit {i}: the mask is 0; allowed: some bit"),
            Self::Dependent(i) => write!(
                f,
                "color bit {i}: the mask is the XOR of earlier masks; allowed: independent masks"
            ),
            Self::BeyondFrames(i) => write!(
                f,
                "color bit {i}: the mask has a bit above {MAX_FRAME_BIT}; allowed: 0-{MAX_FRAME_BIT}"
            ),
            Self::Geometry {
                field,
                value,
                allowed,
            } => write!(f, "{field} = {value:#x}; allowed: {allowed}"),
        }
    }
}

impl core::error::Error for MapError {}

/// A colour map. About 600 bytes: pass it by reference where the stack is small.
///
/// Immutable once made, so it may be shared among cores.
#[derive(Clone)]
pub struct ColorMap {
    color: Linear,
    index: Linear,
    /// Column *i*: the index of colour 2^i.
    to_index: [u16; MAX_BITS],
    /// Colour and index are the same.
    same: bool,
    /// Frame bits that each add a dimension, rising; the first `bits()`.
    pivots: [u8; MAX_BITS],
    ranks: [u8; NR_ORDERS],
    shapes: [Shape; NR_ORDERS],
    classes: [BitClass; MAX_BITS],
}

impl ColorMap {
    /// The map with one colour, 0, which every frame has.
    pub const PLAIN: Self = Self {
        color: Linear::ZERO,
        index: Linear::ZERO,
        to_index: [0; MAX_BITS],
        same: true,
        pivots: [0; MAX_BITS],
        ranks: [0; NR_ORDERS],
        shapes: [Shape::POINT; NR_ORDERS],
        classes: [BitClass::Unknown; MAX_BITS],
    };

    /// The map whose colour bit *i* is the parity of `frame & masks[i].0`.
    ///
    /// # Errors
    /// Names the first mask that is zero, has a bit above 51, or is the XOR of
    /// earlier ones, or says that there are more than 12.
    pub fn from_masks(masks: &[(u64, BitClass)]) -> Result<Self, MapError> {
        let mut map = Self::PLAIN;
        map.set_masks(masks)?;
        map.derive();
        Ok(map)
    }

    #[inline(never)]
    fn set_masks(&mut self, masks: &[(u64, BitClass)]) -> Result<(), MapError> {
        if masks.len() > MAX_BITS {
            return Err(MapError::TooManyBits);
        }
        let mut basis = Basis::<MAX_BITS>::EMPTY;
        for (i, ((mask, class), slot)) in masks.iter().zip(&mut self.classes).enumerate() {
            let i = i as u8;
            if *mask == 0 {
                return Err(MapError::ZeroMask(i));
            }
            if mask >> MAX_FRAME_BIT > 1 {
                return Err(MapError::BeyondFrames(i));
            }
            if !basis.insert(*mask) {
                return Err(MapError::Dependent(i));
            }
            *slot = *class;
            self.color.push(*mask);
        }
        Ok(())
    }

    /// Everything that follows from the masks.
    #[inline(never)]
    fn derive(&mut self) {
        // The images of the frame bits that add a dimension, in rising order:
        // the basis in which the colours of larger and larger blocks unfold.
        let mut images = [0u16; MAX_BITS];
        let mut space = Basis::<MAX_BITS>::EMPTY;
        let mut found = 0usize;
        for n in 0..=MAX_FRAME_BIT {
            for (rank, order) in self.ranks.iter_mut().zip(0u32..) {
                if order == n {
                    *rank = found as u8;
                }
            }
            let image = self.color.column(n);
            if space.insert(u64::from(image)) {
                if let (Some(i), Some(p)) = (images.get_mut(found), self.pivots.get_mut(found)) {
                    (*i, *p) = (image, n as u8);
                }
                found = found.saturating_add(1);
            }
        }
        self.invert(&images);
        for (shape, rank) in self.shapes.iter_mut().zip(self.ranks) {
            *shape = Shape::span(images.iter().take(usize::from(rank)).copied());
        }
    }

    /// Finds the index of each colour bit: its coordinates in the basis.
    #[inline(never)]
    fn invert(&mut self, images: &[u16; MAX_BITS]) {
        let bits = self.bits() as usize;
        // Coordinates ride along in the upper half; only lower halves have
        // pivots, because the images are independent.
        let mut basis = Basis::<MAX_BITS>::EMPTY;
        for (image, i) in images.iter().zip(0u32..).take(bits) {
            basis.insert(u64::from(*image) | bit(i.wrapping_add(16)));
        }
        // Fully reduced, each lower half is one colour bit.
        for row in basis.rows() {
            let i = (*row as u16).trailing_zeros() as usize;
            if let Some(column) = self.to_index.get_mut(i) {
                *column = (row >> 16) as u16;
            }
        }
        self.same = (0u32..)
            .zip(self.to_index)
            .take(bits)
            .all(|(i, column)| u64::from(column) == bit(i));
        for i in 0..bits as u32 {
            let columns = self.to_index.iter().zip(self.color.masks());
            let mask = columns.fold(0, |sum, (column, mask)| match column >> i & 1 {
                0 => sum,
                _ => sum ^ mask,
            });
            self.index.push(mask);
        }
    }

    /// Number of colour bits, 0 to 12.
    pub fn bits(&self) -> u32 {
        self.color.masks().len() as u32
    }

    /// Number of colours, a power of two, 1 to 4096.
    pub fn colors(&self) -> u32 {
        bit(self.bits()) as u32
    }

    /// The mask over the frame number whose parity is colour bit `i`; 0 for a
    /// bit that the map does not have.
    pub fn mask(&self, i: u8) -> u64 {
        self.color.mask(u32::from(i))
    }

    /// What colour bit `i` selects; [`BitClass::Unknown`] for a bit that the map
    /// does not have.
    pub fn class(&self, i: u8) -> BitClass {
        let class = self.classes.get(usize::from(i));
        class.copied().unwrap_or_default()
    }

    /// The colour bits of a class, as a mask over colours.
    pub fn bits_of(&self, class: BitClass) -> u16 {
        let bits = (0u32..).zip(self.classes).take(self.bits() as usize);
        bits.filter(|(_, c)| *c == class)
            .fold(0, |sum, (i, _)| sum | bit(i) as u16)
    }

    /// The colour of a frame: a few instructions for plain maps, at most 12
    /// parities for hashed ones.
    #[inline]
    pub fn color(&self, frame: Pfn) -> Color {
        Color(self.color.eval(frame.0))
    }

    /// The index of a frame's class; see the module.
    #[inline]
    pub(crate) fn index(&self, frame: Pfn) -> u16 {
        self.index.eval(frame.0)
    }

    /// The index as one rotation of the frame number to the right and one AND, if
    /// the map is that simple.
    pub(crate) fn index_shift(&self) -> Option<(u8, u16)> {
        self.index.as_shift()
    }

    /// Colour and index are the same number.
    pub(crate) fn is_same(&self) -> bool {
        self.same
    }

    /// If every block of an order has its colours in one unbroken run of a word:
    /// the pattern of the lowest, and the colour bits that place another.
    pub(crate) fn block_run(&self, order: Order) -> Option<(u64, u16)> {
        self.shapes.get(usize::from(order.0))?.as_run()
    }

    /// The index of a colour.
    #[inline]
    pub(crate) fn index_of(&self, color: Color) -> u16 {
        if self.same {
            return color.0;
        }
        Bits(u64::from(color.0)).fold(0, |sum, i| {
            sum ^ self.to_index.get(i as usize).copied().unwrap_or(0)
        })
    }

    /// log2 of the number of colours in a block of this order.
    #[inline]
    pub fn rank(&self, order: Order) -> u32 {
        match self.ranks.get(usize::from(order.0)) {
            Some(rank) => u32::from(*rank),
            None => self.rank_below(u32::from(order.0)),
        }
    }

    /// How many dimensions the frame bits below `n` span.
    fn rank_below(&self, n: u32) -> u32 {
        let pivots = self.pivots.iter().take(self.bits() as usize);
        pivots.filter(|p| u32::from(**p) < n).count() as u32
    }

    /// Number of kinds of blocks of this order, and so of free lists: 2^(C -
    /// rank).
    pub fn lists(&self, order: Order) -> u32 {
        bit(self.bits().saturating_sub(self.rank(order))) as u32
    }

    /// Adds the colours of the block of this order that holds `frame` to a set.
    /// At most 64 words are touched.
    pub fn colors_in(&self, frame: Pfn, order: Order, out: &mut ColorSet) {
        let color = self.color(frame);
        self.visit_block(color, order, |word, mask| out.insert_word(word, mask));
    }

    /// Does every frame of a block of this order have an allowed colour? The
    /// block is named by any of its colours.
    pub fn block_within(&self, color: Color, order: Order, allowed: &ColorSet) -> bool {
        let mut within = true;
        self.visit_block(color, order, |word, mask| {
            within &= allowed.word(word) & mask == mask;
        });
        within
    }

    /// Calls `visit` with each word of the set of a block's colours.
    #[inline]
    pub(crate) fn visit_block(&self, color: Color, order: Order, visit: impl FnMut(usize, u64)) {
        match self.shapes.get(usize::from(order.0)) {
            Some(shape) => shape.visit(color, visit),
            None => self.shape_of(order).visit(color, visit),
        }
    }

    fn shape_of(&self, order: Order) -> Shape {
        let below = u32::from(order.0).min(MAX_FRAME_BIT.wrapping_add(1));
        Shape::span((0..below).map(|n| self.color.column(n)))
    }

    /// The colours whose blocks of this order lie wholly within `allowed`,
    /// written to `out`: those that a request for such a block may be served
    /// from. At most 10 passes over the words in use, which are 64 for 4096
    /// colours; orders above 10 have none.
    pub fn erode(&self, order: Order, allowed: &ColorSet, out: &mut ColorSet) {
        out.copy_words(allowed, self.words());
        // Colours that the map does not have.
        let known = bit(self.colors().min(64)).wrapping_sub(1);
        out.set_word(0, out.word(0) & known);
        match self.shapes.get(usize::from(order.0)) {
            Some(shape) => shape.erode(self.words(), out),
            None => out.clear(),
        }
    }

    /// 64-bit words that a set of this map's colours needs, 1 to 64.
    pub(crate) fn words(&self) -> usize {
        (self.colors() as usize).div_ceil(64)
    }

    /// Adds to `out` the colours whose bits under `bits` equal `value` (bits
    /// outside are ignored): the groups that a partition by some of the colour
    /// bits makes. Visits each colour once.
    pub fn group(&self, bits: u16, value: u16, out: &mut ColorSet) {
        for c in 0..self.colors() as u16 {
            if (c ^ value) & bits == 0 {
                out.insert(Color(c));
            }
        }
    }
}

impl PartialEq for ColorMap {
    /// Equal masks and classes; all else follows from them.
    fn eq(&self, other: &Self) -> bool {
        self.color.masks() == other.color.masks() && self.classes == other.classes
    }
}

impl Eq for ColorMap {}

impl fmt::Debug for ColorMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ColorMap(\n{self})")
    }
}
