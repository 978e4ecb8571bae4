//! The tables `[[policy]]`.

use std::{collections::BTreeMap, path::PathBuf};

use piebald_policy::color_map::ColorMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Hvr, KeyPath, Mfc, Micros, Problem, colors::PolicyColors, files::Zone, words::words};

words! {
    /// Which frames pages get.
    pub enum Frames {
        /// Those of Linux's buddy allocator with lists for each core.
        Stock = "stock",
        /// Uniformly random free frames.
        Random = "random",
        /// Successive faults of a task walk through the page colors.
        BinHopping = "bin-hopping",
        /// A page gets the color of its virtual address.
        PageColoring = "page-coloring",
        /// Programs own colors of the last level.
        Rainbow = "rainbow",
        /// Programs get colors of cache and banks by what they are.
        Hvr = "hvr",
        /// Programs get colors of the last level by the misses that each has alone under the first
        /// policy (utility-based partitioning).
        Uvp = "uvp",
    }
}

impl Frames {
    /// Does it choose frames by their color?
    pub const fn is_colored(self) -> bool {
        matches!(
            self,
            Self::Rainbow | Self::PageColoring | Self::Hvr | Self::Uvp
        )
    }
}

words! {
    /// State of memory when programs start.
    pub enum MemoryState {
        /// After long use: scattered frames.
        Aged = "aged",
        /// As after boot: large blocks.
        Fresh = "fresh",
    }
}

words! {
    /// Which policy places reads.
    pub enum ReadPlaces {
        /// None: a read is done where the reader runs.
        None = "none",
        /// MFC: readers are moved to the caches that hold the file.
        Mfc = "mfc",
    }
}

words! {
    /// On which hardware thread a thread starts, of the least loaded ones that it may use.
    pub enum FirstCores {
        /// On the first of them.
        First = "first",
        /// On one that is drawn for each thread.
        Random = "random",
    }
}

/// Time between two timer ticks: a microsecond to a second.
type Tick = Micros<1_000, 1_000_000_000>;
/// What moving a thread takes: up to a second.
type Move = Micros<0, 1_000_000_000>;
/// Most times of [`Policy::migration_us`].
const NR_HOPS: usize = 4;

/// One policy. Without any there is one, stock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// Its name, not empty, and no other policy's.
    pub name: String,
    /// Which frames pages get.
    #[serde(default)]
    pub frames: Frames,
    /// State of memory when programs start.
    #[serde(default)]
    #[schemars(extend("x-hosts" = "model"))]
    pub memory: MemoryState,
    /// 2 MiB pages for anonymous memory.
    #[serde(default)]
    #[schemars(extend("x-hosts" = "model"))]
    pub thp: bool,
    /// Address bits that make the colors, instead of the machine's: a text of each color bit,
    /// whose address bits are XORed, such as `["15", "16 21"]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub color_map: Option<Vec<String>>,
    /// Colors of programs by name, instead of what the programs say.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub colors: BTreeMap<String, PolicyColors>,
    /// Which page leaves memory, instead of what `[files]` says.
    #[schemars(extend("x-hosts" = "model"))]
    pub replace: Option<String>,
    /// Which frames file pages get. Default: those of the allocator.
    pub files: Option<Zone>,
    /// Parameters of `frames = "hvr"`.
    #[schemars(extend("x-hosts" = "model"))]
    pub hvr: Option<Hvr>,
    /// The kernel module that does this in a guest, relative to the experiment's folder. Default:
    /// that of `[guest]`.
    pub module: Option<PathBuf>,
    /// Which policy places reads.
    #[serde(default)]
    #[schemars(extend("x-hosts" = "model"))]
    pub reads: ReadPlaces,
    /// Parameters of `reads = "mfc"`.
    #[schemars(extend("x-hosts" = "model"))]
    pub mfc: Option<Mfc>,
    /// Are run queues evened out at timer ticks?
    #[serde(default)]
    #[schemars(extend("x-hosts" = "model"))]
    pub balance: bool,
    /// Time between two timer ticks of a core, in microseconds. Default: 4000. If a policy says it, programs
    /// begin under all policies at a drawn moment of the longest first tick; of a course, within 100 us.
    #[schemars(extend("x-hosts" = "model"))]
    pub tick_us: Option<Tick>,
    /// On which hardware thread a thread starts, of the least loaded ones that it may use.
    #[serde(default)]
    #[schemars(extend("x-hosts" = "model"))]
    pub first_cores: FirstCores,
    /// What moving a thread takes, in microseconds, for 0 hops, 1 hop and so on: 1 to 4 times;
    /// the last one holds for more hops. Default: MFC's published times where threads move by
    /// `reads` or `balance`, else none.
    #[schemars(extend("x-hosts" = "model"))]
    pub migration_us: Option<Vec<Move>>,
}

