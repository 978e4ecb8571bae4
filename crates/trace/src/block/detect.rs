//! Which format a trace has: its content decides, not its name.
//!
//! The unpacked beginning (up to 64 KiB) is given to the parsers of all formats; one that takes its
//! first records is a candidate. Several candidates are an error, because replaying a trace in the
//! wrong format gives results that look right.

use super::error::BlockError;
use super::reader::{Looks, Parse};
use super::sink::{Sink, State};
use super::{Format, Options, Times};
use crate::foreign::ForeignError;
use crate::foreign::error::shorten;
use crate::foreign::input::Input;

/// Records with data that must parse; damage further on is the reader's to report.
const RECORDS: u64 = 64;
/// Steps that a parser may take to reach them: comments and declarations count too.
const STEPS: u64 = 4096;
/// Bytes below which the beginning is the whole file.
const HEAD: usize = 1 << 16;

/// What a parser made of the beginning.
#[derive(Default)]
struct Trial {
    /// Records that are more than comments.
    data: u64,
    /// Any of them became a request.
    requests: bool,
    /// Why it stopped, if something is wrong.
    failure: Option<String>,
}

/// Finds out the format without consuming anything.
pub(crate) fn detect(input: &mut Input) -> Result<Format, BlockError> {
    let name = input.name().to_owned();
    let head = input.peek()?;
    if head.is_empty() {
        return Err(BlockError::Empty { name });
    }
    let text = is_text(head);
    let mut candidates = Vec::new();
    let mut nearest: Option<(Format, Trial)> = None;
    for format in Format::ALL {
        let Some(trial) = try_format(format, head, text) else {
            continue;
        };
        match (&trial.failure, &nearest) {
            // A text may declare a thousand files first; a binary file that says nothing is none.
            (None, _) if trial.data > 0 && (text || trial.requests) => candidates.push(format),
            (Some(_), None) if trial.data > 0 => nearest = Some((format, trial)),
            (Some(_), Some((_, best))) if trial.data > best.data => nearest = Some((format, trial)),
            _ => {}
        }
    }
    match candidates[..] {
        [format] => Ok(format),
        [] => Err(BlockError::Unrecognised {
            name,
            why: describe(head, text, nearest),
        }),
        _ => Err(BlockError::Ambiguous { name, candidates }),
    }
}

fn is_text(head: &[u8]) -> bool {
    head.iter()
        .all(|b| matches!(b, b'\t' | b'\n' | b'\r' | b' '..=b'~' | 0x80..))
}

/// `None` if the format is out of the question.
fn try_format(format: Format, head: &[u8], text: bool) -> Option<Trial> {
    let entry = format.entry();
    let head = match entry.looks {
        Looks::Text if text => whole_lines(head),
        Looks::Binary(signature) if !text && signature(head) => head,
        _ => return None,
    };
    let parser = (entry.parser)(&Options::default());
    Some(try_parser(
        parser,
        head,
        entry.traits.times == Times::Ordered,
    ))
}

/// A line that goes on behind the beginning says nothing; but if there is no other, take it whole.
fn whole_lines(head: &[u8]) -> &[u8] {
    match memchr::memrchr(b'\n', head) {
        Some(last) => &head[..=last],
        None => head,
    }
}

fn try_parser(mut parser: Box<dyn Parse>, head: &[u8], ordered: bool) -> Trial {
    let mut input = Input::plain("", head);
    let mut out = Vec::new();
    let mut state = State {
        ordered,
        ..State::default()
    };
    let mut trial = Trial::default();
    for steps in 1..=STEPS {
        let mut sink = Sink {
            out: &mut out,
            state: &mut state,
        };
        match parser.step(&mut input, &mut sink) {
            Ok(true) => {}
            Ok(false) => break,
            // The beginning was cut by us, not by who made the file.
            Err(ForeignError::Cut { .. }) if head.len() >= HEAD => break,
            Err(error) => {
                trial.failure = Some(error.to_string());
                break;
            }
        }
        trial.data = steps - state.passed.comments.min(steps);
        trial.requests |= !out.is_empty();
        if trial.data >= RECORDS && trial.requests {
            break;
        }
        out.clear();
    }
    trial
}

fn describe(head: &[u8], text: bool, nearest: Option<(Format, Trial)>) -> String {
    let lines = head.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    let mut why = match text {
        true => {
            let first = lines.into_iter().find(|l| !l.is_empty());
            match first {
                None => return "there are only blank lines".to_owned(),
                Some(line) if head.len() < HEAD && !head.contains(&b'\n') => {
                    format!("a text without a line feed at its end: {}", shorten(line))
                }
                Some(line) => format!("a text that begins with {}", shorten(line)),
            }
        }
        false => {
            let start = shorten(&head[..head.len().min(16)]);
            format!("a binary file that begins with {start} (w106 has no mark to know it by)")
        }
    };
    if let Some((format, trial)) = nearest {
        let failure = trial.failure.unwrap_or_default();
        why += &format!(
            "; as {format} it goes wrong at {}",
            failure.trim_start_matches(": ")
        );
    }
    why
}
