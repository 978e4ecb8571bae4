//! One thread of a trace: the bridge from records to [`OpSource`].

use std::collections::VecDeque;

use piebald_units::VirtAddr;
use piebald_units::op::{Filled, MemRef, Next, OpSource, RefKind};

use super::error::{Complaint, ForeignError};
use super::input::Input;
use super::{Format, Options};

/// Records that became no reference.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Skipped {
    /// Software and hardware prefetches.
    pub prefetches: u64,
    /// Explicit cache flushes, also the escape records 4 of din.
    pub flushes: u64,
    /// Markers of drmemtrace other than system calls, escape records 3 of din.
    pub markers: u64,
    /// Comment lines of lackey and pinatrace, and blank lines of texts.
    pub comments: u64,
    /// Iterations of a repeated string instruction after the first, which retire nothing and
    /// fetch nothing; their data references are kept.
    pub repeats: u64,
}

impl std::ops::AddAssign for Skipped {
    fn add_assign(&mut self, other: Self) {
        self.prefetches += other.prefetches;
        self.flushes += other.flushes;
        self.markers += other.markers;
        self.comments += other.comments;
        self.repeats += other.repeats;
    }
}

/// What was odd about files and does not change what they say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Notes {
    /// Texts whose last line no line feed ends. It parses, and is taken as whole, but a number that
    /// was cut in half looks like a number, too.
    pub unended_lines: u64,
    /// Texts with a byte order mark of UTF-8, which was dropped.
    pub byte_order_marks: u64,
}

impl std::ops::AddAssign for Notes {
    fn add_assign(&mut self, other: Self) {
        self.unended_lines += other.unended_lines;
        self.byte_order_marks += other.byte_order_marks;
    }
}

/// What a thread says about itself, as far as it was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Identity {
    /// Process id.
    pub process: Option<u64>,
    /// Thread id.
    pub thread: Option<u64>,
    /// The tracer left out references that hit in a cache of its own.
    pub filtered: bool,
}

/// Turns records into references.
pub(crate) trait Decode: Send {
    /// Reads one record. Gives what follows the references pushed so far if the record is an
    /// event, or the end; the input's last [`Next`] is final.
    fn step(
        &mut self,
        input: &mut Input,
        sink: &mut Sink<'_>,
    ) -> Result<Option<Next>, ForeignError>;

    fn identity(&self) -> Identity {
        Identity::default()
    }
}

/// Where a decoder puts its references.
pub(crate) struct Sink<'a> {
    out: &'a mut [MemRef],
    used: usize,
    spill: &'a mut VecDeque<MemRef>,
    gap: u64,
    pub skipped: &'a mut Skipped,
}

impl Sink<'_> {
    /// Instructions retire before the next reference.
    pub fn retire(&mut self, instructions: u64) {
        self.gap = self.gap.saturating_add(instructions);
    }

    /// One reference of `size` bytes, split if it is larger than 64. What does not fit a
    /// gap's 32 bits is carried to the next reference.
    pub fn push(&mut self, addr: VirtAddr, size: u32, kind: RefKind, site: u32, dep: u16) {
        let (mut at, mut left) = (addr.0, size);
        while left > 0 {
            let part = left.min(64);
            let reference = MemRef {
                addr: VirtAddr(at),
                site,
                gap: self.gap.min(u64::from(u32::MAX)) as u32,
                dep,
                size: part as u8,
                kind,
            };
            self.gap -= u64::from(reference.gap);
            match self.out.get_mut(self.used) {
                Some(slot) if self.spill.is_empty() => {
                    *slot = reference;
                    self.used += 1;
                }
                _ => self.spill.push_back(reference),
            }
            at = at.wrapping_add(u64::from(part));
            left -= part;
        }
    }
}

/// The 32-bit site of an instruction address; see the module's documentation.
pub(crate) fn site_of(pc: u64) -> u32 {
    (pc as u32) ^ ((pc >> 32) as u32).wrapping_mul(0x9e37_79b1)
}

/// Bytes up to the line's end, at most `size`: for formats without sizes.
pub(crate) fn within_line(addr: u64, size: u32) -> u32 {
    size.min(64 - (addr & 63) as u32)
}

