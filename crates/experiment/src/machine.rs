//! The table `[machine]`.

use std::path::{Path, PathBuf};

use piebald_hw::{
    Features, Machine as Built, Options,
    nearest::did_you_mean,
    nearest_size, presets,
    spec::{Inclusion, MachineSpec},
};
use piebald_units::{Bytes, Hertz, Picos};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    KeyPath, Problem, Text, Whole, Word, Words, text_file::read_text, value::Notation, words::words,
};

/// The machine that programs run on.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// A machine that comes with Piebald (`piebald machine list`); or `file`.
    pub preset: Option<String>,
    /// A file that describes a machine (`piebald machine derive` writes one), relative to the
    /// experiment's folder; or `preset`.
    pub file: Option<PathBuf>,
    /// Memory, instead of the preset's: a multiple of 4MiB, at least 64MiB, that suits its
    /// channels.
    #[schemars(extend("x-hosts" = "model"))]
    pub memory: Option<Text<Bytes>>,
    /// Parts of the model that are on. Default: `"all"`.
    #[schemars(extend("x-hosts" = "model"))]
    pub features: Option<Text<Features>>,
    /// Are hardware prefetchers on? Instead of what `features` says.
    #[schemars(extend("x-hosts" = "model"))]
    pub prefetch: Option<bool>,
    /// Memory controllers that are off, not all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-hosts" = "model"))]
    pub disabled_controllers: Vec<Whole<0, 0xffff>>,
    /// Masks of address bits that choose the last level's slices, instead of the preset's; `[]`
    /// for none.
    #[schemars(extend("x-hosts" = "model"))]
    pub slice_hash: Option<Vec<String>>,
    /// Size of one last-level cache, instead of the preset's: its ways stay, and the number of its sets changes.
    #[schemars(extend("x-hosts" = "model"))]
    pub llc_size: Option<Text<Bytes>>,
    /// Cores that have one last-level cache together, instead of the preset's.
    #[schemars(extend("x-hosts" = "model"))]
    pub llc_shared_by: Option<Whole<1, 1024>>,
    /// Transfers of the memory's bus, in millions a second, instead of the preset's: latencies stay the same in
    /// nanoseconds, to the next cycle.
    #[schemars(extend("x-hosts" = "model"))]
    pub bus_mts: Option<Whole<100, 20_000>>,
    /// Ways of the second level, instead of the preset's: its size stays, and the number of its sets changes.
    #[schemars(extend("x-hosts" = "model"))]
    pub l2_ways: Option<Whole<1, 1024>>,
    /// What the last level promises about the levels inside it, instead of the preset's.
    #[schemars(extend("x-hosts" = "model"))]
    pub inclusion: Option<Word<Inclusion>>,
    /// By what the processors advance. Default: `"time"`.
    #[schemars(extend("x-hosts" = "model"))]
    pub clock: Option<Clock>,
}

words! {
    /// By what the processors of a machine advance.
    pub enum Clock {
        /// By the machine's time.
        Time = "time",
        /// By instructions, one for one, as those of a guest: a cycle of 100 ns, in which all caches and nearly
        /// all of memory have answered. Misses are those of the machine, and its times mean nothing.
        Instructions = "instructions",
    }
}

impl Words for Inclusion {
    const WORDS: &'static [(&'static str, Self, &'static str)] = &[
        (
            "non-inclusive",
            Self::NonInclusive,
            "Nothing: filled on a miss, evicts on its own.",
        ),
        (
            "inclusive",
            Self::Inclusive,
            "Holds every line of the inner levels; its victims leave them too.",
        ),
        (
            "exclusive",
            Self::Exclusive,
            "Holds what the inner levels evicted; a hit moves the line inwards.",
        ),
        (
            "victim",
            Self::Victim,
            "Filled by victims of the inner levels, but a hit leaves the line in place.",
        ),
        (
            "mostly-exclusive",
            Self::MostlyExclusive,
            "As exclusive, but a hit leaves a copy of a line that more than one core has had.",
        ),
    ];
}

impl Notation for Features {
    const WHAT: &'static str =
        "\"all\", \"none\", or a list of window, coherence, tlb, prefetch and fetch";
}

/// Least memory of a machine, and its granularity.
const MEMORY: [u64; 2] = [64 * Bytes::MIB, 4 * Bytes::MIB];

