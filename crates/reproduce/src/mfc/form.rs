//! What the full and the quick form run.

use super::runs::Case;
use crate::Options;

/// How much is run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Form {
    pub quick: bool,
    pub repetitions: u32,
    /// Measured references of a program, if the user said so.
    budget_refs: Option<u64>,
}

/// Full form (protocol).
const REPETITIONS: u32 = 5;
const PASSES: u64 = 4;
const LEAST_WARMUP: u64 = 16 << 20;
const MOST_WARMUP: u64 = 256 << 20;
const LEAST_READS: u64 = 64;
/// Quick form (protocol): repetitions, and bytes of all threads.
const QUICK_REPETITIONS: u32 = 3;
const QUICK_BYTES: u64 = 64 << 20;
/// MB of the quick form's working sets.
const QUICK_SINGLE: [u32; 4] = [2, 8, 16, 32];
const QUICK_PARALLEL: [u32; 2] = [8, 16];
/// MB of the working set that all programs have in the quick form.
const QUICK_ALL: u32 = 8;

impl Form {
    pub(super) fn new(options: &Options) -> Self {
        let repetitions = match options.quick {
            true => QUICK_REPETITIONS,
            false => REPETITIONS,
        };
        Self {
            quick: options.quick,
            repetitions: options.repetitions.unwrap_or(repetitions).max(1),
            budget_refs: options.budget_refs,
        }
    }

    /// Draws of each thread before the measured part, and in it.
    pub(super) fn draws(&self, case: &Case) -> [u64; 2] {
        let one = case.size * case.work.at_once();
        let threads = u64::from(case.threads);
        if let Some(refs) = self.budget_refs {
            let draws = (refs / case.work.refs(case.size) / threads).max(1);
            return [draws, draws];
        }
        let all = case.size * u64::from(case.files);
        let bytes = (PASSES * all).clamp(LEAST_WARMUP, MOST_WARMUP);
        match self.quick {
            false => {
                let warmup = bytes.div_ceil(one);
                [warmup, warmup.max(LEAST_READS)]
            }
            true => {
                // The cut goes before the least number of reads.
                let most = (QUICK_BYTES / threads / one).max(1);
                let warmup = bytes.div_ceil(one).min(most);
                [warmup, warmup.max(LEAST_READS).min(most)]
            }
        }
    }

    /// Is a working set of so many bytes run?
    pub(super) fn has(&self, bytes: u64, threads: u32, all_programs: bool) -> bool {
        let is = |mb: &u32| u64::from(*mb) << 20 == bytes;
        match (self.quick, all_programs, threads) {
            (false, _, _) => true,
            (true, true, _) => is(&QUICK_ALL),
            (true, false, 1) => QUICK_SINGLE.iter().any(is),
            (true, false, _) => QUICK_PARALLEL.iter().any(is),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mfc::inputs::Work;

    fn form(quick: bool) -> Form {
        Form::new(&Options {
            quick,
            ..Options::default()
        })
    }

    #[test]
    fn the_forms_run_what_the_protocol_says() {
        let case = |files, threads| Case::read(Work::READ, files, threads);
        let (full, quick) = (form(false), form(true));
        assert_eq!((full.repetitions, quick.repetitions), (5, 3));
        // 16 MiB at least, 256 MiB at most, in files of 256 KiB.
        assert_eq!(full.draws(&case(1, 1)), [64, 64]);
        assert_eq!(full.draws(&case(32, 1)), [128, 128]);
        assert_eq!(full.draws(&case(512, 1)), [1024, 1024]);
        assert_eq!(full.draws(&case(32, 16)), [128, 128]);
        // 64 MiB over all threads.
        assert_eq!(quick.draws(&case(32, 1)), [128, 128]);
        assert_eq!(quick.draws(&case(128, 1)), [256, 256]);
        assert_eq!(quick.draws(&case(32, 16)), [16, 16]);
        assert_eq!(quick.draws(&case(32, 32)), [8, 8]);
        assert!(full.has(1 << 27, 16, true));
        assert!(quick.has(32 << 20, 1, false) && !quick.has(32 << 20, 1, true));
        assert!(!quick.has(4 << 20, 1, false) && !quick.has(2 << 20, 16, false));
        let few = Form::new(&Options {
            budget_refs: Some(0),
            repetitions: Some(0),
            ..Options::default()
        });
        assert_eq!((few.repetitions, few.draws(&case(32, 1))), (1, [1, 1]));
    }
}
