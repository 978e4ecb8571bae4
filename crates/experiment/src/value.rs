//! Values with a range or a notation of their own.

use std::{borrow::Cow, fmt, str::FromStr};

use piebald_units::{Bytes, CoreSet, Count, Picos};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, IntoDeserializer, Visitor},
};

use crate::problem::{of_value, refused_value};

/// Most references that a part of a run may have: a hundred days of simulation.
pub const MAX_REFS: u64 = 1_000_000_000_000;

/// A whole number from `MIN` to `MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Whole<const MIN: u64, const MAX: u64>(u64);

impl<const MIN: u64, const MAX: u64> Whole<MIN, MAX> {
    /// The number, which must be in the range.
    pub const fn new(number: u64) -> Self {
        assert!(MIN <= number && number <= MAX);
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The number, or the largest of 32 bits.
    pub fn get_u32(self) -> u32 {
        u32::try_from(self.0).unwrap_or(u32::MAX)
    }

    fn allowed() -> String {
        match MAX {
            LARGEST => format!("a whole number from {MIN}"),
            _ if MIN == MAX => MIN.to_string(),
            _ => format!("{MIN} to {MAX}"),
        }
    }
}

impl<const MAX: u64> Default for Whole<0, MAX> {
    fn default() -> Self {
        Self(0)
    }
}

/// The largest whole number that a file can hold: a range up to it has no end.
const LARGEST: u64 = i64::MAX as u64;

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Number<MIN, MAX> {
            type Value = Whole<MIN, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number, {}", Whole::<MIN, MAX>::allowed())
            }

            fn visit_i64<E: Error>(self, given: i64) -> Result<Self::Value, E> {
                let fits = u64::try_from(given).ok();
                let fits = fits.filter(|n| (MIN..=MAX).contains(n));
                let refuse = || refused_value(given, Whole::<MIN, MAX>::allowed());
                fits.map(Whole).ok_or_else(refuse)
            }

            fn visit_i128<E: Error>(self, given: i128) -> Result<Self::Value, E> {
                Err(refused_value(given, Whole::<MIN, MAX>::allowed()))
            }

            fn visit_u128<E: Error>(self, given: u128) -> Result<Self::Value, E> {
                Err(refused_value(given, Whole::<MIN, MAX>::allowed()))
            }

            fn visit_u64<E: Error>(self, given: u64) -> Result<Self::Value, E> {
                if (MIN..=MAX).contains(&given) {
                    Ok(Whole(given))
                } else {
                    Err(refused_value(given, Whole::<MIN, MAX>::allowed()))
                }
            }
        }
        from.deserialize_any(Number)
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Whole<MIN, MAX> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_u64(self.0)
    }
}

/// The schema of a value: its JSON type or types, and what the reference says that it may be.
pub(crate) fn schema_of(kind: impl Serialize, values: impl fmt::Display) -> Schema {
    json_schema!({ "type": kind, "x-values": values.to_string() })
}

/// Implements [`JsonSchema`] in place, with [`schema_of`]'s two arguments.
macro_rules! described {
    (($($generics:tt)*) $name:ty, $kind:expr, $values:expr) => {
        impl<$($generics)*> JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> Cow<'static, str> {
                std::any::type_name::<Self>().into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                $crate::value::schema_of($kind, $values)
            }
        }
    };
}
pub(crate) use described;

described!((const MIN: u64, const MAX: u64) Whole<MIN, MAX>, "integer", Self::allowed());

/// A value that is written as text, such as `"12GiB"` or `"50M"`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Text<T>(pub T);

/// A type that is written as text.
pub trait Notation: FromStr<Err: fmt::Display> + fmt::Display {
    /// What it is, with an example.
    const WHAT: &'static str;
}

impl Notation for Bytes {
    const WHAT: &'static str = "a size such as \"12GiB\"";
}

impl Notation for Count {
    const WHAT: &'static str = "a number such as \"50M\"";
}

impl Notation for CoreSet {
    const WHAT: &'static str = "hardware threads such as \"0-3,6\"";
}

impl<'de, T: Notation> Deserialize<'de> for Text<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read<T>(std::marker::PhantomData<T>);
        impl<T: Notation> Visitor<'_> for Read<T> {
            type Value = Text<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::WHAT)
            }

            fn visit_str<E: Error>(self, given: &str) -> Result<Self::Value, E> {
                given.parse().map(Text).map_err(|e: T::Err| {
                    let says = e.to_string();
                    let allowed = if says.contains("allowed: ") {
                        String::new()
                    } else {
                        format!("; allowed: {}", T::WHAT)
                    };
                    of_value(format!("\"{given}\""), says + &allowed)
                })
            }
        }
        from.deserialize_str(Read(std::marker::PhantomData))
    }
}

