//! A row while it is filled in: numbers, statements, and what they come to.

use piebald_report::{CaseTable, Predicate, Published, Sample, Target, TargetKind, Value, Verdict};

use crate::{experiment::mean_of, verdict};

/// A sample, or why there is none.
pub(crate) type Found = Result<Sample, String>;

/// A row before it is run, of programs that stand in for others.
pub(crate) fn blank(id: &str, title: &str, kind: TargetKind) -> Target {
    Target {
        id: id.to_owned(),
        title: title.to_owned(),
        kind,
        verdict: Verdict::NotRun,
        why: None,
        stand_in: true,
        calibrated: false,
        values: Vec::new(),
        predicates: Vec::new(),
        tables: Vec::new(),
    }
}

/// A row of results.
pub(crate) struct Row {
    pub(crate) target: Target,
    verdicts: Vec<Verdict>,
    /// Why something that is to be judged is missing.
    missing: Option<String>,
    /// Why something that is to be shown is missing.
    unshown: Option<String>,
    /// Both numbers of a value are measured.
    pub(crate) pairs: bool,
}

impl Row {
    #[cfg(test)]
    pub(crate) fn new(id: &str, title: &str, kind: TargetKind) -> Self {
        Self::of(blank(id, title, kind))
    }

    /// A row that is filled in.
    pub(crate) fn of(target: Target) -> Self {
        Self {
            target,
            verdicts: Vec::new(),
            missing: None,
            unshown: None,
            pairs: false,
        }
    }

    /// Both numbers of a value are measured.
    pub(crate) fn paired(mut self) -> Self {
        self.pairs = true;
        self
    }

    /// The paper's numbers of this row chose an input, so that it is shown and never judged.
    pub(crate) fn calibrated(mut self) -> Self {
        self.target.calibrated = true;
        self
    }

    /// A number that is judged by `rule`.
    pub(crate) fn judge(
        &mut self,
        name: &str,
        paper: Published,
        found: Found,
        unit: &str,
        rule: impl Fn(&Sample) -> Verdict,
    ) {
        match found {
            Ok(sample) => {
                self.verdicts.push(rule(&sample));
                self.target.values.push(sampled(name, paper, &sample, unit));
            }
            Err(why) => {
                self.missing.get_or_insert(why);
                self.target
                    .values
                    .push(sampled(name, paper, &Sample::new(Vec::new()), unit));
            }
        }
    }

    /// A headline number.
    #[cfg(test)]
    pub(crate) fn headline(&mut self, name: &str, paper: f64, found: Found) {
        self.judge(name, Published::Number(paper), found, "%", |s| {
            verdict::headline(paper, s)
        });
    }

    /// A number that is shown and not judged.
    #[cfg(test)]
    pub(crate) fn show(&mut self, name: &str, found: &Found, unit: &str) {
        match found {
            Ok(sample) => {
                let value = sampled(name, Published::Nothing, sample, unit);
                self.target.values.push(value);
            }
            Err(why) => self.lacks(why),
        }
    }

    /// Something that is to be shown is missing.
    pub(crate) fn lacks(&mut self, why: &str) {
        self.unshown.get_or_insert_with(|| why.to_owned());
    }

    /// A number of the paper alone, or what there is of a pair.
    pub(crate) fn cite(
        &mut self,
        name: &str,
        paper: Published,
        unit: &str,
        measured: Option<&Sample>,
    ) {
        let nothing = Sample::new(Vec::new());
        let value = sampled(name, paper, measured.unwrap_or(&nothing), unit);
        self.target.values.push(value);
    }

    /// A statement; `None` if what it speaks of is missing.
    pub(crate) fn states(&mut self, text: impl Into<String>, holds: Result<bool, String>) {
        let holds = holds.map_err(|why| self.missing.get_or_insert(why).clone());
        self.target.predicates.push(Predicate {
            text: text.into(),
            holds: holds.ok(),
        });
    }

    /// Something that is to be judged is missing.
    pub(crate) fn missing(&mut self, why: &str) {
        self.missing.get_or_insert_with(|| why.to_owned());
    }

    /// Is something missing that is to be judged?
    pub(crate) fn is_missing(&self) -> bool {
        self.missing.is_some()
    }

    /// Is a number judged, or said to be missing?
    pub(crate) fn is_judged(&self) -> bool {
        !self.verdicts.is_empty() || self.missing.is_some()
    }

    /// Is there something by which the row can be judged, or a reason why there is not?
    pub(crate) fn has_ground(&self) -> bool {
        self.is_judged() || !self.target.predicates.is_empty()
    }

    /// What has to be known to read the row.
    pub(crate) fn note(&mut self, text: &str) {
        let why = self.target.why.get_or_insert_default();
        if !why.is_empty() {
            why.push_str("; ");
        }
        why.push_str(text);
    }

