//! The simulated operating system.
