//! Classes by what shares of the cache cost: by hand, on the borders, against fractions, and at the
//! ends of all numbers.

use piebald_policy::hvr::{Borders, Class, Counts, Timed};

/// By counters, with so many cycles for a miss.
fn told(miss_cycles: u32, counts: &Counts<'_>) -> Option<Class> {
    Borders::OURS.classify(&counts.predicted(miss_cycles)?)
}

/// A million cycles and instructions; misses with 1 to 8 eighths.
fn counts(lines: u64, misses: &[u64; 8]) -> Counts<'_> {
    Counts {
        cycles: 1_000_000,
        instructions: 1_000_000,
        lines,
        misses,
    }
}

#[test]
fn four_programs_by_hand() {
    // A tenth of a million cycles are 2000 misses of 50.
    let fits = [300, 200, 100, 100, 100, 100, 100, 100];
    let middle = [9000, 4000, 1000, 600, 500, 500, 500, 500];
    let high = [9000, 8000, 7000, 6000, 5000, 4000, 3000, 2000];
    for (lines, misses, class) in [
        (100, &fits, Class::Ccf),
        // The same misses, but prefetchers read many lines: a scan.
        (16_000, &fits, Class::Llct),
        (500, &middle, Class::Llcm),
        (2000, &high, Class::Llch),
        // Whoever suffers and sweeps suffers.
        (50_000, &middle, Class::Llcm),
    ] {
        assert_eq!(told(50, &counts(lines, misses)), Some(class), "{lines}");
    }
    // Misses that cost nothing hurt nobody, and dearer ones sooner.
    assert_eq!(told(0, &counts(0, &high)), Some(Class::Ccf));
    assert_eq!(told(500, &counts(0, &fits)), Some(Class::Llcm));
}

#[test]
fn borders_belong_to_the_kind_above() {
    let with = |least: u64, half: u64| {
        let mut misses = [7; 8];
        misses[0] += least;
        misses[3] += half;
        told(50, &counts(0, &misses))
    };
    assert_eq!(with(1999, 0), Some(Class::Ccf));
    assert_eq!(with(2000, 1999), Some(Class::Llcm));
    assert_eq!(with(2000, 2000), Some(Class::Llch));
    assert_eq!(told(50, &counts(4999, &[0; 8])), Some(Class::Ccf));
    assert_eq!(told(50, &counts(5000, &[0; 8])), Some(Class::Llct));
    // Fewer misses with less of the cache: nothing is lost.
    let odd = [0, 0, 0, 0, 0, 0, 0, 1_000_000];
    assert_eq!(told(50, &counts(0, &odd)), Some(Class::Ccf));
}

#[test]
fn the_same_as_in_fractions_with_any_number_of_parts() {
    let mut state = 7u64;
    let mut below = |n: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005);
        state = state.wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % n
    };
    let mut seen = Vec::new();
    for _ in 0..20_000 {
        let parts = 2 + below(40) as usize;
        let miss_cycles = below(300) as u32;
        let by = Borders {
            significant_bp: 1 + below(3000) as u32,
            sweeping_lines: 1 + below(20) as u32,
        };
        let mut misses: Vec<u64> = (0..parts).map(|_| below(3000)).collect();
        misses.sort_by(|a, b| b.cmp(a));
        let counts = Counts {
            cycles: 1 + below(2_000_000),
            instructions: 1 + below(2_000_000),
            lines: below(20_000),
            misses: &misses,
        };
        let longer = |of: usize| {
            let more = misses[(parts / of).max(1) - 1] - misses[parts - 1];
            (more * u64::from(miss_cycles)) as f64 / counts.cycles as f64
        };
        let border = f64::from(by.significant_bp) / 10_000.0;
        let lines = 1000.0 * counts.lines as f64 / counts.instructions as f64;
        // On a border fractions may round.
        let is_near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        if is_near(longer(2), border) || is_near(longer(8), border) {
            continue;
        }
        let class = match lines >= f64::from(by.sweeping_lines) {
            _ if longer(2) > border => Class::Llch,
            _ if longer(8) > border => Class::Llcm,
            true => Class::Llct,
            false => Class::Ccf,
        };
        let timed = counts.predicted(miss_cycles).expect("two parts");
        assert_eq!(by.classify(&timed), Some(class), "{by:?} {timed:?}");
        seen.push(class);
    }
    for class in Class::ALL {
        assert!(seen.iter().filter(|c| **c == class).count() > 100);
    }
}

#[test]
fn too_little_says_nothing_and_too_much_overflows_nothing() {
    let all = counts(0, &[0; 8]);
    for few in [
        Counts { misses: &[], ..all },
        Counts {
            misses: &[5],
            ..all
        },
        Counts { cycles: 0, ..all },
        Counts {
            instructions: 0,
            ..all
        },
    ] {
        assert_eq!(told(50, &few), None, "{few:?}");
    }
    let most = Borders {
        significant_bp: u32::MAX,
        sweeping_lines: u32::MAX,
    };
    let timed = Timed {
        time: [u64::MAX, u64::MAX, 1],
        instructions: u64::MAX,
        lines: u64::MAX,
    };
    assert_eq!(most.classify(&timed), Some(Class::Llch));
    let still = Timed {
        time: [u64::MAX; 3],
        ..timed
    };
    assert_eq!(most.classify(&still), Some(Class::Ccf));
    assert_eq!(Borders::OURS.classify(&still), Some(Class::Llct));
    // Times end at their largest value.
    let large = Counts {
        cycles: 1,
        instructions: 1,
        lines: 0,
        misses: &[u64::MAX, u64::MAX, 0, 0],
    };
    let timed = large.predicted(u32::MAX).expect("four parts");
    assert_eq!(timed.time, [u64::MAX, u64::MAX, 1]);
    let lasting = Counts {
        cycles: u64::MAX,
        ..large
    };
    assert_eq!(told(50, &lasting), Some(Class::Ccf));
}
