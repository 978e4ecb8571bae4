//! Options of the policies other than DULO: where published forms of a policy differ by
//! a rule or a number, an option of its name chooses (see [`PolicySpec`]).
//!
//! | option | values | default |
//! |---|---|---|
//! | `s3-fifo:rule` | `libcachesim`, `artifact`, `paper`: the three forms of [`S3Fifo`] | `libcachesim` |
//! | `2q:rule` | `paper`; `libcachesim`: the name of a page that is asked for leaves A1out before room is made | `paper` |
//! | `lru-2:retained` | pages not in memory whose history is kept, in percent of the capacity, 0 to 400; libCacheSim keeps none | 100 |
//! | `mq:life-time` | uses of any page after which an unused one moves a queue down, 1 to 2^40; libCacheSim takes 10000 | 4 times the capacity |

use std::ops::RangeInclusive;

use piebald_policy::replacement::{NameLeaves, S3Fifo, S3FifoConfig, S3FifoRule, TwoQ, TwoQConfig};

use super::kernel::{Memory, memory, one_of};
use super::registry::{BuildError, Setup, Visitor, build, find};
use super::spec::{OptionError, PolicySpec};
use super::{LruK, LruKConfig, Mq, MqConfig};

/// Builds a policy that is asked for with options and hands it to the visitor.
pub(super) fn visit<V: Visitor>(
    spec: &PolicySpec,
    setup: &Setup,
    visitor: V,
) -> Result<V::Out, BuildError> {
    match spec.name() {
        "s3-fifo" => Ok(visitor.visit(s3_fifo(spec, setup)?)),
        "2q" => Ok(visitor.visit(two_q(spec, setup)?)),
        "lru-2" => Ok(visitor.visit(lru_2(spec, setup)?)),
        "mq" => Ok(visitor.visit(mq(spec, setup)?)),
        name => match (find(name), spec.options().next()) {
            (Some(_), Some((option, _))) => Err(OptionError::unknown(option, &[]).into()),
            _ => build(name, setup, visitor),
        },
    }
}

/// The value of a policy's only option, if it is given.
fn only<'a>(option: &'static str, spec: &'a PolicySpec) -> Result<Option<&'a str>, OptionError> {
    match spec.options().find(|(name, _)| *name != option) {
        Some((other, _)) => Err(OptionError::unknown(other, &[option])),
        None => Ok(spec.options().next().map(|(_, value)| value)),
    }
}

fn number(
    option: &'static str,
    text: &str,
    range: RangeInclusive<u64>,
    allowed: &str,
) -> Result<u64, OptionError> {
    let number = text.parse().ok().filter(|number| range.contains(number));
    number.ok_or_else(|| OptionError {
        option,
        value: text.to_owned(),
        allowed: allowed.to_owned(),
    })
}

fn s3_fifo(spec: &PolicySpec, setup: &Setup) -> Result<S3Fifo<Memory>, BuildError> {
    let mut config = S3FifoConfig::new(setup.capacity_pages);
    if let Some(text) = only("rule", spec)? {
        let words = [
            ("libcachesim", S3FifoRule::LibCacheSim),
            ("artifact", S3FifoRule::Artifact),
            ("paper", S3FifoRule::Paper),
        ];
        config.rule = one_of("rule", text, &words)?;
    }
    Ok(S3Fifo::new(memory(config.slots())?, config)?)
}

fn two_q(spec: &PolicySpec, setup: &Setup) -> Result<TwoQ<Memory>, BuildError> {
    let mut config = TwoQConfig::new(setup.capacity_pages);
    if let Some(text) = only("rule", spec)? {
        let words = [
            ("paper", NameLeaves::AtInsert),
            ("libcachesim", NameLeaves::AtMiss),
        ];
        config.names = one_of("rule", text, &words)?;
    }
    Ok(TwoQ::new(memory(config.slots())?, config)?)
}

fn lru_2(spec: &PolicySpec, setup: &Setup) -> Result<LruK, BuildError> {
    let mut config = LruKConfig::new(setup.capacity_pages);
    if let Some(text) = only("retained", spec)? {
        let percent = number("retained", text, 0..=400, "0 to 400 (percent)")?;
        config.retained_percent = percent as u32;
    }
    Ok(LruK::new(config)?)
}

fn mq(spec: &PolicySpec, setup: &Setup) -> Result<Mq, BuildError> {
    let mut config = MqConfig::new(setup.capacity_pages);
    if let Some(text) = only("life-time", spec)? {
        config.life_time_uses = number("life-time", text, 1..=1 << 40, "1 to 2^40 (uses)")?;
    }
    Ok(Mq::new(config)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replace::registry::build_spec;
    use piebald_policy::contract::replacement::Replacement;

    /// Numbers that the policy needs; they tell how much it remembers.
    struct Slots;

    impl Visitor for Slots {
        type Out = u32;

        fn visit<P: Replacement + 'static>(self, policy: P) -> u32 {
            policy.slots()
        }
    }

    fn slots(text: &str) -> Result<u32, String> {
        let spec: PolicySpec = text.parse().expect(text);
        build_spec(&spec, &Setup::new(100), None, Slots).map_err(|e| e.to_string())
    }

    #[test]
    fn values_are_accepted_as_listed_and_the_history_of_lru_2_has_its_size() {
        for text in [
            "s3-fifo:rule=libcachesim",
            "s3-fifo:rule=artifact",
            "s3-fifo:rule=paper",
            "2q:rule=paper",
            "2q:rule=libcachesim",
            "mq:life-time=10000",
        ] {
            let plain = text.split(':').next().expect("a name");
            assert_eq!(slots(text), slots(plain), "{text}");
        }
        assert_eq!(slots("lru-2:retained=0"), Ok(101));
        assert_eq!(slots("lru-2:retained=200"), Ok(301));
    }

    #[test]
    fn what_is_not_allowed_is_refused_with_option_value_and_what_is() {
        for (text, words) in [
            (
                "s3-fifo:rule=code",
                ["rule", "code", "libcachesim, artifact, paper"],
            ),
            (
                "2q:rule=artifact",
                ["rule", "artifact", "paper, libcachesim"],
            ),
            ("2q:names=1", ["name", "names", "rule"]),
            ("lru-2:retained=401", ["retained", "401", "0 to 400"]),
            ("lru-2:retained=-1", ["retained", "-1", "0 to 400"]),
            ("mq:life-time=0", ["life-time", "\"0\"", "1 to 2^40"]),
            ("mq:life-time=x", ["life-time", "\"x\"", "1 to 2^40"]),
            ("lru:rule=paper", ["name", "rule", "no options"]),
            ("lfu-42:rule=paper", ["lfu-42", "s3-fifo", "not known"]),
        ] {
            let error = slots(text).expect_err(text);
            for word in words {
                assert!(error.contains(word), "{text}: {error}");
            }
        }
    }
}
