//! The stream of requests of one file.

use std::path::Path;

use super::error::BlockError;
use super::names::{Devices, Files};
use super::request::Request;
use super::sink::{LeftOut, Notes, Passed, Sink, Skipped, State};
use super::{Columns, Format, Options, Stage, Traits};
use crate::about::{About, ByteOrder, Origin};
use crate::detect;
use crate::foreign::ForeignError;
use crate::foreign::error::Complaint;
use crate::foreign::input::Input;

/// Requests in a batch, except that one record that holds several may exceed it.
pub const BATCH: usize = 4096;

/// What was left out where a record or a line is cut at the end.
const CUT: &str = "the cut record at the end";

/// What may be wrong with taking the first lines, which all parse, for this format's.
pub(crate) type Doubt = fn(&[&[u8]]) -> Option<&'static str>;

/// How the content tells a format.
pub(crate) enum Looks {
    /// A text whose lines parse.
    Text,
    /// A text whose lines parse and raise no doubt: those of other tools parse as well. That there is no
    /// doubt speaks for it.
    Doubtful(Doubt),
    /// A text whose lines parse and raise no doubt, which speaks for nothing.
    TextBut(Doubt),
    /// Bytes that are not text, that pass this test, and of which so many records parse.
    Binary(fn(&[u8]) -> bool, u64),
    /// Anything might be it.
    Unknowable,
    /// A text that only a user can tell from others.
    Described,
}

/// All about a format.
pub(crate) struct Entry {
    pub name: &'static str,
    pub aliases: &'static [&'static str],
    pub about: About,
    pub traits: Traits,
    pub looks: Looks,
    pub parser: fn(&Options) -> Box<dyn Parse>,
}

/// Turns records into requests.
pub(crate) trait Parse: Send {
    /// Looks at the beginning, before the first step.
    fn begin(&mut self, _input: &mut Input) -> Result<(), BlockError> {
        Ok(())
    }

