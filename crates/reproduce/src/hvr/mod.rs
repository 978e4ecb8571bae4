//! HVR ("Rethinking Memory Management in Modern Operating System: Horizontal, Vertical or
//! Random?"): H-1 to H-20.
//!
//! Programs, mixes and what counts as a match were written down before the first result
//! (`reproduce/hvr/`).
//!
//! Vocabulary: a *program* is an entry of `programs.toml`, recorded or built-in; an *eighth* is
//! an eighth of the last-level cache; a program's *profile* is how it does alone with one to
//! eight of them, and its class by measurement is read off that.

pub mod alone;
pub mod programs;
