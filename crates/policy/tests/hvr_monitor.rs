//! SysMon: what samples come to, the thresholds of Figure 7, and programs over time.

use std::collections::BTreeMap;

use crate::hvr_kit::{Hvr, Random, arrive, hvr, setting, window};
use piebald_policy::hvr::{
    Arrival, Class, Config, ConfigError, Distribution, Facts, LowLocality, Mean, MonitorConfig,
    NeverReused, PageRecord, Pass, Policy, Profile, Rule, Sample, Sampler, Thresholds, Unfinished,
    Unseen, Watched, Window, Wpd,
};
use piebald_units::{Picos, TaskId};

type VecSampler = Sampler<Vec<PageRecord>>;

fn sampler(records: usize, config: MonitorConfig) -> VecSampler {
    Sampler::new(vec![PageRecord::UNUSED; records], config).unwrap()
}

/// As published, with one of the used pages watched.
const USED: MonitorConfig = MonitorConfig {
    watched: Watched::Used,
    ..MonitorConfig::PAPER
};

/// A window in which page `p` is used in the passes (from 1) that `used` names.
fn run(sampler: &mut VecSampler, used: &[Vec<u8>], random: u64) -> Window {
    assert_eq!(
        sampler.begin(used.len() as u32, random) as usize,
        used.len()
    );
    for pass in 1.. {
        for (page, passes) in used.iter().enumerate() {
            if passes.contains(&pass) {
                sampler.touched(page as u32);
            }
        }
        if sampler.end_pass() == Pass::Done {
            break;
        }
    }
    sampler.window().unwrap()
}

/// The first so many passes.
fn first(n: u8) -> Vec<u8> {
    (1..=n).collect()
}

/// Section 4.3: "VH [150, 200], H [100, 150], M [64, 100], L [10, 64] and VL [1, 10]", of
/// which M holds "larger than or equal to 64 but smaller than 100".
#[test]
fn ranges_begin_with_their_lower_bound() {
    let counts = [0, 1, 9, 10, 63, 64, 99, 100, 149, 150, 200];
    let used: Vec<Vec<u8>> = counts.iter().map(|n| first(*n)).collect();
    let window = run(&mut sampler(16, MonitorConfig::PAPER), &used, 1);
    assert_eq!(window.distribution.pages, [2; 5]);
    assert_eq!(window.distribution.used(), 10);
    let wpd = window.distribution.wpd(&MonitorConfig::PAPER.weights);
    // (2 x 2 + 1.5 x 2 + 1 x 2 + 0.5 x 2 + 0.1 x 2) / 10 = 1.02
    assert_eq!(
        wpd,
        Wpd {
            tenths: 102,
            used: 10
        }
    );
    assert_eq!(wpd.bp(), Some(10_200));
}

#[test]
fn reuse_is_the_mean_distance_of_the_watched_page() {
    let mut sampler = sampler(4, USED);
    let used = [vec![], vec![1, 6, 16], first(200), vec![3]];
    // From page 0 on, page 1 is the first that is used in the first pass.
    assert_eq!(run(&mut sampler, &used, 0).reuse_centi, Some(750));
    assert_eq!(sampler.watched(), Some(1));
    assert_eq!(run(&mut sampler, &used, 2).reuse_centi, Some(100));
    // From page 3 on, beginning again: page 3 is not used in the first pass.
    assert_eq!(run(&mut sampler, &used, 7).reuse_centi, Some(750));
    // Of all pages: 1, and 3, which is used once.
    let mut sampler = self::sampler(4, MonitorConfig::PAPER);
    assert_eq!(run(&mut sampler, &used, 1).reuse_centi, Some(750));
    assert_eq!(run(&mut sampler, &used, 7).reuse_centi, Some(20_000));
}

#[test]
fn a_page_is_chosen_in_the_first_pass_that_uses_any() {
    let mut sampler = sampler(4, USED);
    let used = [vec![], vec![9, 29], vec![10, 11], vec![]];
    assert_eq!(run(&mut sampler, &used, 2).reuse_centi, Some(2000));
    assert_eq!(sampler.watched(), Some(1));
}

