//! Values that are one of a few words.

use std::{borrow::Cow, fmt};

use piebald_hw::nearest::did_you_mean;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de::Visitor};

use crate::problem::refused_value;

/// A type whose values are spelled as words.
pub trait Words: Copy + PartialEq + 'static {
    /// Spelling, value and meaning of each, the default first.
    const WORDS: &'static [(&'static str, Self, &'static str)];

    /// As files spell it.
    fn word(self) -> &'static str {
        let found = Self::WORDS.iter().find(|(_, value, _)| *value == self);
        found.map_or("", |(word, ..)| word)
    }
}

/// Reads one of a type's words.
pub(crate) fn read<'de, T: Words, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
    struct One<T>(std::marker::PhantomData<T>);
    impl<T: Words> Visitor<'_> for One<T> {
        type Value = T;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "one of {}", list::<T>())
        }

        fn visit_str<E: serde::de::Error>(self, given: &str) -> Result<T, E> {
            let found = T::WORDS.iter().find(|(word, ..)| *word == given);
            found.map(|(_, value, _)| *value).ok_or_else(|| {
                let near = did_you_mean(given, T::WORDS.iter().map(|(word, ..)| *word));
                refused_value(format!("\"{given}\""), list::<T>() + &near)
            })
        }
    }
    from.deserialize_str(One(std::marker::PhantomData))
}

fn list<T: Words>() -> String {
    let quoted = T::WORDS.iter().map(|(word, ..)| format!("\"{word}\""));
    quoted.collect::<Vec<_>>().join(", ")
}

/// The schema of a type of words, with their meanings.
pub(crate) fn schema<T: Words>() -> Schema {
    let words: Vec<&str> = T::WORDS.iter().map(|(word, ..)| *word).collect();
    let meanings: Vec<&str> = T::WORDS.iter().map(|(.., doc)| doc.trim()).collect();
    json_schema!({ "type": "string", "enum": words, "x-meanings": meanings })
}

/// A word of a type that this crate does not own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Word<T>(pub T);

impl<'de, T: Words> Deserialize<'de> for Word<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        read(from).map(Self)
    }
}

impl<T: Words> Serialize for Word<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.0.word())
    }
}

impl<T: Words> JsonSchema for Word<T> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        std::any::type_name::<T>().into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        schema::<T>()
    }
}

/// Defines an enumeration whose values are words; the first one is the default. The comment
/// of a value is its meaning in the reference of all keys.
macro_rules! words {
    ($(#[doc = $doc:literal])* pub enum $name:ident {
        $($(#[doc = $meaning:literal])+ $variant:ident = $word:literal,)+
    }) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum $name { $($(#[doc = $meaning])+ $variant,)+ }

        impl $crate::Words for $name {
            const WORDS: &'static [(&'static str, Self, &'static str)] =
                &[$(($word, Self::$variant, concat!($($meaning),+)),)+];
        }

        impl Default for $name {
            fn default() -> Self {
                <Self as $crate::Words>::WORDS[0].1
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                $crate::words::read(from)
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                to.serialize_str($crate::Words::word(*self))
            }
        }

        impl schemars::JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }

            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                $crate::words::schema::<Self>()
            }
        }
    };
}
pub(crate) use words;
