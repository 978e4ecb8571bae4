//! M-10, M-12, M-15, M-16: what follows from the machine and the configuration.

use piebald_hw::spec::MachineSpec;
use piebald_policy::mfc::{Config, MinRead, Sizes};
use piebald_sim::Domains;

use crate::data::{Known, number};

const MIB: f64 = (1 << 20) as f64;
const KIB: f64 = 1024.0;
/// MB/s that a clock in whole picoseconds tells apart: one of them is 6 MB/s of 28,000.
const CLOCK_STEP: f64 = 10.0;
/// M-12: files (section 6.6.1).
const FILES: u32 = 128;
/// Distances of a migration that the paper prints: the same chip, one hop, two.
const DISTANCES: usize = 3;

/// Numbers of the rows by their names.
///
/// # Errors
/// The machine is too large for MFC.
pub(super) fn known(machine: &MachineSpec) -> Result<Known, String> {
    let config = Config::PAPER;
    let dram = &machine.memory.dram;
    let line_ps = (u64::from(dram.timing.ccd) * dram.timing.tck.0) as f64;
    let line = f64::from(dram.timing.bl) * f64::from(dram.bus_bytes);
    let channels = f64::from(machine.memory.controllers) * f64::from(dram.channels);
    let rate = channels * line / line_ps * 1e6;
    let cores = machine.core.sockets * machine.core.per_socket;
    let outer = || machine.cache.iter().filter(|c| c.level >= 2);
    let whole = outer().map(|c| c.size.0 * u64::from(cores / c.shared_by));
    let mine = outer().map(|c| c.size.0);
    let topology = Domains::of(machine);
    let sizes = Sizes::of(&topology.topology(), &config, FILES).map_err(|e| e.to_string())?;
    let least = match config.min_read {
        MinRead::Fixed(bytes) => bytes.0 as f64 / KIB,
        MinRead::BreakEven => f64::NAN,
    };
    let mut known: Known = [
        ("memory_rate", rate),
        (
            "memory_rate_rounded",
            (rate / CLOCK_STEP).round() * CLOCK_STEP,
        ),
        ("caches_mib", whole.sum::<u64>() as f64 / MIB),
        ("caches_of_core_mib", mine.sum::<u64>() as f64 / MIB),
        // What is kept for files, beside what is kept for the machine itself.
        ("file_bytes", sizes.file_bytes() as f64 / f64::from(FILES)),
        ("least_read_kib", least),
    ]
    .map(|(name, value)| (name.to_owned(), number(value)))
    .into();
    for (hops, time) in config.migration.iter().take(DISTANCES).enumerate() {
        let time = time.0 as f64 / 1e6;
        known.insert(format!("migration_{hops}_us"), number(time));
        let pays = pays_above(&config, time) / KIB;
        known.insert(format!("pays_above_{hops}_kib"), number(pays));
    }
    Ok(known)
}

/// The size at which a migration pays, by bandwidths in MB/s and microseconds (4.5).
fn pays_above(config: &Config, migration_us: f64) -> f64 {
    let on = f64::from(config.on_chip_bytes_per_us);
    let off = f64::from(config.off_chip_bytes_per_us);
    let move_us = migration_us + config.working_set.0 as f64 / off;
    move_us * on * off / (on - off)
}

#[cfg(test)]
mod tests {
    use piebald_hw::presets;

    use super::*;

    #[test]
    fn the_cost_model_breaks_even_where_both_ways_take_as_long() {
        let config = Config::PAPER;
        let size = pays_above(&config, 9.2);
        let off = size / f64::from(config.off_chip_bytes_per_us);
        let on = size / f64::from(config.on_chip_bytes_per_us);
        let move_us = 9.2 + 4096.0 / 1808.0;
        assert!((off - on - move_us).abs() < 1e-9, "{off} {on}");
        assert!((29.0..30.0).contains(&(size / KIB)), "{size}");
    }

    #[test]
    fn another_machine_has_other_numbers() {
        let of = |machine: &MachineSpec| known(machine).unwrap_or_else(|e| panic!("{e}"));
        let machine = presets::load("opteron4x4").unwrap_or_else(|e| panic!("{e}"));
        let mut half = machine.clone();
        half.memory.controllers /= 2;
        half.core.sockets /= 2;
        let (whole, half) = (of(&machine), of(&half));
        assert_eq!(whole["caches_mib"], number(16.0));
        assert_eq!(half["caches_mib"], number(8.0));
        assert_eq!(whole["memory_rate_rounded"], number(28_000.0));
        assert_eq!(half["memory_rate_rounded"], number(14_000.0));
        assert_eq!(whole["migration_2_us"], number(11.7));
    }
}
