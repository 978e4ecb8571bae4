//! What a user says of a text in columns, and what could be said of one. Only lines and words are known
//! here; requests are made by the reader in `formats`.

pub(crate) mod date;
pub(crate) mod fields;
mod list;
mod objects;
pub(crate) mod split;
mod suggest;

pub(crate) use fields::Column;
pub use list::{Columns, ColumnsError, FIELDS};
pub use objects::Objects;
pub(crate) use suggest::suggest;
