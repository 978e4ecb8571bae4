//! An example of a list of columns for a text of unknown format.
//!
//! A guess, which the user has to look at: names in a header tell what they are and in which unit, then
//! words for reads and writes, then dates, stamps of our day and numbers that never fall (times), then
//! the largest numbers that are no stamps (places). Without reads and writes there are objects.

use std::cmp::Reverse;

use super::date;
use super::fields::usual;
use super::split::Separator;

/// Lines looked at.
const LINES: usize = 64;
/// Texts of more columns are none that a person describes.
const MOST: usize = 64;

/// What headers call the fields, in the order of trial: `offset_bytes` is a place, `obj_size` a size,
/// `device_id` a volume.
const NAMES: [(&str, &[&str]); 7] = [
    ("time", &["time", "ts"]),
    ("offset", &["offset"]),
    ("size", &["size", "len", "bytes", "sectors"]),
    ("device", &["dev", "vol", "disk", "lun"]),
    ("op", &["op", "type", "cmd", "rw"]),
    ("offset", &["lba", "lbn", "sector", "addr"]),
    ("id", &["id", "key", "obj", "block"]),
];

/// What headers call units of time and of places, and what the list calls them. `lba` is both the
/// name of a field and a unit.
const TIME_UNITS: Units = &[
    ("s", &["s", "sec", "secs", "second", "seconds"]),
    ("ms", &["ms", "msec", "msecs", "milliseconds"]),
    (
        "us",
        &["us", "\u{b5}s", "\u{3bc}s", "usec", "usecs", "microseconds"],
    ),
    ("ns", &["ns", "nsec", "nsecs", "nanoseconds"]),
];
const PLACE_UNITS: Units = &[
    ("B", &["b", "byte", "bytes"]),
    ("sector", &["sector", "sectors", "lba", "lbn"]),
    ("KiB", &["kib", "kb"]),
    ("page", &["page", "pages"]),
];
type Units = &'static [(&'static str, &'static [&'static str])];

/// A list of columns that may fit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Suggestion<'a> {
    pub list: String,
    /// The first record.
    pub record: &'a [u8],
    /// Numbers of the columns that it passes over.
    pub unused: Vec<usize>,
}

/// What may fit a text, if it has columns.
pub(crate) fn suggest(text: &[u8]) -> Option<Suggestion<'_>> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    let lines: Vec<&[u8]> = lines.filter(|l| !l.is_empty()).take(LINES).collect();
    let (comments, lines): (Vec<&[u8]>, Vec<&[u8]>) =
        lines.into_iter().partition(|l| l.starts_with(b"#"));
    let separator = Separator::of(lines.first()?);
    let mut table: Vec<Vec<&[u8]>> = lines.iter().map(|line| row(separator, line)).collect();
    let has_numbers = |row: &Vec<&[u8]>| row.iter().any(|cell| number(cell).is_some());
    // A header has no number, however large.
    let has_digits = |row: &Vec<&[u8]>| {
        row.iter()
            .any(|cell| !cell.is_empty() && cell.iter().all(u8::is_ascii_digit))
    };
    let is_header = |row: &Vec<&[u8]>| !has_numbers(row) && !has_digits(row);
    let header = table.first().is_some_and(is_header) && table.get(1).is_some_and(has_numbers);
    let names = if header {
        joined(&table.remove(0))
    } else {
        let last = comments.last();
        last.map_or(Vec::new(), |line| joined(&row(separator, &line[1..])))
    };
    let width = table.first()?.len();
    let names = if names.len() == width {
        &names[..]
    } else {
        &[]
    };
    // A column with numbers that no column may have would be passed over for the next one.
    if table.iter().flatten().any(|cell| is_odd(cell)) {
        return None;
    }
    let even = table.iter().all(|row| row.len() == width);
    if !even || width > MOST || !table.iter().all(has_numbers) {
        return None;
    }
    let guess = Guess::new(&table, names);
    // Addresses of memory, with words for what is done there, are no blocks.
    let is_word = |column: &Column| column.numbers.is_none() && !column.is_day && !column.is_date;
    let is_memory = guess.columns.iter().any(|column| column.hex)
        && guess.columns.iter().any(is_word)
        && guess.place("op").is_none();
    if is_memory && names.is_empty() {
        return None;
    }
    let list = guess.list()? + if header { ",header=1" } else { "" };
    Some(Suggestion {
        list,
        record: lines[usize::from(header)],
        unused: guess.free().map(|n| n + 1).collect(),
    })
}