impl<T: Notation> Serialize for Text<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

described!((T: Notation) Text<T>, "string", T::WHAT);

/// References, as in `"20M"` or `200000`: from `MIN` to [`MAX_REFS`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Refs<const MIN: u64>(u64);

impl<const MIN: u64> Refs<MIN> {
    /// So many, which must be in the range.
    pub const fn new(refs: u64) -> Self {
        assert!(MIN <= refs && refs <= MAX_REFS);
        Self(refs)
    }

    /// How many.
    pub const fn get(self) -> u64 {
        self.0
    }

    pub(crate) fn within(refs: u64) -> Option<Self> {
        (MIN..=MAX_REFS).contains(&refs).then_some(Self(refs))
    }

    fn allowed() -> String {
        format!("{} to {}", Count(MIN), Count(MAX_REFS))
    }
}

impl<'de, const MIN: u64> Deserialize<'de> for Refs<MIN> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Number<const MIN: u64>;
        impl<const MIN: u64> Visitor<'_> for Number<MIN> {
            type Value = Refs<MIN>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(Count::WHAT)
            }

            fn visit_str<E: Error>(self, given: &str) -> Result<Self::Value, E> {
                let Text(count) = Text::<Count>::deserialize(given.into_deserializer())?;
                let refuse = || refused_value(count, Refs::<MIN>::allowed());
                Refs::within(count.0).ok_or_else(refuse)
            }

            fn visit_i64<E: Error>(self, given: i64) -> Result<Self::Value, E> {
                let refuse = || refused_value(given, Refs::<MIN>::allowed());
                u64::try_from(given)
                    .ok()
                    .and_then(Refs::within)
                    .ok_or_else(refuse)
            }

            fn visit_u64<E: Error>(self, given: u64) -> Result<Self::Value, E> {
                let refuse = || refused_value(given, Refs::<MIN>::allowed());
                Refs::within(given).ok_or_else(refuse)
            }
        }
        from.deserialize_any(Number)
    }
}

impl<const MIN: u64> Serialize for Refs<MIN> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&Count(self.0))
    }
}

described!((const MIN: u64) Refs<MIN>, ["string", "integer"], format!("\"{}\" to \"{}\"", Count(MIN), Count(MAX_REFS)));

/// A time in microseconds, from `MIN` to `MAX` nanoseconds; broken numbers are allowed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Micros<const MIN: u64, const MAX: u64>(f64);

impl<const MIN: u64, const MAX: u64> Micros<MIN, MAX> {
    /// To the nearest picosecond.
    pub fn picos(self) -> Picos {
        Picos((self.0 * 1e6).round() as u64)
    }

    fn allowed() -> String {
        format!("{} to {}", MIN as f64 / 1e3, MAX as f64 / 1e3)
    }
}

impl<const MIN: u64, const MAX: u64> From<Picos> for Micros<MIN, MAX> {
    fn from(time: Picos) -> Self {
        Self(time.0 as f64 / 1e6)
    }
}

impl<const MIN: u64, const MAX: u64> fmt::Display for Micros<MIN, MAX> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Micros<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Time<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Time<MIN, MAX> {
            type Value = Micros<MIN, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a number, {}", Micros::<MIN, MAX>::allowed())
            }

            fn visit_f64<E: Error>(self, given: f64) -> Result<Self::Value, E> {
                if (MIN as f64..=MAX as f64).contains(&(given * 1e3)) {
                    Ok(Micros(given))
                } else {
                    Err(refused_value(given, Micros::<MIN, MAX>::allowed()))
                }
            }

            fn visit_i64<E: Error>(self, given: i64) -> Result<Self::Value, E> {
                self.visit_f64(given as f64)
            }
        }
        from.deserialize_any(Time)
    }
}

impl<const MIN: u64, const MAX: u64> Serialize for Micros<MIN, MAX> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_f64(self.0)
    }
}

described!((const MIN: u64, const MAX: u64) Micros<MIN, MAX>, "number", Self::allowed());

/// Versions of the layout.
pub(crate) type Version = Whole<1, 2>;
