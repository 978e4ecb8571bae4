//! What a list of columns says: which field stands in which column, and how it is written there.

use crate::block::request::Op;

/// A column as a user names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// By its number, from 1.
    Number(usize),
    /// By its name in the header.
    Name(String),
}

/// How whole numbers are written. `0x` and a hexadecimal number are understood in both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Digits {
    #[default]
    Decimal,
    Hex,
}

/// The fields, whose columns are of type `C`: [`Column`] as the list has them, or their places in a
/// line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fields<C> {
    pub time: Option<Moment<C>>,
    pub op: Option<Direction<C>>,
    /// The process that makes the request; without it, one process makes all of them.
    pub process: Option<Process<C>>,
    /// Columns that name the volume together; one volume if there are none.
    pub device: Vec<C>,
    pub what: What<C>,
}

/// What a request is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum What<C> {
    /// Bytes of a volume.
    Place { offset: Quantity<C>, size: Size<C> },
    /// An object without a place.
    Object { id: Id<C>, size: Option<Size<C>> },
}

/// When a request was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Moment<C> {
    pub column: C,
    pub clock: Clock,
}

/// How a time is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clock {
    /// A number; nanoseconds are this times 10 to the power of `shift`.
    Scaled { shift: usize, digits: Digits },
    /// A date.
    Date,
    /// A number that gives an order and no time.
    Order,
}

/// The number of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Process<C> {
    pub column: C,
    pub digits: Digits,
}

/// A number of units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quantity<C> {
    pub column: C,
    /// In bytes, at least 1.
    pub unit: u64,
    pub digits: Digits,
}

/// How much a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Size<C> {
    /// What a column says.
    Column(Quantity<C>),
    /// So many bytes, always.
    Always(u64),
}

/// The name of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Id<C> {
    pub column: C,
    pub kind: IdKind,
}

/// What names of objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdKind {
    Number(Digits),
    Text,
}

/// Whether a request reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Direction<C> {
    pub column: C,
    pub words: Words,
}

/// The words for reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Words {
    /// Those that most tracers write.
    Usual,
    /// Those that the list tells.
    Told {
        reads: Vec<String>,
        writes: Vec<String>,
        others: Others,
    },
}

/// What is neither a read nor a write, and passed over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Others {
    /// These words.
    Words(Vec<String>),
    /// Any other word.
    Any,
}

/// The usual words, in any case. blkparse writes `RS` and `WS` for what must not wait.
pub(crate) fn usual(text: &[u8]) -> Option<Op> {
    let is = |word: &&str| text.eq_ignore_ascii_case(word.as_bytes());
    if ["r", "read", "rs"].iter().any(is) {
        return Some(Op::Read);
    }
    ["w", "write", "ws"].iter().any(is).then_some(Op::Write)
}

impl<C> Fields<C> {
    /// The same with other columns. `place` gets the name of each field with its column.
    pub fn place<D, E>(
        &self,
        mut place: impl FnMut(&'static str, &C) -> Result<D, E>,
    ) -> Result<Fields<D>, E> {
        Ok(Fields {
            time: match &self.time {
                None => None,
                Some(time) => Some(Moment {
                    column: place("time", &time.column)?,
                    clock: time.clock,
                }),
            },
            op: match &self.op {
                None => None,
                Some(op) => Some(Direction {
                    column: place("op", &op.column)?,
                    words: op.words.clone(),
                }),
            },
            process: match &self.process {
                None => None,
                Some(process) => Some(Process {
                    column: place("process", &process.column)?,
                    digits: process.digits,
                }),
            },
            device: {
                let columns = self.device.iter().map(|column| place("device", column));
                columns.collect::<Result<_, E>>()?
            },
            what: self.what.place(&mut place)?,
        })
    }
}

impl<C> What<C> {
    fn place<D, E>(
        &self,
        place: &mut impl FnMut(&'static str, &C) -> Result<D, E>,
    ) -> Result<What<D>, E> {
        Ok(match self {
            Self::Place { offset, size } => What::Place {
                offset: offset.with(place("offset", &offset.column)?),
                size: size.place(place)?,
            },
            Self::Object { id, size } => What::Object {
                id: Id {
                    column: place("id", &id.column)?,
                    kind: id.kind,
                },
                size: match size {
                    None => None,
                    Some(size) => Some(size.place(place)?),
                },
            },
        })
    }
}

impl<C> Quantity<C> {
    const fn with<D>(&self, column: D) -> Quantity<D> {
        Quantity {
            column,
            unit: self.unit,
            digits: self.digits,
        }
    }
}

impl<C> Size<C> {
    fn place<D, E>(
        &self,
        place: &mut impl FnMut(&'static str, &C) -> Result<D, E>,
    ) -> Result<Size<D>, E> {
        Ok(match self {
            Self::Column(quantity) => Size::Column(quantity.with(place("size", &quantity.column)?)),
            Self::Always(bytes) => Size::Always(*bytes),
        })
    }
}
