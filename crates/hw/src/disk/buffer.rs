//! The segments of a drive's buffer: which blocks they hold, and which gives way.

/// What a segment was filled by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reading from the platters.
    Read,
    /// The host's writes.
    Write,
}

#[derive(Clone, Copy, Debug)]
struct Segment {
    kind: Kind,
    /// First block held.
    start: u64,
    /// End of the blocks held; equal to `start` if it holds none.
    end: u64,
    /// Rises with every use.
    used: u64,
}

/// All segments of a drive.
#[derive(Clone, Debug)]
pub struct Buffer {
    segments: Vec<Segment>,
    size: u64,
    write_segments: usize,
    clock: u64,
}

/// A segment's place in the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentId(u16);

impl Buffer {
    /// Empty segments of `size` blocks, of which at most `write_segments` hold
    /// writes.
    pub fn new(segments: u32, size: u32, write_segments: u32) -> Self {
        let empty = Segment {
            kind: Kind::Read,
            start: 0,
            end: 0,
            used: 0,
        };
        Self {
            segments: vec![empty; segments as usize],
            size: u64::from(size),
            write_segments: write_segments as usize,
            clock: 0,
        }
    }

    /// Blocks that a segment holds.
    pub fn segment_size(&self) -> u64 {
        self.size
    }

    /// The segment that holds `lba`, and where the blocks from there on end.
    pub fn find(&self, lba: u64, writes_too: bool) -> Option<(SegmentId, u64)> {
        let usable = |s: &Segment| writes_too || s.kind == Kind::Read;
        let held = |s: &&Segment| s.start <= lba && lba < s.end && usable(s);
        let at = self.segments.iter().position(|s| held(&s))?;
        Some((SegmentId(at as u16), self.segments[at].end))
    }

    /// Blocks that a segment holds.
    pub fn span(&self, id: SegmentId) -> (u64, u64) {
        let segment = &self.segments[usize::from(id.0)];
        (segment.start, segment.end)
    }

    /// Notes a use; of the blocks held only those from `keep_from` on stay.
    pub fn touch(&mut self, id: SegmentId, keep_from: u64) {
        self.clock += 1;
        let clock = self.clock;
        let segment = &mut self.segments[usize::from(id.0)];
        segment.used = clock;
        segment.start = segment.start.max(keep_from).min(segment.end);
    }

    /// Adds what has been read behind a segment's last block; what no longer
    /// fits leaves it at the front.
    pub fn extend(&mut self, id: SegmentId, end: u64) {
        let size = self.size;
        let segment = &mut self.segments[usize::from(id.0)];
        segment.end = segment.end.max(end);
        segment.start = segment.start.max(segment.end.saturating_sub(size));
    }

    /// Adds what has been read in front of a segment's first block, if there is
    /// room for all of it.
    pub fn prepend(&mut self, id: SegmentId, start: u64) {
        let size = self.size;
        let segment = &mut self.segments[usize::from(id.0)];
        let fits = segment.end.saturating_sub(start) <= size;
        if fits && segment.start < segment.end {
            segment.start = segment.start.min(start);
        }
    }

    /// Gives the least recently used segment to new contents; `None` if the
    /// drive has no buffer. Writes stay within their number of segments.
    pub fn take(&mut self, kind: Kind, start: u64, end: u64) -> Option<SegmentId> {
        let writes = self.segments.iter().filter(|s| s.kind == Kind::Write);
        let full = kind == Kind::Write && writes.count() >= self.write_segments;
        let open = |s: &Segment| !full || s.kind == Kind::Write;
        let candidates = self.segments.iter().enumerate().filter(|(_, s)| open(s));
        let (at, _) = candidates.min_by_key(|(_, s)| (s.end > s.start, s.used))?;
        self.clock += 1;
        self.segments[at] = Segment {
            kind,
            start: start.max(end.saturating_sub(self.size)),
            end,
            used: self.clock,
        };
        Some(SegmentId(at as u16))
    }

    /// Takes a write: behind a write segment that ends where it starts, or into
    /// a segment of its own. Older copies of the blocks are dropped.
    pub fn write(&mut self, start: u64, end: u64) {
        let appends = |s: &Segment| s.kind == Kind::Write && s.end == start && s.start < s.end;
        let found = self.segments.iter().position(appends);
        self.drop_copies(start, end);
        match found {
            Some(at) => {
                let id = SegmentId(at as u16);
                let keep = self.segments[at].start;
                self.extend(id, end);
                self.touch(id, keep);
            }
            None if self.write_segments > 0 => {
                self.take(Kind::Write, start, end);
            }
            None => {}
        }
    }

    fn drop_copies(&mut self, start: u64, end: u64) {
        for segment in &mut self.segments {
            if segment.start < end && start < segment.end {
                segment.end = segment.start;
            }
        }
    }

    /// Checks every segment.
    ///
    /// # Errors
    /// What is broken.
    pub fn validate(&self) -> Result<(), String> {
        for (at, s) in self.segments.iter().enumerate() {
            if s.start > s.end || s.end - s.start > self.size {
                return Err(format!("segment {at} holds {}..{}", s.start, s.end));
            }
        }
        let held = |s: &&Segment| s.kind == Kind::Write && s.end > s.start;
        let writes = self.segments.iter().filter(held).count();
        match writes <= self.write_segments {
            true => Ok(()),
            false => Err(format!("{writes} segments of writes")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_segment_gives_way() {
        let mut buffer = Buffer::new(2, 100, 1);
        let a = buffer.take(Kind::Read, 0, 10).unwrap();
        buffer.take(Kind::Read, 50, 60).unwrap();
        buffer.touch(a, 0);
        buffer.take(Kind::Read, 200, 210).unwrap();
        assert!(buffer.find(5, false).is_some());
        assert!(buffer.find(55, false).is_none());
        assert_eq!(buffer.find(203, false).map(|f| f.1), Some(210));
    }

    #[test]
    fn a_segment_keeps_its_last_blocks() {
        let mut buffer = Buffer::new(1, 16, 0);
        let id = buffer.take(Kind::Read, 100, 110).unwrap();
        buffer.extend(id, 120);
        assert_eq!(buffer.span(id), (104, 120));
        buffer.touch(id, 112);
        assert_eq!(buffer.span(id), (112, 120));
        buffer.prepend(id, 103);
        assert_eq!(buffer.span(id), (112, 120), "no room");
        buffer.prepend(id, 104);
        assert_eq!(buffer.span(id), (104, 120));
    }

    #[test]
    fn writes_drop_copies_append_and_stay_in_their_segments() {
        let mut buffer = Buffer::new(3, 64, 1);
        buffer.take(Kind::Read, 0, 32).unwrap();
        buffer.write(8, 16);
        assert!(buffer.find(0, true).is_none(), "the old copy is gone");
        buffer.write(16, 24);
        assert_eq!(buffer.find(8, true).map(|f| f.1), Some(24), "appended");
        assert!(buffer.find(8, false).is_none(), "no read segment");
        buffer.write(500, 508);
        assert!(buffer.find(8, true).is_none(), "one segment for writes");
        assert_eq!(buffer.validate(), Ok(()));
    }

    #[test]
    fn a_drive_without_buffer_keeps_nothing() {
        let mut buffer = Buffer::new(0, 0, 0);
        assert_eq!(buffer.take(Kind::Read, 0, 8), None);
        buffer.write(0, 8);
        assert!(buffer.find(0, true).is_none());
    }
}
