//! Colors that programs ask for.

use std::{borrow::Cow, fmt};

use piebald_units::{ColorAsk, ColorSet, Count, MAX_COLORS};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_untagged::UntaggedEnumVisitor;

use crate::{
    KeyPath, Problem, Refs, Whole, Words, problem::refused_value, value::described, words::words,
};

words! {
    /// Do colors bind?
    pub enum Binding {
        /// A program gets no page of another color.
        Hard = "hard",
        /// Pages of other colors are taken when its own are used up.
        Hint = "hint",
    }
}

words! {
    /// What happens when the colors that bind a program are used up.
    pub enum OnLimit {
        /// The run is refused.
        Fail = "fail",
        /// Its pages go to swap space.
        Swap = "swap",
    }
}

/// What [`colors`] and [`PolicyColors`] may be.
const WHAT: &str = "a set of colors such as \"0-3,8\", { count = 4 }, or { share = \"25%\" }";

/// Colors that a program asks for, as files write them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Colors(pub ColorAsk);

/// Colors of a program under a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "a policy has one for each program at most; they lie in no array"
)]
pub enum PolicyColors {
    /// It owns none.
    None,
    /// It asks for these. Whether they bind, if not as the program says.
    Asks(ColorAsk, Option<Binding>),
    /// It asks for those of parts of the cache and of the banks.
    Parts(Parts, Option<Binding>),
}

/// Colors in parts of the last-level cache and of the memory's banks: `cache 1-3/4 banks 0/2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// Of the cache, which bits divide that select nothing else; `None` = all of it.
    pub cache: Option<Portion>,
    /// Of the banks, likewise.
    pub banks: Option<Portion>,
}

/// Some of several equal parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Portion {
    /// Which, from 0 on.
    pub parts: ColorSet,
    /// How many there are, a power of two.
    pub of: u32,
}

/// What [`Parts`] may be.
const PARTS: &str = "parts such as \"cache 0/4\", \"banks 1-3/4\" or \"cache 0/2 banks 0/2\": which, of \
                     2, 4, 8 and so on";

impl Parts {
    /// Reads what begins with the word of one.
    fn read(text: &str) -> Option<Self> {
        let mut read = Self {
            cache: None,
            banks: None,
        };
        let mut words = text.split_whitespace();
        while let Some(word) = words.next() {
            let of = match word {
                CACHE => &mut read.cache,
                BANKS => &mut read.banks,
                _ => return None,
            };
            let portion = Portion::read(words.next()?)?;
            if of.replace(portion).is_some() {
                return None;
            }
        }
        Some(read)
    }
}

impl Portion {
    fn read(text: &str) -> Option<Self> {
        let (parts, of) = text.split_once('/')?;
        let of: u32 = of.parse().ok()?;
        let parts: ColorSet = parts.parse().ok()?;
        let is_divided = of.is_power_of_two() && (2..=MAX_COLORS as u32).contains(&of);
        let are_there = !parts.is_empty() && parts.iter().all(|part| u32::from(part.0) < of);
        (is_divided && are_there).then_some(Self { parts, of })
    }
}

impl fmt::Display for Parts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let both = [(CACHE, &self.cache), (BANKS, &self.banks)];
        let there = both
            .iter()
            .filter_map(|(word, of)| Some((word, of.as_ref()?)));
        for (i, (word, portion)) in there.enumerate() {
            let space = if i == 0 { "" } else { " " };
            write!(f, "{space}{word} {}/{}", portion.parts, portion.of)?;
        }
        Ok(())
    }
}

/// Words of [`Parts`].
const CACHE: &str = "cache";
const BANKS: &str = "banks";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    count: Option<Whole<1, 0xffff_ffff>>,
    share: Option<String>,
}

impl Keys {
    fn ask<E: serde::de::Error>(self) -> Result<ColorAsk, E> {
        let (text, given) = match (self.count, self.share) {
            (Some(count), None) => {
                let count = count.get();
                (format!("count={count}"), format!("{{ count = {count} }}"))
            }
            (None, Some(share)) if share.contains('%') => {
                let given = format!("{{ share = \"{share}\" }}");
                (share, given)
            }
            (None, Some(share)) => {
                let allowed = "a share such as \"25%\" or \"12.5%\", 0.01% to 100%";
                return Err(refused_value(format!("{{ share = \"{share}\" }}"), allowed));
            }
            (Some(count), Some(share)) => {
                let count = count.get();
                let given = format!("{{ count = {count}, share = \"{share}\" }}");
                return Err(refused_value(given, "exactly one of count and share"));
            }
            (None, None) => return Err(refused_value("{  }", "exactly one of count and share")),
        };
        text.parse().map_err(|e| refused_value(given, e))
    }
}