#[test]
fn a_page_that_is_not_used_again_counts_as_a_whole_window_or_not_at_all() {
    let used = [vec![1], vec![]];
    for (watched, never_reused, expected) in [
        (Watched::Used, NeverReused::WholeWindow, Some(20_000)),
        (Watched::Used, NeverReused::Nothing, None),
        (Watched::Mapped, NeverReused::WholeWindow, Some(20_000)),
        (Watched::Mapped, NeverReused::Nothing, None),
    ] {
        let config = MonitorConfig {
            watched,
            never_reused,
            ..MonitorConfig::PAPER
        };
        let mut sampler = sampler(2, config);
        assert_eq!(run(&mut sampler, &used, 1).reuse_centi, expected);
        let watches = match watched {
            Watched::Used => 0,
            Watched::Mapped => 1,
        };
        assert_eq!(sampler.watched(), Some(watches));
    }
}

#[test]
fn windows_that_end_early_are_refused_and_leave_nothing_behind() {
    let mut sampler = sampler(4, MonitorConfig::PAPER);
    sampler.begin(4, 3);
    for page in 0..4 {
        sampler.touched(page);
    }
    assert_eq!(sampler.end_pass(), Pass::Left(199));
    let unfinished = Unfinished {
        passes: 1,
        needed: 200,
    };
    assert_eq!(sampler.window(), Err(unfinished));
    assert_eq!(unfinished.to_string(), "passes = 1; needed: 200");
    let window = run(&mut sampler, &[vec![7], vec![]], 0);
    assert_eq!(window.distribution.pages, [1, 0, 0, 0, 0]);
}

#[test]
fn a_program_without_pages_has_an_idle_window() {
    let mut sampler = sampler(4, MonitorConfig::PAPER);
    let window = run(&mut sampler, &[], u64::MAX);
    assert!(window.is_idle());
    assert_eq!((window.reuse_centi, sampler.watched()), (None, None));
    let wpd = window.distribution.wpd(&MonitorConfig::PAPER.weights);
    assert_eq!(wpd.bp(), None);
    let mut none = sampler_without_records();
    assert_eq!(none.begin(9, 5), 0);
    none.touched(0);
    assert_eq!(none.ignored(), 1);
}

fn sampler_without_records() -> VecSampler {
    sampler(0, MonitorConfig::PAPER)
}

#[test]
fn what_is_said_twice_or_beyond_the_window_does_not_count() {
    let mut sampler = sampler(4, USED);
    assert_eq!(sampler.begin(9, 0), 4, "more pages than records");
    for _ in 0..300 {
        sampler.touched(2);
        sampler.touched(2);
        sampler.touched(4);
        sampler.touched(u32::MAX);
        sampler.end_pass();
    }
    let window = sampler.window().unwrap();
    assert_eq!(window.distribution.pages, [0, 0, 0, 0, 1]);
    assert_eq!(window.reuse_centi, Some(100));
    // Two in each of 300 passes, and the other two in the last hundred.
    assert_eq!(sampler.ignored(), 600 + 200);
}

/// A window from the text: which passes used each page, kept as lists.
fn slow_window(used: &BTreeMap<u32, Vec<u8>>, slots: u32, start: u32, c: &MonitorConfig) -> Window {
    let mut distribution = Distribution::default();
    for passes in used.values() {
        let range = c.bounds.iter().filter(|b| passes.len() >= usize::from(**b));
        distribution.pages[range.count()] += 1;
    }
    let watched = match c.watched {
        Watched::Mapped => Some(start),
        Watched::Used => {
            let begin = used.values().map(|passes| passes[0]).min();
            let at_once = used.iter().filter(|(_, passes)| Some(passes[0]) == begin);
            let ahead = at_once.map(|(page, _)| ((page + slots - start) % slots, *page));
            ahead.min().map(|(_, page)| page)
        }
    };
    let passes = watched.and_then(|page| used.get(&page));
    let distances: Vec<u32> = passes.map_or(vec![], |passes| {
        let pairs = passes.windows(2);
        pairs.map(|w| u32::from(w[1] - w[0])).collect()
    });
    let reuse_centi = match (distances.len() as u32, c.never_reused) {
        (0, NeverReused::Nothing) => None,
        (0, NeverReused::WholeWindow) => watched.map(|_| u32::from(c.passes) * 100),
        (n, _) => Some(distances.iter().sum::<u32>() * 100 / n),
    };
    Window {
        distribution,
        reuse_centi,
    }
}

