//! The built-in programs, one per file.
//!
//! Each states its source, its data, what one iteration is, its instruction
//! counts per block, and which loads wait for which. Every iteration's result is
//! checked, also when the tape was full before the iteration ended (the
//! computation goes on without references). Upper ends of the parameters' ranges
//! keep real memory below about 1 GiB and an iteration below some seconds.

mod chase;
mod draw;
mod fft;
mod filesort;
mod gups;
mod hashjoin;
mod kit;
mod lookup;
mod lu;
mod matmul;
mod mergesort;
mod phold;
mod postmark;
mod randread;
mod readfiles;
mod reread;
mod ring;
mod scan;
mod seqscan;
mod smm;
mod sor;
mod stream;

use crate::memory::Tape;
use crate::spec::{Spec, Values};

pub(crate) use kit::Init;

/// A computed result is not what it must be: a defect of the kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WrongResult(pub String);

/// A built-in program.
pub trait Kernel: Send + Sync {
    /// Its name and parameters.
    fn spec(&self) -> &'static Spec;

    /// Number of threads with these values.
    fn threads(&self, _values: &Values) -> u32 {
        1
    }

    /// What no single parameter's range can say: why these values do not fit
    /// together.
    ///
    /// # Errors
    /// The text names the parameters, their values and what is allowed.
    fn check(&self, _values: &Values) -> Result<(), String> {
        Ok(())
    }

    /// Computes until the tape's limits are reached, and checks the results.
    ///
    /// # Errors
    /// If a result is wrong.
    fn run(&self, values: &Values, seed: u64, tape: &mut Tape<'_>) -> Result<(), WrongResult>;
}

/// All built-in programs.
pub fn all() -> &'static [&'static dyn Kernel] {
    &[
        &stream::Triad,
        &gups::Gups,
        &chase::Chase,
        &mergesort::MergeSort,
        &fft::Fft,
        &lu::Lu,
        &smm::Smm,
        &sor::Sor,
        &phold::Phold,
        &hashjoin::HashJoin,
        &seqscan::SeqScan,
        &scan::Scan,
        &matmul::MatMul,
        &filesort::FileSort,
        &postmark::PostMark,
        &randread::RandRead,
        &readfiles::ReadFiles,
        &reread::Reread,
        &lookup::Lookup,
    ]
}