impl Machine {
    /// The modelled machine and the parts of the model that are on. A file is looked for in
    /// `folder`; `at` is the path of this table.
    ///
    /// # Errors
    /// What makes it no machine.
    pub fn build(&self, folder: &Path, at: &KeyPath) -> Result<(MachineSpec, Features), Problem> {
        let mut spec = match (&self.preset, &self.file) {
            (Some(name), None) => preset(name, at.key("preset"))?,
            (None, Some(file)) => from_file(&folder.join(file), &at.key("file"))?,
            _ => return Err(Problem::at(at.clone(), "give either preset or file")),
        };
        if let Some(Text(size)) = self.memory {
            resize(&mut spec, size, at.key("memory"))?;
        }
        if let Some(hash) = &self.slice_hash {
            let last = spec.last_level().level;
            for cache in spec.cache.iter_mut().filter(|c| c.level == last) {
                cache.slice_hash.clone_from(hash);
            }
            Built::new(&spec, &Options::default())
                .map_err(|e| Problem::at(at.key("slice_hash"), e.to_string()))?;
        }
        if let Some(Text(size)) = self.llc_size {
            let last = spec.last_level().level;
            for cache in spec.cache.iter_mut().filter(|c| c.level == last) {
                cache.size = size;
            }
            Built::new(&spec, &Options::default())
                .map_err(|e| Problem::at(at.key("llc_size"), format!("{size}: {e}")))?;
        }
        if let Some(cores) = self.llc_shared_by {
            let last = spec.last_level().level;
            for cache in spec.cache.iter_mut().filter(|c| c.level == last) {
                cache.shared_by = cores.get_u32() as u16;
            }
            let says = |e| format!("{}: {e}", cores.get());
            Built::new(&spec, &Options::default())
                .map_err(|e| Problem::at(at.key("llc_shared_by"), says(e)))?;
        }
        if let Some(bus) = self.bus_mts {
            time_bus(&mut spec, bus.get());
            Built::new(&spec, &Options::default())
                .map_err(|e| Problem::at(at.key("bus_mts"), e.to_string()))?;
        }
        if let Some(Word(inclusion)) = self.inclusion {
            let last = spec.last_level().level;
            for cache in spec.cache.iter_mut().filter(|c| c.level == last) {
                cache.inclusion = inclusion;
            }
            Built::new(&spec, &Options::default())
                .map_err(|e| Problem::at(at.key("inclusion"), e.to_string()))?;
        }
        if let Some(ways) = self.l2_ways {
            widen_second_level(&mut spec, ways.get_u32() as u16);
            Built::new(&spec, &Options::default())
                .map_err(|e| Problem::at(at.key("l2_ways"), format!("{}: {e}", ways.get())))?;
        }
        if self.clock == Some(Clock::Instructions) {
            answer_at_once(&mut spec);
            Built::new(&spec, &Options::default())
                .map_err(|e| Problem::at(at.key("clock"), e.to_string()))?;
        }
        self.check_controllers(&spec, at)?;
        let mut features = self.features.map_or(Features::ALL, |Text(on)| on);
        features.prefetch = self.prefetch.unwrap_or(features.prefetch);
        Ok((spec, features))
    }

    /// Memory controllers that are off.
    pub fn controllers_off(&self) -> Vec<u16> {
        let numbers = self.disabled_controllers.iter();
        numbers
            .filter_map(|n| u16::try_from(n.get()).ok())
            .collect()
    }

    fn check_controllers(&self, spec: &MachineSpec, at: &KeyPath) -> Result<(), Problem> {
        let off = self.controllers_off();
        let last = spec.memory.controllers.saturating_sub(1);
        let options = Options {
            disabled_controllers: off.clone(),
            ..Options::default()
        };
        let beyond = off.iter().any(|c| *c > last);
        if off.is_empty() || !beyond && Built::new(spec, &options).is_ok() {
            return Ok(());
        }
        let allowed = format!("controllers of this machine, 0-{last}, but not all");
        let path = at.key("disabled_controllers");
        Err(Problem::refuse(path, format!("{off:?}"), allowed))
    }
}