/// Reads a set of colors; `none` is what nobody asks for.
fn asked<E: serde::de::Error>(text: &str) -> Result<ColorAsk, E> {
    text.parse()
        .map_err(|e| refused_value(format!("\"{text}\""), e))
}

/// Parts a word behind colors from them: do they bind?
fn parted(text: &str) -> (&str, Option<Binding>) {
    let last = text.trim_end().rsplit_once(' ');
    let binding = last.and_then(|(colors, word)| {
        let mut words = Binding::WORDS.iter();
        let (_, binding, _) = words.find(|(known, ..)| *known == word)?;
        Some((colors, Some(*binding)))
    });
    binding.unwrap_or((text, None))
}

impl<'de> Deserialize<'de> for Colors {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting(WHAT)
            .string(|text| asked(text).map(Self))
            .map(|map| map.deserialize::<Keys>()?.ask().map(Self))
            .deserialize(from)
    }
}

impl<'de> Deserialize<'de> for PolicyColors {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting(WHAT)
            .string(|text| match text {
                "none" => Ok(Self::None),
                _ => {
                    let (colors, binding) = parted(text);
                    if [CACHE, BANKS].iter().any(|word| colors.starts_with(word)) {
                        let parts = Parts::read(colors);
                        let parts =
                            parts.ok_or_else(|| refused_value(format!("\"{text}\""), PARTS))?;
                        return Ok(Self::Parts(parts, binding));
                    }
                    asked(colors).map(|colors| Self::Asks(colors, binding))
                }
            })
            .map(|map| {
                map.deserialize::<Keys>()?
                    .ask()
                    .map(|ask| Self::Asks(ask, None))
            })
            .deserialize(from)
    }
}

impl Serialize for Colors {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

impl Serialize for PolicyColors {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => to.serialize_str("none"),
            Self::Asks(ask, None) => to.collect_str(ask),
            Self::Asks(ask, Some(binding)) => {
                to.collect_str(&format_args!("{ask} {}", binding.word()))
            }
            Self::Parts(parts, None) => to.collect_str(parts),
            Self::Parts(parts, Some(binding)) => {
                to.collect_str(&format_args!("{parts} {}", binding.word()))
            }
        }
    }
}

described!(() Colors, "string", WHAT);
described!(() PolicyColors, "string", format!("{WHAT}; {PARTS}; or \"none\"; \"0-3 hard\" and \"0-3 hint\" say whether they bind"));

/// A change of a program's colors while it runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// References of the program's measured part before the change.
    pub at: Refs<0>,
    /// Its colors from then on.
    pub colors: Colors,
    /// Whether its pages move to the new colors.
    #[serde(default)]
    pub recolor: Recolor,
}

/// Whether pages move after a change of colors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Recolor {
    /// All at once.
    #[default]
    Now,
    /// Never.
    No,
    /// So many at each timer tick.
    PerTick(Whole<1, 0xffff_ffff>),
}

/// What [`Recolor`] may be.
const RECOLOR: &str = "true, false, or at least 1 page for each timer tick";

impl<'de> Deserialize<'de> for Recolor {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting(RECOLOR)
            .bool(|now| Ok(if now { Self::Now } else { Self::No }))
            .i64(|pages| {
                let pages = u32::try_from(pages).ok().filter(|n| *n > 0).ok_or(pages);
                let pages = pages.map_err(|given| refused_value(given, RECOLOR))?;
                Ok(Self::PerTick(Whole::new(pages.into())))
            })
            .deserialize(from)
    }
}

impl Serialize for Recolor {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Now => to.serialize_bool(true),
            Self::No => to.serialize_bool(false),
            Self::PerTick(pages) => pages.serialize(to),
        }
    }
}

described!(() Recolor, "boolean", RECOLOR);

/// Changes rise, and come within the measured part.
pub(crate) fn check_changes(
    changes: &[Change],
    budget: u64,
    at: &KeyPath,
    problems: &mut Vec<Problem>,
) {
    for (n, change) in changes.iter().enumerate() {
        let refs = change.at.get();
        let before = n.checked_sub(1).map(|n| changes[n].at.get());
        let path = at.key("change").item(n).key("at");
        match before.filter(|before| *before >= refs) {
            Some(before) => {
                let allowed = format!("more than that of the change before it, {}", Count(before));
                problems.push(Problem::refuse(path, Count(refs), allowed));
            }
            None if refs >= budget => {
                let allowed = format!("less than budget_refs, {}", Count(budget));
                problems.push(Problem::refuse(path, Count(refs), allowed));
            }
            None => {}
        }
    }
}