fn row(separator: Separator, line: &[u8]) -> Vec<&[u8]> {
    let mut cells = Vec::new();
    separator.split(line, &mut cells);
    cells.into_iter().map(|cell| &line[cell]).collect()
}

/// Names of a header. A separator in brackets, as in `op [put: 0, get: 1]`, is part of its name.
fn joined(cells: &[&[u8]]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    let mut open = false;
    for cell in cells {
        let cell = String::from_utf8_lossy(cell).into_owned();
        match names.last_mut() {
            Some(name) if open || cell.starts_with(['(', '[']) => {
                name.push(' ');
                name.push_str(&cell);
            }
            _ => names.push(cell.clone()),
        }
        let last = cell.rfind(['(', '[', ')', ']']);
        open = last.map_or(open, |at| cell[at..].starts_with(['(', '[']));
    }
    names
}

fn whole(digits: &[u8]) -> Option<u64> {
    let (digits, radix) = match digits {
        [b'0', b'x' | b'X', digits @ ..] => (digits, 16),
        digits => (digits, 10),
    };
    let fine = digits.iter().all(|&d| char::from(d).is_digit(radix));
    let text = std::str::from_utf8(digits).ok().filter(|_| fine);
    text.and_then(|text| u64::from_str_radix(text, radix).ok())
}

/// A number with a sign or an exponent.
fn is_odd(cell: &[u8]) -> bool {
    let unsigned = cell.strip_prefix(b"-").or_else(|| cell.strip_prefix(b"+"));
    let digits =
        |text: &[u8]| !text.is_empty() && text.iter().all(|b| b.is_ascii_digit() || *b == b'.');
    let exponent = |text: &[u8]| {
        let at = memchr::memchr2(b'e', b'E', text);
        // Of a hexadecimal number more digits follow an e, mostly.
        at.is_some_and(|at| digits(&text[..at]) && text.len() - at <= 3 && digits(&text[at + 1..]))
    };
    // -1 stands for none.
    unsigned.is_some_and(|text| digits(text) && cell != b"-1") || exponent(cell)
}

/// The whole part of a number.
fn number(cell: &[u8]) -> Option<u64> {
    let point = memchr::memchr(b'.', cell).unwrap_or(cell.len());
    let fraction = cell.get(point + 1..).unwrap_or_default();
    let fine = fraction.iter().all(u8::is_ascii_digit);
    whole(&cell[..point]).filter(|_| fine)
}

/// The unit that a name in a header tells by one of its words, as in `time_ms`, `Offset (B)` or
/// `timeUs`; the last such word counts.
fn unit_of(name: &str, units: Units) -> Option<&'static str> {
    let named = |word: &str| {
        let lower = word.to_lowercase();
        let named = units.iter().find(|(_, called)| called.contains(&&*lower));
        named.map(|(unit, _)| *unit)
    };
    let words = name.rsplit(|c: char| !c.is_alphanumeric());
    let mut tails = words.flat_map(|word| {
        let begins = word.char_indices().zip(word.chars().skip(1));
        let humps = begins.filter(|((_, a), b)| a.is_lowercase() && b.is_uppercase());
        let humps = humps.map(|((at, a), _)| at + a.len_utf8());
        std::iter::once(0).chain(humps).map(|at| &word[at..])
    });
    tails.find_map(named)
}

