//! The files of one run of `strace -ff`, one for each process, as the one log of `strace -f`.
//!
//! Only together do they say what a child has of its parent: open files with their offsets, its current
//! directory, and the names that others have changed. Their lines are put in the order of their times,
//! each with the number of its process before it, as `strace-log-merge` does. A line without a time (a
//! stack of `-k`, a dump) stays behind the one before it.
//!
//! A time of day does not say the day. Each file's first day is that of the call that made its process. Of lines
//! with one time, which is a whole second with `-t`, those of a process come before those of what it made.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::io::{self, Read};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::args::{Call, Reading};
use super::calls::makes_process;
use super::clock::{Calendar, Clock, DAY};
use super::line::{self, Body, Kind};
use super::reader::{CALL, LINE};
use super::who::Who;
use crate::block::error::BlockError;
use crate::block::reader::Joint;
use crate::foreign::ForeignError;
use crate::foreign::error::Complaint;
use crate::foreign::input::Input;
use crate::source;

/// Lines that are looked at for the first time.
const FIRST_LINES: usize = 64;

/// What files of one run have in common: the beginning of their names, and what their times count from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// The path without `.PID`.
    pub stem: String,
    of_day: bool,
}

impl Run {
    /// The run that a log may be of: the file is named after a process, and its lines have times and name
    /// no process.
    pub fn of(input: &mut Input) -> Option<Self> {
        let stem = Who::stem(input.name())?.to_owned();
        let head = input.peek().ok()?;
        let mut lines = head.split(|b| *b == b'\n').take(FIRST_LINES);
        let first = lines.find_map(|text| match line::read(text) {
            Ok(Kind::Line(line)) => Some(line),
            _ => None,
        })?;
        let of_day = match (first.pid, first.time?) {
            (Some(_), _) | (None, Clock::Since(_)) => return None,
            (None, clock) => matches!(clock, Clock::OfDay(_)),
        };
        Some(Self { stem, of_day })
    }

    /// Refuses two files of one process, such as a log and the same one packed.
    pub fn check_processes<'a>(
        &self,
        paths: impl Iterator<Item = &'a Path>,
    ) -> Result<(), BlockError> {
        let mut known: HashMap<u32, String> = HashMap::new();
        for path in paths {
            let second = source::name_of(path);
            let pid = Who::in_file(&second).home;
            if let Some(first) = known.insert(pid, second.clone()) {
                return Err(BlockError::SameProcess { first, second, pid });
            }
        }
        Ok(())
    }

    /// Opens the files as one text. `None` if times of day do not tell in which order they begin.
    ///
    /// # Errors
    /// A file cannot be opened or read.
    pub fn open(self, paths: Vec<PathBuf>) -> Result<Option<(Input, Files)>, ForeignError> {
        let begins = if self.of_day {
            begins(&paths)?
        } else {
            Some(vec![Begin::default(); paths.len()])
        };
        let Some(begins) = begins else {
            return Ok(None);
        };
        let ends = Arc::new(Mutex::new(Ends::default()));
        let woven = Woven::open(&paths, &begins, Arc::clone(&ends))?;
        let name = format!("{}.* ({} files of strace -ff)", self.stem, paths.len());
        let files = Files {
            paths,
            begins,
            ends,
        };
        Ok(Some((Input::of_lines(name, Box::new(woven)), files)))
    }
}

/// How files end.
#[derive(Debug, Default)]
struct Ends {
    /// Last lines that no line feed ends and that are calls.
    unended: u64,
    /// Those that are none.
    wrong: Vec<ForeignError>,
}

/// The files of a run that is being read.
pub(crate) struct Files {
    paths: Vec<PathBuf>,
    begins: Vec<Begin>,
    ends: Arc<Mutex<Ends>>,
}

impl Joint for Files {
    fn unended(&self) -> u64 {
        self.ends().unended
    }

    fn wrong_end(&self) -> Option<ForeignError> {
        self.ends().wrong.pop()
    }

