//! One value that says what to run: an [`Experiment`].
//!
//! A TOML file is read straight into the types of this crate. What a key may say stands in
//! its type: its range, its words, its default and its meaning. [`Document::experiment`]
//! reads a file and checks what keys say together; whether a host has what they ask for (a
//! machine's cores and colors, a replacement policy, a built-in program) is checked by the
//! host, which answers with [`Problem`]s. A problem names the key; [`Document::refuse`] adds
//! file and line.
//!
//! [`reference()`] prints the tables of all keys from the same types.
//!
//! The crate runs nothing.

#![forbid(unsafe_code)]

mod advise;
mod before;
mod colors;
mod course;
mod deal;
mod document;
mod enter;
mod experiment;
mod files;
mod guest;
mod hosts;
mod hvr;
mod machine;
mod merge;
mod mfc;
mod output;
mod path;
mod points;
mod policy;
mod problem;
mod program;
mod reference;
mod regions;
mod replayed;
mod requests;
mod shapes;
mod share;
mod sweep;
mod sysmon;
mod text_file;
mod upgrade;
mod value;
mod version;
mod walk;
mod words;

pub use advise::{Advise, Goal, NotWithin, Within};
pub use before::{Before, BeforeInput};
pub use colors::{Binding, Change, Colors, OnLimit, Parts, PolicyColors, Portion, Recolor};
pub use course::Course;
pub use deal::Deal;
pub use document::Document;
pub use enter::Enter;
pub use experiment::{Alone, BudgetOf, DEFAULT_BUDGET, Draws, Experiment, Together};
pub use files::{Files, LayoutRule, Readahead, Scheduler, SrmOptions, Zone};
pub use guest::{Guest, MadeFile, Measure, Memory, SCRATCH, Tree, is_command};
pub use hosts::HostName;
pub use hvr::Hvr;
pub use machine::{Clock, Machine};
pub use mfc::{LeastRead, Mfc};
pub use output::{MissCurves, MissRatio, Output};
pub use path::{KeyPath, Part};
pub use points::Point;
pub use policy::{FirstCores, Frames, MemoryState, Policy, ReadPlaces};
pub use problem::{Place, Problem, Refused};
pub use program::{Builtin, Input, Parameter, Program, Role};
pub use reference::{KeyTable, file_schema, reference, tables};
pub use regions::RegionRequest;
pub use replayed::{Clients, DiskStart, Excerpt, NotPercent, Percent, REPLAYED, ServerTime};
pub use requests::{Align, MemorySize, NotMemory, Objects, Pace, Stage};
pub use share::Share;
pub use sweep::{On, Sweep};
pub use sysmon::{SysMon, Translations, Walk, Walks, WatchedSpeed};
pub use text_file::{TextError, read_text, read_text_from};
pub use value::{MAX_REFS, Micros, Refs, Text, Whole};
pub use words::{Word, Words};
