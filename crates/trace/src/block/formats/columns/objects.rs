//! Objects that have names, as numbers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::super::super::columns::fields::IdKind;
use super::super::super::names::MAX_NAME_BYTES;
use crate::foreign::error::Complaint;

/// The numbers of objects that have names. Traces that are read with clones of one value give an
/// object of the same name the same number.
#[derive(Clone, Debug, Default)]
pub struct Objects(Arc<Mutex<Names>>);

impl PartialEq for Objects {
    /// Do they share their numbers?
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Objects {}

impl Objects {
    pub(super) fn number<'a>(
        &self,
        kind: IdKind,
        text: &[u8],
        device: impl Iterator<Item = &'a [u8]>,
    ) -> Result<u64, Complaint> {
        // Nothing panics while it is locked that leaves names half entered.
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        names.object(kind, text, device)
    }
}

/// Objects in order of their first appearance.
#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<Box<[u8]>, u64>,
    bytes: usize,
    key: Vec<u8>,
}

impl Names {
    fn object<'a>(
        &mut self,
        kind: IdKind,
        text: &[u8],
        device: impl Iterator<Item = &'a [u8]>,
    ) -> Result<u64, Complaint> {
        self.key.clear();
        for part in device {
            // Where a part ends must be told: "a" and "bc" are not "ab" and "c".
            self.key.extend(part.len().to_le_bytes());
            self.key.extend(part);
        }
        match kind {
            IdKind::Text if text.is_empty() => {
                return Err(Complaint::text(
                    "the id",
                    text,
                    "at least one letter or digit",
                ));
            }
            IdKind::Text => self.key.extend(text),
            IdKind::Number(digits) => {
                let allowed = |c: Complaint| Complaint {
                    allowed: c.allowed + "; :text behind its column takes any name",
                    ..c
                };
                let number = digits.read("the id", text).map_err(allowed)?;
                if self.key.is_empty() {
                    return Ok(number);
                }
                self.key.extend(number.to_le_bytes());
            }
        }
        self.number()
    }

    /// The number of `key`.
    fn number(&mut self) -> Result<u64, Complaint> {
        if let Some(number) = self.numbers.get(self.key.as_slice()) {
            return Ok(*number);
        }
        let number = self.numbers.len() as u64;
        if self.bytes + self.key.len() > MAX_NAME_BYTES {
            let allowed = "objects whose names have up to 1 GiB together";
            return Err(Complaint::number(
                "the number of objects",
                number + 1,
                allowed,
            ));
        }
        self.bytes += self.key.len();
        self.numbers.insert(self.key.as_slice().into(), number);
        Ok(number)
    }
}