/// A machine that comes with Piebald.
fn preset(name: &str, path: KeyPath) -> Result<MachineSpec, Problem> {
    let Some(text) = presets::get(name) else {
        let names = presets::names().collect::<Vec<_>>().join(", ");
        let allowed = names + &did_you_mean(name, presets::names());
        return Err(Problem::refuse(path, format!("\"{name}\""), allowed));
    };
    presets::parse(text, name).map_err(|e| Problem::at(path, e.to_string()))
}

fn from_file(file: &Path, path: &KeyPath) -> Result<MachineSpec, Problem> {
    let says = |e: String| Problem::at(path.clone(), e);
    let name = file.display().to_string();
    let text = read_text(file).map_err(|e| Problem {
        path: path.clone(),
        value: Some(format!("\"{name}\"")),
        says: e.to_string(),
    })?;
    let spec = presets::parse(&text, &name).map_err(|e| says(e.to_string()))?;
    Built::new(&spec, &Options::default()).map_err(|e| {
        let line = presets::line_of(&text, &e.field);
        let line = line.map_or(String::new(), |l| format!(":{l}"));
        says(format!("{name}{line}: {e}"))
    })?;
    Ok(spec)
}

/// Gives a machine's memory another bus of so many MT/s. Latencies stay in nanoseconds, to the next cycle.
fn time_bus(spec: &mut MachineSpec, bus: u64) {
    let t = &mut spec.memory.dram.timing;
    let (old, new) = (t.tck.0, 2_000_000 / bus);
    t.tck = Picos(new);
    let as_long = |cycles: u32| (u64::from(cycles) * old).div_ceil(new) as u32;
    for cycles in [
        &mut t.cl,
        &mut t.cwl,
        &mut t.rcd,
        &mut t.rp,
        &mut t.ras,
        &mut t.rrd,
        &mut t.faw,
        &mut t.wr,
        &mut t.wtr,
        &mut t.rtp,
        &mut t.rfc,
        &mut t.refi,
    ] {
        *cycles = as_long(*cycles).max(1);
    }
    t.rc = as_long(t.rc).max(t.ras + t.rp);
}

/// Gives a machine's second level so many ways at its size.
fn widen_second_level(spec: &mut MachineSpec, ways: u16) {
    for cache in spec.cache.iter_mut().filter(|c| c.level == 2) {
        cache.ways = ways;
    }
}

/// Lets a machine answer within a cycle, so that its processors advance by instructions.
fn answer_at_once(spec: &mut MachineSpec) {
    spec.core.clock = Hertz(10_000_000);
    spec.core.base_cpi = 1.0;
    for cache in &mut spec.cache {
        cache.latency = 1;
    }
    spec.memory.fixed_latency = Picos(0);
    let links = &mut spec.links;
    for transfer in [
        &mut links.same_group_transfer,
        &mut links.same_socket_transfer,
        &mut links.other_socket_transfer,
    ] {
        *transfer = transfer.map(|_| 1);
    }
}