    /// The files are read again up to there.
    fn located(&self, error: ForeignError) -> ForeignError {
        match error {
            ForeignError::Value {
                line: Some(number),
                field,
                value,
                allowed,
                unended,
                name,
                offset,
            } => {
                let place = self.place_of(number).ok().flatten();
                let (name, line, offset) = place.unwrap_or((name, number, offset));
                ForeignError::Value {
                    name,
                    line: Some(line),
                    offset,
                    field,
                    value,
                    allowed,
                    unended,
                }
            }
            // What a file's own reader said.
            ForeignError::Read {
                source,
                name,
                offset,
            } => match source.downcast::<ForeignError>() {
                Ok(own) => own,
                Err(source) => ForeignError::Read {
                    name,
                    offset,
                    source,
                },
            },
            other => other,
        }
    }
}

impl Files {
    fn ends(&self) -> std::sync::MutexGuard<'_, Ends> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn place_of(&self, line: NonZeroU64) -> Result<Option<Place>, ForeignError> {
        let mut woven = Woven::open(&self.paths, &self.begins, Arc::default())?;
        for _ in 1..line.get() {
            if woven.next()?.is_none() {
                return Ok(None);
            }
        }
        let part = woven.next_part()?.map(|nth| &woven.parts[nth]);
        Ok(part.and_then(|part| {
            let line = NonZeroU64::new(part.lines)?;
            Some((part.input.name().to_owned(), line, part.begins))
        }))
    }
}

/// A file, a line and the byte at which it begins.
type Place = (String, NonZeroU64, u64);

/// Where a file begins: on which day, and how many processes were made one by another down to its own.
#[derive(Clone, Copy, Debug, Default)]
struct Begin {
    day: u64,
    depth: usize,
}

/// One file.
struct Part {
    pid: u32,
    input: Input,
    calendar: Calendar,
    day: u64,
    /// The line that comes next, and its time if it has one.
    line: Vec<u8>,
    time: Option<u64>,
    /// Its number, and where it begins.
    lines: u64,
    begins: u64,
}

impl Part {
    fn open(path: &Path, day: u64) -> Result<Self, ForeignError> {
        let input = Input::open(path)?;
        Ok(Self {
            pid: Who::in_file(input.name()).home,
            input,
            calendar: Calendar::default(),
            day,
            line: Vec::new(),
            time: None,
            lines: 0,
            begins: 0,
        })
    }

    /// Goes to the next line; `false` at the end.
    fn next(&mut self, ends: &Mutex<Ends>) -> Result<bool, ForeignError> {
        let line = &mut self.line;
        self.begins = self.input.offset();
        let read = self.input.line(|text| {
            line.clear();
            line.extend_from_slice(text);
            Ok(())
        })?;
        self.lines += 1;
        let Some(()) = read else {
            return Ok(false);
        };
        let kind = line::read(&self.line);
        if self.input.oddities().unended_line {
            let mut ends = ends.lock().unwrap_or_else(PoisonError::into_inner);
            let part = match &kind {
                Ok(Kind::Message) => Some(("the line", LINE)),
                Ok(Kind::Line(line)) if matches!(line.body, Body::Begun(..)) => {
                    Some(("the call", CALL))
                }
                _ => None,
            };
            if let Some((what, allowed)) = part {
                let why = Complaint::text(what, &self.line, allowed);
                ends.wrong.push(self.input.fault(why));
                return Ok(false);
            }
            ends.unended += 1;
        }
        self.time = match kind {
            Ok(Kind::Line(line)) => line.time.map(|clock| self.calendar.resolve(clock).0),
            _ => None,
        };
        self.time = self.time.map(|time| time.saturating_add(self.day * DAY));
        Ok(true)
    }
}

/// Several files, line by line in the order of their times; of equal ones the file that was named first
/// comes first.
struct Woven {
    parts: Vec<Part>,
    /// When the next line of each file is due.
    due: BinaryHeap<Reverse<(u64, usize, usize)>>,
    depths: Vec<usize>,
    /// The file that the last line was of, which may have lines that belong to it.
    current: Option<usize>,
    text: Vec<u8>,
    given: usize,
    ends: Arc<Mutex<Ends>>,
}

impl Woven {
    fn open(
        paths: &[PathBuf],
        begins: &[Begin],
        ends: Arc<Mutex<Ends>>,
    ) -> Result<Self, ForeignError> {
        let mut parts = Vec::new();
        let mut due = BinaryHeap::new();
        for (nth, (path, begin)) in paths.iter().zip(begins).enumerate() {
            let mut part = Part::open(path, begin.day)?;
            if part.next(&ends)? {
                due.push(Reverse((part.time.unwrap_or(0), begin.depth, nth)));
            }
            parts.push(part);
        }
        Ok(Self {
            parts,
            due,
            depths: begins.iter().map(|begin| begin.depth).collect(),
            current: None,
            text: Vec::new(),
            given: 0,
            ends,
        })
    }

