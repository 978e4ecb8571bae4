//! One table of all replacement policies: name, description, source, how to
//! build one.
//!
//! A host that wants its loop compiled for the concrete policy hands in a
//! [`Visitor`]; a host that does not care takes a [`boxed`] one. Adding a policy
//! means one file, one row here, and one test.

use piebald_policy::contract::replacement::Replacement;
use piebald_policy::dulo;
use piebald_policy::replacement::NewError;

use super::kernel;
use super::options;
use super::spec::{OptionError, PolicySpec};
use super::{ConfigError, arc, linux26_split, lirs, lru_k, mglru, min, mq, tiny_lfu};

/// What every policy is built from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setup {
    /// Pages that fit in memory: 1 to 2^28.
    pub capacity_pages: u32,
    /// Pages of the memory that it stands for, if it is a miniature that sees a share of all
    /// pages: sizes that a policy has in pages are cut in the same proportion.
    pub stands_for: u32,
}

impl Setup {
    /// A memory of this many pages.
    pub fn new(capacity_pages: u32) -> Self {
        Self::miniature(capacity_pages, capacity_pages)
    }

    /// A memory of this many pages that stands for one of `whole`.
    pub fn miniature(capacity_pages: u32, whole: u32) -> Self {
        Self {
            capacity_pages,
            stands_for: whole,
        }
    }
}

/// Gets the concrete policy, so that what it does with it is compiled for that
/// type.
pub trait Visitor {
    /// What it makes of the policy.
    type Out;

    /// Called once, with the policy that was asked for.
    fn visit<P: Replacement + Clone + Send + Sync + 'static>(self, policy: P) -> Self::Out;
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
    /// A policy of the core does not accept its configuration.
    #[error(transparent)]
    Core(#[from] NewError),
    /// DULO does not accept its configuration.
    #[error(transparent)]
    Dulo(#[from] dulo::ConfigError),
    /// The policy does not have the option, or not with this value.
    #[error(transparent)]
    Option(#[from] OptionError),
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
    "clock", "a queue in which pages that were used get another turn; Linux's idea, and the LRU of DULO's paper",
        "Corbato 1968; Jiang et al., FAST 2005, section 3.4"
        => kernel::clock;
    "dulo", "keeps blocks that are slow to fetch: random ones before sequences",
        "Jiang, Ding, Chen, Tan and Zhang, FAST 2005"
        => kernel::dulo_on_clock;
    "dulo-linux", "DULO inside the inactive list of Linux 2.6.11, as its authors built it",
        "Jiang, Ding, Chen, Tan and Zhang, FAST 2005, section 4.2"
        => kernel::dulo_in_linux;
    "fifo", "evicts the page that came first",
        "folklore"
        => kernel::fifo;
    "lru", "evicts the page whose last use lies farthest back",
        "folklore"
        => kernel::lru;
    "sieve", "a queue that is not reordered, swept by a hand that spares used pages",
        "Zhang et al., NSDI 2024"
        => kernel::sieve;
    "2q", "a queue for pages used once, LRU for those that come back",
        "Johnson and Shasha, VLDB 1994"
        => kernel::two_q;
    "s3-fifo", "a small queue as a filter, a main queue, and ghosts",
        "Yang et al., SOSP 2023, as its authors' libCacheSim has it"
        => kernel::s3_fifo;
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
    "linux-2.6.11", "an active and an inactive list for pages of all kinds",
        "a model of Linux 2.6.11"
        => kernel::two_lists;
    "linux-2.6.30", "active and inactive lists, apart for anonymous and file pages",
        "a model of Linux 2.6.30"
        => |s: &Setup| linux26_split::Linux26Split::new(
            linux26_split::Linux26SplitConfig::new(s.capacity_pages),
        );
    "mglru", "generations by age, tiers by uses through calls, protected by refaults",
        "a model of Linux 6.1's multi-generational LRU"
        => |s: &Setup| mglru::MgLru::new(mglru::MgLruConfig::new(s.capacity_pages));
    "min", "evicts the page used farthest in the future: the bound",
        "Belady, IBM Systems Journal 5(2), 1966"
        => |s: &Setup| min::Min::new(min::MinConfig::new(s.capacity_pages));
}

/// Builds what a specification asks for and hands it to the visitor. `run_costs` is
/// what the device takes for a random run of 1, 2, ... pages, in any unit; policies
/// that weigh the cost of a fetch need it.
///
/// # Errors
/// As [`build`], and if the policy does not have an option or not with that value.
pub fn build_spec<V: Visitor>(
    spec: &PolicySpec,
    setup: &Setup,
    run_costs: Option<&[u32]>,
    visitor: V,
) -> Result<V::Out, BuildError> {
    if [kernel::DULO, kernel::DULO_LINUX].contains(&spec.name()) {
        return kernel::visit_dulo(spec, setup, run_costs, visitor);
    }
    match spec.options().next() {
        Some(_) => options::visit(spec, setup, visitor),
        None => build(spec.name(), setup, visitor),
    }
}

/// The row of a policy.
pub fn find(name: &str) -> Option<&'static Row> {
    POLICIES.iter().find(|row| row.name == name)
}

/// Whether a policy decides by which pages lie next to one another on the disk: a sample of
/// single pages tells it nothing.
pub fn needs_neighbours(name: &str) -> bool {
    [kernel::DULO, kernel::DULO_LINUX].contains(&name)
}

/// All names, separated by commas.
pub fn names() -> String {
    let names: Vec<&str> = POLICIES.iter().map(|row| row.name).collect();
    names.join(", ")
}

/// An option of a policy, as `policy:name=value` has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionRow {
    /// Of this policy.
    pub policy: &'static str,
    /// Its name, or names of several that take the same.
    pub name: &'static str,
    /// What it takes.
    pub values: &'static str,
    /// What it is without being given.
    pub default: &'static str,
}

macro_rules! options {
    ($($policy:literal, $name:literal, $values:literal, $default:literal;)*) => {
        /// The options of all policies.
        pub const OPTIONS: &[OptionRow] = &[
            $(OptionRow { policy: $policy, name: $name, values: $values, default: $default },)*
        ];
    };
}

options! {
    "dulo", "base", "clock, lru, fifo, sieve, 2q, s3-fifo, arc, lirs, linux-2.6.11", "clock";
    "dulo", "bank, evicting, correlation", "sizes of its sections, such as 8MiB", "by the size of memory";
    "dulo", "rest", "the section that takes the rest of memory: correlation, evicting", "correlation";
    "dulo", "cost", "what a fetch costs: uniform, or disk by the model of the device", "uniform";
    "dulo", "max-sequence", "pages of the longest sequence, 1 to 128", "128";
    "s3-fifo", "rule",
        "libcachesim, artifact (the program of the paper's experiments), paper (its algorithm 1)", "libcachesim";
    "2q", "rule", "paper, libcachesim", "paper";
    "lru-2", "retained", "pages not in memory whose history is kept, in percent of memory, 0 to 400", "100";
    "mq", "life-time", "uses of any page after which an unused page moves a queue down, 1 to 2^40",
        "4 times the pages of memory";
}

/// How a policy's misses compare with those of libCacheSim 0.3.5, which a test holds against its counts
/// (`testdata/libcachesim`): the policy with the options that are compared, libCacheSim's name, and the rule
/// that differs.
pub const BESIDE_LIBCACHESIM: &[(&str, &str, &str)] = &[
    ("fifo", "FIFO", "equal"),
    ("lru", "LRU", "equal"),
    ("clock", "Clock", "equal"),
    ("sieve", "Sieve", "equal"),
    ("arc", "ARC", "equal"),
    ("s3-fifo", "S3FIFO", "equal"),
    ("min", "Belady", "equal"),
    ("2q:rule=libcachesim", "TwoQ", "equal"),
    (
        "2q",
        "TwoQ",
        "differ by a few: the name of the page that is asked for stays in A1out until the page is in memory, \
         as in the paper; libCacheSim takes it out before room is made",
    ),
    ("lru-2:retained=0", "LRUK", "equal"),
    (
        "lru-2",
        "LRUK",
        "differ: as many pages that left keep their history as fit in memory; libCacheSim keeps none",
    ),
    ("mq:life-time=10000", "MQ", "equal"),
    (
        "mq",
        "MQ",
        "differ: the life time is 4 times the pages of memory; libCacheSim's is 10000 uses at any size",
    ),
    (
        "lirs",
        "LIRS",
        "differ by up to 0.1 %: at a hit on a block that is in Q but not in S, libCacheSim takes the lowest \
         LIR block out of S, although no block becomes LIR; and it bounds S to twice the memory where we \
         bound the blocks that are remembered to the memory",
    ),
    (
        "w-tinylfu",
        "WTinyLFU",
        "differ: libCacheSim counts in a Bloom filter, not at hits in the window but at insertion and again \
         when the window pushes a page out, and halves it after 32 hits per page of the main part; protected \
         fills before probation is in use; segments are rounded down, and a page without room is evicted at a \
         hit; below 100 pages the window has none and nothing is let in",
    ),
];

struct Boxing;

impl Visitor for Boxing {
    type Out = Box<dyn Replacement>;

