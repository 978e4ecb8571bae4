//! What a study found, in sentences computed from its numbers.
//!
//! A sentence states a change only where the [gate](crate::gate) lets it. A cause is never
//! claimed: "as its L3 misses rise" says that misses rose in the same repetitions, beyond
//! chance and in the direction that fits.

mod with;

use piebald_units::CoreSet;

use crate::{
    Finding, Metrics, PolicyResult, ProgramResult, Role, Sample, Study,
    format::{grouped, join_names, number, short},
    gate::{
        ALONE, Evidence, LEAST_EFFECT, Run, Verdict, count, holm, is_nothing, sure_of, verdict,
    },
    rows::find,
};
use with::{With, reason};

/// Longest name in a sentence.
const NAME_CHARS: usize = 40;

/// What others do to a program.
const SLOWDOWN: &str = "slowdown";
/// What a policy costs a program by itself.
const COST: &str = "cost";

/// What cannot be told from it.
const CHANCE: &str = "from chance";

/// A question that a study may answer, and its answers.
struct Question<'a> {
    kind: &'static str,
    target: &'a ProgramResult,
    policy: String,
    /// The change as a share of the baseline.
    effect: Sample,
    runs: Vec<Run<'a>>,
    /// What is asked, after "cannot show".
    about: String,
    /// What the sentence of a change begins with, where that is a claim of its own.
    state: Option<State>,
    /// The sentence if there is a change, before what goes with it.
    change: String,
    /// What went with it, and whether that is sure among so many questions.
    with: Option<With>,
    /// The sentence if there is none worth one, and if none can be told from chance.
    small: String,
    chance: String,
    /// Nothing is said if there is none.
    quiet: bool,
}

/// A claim that is made only if it is sure among so many questions and large enough, and what is said else.
/// Each goes on with the change.
struct State {
    change: Sample,
    sure: String,
    small: String,
    unsure: String,
}

impl State {
    fn said(&self, asked: usize) -> &str {
        let is_small = self.change.mean.abs() <= LEAST_EFFECT;
        if !sure_of(&self.change, asked) {
            &self.unsure
        } else if is_small {
            &self.small
        } else {
            &self.sure
        }
    }
}

/// A sentence that something cannot be told from chance, which says among how many questions where
/// the interval of the change alone would say otherwise, and what is so where there is no chance in it.
fn among(sentence: &str, change: &Sample, asked: usize) -> String {
    if is_nothing(change) {
        return sentence.replacen(
            &format!("can be told {CHANCE}"),
            "is found in any repetition",
            1,
        );
    }
    if change.excludes_zero() != Some(true) {
        return sentence.to_owned();
    }
    sentence.replacen(CHANCE, &format!("{CHANCE} among {asked} questions"), 1)
}

/// What the study says about each question, the most important first: for each target what
/// the others do to it under the first policy, then what the other policies change.
///
/// Empty only for a study without targets that were measured.
pub fn findings(study: &Study) -> Vec<Finding> {
    let mut found = findings_together(std::slice::from_ref(study));
    found.pop().unwrap_or_default()
}

/// The findings of each study of a report that holds several: what one of them says is as sure as all
/// questions of the report together allow.
pub(crate) fn findings_together(studies: &[Study]) -> Vec<Vec<Finding>> {
    let each: Vec<Vec<Question<'_>>> = studies.iter().map(questions).collect();
    let all = || each.iter().flatten();
    let effects: Vec<&Sample> = all().map(|q| &q.effect).collect();
    let asked = effects.len();
    let mut significant = holm(&effects).into_iter();
    let of_one = |(study, questions): (&Study, &Vec<Question<'_>>)| {
        let answers: Vec<Finding> = questions
            .iter()
            .zip(significant.by_ref())
            .filter_map(|(q, significant)| answer(study, q, significant, asked))
            .collect();
        let first = study.policies.first();
        let idle = first.map_or_else(Vec::new, |policy| unmeasured(study, policy));
        idle.into_iter().chain(answers).collect()
    };
    studies.iter().zip(&each).map(of_one).collect()
}

/// Of targets of which nothing was measured before the end that a time sets.
fn unmeasured(study: &Study, policy: &PolicyResult) -> Vec<Finding> {
    let Some(until_us) = study.until_us else {
        return Vec::new();
    };
    let nothing = |p: &&ProgramResult| {
        let together = p.together.as_ref();
        together.is_some_and(|m| m.refs.is_known() && m.refs.mean == 0.0)
    };
    let finding = |target: &ProgramResult| {
        let who = name(&target.name);
        let why = format!(
            "nothing of {who} was measured before it left or the runs ended, at {} us",
            number(until_us)
        );
        let act =
            "set a lower warmup_refs or course.warmup_us, or a later leaves_us or course.until_us"
                .to_owned();
        Finding {
            question: "measured".to_owned(),
            program: target.name.clone(),
            policy: policy.name.clone(),
            claim: format!("This study cannot show how fast {who} runs, because {why}; {act}."),
            why: Some(why),
            act: Some(act),
            ..Finding::default()
        }
    };
    targets(policy)
        .into_iter()
        .filter(nothing)
        .map(finding)
        .collect()
}

