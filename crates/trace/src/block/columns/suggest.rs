//! An example of a list of columns for a text of unknown format.
//!
//! A guess, which the user has to look at: names in a header tell what they are, then words for reads
//! and writes, then numbers that never fall (times), then the largest numbers (places). Without reads
//! and writes there are objects.

use std::cmp::Reverse;

use super::fields::usual;
use super::split::Separator;

/// Lines looked at.
const LINES: usize = 64;
/// Texts of more columns are none that a person describes.
const MOST: usize = 64;

/// What headers call the fields, in the order of trial: `obj_size` is a size, `device_id` a volume.
const NAMES: [(&str, &[&str]); 6] = [
    ("time", &["time", "ts"]),
    ("size", &["size", "len", "bytes"]),
    ("device", &["dev", "vol", "disk", "lun"]),
    ("op", &["op", "type", "cmd", "rw"]),
    ("offset", &["offset", "lba", "lbn", "sector", "addr"]),
    ("id", &["id", "key", "obj", "block"]),
];

/// A list of columns that may fit, and the first record.
pub(crate) fn suggest(text: &[u8]) -> Option<(String, &[u8])> {
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let lines = text.split(|b| *b == b'\n').map(<[u8]>::trim_ascii);
    let lines = lines.filter(|l| !l.is_empty() && !l.starts_with(b"#"));
    let lines: Vec<&[u8]> = lines.take(LINES).collect();
    let separator = Separator::of(lines.first()?);
    let mut table: Vec<Vec<&[u8]>> = lines.iter().map(|line| row(separator, line)).collect();
    let has_numbers = |row: &Vec<&[u8]>| row.iter().any(|cell| number(cell).is_some());
    let header = !table.first().is_some_and(has_numbers) && table.get(1).is_some_and(has_numbers);
    let names = if header { table.remove(0) } else { Vec::new() };
    let width = table.first()?.len();
    let even = table.iter().all(|row| row.len() == width);
    if !even || width > MOST || !table.iter().all(has_numbers) {
        return None;
    }
    let guess = Guess::new(&table, &names);
    let list = guess.list()? + if header { ",header=1" } else { "" };
    Some((list, lines[usize::from(header)]))
}

fn row(separator: Separator, line: &[u8]) -> Vec<&[u8]> {
    let mut cells = Vec::new();
    separator.split(line, &mut cells);
    cells.into_iter().map(|cell| &line[cell]).collect()
}

fn whole(digits: &[u8]) -> Option<u64> {
    let fine = digits.iter().all(u8::is_ascii_digit);
    let text = std::str::from_utf8(digits).ok().filter(|_| fine);
    text.and_then(|text| text.parse().ok())
}

/// The whole part of a number.
fn number(cell: &[u8]) -> Option<u64> {
    let point = memchr::memchr(b'.', cell).unwrap_or(cell.len());
    let fraction = cell.get(point + 1..).unwrap_or_default();
    let fine = fraction.iter().all(u8::is_ascii_digit);
    whole(&cell[..point]).filter(|_| fine)
}

/// A column of the first lines.
struct Column {
    /// Its numbers, if there are only numbers.
    numbers: Option<Vec<u64>>,
    whole: bool,
    is_op: bool,
}

struct Guess {
    columns: Vec<Column>,
    /// The field of each column.
    fields: Vec<Option<&'static str>>,
}

impl Guess {
    fn new(table: &[Vec<&[u8]>], names: &[&[u8]]) -> Self {
        let width = table.first().map_or(0, Vec::len);
        let column = |n: usize| {
            let cells = || table.iter().map(|row| row[n]);
            Column {
                numbers: cells().map(number).collect(),
                whole: cells().all(|cell| whole(cell).is_some()),
                is_op: cells().all(|cell| usual(cell).is_some()),
            }
        };
        let mut guess = Self {
            columns: (0..width).map(column).collect(),
            fields: vec![None; width],
        };
        guess.by_names(names);
        guess.by_content();
        guess
    }

    fn by_names(&mut self, names: &[&[u8]]) {
        for (n, name) in names.iter().enumerate().take(self.fields.len()) {
            let name = String::from_utf8_lossy(name).to_lowercase();
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
        self.set("time", self.rising());
        if self.place("id").is_none() && self.place("op").is_some() {
            self.set("offset", self.largest());
            let behind = self.place("offset").map(|n| n + 1);
            let behind = behind.filter(|n| self.whole().any(|w| w == *n));
            self.set("size", behind.or_else(|| self.largest()));
            let first = self.free().next().filter(|n| *n == 0);
            self.set("device", first);
        }
        if self.place("offset").is_none() {
            let word = |n: &usize| self.columns[*n].numbers.is_none();
            let id = self.free().find(word).or_else(|| self.free().next());
            self.set("id", id);
            self.set("size", self.whole().last());
        }
    }

    /// Gives a column to a field that has none, if the column may hold it.
    fn set(&mut self, field: &'static str, column: Option<usize>) {
        let Some(n) = column.filter(|_| self.place(field).is_none()) else {
            return;
        };
        let fits = match field {
            "time" => self.columns[n].numbers.is_some(),
            "op" => self.columns[n].is_op,
            "offset" | "size" => self.columns[n].whole,
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

    /// Those of whole numbers.
    fn whole(&self) -> impl Iterator<Item = usize> {
        self.free().filter(|n| self.columns[*n].whole)
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
        let rated = self.free().filter_map(|n| Some((n, growth(n)?)));
        rated.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(n, _)| n)
    }

    /// The list, if there is something that requests can be about.
    fn list(&self) -> Option<String> {
        let sizes = self.place("size").map(|n| &self.columns[n].numbers);
        let bytes = sizes.and_then(Option::as_deref).is_none_or(|sizes| {
            let whole = |size: &u64| size.is_multiple_of(512);
            sizes.iter().all(whole)
        });
        let unit = if bytes { "B" } else { "sector" };
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
                "offset" => format!("offset={column}:{unit}"),
                "size" if self.place("offset").is_some() => format!("size={column}:{unit}"),
                "id" if !self.columns[n].whole => format!("id={column}:text"),
                _ => format!("{field}={column}"),
            });
        }
        let about = self.place("offset").or(self.place("id"));
        about.map(|_| items.join(","))
    }

    /// Times of our day since 1970 have so many digits; what is less and does not fit as seconds are
    /// most likely nanoseconds since the tracer began.
    fn time_unit(&self, column: usize) -> &'static str {
        let first = self.columns[column].numbers.as_deref();
        match first.and_then(|numbers| numbers.first()) {
            Some(1_000_000_000_000_000_000..) => "ns",
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
            ("17 800\n18 900\n17 800\n", "id=1,size=2"),
            ("obj_id\n1\n2\n1\n", "id=1,header=1"),
        ] {
            let found = suggest(text.as_bytes()).map(|(list, _)| list);
            assert_eq!(found.as_deref(), Some(list), "{text}");
        }
    }

    #[test]
    fn what_is_no_table_of_numbers_gets_none() {
        for text in [
            "",
            "\n",
            "a b\nc d\n",
            "1 2\n3\n",
            "==7== Memcheck\n==7== x y\n",
        ] {
            assert_eq!(suggest(text.as_bytes()), None, "{text}");
        }
    }
}