    /// Reads one record; `false` at the end. After an error of the record, the next call goes on
    /// behind it.
    fn step(&mut self, input: &mut Input, sink: &mut Sink<'_>) -> Result<bool, ForeignError>;

    /// Reads records until a batch is full; `false` at the end.
    fn fill(&mut self, input: &mut Input, sink: &mut Sink<'_>) -> Result<bool, ForeignError> {
        while sink.out.len() < BATCH {
            if !self.step(input, sink)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Parses one line of a text.
pub(crate) trait ParseLine: Send {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint>;
}

/// What a trace of several files, which were written together, knows of them.
pub(crate) trait Joint: Send {
    /// Last lines so far that no line feed ends.
    fn unended(&self) -> u64;

    /// What is wrong with the end of a file, each once.
    fn wrong_end(&self) -> Option<ForeignError>;

    /// The error as one of the file that it is in.
    fn located(&self, error: ForeignError) -> ForeignError;
}

/// A text format.
pub(crate) struct Lines<P>(pub P);

impl<P: ParseLine> Parse for Lines<P> {
    fn step(&mut self, input: &mut Input, sink: &mut Sink<'_>) -> Result<bool, ForeignError> {
        let parsed = input.line(|line| {
            if line.is_empty() {
                sink.state.passed.comments += 1;
                return Ok(());
            }
            self.0.line(line, sink)
        })?;
        Ok(parsed.is_some())
    }
}

impl<F: FnMut(&[u8], &mut Sink<'_>) -> Result<(), Complaint> + Send> ParseLine for F {
    fn line(&mut self, line: &[u8], sink: &mut Sink<'_>) -> Result<(), Complaint> {
        self(line, sink)
    }
}

/// A format of records of one size.
pub(crate) struct Records<const N: usize, F> {
    /// What a record is, for messages.
    pub what: &'static str,
    pub parse: F,
}

impl<const N: usize, F> Parse for Records<N, F>
where
    F: FnMut(&[u8; N], &mut Sink<'_>) -> Result<(), Complaint> + Send,
{
    fn step(&mut self, input: &mut Input, sink: &mut Sink<'_>) -> Result<bool, ForeignError> {
        let Some(record) = input.record::<N>(self.what)? else {
            return Ok(false);
        };
        (self.parse)(&record, sink).map_err(|c| input.fault(c))?;
        Ok(true)
    }
}

/// A trace being read.
///
/// ```no_run
/// use piebald_trace::block::{BlockTrace, Options, PageShift};
///
/// let mut trace = BlockTrace::open("hm_0.csv.gz".as_ref(), Options::default())?;
/// let mut batch = Vec::new();
/// while trace.next_batch(&mut batch)? {
///     for request in &batch {
///         let span = request.pages(PageShift::PAGE_4K);
///         println!("{:?} {}+{}", span.space, span.first, span.count);
///     }
/// }
/// # Ok::<(), piebald_trace::block::BlockError>(())
/// ```
pub struct BlockTrace {
    format: Format,
    traits: Traits,
    names_objects: bool,
    lenient: bool,
    input: Input,
    /// The files, if they are several that were written together.
    files: Option<Box<dyn Joint>>,
    parser: Box<dyn Parse>,
    state: State,
    skipped: Skipped,
    pending: Option<ForeignError>,
    done: bool,
}

impl BlockTrace {
    /// Opens a trace at its beginning. Without [`Options::format`] the content tells the format,
    /// which must be none of a memory trace. A pipe is read as a file is, any number of times; `-` is
    /// standard input.
    ///
    /// # Errors
    /// The file cannot be opened or unpacked, is empty, or has no or several possible formats; or it
    /// lacks a column of [`Options::columns`].
    pub fn open(path: &Path, options: Options) -> Result<Self, BlockError> {
        Self::new(Input::open(path)?, None, options)
    }

    /// The same for bytes in memory, packed or not. `name` stands for the file in messages.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn from_bytes(name: &str, bytes: &[u8], options: Options) -> Result<Self, BlockError> {
        Self::new(Input::from_bytes(name, bytes)?, None, options)
    }

    pub(super) fn new(
        mut input: Input,
        files: Option<Box<dyn Joint>>,
        options: Options,
    ) -> Result<Self, BlockError> {
        let format = match options.chosen()? {
            Some(format) => format,
            None => match detect::block(&mut input) {
                Ok(format) => format,
                Err(error) => return Err(input.damage_behind().map_or(error, BlockError::from)),
            },
        };
        if input.peek()?.is_empty() {
            return Err(BlockError::Empty {
                name: input.name().to_owned(),
            });
        }
        if options.stage == Stage::Issue && !matches!(format, Format::Blktrace | Format::Blkparse) {
            return Err(BlockError::NoStages {
                name: input.name().to_owned(),
                format,
            });
        }
        let mut parser = (format.entry().parser)(&options);
        parser.begin(&mut input)?;
        Ok(Self {
            format,
            traits: options.traits(format),
            names_objects: (options.columns.as_ref()).is_some_and(Columns::names_objects),
            lenient: options.lenient,
            parser,
            input,
            files,
            state: State::default(),
            skipped: Skipped::default(),
            pending: None,
            done: false,
        })
    }

    /// How messages call it: its path, or what the files of a run have in common.
    pub fn name(&self) -> &str {
        self.input.name()
    }

    /// The format, given or found.
    pub const fn format(&self) -> Format {
        self.format
    }

    /// What the requests say.
    pub const fn traits(&self) -> Traits {
        self.traits
    }

    /// Whether its objects have names. Their numbers are those of first use, which say nothing of order.
    pub const fn names_objects(&self) -> bool {
        self.names_objects
    }

    /// What the stamps count from. Where only the file tells, its first requests must have been
    /// read; a file that gave none has no stamps.
    pub fn origin(&self) -> Origin {
        let stated = self.format.about().stamps.origin();
        stated.or(self.state.origin).unwrap_or(Origin::Absent)
    }

    /// Byte order of the machine that was traced, where the requests so far tell: two files of
    /// different order are not of one clock.
    pub const fn byte_order(&self) -> Option<ByteOrder> {
        self.state.byte_order
    }

    /// Empties `out` and puts the next requests into it, at least one; `false` after the last.
    /// After an error there are no more requests.
    ///
    /// # Errors
    /// See [damage](super#damage). Requests before a wrong record were handed out by earlier
    /// calls.
    pub fn next_batch(&mut self, out: &mut Vec<Request>) -> Result<bool, BlockError> {
        out.clear();
        if let Some(error) = self.pending.take() {
            return Err(error.into());
        }
        while out.len() < BATCH && !self.done {
            let mut sink = Sink {
                out,
                state: &mut self.state,
            };
            match self.parser.fill(&mut self.input, &mut sink) {
                Ok(more) => self.done = !more,
                Err(error) if self.lenient && recoverable(&error) => self.leave_out(error)?,
                Err(error) => {
                    let error = self.input.damage_behind().unwrap_or(error);
                    let error = located(self.files.as_deref(), error);
                    self.fail(error);
                }
            }
            while let Some(error) = self.files.as_ref().and_then(|f| f.wrong_end()) {
                if self.lenient {
                    self.skipped.note(CUT, || error.to_string());
                } else {
                    self.fail(error);
                }
            }
        }
        match self.pending.take() {
            Some(error) if out.is_empty() => Err(error.into()),
            pending => {
                self.pending = pending;
                Ok(!out.is_empty())
            }
        }
    }

    /// There are no more requests, and the first reason for that will be told.
    fn fail(&mut self, error: ForeignError) {
        self.done = true;
        self.pending.get_or_insert(error);
    }

    /// All requests from here on, one by one.
    pub const fn requests(self) -> Requests {
        Requests {
            trace: self,
            batch: Vec::new(),
            next: 0,
        }
    }

    /// Files named so far. Complete at the end of the trace.
    pub const fn files(&self) -> &Files {
        &self.state.files
    }

    /// Disks named so far.
    pub const fn devices(&self) -> &Devices {
        &self.state.devices
    }

    /// Records so far that became no request.
    pub const fn passed(&self) -> Passed {
        self.state.passed
    }

    /// Those among them that ask for data, by name.
    pub const fn left_out(&self) -> &LeftOut {
        &self.state.left_out
    }

    /// What was done to requests so far.
    pub fn notes(&self) -> Notes {
        let odd = self.input.oddities();
        let of_files = self.files.as_ref().map_or(0, |files| files.unended());
        Notes {
            unended_lines: of_files + u64::from(odd.unended_line),
            byte_order_marks: odd.byte_order_mark.into(),
            ..self.state.notes
        }
    }

    /// Wrong records that were left out so far.
    pub const fn skipped(&self) -> &Skipped {
        &self.skipped
    }

    /// Unpacked bytes read so far.
    pub fn offset(&self) -> u64 {
        self.input.offset()
    }

    fn leave_out(&mut self, error: ForeignError) -> Result<(), BlockError> {
        let field = match &error {
            ForeignError::Value {
                field,
                unended: None,
                ..
            } => field,
            _ => {
                self.done = true;
                CUT
            }
        };
        let files = self.files.as_deref();
        self.skipped
            .note(field, || located(files, error).to_string());
        self.input.drop_overlong()?;
        Ok(())
    }
}

/// The error as one of the file that it is in.
fn located(files: Option<&dyn Joint>, error: ForeignError) -> ForeignError {
    match files {
        Some(files) => files.located(error),
        None => error,
    }
}

const fn recoverable(error: &ForeignError) -> bool {
    matches!(error, ForeignError::Value { .. } | ForeignError::Cut { .. })
}

/// Requests one by one; ends after the first error.
pub struct Requests {
    trace: BlockTrace,
    batch: Vec<Request>,
    next: usize,
}

impl Requests {
    /// The trace, for what it counts and names.
    pub const fn trace(&self) -> &BlockTrace {
        &self.trace
    }
}

impl Iterator for Requests {
    type Item = Result<Request, BlockError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next == self.batch.len() {
            self.next = 0;
            match self.trace.next_batch(&mut self.batch) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(error)),
            }
        }
        let request = self.batch.get(self.next).copied();
        self.next += 1;
        request.map(Ok)
    }
}
