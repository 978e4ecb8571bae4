//! What can go wrong in the modelled kernel.

use piebald_policy::contract::{AllocError, Broken, Cause, Purpose};
use piebald_units::{Bytes, Order, TaskId};

/// No frame for a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{task} of program {program}: no block of {order} for {purpose:?} memory ({cause:?}): {why}; \
     {free} of {total} free"
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
}

/// An error of the modelled kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernelError {
    /// No frame could be had.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
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
