//! What a kernel says of its own types (BTF): signatures of functions, places of fields, values of
//! enumerators.
//!
//! The module calls functions that are not exported and replaces others. A name says nothing about
//! their arguments, so each is compared with what it was written for (`known.c`). The data is the
//! kernel's own, but nothing here relies on it: whatever does not fit is an absence, never a panic.
//!
//! Source: Linux, `Documentation/bpf/btf.rst`.

use core::fmt::{self, Write};

/// Bytes of a header, and of what every type begins with.
const HEADER: usize = 24;
const TYPE: usize = 12;
const MAGIC: u16 = 0xeb9f;

/// Steps through names, pointers and qualifiers until a type has to be found.
const STEPS: usize = 16;
/// Anonymous structures within one another that a field is looked for in.
const DEPTH: usize = 8;

const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FORWARD: u32 = 7;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNCTION: u32 = 12;
const PROTOTYPE: u32 = 13;
const VARIABLE: u32 = 14;
const SECTION: u32 = 15;
const FLOAT: u32 = 16;
const DECLARATION_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;

/// The types of a kernel.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Btf<'a> {
    types: &'a [u8],
    strings: &'a [u8],
    /// Where each type begins; the first is type 1, as type 0 is `void`.
    index: &'a [u32],
}

/// A field: where it begins in its structure, and its size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Field {
    /// Bits from the beginning of the structure.
    pub bit: u64,
    /// Bytes of its type.
    pub bytes: u64,
}

/// What every type begins with, and where the rest of it is.
#[derive(Clone, Copy)]
struct Type<'a> {
    name: u32,
    kind: u32,
    /// Members, arguments or enumerators.
    len: usize,
    flag: bool,
    /// Its size, or the type that it leads to.
    value: u32,
    rest: &'a [u8],
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*bytes))
}

impl<'a> Type<'a> {
    fn at(types: &'a [u8], at: usize) -> Option<Self> {
        let info = word(types, at.checked_add(4)?)?;
        let kind = info >> 24 & 31;
        let len = (info & 0xffff) as usize;
        let begin = at.checked_add(TYPE)?;
        let end = begin.checked_add(Self::rest_bytes(kind, len)?)?;
        Some(Self {
            name: word(types, at)?,
            kind,
            len,
            flag: info >> 31 == 1,
            value: word(types, at.checked_add(8)?)?,
            rest: types.get(begin..end)?,
        })
    }

    /// `None` for kinds that this reader does not know: what follows them cannot be found.
    const fn rest_bytes(kind: u32, len: usize) -> Option<usize> {
        match kind {
            POINTER | FORWARD | TYPEDEF | VOLATILE | CONST | RESTRICT | FUNCTION | FLOAT
            | TYPE_TAG => Some(0),
            INT | VARIABLE | DECLARATION_TAG => Some(4),
            ARRAY => Some(12),
            ENUM | PROTOTYPE => len.checked_mul(8),
            STRUCT | UNION | SECTION | ENUM64 => len.checked_mul(12),
            _ => None,
        }
    }

    /// Leads to another type without being one of its own for who asks for a size or for members.
    const fn is_name_only(&self) -> bool {
        matches!(self.kind, TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG)
    }
}

/// The parts of the data: types and strings.
fn parts(data: &[u8]) -> Option<(&[u8], &[u8])> {
    let magic = u16::from_le_bytes(*data.first_chunk::<2>()?);
    let header = word(data, 4)? as usize;
    if magic != MAGIC || header < HEADER {
        return None;
    }
    let part = |at: usize| {
        let begin = header.checked_add(word(data, at)? as usize)?;
        let end = begin.checked_add(word(data, at.checked_add(4)?)? as usize)?;
        data.get(begin..end)
    };
    Some((part(8)?, part(16)?))
}

/// The number of types that the data has, for which [`Btf::open`] needs an index; `None` if it is
/// none, or has a kind of type that this reader does not know.
pub fn count(data: &[u8]) -> Option<usize> {
    let (types, _) = parts(data)?;
    let (mut at, mut n) = (0usize, 0usize);
    while at < types.len() {
        let rest = Type::at(types, at)?.rest.len();
        at = at.checked_add(TYPE)?.checked_add(rest)?;
        n = n.checked_add(1)?;
    }
    Some(n)
}

