//! Names of the quantities that only some studies have.

use crate::{course, guests, memory};

/// All of them.
pub fn extra_names() -> impl Iterator<Item = &'static str> {
    let modelled = memory::extra_names().chain(course::names());
    modelled.chain(guests::names())
}