/// The sentences of the [findings], those that cannot be shown for the same reason together.
pub fn headline(study: &Study) -> Vec<String> {
    sentences(study, &findings(study))
}

/// The same of findings that are known.
pub(crate) fn sentences(study: &Study, findings: &[Finding]) -> Vec<String> {
    let mut sentences: Vec<String> = Vec::new();
    let mut refused: Vec<(&str, &str)> = Vec::new();
    for finding in findings {
        if let (Some(why), Some(act)) = (&finding.why, &finding.act) {
            if refused.contains(&(why, act)) {
                continue;
            }
            refused.push((why, act));
        }
        sentences.push(finding.claim.clone());
    }
    if let (false, Some(sentence)) = (study.complete, sentences.first_mut()) {
        *sentence = format!("PARTIAL: {sentence}");
    }
    sentences
}

fn answer(study: &Study, q: &Question<'_>, significant: bool, asked: usize) -> Option<Finding> {
    let compared = apart(study, q).or_else(|| in_turns(study, q));
    let verdict = compared.map_or_else(
        || {
            verdict(&Evidence {
                name: &q.target.name,
                effect: &q.effect,
                significant,
                runs: &q.runs,
                planned: study.repetitions,
                warmup_refs: study.warmup_refs,
                budget_refs: match study.until_us {
                    Some(_) => 0,
                    None => study.budget_refs,
                },
            })
        },
        |(why, act)| Verdict::cannot(why, act),
    );
    let finding = |claim, shown, why, act| Finding {
        question: q.kind.to_owned(),
        program: q.target.name.clone(),
        policy: q.policy.clone(),
        claim,
        effect: q.effect.mean,
        ci95: q.effect.interval().map(|(low, high)| [low, high]),
        n: q.effect.n(),
        shown,
        why,
        act,
        unmet: None,
    };
    Some(match verdict {
        Verdict::Shown => {
            let with = q.with.as_ref().filter(|w| sure_of(&w.change, asked));
            let with = with.map_or("", |w| w.text.as_str());
            let state = q.state.as_ref().map_or("", |state| state.said(asked));
            finding(format!("{state}{}{with}.", q.change), true, None, None)
        }
        Verdict::NoChange { .. } if q.quiet => return None,
        Verdict::NoChange { why, unmet } if significant => Finding {
            unmet: Some(unmet),
            ..finding(q.small.clone(), false, Some(why), None)
        },
        Verdict::NoChange { why, unmet } => Finding {
            unmet: Some(unmet),
            ..finding(among(&q.chance, &q.effect, asked), false, Some(why), None)
        },
        Verdict::CannotShow { .. } if q.quiet && !significant => return None,
        Verdict::CannotShow { why, act, unmet } => {
            let claim = format!("This study cannot show {}, because {why}; {act}.", q.about);
            Finding {
                unmet,
                ..finding(claim, false, Some(why), Some(act))
            }
        }
    })
}

/// Why what a program does by itself and beside others are not the same work, if they are not: the
/// one run ends by references, the others by time, and no number says which part of the program
/// that time holds.
fn apart(study: &Study, q: &Question<'_>) -> Option<(String, String)> {
    (q.kind == SLOWDOWN && study.until_us.is_some()).then(|| {
        (
            format!(
                "its run by itself ends after {} references and that beside others after a time, so \
                 that they are other parts of the program",
                grouped(study.budget_refs)
            ),
            "compare policies, or leave out [course]".to_owned(),
        )
    })
}

/// Slices of a processor that a program must have waited for, so that its time says what sharing
/// costs: with fewer it depends on who was first.
const LEAST_SLICES: f64 = 10.0;