/// A column of the first lines.
struct Column {
    /// Its name in the header; empty without one.
    name: String,
    /// Its numbers, if there are only numbers.
    numbers: Option<Vec<u64>>,
    whole: bool,
    /// All are hexadecimal, as places are where not everything is.
    hex: bool,
    is_op: bool,
    /// All are dates with a time, or all are days, whose time stands elsewhere.
    is_date: bool,
    is_day: bool,
    /// All are times of our day, in milliseconds or less.
    is_stamp: bool,
}

/// Whether numbers are times from 2000 to 2040: since 1970 in milliseconds, microseconds or nanoseconds,
/// or since 1601 in the 100 nanoseconds of Windows.
fn are_stamps(numbers: &[u64]) -> bool {
    const SECONDS: std::ops::Range<u64> = 946_684_800..2_208_988_800;
    /// From 1601 to 1970.
    const SINCE_1601: u64 = 11_644_473_600;
    /// Places of some terabytes are numbers as large, but seldom so close to one another: a day.
    const CLOSE: u64 = 86_400_000;
    let (Some(least), Some(most)) = (numbers.iter().min(), numbers.iter().max()) else {
        return false;
    };
    let within = |each: u64, since: u64| {
        let seconds = |n: &u64| (n / each).checked_sub(since);
        [least, most]
            .map(seconds)
            .iter()
            .flatten()
            .filter(|s| SECONDS.contains(s))
            .count()
            == 2
    };
    within(1_000_000_000, 0)
        || within(1_000_000, 0)
        || within(10_000_000, SINCE_1601)
        || within(1000, 0) && most - least < CLOSE
}

struct Guess {
    columns: Vec<Column>,
    /// The field of each column.
    fields: Vec<Option<&'static str>>,
}

impl Guess {
    fn new(table: &[Vec<&[u8]>], names: &[String]) -> Self {
        let width = table.first().map_or(0, Vec::len);
        let column = |n: usize| {
            let cells = || table.iter().map(|row| row[n]);
            let numbers: Option<Vec<u64>> = cells().map(number).collect();
            Column {
                is_stamp: numbers.as_deref().is_some_and(are_stamps),
                name: names.get(n).cloned().unwrap_or_default(),
                numbers,
                whole: cells().all(|cell| whole(cell).is_some()),
                hex: cells().all(|cell| cell.starts_with(b"0x") || cell.starts_with(b"0X")),
                is_op: cells().all(|cell| usual(cell).is_some()),
                is_date: cells().all(|cell| date::nanoseconds(cell).is_some()),
                is_day: cells().all(date::is_day),
            }
        };
        let mut guess = Self {
            columns: (0..width).map(column).collect(),
            fields: vec![None; width],
        };
        guess.by_names();
        guess.by_content();
        // A request is about a place or about an object.
        if let (Some(_), Some(id)) = (guess.place("offset"), guess.place("id")) {
            guess.fields[id] = None;
        }
        guess
    }

    fn by_names(&mut self) {
        for n in 0..self.columns.len() {
            let name = self.columns[n].name.to_lowercase();
            // Short words stand in many longer ones.
            let says =
                |part: &&str| name.starts_with(*part) || part.len() > 2 && name.contains(*part);
            let fits = |(_, parts): &&(&str, &[&str])| parts.iter().any(says);
            if let Some((field, _)) = NAMES.iter().find(fits) {
                self.set(field, Some(n));
            }
        }
    }

