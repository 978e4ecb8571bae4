//! All integration tests of the crate, in one program: it is linked once.

mod browser;
mod common;
mod headline;
mod html;
mod marks;
mod outputs;
mod replay;
mod replay_chance;
mod replay_fuzz;
mod replay_html;
mod replay_objects;
mod reproduction;
mod sample;