    /// The file whose line comes next.
    fn next_part(&mut self) -> Result<Option<usize>, ForeignError> {
        if let Some(nth) = self.current.take()
            && self.parts[nth].next(&self.ends)?
        {
            match self.parts[nth].time {
                None => return Ok(Some(nth)),
                Some(time) => self.due.push(Reverse((time, self.depths[nth], nth))),
            }
        }
        Ok(self.due.pop().map(|Reverse((.., nth))| nth))
    }

    /// Puts the next line into `text`.
    fn next(&mut self) -> Result<Option<()>, ForeignError> {
        let Some(nth) = self.next_part()? else {
            return Ok(None);
        };
        self.current = Some(nth);
        let part = &self.parts[nth];
        self.text.clear();
        self.given = 0;
        if part.time.is_some() {
            self.text.extend_from_slice(part.pid.to_string().as_bytes());
            self.text.push(b' ');
        }
        self.text.extend_from_slice(&part.line);
        self.text.push(b'\n');
        Ok(Some(()))
    }
}

impl Read for Woven {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.given == self.text.len() && self.next().map_err(io::Error::other)?.is_none() {
            return Ok(0);
        }
        let n = out.len().min(self.text.len() - self.given);
        out[..n].copy_from_slice(&self.text[self.given..self.given + n]);
        self.given += n;
        Ok(n)
    }
}

/// Where each file begins, if the calls that make processes tell. Files of processes that no
/// file makes begin on the first day, within 12 hours.
fn begins(paths: &[PathBuf]) -> Result<Option<Vec<Begin>>, ForeignError> {
    let mut firsts: Vec<Option<u64>> = Vec::new();
    let mut makers: HashMap<u32, (usize, u64)> = HashMap::new();
    let mut pids = Vec::new();
    for (nth, path) in paths.iter().enumerate() {
        let mut part = Part::open(path, 0)?;
        let (mut begin, ends) = (None, Mutex::default());
        while part.next(&ends)? {
            begin = begin.or(part.time);
            if let (Some(child), Some(time)) = (made(&part.line), part.time) {
                makers.insert(child, (nth, time));
            }
        }
        firsts.push(begin);
        pids.push(part.pid);
    }
    let first = |nth: &usize| !makers.contains_key(&pids[*nth]);
    let roots = (0..paths.len()).filter(first);
    let roots: Vec<u64> = roots.filter_map(|nth| firsts[nth]).collect();
    if let (Some(earliest), Some(latest)) = (roots.iter().min(), roots.iter().max())
        && latest - earliest > DAY / 2
    {
        return Ok(None);
    }
    let mut found: Vec<Option<Begin>> = vec![None; paths.len()];
    for nth in 0..paths.len() {
        // From the process up to one whose day is known, and back.
        let mut line = vec![nth];
        while let Some(top) = line.last().copied()
            && found[top].is_none()
            && let Some((maker, _)) = makers.get(&pids[top])
            && !line.contains(maker)
        {
            line.push(*maker);
        }
        for of in line.into_iter().rev() {
            if found[of].is_some() {
                continue;
            }
            let made = makers.get(&pids[of]);
            let maker = made.and_then(|(maker, time)| Some((found[*maker]?, *time)));
            let first = firsts[of].unwrap_or(0);
            // The whole days from its first time to when it was made, rounded.
            let whole = |made: u64| (made.saturating_sub(first) + DAY / 2) / DAY;
            found[of] = Some(maker.map_or(Begin::default(), |(maker, time)| Begin {
                day: whole(maker.day * DAY + time),
                depth: maker.depth + 1,
            }));
        }
    }
    Ok(Some(found.into_iter().flatten().collect()))
}

/// The process that a line's call has made.
fn made(text: &[u8]) -> Option<u32> {
    let Ok(Kind::Line(line)) = line::read(text) else {
        return None;
    };
    let Body::Call(name, rest) = line.body else {
        return None;
    };
    match Call::read(rest) {
        Reading::Whole(call) if makes_process(name) => {
            let child = call.result.filter(|made| made.number > 0)?;
            u32::try_from(child.number).ok()
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests;
