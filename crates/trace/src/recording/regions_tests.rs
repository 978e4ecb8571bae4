//! Tests of the choice of regions.

use super::{super::vectors::BlockVector, *};

/// A thread that goes through phases: each has its own blocks, and some blocks
/// that all share vary from interval to interval without a pattern.
fn phases(order: &[u64]) -> ThreadVectors {
    let intervals = order.iter().enumerate().map(|(i, &phase)| {
        let noise = |k: u64| 1 + mix(i as u64 * 64 + k + 1) % 10;
        let mut blocks: Vec<_> = (0..40).map(|k| (BlockKey(k), noise(k))).collect();
        let shared: u64 = blocks.iter().map(|b| b.1).sum();
        blocks.push((BlockKey(100 + phase * 2), 400));
        blocks.push((BlockKey(101 + phase * 2), 600 - shared));
        BlockVector {
            start: i as u64 * 1000,
            instrs: 1000,
            blocks,
        }
    });
    ThreadVectors {
        thread: 0,
        intervals: intervals.collect(),
    }
}

#[test]
fn phases_are_found_and_weighted() {
    let mut order = vec![1; 50];
    order.extend([2; 30]);
    order.extend([3; 15]);
    order.extend([1; 5]);
    let chosen = choose(&phases(&order), &RegionOptions::default());
    let mut weights: Vec<(u64, i64)> = chosen
        .regions
        .iter()
        .map(|r| {
            (
                order[(r.start / 1000) as usize],
                (r.weight * 100.0).round() as i64,
            )
        })
        .collect();
    weights.sort_unstable();
    assert_eq!(weights, [(1, 55), (2, 30), (3, 15)]);
    assert!(chosen.error < chosen.spread / 10.0, "{chosen:?}");
}

#[test]
fn weights_sum_to_one_and_the_seed_decides() {
    let order: Vec<u64> = (0..200).map(|i| mix(i) % 6).collect();
    let vectors = phases(&order);
    let options = RegionOptions::default();
    let a = choose(&vectors, &options);
    assert_eq!(a, choose(&vectors, &options));
    let sum: f64 = a.regions.iter().map(|r| r.weight).sum();
    assert!((sum - 1.0).abs() < 1e-9);
    let other = choose(&vectors, &RegionOptions { seed: 2, ..options });
    assert_ne!(a.scores, other.scores);
}

#[test]
fn a_uniform_thread_needs_one_region() {
    let mut vectors = phases(&[4; 40]);
    for v in &mut vectors.intervals {
        v.blocks = vec![(BlockKey(1), 1000)];
    }
    let chosen = choose(&vectors, &RegionOptions::default());
    assert_eq!(chosen.regions.len(), 1);
    assert_eq!((chosen.regions[0].weight, chosen.error), (1.0, 0.0));
    // Not the cold beginning: the middle.
    assert_eq!(chosen.regions[0].start, 20_000);
}

#[test]
fn few_intervals_are_no_trouble() {
    assert!(
        choose(&phases(&[]), &RegionOptions::default())
            .regions
            .is_empty()
    );
    for n in 1..4 {
        let vectors = phases(&vec![1; n]);
        let chosen = choose(&vectors, &RegionOptions::default());
        assert!((1..=n).contains(&chosen.regions.len()));
    }
}

#[test]
fn the_score_is_the_log_likelihood_less_the_parameters_price() {
    // Two points at distance 2 on one axis, one cluster: squares 2, variance
    // 2 / (15 * 1), likelihood -15 ln(2 pi v) - 7.5, 16 parameters.
    let mut points = [[0.0; DIMENSIONS]; 2];
    points[1][0] = 2.0;
    let clustering = cluster(&points, 1, &mut Random(1));
    assert_eq!(clustering.squares, 2.0);
    let v: f64 = 2.0 / 15.0;
    let expected = -15.0 * (2.0 * std::f64::consts::PI * v).ln() - 7.5 - 8.0 * 2f64.ln();
    assert!((score(&points, &clustering) - expected).abs() < 1e-9);
}
