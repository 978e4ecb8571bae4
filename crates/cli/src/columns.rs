//! `--columns`: texts that are described instead of found out.

use piebald_hw::nearest::did_you_mean;
use piebald_trace::block::{Columns, ColumnsError, FIELDS};

/// Reads a list of columns.
///
/// # Errors
/// What is wrong with it, and which field may have been meant.
pub(crate) fn parse(list: &str) -> Result<Columns, String> {
    list.parse().map_err(|error: ColumnsError| match &error {
        ColumnsError::UnknownField { field } => format!("{error}{}", did_you_mean(field, FIELDS)),
        _ => error.to_string(),
    })
}