struct Reader<D> {
    decoder: D,
    input: Input,
    spill: VecDeque<MemRef>,
    /// Instructions retired since the last reference; carried from batch to batch.
    gap: u64,
    /// An event that waits for the spill to be handed out.
    waiting: Option<Next>,
    /// The last word of the input, repeated if asked again.
    last: Option<Next>,
    failure: Option<String>,
    skipped: Skipped,
}

/// A decoder with its input, whatever its format.
pub(crate) trait Drive: OpSource {
    fn skipped(&self) -> Skipped;
    fn notes(&self) -> Notes;
    fn identity(&self) -> Identity;
    fn offset(&self) -> u64;
}

/// Puts a decoder on an input.
pub(crate) fn drive<D: Decode + 'static>(decoder: D, input: Input) -> Box<dyn Drive> {
    Box::new(Reader {
        decoder,
        input,
        spill: VecDeque::new(),
        gap: 0,
        waiting: None,
        last: None,
        failure: None,
        skipped: Skipped::default(),
    })
}

impl<D: Decode> Reader<D> {
    /// Steps until the buffer is full or an event comes; gives the number of references.
    fn decode(&mut self, out: &mut [MemRef], used: usize) -> usize {
        let mut sink = Sink {
            out,
            used,
            spill: &mut self.spill,
            gap: self.gap,
            skipped: &mut self.skipped,
        };
        while sink.used < sink.out.len() && self.waiting.is_none() {
            match self.decoder.step(&mut self.input, &mut sink) {
                Ok(next) => self.waiting = next,
                Err(error) => {
                    self.failure = Some(error.to_string());
                    self.waiting = Some(Next::Broken);
                }
            }
            if sink.gap > u64::from(u32::MAX) {
                let error = self.input.fault(Complaint::number(
                    "the number of instructions without a reference",
                    sink.gap,
                    "up to 4294967295",
                ));
                sink.gap = 0;
                self.failure = Some(error.to_string());
                self.waiting = Some(Next::Broken);
            }
        }
        self.gap = sink.gap;
        sink.used
    }
}

impl<D: Decode> OpSource for Reader<D> {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        let mut used = 0;
        if let Some(next) = self.last {
            return Filled {
                refs: 0,
                tail: 0,
                next,
            };
        }
        while used < out.len() {
            let Some(reference) = self.spill.pop_front() else {
                break;
            };
            out[used] = reference;
            used += 1;
        }
        if self.waiting.is_none() {
            used = self.decode(out, used);
        }
        let Some(next) = self.waiting.filter(|_| self.spill.is_empty()) else {
            return Filled {
                refs: used,
                tail: 0,
                next: Next::More,
            };
        };
        self.waiting = None;
        if !matches!(next, Next::Sys(_) | Next::Mark(_)) {
            self.last = Some(next);
        }
        Filled {
            refs: used,
            tail: std::mem::take(&mut self.gap) as u32,
            next,
        }
    }

    fn failure(&self) -> Option<&str> {
        self.failure.as_deref()
    }
}

impl<D: Decode> Drive for Reader<D> {
    fn skipped(&self) -> Skipped {
        self.skipped
    }

    fn notes(&self) -> Notes {
        let odd = self.input.oddities();
        Notes {
            unended_lines: odd.unended_line.into(),
            byte_order_marks: odd.byte_order_mark.into(),
        }
    }

    fn identity(&self) -> Identity {
        self.decoder.identity()
    }

    fn offset(&self) -> u64 {
        self.input.offset()
    }
}

/// One thread of a foreign trace, read as a stream. After an end, an exit or a break it repeats
/// that answer.
pub struct ForeignThread {
    format: Format,
    inner: Box<dyn Drive>,
}

impl ForeignThread {
    pub(crate) fn new(format: Format, options: Options, input: Input) -> Self {
        let inner = (format.entry().open)(options, input);
        Self { format, inner }
    }

