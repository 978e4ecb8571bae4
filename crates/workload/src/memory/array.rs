//! Typed arrays over instrumented memory.

use piebald_units::VirtAddr;

use super::Tape;

/// An array of real values that also has virtual addresses.
///
/// Element `i` lies at `base + i * stride`. The stride may exceed the element's
/// size (a pointer at the start of each 64 B node): then only the elements take
/// real memory.
#[derive(Clone, Debug)]
pub struct Array<T> {
    base: u64,
    stride: u64,
    data: Vec<T>,
}

impl<T: Copy> Array<T> {
    pub(super) const fn at(base: u64, stride: u64, data: Vec<T>) -> Self {
        Self { base, stride, data }
    }

    /// Number of elements.
    pub const fn len(&self) -> usize {
        self.data.len()
    }

    /// True if it has no element.
    pub const fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Address of element `i`, also one that lies past the end.
    #[inline]
    pub const fn addr(&self, i: usize) -> VirtAddr {
        VirtAddr(self.base + i as u64 * self.stride)
    }

    /// Reads element `i` as access `slot` of the block being executed.
    ///
    /// # Panics
    /// If `i` is not below the length.
    #[inline]
    pub fn get(&self, tape: &mut Tape<'_>, slot: u16, i: usize) -> T {
        tape.touch(slot, self.base + i as u64 * self.stride);
        self.data[i]
    }

    /// Writes element `i` as access `slot` of the block being executed.
    ///
    /// # Panics
    /// If `i` is not below the length.
    #[inline]
    pub fn set(&mut self, tape: &mut Tape<'_>, slot: u16, i: usize, value: T) {
        tape.touch(slot, self.base + i as u64 * self.stride);
        self.data[i] = value;
    }

    /// Reads and writes element `i` as one access.
    ///
    /// # Panics
    /// If `i` is not below the length.
    #[inline]
    pub fn update(&mut self, tape: &mut Tape<'_>, slot: u16, i: usize, f: impl FnOnce(T) -> T) {
        tape.touch(slot, self.base + i as u64 * self.stride);
        self.data[i] = f(self.data[i]);
    }

    /// Touches element `i` plus `offset` bytes, for accesses to parts of an
    /// element; the value is read or written through [`raw`](Self::raw) or
    /// [`raw_mut`](Self::raw_mut).
    #[inline]
    pub fn touch(&self, tape: &mut Tape<'_>, slot: u16, i: usize, offset: u64) {
        tape.touch(slot, self.base + i as u64 * self.stride + offset);
    }

    /// The values, without a reference: for checks and for what the program
    /// holds in registers.
    pub fn raw(&self) -> &[T] {
        &self.data
    }

    /// The values, without a reference: for checks and for data that arrives by
    /// a system call.
    pub fn raw_mut(&mut self) -> &mut [T] {
        &mut self.data
    }
}