/// What has a color map.
const MAPPED: &str = "only frames = \"rainbow\", \"page-coloring\", \"hvr\" and \"uvp\" and \
                      files = \"srm\" have colors";

impl Policy {
    /// Linux as it is.
    pub fn stock() -> Self {
        Self {
            name: "stock".to_owned(),
            frames: Frames::Stock,
            memory: MemoryState::Aged,
            thp: false,
            color_map: None,
            colors: BTreeMap::new(),
            replace: None,
            files: None,
            module: None,
            hvr: None,
            reads: ReadPlaces::None,
            mfc: None,
            balance: false,
            tick_us: None,
            first_cores: FirstCores::First,
            migration_us: None,
        }
    }

    /// SRM-buffer's parameters, if file pages go through it.
    pub fn zone(&self) -> Option<piebald_policy::srm::Config> {
        match self.files {
            Some(Zone::Srm(options)) => Some(options.config()),
            Some(Zone::Allocator) | None => None,
        }
    }

    /// Its own color map.
    ///
    /// # Errors
    /// What makes the text no map.
    pub fn map(&self, at: &KeyPath) -> Result<Option<ColorMap>, Problem> {
        let Some(lines) = &self.color_map else {
            return Ok(None);
        };
        let path = at.key("color_map");
        if let Some(i) = lines.iter().position(|line| line.contains('\n')) {
            let value = format!("{:?}", lines[i]);
            let allowed = "one color bit in each text";
            return Err(Problem::refuse(path.item(i), value, allowed));
        }
        let text = lines.join("\n");
        let read = ColorMap::from_text(&text).map_err(|e| {
            let line = e.line.saturating_sub(1) as usize;
            Problem::at(path.item(line), e.to_string())
        })?;
        if read.map.colors() < 2 {
            let allowed = "at least one color bit, such as [\"15\", \"16 21\"]";
            return Err(Problem::refuse(path, format!("{text:?}"), allowed));
        }
        Ok(Some(read.map))
    }

    /// What its keys say together; `has_files` = there is a table `[files]`.
    pub(crate) fn check(&self, has_files: bool, at: &KeyPath, problems: &mut Vec<Problem>) {
        let mut at_key = |key: &str, says: &str| problems.push(Problem::at(at.key(key), says));
        if self.hvr.is_some() && self.frames != Frames::Hvr {
            at_key("hvr", "allowed only with frames = \"hvr\"");
        }
        if self.mfc.is_some() && self.reads != ReadPlaces::Mfc {
            at_key("mfc", "allowed only with reads = \"mfc\"");
        }
        let maps = self.frames.is_colored() || self.zone().is_some();
        if self.color_map.is_some() && !maps {
            at_key("color_map", MAPPED);
        }
        if !self.colors.is_empty() && self.frames != Frames::Rainbow {
            at_key("colors", "only frames = \"rainbow\" has owners of colors");
        }
        let mut refuse = |key: &str, value: String, allowed: &str| {
            problems.push(Problem::refuse(at.key(key), value, allowed));
        };
        if self.thp && has_files {
            refuse("thp", true.to_string(), "false beside [files]");
        }
        let replace = self.replace.as_ref().filter(|r| !has_files && *r != "none");
        if let Some(replace) = replace {
            refuse(
                "replace",
                format!("\"{replace}\""),
                "\"none\" without a table [files]",
            );
        }
        if let Some(times) = self.migration_us.as_ref()
            && !(1..=NR_HOPS).contains(&times.len())
        {
            let allowed = format!("1 to {NR_HOPS} times");
            let given: Vec<String> = times.iter().map(Move::to_string).collect();
            let given = format!("[{}]", given.join(", "));
            refuse("migration_us", given, &allowed);
        }
        if let Some(hvr) = &self.hvr {
            hvr.check(&at.key("hvr"), problems);
        }
        if let Some(mfc) = &self.mfc {
            mfc.check(&at.key("mfc"), problems);
        }
        if let Err(problem) = self.map(at) {
            problems.push(problem);
        }
    }
}
