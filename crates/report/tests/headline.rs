//! Sentences must follow from the numbers and stop where the numbers stop.

use piebald_report::{
    LevelMpki, Metrics, PolicyResult, ProgramResult, Role, Sample, Study, headline,
};

/// A program that takes `alone` and `together` (milliseconds) with these L3 MPKI.
fn program(alone: &[f64], together: &[f64], mpki: [&[f64]; 2]) -> ProgramResult {
    let metrics = |ms: &[f64], mpki: &[f64]| Metrics {
        time_ps: ms.iter().map(|t| t * 1e9).collect(),
        // About one for each cycle.
        instructions: ms.iter().map(|_| 3e8).collect(),
        mpki: vec![LevelMpki {
            level: "L3".to_owned(),
            mpki: mpki.iter().copied().collect(),
            ..LevelMpki::default()
        }],
        ..Metrics::default()
    };
    let (alone, together) = (metrics(alone, mpki[0]), metrics(together, mpki[1]));
    ProgramResult {
        name: "bzip2".to_owned(),
        slowdown: alone.time_ps.slowdown(&together.time_ps),
        alone,
        together: Some(together),
        ..ProgramResult::default()
    }
}

fn scan() -> ProgramResult {
    ProgramResult {
        name: "scan".to_owned(),
        role: Role::Polluter,
        ..ProgramResult::default()
    }
}

fn study(policies: Vec<(&str, ProgramResult)>) -> Study {
    let policies = policies.into_iter().map(|(name, program)| PolicyResult {
        name: name.to_owned(),
        programs: vec![program, scan()],
        ..PolicyResult::default()
    });
    Study {
        policies: policies.collect(),
        repetitions: 3,
        ..Study::default()
    }
}

const ALONE: &[f64] = &[100.0, 101.0, 99.0];
const SLOW: &[f64] = &[123.0, 125.0, 121.0];
const FEW: &[f64] = &[0.5, 0.51, 0.49];
const MANY: &[f64] = &[2.1, 2.15, 2.05];

#[test]
fn a_sure_slowdown_is_stated_with_its_interval_and_the_misses_that_rose() {
    let found = headline(&study(vec![("buddy", program(ALONE, SLOW, [FEW, MANY]))]));
    assert_eq!(
        found,
        [
            "Beside scan, bzip2 runs 23 % slower (±2) as its L3 misses rise from 0.50 to 2.1 per 1000 instructions."
        ]
    );
}

#[test]
fn misses_that_did_not_move_beyond_chance_are_no_reason() {
    let noisy: &[f64] = &[0.1, 3.0, 1.0];
    let found = headline(&study(vec![("buddy", program(ALONE, SLOW, [FEW, noisy]))]));
    assert_eq!(found, ["Beside scan, bzip2 runs 23 % slower (±2)."]);
}

#[test]
fn misses_that_moved_the_other_way_are_no_reason() {
    let found = headline(&study(vec![("buddy", program(ALONE, SLOW, [MANY, FEW]))]));
    assert!(!found[0].contains("misses"), "{}", found[0]);
}

#[test]
fn a_slowdown_within_chance_is_not_stated() {
    let noisy: &[f64] = &[90.0, 130.0, 100.0];
    let found = headline(&study(vec![("buddy", program(ALONE, noisy, [FEW, MANY]))]));
    assert!(
        found[0].contains("no change of bzip2's speed can be told from chance"),
        "{}",
        found[0]
    );
    assert!(!found[0].contains("slower"));
}

#[test]
fn one_repetition_is_reported_without_a_reason_and_as_such() {
    let mut single = study(vec![(
        "buddy",
        program(&[100.0], &[123.0], [&[0.5], &[2.1]]),
    )]);
    single.repetitions = 1;
    let found = headline(&single);
    assert_eq!(
        found,
        [
            "This study cannot show how fast bzip2 runs beside scan (+23 %), because it has one repetition, and an interval needs 3; set repetitions = 3."
        ]
    );
}

