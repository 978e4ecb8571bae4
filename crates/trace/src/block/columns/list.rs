//! The list of columns as a user writes it.

use std::str::FromStr;

use piebald_units::Bytes;

use super::fields::{
    Clock, Column, Digits, Direction, Fields, Id, IdKind, Moment, Others, Process, Quantity, Size,
    What, Words,
};
use super::split::Separator;
use crate::quote::shorten;

/// Words that a list may begin its items with.
pub const FIELDS: [&str; 9] = [
    "time", "op", "offset", "size", "id", "device", "process", "sep", "header",
];

/// A line is no longer than 16384 bytes.
const MAX_COLUMN: usize = 16_384;
/// Largest unit of offsets and sizes, and largest constant size.
const MAX_UNIT: u64 = Bytes::GIB;
const MAX_HEADER: u64 = 1000;

const COLUMN: &str = "the number of a column, from 1 to 16384, or its name in the header";
const TIME: &str = "COLUMN:UNIT with a unit of s, ms, us, ns, iso for dates as in \
                    2024-01-02T03:04:05.678Z, or none if the number gives an order and no time; :hex \
                    behind it for hexadecimal numbers";
const PLACE: &str = "COLUMN:UNIT with a unit of B, sector (512 B), KiB, page (4 KiB) or block:SIZE \
                     as in block:8KiB, up to 1 GiB; :hex behind it for hexadecimal numbers";
const SIZE: &str = "COLUMN:UNIT as for an offset, or a constant from 1 B to 1 GiB as in :4KiB; an \
                    object's size may go without unit, and is in bytes then";
const ID: &str = "COLUMN for numbers, COLUMN:hex for hexadecimal ones, COLUMN:text for any names";
const OP: &str = "COLUMN, or with other words than r and w COLUMN:READ/WRITE or \
                  COLUMN:READ/WRITE/PASSED, each a word or several with + between them, all of them \
                  different; a PASSED of * is any other word";
const PROCESS: &str = "COLUMN for numbers, COLUMN:hex for hexadecimal ones";
const SEPARATOR: &str = "comma, tab, semicolon or blanks";
const HEADER: &str = "the number of lines before the first record, 0 to 1000; 1 or more if columns \
                      are given by their names";

/// What is in which column of a text, as in `time=1:us,op=2,offset=3:B,size=4:B`. [`FromStr`] reads
/// it; `docs/replay.md` has the grammar.
///
/// ```
/// use piebald_trace::block::{BlockTrace, Columns, Options, head};
///
/// let columns: Columns = "device=1,op=2,offset=3:B,size=4:B,time=5:us".parse()?;
/// let options = Options {
///     columns: Some(columns),
///     ..Options::default()
/// };
/// let text = b"419,W,8192,4096,1577808144360767\n";
/// let mut trace = BlockTrace::from_bytes("text", text, options)?;
/// let line = "#0 1577808144360767000 0 write disk 419 sectors 16+8";
/// assert_eq!(head(&mut trace, 1)?, [line]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Columns {
    /// Elsewhere, because options are passed on by value.
    pub(crate) fields: Box<Fields<Column>>,
    /// Told by the first line if it is not given.
    pub(crate) separator: Option<Separator>,
    /// Lines before the first record.
    pub(crate) header: Option<u64>,
}

/// Why a list of columns cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ColumnsError {
    /// Something without an equals sign.
    #[error("{value} is no item; allowed: FIELD=COLUMN, with commas between items")]
    NoItem {
        /// It, shortened.
        value: String,
    },
    /// There is no such field.
    #[error("\"{field}\" is no field; allowed: {}", FIELDS.join(", "))]
    UnknownField {
        /// What stands there instead.
        field: String,
    },
    /// A field stands twice in the list.
    #[error("{field} is given twice; allowed: once")]
    Twice {
        /// Which.
        field: &'static str,
    },
    /// What stands behind the equals sign.
    #[error("{field} is {value}; allowed: {allowed}")]
    Value {
        /// Of which field.
        field: &'static str,
        /// It, shortened.
        value: String,
        /// What may stand there.
        allowed: &'static str,
    },
    /// A field that the others need.
    #[error("{field} is missing; allowed: {allowed}")]
    Missing {
        /// Which.
        field: &'static str,
        /// What may stand there.
        allowed: &'static str,
    },
    /// Two fields that exclude each other.
    #[error("offset and id are both given; allowed: one of them")]
    OffsetAndId,
}

fn refuse(field: &'static str, value: &str, allowed: &'static str) -> ColumnsError {
    ColumnsError::Value {
        field,
        value: shorten(value.as_bytes()),
        allowed,
    }
}

/// The items of a list so far.
#[derive(Default)]
struct Draft<'a> {
    time: Option<Moment<Column>>,
    op: Option<Direction<Column>>,
    offset: Option<Quantity<Column>>,
    /// As it was written: what it means depends on what has the size.
    size: Option<&'a str>,
    id: Option<Id<Column>>,
    device: Option<Vec<Column>>,
    process: Option<Process<Column>>,
    separator: Option<Separator>,
    header: Option<u64>,
}

