//! Prefix varints: the number of trailing zero bits of the first byte tells the
//! length, so that reading needs one load and no loop.

/// Largest value: 49 bits in 7 bytes. Addresses have 48 bits.
pub(crate) const MAX: u64 = (1 << 49) - 1;

/// A byte buffer that always has room for one more wide store.
#[derive(Default)]
pub(crate) struct Sink {
    bytes: Vec<u8>,
    len: usize,
}

impl Sink {
    /// Appends a byte.
    #[inline]
    pub(crate) fn byte(&mut self, value: u8) {
        self.room();
        self.bytes[self.len] = value;
        self.len += 1;
    }

    /// Appends a varint; the value is at most [`MAX`].
    #[inline]
    pub(crate) fn varint(&mut self, value: u64) {
        debug_assert!(value <= MAX);
        self.room();
        let bits = 64 - (value | 1).leading_zeros() as usize;
        let len = bits.div_ceil(7);
        let word = (value << 1 | 1) << (len - 1);
        self.bytes[self.len..self.len + 8].copy_from_slice(&word.to_le_bytes());
        self.len += len;
    }

    /// Appends bytes.
    pub(crate) fn extend(&mut self, more: &[u8]) {
        let end = self.len + more.len();
        if self.bytes.len() < end {
            // Room is doubled here too, and never cut: `grow` fills it each time that there is none.
            self.bytes.resize(end.max(self.bytes.len() * 2), 0);
        }
        self.bytes[self.len..end].copy_from_slice(more);
        self.len = end;
    }

    /// What was appended.
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Forgets the content and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    #[inline]
    fn room(&mut self) {
        if self.bytes.len() - self.len < 8 {
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        self.bytes.resize((self.bytes.len() * 2).max(4096), 0);
    }
}

/// Zero bytes that a [`Source`] appends.
pub(crate) const PADDING: usize = 8;

/// Reads what a [`Sink`] wrote.
#[derive(Default)]
pub(crate) struct Source {
    /// The bytes, followed by [`PADDING`].
    bytes: Vec<u8>,
    at: usize,
    len: usize,
}

impl Source {
    /// Takes the bytes over.
    pub(crate) fn new(mut bytes: Vec<u8>) -> Self {
        let len = bytes.len();
        bytes.resize(len + PADDING, 0);
        Self { bytes, at: 0, len }
    }

    /// Gives the memory back.
    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// True at the end.
    #[inline]
    pub(crate) fn is_done(&self) -> bool {
        self.at >= self.len
    }

    /// The next byte, or `None` at the end.
    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        if self.at >= self.len {
            return None;
        }
        let byte = self.bytes[self.at];
        self.at += 1;
        Some(byte)
    }

    /// The next varint, or `None` if the bytes end first or are no varint.
    #[inline]
    pub(crate) fn varint(&mut self) -> Option<u64> {
        let window = self.bytes.get(self.at..self.at + 8)?;
        let word = u64::from_le_bytes(window.try_into().ok()?);
        let len = word.trailing_zeros() as usize + 1;
        if len > 7 || self.at + len > self.len {
            return None;
        }
        self.at += len;
        Some(word << (64 - 8 * len) >> (64 - 7 * len))
    }

    /// The bytes not yet read.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.bytes[self.at.min(self.len)..self.len]
    }

    /// Passes over bytes, at most to the end.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.at = (self.at + bytes).min(self.len);
    }
}

/// Maps small magnitudes of both signs to small numbers; `delta` is a difference
/// of two 48-bit addresses, modulo 2^48.
#[inline]
pub(crate) const fn zigzag48(delta: u64) -> u64 {
    let signed = ((delta << 16) as i64) >> 16;
    ((signed << 1) ^ (signed >> 63)) as u64 & ((1 << 48) - 1)
}

/// Undoes [`zigzag48`], modulo 2^48.
#[inline]
pub(crate) const fn unzigzag48(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_every_length_come_back() {
        let mut values = vec![0, 1, 127, 128, MAX];
        for bit in 0..49 {
            values.extend([1u64 << bit, (1 << bit) - 1, (1 << bit) | 1]);
        }
        let mut sink = Sink::default();
        values.iter().for_each(|&v| sink.varint(v));
        let mut source = Source::new(sink.as_slice().to_vec());
        for &v in &values {
            assert_eq!(source.varint(), Some(v));
        }
        assert!(source.is_done());
        assert_eq!(source.varint(), None);
    }

    #[test]
    fn bytes_between_varints_cut_no_room() {
        let mut sink = Sink::default();
        let mut expected = Vec::new();
        let more = [0xa5; 5000];
        for n in [3, 5000, 0, 17] {
            sink.varint(0);
            sink.extend(&more[..n]);
            sink.byte(7);
            expected.push(1);
            expected.extend(&more[..n]);
            expected.push(7);
        }
        assert_eq!(sink.as_slice(), expected);
        let room = sink.bytes.len();
        sink.clear();
        (0..100).for_each(|_| sink.extend(&more[..3]));
        assert_eq!((sink.bytes.len(), sink.as_slice().len()), (room, 300));
    }

    #[test]
    fn a_cut_varint_is_refused() {
        let mut sink = Sink::default();
        sink.varint(MAX);
        let bytes = sink.as_slice();
        for cut in 0..bytes.len() {
            assert_eq!(Source::new(bytes[..cut].to_vec()).varint(), None);
        }
        assert_eq!(Source::new(vec![0; 9]).varint(), None);
    }

    #[test]
    fn zigzag_is_small_for_small_steps_both_ways() {
        let mask = (1u64 << 48) - 1;
        assert_eq!(zigzag48(8), 16);
        assert_eq!(zigzag48(8u64.wrapping_neg()), 15);
        for delta in [0, 1, mask, 1 << 47, (1 << 47) - 1, 0x1234_5678_9abc] {
            assert_eq!(unzigzag48(zigzag48(delta)) & mask, delta & mask);
        }
    }
}
