//! Studies as JSON and back.

use crate::{ReportError, SCHEMA, Study, headline::findings, json};

/// The study as JSON, with a final newline, with its [findings]. A number that does not exist
/// becomes `null`.
///
/// # Errors
/// None for any study that can be built today; the result says so in its type
/// because the serialiser may refuse.
pub fn to_json(study: &Study) -> Result<String, ReportError> {
    json::lines(&Study {
        schema: SCHEMA,
        findings: findings(study),
        ..study.clone()
    })
}

/// Reads what [`to_json`] wrote. Unknown keys are ignored: a newer program may
/// add some without changing the schema.
///
/// # Errors
/// [`ReportError::Json`] with line and column; [`ReportError::Schema`] if the
/// schema number is not one that this version reads.
pub fn from_json(text: &str) -> Result<Study, ReportError> {
    #[derive(serde::Deserialize)]
    struct Header {
        schema: u32,
    }
    // The number comes first: a study of a later schema need not parse at all.
    let Header { schema } = serde_json::from_str(text)?;
    if !(1..=SCHEMA).contains(&schema) {
        return Err(ReportError::Schema { found: schema });
    }
    Ok(serde_json::from_str(text)?)
}