impl FromStr for Columns {
    type Err = ColumnsError;

    fn from_str(list: &str) -> Result<Self, ColumnsError> {
        let mut draft = Draft::default();
        for item in list.split(',').map(str::trim) {
            let (word, says) = item.split_once('=').ok_or_else(|| ColumnsError::NoItem {
                value: shorten(item.as_bytes()),
            })?;
            let known = FIELDS.into_iter().find(|field| *field == word);
            let field = known.ok_or_else(|| ColumnsError::UnknownField {
                field: word.chars().filter(|c| !c.is_control()).take(32).collect(),
            })?;
            draft.take(field, says)?;
        }
        draft.finish()
    }
}

impl<'a> Draft<'a> {
    fn take(&mut self, field: &'static str, says: &'a str) -> Result<(), ColumnsError> {
        let twice = match field {
            "time" => self.time.replace(moment(says)?).is_some(),
            "op" => self.op.replace(direction(says)?).is_some(),
            "offset" => self.offset.replace(offset(says)?).is_some(),
            "size" => self.size.replace(says).is_some(),
            "id" => self.id.replace(id(says)?).is_some(),
            "device" => self.device.replace(device(says)?).is_some(),
            "process" => self.process.replace(process(says)?).is_some(),
            "sep" => self.separator.replace(separator(says)?).is_some(),
            _ => self.header.replace(header(says)?).is_some(),
        };
        match twice {
            true => Err(ColumnsError::Twice { field }),
            false => Ok(()),
        }
    }

    fn finish(self) -> Result<Columns, ColumnsError> {
        let what = what(self.offset, self.id, self.size)?;
        let fields = Fields {
            time: self.time,
            op: self.op,
            device: self.device.unwrap_or_default(),
            process: self.process,
            what,
        };
        let columns = Columns {
            fields: Box::new(fields),
            separator: self.separator,
            header: self.header,
        };
        match columns.has_names() && columns.header == Some(0) {
            true => Err(refuse("header", "0", HEADER)),
            false => Ok(columns),
        }
    }
}

impl Columns {
    /// Whether requests have times.
    pub(crate) fn has_times(&self) -> bool {
        let time = self.fields.time.as_ref();
        time.is_some_and(|time| time.clock != Clock::Order)
    }

    /// Whether reads and writes are told apart.
    pub(crate) fn has_directions(&self) -> bool {
        self.fields.op.is_some()
    }

    /// Whether requests have places on a disk.
    pub(crate) fn has_places(&self) -> bool {
        matches!(self.fields.what, What::Place { .. })
    }

    /// Whether objects have names, so that their numbers are those of first use.
    pub(crate) fn names_objects(&self) -> bool {
        matches!(&self.fields.what, What::Object { id, .. } if id.kind == IdKind::Text)
    }

    /// Whether a column is given by its name, so that there is a header.
    pub(crate) fn has_names(&self) -> bool {
        let named = |_, column: &Column| match column {
            Column::Number(_) => Ok(()),
            Column::Name(_) => Err(()),
        };
        self.fields.place(named).is_err()
    }
}

fn what(
    offset: Option<Quantity<Column>>,
    id: Option<Id<Column>>,
    written: Option<&str>,
) -> Result<What<Column>, ColumnsError> {
    let missing = |field, allowed| ColumnsError::Missing { field, allowed };
    match (offset, id) {
        (Some(_), Some(_)) => Err(ColumnsError::OffsetAndId),
        (None, None) => Err(missing(
            "offset or id",
            "offset=COLUMN:UNIT for places on a disk, or id=COLUMN for numbers or names of objects",
        )),
        (Some(offset), None) => {
            let written = written.ok_or_else(|| missing("size", SIZE))?;
            let size = size(written, None)?;
            Ok(What::Place { offset, size })
        }
        (None, Some(id)) => {
            let size = written.map(|text| size(text, Some(1))).transpose()?;
            Ok(What::Object { id, size })
        }
    }
}

fn column(field: &'static str, text: &str) -> Result<Column, ColumnsError> {
    let number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    if !number {
        return match text.is_empty() {
            true => Err(refuse(field, text, COLUMN)),
            false => Ok(Column::Name(text.to_owned())),
        };
    }
    let number = text.parse().ok();
    number
        .filter(|n| (1..=MAX_COLUMN).contains(n))
        .map(Column::Number)
        .ok_or_else(|| refuse(field, text, COLUMN))
}

/// The column and the words behind it.
fn parts<'a>(field: &'static str, says: &'a str) -> Result<(Column, Vec<&'a str>), ColumnsError> {
    let mut words = says.split(':');
    let first = column(field, words.next().unwrap_or_default())?;
    Ok((first, words.collect()))
}

/// Takes the word `hex` from the end, if it is there.
fn digits(words: &mut Vec<&str>) -> Digits {
    match words.last() {
        Some(&"hex") => {
            words.pop();
            Digits::Hex
        }
        _ => Digits::Decimal,
    }
}