    /// Single cases: more rows of the table with this title and these columns, if it has one.
    pub(crate) fn cases(&mut self, title: &str, columns: Vec<String>, rows: Vec<Vec<String>>) {
        let tables = &mut self.target.tables;
        let is_it = |t: &&mut CaseTable| t.title == title && t.columns == columns;
        match tables.iter_mut().find(is_it) {
            Some(table) => table.rows.extend(rows),
            None => tables.push(CaseTable {
                title: title.to_owned(),
                columns,
                rows,
            }),
        }
    }

    /// The row with its verdict. Where something that is to be judged is missing, it is not run.
    pub(crate) fn finish(mut self) -> Target {
        let predicates = &self.target.predicates;
        self.target.verdict = match (&self.missing, self.target.kind) {
            (Some(_), _) => Verdict::NotRun,
            (None, TargetKind::S) => verdict::shape(predicates),
            // A headline row of which the paper prints no number.
            (None, _) if self.verdicts.is_empty() => verdict::shape(predicates),
            // What is said of a constant is exact as well.
            (None, TargetKind::C) if !predicates.is_empty() => {
                let numbers = verdict::worst(self.verdicts.iter().copied());
                numbers.max(verdict::shape(predicates))
            }
            (None, _) => {
                let numbers = verdict::worst(self.verdicts.iter().copied());
                verdict::with_statements(numbers, predicates)
            }
        };
        if self.target.calibrated && self.target.verdict != Verdict::NotRun {
            self.target.verdict = Verdict::Given;
        }
        if let Some(why) = self.missing.take() {
            self.note(&why);
        } else if let Some(why) = self.unshown.take() {
            self.note(&format!("left out: {why}"));
        }
        self.target
    }

    /// The row of what is shown and never judged, with why the first number that is not there is
    /// not. Without any number it is not run.
    pub(crate) fn given(mut self) -> Target {
        let unshown = self.unshown.take();
        if let Some(why) = &unshown {
            self.note(&format!("left out: {why}"));
        }
        let mut target = self.finish();
        target.verdict = match target.values.is_empty() {
            true => Verdict::NotRun,
            false => Verdict::Given,
        };
        if target.values.is_empty() && unshown.is_none() {
            target.why = Some("no case was run".to_owned());
        }
        target
    }
}

/// A number over the repetitions.
pub(crate) fn sampled(name: &str, paper: Published, sample: &Sample, unit: &str) -> Value {
    Value {
        name: name.to_owned(),
        paper,
        measured: sample.is_known().then_some(sample.mean),
        ci95: sample.interval().map(|(low, high)| [low, high]),
        unit: unit.to_owned(),
    }
}

/// The mean over cases, repetition by repetition.
pub(crate) fn mean(found: &[Found]) -> Found {
    let all: Result<Vec<Sample>, String> = found.iter().cloned().collect();
    mean_of(&all?).ok_or_else(|| "no case was run".to_owned())
}

/// The sum over cases, repetition by repetition.
pub(crate) fn sum(found: &[Found]) -> Found {
    let all: Result<Vec<Sample>, String> = found.iter().cloned().collect();
    let mut all = all?.into_iter();
    let first = all.next().ok_or("no case was run")?;
    all.try_fold(first, |sum, one| {
        sum.paired(&one, |a, b| a + b)
            .ok_or_else(|| "repetitions are missing".to_owned())
    })
}

/// The case with the least or the largest mean.
pub(crate) fn extreme(found: &[Found], largest: bool) -> Found {
    let all: Result<Vec<Sample>, String> = found.iter().cloned().collect();
    let all = all?.into_iter();
    let order = |a: &Sample, b: &Sample| a.mean.total_cmp(&b.mean);
    let best = match largest {
        true => all.max_by(order),
        false => all.min_by(order),
    };
    best.ok_or_else(|| "no case was run".to_owned())
}

/// Pearson's.
pub(crate) fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let n = a.len() as f64;
    let mean = |v: &[f64]| v.iter().sum::<f64>() / n;
    let (ma, mb) = (mean(a), mean(b));
    let sum = |f: &dyn Fn(f64, f64) -> f64| -> f64 {
        a.iter().zip(b).map(|(x, y)| f(x - ma, y - mb)).sum()
    };
    sum(&|x, y| x * y) / (sum(&|x, _| x * x) * sum(&|_, y| y * y)).sqrt()
}

/// The place of each number in their order, from 0; equal ones share the mean of theirs.
pub(crate) fn ranks(all: &[f64]) -> Vec<f64> {
    let rank = |own: &f64| {
        let below = all.iter().filter(|other| *other < own).count() as f64;
        let equal = all.iter().filter(|other| *other == own).count() as f64;
        below + (equal - 1.0) / 2.0
    };
    all.iter().map(rank).collect()
}

