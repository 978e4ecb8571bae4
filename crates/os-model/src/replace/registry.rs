//! One table of all replacement policies: name, description, source, how to
//! build one.
//!
//! A host that wants its loop compiled for the concrete policy hands in a
//! [`Visitor`]; a host that does not care takes a [`boxed`] one. Adding a policy
//! means one file, one row here, and one test.

use piebald_policy::contract::replacement::Replacement;

use super::{ConfigError, arc, lirs, lru_k, min, mq, tiny_lfu};

/// What every policy is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Pages that fit in memory: 1 to 2^28.
    pub capacity_pages: u32,
}

impl Setup {
    /// A memory of this many pages.
    pub fn new(capacity_pages: u32) -> Self {
        Self { capacity_pages }
    }
}

/// Gets the concrete policy, so that what it does with it is compiled for that
/// type.
pub trait Visitor {
    /// What it makes of the policy.
    type Out;

    /// Called once, with the policy that was asked for.
    fn visit<P: Replacement + 'static>(self, policy: P) -> Self::Out;
}

/// What is said of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// Its name on a command line and in a scenario.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Where it comes from.
    pub source: &'static str,
}

/// Why no policy was built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// No policy has this name.
    #[error("replacement policy \"{name}\" is not known; allowed: {}", names())]
    Unknown {
        /// The name asked for.
        name: String,
    },
    /// The policy does not accept its configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
}

macro_rules! policies {
    ($($name:literal, $about:literal, $source:literal => $build:expr;)*) => {
        /// All policies.
        pub const POLICIES: &[Row] = &[
            $(Row { name: $name, about: $about, source: $source },)*
        ];

        /// Builds the policy of this name and hands it to the visitor.
        ///
        /// # Errors
        /// If no policy has the name, or it does not accept the set-up.
        pub fn build<V: Visitor>(name: &str, setup: &Setup, visitor: V) -> Result<V::Out, BuildError> {
            match name {
                $($name => {
                    let build = $build;
                    Ok(visitor.visit(build(setup)?))
                })*
                _ => Err(BuildError::Unknown { name: name.to_owned() }),
            }
        }
    };
}

policies! {
    "arc", "recency and frequency lists with a target that ghosts move",
        "Megiddo and Modha, FAST 2003"
        => |s: &Setup| arc::Arc::new(arc::ArcConfig::new(s.capacity_pages));
    "lirs", "keeps the pages of low inter-reference recency, passes others through 1 %",
        "Jiang and Zhang, SIGMETRICS 2002"
        => |s: &Setup| lirs::Lirs::new(lirs::LirsConfig::new(s.capacity_pages));
    "lru-2", "evicts the page whose second last use lies farthest back",
        "O'Neil, O'Neil and Weikum, SIGMOD 1993"
        => |s: &Setup| lru_k::LruK::new(lru_k::LruKConfig::new(s.capacity_pages));
    "mq", "eight LRU queues by number of uses, from which unused pages sink",
        "Zhou, Philbin and Li, USENIX 2001"
        => |s: &Setup| mq::Mq::new(mq::MqConfig::new(s.capacity_pages));
    "w-tinylfu", "admits a page from a small window if it was used more than the victim",
        "Einziger, Friedman and Manes, ACM TOS 13(4), 2017"
        => |s: &Setup| tiny_lfu::WTinyLfu::new(tiny_lfu::WTinyLfuConfig::new(s.capacity_pages));
    "min", "evicts the page used farthest in the future: the bound",
        "Belady, IBM Systems Journal 5(2), 1966"
        => |s: &Setup| min::Min::new(min::MinConfig::new(s.capacity_pages));
}

/// The row of a policy.
pub fn find(name: &str) -> Option<&'static Row> {
    POLICIES.iter().find(|row| row.name == name)
}

/// All names, separated by commas.
pub fn names() -> String {
    let names: Vec<&str> = POLICIES.iter().map(|row| row.name).collect();
    names.join(", ")
}

struct Boxing;

impl Visitor for Boxing {
    type Out = Box<dyn Replacement>;

    fn visit<P: Replacement + 'static>(self, policy: P) -> Self::Out {
        Box::new(policy)
    }
}

/// Builds the policy of this name, its type hidden.
///
/// # Errors
/// As [`build`].
pub fn boxed(name: &str, setup: &Setup) -> Result<Box<dyn Replacement>, BuildError> {
    build(name, setup, Boxing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_builds_under_its_name_and_names_are_distinct() {
        let mut seen = std::collections::BTreeSet::new();
        for row in POLICIES {
            assert!(seen.insert(row.name), "{} is there twice", row.name);
            let policy = boxed(row.name, &Setup::new(100)).expect(row.name);
            assert_eq!(policy.capacity(), 100, "{}", row.name);
            assert!(policy.slots() > 100, "{}", row.name);
        }
    }

    #[test]
    fn an_unknown_name_is_answered_with_those_allowed() {
        let error = boxed("lfu-42", &Setup::new(1)).err().expect("unknown");
        let text = error.to_string();
        assert!(text.contains("\"lfu-42\""), "{text}");
        for row in POLICIES {
            assert!(text.contains(row.name), "{text}");
        }
    }

    #[test]
    fn a_capacity_of_no_page_or_too_many_is_refused_by_every_policy() {
        for row in POLICIES {
            for capacity in [0, u32::MAX] {
                let error = boxed(row.name, &Setup::new(capacity)).err();
                let text = error.expect(row.name).to_string();
                assert!(text.contains("capacity"), "{text}");
            }
        }
    }
}
