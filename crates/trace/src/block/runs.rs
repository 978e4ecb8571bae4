//! Several files as traces: those that were written together are one.

use std::path::PathBuf;

use super::error::BlockError;
use super::formats::strace::run;
use super::reader::BlockTrace;
use super::{Format, Options};
use crate::detect;
use crate::foreign::input::Input;

impl BlockTrace {
    /// Opens traces at their beginnings. Files that one run of `strace -ff` wrote, one for each process,
    /// are one trace: they have the same name up to the process's number, and stamps. All others are
    /// traces by themselves. They come in the order of the list; a run stands where its first file does.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_runs(paths: &[PathBuf], options: &Options) -> Result<Vec<Self>, BlockError> {
        let mut traces = Vec::new();
        let strace = || Options {
            format: Some(Format::Strace),
            ..options.clone()
        };
        let mut runs = runs(paths, options)?;
        for (nth, path) in paths.iter().enumerate() {
            let Some(of) = runs.iter().position(|(_, files)| files.contains(&nth)) else {
                traces.push(Self::open(path, options.clone())?);
                continue;
            };
            if runs[of].1[0] != nth {
                continue;
            }
            let (run, files) = runs[of].clone();
            let of_run = files.iter().map(|nth| paths[*nth].clone()).collect();
            match run.open(of_run)? {
                Some((input, files)) => {
                    traces.push(Self::new(input, Some(Box::new(files)), strace())?)
                }
                // Each by itself then.
                None => {
                    runs.remove(of);
                    traces.push(Self::open(path, strace())?);
                }
            }
        }
        Ok(traces)
    }
}

/// The files that are one trace together, by their places in the list.
fn runs(paths: &[PathBuf], options: &Options) -> Result<Vec<(run::Run, Vec<usize>)>, BlockError> {
    let mut runs: Vec<(run::Run, Vec<usize>)> = Vec::new();
    if paths.len() < 2 || options.chosen()?.is_some_and(|f| f != Format::Strace) {
        return Ok(runs);
    }
    for (nth, path) in paths.iter().enumerate() {
        // What is wrong with a file is told when it is read.
        let Some(run) = Input::open(path).ok().as_mut().and_then(run::Run::of) else {
            continue;
        };
        match runs.iter_mut().find(|(known, _)| *known == run) {
            Some((_, files)) => files.push(nth),
            None => runs.push((run, vec![nth])),
        }
    }
    let is_strace = |nth: &usize| {
        let detected = Input::open(&paths[*nth]).map(|mut input| detect::block(&mut input));
        matches!(detected, Ok(Ok(Format::Strace)))
    };
    for (run, files) in &runs {
        run.check_processes(files.iter().map(|nth| paths[*nth].as_path()))?;
    }
    let named = options.format.is_some();
    runs.retain(|(_, files)| files.len() > 1 && (named || files.iter().any(is_strace)));
    Ok(runs)
}