#[test]
fn another_policy_is_compared_with_the_first() {
    let better = program(ALONE, &[106.0, 107.1, 104.9], [FEW, FEW]);
    let found = headline(&study(vec![
        ("buddy", program(ALONE, SLOW, [FEW, MANY])),
        ("rainbow", better),
    ]));
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].starts_with("Under buddy, beside scan, bzip2 runs 23 % slower"));
    assert!(
        found[1].starts_with("Under rainbow, bzip2 runs 6.0 % slower"),
        "{}",
        found[1]
    );
    assert!(
        found[1].contains("17 points less") && found[1].ends_with("than under buddy."),
        "{}",
        found[1]
    );
}

#[test]
fn policies_that_do_not_differ_are_not_ranked() {
    let same = program(ALONE, &[122.0, 126.0, 122.0], [FEW, MANY]);
    let found = headline(&study(vec![
        ("buddy", program(ALONE, SLOW, [FEW, MANY])),
        ("random", same),
    ]));
    assert!(
        found[1].starts_with("Between random and buddy, no difference"),
        "{}",
        found[1]
    );
}

#[test]
fn what_a_policy_costs_a_program_by_itself_is_stated() {
    let dear = program(&[110.0, 111.1, 108.9], &[112.0, 113.0, 111.0], [FEW, FEW]);
    let found = headline(&study(vec![
        ("buddy", program(ALONE, SLOW, [FEW, MANY])),
        ("rainbow", dear),
    ]));
    let cost = found
        .iter()
        .find(|s| s.starts_with("By itself, bzip2 takes 10 % more time"));
    assert!(cost.is_some(), "{found:?}");
}

#[test]
fn studies_without_numbers_give_no_sentence() {
    assert!(headline(&Study::default()).is_empty());
    let mut unknown = program(ALONE, SLOW, [FEW, MANY]);
    unknown.slowdown = Some(Sample::new(vec![f64::NAN; 3]));
    assert!(headline(&study(vec![("buddy", unknown)])).is_empty());
}

#[test]
fn a_partial_study_says_so_in_its_first_sentence() {
    let mut s = study(vec![("buddy", program(ALONE, SLOW, [FEW, MANY]))]);
    s.complete = false;
    assert!(headline(&s)[0].starts_with("PARTIAL: Beside scan"));
}

#[test]
fn equal_runs_are_called_equal() {
    let same = program(ALONE, SLOW, [FEW, MANY]);
    let found = headline(&study(vec![("buddy", same.clone()), ("lru", same)]));
    assert_eq!(
        found[1],
        "bzip2's slowdown is the same under lru as under buddy, repetition by repetition."
    );
}

/// Draws of a normal distribution, from a fixed seed (Box and Muller 1958).
struct Noise(u64);

