//! Replays as JSON and back.

use super::{REPLAY_SCHEMA, Replay, findings::findings, grid::Grid};
use crate::{ReportError, json};

/// The replay as JSON, with a final newline. A number that does not exist becomes `null`.
///
/// # Errors
/// As [`to_json`](crate::to_json).
pub fn replay_to_json(replay: &Replay) -> Result<String, ReportError> {
    let findings = findings(&Grid::new(replay));
    json::lines(&Replay {
        schema: REPLAY_SCHEMA,
        findings,
        ..replay.clone()
    })
}

/// Reads what [`replay_to_json`] wrote. Unknown keys are ignored: a newer program may add
/// some without changing the schema.
///
/// # Errors
/// [`ReportError::ReplayJson`] with line and column; [`ReportError::ReplaySchema`] if the
/// schema number is not one that this version reads.
pub fn replay_from_json(text: &str) -> Result<Replay, ReportError> {
    #[derive(serde::Deserialize)]
    struct Header {
        schema: u32,
    }
    // The number comes first: a replay of a later schema need not parse at all.
    let Header { schema } = serde_json::from_str(text).map_err(ReportError::ReplayJson)?;
    if !(1..=REPLAY_SCHEMA).contains(&schema) {
        return Err(ReportError::ReplaySchema { found: schema });
    }
    serde_json::from_str(text).map_err(ReportError::ReplayJson)
}

/// An interval; one with an unknown end is none.
pub(super) mod interval {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(value: &Option<[f64; 2]>, s: S) -> Result<S::Ok, S::Error> {
        let known = |ends: &[f64; 2]| ends.iter().all(|v| v.is_finite());
        value.filter(known).serialize(s)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(d: D) -> Result<Option<[f64; 2]>, D::Error> {
        Option::deserialize(d)
    }
}

/// Named figures with units, some of them unknown.
pub(super) mod figures {
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(
        figures: &[(String, f64, String)],
        s: S,
    ) -> Result<S::Ok, S::Error> {
        let known = |v: &f64| v.is_finite().then_some(*v);
        s.collect_seq(figures.iter().map(|(name, v, unit)| (name, known(v), unit)))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        d: D,
    ) -> Result<Vec<(String, f64, String)>, D::Error> {
        let figures = Vec::<(String, Option<f64>, String)>::deserialize(d)?;
        let known =
            |(name, v, unit): (String, Option<f64>, String)| (name, v.unwrap_or(f64::NAN), unit);
        Ok(figures.into_iter().map(known).collect())
    }
}