    fn by_content(&mut self) {
        let op = self.free().find(|&n| self.columns[n].is_op);
        self.set("op", op);
        let date = self.free().find(|&n| self.columns[n].is_date);
        // Of a date in two columns the time stands in neither.
        let in_two = self.columns.iter().any(|column| column.is_day);
        let stamp = self.free().find(|&n| self.columns[n].is_stamp);
        let rising = || self.rising().filter(|_| !in_two);
        self.set("time", date.or(stamp).or_else(rising));
        if self.place("id").is_none() && self.place("op").is_some() {
            self.set("offset", self.largest());
            let behind = self.place("offset").map(|n| n + 1);
            let behind = behind.filter(|n| self.whole().any(|w| w == *n));
            self.set("size", behind.or_else(|| self.largest()));
            let named = |n: &usize| *n == 0 && !self.columns[*n].is_day;
            let first = self.free().next().filter(named);
            self.set("device", first);
        }
        if self.place("offset").is_none() {
            let word = |n: &usize| {
                let column = &self.columns[*n];
                column.numbers.is_none() && !column.is_day && !column.is_date
            };
            // A column that always says the same names no objects.
            let varies = |n: &usize| {
                let numbers = self.columns[*n].numbers.as_deref();
                numbers.is_none_or(|n| n.len() < 2 || n.iter().any(|value| *value != n[0]))
            };
            let others = || self.free().filter(|&n| !self.columns[n].is_stamp);
            let other = || others().find(varies).or_else(|| others().next());
            let id = self.free().find(word).or_else(other);
            self.set("id", id);
            let id = self.place("id");
            let behind = |n: &usize| id.is_none_or(|id| *n > id);
            // Of keys and values, the values are longer.
            let most = |n: &usize| self.columns[*n].numbers.iter().flatten().max().copied();
            let size = self.sizes().filter(behind).min_by_key(|n| Reverse(most(n)));
            let size = size.or_else(|| self.sizes().next());
            self.set("size", size);
        }
    }

    /// Columns that may be sizes of objects: neither kinds, of which there are few, nor addresses.
    fn sizes(&self) -> impl Iterator<Item = usize> {
        /// Kinds have smaller numbers.
        const LEAST: u64 = 8;
        let may = |n: &usize| {
            let column = &self.columns[*n];
            let most = column.numbers.iter().flatten().max();
            !column.hex && most.is_some_and(|most| *most >= LEAST)
        };
        self.whole().filter(may)
    }

    /// Gives a column to a field that has none, if the column may hold it.
    fn set(&mut self, field: &'static str, column: Option<usize>) {
        let Some(n) = column.filter(|_| self.place(field).is_none()) else {
            return;
        };
        let fits = match field {
            "time" => self.columns[n].numbers.is_some() || self.columns[n].is_date,
            "op" => self.columns[n].is_op,
            "offset" | "size" => self.columns[n].whole && !self.columns[n].is_stamp,
            _ => true,
        };
        if fits && self.fields[n].is_none() {
            self.fields[n] = Some(field);
        }
    }

    fn place(&self, field: &str) -> Option<usize> {
        self.fields.iter().position(|f| *f == Some(field))
    }

    /// Columns without a field.
    fn free(&self) -> impl Iterator<Item = usize> {
        (0..self.fields.len()).filter(|n| self.fields[*n].is_none())
    }

    /// Those of whole numbers that are no stamps.
    fn whole(&self) -> impl Iterator<Item = usize> {
        self.free()
            .filter(|n| self.columns[*n].whole && !self.columns[*n].is_stamp)
    }

    fn largest(&self) -> Option<usize> {
        let most = |n: &usize| self.columns[*n].numbers.iter().flatten().max().copied();
        self.whole().min_by_key(|n| Reverse(most(n)))
    }