#[test]
fn fuzz_windows_are_what_the_lists_of_passes_say() {
    for case in 0..setting("PIEBALD_FUZZ_CASES", 200).min(3000) {
        let mut random = Random(case);
        let passes = 6 + random.below(245) as u8;
        let config = MonitorConfig {
            passes,
            bounds: [2, 3, 4, 5],
            watched: [Watched::Used, Watched::Mapped][random.below(2) as usize],
            never_reused: [NeverReused::WholeWindow, NeverReused::Nothing]
                [random.below(2) as usize],
            ..MonitorConfig::PAPER
        };
        let slots = 1 + random.below(12) as u32;
        let mut sampler = sampler(12, config);
        // What another window left must not matter.
        sampler.begin(12, random.next());
        sampler.touched(random.below(12) as u32);
        sampler.end_pass();
        let word = random.next();
        sampler.begin(slots, word);
        let rate = 1 + random.below(60);
        let mut used: BTreeMap<u32, Vec<u8>> = BTreeMap::new();
        for pass in 1..=passes {
            for _ in 0..slots {
                let page = random.below(u64::from(slots)) as u32;
                let list = used.entry(page).or_default();
                if random.below(60) < rate {
                    sampler.touched(page);
                    if list.last() != Some(&pass) {
                        list.push(pass);
                    }
                }
            }
            sampler.end_pass();
        }
        used.retain(|_, passes| !passes.is_empty());
        let start = (word % u64::from(slots)) as u32;
        let expected = slow_window(&used, slots, start, &config);
        assert_eq!(sampler.window(), Ok(expected), "case {case}");
    }
}

/// Hot pages of three windows, re-use in hundredths, and WPD in tenths of ten pages.
fn class_of(hot: [u64; 3], reuse_centi: Option<u64>, tenths: u64) -> Class {
    Thresholds::PAPER.classify(&facts(hot, reuse_centi, tenths))
}

fn facts(hot: [u64; 3], reuse_centi: Option<u64>, tenths: u64) -> Facts {
    Facts {
        hot_pages: Mean {
            sum: hot.iter().sum(),
            nr: 3,
        },
        reuse_centi: reuse_centi.map_or(Mean::NONE, Mean::of),
        wpd: Wpd { tenths, used: 10 },
    }
}

/// Figure 7 with 20, 100, 10 % and 1000: each test on, and just beside, its threshold.
#[test]
fn figure_7_decides_at_its_thresholds() {
    // AVG(re-use) <= rt and AVG(hot) > ccf
    assert_eq!(class_of([100, 100, 101], Some(2000), 100), Class::Llct);
    assert_eq!(class_of([100, 100, 100], Some(2000), 100), Class::Ccf);
    assert_eq!(class_of([100, 100, 101], Some(2001), 100), Class::Llcm);
    assert_eq!(class_of([100, 100, 101], None, 100), Class::Llcm);
    // WPD <= 10 %, of ten pages: a weight of one
    assert_eq!(class_of([500; 3], Some(5000), 10), Class::Llct);
    assert_eq!(class_of([500; 3], Some(5000), 11), Class::Llcm);
    // AVG(hot) >= llch
    assert_eq!(class_of([1000, 1000, 999], Some(5000), 100), Class::Llcm);
    assert_eq!(class_of([1000, 1000, 1000], Some(5000), 100), Class::Llch);
    assert_eq!(class_of([0, 0, 3000], Some(5000), 100), Class::Llch);
    assert_eq!(class_of([u64::MAX / 3; 3], Some(5000), 100), Class::Llch);
    assert_eq!(
        Thresholds::PAPER.classify(&Facts::default()),
        Class::Ccf,
        "no page"
    );
}

