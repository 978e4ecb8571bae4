//! `--columns`: texts that are described instead of found out.

use piebald_hw::nearest::did_you_mean;
use piebald_trace::block::{Columns, ColumnsError, FIELDS};

/// Columns, and the text that gave them.
#[derive(Clone, Debug)]
pub(crate) struct Given {
    pub text: String,
    pub columns: Columns,
}

/// Reads a list of columns and keeps its text.
///
/// # Errors
/// As [`parse`].
pub(crate) fn given(list: &str) -> Result<Given, String> {
    let columns = parse(list)?;
    let text = list.to_owned();
    Ok(Given { text, columns })
}

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
