//! Scenarios and studies.
