//! Calls that move data of files, or load and drop their pages, and become no request.

use std::collections::BTreeMap;

/// How many, by the name of the call and what it did where that matters.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    by_name: BTreeMap<&'static str, u64>,
}

impl LeftOut {
    /// Counts one.
    pub fn count(&mut self, name: &'static str, times: u64) {
        *self.by_name.entry(name).or_default() += times;
    }

    /// All of them, as a line of a summary has them: `io_uring_enter 12, tee 3`.
    #[cfg(test)]
    pub fn text(&self) -> String {
        let all = self.by_name.iter().map(|(name, n)| format!("{name} {n}"));
        all.collect::<Vec<_>>().join(", ")
    }
}