/// Why the time of a program that takes turns with another on one processor says little, if it
/// does.
fn in_turns(study: &Study, q: &Question<'_>) -> Option<(String, String)> {
    let slice_ms = study.slice_us? / 1000.0;
    let together = q.target.together.as_ref().filter(|_| q.kind != COST)?;
    let policy = study.policies.iter().find(|p| p.name == q.policy)?;
    let cores = |p: &ProgramResult| p.cores.parse::<CoreSet>().map_or(0, CoreSet::bits);
    let own = cores(q.target);
    let met = |p: &&ProgramResult| {
        let company = q.target.beside.as_ref();
        p.name != q.target.name && company.is_none_or(|names| names.contains(&p.name))
    };
    let other = policy
        .programs
        .iter()
        .filter(met)
        .find(|p| cores(p) & own != 0)?;
    let ms = together.time_ps.mean / 1e9;
    let is_short = ms < LEAST_SLICES * slice_ms;
    if !is_short {
        return None;
    }
    let why = format!(
        "it takes turns with {} (cores {}), in slices of {} ms, and {} ms were measured",
        name(&other.name),
        q.target.cores,
        crate::format::brief(slice_ms),
        number(ms)
    );
    let refs = study.budget_refs as f64 * LEAST_SLICES * slice_ms / ms;
    let act = if study.until_us.is_some() {
        "set a later course.until_us".to_owned()
    } else if study.budget_refs > 0 && refs.is_finite() {
        format!("set budget_refs = {} or more", count(refs))
    } else {
        "measure for longer".to_owned()
    };
    Some((why, act))
}

fn questions(study: &Study) -> Vec<Question<'_>> {
    let Some((first, others)) = study.policies.split_first() else {
        return Vec::new();
    };
    let several = !others.is_empty();
    let mut questions = Vec::new();
    for target in targets(first) {
        questions.extend(beside(first, target, several));
        for policy in others {
            let Some(there) = find(policy, &target.name) else {
                continue;
            };
            // Slowdowns of runs that end by time say nothing (see `apart`), and so do their differences.
            let ends_alike = study.until_us.is_none();
            let versus = ends_alike.then(|| versus(first, target, policy, there));
            questions.extend(
                versus
                    .flatten()
                    .or_else(|| meanwhile(study, target, policy, there)),
            );
            questions.extend(cost_alone(first, target, policy, there));
        }
    }
    questions
}

/// Targets with the strongest effect first; all programs if none is a target.
fn targets(policy: &PolicyResult) -> Vec<&ProgramResult> {
    let is_target = |p: &&ProgramResult| p.role == Role::Target;
    let mut found: Vec<_> = policy.programs.iter().filter(is_target).collect();
    if found.is_empty() {
        found = policy.programs.iter().collect();
    }
    let strength = |p: &ProgramResult| {
        let sample = p.slowdown.as_ref().filter(|s| s.is_known());
        let sure = sample.and_then(Sample::excludes_zero) == Some(true);
        (sure, sample.map_or(0.0, |s| s.mean.abs()))
    };
    found.sort_by(|a, b| {
        let ((sure_a, a), (sure_b, b)) = (strength(a), strength(b));
        sure_b.cmp(&sure_a).then(b.total_cmp(&a))
    });
    found
}

/// The runs of a program under a policy.
fn runs<'a>(policy: Option<&PolicyResult>, program: &'a ProgramResult) -> Vec<Run<'a>> {
    let under = policy.map_or_else(String::new, |p| format!(" under {}", name(&p.name)));
    let phases = [
        (ALONE, Some(&program.alone)),
        ("together", program.together.as_ref()),
    ];
    let runs = phases.into_iter().filter_map(|(phase, metrics)| {
        Some(Run {
            label: format!("{phase}{under}"),
            metrics: metrics?,
        })
    });
    runs.collect()
}

fn name(text: &str) -> String {
    short(text, NAME_CHARS)
}

/// Two names that differ, shortened so that they still do.
fn two_names(one: &str, other: &str) -> (String, String) {
    let shortened = (name(one), name(other));
    if shortened.0 != shortened.1 {
        return shortened;
    }
    (short(one, usize::MAX), short(other, usize::MAX))
}