fn moment(says: &str) -> Result<Moment<Column>, ColumnsError> {
    let (column, mut words) = parts("time", says)?;
    let digits = digits(&mut words);
    let scaled = |shift| Clock::Scaled { shift, digits };
    let clock = match words[..] {
        ["s"] => scaled(9),
        ["ms"] => scaled(6),
        ["us"] => scaled(3),
        ["ns"] => scaled(0),
        ["iso"] if digits == Digits::Decimal => Clock::Date,
        ["none"] => Clock::Order,
        _ => return Err(refuse("time", says, TIME)),
    };
    Ok(Moment { column, clock })
}

fn process(says: &str) -> Result<Process<Column>, ColumnsError> {
    let (column, mut words) = parts("process", says)?;
    let digits = digits(&mut words);
    match words.is_empty() {
        true => Ok(Process { column, digits }),
        false => Err(refuse("process", says, PROCESS)),
    }
}

fn unit(words: &[&str]) -> Option<u64> {
    match words {
        ["B"] => Some(1),
        ["sector"] => Some(512),
        ["KiB"] => Some(1024),
        ["page"] => Some(piebald_units::PAGE_SIZE),
        ["block", size] => bytes(size),
        _ => None,
    }
}

fn bytes(text: &str) -> Option<u64> {
    let size: Bytes = text.parse().ok()?;
    (1..=MAX_UNIT).contains(&size.0).then_some(size.0)
}

fn offset(says: &str) -> Result<Quantity<Column>, ColumnsError> {
    let (column, mut words) = parts("offset", says)?;
    let digits = digits(&mut words);
    let unit = unit(&words).ok_or_else(|| refuse("offset", says, PLACE))?;
    Ok(Quantity {
        column,
        unit,
        digits,
    })
}

/// `bare` is the unit of a column without one.
fn size(says: &str, bare: Option<u64>) -> Result<Size<Column>, ColumnsError> {
    let wrong = || refuse("size", says, SIZE);
    if let Some(constant) = says.strip_prefix(':') {
        return bytes(constant).map(Size::Always).ok_or_else(wrong);
    }
    let (column, mut words) = parts("size", says)?;
    let digits = digits(&mut words);
    let unit = match words.is_empty() {
        true => bare,
        false => unit(&words),
    };
    Ok(Size::Column(Quantity {
        column,
        unit: unit.ok_or_else(wrong)?,
        digits,
    }))
}

fn id(says: &str) -> Result<Id<Column>, ColumnsError> {
    let (column, words) = parts("id", says)?;
    let kind = match words[..] {
        [] => IdKind::Number(Digits::Decimal),
        ["hex"] => IdKind::Number(Digits::Hex),
        ["text"] => IdKind::Text,
        _ => return Err(refuse("id", says, ID)),
    };
    Ok(Id { column, kind })
}

fn device(says: &str) -> Result<Vec<Column>, ColumnsError> {
    says.split('+').map(|text| column("device", text)).collect()
}

fn direction(says: &str) -> Result<Direction<Column>, ColumnsError> {
    let (text, words) = match says.split_once(':') {
        Some((text, words)) => (text, Some(words)),
        None => (says, None),
    };
    let column = column("op", text)?;
    let words = match words {
        None => Words::Usual,
        Some(told) => told_words(told).ok_or_else(|| refuse("op", says, OP))?,
    };
    Ok(Direction { column, words })
}

fn told_words(told: &str) -> Option<Words> {
    let mut lists = told.split('/');
    let words = |list: &str| list.split('+').map(str::to_owned).collect::<Vec<_>>();
    let (reads, writes) = (words(lists.next()?), words(lists.next()?));
    let others = match (lists.next(), lists.next()) {
        (None, _) => Others::Words(Vec::new()),
        (Some("*"), None) => Others::Any,
        (Some(list), None) => Others::Words(words(list)),
        _ => return None,
    };
    let mut all: Vec<&String> = reads.iter().chain(&writes).collect();
    if let Others::Words(others) = &others {
        all.extend(others);
    }
    all.sort_unstable();
    let fine = all.iter().all(|word| !word.is_empty() && *word != "*");
    let different = all.windows(2).all(|pair| pair[0] != pair[1]);
    (fine && different).then_some(Words::Told {
        reads,
        writes,
        others,
    })
}

fn separator(says: &str) -> Result<Separator, ColumnsError> {
    match says {
        "comma" => Ok(Separator::Byte(b',')),
        "tab" => Ok(Separator::Byte(b'\t')),
        "semicolon" => Ok(Separator::Byte(b';')),
        "blanks" => Ok(Separator::Blanks),
        _ => Err(refuse("sep", says, SEPARATOR)),
    }
}

fn header(says: &str) -> Result<u64, ColumnsError> {
    let digits = !says.is_empty() && says.bytes().all(|b| b.is_ascii_digit());
    let lines = digits.then(|| says.parse().ok()).flatten();
    lines
        .filter(|n| *n <= MAX_HEADER)
        .ok_or_else(|| refuse("header", says, HEADER))
}
