//! What the machine model saw in a guest, as the plugin writes it: one JSON object.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::held::LastLevel;

/// Version of the layout.
pub const SCHEMA: u32 = 1;

/// Everything that was seen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Results {
    /// [`SCHEMA`].
    pub schema: u32,
    /// Name of the modelled machine.
    pub machine: String,
    /// Features of the model that were on.
    pub features: Vec<String>,
    /// Names of the cache levels, innermost first.
    pub levels: Vec<String>,
    /// Instructions of a quantum.
    pub quantum: u64,
    /// Bytes of the guest's memory.
    pub memory: u64,
    /// The guest's end was seen: these results are all there are.
    pub complete: bool,
    /// How the plugin worked.
    pub work: Work,
    /// What the marks asked for, in their order.
    pub dumps: Vec<Dump>,
    /// What the regions have counted at the end.
    pub regions: Vec<Dump>,
    /// Whose lines the last levels held while something was watched.
    #[serde(default)]
    pub last_levels: Vec<LastLevel>,
}

/// How the plugin worked.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Work {
    /// References that went through the model, regions or not.
    pub references: u64,
    /// Accesses to devices and other memory than the main one, which are not modelled.
    pub elsewhere: u64,
    /// Wall-clock seconds while something was watched, emulation included.
    pub host_seconds: f64,
    /// Processor seconds of the same.
    pub cpu_seconds: f64,
    /// Instructions for which processors stood still as others had longer turns.
    pub stood: u64,
    /// How often a processor could not wait for the others: interleaving was lost there.
    pub forced: u64,
    /// Turns of processors ended when the plugin wanted it.
    pub turns_end: bool,
    /// How physical addresses were found.
    pub addresses: String,
}

/// What one region counted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dump {
    /// Number of the region.
    pub region: u16,
    /// One entry per virtual processor, in order.
    pub vcpus: Vec<VcpuCounts>,
}

/// What a virtual processor did in a region.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VcpuCounts {
    /// Instructions.
    pub instructions: u64,
    /// Data references that the caches saw.
    pub references: u64,
    /// Modelled time in picoseconds, waiting left out.
    pub time_ps: u64,
    /// Accesses and misses of each level, innermost first.
    pub levels: Vec<LevelCounts>,
    /// Lines read from memory by demands.
    pub memory_reads: u64,
    /// Lines read from memory by prefetches.
    pub prefetch_reads: u64,
    /// Lines written to memory.
    pub memory_writes: u64,
    /// Memory reads that found their row open.
    pub row_hits: u64,
    /// Those that found the bank closed.
    pub row_closed: u64,
    /// Those that found another row open.
    pub row_conflicts: u64,
    /// Lines that came out of another processor's cache.
    pub transfers: u64,
    /// Stores that first had to take the line away from others.
    pub upgrades: u64,
    /// Loads by non-temporal instructions.
    pub nt_loads: u64,
    /// Stores by non-temporal instructions; the caches do not see them.
    pub nt_stores: u64,
    /// Locked instructions that wrote memory, such as `lock cmpxchg`, and exchanges with memory.
    #[serde(default)]
    pub locked: u64,
    /// Stores to a line that another processor had written last.
    #[serde(default)]
    pub shared_writes: u64,
}

/// Demands that reached a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LevelCounts {
    /// All.
    pub accesses: u64,
    /// Those that it did not have.
    pub misses: u64,
}

impl VcpuCounts {
    /// What came since `before`; none if something was less then.
    pub fn since(&self, before: &Self) -> Option<Self> {
        // Every field by its name: one that comes is not forgotten.
        let Self {
            instructions,
            references,
            time_ps,
            ref levels,
            memory_reads,
            prefetch_reads,
            memory_writes,
            row_hits,
            row_closed,
            row_conflicts,
            transfers,
            upgrades,
            nt_loads,
            nt_stores,
            locked,
            shared_writes,
        } = *self;
        let level = |(at, now): (usize, &LevelCounts)| {
            let before = before.levels.get(at).copied().unwrap_or_default();
            Some(LevelCounts {
                accesses: now.accesses.checked_sub(before.accesses)?,
                misses: now.misses.checked_sub(before.misses)?,
            })
        };
        Some(Self {
            instructions: instructions.checked_sub(before.instructions)?,
            references: references.checked_sub(before.references)?,
            time_ps: time_ps.checked_sub(before.time_ps)?,
            levels: levels
                .iter()
                .enumerate()
                .map(level)
                .collect::<Option<_>>()?,
            memory_reads: memory_reads.checked_sub(before.memory_reads)?,
            prefetch_reads: prefetch_reads.checked_sub(before.prefetch_reads)?,
            memory_writes: memory_writes.checked_sub(before.memory_writes)?,
            row_hits: row_hits.checked_sub(before.row_hits)?,
            row_closed: row_closed.checked_sub(before.row_closed)?,
            row_conflicts: row_conflicts.checked_sub(before.row_conflicts)?,
            transfers: transfers.checked_sub(before.transfers)?,
            upgrades: upgrades.checked_sub(before.upgrades)?,
            nt_loads: nt_loads.checked_sub(before.nt_loads)?,
            nt_stores: nt_stores.checked_sub(before.nt_stores)?,
            locked: locked.checked_sub(before.locked)?,
            shared_writes: shared_writes.checked_sub(before.shared_writes)?,
        })
    }
}

impl Results {
    /// Writes the results to a file, which is never half written.
    ///
    /// # Errors
    /// Why not, with the file's name.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let said = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let text = serde_json::to_string_pretty(self).map_err(|e| said(&e))?;
        let partial = path.with_extension("partial");
        std::fs::write(&partial, text + "\n").map_err(|e| said(&e))?;
        std::fs::rename(&partial, path).map_err(|e| said(&e))
    }

    /// Reads what [`write`](Self::write) wrote.
    ///
    /// # Errors
    /// Why not, with the file's name.
    pub fn read(path: &Path) -> Result<Self, String> {
        let said = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let text = std::fs::read_to_string(path).map_err(|e| said(&e))?;
        let results: Self = serde_json::from_str(&text).map_err(|e| said(&e))?;
        match results.schema {
            SCHEMA => Ok(results),
            other => Err(said(&format!("schema {other}; allowed: {SCHEMA}"))),
        }
    }
}