/// The case whose mean is farthest from zero.
pub(crate) fn farthest(found: &[Found]) -> Found {
    let all: Result<Vec<Sample>, String> = found.iter().cloned().collect();
    let far = |a: &Sample, b: &Sample| a.mean.abs().total_cmp(&b.mean.abs());
    let most = all?.into_iter().max_by(far);
    most.ok_or_else(|| "no case was run".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(mean: f64) -> Found {
        Ok(Sample {
            mean,
            ci95: Some(0.5),
            values: vec![mean; 2],
        })
    }

    #[test]
    fn a_row_is_its_worst_value_and_not_run_if_one_is_missing() {
        let mut row = Row::new("S-9", "t", TargetKind::H);
        row.headline("a", 20.0, sample(21.0));
        row.headline("b", 20.0, sample(35.0));
        let near = row.finish();
        assert_eq!((near.verdict, near.values.len()), (Verdict::Near, 2));
        let mut row = Row::new("S-9", "t", TargetKind::H);
        row.headline("a", 20.0, sample(21.0));
        row.headline("b", 20.0, Err("no tape".to_owned()));
        let not = row.finish();
        assert_eq!(not.verdict, Verdict::NotRun);
        assert_eq!(not.why.as_deref(), Some("no tape"));
        assert_eq!(not.values[1].measured, None);
    }

    #[test]
    fn a_row_that_is_given_tells_what_it_lacks_and_is_not_run_without_a_number() {
        let given = |found: &[Result<f64, &str>]| {
            let mut row = Row::new("S-O1", "t", TargetKind::G);
            for (at, value) in found.iter().enumerate() {
                let value = value.map_err(str::to_owned).and_then(sample);
                row.show(&at.to_string(), &value, "%");
            }
            let target = row.given();
            (target.verdict, target.values.len(), target.why)
        };
        let lacks = |why: &str| Some(why.to_owned());
        assert_eq!(given(&[Ok(1.0)]), (Verdict::Given, 1, None));
        assert_eq!(
            given(&[Ok(1.0), Err("no tape"), Err("no file")]),
            (Verdict::Given, 1, lacks("left out: no tape"))
        );
        assert_eq!(
            given(&[Err("no tape")]),
            (Verdict::NotRun, 0, lacks("left out: no tape"))
        );
        assert_eq!(given(&[]), (Verdict::NotRun, 0, lacks("no case was run")));
    }

    #[test]
    fn statements_spoil_headlines_and_decide_shapes() {
        for (kind, holds, verdict) in [
            (TargetKind::H, true, Verdict::Match),
            (TargetKind::H, false, Verdict::Near),
            (TargetKind::S, true, Verdict::Match),
            (TargetKind::S, false, Verdict::Miss),
        ] {
            let mut row = Row::new("S-12", "t", kind);
            row.headline("a", 20.0, sample(21.0));
            row.states("it holds", Ok(holds));
            assert_eq!(row.finish().verdict, verdict, "{kind:?} {holds}");
        }
        let mut row = Row::new("S-12", "t", TargetKind::H);
        row.states("it holds", Ok(true));
        assert_eq!(row.finish().verdict, Verdict::Match);
        let mut row = Row::new("S-12", "t", TargetKind::S);
        row.states("it holds", Err("no tape".to_owned()));
        assert_eq!(row.finish().verdict, Verdict::NotRun);
    }

    #[test]
    fn numbers_that_chose_an_input_are_shown_and_not_judged() {
        let row = || {
            let mut row = Row::new("M-1", "t", TargetKind::H);
            row.show("a", &sample(90.0), "%");
            row.headline("b", 20.0, sample(21.0));
            row
        };
        let judged = row().finish();
        assert_eq!((judged.verdict, judged.values.len()), (Verdict::Match, 2));
        let mut lacks = row();
        lacks.show("c", &Err("no tape".to_owned()), "%");
        let lacks = lacks.finish();
        let why = lacks.why.as_deref();
        assert_eq!(
            (lacks.verdict, why),
            (Verdict::Match, Some("left out: no tape"))
        );
        let given = row().calibrated().finish();
        assert_eq!((given.verdict, given.calibrated), (Verdict::Given, true));
        let mut row = row().calibrated();
        row.missing("no tape");
        assert_eq!(row.finish().verdict, Verdict::NotRun);
    }

    #[test]
    fn extremes_and_means_need_all_cases() {
        let found = [sample(3.0), sample(1.0), sample(8.0)];
        assert_eq!(extreme(&found, false).map(|s| s.mean), Ok(1.0));
        assert_eq!(extreme(&found, true).map(|s| s.mean), Ok(8.0));
        assert_eq!(mean(&found).map(|s| s.mean), Ok(4.0));
        let found = [sample(3.0), Err("no".to_owned())];
        assert!(extreme(&found, true).is_err() && mean(&found).is_err());
        assert!(mean(&[]).is_err());
    }
}
