//! The table `[files]`: a disk, and one memory for files and programs.

use std::{borrow::Cow, collections::BTreeMap, path::PathBuf};

use piebald_hw::nearest::did_you_mean;
use piebald_policy::srm;
use piebald_units::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, Visitor},
};

use serde_untagged::UntaggedEnumVisitor;

use crate::{
    DiskStart, KeyPath, Problem, Text, problem::refused_value, value::described, words::words,
};

/// A disk, and one memory for files and programs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Files {
    /// The drive that files are on, one of docs/disks.md; the default is of the papers' time.
    /// Requests also take `"none"`, and a file that ends in .toml.
    pub device: String,
    /// Which page leaves memory, as `piebald replay --policy` spells it, without `min`.
    pub replace: String,
    /// Readahead of this kernel.
    pub readahead: Readahead,
    /// The order in which the drive gets requests.
    pub scheduler: Scheduler,
    /// Where files lie on the drive.
    pub layout: LayoutRule,
    /// Where data lie on the drive when requests begin, and how far it has turned; of what is replayed.
    pub start: DiskStart,
    /// Swap space: 0B, or a multiple of 4KiB from 8KiB to 16TiB - 4KiB.
    pub swap: Text<Bytes>,
}

impl Default for Files {
    fn default() -> Self {
        Self {
            device: "wd400bb".to_owned(),
            // The kernel of Rainbow's and SRM-buffer's time.
            replace: "linux-2.6.30".to_owned(),
            readahead: Readahead::Linux2630,
            scheduler: Scheduler::Deadline,
            layout: LayoutRule::Packed,
            start: DiskStart::Zero,
            swap: Text(Bytes(1 << 30)),
        }
    }
}

words! {
    /// Readahead of a kernel.
    pub enum Readahead {
        /// Linux 2.6.30, on demand.
        Linux2630 = "2.6.30",
        /// None: pages come one by one.
        None = "none",
        /// Linux 2.4.
        Linux24 = "2.4",
        /// Linux 2.6.11, in two windows.
        Linux2611 = "2.6.11",
        /// Linux 6.
        Linux6 = "6.x",
    }
}

words! {
    /// The order in which a drive gets requests.
    pub enum Scheduler {
        /// Deadlines, as in Linux 2.6.30.
        Deadline = "deadline",
        /// As they come.
        Noop = "noop",
        /// Deadlines, as in Linux 2.6.11.
        Deadline2611 = "deadline-2.6.11",
        /// Waits for the next request of the same program, as in Linux 2.6.11.
        Anticipatory = "anticipatory",
        /// Deadlines, and as many requests in the drive as it takes.
        MqDeadline = "mq-deadline",
    }
}

/// Where files lie on a drive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum LayoutRule {
    /// One after another from the drive's beginning.
    #[default]
    Packed,
    /// Each file in places of 1 MiB of its own, all over the drive.
    Slots,
    /// Page by page at random.
    Scatter,
    /// Each file at the place of an inode, drawn from those of a file system of 16 GiB (AccuSim).
    Inodes,
    /// As requests say it; else files one after another, and blocks without address scattered.
    Auto,
    /// In the order of their first use.
    FirstTouch,
    /// As a file says it: lines PATH PAGE PAGE_ON_DISK PAGES.
    File(PathBuf),
}

/// Words of [`LayoutRule`].
const LAYOUTS: [(&str, LayoutRule); 6] = [
    ("packed", LayoutRule::Packed),
    ("slots", LayoutRule::Slots),
    ("scatter", LayoutRule::Scatter),
    ("inodes", LayoutRule::Inodes),
    ("auto", LayoutRule::Auto),
    ("first-touch", LayoutRule::FirstTouch),
];

/// What it may be: in a study, and for requests.
const LAYOUT: &str = "\"packed\", \"slots\", \"scatter\"";
const LAYOUT_ALL: &str = "\"packed\" (one after another from the drive's beginning), \"slots\" (each in \
                          places of 1 MiB of its own, all over the drive), \"scatter\" (page by page \
                          at random); for requests also \"auto\" (as they say it), \"inodes\" (each file at \
                          the place of an inode that is drawn), \"first-touch\" (in the order of \
                          first use), or { file = \"x.layout\" }";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LayoutFile {
    file: PathBuf,
}

impl<'de> Deserialize<'de> for LayoutRule {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        UntaggedEnumVisitor::new()
            .expecting(LAYOUT)
            .string(|text| {
                let found = LAYOUTS.iter().find(|(word, _)| *word == text);
                let near = did_you_mean(text, LAYOUTS.iter().map(|(word, _)| *word));
                let refuse = || refused_value(format!("\"{text}\""), format!("{LAYOUT}{near}"));
                found.map(|(_, rule)| rule.clone()).ok_or_else(refuse)
            })
            .map(|map| Ok(Self::File(map.deserialize::<LayoutFile>()?.file)))
            .deserialize(from)
    }
}