impl<'a> Btf<'a> {
    /// Reads the data; `index` has [`count`] places.
    pub fn open(data: &'a [u8], index: &'a mut [u32]) -> Option<Self> {
        let (types, strings) = parts(data)?;
        let mut at = 0usize;
        for place in index.iter_mut() {
            *place = u32::try_from(at).ok()?;
            let rest = Type::at(types, at)?.rest.len();
            at = at.checked_add(TYPE)?.checked_add(rest)?;
        }
        (at == types.len()).then_some(Self {
            types,
            strings,
            index,
        })
    }

    fn get(&self, id: u32) -> Option<Type<'a>> {
        let at = self.index.get((id as usize).checked_sub(1)?)?;
        Type::at(self.types, *at as usize)
    }

    /// Bytes of a name; empty for what has none.
    fn name(&self, at: u32) -> &'a [u8] {
        let rest = self.strings.get(at as usize..).unwrap_or_default();
        let len = rest.iter().position(|&b| b == 0).unwrap_or(0);
        rest.get(..len).unwrap_or_default()
    }

    fn has_name(&self, at: u32, name: &[u8]) -> bool {
        let rest = self.strings.get(at as usize..).unwrap_or_default();
        rest.starts_with(name) && rest.get(name.len()) == Some(&0)
    }

    fn all(&self) -> impl DoubleEndedIterator<Item = Type<'a>> {
        let types = self.types;
        self.index
            .iter()
            .filter_map(move |&at| Type::at(types, at as usize))
    }

    /// Writes the return type and the types of the arguments of a function, as C has them; false if
    /// there is no such function.
    pub fn signature(&self, name: &[u8], out: &mut dyn Write) -> bool {
        // Functions are the last types.
        let function = self
            .all()
            .rev()
            .find(|t| t.kind == FUNCTION && self.has_name(t.name, name));
        let prototype = function.and_then(|t| self.get(t.value));
        match prototype {
            Some(t) if t.kind == PROTOTYPE => self.write_prototype(&t, " (", out).is_ok(),
            _ => false,
        }
    }

    fn write_prototype(&self, t: &Type<'_>, open: &str, out: &mut dyn Write) -> fmt::Result {
        self.write_type(t.value, false, out)?;
        out.write_str(open)?;
        for (i, argument) in t.rest.chunks_exact(8).enumerate() {
            if i > 0 {
                out.write_str(", ")?;
            }
            match word(argument, 4).unwrap_or(0) {
                0 => out.write_str("...")?,
                id => self.write_type(id, true, out)?,
            }
        }
        if t.len == 0 {
            out.write_str("void")?;
        }
        out.write_char(')')
    }

    /// Writes a type. A pointer to a function is written in full if it is an argument, but what its own
    /// arguments point to, if these are functions, is not.
    fn write_type(&self, id: u32, functions: bool, out: &mut dyn Write) -> fmt::Result {
        let (base, marks) = self.marks(id);
        if let Some(t) = self.get(base).filter(|t| t.kind == PROTOTYPE) {
            return if functions {
                self.write_callback(&t, out)
            } else {
                out.write_str("function *")
            };
        }
        let mut marks = marks.iter().rev().skip_while(|&&m| m == 0).peekable();
        while let Some(qualifier) = marks.next_if(|m| matches!(**m, CONST | VOLATILE)) {
            out.write_str(word_of(*qualifier))?;
            out.write_char(' ')?;
        }
        self.write_base(base, out)?;
        for (i, &mark) in marks.enumerate() {
            if i == 0 {
                out.write_char(' ')?;
            }
            out.write_str(word_of(mark))?;
        }
        Ok(())
    }

    fn write_callback(&self, t: &Type<'_>, out: &mut dyn Write) -> fmt::Result {
        self.write_type_plain(t.value, out)?;
        out.write_str(" (*)(")?;
        for (i, argument) in t.rest.chunks_exact(8).enumerate() {
            if i > 0 {
                out.write_str(", ")?;
            }
            self.write_type_plain(word(argument, 4).unwrap_or(0), out)?;
        }
        out.write_char(')')
    }

    /// As [`Btf::write_type`], for what is inside of a function that is an argument.
    fn write_type_plain(&self, id: u32, out: &mut dyn Write) -> fmt::Result {
        let (base, marks) = self.marks(id);
        self.write_base(base, out)?;
        let pointers = marks.iter().filter(|&&m| m == POINTER).count();
        if pointers > 0 {
            out.write_char(' ')?;
        }
        for _ in 0..pointers {
            out.write_char('*')?;
        }
        Ok(())
    }

    /// The type that pointers and qualifiers lead to, and these, the outermost first.
    fn marks(&self, mut id: u32) -> (u32, [u32; STEPS]) {
        let mut marks = [0; STEPS];
        let mut steps = marks.iter_mut();
        while let Some(t) = self.get(id) {
            match t.kind {
                POINTER | CONST | VOLATILE | RESTRICT => match steps.next() {
                    Some(mark) => *mark = t.kind,
                    None => break,
                },
                TYPE_TAG => {}
                _ => break,
            }
            id = t.value;
        }
        (id, marks)
    }

    fn write_base(&self, id: u32, out: &mut dyn Write) -> fmt::Result {
        let Some(t) = self.get(id) else {
            return out.write_str("void");
        };
        out.write_str(match t.kind {
            STRUCT => "struct ",
            UNION => "union ",
            FORWARD if t.flag => "union ",
            FORWARD => "struct ",
            ENUM | ENUM64 => "enum ",
            ARRAY => "array ",
            PROTOTYPE => "function ",
            _ => "",
        })?;
        out.write_str(core::str::from_utf8(self.name(t.name)).unwrap_or("?"))
    }

    /// Where a field of a structure is; those of anonymous structures and unions in it count as its own.
    pub fn field(&self, of: &[u8], name: &[u8]) -> Option<Field> {
        let outer = self
            .all()
            .find(|t| t.kind == STRUCT && self.has_name(t.name, of))?;
        let mut within = [(outer, 0u64); DEPTH];
        let mut n = 1usize;
        // Those that wait are in front; an anonymous member takes a place behind them.
        while n > 0 {
            n = n.checked_sub(1)?;
            let (t, base) = *within.get(n)?;
            for member in t.rest.chunks_exact(12) {
                let (at, id) = (word(member, 0)?, word(member, 4)?);
                let place = word(member, 8)?;
                let bit =
                    base.checked_add(u64::from(if t.flag { place & 0xff_ffff } else { place }))?;
                if self.has_name(at, name) {
                    let bytes = self.bytes_of(id)?;
                    return Some(Field { bit, bytes });
                }
                let inner = self.real(id).filter(|i| matches!(i.kind, STRUCT | UNION));
                if let Some(inner) = inner.filter(|_| self.name(at).is_empty()) {
                    *within.get_mut(n)? = (inner, bit);
                    n = n.checked_add(1)?;
                }
            }
        }
        None
    }

    /// The value of an enumerator.
    pub fn value(&self, name: &[u8]) -> Option<i64> {
        self.all().find_map(|t| match t.kind {
            ENUM => t.rest.chunks_exact(8).find_map(|each| {
                let it = self.has_name(word(each, 0)?, name);
                it.then(|| word(each, 4).map(|v| i64::from(v.cast_signed())))?
            }),
            _ => None,
        })
    }

    /// The type behind names and qualifiers.
    fn real(&self, mut id: u32) -> Option<Type<'a>> {
        for _ in 0..STEPS {
            let t = self.get(id)?;
            if !t.is_name_only() {
                return Some(t);
            }
            id = t.value;
        }
        None
    }

    fn bytes_of(&self, id: u32) -> Option<u64> {
        let (mut id, mut times) = (id, 1u64);
        for _ in 0..STEPS {
            let t = self.real(id)?;
            match t.kind {
                ARRAY => {
                    times = times.checked_mul(u64::from(word(t.rest, 8)?))?;
                    id = word(t.rest, 0)?;
                }
                POINTER => return times.checked_mul(8),
                INT | STRUCT | UNION | ENUM | ENUM64 | FLOAT => {
                    return times.checked_mul(u64::from(t.value));
                }
                _ => return None,
            }
        }
        None
    }
}

const fn word_of(mark: u32) -> &'static str {
    match mark {
        POINTER => "*",
        CONST => "const",
        VOLATILE => "volatile",
        _ => "",
    }
}
