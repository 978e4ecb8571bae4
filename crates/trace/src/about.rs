//! What is said of a format: the part of its table entry that people read.
//!
//! Each reader has its entry beside it. `piebald trace formats` prints it, `docs/formats.md` is made
//! of it, and tests read its samples and compare its layouts with what the readers take.

/// What a format is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// What it is and who writes it, without a full stop.
    pub what: &'static str,
    /// How its records look.
    pub form: Form,
    /// Where fields and units are from: a file of the writer, or a specification.
    pub source: &'static str,
    /// What its stamps count from.
    pub stamps: Stamps,
    /// Events and fields that the reader ignores.
    pub left_out: &'static str,
}

/// How a format's records look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines.
    Text {
        /// The fields of a line.
        line: &'static str,
        /// Names of fields, and what they hold with their units.
        fields: &'static [(&'static str, &'static str)],
        /// Lines that the reader turns into exactly one request or reference.
        sample: &'static str,
    },
    /// Bytes.
    Binary {
        /// Of all numbers.
        order: ByteOrder,
        /// Parts of a file. With the sample values of their fields, one behind another, they are a
        /// file that the reader turns into exactly one request or reference.
        parts: &'static [Part],
    },
}

/// Order of the bytes of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ByteOrder {
    /// The lowest first.
    Little,
    /// The highest first.
    Big,
    /// That of the traced machine, which the file shows. The sample is little-endian.
    OfMachine,
}

impl ByteOrder {
    /// The words that users see.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Little => "little-endian",
            Self::Big => "big-endian",
            Self::OfMachine => "in the byte order of the traced machine",
        }
    }
}

/// A header or a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// Which.
    pub what: &'static str,
    /// What else is to be said of it; may be empty.
    pub note: &'static str,
    /// Its fields without gaps; the first begins at byte 0.
    pub fields: &'static [Field],
}

impl Part {
    /// Length in bytes.
    pub fn bytes(&self) -> usize {
        self.fields.iter().map(Field::bytes).sum()
    }
}

/// A field of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name, the writer's where that says what it is.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// How many of them follow one another, at least 1.
    pub times: usize,
    /// What it holds, with the unit.
    pub holds: &'static str,
    /// How its numbers are best shown.
    pub shown: Radix,
    /// What the first of them holds in the sample; the others hold 0.
    pub sample: i64,
}

/// A field.
pub(crate) const fn field(
    name: &'static str,
    kind: Kind,
    holds: &'static str,
    sample: i64,
) -> Field {
    Field {
        name,
        kind,
        times: 1,
        holds,
        shown: Radix::Decimal,
        sample,
    }
}

/// A field whose numbers are addresses or bits.
pub(crate) const fn hex(of: Field) -> Field {
    Field {
        shown: Radix::Hexadecimal,
        ..of
    }
}

/// So many fields of one kind.
pub(crate) const fn fields(times: usize, of: Field) -> Field {
    Field { times, ..of }
}

/// Bytes that the reader passes over.
pub(crate) const fn unused(name: &'static str, bytes: usize) -> Field {
    field(name, Kind::Bytes(bytes), "not used", 0)
}

/// How numbers are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radix {
    /// To the base of 10.
    Decimal,
    /// To the base of 16.
    Hexadecimal,
}

/// Type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Without sign, 8 bits.
    U8,
    /// Without sign, 16 bits.
    U16,
    /// Without sign, 32 bits.
    U32,
    /// Without sign, 64 bits.
    U64,
    /// With sign, 32 bits.
    I32,
    /// With sign, 64 bits.
    I64,
    /// So many bytes; 0 in the sample.
    Bytes(usize),
}

impl Kind {
    /// Its length.
    pub const fn bytes(self) -> usize {
        match self {
            Self::U8 => 1,
            Self::U16 => 2,
            Self::U32 | Self::I32 => 4,
            Self::U64 | Self::I64 => 8,
            Self::Bytes(n) => n,
        }
    }

    /// The word that users see.
    pub const fn name(self) -> &'static str {
        match self {
            Self::U8 => "u8",
            Self::U16 => "u16",
            Self::U32 => "u32",
            Self::U64 => "u64",
            Self::I32 => "i32",
            Self::I64 => "i64",
            Self::Bytes(_) => "bytes",
        }
    }
}

/// What a format's stamps count from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stamps {
    /// There are none: records are in order.
    Absent,
    /// A date: unit and date.
    Absolute(&'static str),
    /// A clock that all files of one tracing run share, whose origin is not told: unit and which.
    Shared(&'static str),
    /// The begin of the trace, the record before, or a clock whose origin is not told: unit and
    /// which.
    Relative(&'static str),
    /// As the tracer was asked: which.
    Optional(&'static str),
}

/// What the stamps of one file count from, as far as files can be compared by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// There are no stamps.
    Absent,
    /// A date.
    Absolute,
    /// Midnight of a day that is not told.
    OfDay,
    /// A clock that the files of one tracing run share.
    Shared,
    /// Something of this file alone.
    Relative,
}

impl Stamps {
    /// What the stamps of a file count from; `None` where the file has to tell.
    pub const fn origin(&self) -> Option<Origin> {
        match self {
            Self::Absent => Some(Origin::Absent),
            Self::Absolute(_) => Some(Origin::Absolute),
            Self::Shared(_) => Some(Origin::Shared),
            Self::Relative(_) => Some(Origin::Relative),
            Self::Optional(_) => None,
        }
    }
}

impl Form {
    /// A file with one request or reference.
    pub fn sample(&self) -> Vec<u8> {
        match self {
            Self::Text { sample, .. } => sample.as_bytes().to_vec(),
            Self::Binary { order, parts } => {
                let fields = parts.iter().flat_map(|part| part.fields);
                fields.flat_map(|f| f.sample_bytes(*order)).collect()
            }
        }
    }
}

impl Field {
    /// Length of all of them in bytes.
    pub const fn bytes(&self) -> usize {
        self.times * self.kind.bytes()
    }

    fn sample_bytes(&self, order: ByteOrder) -> Vec<u8> {
        let mut bytes = self.sample.to_le_bytes().to_vec();
        bytes.resize(self.kind.bytes(), 0);
        if order == ByteOrder::Big {
            bytes.reverse();
        }
        bytes.resize(self.bytes(), 0);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_the_fields_one_behind_another_in_their_order() {
        const PARTS: &[Part] = &[
            Part {
                what: "Header",
                note: "",
                fields: &[field("a", Kind::U16, "", 0x0102), unused("b", 2)],
            },
            Part {
                what: "Record",
                note: "",
                fields: &[fields(2, field("c", Kind::I32, "", -2))],
            },
        ];
        let of = |order| {
            let form = Form::Binary {
                order,
                parts: PARTS,
            };
            form.sample()
        };
        assert_eq!(
            of(ByteOrder::Little),
            [2, 1, 0, 0, 254, 255, 255, 255, 0, 0, 0, 0]
        );
        assert_eq!(
            of(ByteOrder::Big),
            [1, 2, 0, 0, 255, 255, 255, 254, 0, 0, 0, 0]
        );
        assert_eq!(PARTS.iter().map(Part::bytes).collect::<Vec<_>>(), [4, 8]);
    }
}
