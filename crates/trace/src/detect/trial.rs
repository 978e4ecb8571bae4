//! The beginning of a file, given to every reader.

use std::cmp::Reverse;

use super::TraceFormat;
use crate::block::formats::libcachesim;
use crate::block::reader::{Doubt, Looks, Parse};
use crate::block::sink::{Sink, State};
use crate::block::{self, Options};
use crate::foreign::entry::Lines;
use crate::foreign::error::{Complaint, ForeignError};
use crate::foreign::input::{BUFFER, Input};
use crate::foreign::{self, champsim};
use crate::quote::shorten;

/// Records with data that must parse; damage further on is the reader's to report.
const RECORDS: u64 = 64;
/// Steps that a parser may take to reach them: comments and declarations count too.
const STEPS: u64 = 4096;
/// Fields that stand for a whole line: the reader did not get into it.
const WHOLE: [&str; 3] = ["the line", "the first line", "the header"];

/// How far a reader got before something was wrong.
struct Failure {
    format: TraceFormat,
    /// Records that it took, before and after.
    taken: u64,
    /// How much of the first wrong one it took, in hundredths; `None` if it did not get into it.
    reach: Option<usize>,
    why: String,
}

impl Failure {
    const fn rank(&self) -> (u64, Option<usize>) {
        (self.taken, self.reach)
    }

    /// It took other records, or most of the only one.
    fn is_near(&self) -> bool {
        self.reaches(50)
    }

    fn reaches(&self, hundredths: usize) -> bool {
        self.taken > 0 || self.reach.is_some_and(|reach| reach >= hundredths)
    }
}

/// What all readers made of a beginning.
#[derive(Default)]
pub(super) struct Trials {
    pub candidates: Vec<TraceFormat>,
    /// A candidate had a test beyond its lines, and passed.
    pub proven: bool,
    /// Whose records parse, and why they may be another tool's.
    pub doubts: Vec<(TraceFormat, &'static str)>,
    failures: Vec<Failure>,
}

/// Whether a beginning is a text.
pub(super) fn is_text(head: &[u8]) -> bool {
    head.iter()
        .all(|b| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..))
}

/// A line that goes on behind the beginning says nothing; but if there is no other, take it whole.
fn whole_lines(head: &[u8]) -> &[u8] {
    match memchr::memrchr(b'\n', head) {
        Some(last) if head.len() >= BUFFER => &head[..=last],
        _ => head,
    }
}

/// Lines that a line feed ends, if there are any: of a file that was cut the last says nothing.
fn ended_lines(text: &[u8]) -> &[u8] {
    memchr::memrchr(b'\n', text).map_or(text, |last| &text[..=last])
}

/// The end of a file may be cut; what came before says enough if there is anything.
const fn excused(data: u64, unended: bool) -> bool {
    data > 0 && unended
}

/// Lines without their ends, blank ones left out.
fn data_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|b| *b == b'\n')
        .map(|l| l.strip_suffix(b"\r").unwrap_or(l))
        .filter(|l| !l.trim_ascii().is_empty())
}

impl Trials {
    pub fn of_text(head: &[u8]) -> Self {
        let text = whole_lines(head);
        let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
        let sample: Vec<&[u8]> = data_lines(ended_lines(text))
            .take(RECORDS as usize)
            .collect();
        let mut trials = Self::default();
        for format in block::Format::ALL {
            let doubt = match format.entry().looks {
                Looks::Text => None,
                Looks::Doubtful(doubt) | Looks::TextBut(doubt) => Some(doubt),
                _ => continue,
            };
            match try_block(format, text) {
                // A text may declare a thousand files first.
                Trial::Took { data, .. } if data > 0 => {
                    let proves = matches!(format.entry().looks, Looks::Doubtful(_));
                    trials.take((TraceFormat::Block(format), proves), doubt, &sample);
                }
                Trial::Took { .. } => {}
                Trial::Failed(failure) => trials.failures.push(failure),
            }
        }
        for format in foreign::Format::ALL {
            if let Some(lines) = &format.entry().lines {
                trials.try_lines(TraceFormat::Memory(format), lines, text);
            }
        }
        trials.sorted()
    }

    pub fn of_binary(head: &[u8]) -> Self {
        let mut trials = Self::default();
        for format in block::Format::ALL {
            let Looks::Binary(signature, least) = format.entry().looks else {
                continue;
            };
            if !signature(head) {
                continue;
            }
            match try_block(format, head) {
                // A binary file that says nothing is none.
                Trial::Took { data, requests } if data >= least && requests => {
                    trials.candidates.push(TraceFormat::Block(format));
                }
                Trial::Failed(failure) => trials.failures.push(failure),
                _ => {}
            }
        }
        for (format, evidence) in champsim::evidence(head) {
            let format = TraceFormat::Memory(format);
            match evidence {
                Ok(()) => trials.candidates.push(format),
                Err(why) => trials.failures.push(Failure {
                    format,
                    taken: RECORDS,
                    reach: None,
                    why,
                }),
            }
        }
        trials.sorted()
    }

