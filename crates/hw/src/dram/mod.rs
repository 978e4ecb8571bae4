//! DRAM: channels, ranks, banks and rows.

use serde::Deserialize;

/// Chips behind one memory controller.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DramSpec {}
