//! Names of the quantities that only some studies have.

use crate::{course, memory};

/// All of them.
pub fn extra_names() -> impl Iterator<Item = &'static str> {
    memory::extra_names().chain(course::names())
}