/// "Beside scan, bzip2 runs 23 % slower (±2) as its L3 misses rise from ...".
fn beside<'a>(
    policy: &PolicyResult,
    target: &'a ProgramResult,
    name_policy: bool,
) -> Option<Question<'a>> {
    let slowdown = target.slowdown.as_ref().filter(|s| s.is_known())?;
    let all = policy.programs.iter().map(|p| &p.name);
    let others: Vec<&str> = match &target.beside {
        Some(company) => company.iter().map(String::as_str).collect(),
        None => all
            .filter(|name| **name != target.name)
            .map(String::as_str)
            .collect(),
    };
    let company = match others.is_empty() {
        true => "together".to_owned(),
        false => format!("beside {}", join_names(&others)),
    };
    let under = format!("under {}", name(&policy.name));
    let place = match (name_policy, others.is_empty()) {
        (true, true) => format!("Under {}, ", name(&policy.name)),
        (true, false) => format!("Under {}, {company}, ", name(&policy.name)),
        (false, true) => "Run together, ".to_owned(),
        (false, false) => format!("Beside {}, ", join_names(&others)),
    };
    let who = name(&target.name);
    let shown = match slowdown.ci95 {
        Some(_) => format!("({} ±{})", percent_signed(slowdown), percent_half(slowdown)),
        None => format!("({})", percent_signed(slowdown)),
    };
    Some(Question {
        kind: SLOWDOWN,
        policy: policy.name.clone(),
        target,
        effect: slowdown.clone(),
        runs: runs(name_policy.then_some(policy), target),
        about: match name_policy {
            true => format!("how fast {who} runs {company} {under} {shown}"),
            false => format!("how fast {who} runs {company} {shown}"),
        },
        state: None,
        change: format!(
            "{place}{who} runs {} (±{})",
            speed(slowdown),
            percent_half(slowdown)
        ),
        with: reason(target, slowdown.mean),
        small: format!("{place}{who}'s speed hardly changes {shown}."),
        chance: format!("{place}no change of {who}'s speed can be told {CHANCE} {shown}."),
        quiet: false,
    })
}

/// "Under rainbow it runs 6 % slower (±1): 17 points less (±2) than under buddy."
fn versus<'a>(
    first: &PolicyResult,
    target: &'a ProgramResult,
    policy: &PolicyResult,
    there: &'a ProgramResult,
) -> Option<Question<'a>> {
    let before = target.slowdown.as_ref().filter(|s| s.is_known())?;
    let after = there.slowdown.as_ref().filter(|s| s.is_known())?;
    let change = after.difference(before);
    let mut runs_of = runs(Some(first), target);
    runs_of.extend(runs(Some(policy), there));
    let under = policy.name.clone();
    let (policy, first) = two_names(&policy.name, &first.name);
    let who = name(&target.name);
    let half = percent_half(&change);
    let points = percent_signed(&change);
    let points = points.trim_end_matches(" %");
    let shown = format!("({} ±{})", percent_signed(after), percent_half(after));
    let state = State {
        change: after.clone(),
        sure: format!(
            "Under {policy}, {who} runs {} (±{}): ",
            speed(after),
            percent_half(after)
        ),
        small: format!("Under {policy}, {who}'s speed hardly changes {shown}: "),
        unsure: format!("Under {policy}, {who}'s slowdown is "),
    };
    let direction = if change.mean < 0.0 { "less" } else { "more" };
    let chance = match change.mean == 0.0 && change.ci95 == Some(0.0) {
        true => format!(
            "{who}'s slowdown is the same under {policy} as under {first}, repetition by repetition."
        ),
        false => format!(
            "Between {policy} and {first}, no difference of {who}'s slowdown can be told {CHANCE} ({points} ±{half} points)."
        ),
    };
    Some(Question {
        kind: "difference",
        policy: under,
        target,
        about: format!(
            "whether others slow {who} less under {policy} than under {first}{}",
            match change.ci95 {
                Some(_) => format!(" ({points} ±{half} points)"),
                None => format!(" ({points} points)"),
            }
        ),
        state: Some(state),
        change: format!(
            "{} points {direction} (±{half}) than under {first}",
            magnitude(&change)
        ),
        with: despite(&change, target, there),
        small: format!(
            "Between {policy} and {first}, {who}'s slowdown hardly differs ({points} ±{half} points)."
        ),
        chance,
        effect: change,
        runs: runs_of,
        quiet: false,
    })
}

/// The time beside others where it says the opposite of the slowdown: a program that a policy slows by
/// itself may lose less to others, and yet be slower.
fn despite(change: &Sample, first: &ProgramResult, there: &ProgramResult) -> Option<With> {
    let time = |program: &ProgramResult| Some(program.together.as_ref()?.time_ps.clone());
    let longer = time(first)?.slowdown(&time(there)?)?;
    if longer.mean * change.mean >= 0.0 || longer.mean.abs() <= LEAST_EFFECT {
        return None;
    }
    let direction = if longer.mean > 0.0 { "more" } else { "less" };
    let (size, half) = (magnitude(&longer), percent_half(&longer));
    Some(With {
        text: format!(", and yet takes {size} % {direction} time (±{half}) together"),
        change: longer,
    })
}

