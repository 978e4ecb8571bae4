//! Objects that have names, as numbers.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that all names may have together.
const MAX_BYTES: usize = 1 << 30;

/// The numbers of objects that have names, in order of their first appearance. Traces that are read
/// with clones of one value give an object of the same name the same number.
#[derive(Clone, Debug, Default)]
pub struct Objects(Arc<Mutex<Names>>);

#[derive(Debug, Default)]
struct Names {
    numbers: HashMap<Box<[u8]>, u64>,
    bytes: usize,
}

impl PartialEq for Objects {
    /// Do they share their numbers?
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Objects {}

impl Objects {
    /// The number of a name.
    ///
    /// # Errors
    /// How many names there would be, if they had more than 1 GiB together.
    pub(crate) fn number(&self, name: &[u8]) -> Result<u64, u64> {
        // Nothing panics while it is locked that leaves a name half entered.
        let mut names = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(number) = names.numbers.get(name) {
            return Ok(*number);
        }
        let number = names.numbers.len() as u64;
        if names.bytes + name.len() > MAX_BYTES {
            return Err(number + 1);
        }
        names.bytes += name.len();
        names.numbers.insert(name.into(), number);
        Ok(number)
    }
}
