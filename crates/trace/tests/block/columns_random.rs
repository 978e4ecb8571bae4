//! Random requests written as random tables, and read back.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use piebald_trace::block::{Nanos, NextUse, Op, Request, Target};

use super::support::{described, read};

/// A request before it is written down, in the units of its table.
#[derive(Clone, Debug)]
struct Row {
    time: u64,
    write: bool,
    first: u64,
    size: u64,
    volume: u32,
}

/// How a table is written.
#[derive(Clone, Debug)]
struct Form {
    separator: (&'static str, &'static str),
    time: (&'static str, u64),
    unit: (&'static str, u64),
    words: (&'static str, &'static str, &'static str),
    hex: bool,
    names: bool,
    ending: &'static str,
    objects: bool,
    /// Columns that mean nothing.
    fillers: usize,
    order: Vec<Index>,
}

fn row() -> impl Strategy<Value = Row> {
    (
        0..1_u64 << 40,
        any::<bool>(),
        0..1_u64 << 40,
        1..1_u64 << 16,
        0..4_u32,
    )
        .prop_map(|(time, write, first, size, volume)| Row {
            time,
            write,
            first,
            size,
            volume,
        })
}

fn form() -> impl Strategy<Value = Form> {
    let separators = [
        (",", "comma"),
        ("\t", "tab"),
        (";", "semicolon"),
        ("  ", "blanks"),
    ];
    let times = [
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1000),
        ("ns", 1),
    ];
    let units = [
        ("B", 1),
        ("sector", 512),
        ("KiB", 1024),
        ("page", 4096),
        ("block:640B", 640),
    ];
    let words = [
        ("", "R", "W"),
        ("", "read", "ws"),
        (":0/1", "0", "1"),
        (":G+H/P/D", "H", "P"),
    ];
    let looks = (
        any::<bool>(),
        any::<bool>(),
        select(vec!["\n", "\r\n"]),
        any::<bool>(),
    );
    (
        select(separators.to_vec()),
        (select(times.to_vec()), select(units.to_vec())),
        select(words.to_vec()),
        looks,
        0..3_usize,
        proptest::collection::vec(any::<Index>(), 8),
    )
        .prop_map(
            |(separator, (time, unit), words, (hex, names, ending, objects), fillers, order)| {
                Form {
                    separator,
                    time,
                    unit,
                    words,
                    hex,
                    names,
                    ending,
                    objects,
                    fillers,
                    order,
                }
            },
        )
}

impl Form {
    /// Names of the columns in their order.
    fn columns(&self) -> Vec<&'static str> {
        let mut left = vec!["t", "op", "first", "length", "vol"];
        left.extend(["x", "y"].iter().take(self.fillers));
        let mut columns = Vec::new();
        for at in &self.order {
            if !left.is_empty() {
                columns.push(left.remove(at.index(left.len())));
            }
        }
        columns
    }

    fn number(&self, n: u64) -> String {
        match self.hex {
            true => format!("{n:x}"),
            false => n.to_string(),
        }
    }

    fn text(&self, rows: &[Row]) -> String {
        let columns = self.columns();
        let mut lines = Vec::new();
        if self.names {
            lines.push(columns.join(self.separator.0));
        }
        for row in rows {
            let cell = |column: &&str| match *column {
                "t" => row.time.to_string(),
                "op" => [self.words.1, self.words.2][usize::from(row.write)].to_owned(),
                "first" => self.number(row.first),
                "length" => self.number(row.size),
                "vol" => format!("v{}", row.volume),
                _ => "-".to_owned(),
            };
            let cells: Vec<String> = columns.iter().map(cell).collect();
            lines.push(cells.join(self.separator.0));
        }
        lines.join(self.ending) + self.ending
    }

    fn list(&self) -> String {
        let columns = self.columns();
        let column = |name: &str| match self.names {
            true => name.to_owned(),
            false => {
                let place = columns.iter().position(|c| *c == name);
                (place.expect("a column") + 1).to_string()
            }
        };
        let hex = if self.hex { ":hex" } else { "" };
        let unit = self.unit.0;
        let what = match self.objects {
            true => format!("id={}{hex}", column("first")),
            false => format!(
                "offset={}:{unit}{hex},device={}",
                column("first"),
                column("vol")
            ),
        };
        format!(
            "time={}:{},op={}{},{what},size={}:{unit}{hex},sep={}",
            column("t"),
            self.time.0,
            column("op"),
            self.words.0,
            column("length"),
            self.separator.1,
        )
    }

    /// What has to come out, by the definitions.
    fn requests(&self, rows: &[Row]) -> Vec<Request> {
        let mut volumes: Vec<u32> = Vec::new();
        let request = |row: &Row| {
            let bytes = row.size * self.unit.1;
            let target = match self.objects {
                true => Target::Id {
                    id: row.first,
                    bytes: Some(bytes as u32),
                    next: NextUse::Unknown,
                },
                false => {
                    if !volumes.contains(&row.volume) {
                        volumes.push(row.volume);
                    }
                    let place = volumes.iter().position(|v| *v == row.volume);
                    let begin = row.first * self.unit.1;
                    let sector = begin / 512;
                    Target::Device {
                        device: place.expect("known") as u32,
                        sector,
                        sectors: (begin + bytes).div_ceil(512) - sector,
                    }
                }
            };
            Request {
                time: Some(Nanos(row.time * self.time.1)),
                task: 0,
                op: [Op::Read, Op::Write][usize::from(row.write)],
                target,
            }
        };
        rows.iter().map(request).collect()
    }
}

proptest! {
    #[test]
    fn what_was_written_in_columns_is_read(
        form in form(),
        mut rows in proptest::collection::vec(row(), 1..40),
    ) {
        // 2^40 s are more than 2^64 ns.
        rows.iter_mut().for_each(|row| row.time %= u64::MAX / form.time.1);
        let (text, list) = (form.text(&rows), form.list());
        let (found, failure) = read(text.as_bytes(), described(&list));
        prop_assert_eq!(failure, None, "{}\n{}", list, text);
        prop_assert_eq!(found, form.requests(&rows), "{}\n{}", list, text);
    }

    #[test]
    fn separators_need_not_be_told(form in form(), rows in proptest::collection::vec(row(), 1..9)) {
        let form = Form { time: ("ns", 1), ..form };
        let list = form.list();
        let told = list.split_once(",sep=").expect("a separator").0;
        let found = read(form.text(&rows).as_bytes(), described(told));
        prop_assert_eq!(found, (form.requests(&rows), None), "{}", told);
    }
}
