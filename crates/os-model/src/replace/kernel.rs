//! The policies that a kernel can use, over vectors, and DULO on top of a base.
//!
//! DULO needs more than a capacity: the sizes of its sections, what a fetch costs,
//! and a base. The command line gives them as options of its name (see
//! [`PolicySpec`]):
//!
//! | option | meaning | default |
//! |---|---|---|
//! | `base` | policy whose order it refines: `clock`, `lru`, `fifo`, `sieve`, `2q`, `s3-fifo`, `arc`, `lirs`, `linux-2.6.11` | `clock` |
//! | `bank` | size of the sequencing bank | 8 MiB, 4 MiB below 80 MiB of memory |
//! | `evicting` | size of the evicting section | 64 MiB, 16 MiB below 80 MiB |
//! | `correlation` | size of the correlation buffer | 1 MiB |
//! | `rest` | which section takes the rest of memory: `correlation`, `evicting` | `correlation` |
//! | `cost` | what a fetch costs: `uniform`, or `disk` by the device's own model | `uniform` |
//! | `max-sequence` | longest sequence in pages, 1 to 128 | 128 |
//!
//! `dulo-linux` is the form of the paper's section 4.2, inside Linux 2.6.11's two lists
//! (`linux-2.6.11`): it has the same options but `base`.

use piebald_policy::contract::replacement::{Base, PageRef};
use piebald_policy::dulo::{self, Bucket, Cost, Dulo, Rest, Sequence, Sizes, TableNode};
use piebald_policy::replacement::{
    Clock, ClockConfig, Config, Fifo, Link, Lru, NewError, S3Fifo, S3FifoConfig, Sieve, Slots,
    TwoLists, TwoListsConfig, TwoQ, TwoQConfig,
};
use piebald_units::{Bytes, PAGE_SIZE};

use super::registry::{BuildError, Setup, Visitor};
use super::spec::{OptionError, PolicySpec};
use super::{arc, lirs};

/// Memory of a policy of the core.
pub(super) type Memory = Slots<Vec<Link>, Vec<u8>>;

pub(super) fn memory(slots: Result<u32, NewError>) -> Result<Memory, NewError> {
    slots.map(Memory::collect)
}

/// Makes the functions that build a policy over vectors.
macro_rules! over_vectors {
    ($($build:ident => $policy:ident, $config:ident;)*) => {
        $(
            pub(super) fn $build(setup: &Setup) -> Result<$policy<Memory>, BuildError> {
                let config = $config::new(setup.capacity_pages);
                Ok($policy::new(memory(config.slots())?, config)?)
            }
        )*
    };
}

over_vectors! {
    fifo => Fifo, Config;
    lru => Lru, Config;
    clock => Clock, ClockConfig;
    sieve => Sieve, Config;
    two_q => TwoQ, TwoQConfig;
    s3_fifo => S3Fifo, S3FifoConfig;
    two_lists => TwoLists, TwoListsConfig;
}

/// Memory of DULO.
type DuloMemory = dulo::Slices<
    Vec<dulo::Link>,
    Vec<u64>,
    Vec<Sequence>,
    Vec<PageRef>,
    Vec<Bucket>,
    Vec<TableNode>,
>;

/// What a fetch costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CostChoice {
    Uniform,
    Disk,
}

/// DULO's options, read.
struct DuloChoice {
    base: String,
    config: dulo::Config,
    cost: CostChoice,
}

/// Names of options, for messages; the first is the base.
pub(super) const DULO_OPTIONS: &[&str] = &[
    "base",
    "bank",
    "evicting",
    "correlation",
    "rest",
    "cost",
    "max-sequence",
];

const BASES: &str = "clock, lru, fifo, sieve, 2q, s3-fifo, arc, lirs, linux-2.6.11";

fn pages(option: &'static str, text: &str) -> Result<u32, OptionError> {
    let bad = || OptionError {
        option,
        value: text.to_owned(),
        allowed: "a size from 4KiB to 1TiB, such as 8MiB".to_owned(),
    };
    let bytes: Bytes = text.parse().map_err(|_| bad())?;
    match bytes.0 / PAGE_SIZE {
        pages @ 1..=0x1000_0000 => Ok(pages as u32),
        _ => Err(bad()),
    }
}

pub(super) fn one_of<T: Copy>(
    option: &'static str,
    text: &str,
    words: &[(&str, T)],
) -> Result<T, OptionError> {
    let found = words.iter().find(|(word, _)| *word == text);
    found.map(|(_, value)| *value).ok_or_else(|| OptionError {
        option,
        value: text.to_owned(),
        allowed: words.iter().map(|(w, _)| *w).collect::<Vec<_>>().join(", "),
    })
}

/// DULO on one stack.
pub(super) const DULO: &str = "dulo";
/// DULO in Linux's two lists.
pub(super) const DULO_LINUX: &str = "dulo-linux";
const LINUX: &str = "linux-2.6.11";

