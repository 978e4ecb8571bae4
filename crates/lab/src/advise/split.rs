//! The best split of colors among programs.
//!
//! Utility-based cache partitioning (Qureshi and Patt, MICRO 2006) looks for the numbers
//! of ways whose misses together are fewest, with a greedy look-ahead, since all splits
//! were too many for hardware. Here all are looked at, by dynamic programming over the
//! programs: `programs * colors^2` steps.

/// How many colors each program gets, at least one each, all in all at most `colors`, such
/// that the sum of the costs is least. `costs[p][k - 1]` is what `k` colors cost program
/// `p`; an infinite cost is one that cannot be paid. Of equal sums the most even split is
/// taken, as nothing speaks against leaving each program room. `None` if no split can be
/// paid, or there is no program.
pub(super) fn best_split(costs: &[Vec<f64>], colors: u32) -> Option<Vec<u32>> {
    let all = colors as usize;
    // Least cost of the programs so far with exactly so many colors, and how uneven it is.
    let mut least = vec![(f64::INFINITY, u64::MAX); all + 1];
    least[0] = (0.0, 0);
    let mut chosen = Vec::new();
    for own in costs {
        let mut next = vec![(f64::INFINITY, u64::MAX); all + 1];
        let mut choice = vec![0u32; all + 1];
        for used in 1..=all {
            for (k, cost) in (1..=used).zip(own) {
                let (before, uneven) = least[used - k];
                if !(before + cost).is_finite() {
                    continue;
                }
                let sum = (before + cost, uneven + (k * k) as u64);
                if is_less(sum, next[used]) {
                    next[used] = sum;
                    choice[used] = k as u32;
                }
            }
        }
        least = next;
        chosen.push(choice);
    }
    // Colors that nobody has are of no use: of equal sums the one with more of them.
    let mut used = 0;
    for n in 1..=all {
        let (sum, best) = (least[n].0, least[used].0);
        if used == 0 || sum < best || same(sum, best) {
            used = n;
        }
    }
    if chosen.is_empty() || !least[used].0.is_finite() {
        return None;
    }
    let mut split = vec![0; costs.len()];
    for (share, choice) in split.iter_mut().zip(&chosen).rev() {
        *share = choice[used];
        used -= choice[used] as usize;
    }
    Some(split)
}

/// Sums that differ by rounding only are equal.
fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

fn is_less(a: (f64, u64), b: (f64, u64)) -> bool {
    match same(a.0, b.0) {
        true => a.1 < b.1,
        false => a.0 < b.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All splits, one after the other: the least sum.
    fn brute_force(costs: &[Vec<f64>], left: u32) -> f64 {
        let Some((own, others)) = costs.split_first() else {
            return 0.0;
        };
        let of = |k: u32| own[k as usize - 1] + brute_force(others, left - k);
        (1..=left).map(of).fold(f64::INFINITY, f64::min)
    }

    fn sum(costs: &[Vec<f64>], split: &[u32]) -> f64 {
        let pairs = costs.iter().zip(split);
        pairs.map(|(own, k)| own[*k as usize - 1]).sum()
    }

    #[test]
    fn no_split_is_better() {
        let mut x = 7u64;
        let mut draw = |n: u64| {
            x = x
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            (x >> 33) % n
        };
        for round in 0..600 {
            let colors = 1 + draw(9) as u32;
            let programs = 1 + draw(4) as usize;
            let costs: Vec<Vec<f64>> = (0..programs)
                .map(|_| {
                    let falling = draw(2) == 0;
                    let few = draw(3) as u32;
                    let mut own: Vec<f64> = (0..colors).map(|_| draw(20) as f64).collect();
                    if falling {
                        own.sort_by(|a, b| b.total_cmp(a));
                    }
                    // Some hold no program.
                    (0..few.min(colors)).for_each(|k| own[k as usize] = f64::INFINITY);
                    own
                })
                .collect();
            let best = brute_force(&costs, colors);
            match best_split(&costs, colors) {
                None => assert!(best.is_infinite(), "{round}: {costs:?}"),
                Some(split) => {
                    assert!(split.iter().all(|k| *k >= 1));
                    assert!(split.iter().sum::<u32>() <= colors, "{split:?}");
                    assert_eq!(sum(&costs, &split), best, "{round}: {costs:?} {split:?}");
                }
            }
        }
    }

    #[test]
    fn the_greedy_step_that_gains_nothing_is_seen_through() {
        // The first gains nothing before its fourth color: one color at a time would
        // give all to the second.
        let first = vec![100.0, 100.0, 100.0, 0.0, 0.0];
        let second = vec![10.0, 9.0, 8.0, 7.0, 6.0];
        assert_eq!(best_split(&[first, second], 5), Some(vec![4, 1]));
    }

    #[test]
    fn what_costs_nothing_is_split_evenly_and_whole() {
        let flat = vec![3.0; 16];
        assert_eq!(
            best_split(&[flat.clone(), flat.clone()], 16),
            Some(vec![8, 8])
        );
        let mut cliff = vec![5.0; 16];
        cliff[9..].fill(1.0);
        // Ten are needed, no more.
        assert_eq!(best_split(&[cliff, flat], 16), Some(vec![10, 6]));
        assert_eq!(best_split(&[], 16), None);
        assert_eq!(best_split(&[vec![1.0], vec![1.0]], 1), None);
    }
}