/// Sections 4.2 and 4.3: hmmer has at most 19 hot pages, mcf 1143 to 15813; libquantum
/// comes back after about 20; sjeng has many pages that it seldom uses.
#[test]
fn the_papers_programs_are_what_it_says() {
    assert_eq!(class_of([19, 19, 19], Some(100), 150), Class::Ccf);
    assert_eq!(class_of([1143, 15_813, 1143], Some(6000), 60), Class::Llch);
    assert_eq!(class_of([200, 190, 210], Some(1950), 15), Class::Llct);
    assert_eq!(class_of([300, 310, 290], Some(4500), 60), Class::Llcm);
    let sjeng = facts([303; 3], Some(2300), 10);
    let to = |low_locality| Thresholds {
        low_locality,
        ..Thresholds::PAPER
    };
    assert_eq!(to(LowLocality::Llct).classify(&sjeng), Class::Llct);
    assert_eq!(to(LowLocality::Ccf).classify(&sjeng), Class::Ccf);
}

const CONFIG: MonitorConfig = MonitorConfig::PAPER;

/// Windows of each class: hot pages and JOB2's.
fn windows_of(class: Class) -> (u32, Window) {
    match class {
        Class::Ccf => (19, window(30, 500)),
        Class::Llcm => (400, window(400, 5000)),
        Class::Llch => (4000, window(4000, 5000)),
        Class::Llct => (400, window(400, 500)),
    }
}

fn sample(profile: &mut Profile, class: Class) -> bool {
    let (hot, job_2) = windows_of(class);
    profile.hot_pages(&CONFIG, hot);
    profile.window(&CONFIG, &job_2)
}

#[test]
fn three_windows_make_a_class_and_a_spike_does_not() {
    let mut profile = Profile::NEW;
    assert!(!sample(&mut profile, Class::Ccf));
    assert!(!sample(&mut profile, Class::Ccf));
    assert_eq!(profile.class(), None);
    assert!(sample(&mut profile, Class::Ccf));
    assert_eq!(profile.class(), Some(Class::Ccf));
    // One window of 250 pages: (19 + 19 + 250) / 3 = 96.
    profile.hot_pages(&CONFIG, 250);
    assert!(!profile.window(&CONFIG, &window(250, 5000)));
    assert_eq!(profile.facts(&CONFIG).hot_pages.rounded(), Some(96));
    assert_eq!(profile.interval(&CONFIG), Picos(CONFIG.interval.0 * 2));
}

#[test]
fn who_comes_back_is_what_it_was_found_to_be_until_its_windows_say_otherwise() {
    let mut hvr = hvr(Config::PAPER);
    let (first, _) = arrive(&mut hvr, 1, None);
    arrive(&mut hvr, 2, Some(Class::Llcm));
    let watch = |hvr: &mut Hvr, id, class| {
        let (hot, job_2) = windows_of(class);
        hvr.hot_pages(id, hot).unwrap();
        hvr.window(id, &job_2).unwrap()
    };
    for _ in 0..3 {
        watch(&mut hvr, first, Class::Llct);
    }
    let profile = *hvr.program(first).unwrap().profile();
    assert_eq!(hvr.exit(first).unwrap().rule, Rule::Modest);
    let again = Arrival {
        profile,
        ..Arrival::of(TaskId(1))
    };
    let (second, change) = hvr.arrive(&again).unwrap();
    hvr.validate().unwrap();
    assert_eq!((change.policy, change.rule), (Policy::CurveVp, Rule::One));
    assert_eq!(hvr.program(second).unwrap().profile(), &profile);
    // Averages go on as well: of 400, 400 and 19 hot pages, of 400, 19 and 19, and then it takes
    // two windows in a row.
    for _ in 0..3 {
        watch(&mut hvr, second, Class::Ccf);
    }
    assert_eq!(hvr.program(second).unwrap().class(), Some(Class::Llct));
    watch(&mut hvr, second, Class::Ccf);
    assert_eq!(hvr.program(second).unwrap().class(), Some(Class::Ccf));
    assert_eq!(hvr.exit(second).unwrap().rule, Rule::Modest);
    hvr.validate().unwrap();
}