/// Gives a machine another memory.
fn resize(spec: &mut MachineSpec, size: Bytes, path: KeyPath) -> Result<(), Problem> {
    let [least, unit] = MEMORY;
    if size.0 < least || !size.0.is_multiple_of(unit) {
        let allowed = "a multiple of 4MiB, at least 64MiB";
        return Err(Problem::refuse(path, size, allowed));
    }
    spec.memory.size = size;
    let options = Options {
        // A machine may have sizes that no scenario may ask for.
        least_memory: Bytes(least),
        ..Options::default()
    };
    Built::new(spec, &options).map_err(|e| {
        let near = nearest_size(&spec.memory, Bytes(least)).filter(|near| *near != size);
        let asked = near.map_or(String::new(), |near| {
            format!("; the nearest is asked for by memory = \"{near}\"")
        });
        Problem::at(path, format!("{e}{asked}"))
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_number_of_ways_leaves_the_size_and_the_other_levels() {
        let build = |l2_ways: Option<u64>| {
            let machine = Machine {
                preset: Some("i7-860".to_owned()),
                l2_ways: l2_ways.map(Whole::new),
                ..Machine::default()
            };
            machine.build(Path::new("."), &KeyPath::of("machine"))
        };
        let preset = build(None).expect("a machine").0;
        let wide = build(Some(16)).expect("a machine").0;
        for (a, b) in preset.cache.iter().zip(&wide.cache) {
            let ways = if a.level == 2 { 16 } else { a.ways };
            assert_eq!((b.ways, b.size), (ways, a.size), "{}", a.name);
        }
        let error = build(Some(7)).expect_err("sets that are no power of two");
        assert_eq!(error.path.to_string(), "machine.l2_ways");
    }

    #[test]
    fn another_last_level_has_its_size_and_cores_and_leaves_the_other_levels() {
        let build = |llc_size: Option<u64>, llc_shared_by: Option<u64>| {
            let machine = Machine {
                preset: Some("zen".to_owned()),
                llc_size: llc_size.map(|mib| Text(Bytes(mib * Bytes::MIB))),
                llc_shared_by: llc_shared_by.map(Whole::new),
                slice_hash: Some(vec!["0x1b5f575440".to_owned()]),
                ..Machine::default()
            };
            machine.build(Path::new("."), &KeyPath::of("machine"))
        };
        let preset = build(None, None).expect("a machine").0;
        let small = build(Some(8), Some(4)).expect("a machine").0;
        for (a, b) in preset.cache.iter().zip(&small.cache) {
            let wanted = if a.level == 3 {
                (Bytes(8 * Bytes::MIB), 4)
            } else {
                (a.size, a.shared_by)
            };
            assert_eq!((b.size, b.shared_by), wanted, "{}", a.name);
        }
        for (size, cores, key) in [
            (Some(7), None, "machine.llc_size"),
            (None, Some(5), "machine.llc_shared_by"),
        ] {
            let error = build(size, cores).expect_err(key);
            assert_eq!(error.path.to_string(), key);
        }
    }

    #[test]
    fn a_machine_that_answers_at_once_has_the_same_caches() {
        for preset in presets::names() {
            let build = |clock| {
                let machine = Machine {
                    preset: Some(preset.to_owned()),
                    clock,
                    ..Machine::default()
                };
                let built = machine.build(Path::new("."), &KeyPath::of("machine"));
                built.unwrap_or_else(|e| panic!("{preset}: {e}")).0
            };
            let own = build(None);
            assert_eq!(
                format!("{:?}", build(Some(Clock::Time))),
                format!("{own:?}")
            );
            let quick = build(Some(Clock::Instructions));
            assert_eq!(quick.core.clock.0, 10_000_000);
            assert_eq!(quick.memory.fixed_latency.0, 0);
            assert_eq!(quick.cache.len(), own.cache.len());
            for (a, b) in quick.cache.iter().zip(&own.cache) {
                assert_eq!(a.latency, 1);
                assert_eq!((a.size, a.ways, a.shared_by), (b.size, b.ways, b.shared_by));
                assert_eq!((a.replacement, a.inclusion), (b.replacement, b.inclusion));
            }
            let transfers = |s: &MachineSpec| {
                let links = &s.links;
                [
                    links.same_group_transfer,
                    links.same_socket_transfer,
                    links.other_socket_transfer,
                ]
            };
            assert_eq!(transfers(&quick), transfers(&own).map(|t| t.map(|_| 1)));
        }
    }

    #[test]
    fn another_bus_has_the_same_latencies_in_nanoseconds() {
        let build = |bus_mts: Option<u64>| {
            let machine = Machine {
                preset: Some("i7-860".to_owned()),
                bus_mts: bus_mts.map(Whole::new),
                ..Machine::default()
            };
            let built = machine.build(Path::new("."), &KeyPath::of("machine"));
            built.expect("a machine").0
        };
        let preset = build(None);
        assert_eq!(format!("{:?}", build(Some(1333))), format!("{preset:?}"));
        let nanos = |s: &MachineSpec, cycles: u32| u64::from(cycles) * s.memory.dram.timing.tck.0;
        for bus in [1066, 800] {
            let slow = build(Some(bus));
            let (a, b) = (&preset.memory.dram.timing, &slow.memory.dram.timing);
            assert_eq!(b.tck.0, 2_000_000 / bus);
            for (a, b) in [(a.rcd, b.rcd), (a.cl, b.cl), (a.rc, b.rc)] {
                let (a, b) = (nanos(&preset, a), nanos(&slow, b));
                assert!(
                    b >= a && b < a + 2 * slow.memory.dram.timing.tck.0,
                    "{a} {b}"
                );
            }
        }
    }
}
