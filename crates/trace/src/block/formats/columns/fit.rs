//! A list of columns beside the first lines of a file.

use crate::block::columns::fields::Fields;
use crate::block::columns::split::Separator;
use crate::block::columns::{Column, Columns};
use crate::block::error::BlockError;
use crate::foreign::input::BUFFER;
use crate::quote::shorten_to;

/// Bytes of a line that a message repeats.
const SHOWN: usize = 160;

/// Where everything stands in the lines of one file.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Places {
    /// With columns counted from 0.
    pub fields: Fields<usize>,
    pub separator: Separator,
    /// Columns of every line.
    pub width: usize,
    /// Lines before the first record.
    pub header: u64,
}

/// Comments begin with this.
pub(super) fn is_comment(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    line.is_empty() || line.starts_with(b"#")
}

/// Finds the columns by the first lines; `None` if the file ends before its first record.
///
/// # Errors
/// There is no such column, the header is longer than the file, or no record comes for long.
pub(super) fn fit(
    columns: &Columns,
    name: &str,
    head: &[u8],
) -> Result<Option<Places>, BlockError> {
    let text = head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head);
    let mut lines: Vec<&[u8]> = text
        .split(|b| *b == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
        .collect();
    // What follows the last line feed is no whole line, or nothing.
    let cut = head.len() >= BUFFER;
    if cut || lines.last().is_some_and(|line| line.is_empty()) {
        lines.pop();
    }
    let header = header_lines(columns, &lines);
    if header > lines.len() && !cut {
        return Err(BlockError::HeaderBeyond {
            name: name.to_owned(),
            header: header as u64,
            lines: lines.len(),
        });
    }
    let behind = lines.iter().enumerate().skip(header);
    let first = behind.into_iter().find(|(_, line)| !is_comment(line));
    let names = match columns.has_names() {
        true => header
            .checked_sub(1)
            .and_then(|n| Some((n, *lines.get(n)?))),
        false => None,
    };
    let Some((number, line)) = names.or(first.map(|(n, line)| (n, *line))) else {
        return match cut {
            true if lines.is_empty() => Err(BlockError::LongLine {
                name: name.to_owned(),
            }),
            true => Err(BlockError::NoRecord {
                name: name.to_owned(),
            }),
            false => Ok(None),
        };
    };
    let sample = first.map_or(line, |(_, line)| *line);
    let separator = columns.separator.unwrap_or_else(|| Separator::of(sample));
    let found = Found::new(name, (number + 1, line), separator, names.is_some());
    found.places(columns, header as u64).map(Some)
}

/// Lines before the first record: as the list says, else up to the names if there are names.
fn header_lines(columns: &Columns, lines: &[&[u8]]) -> usize {
    let up_to_names = || {
        let blank = lines.iter().position(|line| !line.trim_ascii().is_empty());
        blank.map_or(0, |n| n + 1)
    };
    match (columns.header, columns.has_names()) {
        (Some(n), _) => usize::try_from(n).unwrap_or(usize::MAX),
        (None, true) => up_to_names(),
        (None, false) => 0,
    }
}

/// The line that tells the columns.
struct Found<'a> {
    name: &'a str,
    number: usize,
    line: &'a [u8],
    separator: Separator,
    cells: Vec<&'a [u8]>,
    /// They are names.
    named: bool,
}

impl<'a> Found<'a> {
    fn new(
        name: &'a str,
        (number, line): (usize, &'a [u8]),
        separator: Separator,
        named: bool,
    ) -> Self {
        // A comment may hold the names.
        let names = line.trim_ascii_start().strip_prefix(b"#");
        let text = names.filter(|_| named).unwrap_or(line);
        let mut cells = Vec::new();
        separator.split(text, &mut cells);
        Self {
            name,
            number,
            line,
            separator,
            cells: cells.into_iter().map(|cell| &text[cell]).collect(),
            named,
        }
    }

    fn places(&self, columns: &Columns, header: u64) -> Result<Places, BlockError> {
        let mut taken: Vec<(usize, &'static str)> = Vec::new();
        let fields = columns.fields.place(|field, column| {
            let place = self.place(field, column)?;
            if let Some((_, other)) = taken.iter().find(|(known, _)| *known == place) {
                let allowed = format!("another than that of {other}");
                return Err(self.refuse(field, column, allowed));
            }
            taken.push((place, field));
            Ok(place)
        })?;
        Ok(Places {
            fields,
            separator: self.separator,
            width: self.cells.len(),
            header,
        })
    }

    fn place(&self, field: &'static str, column: &Column) -> Result<usize, BlockError> {
        let width = self.cells.len();
        let found = match column {
            Column::Number(n) => (*n <= width).then(|| n - 1),
            Column::Name(name) => {
                let mut same = (0..width).filter(|&n| self.cells[n] == name.as_bytes());
                let first = same.next();
                if same.next().is_some() {
                    let allowed = "a number, since several columns have this name".to_owned();
                    return Err(self.refuse(field, column, allowed));
                }
                first
            }
        };
        found.ok_or_else(|| {
            let names = if self.named { ", or a name in it" } else { "" };
            self.refuse(field, column, format!("1 to {width}{names}"))
        })
    }

    fn refuse(&self, field: &'static str, column: &Column, allowed: String) -> BlockError {
        let width = self.cells.len();
        BlockError::NoColumn {
            name: self.name.to_owned(),
            field,
            column: match column {
                Column::Number(n) => n.to_string(),
                Column::Name(name) => shorten_to(name.as_bytes(), SHOWN),
            },
            allowed,
            line: format!(
                "line {} has {width} column{} with {} between them: {}",
                self.number,
                if width == 1 { "" } else { "s" },
                self.separator.words(),
                shorten_to(self.line, SHOWN)
            ),
        }
    }
}