#[test]
fn another_class_must_show_twice_in_a_row() {
    let mut profile = Profile::NEW;
    for _ in 0..3 {
        sample(&mut profile, Class::Llcm);
    }
    // The average of 400, 400 and 4000 is above 1000 at once.
    assert!(!sample(&mut profile, Class::Llch));
    assert_eq!(profile.class(), Some(Class::Llcm));
    assert!(sample(&mut profile, Class::Llch));
    assert_eq!(profile.class(), Some(Class::Llch));
}

/// Averages of one, so that every window speaks for itself.
const NERVOUS: MonitorConfig = MonitorConfig {
    averaged: 1,
    ..MonitorConfig::PAPER
};

/// The class after each of a row of windows.
fn classes(config: &MonitorConfig, windows: &[Class]) -> Vec<Option<Class>> {
    let mut profile = Profile::NEW;
    let mut seen = Vec::new();
    for class in windows {
        let (hot, reuse) = match class {
            Class::Ccf => (19, 5000),
            Class::Llcm => (400, 5000),
            Class::Llch => (4000, 5000),
            Class::Llct => (400, 500),
        };
        profile.hot_pages(config, hot);
        let before = profile.class();
        let changed = profile.window(config, &window(hot, reuse));
        assert_eq!(changed, before != profile.class());
        seen.push(profile.class());
    }
    seen
}

#[test]
fn a_program_that_changes_in_every_window_stays_what_it_was() {
    let (m, h, t) = (Class::Llcm, Class::Llch, Class::Llct);
    let windows: Vec<Class> = [m, h].into_iter().cycle().take(40).collect();
    assert_eq!(classes(&NERVOUS, &windows), [Some(m); 40]);
    // One that was never LLCM again, and nothing twice in a row: the worst of them.
    let seen = classes(&NERVOUS, &[m, h, t, h, t, h, t]);
    let after = [m, m, m, m, t, t, t];
    assert_eq!(seen, after.map(Some));
    // The worst, not the last.
    let seen = classes(&NERVOUS, &[m, t, h, t, h, t]);
    assert_eq!(seen, [m, m, m, m, t, t].map(Some));
    let at_once = MonitorConfig {
        confirm: 1,
        ..NERVOUS
    };
    assert_eq!(
        classes(&at_once, &windows),
        windows.into_iter().map(Some).collect::<Vec<_>>()
    );
}

#[test]
fn the_interval_grows_by_rising_steps_while_the_class_holds() {
    let mut profile = Profile::NEW;
    let mut seconds = Vec::new();
    for _ in 0..10 {
        sample(&mut profile, Class::Llcm);
        seconds.push(profile.interval(&CONFIG).0 / 1_000_000_000_000);
    }
    assert_eq!(seconds, [3, 3, 3, 6, 12, 21, 33, 48, 60, 60]);
    // JOB1 alone may say that something is different now.
    profile.hot_pages(&CONFIG, 400);
    assert_eq!(profile.interval(&CONFIG), CONFIG.max_interval);
    profile.hot_pages(&CONFIG, 4000);
    assert_eq!(profile.interval(&CONFIG), CONFIG.interval);
    assert_eq!(profile.class(), Some(Class::Llcm));
}