impl Noise {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1);
        ((self.0 >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    fn sample(&mut self, mean: f64, deviation: f64, n: usize) -> Vec<f64> {
        let mut draw = || {
            let (radius, angle) = (self.unit(), self.unit());
            let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
            mean + deviation * normal
        };
        (0..n).map(|_| draw()).collect()
    }
}

/// Of so many studies with two policies and this slowdown, how many claim one.
fn claims(studies: usize, slowdown: f64, n: usize, noise: &mut Noise) -> usize {
    let mut claims = 0;
    for _ in 0..studies {
        let mut drawn = || {
            let alone = noise.sample(100.0, 3.0, n);
            let together = noise.sample(100.0 * (1.0 + slowdown), 3.0, n);
            let (few, many) = (noise.sample(2.0, 0.2, n), noise.sample(2.0, 0.2, n));
            program(&alone, &together, [&few, &many])
        };
        let policies = vec![("one", drawn()), ("other", drawn())];
        let found = piebald_report::findings(&study(policies));
        claims += usize::from(found.iter().any(|f| f.shown));
    }
    claims
}

#[test]
fn noise_alone_is_claimed_to_be_an_effect_in_a_twentieth_of_studies_at_most() {
    const STUDIES: usize = 2_000;
    // A twentieth, and three standard deviations of the number of such studies.
    let most = STUDIES / 20 + 3 * ((STUDIES as f64 * 0.05 * 0.95).sqrt() as usize);
    for n in [3, 5, 10] {
        let found = claims(STUDIES, 0.0, n, &mut Noise(n as u64));
        assert!(found <= most, "{found} of {STUDIES} with {n} repetitions");
    }
    // An effect of ten standard deviations is found nearly always.
    let found = claims(STUDIES, 0.3, 5, &mut Noise(1));
    assert!(found > STUDIES * 9 / 10, "{found}");
}

/// As many instructions as in a tenth of the cycles: a program that waits for memory.
fn waiting(mut program: ProgramResult) -> ProgramResult {
    let few = |metrics: &mut Metrics| metrics.instructions = [3e7; 3].into_iter().collect();
    few(&mut program.alone);
    program.together.iter_mut().for_each(few);
    program
}

/// One miss more for each thousand instructions is 100 ns more at most, and 767 were lost.
#[test]
fn misses_that_cannot_account_for_the_time_are_not_named() {
    let mpki: [&[f64]; 2] = [&[62.0, 62.1, 61.9], &[63.0, 63.1, 62.9]];
    let found = headline(&study(vec![("stock", waiting(program(ALONE, SLOW, mpki)))]));
    assert_eq!(found, ["Beside scan, bzip2 runs 23 % slower (±2)."]);
    // With eight more it is told.
    let mpki: [&[f64]; 2] = [&[62.0, 62.1, 61.9], &[70.0, 70.1, 69.9]];
    let found = headline(&study(vec![("stock", waiting(program(ALONE, SLOW, mpki)))]));
    assert!(
        found[0].contains("as its L3 misses rise from 62 to 70"),
        "{found:?}"
    );
}

/// The run alone ends by references and the other by time: they are not the same work.
#[test]
fn what_ends_by_time_is_not_compared_with_what_ends_by_references() {
    let mut timed = study(vec![
        ("stock", program(ALONE, SLOW, [FEW, MANY])),
        ("hvr", program(ALONE, &[150.0, 151.0, 149.0], [FEW, MANY])),
    ]);
    timed.until_us = Some(6000.0);
    timed.budget_refs = 200_000;
    for policy in &mut timed.policies {
        let together = policy.programs[0].together.as_mut().expect("a run");
        together.refs = Sample::new(vec![1e6; 3]);
    }
    let found = headline(&timed);
    assert!(
        found[0].starts_with("This study cannot show how fast bzip2 runs beside scan")
            && found[0].contains("ends after 200,000 references")
            && found[0].ends_with("compare policies, or leave out [course]."),
        "{found:?}"
    );
    // Policies are compared over the same time, by the time for each reference, never by slowdowns.
    assert!(
        found[1].starts_with(
            "Run together, bzip2 takes 22 % more time for each reference (±3) under hvr"
        ),
        "{found:?}"
    );
    assert!(found.iter().all(|s| !s.contains("points")), "{found:?}");
}

#[test]
fn an_interrupted_study_is_to_be_run_to_its_end() {
    let mut cut = study(vec![(
        "stock",
        program(&[100.0], &[150.0], [&[1.0], &[9.0]]),
    )]);
    cut.complete = false;
    cut.repetitions = 12;
    let found = headline(&cut);
    assert!(
        found[0]
            .ends_with("it has one repetition, and an interval needs 3; run all 12 repetitions."),
        "{found:?}"
    );
}

#[test]
fn where_the_end_comes_before_anything_is_measured_that_is_said() {
    let mut timed = study(vec![("stock", program(ALONE, SLOW, [FEW, MANY]))]);
    timed.until_us = Some(8000.0);
    let together = timed.policies[0].programs[0].together.as_mut();
    let together = together.expect("a run");
    together.refs = Sample::new(vec![0.0; 3]);
    timed.policies[0].programs[0].slowdown = None;
    assert_eq!(
        headline(&timed)[0],
        "This study cannot show how fast bzip2 runs, because nothing of bzip2 was measured before it left \
         or the runs ended, at 8000 us; set a lower warmup_refs or course.warmup_us, or a later leaves_us or \
         course.until_us."
    );
}

/// An interval that excludes zero, refused only among several questions, is no small change.
#[test]
fn what_is_refused_among_several_questions_is_not_called_small() {
    // 10, 18 and 14 %: p = 0.026.
    let weak: &[f64] = &[110.0, 119.18, 112.86];
    let noise: &[f64] = &[101.0, 112.0, 99.0];
    let found = headline(&study(vec![
        ("stock", program(ALONE, weak, [FEW, MANY])),
        ("random", program(ALONE, noise, [FEW, MANY])),
    ]));
    assert!(
        found[0].contains("no change of bzip2's speed can be told from chance among "),
        "{found:?}"
    );
    assert!(found.iter().all(|s| !s.contains("hardly")), "{found:?}");
}

/// What a sentence of a difference says first is a claim of its own: sure and small, or unsure among so
/// many questions although its own interval excludes zero.
#[test]
fn what_is_left_of_a_slowdown_is_said_as_it_is() {
    let left = |times: &[f64]| {
        let found = headline(&study(vec![
            ("stock", program(ALONE, SLOW, [FEW, MANY])),
            ("split", program(ALONE, times, [FEW, FEW])),
        ]));
        let sentence = found.iter().find(|s| s.contains("than under stock"));
        sentence.unwrap_or_else(|| panic!("{found:?}")).clone()
    };
    // 0.5 %, the same in each repetition.
    let small = left(&[100.5, 101.505, 99.495]);
    assert!(
        small.starts_with("Under split, bzip2's speed hardly changes (+0.5 % ±"),
        "{small}"
    );
    // 2.5, 4 and 2.8 %: p = 0.02.
    let weak = left(&[102.5, 105.04, 101.772]);
    assert!(
        weak.starts_with("Under split, bzip2's slowdown is 20 points less (±"),
        "{weak}"
    );
}

/// A policy that slows a program by itself: it loses less to others, and yet takes more time.
#[test]
fn less_slowdown_that_takes_more_time_is_told_with_it() {
    let found = headline(&study(vec![
        ("stock", program(ALONE, SLOW, [FEW, MANY])),
        (
            "split",
            program(&[200.0, 201.0, 199.0], &[210.0, 211.0, 209.0], [FEW, MANY]),
        ),
    ]));
    assert!(
        found[1].contains("than under stock, and yet takes 71 % more time (±"),
        "{found:?}"
    );
}

#[test]
fn programs_that_take_turns_need_many_slices() {
    let mut both = study(vec![("stock", program(ALONE, SLOW, [FEW, MANY]))]);
    both.slice_us = Some(4000.0);
    let cores = |study: &mut Study, a: &str, b: &str| {
        let programs = &mut study.policies[0].programs;
        (programs[0].cores, programs[1].cores) = (a.to_owned(), b.to_owned());
    };
    cores(&mut both, "0", "1-3");
    assert!(headline(&both)[0].starts_with("Beside scan, bzip2 runs 23 % slower"));
    cores(&mut both, "2", "1-3");
    // 123 ms are 30 slices.
    assert!(headline(&both)[0].starts_with("Beside scan, bzip2 runs 23 % slower"));
    both.slice_us = Some(20_000.0);
    both.budget_refs = 1_000_000;
    let found = headline(&both);
    assert!(
        found[0].contains(
            "because it takes turns with scan (cores 2), in slices of 20 ms, and 123 ms were \
             measured; set budget_refs = 1.7M or more."
        ),
        "{found:?}"
    );
}

/// With alone = "none" there is no slowdown.
#[test]
fn policies_are_compared_where_nothing_was_run_alone() {
    let together = |ms: &[f64]| {
        let mut program = program(ALONE, ms, [FEW, MANY]);
        (program.alone, program.slowdown) = (Metrics::default(), None);
        program
    };
    let found = headline(&study(vec![
        ("stock", together(ALONE)),
        ("colors", together(SLOW)),
    ]));
    assert_eq!(
        found,
        ["Run together, bzip2 takes 23 % more time (±2) under colors than under stock."]
    );
    let found = headline(&study(vec![
        ("stock", together(ALONE)),
        ("colors", together(ALONE)),
    ]));
    assert_eq!(found.len(), 1);
    assert!(
        found[0].starts_with("Between colors and stock, no difference of bzip2's time together"),
        "{found:?}"
    );
}
