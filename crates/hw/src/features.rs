//! Parts of the model that can be switched off by name, to see what each one
//! does to a result and what it costs to simulate.

use std::{fmt, str::FromStr};

use crate::nearest::did_you_mean;

/// Which parts of the model are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Features {
    /// Misses overlap inside an instruction window; off = every load that leaves
    /// the first level blocks.
    pub window: bool,
    /// Copies in other cores are found and invalidated.
    pub coherence: bool,
    /// Translation costs time.
    pub tlb: bool,
    /// The preset's prefetchers run.
    pub prefetch: bool,
    /// Instruction fetches go through the caches.
    pub fetch: bool,
}

impl Features {
    /// Everything on.
    pub const ALL: Self = Self {
        window: true,
        coherence: true,
        tlb: true,
        prefetch: true,
        fetch: true,
    };

    /// Caches and DRAM with blocking loads, nothing else.
    pub const NONE: Self = Self {
        window: false,
        coherence: false,
        tlb: false,
        prefetch: false,
        fetch: false,
    };

    /// Names of all features.
    pub const NAMES: [&'static str; 5] = ["window", "coherence", "tlb", "prefetch", "fetch"];

    fn get(self, name: &str) -> bool {
        match name {
            "window" => self.window,
            "coherence" => self.coherence,
            "tlb" => self.tlb,
            "prefetch" => self.prefetch,
            _ => self.fetch,
        }
    }

    /// Names of the features that are on.
    pub fn on(self) -> Vec<&'static str> {
        Self::NAMES.into_iter().filter(|n| self.get(n)).collect()
    }

    /// Switches one feature.
    ///
    /// # Errors
    /// The name, if there is no such feature.
    pub fn set(&mut self, name: &str, on: bool) -> Result<(), UnknownFeature> {
        let field = match name {
            "window" => &mut self.window,
            "coherence" => &mut self.coherence,
            "tlb" => &mut self.tlb,
            "prefetch" => &mut self.prefetch,
            "fetch" => &mut self.fetch,
            _ => return Err(UnknownFeature(name.to_owned())),
        };
        *field = on;
        Ok(())
    }
}

/// What a list of features may say.
const NAMES: [&str; 7] = [
    "window",
    "coherence",
    "tlb",
    "prefetch",
    "fetch",
    "all",
    "none",
];

/// There is no such feature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is no feature of the model; allowed: {names}{near}",
    names = NAMES.join(", "),
    near = did_you_mean(.0, NAMES)
)]
pub struct UnknownFeature(pub String);

impl FromStr for Features {
    type Err = UnknownFeature;

    /// Reads `all`, `none`, or a list of names, as in `window,tlb`.
    fn from_str(text: &str) -> Result<Self, UnknownFeature> {
        match text.trim() {
            "all" => return Ok(Self::ALL),
            "none" => return Ok(Self::NONE),
            _ => {}
        }
        let mut features = Self::NONE;
        for name in text.split(',') {
            features.set(name.trim(), true)?;
        }
        Ok(features)
    }
}

impl fmt::Display for Features {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = self.on();
        match on.len() {
            0 => f.write_str("none"),
            _ => f.write_str(&on.join(",")),
        }
    }
}