impl Serialize for LayoutRule {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        if let Self::File(file) = self {
            return [("file", file)]
                .into_iter()
                .collect::<BTreeMap<_, _>>()
                .serialize(to);
        }
        let found = LAYOUTS.iter().find(|(_, rule)| rule == self);
        to.serialize_str(found.map_or("packed", |(word, _)| word))
    }
}

described!(() LayoutRule, "string", LAYOUT_ALL);

impl Files {
    /// What only requests have.
    pub(crate) fn check(&self, problems: &mut Vec<Problem>) {
        if self.start == DiskStart::Drawn {
            let path = KeyPath::of("files").key("start");
            problems.push(Problem::refuse(
                path,
                "\"drawn\"",
                "\"zero\"; others for requests only",
            ));
        }
        let path = KeyPath::of("files").key("layout");
        let value = match &self.layout {
            LayoutRule::Packed | LayoutRule::Slots | LayoutRule::Scatter => return,
            LayoutRule::Auto => "\"auto\"".to_owned(),
            LayoutRule::Inodes => "\"inodes\"".to_owned(),
            LayoutRule::FirstTouch => "\"first-touch\"".to_owned(),
            LayoutRule::File(file) => format!("{{ file = {file:?} }}"),
        };
        problems.push(Problem::refuse(
            path,
            value,
            format!("{LAYOUT}; others for requests only"),
        ));
    }
}

/// Which frames file pages get, as text: `none`, or `srm` with options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Zone {
    /// The allocator's.
    Allocator,
    /// SRM-buffer's.
    Srm(SrmOptions),
}

/// Options of SRM-buffer that a file gives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SrmOptions {
    /// T_l in pages.
    pub threshold: Option<u32>,
    /// Most pages of the zone.
    pub max_pages: Option<u32>,
    /// Ticks after which a sequence is idle.
    pub idle_after: Option<u32>,
}

impl SrmOptions {
    /// The configuration that they change.
    pub fn config(self) -> srm::Config {
        let paper = srm::Config::PAPER;
        srm::Config {
            threshold: self.threshold.unwrap_or(paper.threshold),
            max_pages: self.max_pages.or(paper.max_pages),
            idle_after: self.idle_after.map(u64::from).or(paper.idle_after),
        }
    }

    fn option(&mut self, name: &str) -> Option<&mut Option<u32>> {
        match name {
            "threshold" => Some(&mut self.threshold),
            "max_pages" => Some(&mut self.max_pages),
            "idle_after" => Some(&mut self.idle_after),
            _ => None,
        }
    }
}

/// What [`Zone`] may be.
const WHAT: &str = "\"none\", \"srm\", or \"srm:OPTION=NUMBER,...\" with threshold, max_pages, \
                    idle_after";

impl Zone {
    /// `None` = no such text.
    fn parse(text: &str) -> Option<Self> {
        if text == "none" {
            return Some(Self::Allocator);
        }
        let mut given = SrmOptions::default();
        let (name, options) = text.split_once(':').unwrap_or((text, ""));
        let options = options.split(',').filter(|_| text.contains(':'));
        for option in options {
            let (name, number) = option.split_once('=')?;
            *given.option(name.trim())? = Some(number.trim().parse().ok()?);
        }
        (name.trim() == "srm").then_some(Self::Srm(given))
    }
}

impl<'de> Deserialize<'de> for Zone {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Read;
        impl Visitor<'_> for Read {
            type Value = Zone;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(WHAT)
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Zone, E> {
                Zone::parse(text).ok_or_else(|| refused_value(format!("\"{text}\""), WHAT))
            }
        }
        from.deserialize_str(Read)
    }
}

impl Serialize for Zone {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Self::Srm(given) = self else {
            return to.serialize_str("none");
        };
        let options = [
            ("threshold", given.threshold),
            ("max_pages", given.max_pages),
            ("idle_after", given.idle_after),
        ];
        let options = options
            .iter()
            .filter_map(|(name, n)| Some(format!("{name}={}", (*n)?)));
        let options: Vec<String> = options.collect();
        if options.is_empty() {
            to.serialize_str("srm")
        } else {
            to.collect_str(&format_args!("srm:{}", options.join(",")))
        }
    }
}

described!(() Zone, "string", WHAT);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_srm_buffer_are_read_and_written() {
        let full = SrmOptions {
            threshold: Some(128),
            max_pages: Some(20_000),
            idle_after: Some(9),
        };
        for (text, zone) in [
            ("none", Zone::Allocator),
            ("srm", Zone::Srm(SrmOptions::default())),
            (
                "srm:threshold=128,max_pages=20000,idle_after=9",
                Zone::Srm(full),
            ),
        ] {
            assert_eq!(Zone::parse(text), Some(zone), "{text}");
        }
        let written = serde_json::to_string(&Zone::Srm(full)).expect("is text");
        assert_eq!(
            written,
            "\"srm:threshold=128,max_pages=20000,idle_after=9\""
        );
        for text in [
            "",
            "lru",
            "srm:",
            "srm:threshold",
            "srm:threshold=x",
            "srm:size=1",
            "none:",
        ] {
            assert_eq!(Zone::parse(text), None, "{text}");
        }
    }
}
