//! DULO (FAST'05): D-1 to D-13.
//!
//! The paper's traces cannot be had; the inputs that stand in for them, what is run on them and
//! what counts as a match were written down before the first result (`reproduce/dulo/`). Each
//! repetition replays an input with CLOCK and with DULO under the same draws, and rows are
//! judged by the differences.

mod draws;
mod figures;
mod form;
mod inputs;
mod kernel;
mod lxr;
mod overhead;
mod panels;
mod rows;
mod runs;
mod smm;
mod smm_stream;
mod table1;
mod table2;
mod tables;
mod work;

use std::collections::HashMap;

use piebald_report::{Reproduction, Target};

use crate::{
    Hooks, Options, ReproduceError, System,
    paper::{Paper, Whole},
};
use form::Form;
use inputs::List;
use rows::{ROWS, blank};
use work::Work;

pub(crate) use rows::TARGETS;

pub(crate) fn reproduce(
    options: &Options,
    hooks: Hooks<'_>,
) -> Result<Reproduction, ReproduceError> {
    let mut paper = Paper::begin(System::Dulo, options);
    let list = List::read().map_err(ReproduceError::Inputs)?;
    let form = Form::new(options, &list);
    let rows = TARGETS.iter().zip(ROWS);
    let mut targets: HashMap<&str, Target> = rows
        .filter(|(id, _)| options.wants(id))
        .map(|(id, (title, kind, _))| (*id, blank(id, title, kind)))
        .collect();
    if let Some(t) = targets.get_mut("D-1")
        && let Err(why) = table1::run_into(t)
    {
        t.why = Some(why);
    }
    let mut work = Work::new(options, hooks, &list, &form);
    work.run();
    work.fill(&mut targets);
    paper.add(targets.into_values());
    paper.add(kernel_rows(options, hooks));
    paper.draw(panels::all(&work.runs, &list));
    Ok(paper.end(Whole {
        budget_refs: work.longest(),
        warmup_refs: 0,
        conditions: conditions(&form),
        simulated_refs: work.refs,
    }))
}

/// The rows of section 4.2 that are wanted: Linux's two lists against DULO in them, on a
/// WD400BB. What is run comes with its numbers, what is not with the reason.
fn kernel_rows(options: &Options, hooks: Hooks<'_>) -> Vec<Target> {
    let mut rows = Vec::new();
    if options.wants("D-11") || options.wants("D-12") {
        rows.extend(lxr::lxr(options, hooks));
    }
    if options.wants("D-13") {
        rows.extend(smm::smm(options, hooks));
    }
    rows
}

fn conditions(form: &Form) -> Vec<String> {
    vec![
        "Seagate ST39102LW, one request outstanding; Deadline and readahead of Linux 2.6.11; the \
         each file begins 1 MiB times the number of its inode, which is drawn, modulo the drive \
         (AccuSim's rule); accesses in the order of the trace, a miss stops its own program only; no processor time between accesses."
            .to_owned(),
        "CLOCK against DULO on CLOCK: bank of 8 MB and evicting section of 64 MB, below 80 MB of \
         memory 4 and 16 MB; block = page = 4 KiB."
            .to_owned(),
        format!(
            "{} repetitions; each draws the files' inodes, the platter's angle, what of each \
             program is passed over, and leads of programs. Intervals: 95 %, Student t, of paired \
             differences.",
            form.repetitions
        ),
    ]
}

#[cfg(test)]
mod tests {
    use piebald_report::Verdict;

    use super::*;

    #[test]
    fn without_inputs_rows_that_need_some_say_so() {
        let options = Options {
            inputs: "/nowhere".into(),
            quick: true,
            repetitions: Some(1),
            ..Options::default()
        };
        let record = |_: &crate::Wanted<'_>, _: &std::path::Path| Err(String::new());
        let hooks = Hooks {
            stop: None,
            progress: None,
            record: &record,
            store: None,
        };
        let done = reproduce(&options, hooks).unwrap_or_else(|e| panic!("{e}"));
        let ids: Vec<&str> = done.targets.iter().map(|t| t.id.as_str()).collect();
        assert_eq!(ids, TARGETS);
        assert_eq!(done.targets[0].verdict, Verdict::Match);
        // The sparse matrix needs none: its touches are computed.
        let (last, rest) = done.targets[1..].split_last().expect("rows");
        assert_ne!((last.id.as_str(), last.verdict), ("D-13", Verdict::NotRun));
        for t in rest {
            assert_eq!(t.verdict, Verdict::NotRun, "{}", t.id);
            let why = t.why.as_deref().unwrap_or_default();
            let says = why.contains("stand-ins.sh dulo");
            assert!(says, "{}: {why}", t.id);
        }
    }
}
