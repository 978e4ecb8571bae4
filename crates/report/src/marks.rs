//! Marks at slowdowns that may not be claimed: the verdicts of the [findings], for tables,
//! pictures and CSV alike.

use std::collections::BTreeMap;

use crate::{
    Finding, Study,
    format::short,
    headline::{findings, findings_together},
};

/// Longest name in a remark.
const NAME_CHARS: usize = 24;

/// What the study says of each slowdown, and a letter for each reason not to claim one.
pub(crate) struct Marks {
    /// By policy and program. Only targets are judged.
    verdicts: BTreeMap<(String, String), Verdict>,
    /// The first letter's remark first.
    remarks: Vec<String>,
}

/// What is said of one slowdown, or of its difference from that under the first policy.
struct Verdict {
    /// `shown`, or why no change is claimed.
    text: String,
    /// Place among the remarks, if no change is claimed.
    remark: Option<usize>,
}

impl Marks {
    /// The marks of all slowdowns of a study.
    pub fn new(study: &Study) -> Self {
        Self::of(study, &findings(study))
    }

    /// The same of findings that are known.
    pub fn of(study: &Study, findings: &[Finding]) -> Self {
        Self::behind(Vec::new(), study, findings)
    }

    /// The marks of several studies that stand in one table: a reason has one letter in all of them.
    /// The last one has all remarks.
    pub fn of_all(studies: &[Study]) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::new();
        for (study, found) in studies.iter().zip(findings_together(studies)) {
            let remarks = all
                .last()
                .map_or_else(Vec::new, |last| last.remarks.clone());
            all.push(Self::behind(remarks, study, &found));
        }
        all
    }

    /// The marks of a study, behind those that have these remarks.
    fn behind(remarks: Vec<String>, study: &Study, all: &[Finding]) -> Self {
        let mut marks = Self {
            verdicts: BTreeMap::new(),
            remarks,
        };
        let first = study.policies.first().map_or("", |p| p.name.as_str());
        // In the order of the tables, so that their first mark is the first letter.
        for policy in &study.policies {
            for program in &policy.programs {
                // What a policy costs a program by itself is no slowdown, nor is the time that two policies
                // take; where slowdowns say nothing, those of no policy do.
                let of = |name: &str, f: &Finding| {
                    let about = (f.policy.as_str(), &f.program) == (name, &program.name);
                    about && ["slowdown", "difference"].contains(&f.question.as_str())
                };
                let found = all.iter().find(|f| of(&policy.name, f));
                let found = found.or_else(|| all.iter().find(|f| of(first, f) && !f.shown));
                if let Some(found) = found {
                    let verdict = marks.judged(found, first);
                    let place = (policy.name.clone(), program.name.clone());
                    marks.verdicts.insert(place, verdict);
                }
            }
        }
        marks
    }

    fn judged(&mut self, found: &Finding, first: &str) -> Verdict {
        let is_difference = found.question == "difference";
        // Of several policies, the question is how far the slowdown is from that under the first.
        let told = |text: &str| {
            if is_difference {
                format!("difference from {first}: {text}")
            } else {
                text.to_owned()
            }
        };
        if found.shown {
            return Verdict {
                text: told("shown"),
                remark: None,
            };
        }
        let why = found.why.clone().unwrap_or_default();
        let remark = if is_difference {
            let first = short(first, NAME_CHARS);
            format!("the difference from {first} is not claimed: {why}.")
        } else {
            format!("no change of speed is claimed: {why}.")
        };
        let known = self.remarks.iter().position(|r| *r == remark);
        let at = known.unwrap_or_else(|| {
            self.remarks.push(remark);
            self.remarks.len() - 1
        });
        Verdict {
            text: told(&why),
            remark: Some(at),
        }
    }

    /// `shown`, or why no change is claimed, behind `difference from POLICY: ` where the question is the
    /// difference; empty where nothing is said.
    pub fn verdict(&self, policy: &str, program: &str) -> &str {
        self.at(policy, program).map_or("", |v| v.text.as_str())
    }

    /// The mark of a slowdown that is not claimed, as `(a)`.
    pub fn mark(&self, policy: &str, program: &str) -> Option<String> {
        let remark = self.at(policy, program)?.remark?;
        Some(format!("({})", letters(remark)))
    }

    /// The text of a slowdown, with its mark if it has one.
    pub fn marked(&self, policy: &str, program: &str, text: String) -> String {
        match self.mark(policy, program) {
            Some(mark) => format!("{text} {mark}"),
            None => text,
        }
    }

    /// What the marks mean, a line for each.
    pub fn remarks(&self) -> Vec<String> {
        let remarks = self.remarks.iter().enumerate();
        remarks
            .map(|(at, remark)| format!("({}) {remark}", letters(at)))
            .collect()
    }

    fn at(&self, policy: &str, program: &str) -> Option<&Verdict> {
        self.verdicts.get(&(policy.to_owned(), program.to_owned()))
    }
}

/// `a` to `z`, then `aa` and so on.
fn letters(at: usize) -> String {
    let last = char::from(b'a' + (at % 26) as u8);
    match at / 26 {
        0 => last.to_string(),
        more => format!("{}{last}", letters(more - 1)),
    }
}

#[cfg(test)]
mod tests {
    use super::letters;

    #[test]
    fn every_reason_has_letters_of_its_own() {
        let of = [0, 25, 26, 51, 52, 701, 702].map(letters);
        assert_eq!(of, ["a", "z", "aa", "az", "ba", "zz", "aaa"]);
    }
}