    /// Brings the failures that got furthest to the front.
    fn sorted(mut self) -> Self {
        self.failures.sort_by_key(|f| Reverse(f.rank()));
        self
    }

    /// The reader takes the lines; its doubts decide.
    fn take(
        &mut self,
        (format, proves): (TraceFormat, bool),
        doubt: Option<Doubt>,
        lines: &[&[u8]],
    ) {
        match doubt.and_then(|doubt| doubt(lines)) {
            Some(why) => self.doubts.push((format, why)),
            None => {
                self.proven |= proves && doubt.is_some();
                self.candidates.push(format);
            }
        }
    }

    fn try_lines(&mut self, format: TraceFormat, form: &Lines, text: &[u8]) {
        let mut sample: Vec<&[u8]> = Vec::new();
        let mut failure: Option<Failure> = None;
        let lines = text.split(|b| *b == b'\n');
        for (line, number) in lines.zip(1..=STEPS) {
            let last = is_last(line, text);
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            match (form.holds_data)(line) {
                Ok(true) => sample.push(line),
                Ok(false) => {}
                Err(_) if excused(sample.len() as u64, last) => break,
                Err(complaint) => {
                    let at = line.as_ptr().addr() - text.as_ptr().addr();
                    failure.get_or_insert_with(|| Failure {
                        format,
                        taken: 0,
                        reach: reach(complaint.field, &complaint.value, line),
                        why: place(at, number, &complaint),
                    });
                }
            }
            if sample.len() as u64 >= RECORDS {
                break;
            }
        }
        if let Some(failure) = failure {
            let taken = sample.len() as u64;
            self.failures.push(Failure { taken, ..failure });
        } else if !sample.is_empty() {
            self.take((format, true), form.doubt, &sample);
        }
    }

    /// Why there is no candidate.
    /// With it, whether a reader is named that took a record, or three quarters of the only one.
    pub fn why(&self, head: &[u8]) -> (String, bool) {
        let mut why = match is_text(head) {
            true => describe_text(head),
            false => describe_binary(head),
        };
        for (format, doubt) in &self.doubts {
            why += &format!("; it could be {format}, but {doubt}: name it if it is");
        }
        let nearest = match self.doubts.is_empty() {
            true => self.nearest(),
            false => &[],
        };
        for failure in nearest {
            why += &format!("; as {} it goes wrong at {}", failure.format, failure.why);
        }
        if nearest.is_empty() && !is_text(head) {
            why += "; w106, w106-be and valpin, which are numbers and nothing else, have no mark to \
                know them by";
        }
        (why, nearest.iter().any(|failure| failure.reaches(75)))
    }

    /// Who got furthest, if that is one reader or two: more of them say nothing.
    fn nearest(&self) -> &[Failure] {
        let Some(best) = self.failures.first().filter(|f| f.is_near()) else {
            return &[];
        };
        let equal = self.failures.iter().take_while(|f| f.rank() == best.rank());
        match equal.count() {
            n @ 1..=2 => &self.failures[..n],
            _ => &[],
        }
    }
}

/// What a parser of block or file traces made of a beginning.
enum Trial {
    Took { data: u64, requests: bool },
    Failed(Failure),
}

/// Whether a reader takes a beginning.
pub(super) fn takes(format: block::Format, head: &[u8]) -> bool {
    matches!(try_block(format, head), Trial::Took { data, .. } if data > 0)
}

fn try_block(format: block::Format, head: &[u8]) -> Trial {
    let mut parser: Box<dyn Parse> = (format.entry().parser)(&Options::default());
    let mut input = Input::plain("", head);
    let mut out = Vec::new();
    let mut state = State::default();
    let (mut steps, mut wrong, mut requests) = (0, 0, false);
    let mut failure: Option<Failure> = None;
    for _ in 0..STEPS {
        let mut sink = Sink {
            out: &mut out,
            state: &mut state,
        };
        let step = parser.step(&mut input, &mut sink);
        let data = |state: &State, steps: u64| steps.saturating_sub(state.passed.comments);
        match step {
            Ok(true) => steps += 1,
            Ok(false) => break,
            // The beginning was cut by us, not by who made the file.
            Err(ForeignError::Cut { .. }) if head.len() >= BUFFER => break,
            Err(ForeignError::Value {
                unended: Some(_), ..
            }) if excused(data(&state, steps), true) => break,
            Err(error) => {
                wrong += 1;
                let in_text = matches!(error, ForeignError::Value { line: Some(_), .. });
                failure.get_or_insert_with(|| Failure {
                    format: TraceFormat::Block(format),
                    taken: data(&state, steps),
                    reach: reach_of(&error, head),
                    why: error.to_string().trim_start_matches(": ").to_owned(),
                });
                // Behind a wrong record of bytes nothing is certain; a text has further lines.
                if !in_text || input.drop_overlong().is_err() || wrong >= RECORDS {
                    break;
                }
            }
        }
        requests |= !out.is_empty();
        let data = data(&state, steps);
        if let Some(failure) = &mut failure {
            failure.taken = data;
        }
        if data >= RECORDS && requests {
            break;
        }
        out.clear();
    }
    let data = steps.saturating_sub(state.passed.comments);
    match failure {
        Some(failure) => Trial::Failed(failure),
        None => Trial::Took { data, requests },
    }
}

