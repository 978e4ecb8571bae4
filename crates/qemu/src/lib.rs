//! Piebald's ends in QEMU.
//!
//! The crate is two things at once: the plugin that QEMU loads (the `cdylib`), which
//! records a program or watches a machine, and the driver that starts QEMU with it to
//! record (the `rlib`).
//!
//! * [`recorder`]: the driver; what `piebald record` calls.
//! * [`plugin`]: what runs inside QEMU user mode.
//! * [`system`]: what runs inside QEMU system mode: the machine model, watching a guest.
//! * [`emulator`]: which QEMU there is, and what it takes; [`find`]: where things are.
//! * [`api`], `entry`: what QEMU offers both, and where it enters.
//! * [`shared`]: the memory through which the two, and all processes of the
//!   recorded program, talk.
//! * [`image`]: what running a file means; `sanitizer`: what cannot run.
//!
//! # How a recording comes about
//! The driver creates the shared memory and an empty spool, and runs the program
//! under `qemu-x86_64` with the plugin. The plugin describes each block once, when
//! QEMU translates it, and then stores one word for each execution of a block and
//! for each access. Full buffers are encoded by the thread that filled them and
//! handed to the driver, which appends them to the spool: a process of the recording
//! opens no file, so that limits, root directory and user are the program's. A
//! process that forks gives its child the blocks known so far; one that replaces its
//! image is replaced by QEMU on the new image. When all have ended, the driver takes
//! what a killed process left in shared memory, writes header and index, and gives
//! the file its name.

pub mod api;
mod carried;
pub mod emulator;
mod entry;
pub mod find;
pub mod image;
pub mod plugin;
pub mod recorder;
mod sanitizer;
pub mod shared;
pub mod system;