/// "Run together, mergesort takes 12 % more time (±1) under rainbow than under buddy": where no program
/// was run by itself.
fn meanwhile<'a>(
    study: &Study,
    target: &'a ProgramResult,
    policy: &PolicyResult,
    there: &'a ProgramResult,
) -> Option<Question<'a>> {
    let first = study.policies.first()?;
    let both = (target.together.as_ref()?, there.together.as_ref()?);
    // Runs that end by time are compared by what they did in it.
    let time = |m: &Metrics| match study.until_us {
        None => Some(m.time_ps.clone()),
        Some(_) => m.time_ps.paired(&m.refs, |time, refs| time / refs),
    };
    let change = time(both.0)?
        .slowdown(&time(both.1)?)
        .filter(Sample::is_known)?;
    let direction = if change.mean > 0.0 { "more" } else { "less" };
    let (size, half) = (magnitude(&change), percent_half(&change));
    let who = name(&target.name);
    let run = |policy: &PolicyResult, metrics: &'a Metrics| Run {
        label: format!("together under {}", name(&policy.name)),
        metrics,
    };
    let runs = vec![run(first, both.0), run(policy, both.1)];
    let under = policy.name.clone();
    let (policy, first) = two_names(&policy.name, &first.name);
    let points = percent_signed(&change);
    let each = match study.until_us {
        Some(_) => " for each reference",
        None => "",
    };
    Some(Question {
        kind: "together",
        policy: under,
        target,
        runs,
        about: match change.ci95 {
            Some(_) => format!(
                "whether {who} is faster under {policy} than under {first} ({points} ±{half})"
            ),
            None => format!("whether {who} is faster under {policy} than under {first} ({points})"),
        },
        state: None,
        change: format!(
            "Run together, {who} takes {size} % {direction} time{each} (±{half}) under {policy} than under {first}"
        ),
        with: None,
        small: format!(
            "Between {policy} and {first}, {who}'s time together hardly differs ({points} ±{half})."
        ),
        chance: format!(
            "Between {policy} and {first}, no difference of {who}'s time together can be told {CHANCE} \
             ({points} ±{half})."
        ),
        effect: change,
        quiet: false,
    })
}

/// What a policy costs or gains a program that has the machine to itself; nothing is said
/// where that is nothing.
fn cost_alone<'a>(
    first: &PolicyResult,
    target: &'a ProgramResult,
    policy: &PolicyResult,
    there: &'a ProgramResult,
) -> Option<Question<'a>> {
    let change = target.alone.time_ps.slowdown(&there.alone.time_ps)?;
    let direction = if change.mean > 0.0 { "more" } else { "less" };
    let who = name(&target.name);
    let alone = |policy: &PolicyResult, program: &'a ProgramResult| Run {
        label: format!("alone under {}", name(&policy.name)),
        metrics: &program.alone,
    };
    let runs = vec![alone(first, target), alone(policy, there)];
    let under = policy.name.clone();
    let (policy, first) = (name(&policy.name), name(&first.name));
    Some(Question {
        kind: COST,
        policy: under,
        target,
        runs,
        about: format!("what {policy} costs {who} by itself"),
        state: None,
        change: format!(
            "By itself, {who} takes {} % {direction} time (±{}) under {policy} than under {first}",
            magnitude(&change),
            percent_half(&change),
        ),
        with: None,
        small: String::new(),
        chance: String::new(),
        effect: change,
        quiet: true,
    })
}

/// Decimals that a percentage needs: whole above 10, one below.
fn percent_decimals(sample: &Sample) -> usize {
    usize::from(sample.mean.abs() < 0.0995)
}

fn magnitude(sample: &Sample) -> String {
    let decimals = percent_decimals(sample);
    format!("{:.decimals$}", sample.mean.abs() * 100.0)
}

fn speed(sample: &Sample) -> String {
    let direction = if sample.mean < 0.0 {
        "faster than by itself"
    } else {
        "slower"
    };
    format!("{} % {direction}", magnitude(sample))
}

fn percent_signed(sample: &Sample) -> String {
    let shown = magnitude(sample);
    // What rounds to nothing has no direction.
    let is_nothing = shown.bytes().all(|b| matches!(b, b'0' | b'.'));
    let sign = if is_nothing {
        ""
    } else if sample.mean < 0.0 {
        "-"
    } else {
        "+"
    };
    format!("{sign}{shown} %")
}

fn percent_half(sample: &Sample) -> String {
    let Some(half) = sample.ci95.map(|h| h * 100.0) else {
        return crate::format::UNKNOWN.to_owned();
    };
    let decimals = percent_decimals(sample);
    let text = format!("{half:.decimals$}");
    if half > 0.0 && text.bytes().all(|b| matches!(b, b'0' | b'.')) {
        return if decimals == 0 {
            "<1".to_owned()
        } else {
            "<0.1".to_owned()
        };
    }
    text
}