fn reach_of(error: &ForeignError, head: &[u8]) -> Option<usize> {
    match error {
        ForeignError::Value {
            field,
            value,
            offset,
            line: Some(_),
            ..
        } => reach(field, value, line_at(head, *offset)),
        _ => None,
    }
}

/// Whether a line ends with the text, without a line feed.
fn is_last(line: &[u8], text: &[u8]) -> bool {
    line.as_ptr_range().end == text.as_ptr_range().end
}

fn line_at(head: &[u8], offset: u64) -> &[u8] {
    let from = usize::try_from(offset).ok().and_then(|at| head.get(at..));
    let from = from.unwrap_or_default();
    from.split(|b| *b == b'\n').next().unwrap_or_default()
}

/// How much of a line stands before the value that is wrong, in hundredths.
fn reach(field: &str, value: &str, line: &[u8]) -> Option<usize> {
    if WHOLE.contains(&field) {
        return None;
    }
    // As `shorten` writes it: in quotes, with dots for what is left out.
    let word = value.split("...\"").next().unwrap_or_default();
    let line = line.escape_ascii().to_string();
    // What is not in the line was computed from it: all fields were read.
    let at = line.find(word.trim_matches('"')).unwrap_or(line.len());
    Some(at * 100 / line.len().max(1))
}

fn place(at: usize, line: u64, complaint: &Complaint) -> String {
    let Complaint {
        field,
        value,
        allowed,
    } = complaint;
    format!("byte {at}, line {line}: {field} is {value}; allowed: {allowed}")
}

fn describe_text(head: &[u8]) -> String {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines = data_lines(text);
    let Some(first) = lines.next() else {
        return "there are only blank lines".to_owned();
    };
    let shown = shorten(first.trim_ascii());
    match (is_comment(first), lines.find(|l| !is_comment(l))) {
        (true, Some(next)) => {
            let next = shorten(next.trim_ascii());
            format!("a text that begins with the comment {shown} and goes on with {next}")
                + &without_first(text)
        }
        _ => format!("a text that begins with {shown}") + &without_first(text),
    }
}

fn is_comment(line: &[u8]) -> bool {
    line.trim_ascii_start().starts_with(b"#")
}

/// Whether only the beginning is in the way: a header, or comments.
fn without_first(text: &[u8]) -> String {
    let (mut from, mut passed, mut seen) = (0, 0, false);
    for line in text.split_inclusive(|b| *b == b'\n') {
        let blank = line.trim_ascii().is_empty();
        if seen && !blank && !is_comment(line) {
            break;
        }
        seen |= !blank;
        from += line.len();
        passed += 1;
    }
    let rest = &text[from..];
    if data_lines(rest).next().is_none() || libcachesim::is_header(rest) {
        return String::new();
    }
    let trials = Trials::of_text(rest);
    // What is taken away must be no record itself: a blank line or a comment further down is in the way.
    let first = data_lines(text).next().filter(|line| !is_comment(line));
    // Cells as in the next line, of which the first begins with a digit: no names of columns.
    let cells = |line: &[u8]| line.split(|b| b", \t;".contains(b)).count();
    let next = data_lines(rest).next();
    let is_row = |line: &[u8]| line.first().is_some_and(u8::is_ascii_digit);
    if first
        .zip(next)
        .is_some_and(|(first, next)| is_row(first) && cells(first) == cells(next))
    {
        return String::new();
    }
    let alike = |format: &TraceFormat| {
        let alone = first.map(Trials::of_text);
        alone.is_some_and(|alone| {
            alone.candidates.contains(format) || alone.doubts.iter().any(|(of, _)| of == format)
        })
    };
    if trials.candidates.iter().any(alike) {
        return String::new();
    }
    match trials.candidates[..] {
        [format] if trials.proven || trials.doubts.is_empty() => format!(
            "; without the first {} it is {format}: tail -n +{} takes {} away",
            if passed == 1 { "line" } else { "lines" },
            passed + 1,
            if passed == 1 { "it" } else { "them" },
        ),
        _ => String::new(),
    }
}

fn describe_binary(head: &[u8]) -> String {
    let start = shorten(&head[..head.len().min(16)]);
    format!("a binary file that begins with {start}")
}