    /// The column whose numbers never fall: the first one if it is so, else the one that rises the
    /// least for its size.
    fn rising(&self) -> Option<usize> {
        let growth = |n: usize| {
            let numbers = self.columns[n].numbers.as_deref()?;
            let (first, last) = (*numbers.first()?, *numbers.last()?);
            let rises = first < last && numbers.is_sorted();
            rises.then(|| {
                if n == 0 {
                    0.0
                } else {
                    (last - first) as f64 / last as f64
                }
            })
        };
        let all_hex = self.whole().all(|n| self.columns[n].hex);
        let may = |n: &usize| !self.columns[*n].hex || all_hex && self.whole().count() > 1;
        let rated = self
            .free()
            .filter(may)
            .filter_map(|n| Some((n, growth(n)?)));
        rated.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(n, _)| n)
    }

    /// The list, if there is something that requests can be about.
    fn list(&self) -> Option<String> {
        let size_unit = self.told("size").unwrap_or_else(|| self.size_unit());
        let offset_unit = self.told("offset").unwrap_or(size_unit);
        let mut items = Vec::new();
        for field in ["time", "op", "id", "offset", "size", "device"] {
            let Some(n) = self.place(field) else {
                if field == "size" && self.place("offset").is_some() {
                    items.push("size=:4KiB".to_owned());
                }
                continue;
            };
            let column = n + 1;
            items.push(match field {
                "time" => format!("time={column}:{}", self.time_unit(n)),
                "offset" => format!("offset={column}:{offset_unit}"),
                "size" if self.place("offset").is_some() => format!("size={column}:{size_unit}"),
                "size" => match self.told("size") {
                    None | Some("B") => format!("size={column}"),
                    Some(unit) => format!("size={column}:{unit}"),
                },
                "id" if !self.columns[n].whole => format!("id={column}:text"),
                _ => format!("{field}={column}"),
            });
        }
        let about = self.place("offset").or(self.place("id"));
        about.map(|_| items.join(","))
    }

    /// The unit of places or sizes that the header tells.
    fn told(&self, field: &str) -> Option<&'static str> {
        let column = &self.columns[self.place(field)?];
        unit_of(&column.name, PLACE_UNITS)
    }

    /// Sizes that are no whole sectors count sectors.
    fn size_unit(&self) -> &'static str {
        let sizes = self.place("size").map(|n| &self.columns[n].numbers);
        let bytes = sizes.and_then(Option::as_deref).is_none_or(|sizes| {
            let whole = |size: &u64| size.is_multiple_of(512);
            sizes.iter().all(whole)
        });
        if bytes { "B" } else { "sector" }
    }

    /// What the header tells. Without that: times of our day since 1970 have so many digits, and those
    /// of Windows since 1601 have 18, in a unit that the list does not have; what is less and does not
    /// fit as seconds are most likely nanoseconds since the tracer began.
    fn time_unit(&self, column: usize) -> &'static str {
        if self.columns[column].is_date {
            return "iso";
        }
        if let Some(told) = unit_of(&self.columns[column].name, TIME_UNITS) {
            return told;
        }
        let first = self.columns[column].numbers.as_deref();
        match first.and_then(|numbers| numbers.first()) {
            Some(1_000_000_000_000_000_000..) => "ns",
            Some(100_000_000_000_000_000..) => "none",
            Some(1_000_000_000_000_000..) => "us",
            Some(1_000_000_000_000..) => "ms",
            Some(n) if n.checked_mul(1_000_000_000).is_none() => "ns",
            _ => "s",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_traces_get_their_columns() {
        for (text, list) in [
            (
                "419,W,8792731648,16384,1577808144360767\n725,R,59110326272,4096,1577808144360977\n\
                 12,R,350868463616,20480,1577808144361152\n",
                "time=5:us,op=2,offset=3:B,size=4:B,device=1",
            ),
            (
                "device_id,opcode,offset,length,timestamp\n419,W,8192,4096,1577808144360767\n",
                "time=5:us,op=2,offset=3:B,size=4:B,device=1,header=1",
            ),
            (
                "89966000001 4892 logd 904265560 8 W 6 0 a\n89966000050 4892 logd 904265568 8 W 6 0 b\n\
                 89970000000 1001 mail 1000 16 R 6 0 c\n",
                "time=1:ns,op=6,offset=4:sector,size=5:sector",
            ),
            (
                "1 0 68\n2 1 7454\n3 2 40773\n4 0 68\n",
                "time=1:s,id=2,size=3",
            ),
            ("0 0 10\n1 1 10000000\n", "time=1:s,id=2,size=3"),
            (
                "time,obj_id,obj_size\n1,17,800\n2,18,70000\n3,17,800\n",
                "time=1:s,id=2,size=3,header=1",
            ),
            (
                "# timestamp (ms), op, object id\n0,1,qa,8371\n103,1,qb,31\n",
                "time=1:s,id=3:text,size=4",
            ),
            (
                "# timestamp (ms), op [Put:0, Get:1], object id, size\n0,1,qa,8371\n103,1,qb,31\n",
                "time=1:ms,id=3:text,size=4",
            ),
            ("17 800\n18 900\n17 800\n", "id=1,size=2"),
            ("obj_id\n1\n2\n1\n", "id=1,header=1"),
            (
                "1\tfoo,bar\t10\n2\tfoo,baz\t11\n3\tfoo,bar\t10\n",
                "time=1:s,id=2:text,size=3",
            ),
            (
                "0x3e8,R,0x1000,0x200\n0x3e9,W,0x2000,0x200\n",
                "time=1:s,op=2,offset=3:B,size=4:B",
            ),
            // Places are hexadecimal more often than times.
            ("0x1000,R,512\n0x2000,W,512\n", "op=2,offset=1:B,size=3:B"),
            ("0x1000 R\n0x2000 W\n", "op=2,offset=1:B,size=:4KiB"),
            (
                "2024-01-02T03:04:05.123,R,4096,8192\n2024-01-02T03:04:06.123,W,8192,8192\n",
                "time=1:iso,op=2,offset=3:B,size=4:B",
            ),
            // Of a date in two columns only an order could be had.
            (
                "2024-01-02 03:04:05 R 4096 8192\n2024-01-02 03:04:06 W 8192 8192\n",
                "op=3,offset=4:B,size=5:B",
            ),
            // Stamps are no places, though they are the largest numbers and do not rise.
            (
                "7,R,4096,1577808144361152,512\n3,W,8192,1577808144360977,512\n9,R,512,1577808144361153,512\n",
                "time=4:us,op=2,offset=3:B,size=5:B,device=1",
            ),
            // When it was issued, and when it ended.
            (
                "1577808144360767,1577808144360999,R,4096,512\n1577808144360750,1577808144360970,W,8192,512\n",
                "time=1:us,op=3,offset=4:B,size=5:B",
            ),
            (
                "1577808144360,17,800\n1577808144370,18,900\n1577808144365,17,800\n",
                "time=1:ms,id=2,size=3",
            ),
            // Places of 1.6 TB that lie apart.
            (
                "R,1577808144384,4096\nW,1588808144896,4096\nR,1566808144896,4096\n",
                "op=1,offset=2:B,size=3:B",
            ),
            // Kinds and volumes behind the size, and a constant before the object.
            (
                "0 75 74316 0\n1 108 22783 0\n2 76 54295 3\n",
                "time=1:s,id=2,size=3",
            ),
            (
                "1538323200,383283200,4096,0,1004\n1538323201,283283200,8192,1,1004\n",
                "time=1:s,id=2,size=3",
            ),
            (
                "0 1 413696 4096 0\n1000 1 544768 4096 1\n",
                "time=1:s,id=3,size=4",
            ),
            // Objects by hashes.
            ("1,0x9a2b10,4096\n2,0x9a2b11,8192\n", "time=1:s,id=2,size=3"),
            // No size is told.
            ("1,qa,3\n2,qb,0\n", "time=1:s,id=2:text"),
            // What is about a place is about no object.
            (
                "id,offset,size,rw\n1,4096,4096,R\n",
                "op=4,offset=2:B,size=3:B,header=1",
            ),
            (
                "block_id,sector\n1,2\n",
                "offset=2:sector,size=:4KiB,header=1",
            ),
            (
                "object_id;offset;len\n1;0;4096\n",
                "offset=2:B,size=3:B,header=1",
            ),
            (
                "# id offset op_time\n1 2 1.1\n",
                "time=3:s,offset=2:B,size=:4KiB",
            ),
            (
                "time,offset_bytes,size_bytes,op\n0,8192,4096,R\n1,16384,4096,W\n",
                "time=1:s,op=4,offset=2:B,size=3:B,header=1",
            ),
            // 100 ns since 1601.
            (
                "128166372003061629,R,4096,512\n128166372003061630,R,8192,512\n",
                "time=1:none,op=2,offset=3:B,size=4:B",
            ),
        ] {
            let found = suggest(text.as_bytes()).map(|found| found.list);
            assert_eq!(found.as_deref(), Some(list), "{text}");
        }
    }

    #[test]
    fn columns_that_are_passed_over_are_told() {
        let text = "89966000001 4892 logd 904265560 8 W 6 0 a\n89966000050 4892 logd 904265568 8 W 6 0 b\n";
        let found = suggest(text.as_bytes()).expect("a list");
        assert_eq!(found.unused, [2, 3, 7, 8, 9]);
        let all = suggest(b"1,R,4096,512\n2,W,8192,512\n").expect("a list");
        assert_eq!(all.unused, Vec::<usize>::new());
    }

    #[test]
    fn units_in_a_header_are_taken() {
        let rows = "7,R,4096,512\n8,W,8192,1024\n";
        for (header, list) in [
            (
                "time_ms,op,offset,size",
                "time=1:ms,op=2,offset=3:B,size=4:B",
            ),
            (
                "Timestamp(us),op,offset(B),size (sectors)",
                "time=1:us,op=2,offset=3:B,size=4:sector",
            ),
            (
                "timeNs,op,offset_kb,len [bytes]",
                "time=1:ns,op=2,offset=3:KiB,size=4:B",
            ),
            (
                "Time in seconds,op,lba,nr_sectors",
                "time=1:s,op=2,offset=3:sector,size=4:sector",
            ),
            (
                "ts (\u{b5}s),op,LBA,bytes",
                "time=1:us,op=2,offset=3:sector,size=4:B",
            ),
            (
                "ts,op,first sector,len",
                "time=1:s,op=2,offset=3:sector,size=4:B",
            ),
            (
                "time,op,offset,pages",
                "time=1:s,op=2,offset=3:page,size=4:page",
            ),
        ] {
            let found = |text: &str| suggest(text.as_bytes()).map(|found| found.list);
            let with_header = format!("{list},header=1");
            assert_eq!(
                found(&format!("{header}\n{rows}")),
                Some(with_header),
                "{header}"
            );
            // The same as a comment.
            let commented = found(&format!("# {header}\n{rows}"));
            assert_eq!(commented.as_deref(), Some(list), "{header}");
        }
        let blanks = "time (ms) op offset [B from 0] len\n7 R 4096 512\n8 W 8192 1024\n";
        let found = suggest(blanks.as_bytes()).map(|found| found.list);
        let list = "time=1:ms,op=2,offset=3:B,size=4:B,header=1";
        assert_eq!(found.as_deref(), Some(list));
        let objects = "ts_us,obj_id,size_kib\n1,17,800\n2,18,7\n";
        let found = suggest(objects.as_bytes()).map(|found| found.list);
        assert_eq!(found.as_deref(), Some("time=1:us,id=2,size=3:KiB,header=1"));
    }

    #[test]
    fn what_is_no_table_of_numbers_gets_none() {
        for text in [
            "",
            "\n",
            "a b\nc d\n",
            "1 2\n3\n",
            "==7== Memcheck\n==7== x y\n",
            // Addresses of memory.
            "0x2D1B2580 P_FETCH 0\n0x750EC80 P_FETCH 10\n",
        ] {
            assert_eq!(suggest(text.as_bytes()), None, "{text}");
        }
    }
}