    /// A thread whose file is in memory, packed or not; `name` stands for the file in messages.
    ///
    /// # Errors
    /// A container that is recognised but refused, or whose directory is damaged.
    pub fn from_bytes(
        name: &str,
        bytes: &[u8],
        format: Format,
        options: Options,
    ) -> Result<Self, ForeignError> {
        Ok(Self::new(format, options, Input::from_bytes(name, bytes)?))
    }

    /// The format that it is read as.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// Records so far that became no reference.
    pub fn skipped(&self) -> Skipped {
        self.inner.skipped()
    }

    /// What was odd about the file so far.
    pub fn notes(&self) -> Notes {
        self.inner.notes()
    }

    /// Process and thread, as far as records so far tell.
    pub fn identity(&self) -> Identity {
        self.inner.identity()
    }

    /// Bytes of the unpacked stream consumed so far.
    pub fn offset(&self) -> u64 {
        self.inner.offset()
    }
}

impl std::fmt::Debug for ForeignThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ForeignThread")
            .field("format", &self.format)
            .field("offset", &self.offset())
            .finish_non_exhaustive()
    }
}

impl OpSource for ForeignThread {
    fn fill(&mut self, out: &mut [MemRef]) -> Filled {
        self.inner.fill(out)
    }

    fn failure(&self) -> Option<&str> {
        self.inner.failure()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Retires so many instructions in each of three steps, then refers once and ends.
    struct Idle {
        instructions: u64,
        steps: u32,
    }

    impl Decode for Idle {
        fn step(
            &mut self,
            _input: &mut Input,
            sink: &mut Sink<'_>,
        ) -> Result<Option<Next>, ForeignError> {
            self.steps += 1;
            sink.retire(self.instructions);
            if self.steps < 3 {
                return Ok(None);
            }
            sink.push(VirtAddr(64), 8, RefKind::Load, 0, 0);
            Ok(Some(Next::End))
        }
    }

    fn run(instructions: u64) -> (Filled, MemRef, Option<String>) {
        let input = Input::from_bytes("idle", b"").expect("no container");
        let idle = Idle {
            instructions,
            steps: 0,
        };
        let mut reader = drive(idle, input);
        let mut out = [MemRef::default(); 4];
        let filled = reader.fill(&mut out);
        (filled, out[0], reader.failure().map(str::to_owned))
    }

    #[test]
    fn instructions_beyond_32_bits_go_to_the_tail() {
        let most = u64::from(u32::MAX) / 2;
        let (filled, first, failure) = run(most);
        assert_eq!((filled.refs, filled.next), (1, Next::End));
        assert_eq!(first.gap, u32::MAX);
        assert_eq!(u64::from(first.gap) + u64::from(filled.tail), 3 * most);
        assert_eq!(failure, None);
    }

    #[test]
    fn more_instructions_without_a_reference_than_a_gap_holds_are_refused() {
        let (filled, _, failure) = run(u64::from(u32::MAX) / 2 + 1);
        assert_eq!((filled.refs, filled.next), (0, Next::Broken));
        let failure = failure.expect("a reason");
        assert!(
            failure.contains("4294967296; allowed: up to 4294967295"),
            "{failure}"
        );
    }

    #[test]
    fn a_spilled_reference_comes_before_the_end() {
        struct Wide;
        impl Decode for Wide {
            fn step(
                &mut self,
                _input: &mut Input,
                sink: &mut Sink<'_>,
            ) -> Result<Option<Next>, ForeignError> {
                sink.retire(1);
                sink.push(VirtAddr(0), 200, RefKind::Store, 0, 0);
                Ok(Some(Next::Exit(3)))
            }
        }
        let input = Input::from_bytes("wide", b"").expect("no container");
        let mut reader = drive(Wide, input);
        let mut out = [MemRef::default(); 3];
        let filled = reader.fill(&mut out);
        assert_eq!((filled.refs, filled.next), (3, Next::More));
        let filled = reader.fill(&mut out);
        assert_eq!((filled.refs, filled.next), (1, Next::Exit(3)));
        assert_eq!((out[0].addr, out[0].size), (VirtAddr(192), 8));
        assert_eq!(reader.fill(&mut out).next, Next::Exit(3));
    }
}