#[test]
fn windows_of_a_sleeping_program_say_nothing() {
    let mut profile = Profile::NEW;
    for _ in 0..9 {
        profile.hot_pages(&CONFIG, 0);
        assert!(!profile.window(&CONFIG, &Window::default()));
    }
    assert_eq!(profile, Profile::NEW);
    for _ in 0..3 {
        sample(&mut profile, Class::Llct);
    }
    let before = profile;
    for _ in 0..9 {
        profile.hot_pages(&CONFIG, 0);
        profile.window(&CONFIG, &Window::default());
    }
    assert_eq!(profile, before);
}

#[test]
fn who_ran_without_being_seen_fits_its_core() {
    let config = MonitorConfig {
        unseen: Unseen::Ran,
        ..MonitorConfig::PAPER
    };
    let mut profile = Profile::NEW;
    let mut sampler = sampler(4, config);
    for n in 1..=3 {
        profile.hot_pages(&config, 0);
        let idle = run(&mut sampler, &[vec![], vec![]], n);
        assert!(idle.is_idle());
        profile.window(&config, &idle);
        assert_eq!(profile.class().is_some(), n == 3);
    }
    assert_eq!(profile.class(), Some(Class::Ccf));
}

/// The least weight is 0.1: a WPD of 10.00 % needs every page to be used seldom.
#[test]
fn one_page_that_is_used_often_does_not_lift_a_stream_above_the_margin() {
    let pages = [1999, 0, 0, 0, 1];
    let wpd = Distribution { pages }.wpd(&MonitorConfig::PAPER.weights);
    assert_eq!(wpd.bp(), Some(1009));
    let facts = Facts {
        hot_pages: Mean::of(400),
        reuse_centi: Mean::of(4000),
        wpd,
    };
    assert_eq!(Thresholds::PAPER.classify(&facts), Class::Llct);
    let exact = Thresholds {
        hot_freq_bp: 1000,
        ..Thresholds::PAPER
    };
    assert_eq!(exact.classify(&facts), Class::Llcm);
}

#[test]
fn without_any_reuse_time_the_first_test_is_not_passed() {
    let config = MonitorConfig {
        never_reused: NeverReused::Nothing,
        ..CONFIG
    };
    let silent = Window {
        reuse_centi: None,
        ..window(400, 0)
    };
    let mut profile = Profile::NEW;
    for _ in 0..3 {
        profile.hot_pages(&config, 400);
        profile.window(&config, &silent);
    }
    assert_eq!(profile.class(), Some(Class::Llcm));
}

/// The averages, from lists of all that came.
#[test]
fn fuzz_averages_are_those_of_the_last_values() {
    for case in 0..setting("PIEBALD_FUZZ_CASES", 200).min(3000) {
        let mut random = Random(case);
        let averaged = 1 + random.below(8) as u8;
        let config = MonitorConfig { averaged, ..CONFIG };
        let (mut profile, mut hot, mut reuse) = (Profile::NEW, vec![], vec![]);
        for _ in 0..40 {
            let n = random.below(5000) as u32;
            match random.below(2) {
                0 => {
                    profile.hot_pages(&config, n);
                    hot.extend((n > 0).then_some(u64::from(n)));
                }
                _ => {
                    profile.window(&config, &window(1, n));
                    reuse.push(u64::from(n));
                }
            }
            let mean = |all: &[u64]| match all.len().checked_sub(usize::from(averaged)) {
                None => Mean::NONE,
                Some(from) => Mean {
                    sum: all[from..].iter().sum(),
                    nr: u32::from(averaged),
                },
            };
            let facts = profile.facts(&config);
            assert_eq!(facts.hot_pages, mean(&hot));
            assert_eq!(facts.reuse_centi, mean(&reuse));
        }
    }
}

