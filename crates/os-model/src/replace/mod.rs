//! Replacement policies that ours are compared with, and the registry of all.
//!
//! Each file opens with its source, what is modelled and every deviation. All
//! implement [`Replacement`](piebald_policy::contract::replacement::Replacement): the host looks
//! pages up and gives them dense numbers; a policy here is an order over those
//! numbers and keeps no table of its own. Ghosts are states of the same number.
//!
//! [`miss`]: piebald_policy::contract::replacement::Replacement::miss
//!
//! What holds for all of them:
//! * A page that was read ahead and is not used yet has not been *seen*: its first
//!   [`hit`](piebald_policy::contract::replacement::Replacement::hit) is its first use. If it
//!   leaves unused, nothing of it is remembered. A ghost that is read ahead comes
//!   back with its history, and neither this nor its miss counts as a use.
//! * A ghost that is being fetched (the latest [`miss`]) is not dropped before it is
//!   inserted or another miss is told.
//! * [`reattach`](piebald_policy::contract::replacement::Replacement::reattach) puts a page that
//!   was used while detached where a hit would have put it, another to the hot end
//!   of the list that it came from.

mod any;
mod arc;
mod kernel;
mod kit;
mod lazy_heap;
mod linux26_split;
mod lirs;
mod lru_k;
mod mglru;
mod min;
mod mq;
mod options;
pub mod registry;
mod sketch;
mod spec;
mod tiny_lfu;

pub use any::AnyPolicy;
pub use arc::{Arc, ArcConfig};
pub use linux26_split::{Linux26Split, Linux26SplitConfig};
pub use lirs::{Lirs, LirsConfig};
pub use lru_k::{LruK, LruKConfig};
pub use mglru::{MgLru, MgLruConfig};
pub use min::{Min, MinConfig};
pub use mq::{Mq, MqConfig};
pub use spec::{OptionError, PolicySpec, SpecError};
pub use tiny_lfu::{WTinyLfu, WTinyLfuConfig};

/// Largest capacity in pages: ghosts of all policies must fit in 32-bit numbers.
pub const MAX_CAPACITY: u32 = 1 << 28;

/// A configuration that a policy does not accept.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{policy}: {field} is {value}; allowed: {allowed}")]
pub struct ConfigError {
    /// The policy.
    pub policy: &'static str,
    /// The field.
    pub field: &'static str,
    /// Its value.
    pub value: u64,
    /// What it may be.
    pub allowed: &'static str,
}

/// Checks a number against an inclusive range, which `allowed` says in words.
fn check(
    policy: &'static str,
    field: &'static str,
    value: u64,
    range: std::ops::RangeInclusive<u64>,
    allowed: &'static str,
) -> Result<(), ConfigError> {
    match range.contains(&value) {
        true => Ok(()),
        false => Err(ConfigError {
            policy,
            field,
            value,
            allowed,
        }),
    }
}

/// Checks a capacity.
fn check_capacity(policy: &'static str, capacity: u32) -> Result<u32, ConfigError> {
    let range = 1..=u64::from(MAX_CAPACITY);
    check(
        policy,
        "capacity",
        capacity.into(),
        range,
        "1 to 2^28 pages",
    )?;
    Ok(capacity)
}
