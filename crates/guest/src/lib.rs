//! Stock kernels under QEMU, with the machine model attached.
//!
//! A [`Scenario`] names programs, the virtual processors that they run on, and policies:
//! without the module, or with it and colours for some programs. It [runs](piebald_lab::host::Hosted::run)
//! by a boot for every repetition, policy and phase (the target alone, and beside the others), which
//! fill the record that studies of the model fill as well; [`check`] says what a computer lacks for that.
//!
//! * `scenario`: what to run; `inputs`: the files that programs read;
//! * `script`: what the guest does; `boot`: QEMU, the plugin, and the results;
//! * `kept`: boots that were made before; `programs`: what comes with Piebald and runs in guests;
//! * `study`: from counters to the record that is reported;
//! * `hosts`: the model and guests, for whoever knows hosts by their trait alone.

mod boot;
mod check;
mod held;
mod hosts;
mod inputs;
mod kept;
mod programs;
mod scenario;
mod script;
mod study;

pub use boot::BootError;
pub use check::{Finding, check};
pub use hosts::AllHosts;
pub use programs::{own_program, sources};
pub use scenario::Scenario;