    fn visit<P: Replacement + Send + 'static>(self, policy: P) -> Self::Out {
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

    /// Each option that is listed is taken, and each policy that is compared can be built.
    #[test]
    fn what_is_said_of_options_is_so() {
        let spec = |text: &str| -> PolicySpec { text.parse().expect(text) };
        let built = |text: &str| build_spec(&spec(text), &Setup::new(1000), None, Boxing);
        for option in OPTIONS {
            assert!(find(option.policy).is_some(), "{option:?}");
            for name in option.name.split(", ") {
                let text = format!("{}:{name}=no value", option.policy);
                let error = built(&text).err().expect("taken").to_string();
                assert!(
                    error.contains("no value") && !error.contains("is not known"),
                    "{error}"
                );
            }
        }
        for (policy, ..) in BESIDE_LIBCACHESIM {
            assert!(built(policy).is_ok(), "{policy}");
        }
        let unknown = built("dulo:nothing=1").err().expect("taken").to_string();
        for option in OPTIONS.iter().filter(|option| option.policy == "dulo") {
            for name in option.name.split(", ") {
                assert!(unknown.contains(name), "{name}: {unknown}");
            }
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
                let named = ["capacity", "allowed", "needed"];
                assert!(named.iter().any(|word| text.contains(word)), "{text}");
            }
        }
    }

    #[test]
    fn dulo_in_linux_has_the_options_of_dulo_but_a_base_of_its_own() {
        let build = |text: &str| {
            let spec: PolicySpec = text.parse().expect(text);
            build_spec(&spec, &Setup::new(30_000), None, Boxing).map(|policy| policy.capacity())
        };
        for text in [
            "dulo-linux:bank=8MiB,evicting=64MiB",
            "dulo:base=linux-2.6.11",
        ] {
            assert_eq!(build(text), Ok(30_000), "{text}");
        }
        let error = build("dulo-linux:base=arc").expect_err("refused");
        let text = error.to_string();
        assert!(text.contains("base") && text.contains("bank"), "{text}");
    }
}
