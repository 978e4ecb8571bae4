//! What can go wrong in the modelled kernel.

use std::fmt;

use piebald_policy::{
    contract::{AllocError, Broken, Cause, Purpose},
    hvr,
    rainbow::{self, ConfigError, JoinError, PlanError, Refusal},
    srm,
};
use piebald_units::{Bytes, Order, TaskId};

use crate::file::FileError;

/// No frame for a task.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{task} of program {program}: no block of {order} for {purpose}, {cause}: {why}; \
     {free} of {total} free{}",
    held.as_ref().map_or_else(String::new, |held| {
        format!("; of its {} frames {}", held.frames, held.parts())
    })
)]
pub struct OutOfMemory {
    /// Who asked.
    pub task: TaskId,
    /// The program that the task belongs to.
    pub program: u16,
    /// Size asked for.
    pub order: Order,
    /// What for.
    pub purpose: Purpose,
    /// Why.
    pub cause: Cause,
    /// The allocator's answer.
    pub why: AllocError,
    /// Memory that is free.
    pub free: Bytes,
    /// Memory that the machine has.
    pub total: Bytes,
    /// How many frames each kind of owner holds. Whoever reports the error counts them, which takes a look
    /// at every frame; until then it is `None`.
    pub held: Option<Box<ColorHolders>>,
}

/// The colours that bind a process hold no page more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{task} of program {program}: {} colors {colors} are used up: {held}; {instead}",
    if *reserved { "its" } else { "the unreserved" }
)]
pub struct ColorLimit {
    /// Who asked.
    pub task: TaskId,
    /// The program that the task belongs to.
    pub program: u16,
    /// The colours are the process's own; otherwise those that nobody reserved.
    pub reserved: bool,
    /// The colours, as `0-3,8`.
    pub colors: String,
    /// How many frames of these colours each kind of owner has.
    pub held: ColorHolders,
    /// Why no page left memory instead.
    pub instead: &'static str,
}

/// How many frames of some colours, or of all, each kind of owner has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ColorHolders {
    /// All of them, whoever has them.
    pub frames: u64,
    /// Memory of the program that asked.
    pub own: u64,
    /// Memory of other programs.
    pub others: u64,
    /// Pages of files, whoever brought them.
    pub files: u64,
    /// Memory that was in use before any program began.
    pub aged: u64,
    /// The kernel's own.
    pub kernel: u64,
    /// In nobody's use, but in blocks that cannot be had.
    pub free: u64,
}

impl ColorHolders {
    /// How many frames each kind of owner holds, as `12 the kernel, 3 pages of files`.
    fn parts(&self) -> String {
        let parts = [
            (self.own, "hold its own memory"),
            (self.files, "pages of files"),
            (
                self.aged,
                "memory that was in use before the run (memory = \"aged\")",
            ),
            (self.others, "memory of other programs"),
            (self.kernel, "the kernel"),
            (self.free, "nothing"),
        ];
        let parts = parts.iter().filter(|(frames, _)| *frames > 0);
        let parts: Vec<String> = parts.map(|(n, what)| format!("{n} {what}")).collect();
        parts.join(", ")
    }
}

impl fmt::Display for ColorHolders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "of their {} frames {}", self.frames, self.parts())
    }
}

impl From<ColorLimit> for KernelError {
    fn from(limit: ColorLimit) -> Self {
        Self::ColorLimit(Box::new(limit))
    }
}

/// An error of the modelled kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// No frame could be had.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// The colours that bind a process are used up.
    #[error(transparent)]
    ColorLimit(Box<ColorLimit>),
    /// The coloured zone of files cannot be made.
    #[error("the zone of file pages: {0}")]
    Zone(srm::ConfigError),
    /// The kernel has no colours to reserve.
    #[error("{task}: {call}: this kernel has no page colors")]
    NoColors {
        /// Who called.
        task: TaskId,
        /// The call.
        call: &'static str,
    },
    /// The task's process has no colours of its own.
    #[error("{task}: {call}: its process has reserved no colors")]
    NoPartition {
        /// Who called.
        task: TaskId,
        /// The call.
        call: &'static str,
    },
    /// Colours were not reserved or changed.
    #[error("{task}: {call}: {why}")]
    Colors {
        /// Who called.
        task: TaskId,
        /// The call.
        call: &'static str,
        /// The registry's answer.
        why: Refusal,
    },
    /// HVR cannot be configured so.
    #[error("HVR: {0}")]
    Hvr(hvr::ConfigError),
    /// A program was not handed over to HVR.
    #[error("{task}: manage: {why}")]
    Manage {
        /// Whose process it is.
        task: TaskId,
        /// The manager's answer.
        why: hvr::Refusal,
    },
    /// The kernel has no HVR to hand programs over to.
    #[error("{task}: manage: this kernel has no HVR")]
    NoHvr {
        /// Whose process it is.
        task: TaskId,
    },
    /// The task's process has its colours from elsewhere.
    #[error("{task}: {call}: its process {has}")]
    Managed {
        /// Whose process it is.
        task: TaskId,
        /// The call.
        call: &'static str,
        /// What it has.
        has: &'static str,
    },
    /// A task could not join a partition.
    #[error("{task}: attach: {why}")]
    Join {
        /// Who called.
        task: TaskId,
        /// The registry's answer.
        why: JoinError,
    },
    /// Pages could not be moved to other colours.
    #[error("{task}: recolor: {why}")]
    Recolor {
        /// Who called.
        task: TaskId,
        /// The plan's answer.
        why: PlanError,
    },
    /// The choices about partitions cannot be.
    #[error("colors.{0}")]
    Rainbow(ConfigError),
    /// The task does not exist or has ended.
    #[error("{0} does not exist or has ended")]
    NoSuchTask(TaskId),
    /// A system call has an argument that cannot be.
    #[error("{task}: {call}: {field} = {value:#x}: must be {allowed}")]
    Argument {
        /// Who called.
        task: TaskId,
        /// The call.
        call: &'static str,
        /// The argument.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// The file side refused.
    #[error("files: {0}")]
    File(#[from] FileError),
    /// A configuration field has a value that cannot be.
    #[error("{field} = {value}: must be {allowed}")]
    Config {
        /// The field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// What is allowed.
        allowed: &'static str,
    },
    /// Memory is too small for the kernel itself.
    #[error("memory of {total} is too small for the kernel's own data: {why}")]
    BootMemory {
        /// Memory that the allocator manages.
        total: Bytes,
        /// The allocator's answer.
        why: AllocError,
    },
}

/// A defect of the kernel's bookkeeping that `validate` found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelBroken {
    /// In the frame allocator.
    #[error("frame allocator: {0}")]
    Frames(#[from] Broken),
    /// In the registry of partitions.
    #[error("partitions: {0}")]
    Partitions(#[from] rainbow::Broken),
    /// In the kernel's own records.
    #[error("{rule}: recorded {recorded}, recounted {recounted} ({what})")]
    Kernel {
        /// What does not hold.
        rule: &'static str,
        /// The frame, process or object that shows it.
        what: String,
        /// The kernel's number.
        recorded: u64,
        /// The recount.
        recounted: u64,
    },
}
