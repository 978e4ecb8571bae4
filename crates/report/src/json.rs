//! JSON as people read it, and numbers that may be unknown.
//!
//! Keys come in the order of the fields, so that two versions of a result can be compared line
//! by line. Objects stand on lines of their own and lists of numbers on one line: a set map has
//! tens of thousands of them.

use std::io;

use serde::Serialize;
use serde_json::ser::Formatter;

use crate::ReportError;

/// A record as JSON that breaks lines at objects only.
pub(crate) fn lines(record: &impl Serialize) -> Result<String, ReportError> {
    let mut out = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut out, Lines::default());
    record.serialize(&mut serializer)?;
    out.push(b'\n');
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Pretty printer that breaks lines at objects only.
#[derive(Default)]
struct Lines {
    depth: usize,
    /// For each open list: has an object been written in it?
    lists: Vec<bool>,
    /// The next value is a member of the innermost list.
    in_list: bool,
}

impl Lines {
    fn new_line<W: ?Sized + io::Write>(&self, w: &mut W) -> io::Result<()> {
        w.write_all(b"\n")?;
        (0..self.depth).try_for_each(|_| w.write_all(b"  "))
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.lists.push(false);
        self.depth += 1;
        w.write_all(b"[")
    }

    fn end_array<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.depth -= 1;
        self.in_list = false;
        if self.lists.pop() == Some(true) {
            self.new_line(w)?;
        }
        w.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        self.in_list = true;
        if first { Ok(()) } else { w.write_all(b",") }
    }

    fn begin_object<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        if std::mem::take(&mut self.in_list) {
            self.new_line(w)?;
            if let Some(has_object) = self.lists.last_mut() {
                *has_object = true;
            }
        }
        self.depth += 1;
        w.write_all(b"{")
    }

    fn end_object<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.depth -= 1;
        self.new_line(w)?;
        w.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + io::Write>(
        &mut self,
        w: &mut W,
        first: bool,
    ) -> io::Result<()> {
        if !first {
            w.write_all(b",")?;
        }
        self.new_line(w)
    }

    fn begin_object_value<W: ?Sized + io::Write>(&mut self, w: &mut W) -> io::Result<()> {
        self.in_list = false;
        w.write_all(b": ")
    }
}

/// A number that may be unknown: NaN here, `null` in JSON.
pub(crate) mod nullable {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(value: &f64, s: S) -> Result<S::Ok, S::Error> {
        if value.is_finite() {
            s.serialize_f64(*value)
        } else {
            s.serialize_none()
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<f64, D::Error> {
        Ok(Option::<f64>::deserialize(d)?.unwrap_or(f64::NAN))
    }
}

/// A list of numbers some of which may be unknown.
pub(crate) mod nullable_vec {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(values: &[f64], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(values.iter().map(|v| v.is_finite().then_some(*v)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<f64>, D::Error> {
        let values = Vec::<Option<f64>>::deserialize(d)?;
        Ok(values.into_iter().map(|v| v.unwrap_or(f64::NAN)).collect())
    }
}

/// Points whose second coordinate may be unknown.
pub(crate) mod nullable_points {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(points: &[(u64, f64)], s: S) -> Result<S::Ok, S::Error> {
        s.collect_seq(points.iter().map(|(x, y)| (x, y.is_finite().then_some(*y))))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Vec<(u64, f64)>, D::Error> {
        let points = Vec::<(u64, Option<f64>)>::deserialize(d)?;
        Ok(points
            .into_iter()
            .map(|(x, y)| (x, y.unwrap_or(f64::NAN)))
            .collect())
    }
}