#[test]
fn a_sample_has_one_page_of_each_part() {
    let all = Sample::draw(5, 100, 9);
    let pages: Vec<u32> = (0..5).filter_map(|s| all.page(s)).collect();
    assert_eq!((all.slots(), pages), (5, vec![0, 1, 2, 3, 4]));
    let none = Sample::draw(0, 100, 9);
    assert_eq!((none.slots(), none.page(0), none.scale(7)), (0, None, 0));
    assert_eq!(Sample::draw(7, 0, 9).page(0), None);
    for (pages, limit) in [(1000, 64), (65, 64), (u32::MAX, 3), (u32::MAX, u32::MAX)] {
        let sample = Sample::draw(pages, limit, 4711);
        let slots = (0..sample.slots()).step_by(1 + sample.slots() as usize / 997);
        for slot in slots {
            let page = u128::from(sample.page(slot).unwrap());
            let part = |s: u32| u128::from(s) * u128::from(pages) / u128::from(sample.slots());
            assert!(
                part(slot) <= page && page < part(slot + 1),
                "{pages} {slot}"
            );
        }
        assert_eq!(sample.page(sample.slots()), None);
        assert_eq!(sample.scale(sample.slots()), pages);
    }
    assert_eq!(Sample::draw(1000, 64, 1), Sample::draw(1000, 64, 1));
}

/// Any page of a part is as likely as any other, so counts can be scaled.
#[test]
fn a_sample_is_even() {
    let mut seen = [0u32; 40];
    for seed in 0..20_000 {
        let sample = Sample::draw(40, 4, seed);
        for slot in 0..4 {
            seen[sample.page(slot).unwrap() as usize] += 1;
        }
    }
    // 2000 expected; five standard deviations of 42 are 212.
    assert!(seen.iter().all(|n| n.abs_diff(2000) < 212), "{seen:?}");
    // 300 hot pages of 10000 at the end of memory, seen through 1000.
    let hot = |page: u32| page >= 9700;
    let scaled = (0..50).map(|seed| {
        let sample = Sample::draw(10_000, 1000, seed);
        let found = (0..1000).filter(|s| sample.page(*s).is_some_and(hot));
        sample.scale(found.count() as u32)
    });
    assert!(scaled.into_iter().all(|n| n == 300));
}

fn refused(config: MonitorConfig) -> String {
    let refused = Sampler::new(vec![PageRecord::UNUSED; 1], config);
    refused.expect_err("a wrong parameter").to_string()
}

#[test]
fn wrong_parameters_are_refused_by_name() {
    let c = MonitorConfig::PAPER;
    assert_eq!(
        refused(MonitorConfig { passes: 0, ..c }),
        "passes = 0; allowed: 1 to 250"
    );
    assert_eq!(
        refused(MonitorConfig { passes: 251, ..c }),
        "passes = 251; allowed: 1 to 250"
    );
    let bounds = [10, 64, 100, 100];
    assert_eq!(
        refused(MonitorConfig { bounds, ..c }),
        "bounds = 10, 64, 100, 100; allowed: rising numbers from 2 to passes = 200"
    );
    let short = MonitorConfig { passes: 149, ..c };
    let (bounds, passes) = (c.bounds, 149);
    assert_eq!(
        Sampler::new(vec![PageRecord::UNUSED; 1], short).err(),
        Some(ConfigError::Bounds { bounds, passes })
    );
    assert_eq!(
        refused(MonitorConfig { averaged: 9, ..c }),
        "averaged = 9; allowed: 1 to 8"
    );
    assert_eq!(
        refused(MonitorConfig { confirm: 0, ..c }),
        "confirm = 0; allowed: 1 to 100"
    );
    let interval = Picos(0);
    assert_eq!(
        refused(MonitorConfig { interval, ..c }),
        "interval = 0; allowed: 1 and more"
    );
    let max_interval = Picos(5);
    assert_eq!(
        refused(MonitorConfig { max_interval, ..c }),
        "max_interval = 5; allowed: 3000000000000 and more"
    );
}

/// Section 4.3: 10 us; and the walk, as long as the largest program's.
#[test]
fn the_window_of_job_1_includes_the_walk() {
    assert_eq!(CONFIG.hot_window_of(0), Picos(10_000_000));
    assert_eq!(CONFIG.hot_window_of(446_000), Picos(4_470_000_000));
    assert_eq!(CONFIG.hot_window_of(u32::MAX), Picos(42_949_682_950_000));
}