fn defaults(name: &str, capacity: u32) -> DuloChoice {
    let config = dulo::Config::scaled(capacity);
    let (base, config) = match name {
        DULO_LINUX => (LINUX, config.linux()),
        _ => ("clock", config),
    };
    DuloChoice {
        base: base.to_owned(),
        config,
        cost: CostChoice::Uniform,
    }
}

fn read_options(spec: &PolicySpec, setup: &Setup) -> Result<DuloChoice, OptionError> {
    let mut choice = defaults(spec.name(), setup.stands_for);
    let fixed_base = spec.name() == DULO_LINUX;
    let allowed = &DULO_OPTIONS[usize::from(fixed_base)..];
    let config = &mut choice.config;
    for (name, value) in spec.options() {
        match name {
            "base" if !fixed_base => choice.base = value.to_owned(),
            "bank" => config.bank = pages("bank", value)?,
            "evicting" => config.evicting = pages("evicting", value)?,
            "correlation" => config.correlation = pages("correlation", value)?,
            "rest" => {
                let words = [
                    ("correlation", Rest::Correlation),
                    ("evicting", Rest::Evicting),
                ];
                config.rest = one_of("rest", value, &words)?;
            }
            "cost" => {
                let words = [("uniform", CostChoice::Uniform), ("disk", CostChoice::Disk)];
                choice.cost = one_of("cost", value, &words)?;
            }
            "max-sequence" => {
                config.max_sequence = value.parse().map_err(|_| OptionError {
                    option: "max-sequence",
                    value: value.to_owned(),
                    allowed: "1 to 128".to_owned(),
                })?;
            }
            _ => return Err(OptionError::unknown(name, allowed)),
        }
    }
    if setup.stands_for != setup.capacity_pages {
        choice.config = choice
            .config
            .miniature(setup.capacity_pages, setup.stands_for);
    }
    Ok(choice)
}

/// Builds DULO as a specification says, and hands it to the visitor. `run_costs`: what
/// the device takes for runs of 1, 2, ... pages, in any unit.
pub(super) fn visit_dulo<V: Visitor>(
    spec: &PolicySpec,
    setup: &Setup,
    run_costs: Option<&[u32]>,
    visitor: V,
) -> Result<V::Out, BuildError> {
    let choice = read_options(spec, setup)?;
    let cost = match (choice.cost, run_costs) {
        (CostChoice::Uniform, _) => Cost::Uniform,
        (CostChoice::Disk, Some(costs)) => Cost::Runs(costs),
        (CostChoice::Disk, None) => {
            return Err(BuildError::Option(OptionError {
                option: "cost",
                value: "disk".to_owned(),
                allowed: "uniform where there is no device".to_owned(),
            }));
        }
    };
    let on = On {
        config: choice.config,
        cost,
        visitor,
    };
    match choice.base.as_str() {
        "clock" => on.put(clock(setup)?),
        "lru" => on.put(lru(setup)?),
        "fifo" => on.put(fifo(setup)?),
        "sieve" => on.put(sieve(setup)?),
        "2q" => on.put(two_q(setup)?),
        "s3-fifo" => on.put(s3_fifo(setup)?),
        "arc" => on.put(arc::Arc::new(arc::ArcConfig::new(setup.capacity_pages))?),
        "lirs" => on.put(lirs::Lirs::new(lirs::LirsConfig::new(
            setup.capacity_pages,
        ))?),
        LINUX => on.put(two_lists(setup)?),
        _ => Err(BuildError::Option(OptionError {
            option: "base",
            value: choice.base.clone(),
            allowed: BASES.to_owned(),
        })),
    }
}

/// DULO as published, on CLOCK.
pub(super) fn dulo_on_clock(setup: &Setup) -> Result<Dulo<Clock<Memory>, DuloMemory>, BuildError> {
    let base = clock(setup)?;
    let config = dulo::Config::scaled(setup.capacity_pages);
    put(base, config, Cost::Uniform)
}

/// DULO in Linux 2.6.11's lists, with the published sizes.
pub(super) fn dulo_in_linux(
    setup: &Setup,
) -> Result<Dulo<TwoLists<Memory>, DuloMemory>, BuildError> {
    let base = two_lists(setup)?;
    let config = dulo::Config::scaled(setup.capacity_pages).linux();
    put(base, config, Cost::Uniform)
}

fn put<B: Base>(
    base: B,
    config: dulo::Config,
    cost: Cost<'_>,
) -> Result<Dulo<B, DuloMemory>, BuildError> {
    let sections = config.sections(base.capacity())?;
    let store = DuloMemory::collect(&Sizes::of(&sections, base.slots()));
    Ok(Dulo::new(base, store, config, cost)?)
}

struct On<'a, V> {
    config: dulo::Config,
    cost: Cost<'a>,
    visitor: V,
}

impl<V: Visitor> On<'_, V> {
    fn put<B: Base + Clone + Send + Sync + 'static>(self, base: B) -> Result<V::Out, BuildError> {
        let policy = put(base, self.config, self.cost)?;
        Ok(self.visitor.visit(policy))
    }
}
