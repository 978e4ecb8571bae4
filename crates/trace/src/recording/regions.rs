//! Which parts of a long program stand for the whole.
//!
//! T. Sherwood, E. Perelman, G. Hamerly, B. Calder: *Automatically Characterizing
//! Large Scale Program Behavior*, ASPLOS 2002. Intervals of a program are compared
//! by their basic-block vectors, clustered with k-means after a random projection
//! to 15 dimensions, and each cluster is represented by the interval nearest to
//! its centre, weighted by the cluster's instructions.
//!
//! Deviations:
//!
//! * Clusters are started by k-means++ (Arthur and Vassilvitskii, SODA 2007)
//!   instead of at random points, which needs fewer restarts.
//! * The Bayesian information criterion is that of identical spherical Gaussians
//!   (Pelleg and Moore, *X-means*, ICML 2000) with the variance estimated over all
//!   dimensions, `sum / (d * (n - k))`, as the maximum-likelihood derivation gives
//!   it; the paper leaves the constant open. As in the paper, the smallest k is
//!   taken whose score reaches 90 % of the way from the lowest to the highest.
//! * Of intervals that are equally near to their centre the middle one is taken. The
//!   first would be the one with cold caches and untouched pages, which block
//!   vectors do not see: it stood for a steady scan with three times its cycles.
//! * Vectors are weighted by instructions only where weights are told: all
//!   intervals but the last are equally long.

use super::vectors::{BlockKey, ThreadVectors};

/// Dimensions after projection (section 4.2 of the paper).
pub const DIMENSIONS: usize = 15;

/// How regions are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RegionOptions {
    /// Seed of the projection and of the starting centres.
    pub seed: u64,
    /// Most regions; the paper tries up to 10. At least 1.
    pub max_regions: usize,
    /// Clusterings tried for each number of regions; the paper uses 5.
    pub tries: usize,
    /// How far from the lowest to the highest score the chosen one must lie;
    /// the paper uses 0.9.
    pub score_share: f64,
}

impl Default for RegionOptions {
    fn default() -> Self {
        Self {
            seed: 1,
            max_regions: 10,
            tries: 5,
            score_share: 0.9,
        }
    }
}

/// A part that stands for others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Number of its first instruction in the thread.
    pub start: u64,
    /// Its length in instructions.
    pub instrs: u64,
    /// Share of the thread's instructions that it stands for; all sum to 1.
    pub weight: f64,
}

/// The chosen regions of a thread.
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    /// By rising start.
    pub regions: Vec<Region>,
    /// Mean distance of an interval from its region in the projected space,
    /// weighted by instructions. Vectors are shares, so that two intervals
    /// without a common block lie about 1 to 3 apart.
    pub error: f64,
    /// The same for one region alone: what `error` improves on.
    pub spread: f64,
    /// Score of each number of regions that was tried, from 1.
    pub scores: Vec<f64>,
}

type Point = [f64; DIMENSIONS];

/// Chooses regions; equal input and seed give equal regions. A thread without
/// intervals has none.
pub fn choose(vectors: &ThreadVectors, options: &RegionOptions) -> Regions {
    let points: Vec<Point> = vectors
        .intervals
        .iter()
        .map(|v| project(&v.blocks, v.instrs, options.seed))
        .collect();
    let lengths: Vec<u64> = vectors.intervals.iter().map(|v| v.instrs).collect();
    if points.is_empty() {
        return Regions {
            regions: Vec::new(),
            error: 0.0,
            spread: 0.0,
            scores: Vec::new(),
        };
    }
    let most = options.max_regions.clamp(1, points.len());
    let clusterings: Vec<Clustering> = (1..=most)
        .map(|k| best_clustering(&points, k, options))
        .collect();
    let scores: Vec<f64> = clusterings.iter().map(|c| score(&points, c)).collect();
    let chosen = &clusterings[sufficient(&scores, options.score_share)];
    let nearest = representatives(&points, chosen);
    let total: u64 = lengths.iter().sum();
    let mut regions: Vec<Region> = nearest
        .iter()
        .enumerate()
        .map(|(cluster, &interval)| {
            let members = chosen.member_of.iter().zip(&lengths);
            let instrs: u64 = members.filter(|m| *m.0 == cluster).map(|m| m.1).sum();
            Region {
                start: vectors.intervals[interval].start,
                instrs: lengths[interval],
                weight: instrs as f64 / total as f64,
            }
        })
        .collect();
    regions.sort_by_key(|r| r.start);
    Regions {
        regions,
        error: error(&points, &lengths, chosen, &nearest),
        spread: error(
            &points,
            &lengths,
            &clusterings[0],
            &representatives(&points, &clusterings[0]),
        ),
        scores,
    }
}

/// Shares of a vector, projected. The matrix of random numbers in -1..1 is never
/// stored: an entry is a hash of seed, block and dimension.
fn project(blocks: &[(BlockKey, u64)], instrs: u64, seed: u64) -> Point {
    let mut point = [0.0; DIMENSIONS];
    for &(key, count) in blocks {
        let share = count as f64 / instrs.max(1) as f64;
        let mut random = Random(seed ^ mix(key.0));
        for x in &mut point {
            *x += share * (2.0 * random.unit() - 1.0);
        }
    }
    point
}

#[derive(Clone, Debug)]
struct Clustering {
    centres: Vec<Point>,
    member_of: Vec<usize>,
    /// Sum of squared distances from the centres.
    squares: f64,
}

fn best_clustering(points: &[Point], k: usize, options: &RegionOptions) -> Clustering {
    let run = |try_number: u64| {
        let seed = mix(options.seed).wrapping_add(mix(k as u64 * 1000 + try_number));
        cluster(points, k, &mut Random(seed))
    };
    let first = run(0);
    (1..options.tries as u64)
        .map(run)
        .fold(first, |best, next| match next.squares < best.squares {
            true => next,
            false => best,
        })
}

/// Rounds after which a clustering that still changes is taken as it is.
const MAX_ROUNDS: usize = 100;

fn cluster(points: &[Point], k: usize, random: &mut Random) -> Clustering {
    let mut centres = start_centres(points, k, random);
    let mut member_of = vec![usize::MAX; points.len()];
    for _ in 0..MAX_ROUNDS {
        let assigned: Vec<usize> = points.iter().map(|p| nearest(p, &centres).0).collect();
        if assigned == member_of {
            break;
        }
        member_of = assigned;
        move_centres(points, &member_of, &mut centres);
    }
    let squares = points.iter().map(|p| nearest(p, &centres).1).sum();
    let member_of = points.iter().map(|p| nearest(p, &centres).0).collect();
    Clustering {
        centres,
        member_of,
        squares,
    }
}

/// k-means++: each further centre is a point, drawn in proportion to its squared
/// distance from the centres so far.
fn start_centres(points: &[Point], k: usize, random: &mut Random) -> Vec<Point> {
    let first = (random.unit() * points.len() as f64) as usize;
    let mut centres = vec![points[first.min(points.len() - 1)]];
    while centres.len() < k {
        let distances: Vec<f64> = points.iter().map(|p| nearest(p, &centres).1).collect();
        let mut left = random.unit() * distances.iter().sum::<f64>();
        let drawn = distances.iter().position(|d| {
            left -= d;
            left < 0.0
        });
        centres.push(points[drawn.unwrap_or(0)]);
    }
    centres
}

/// Moves each centre to the mean of its members; one without members stays.
fn move_centres(points: &[Point], member_of: &[usize], centres: &mut [Point]) {
    for (c, centre) in centres.iter_mut().enumerate() {
        let mut sum = [0.0; DIMENSIONS];
        let mut n = 0.0;
        for (point, _) in points.iter().zip(member_of).filter(|m| *m.1 == c) {
            n += 1.0;
            sum.iter_mut().zip(point).for_each(|(s, x)| *s += x);
        }
        if n > 0.0 {
            *centre = sum.map(|s| s / n);
        }
    }
}

/// The nearest centre (the first of equals) and the squared distance from it.
fn nearest(point: &Point, centres: &[Point]) -> (usize, f64) {
    let mut best = (0, f64::INFINITY);
    for (c, centre) in centres.iter().enumerate() {
        let d = squared_distance(point, centre);
        if d < best.1 {
            best = (c, d);
        }
    }
    best
}

fn squared_distance(a: &Point, b: &Point) -> f64 {
    a.iter().zip(b).map(|(x, y)| (x - y) * (x - y)).sum()
}

/// Variance below which a cluster counts as exact: rounding, not behaviour.
const LEAST_VARIANCE: f64 = 1e-9;

/// Bayesian information criterion: higher is better.
fn score(points: &[Point], clustering: &Clustering) -> f64 {
    let (n, k, d) = (
        points.len() as f64,
        clustering.centres.len() as f64,
        DIMENSIONS as f64,
    );
    let free = (n - k).max(1.0);
    let variance = (clustering.squares / (d * free)).max(LEAST_VARIANCE);
    let mut sizes = vec![0.0; clustering.centres.len()];
    clustering.member_of.iter().for_each(|&c| sizes[c] += 1.0);
    let shares = sizes.iter().filter(|&&s| s > 0.0);
    let shares: f64 = shares.map(|s| s * (s / n).ln()).sum();
    let likelihood = shares
        - n * d / 2.0 * (2.0 * std::f64::consts::PI * variance).ln()
        - clustering.squares / (2.0 * variance);
    let parameters = k - 1.0 + d * k + 1.0;
    likelihood - parameters / 2.0 * n.ln()
}

/// Index of the first score that lies this share of the way up.
fn sufficient(scores: &[f64], share: f64) -> usize {
    let low = scores.iter().copied().fold(f64::INFINITY, f64::min);
    let high = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = low + share * (high - low);
    scores.iter().position(|&s| s >= least).unwrap_or(0)
}

/// Squared distances that differ by less are equal: rounding, not behaviour.
const SAME_DISTANCE: f64 = 1e-12;

/// For each cluster that has members: the interval nearest to its centre, the
/// middle one of equals.
fn representatives(points: &[Point], clustering: &Clustering) -> Vec<usize> {
    let closest = |c: usize| {
        let centre = &clustering.centres[c];
        let members = (0..points.len()).filter(|&i| clustering.member_of[i] == c);
        let distances: Vec<(usize, f64)> = members
            .map(|i| (i, squared_distance(&points[i], centre)))
            .collect();
        let least = distances.iter().map(|d| d.1).fold(f64::INFINITY, f64::min);
        let equal: Vec<usize> = distances
            .iter()
            .filter(|d| d.1 <= least + SAME_DISTANCE)
            .map(|d| d.0)
            .collect();
        equal.get(equal.len() / 2).copied()
    };
    (0..clustering.centres.len()).filter_map(closest).collect()
}

fn error(
    points: &[Point],
    lengths: &[u64],
    clustering: &Clustering,
    representatives: &[usize],
) -> f64 {
    let total: u64 = lengths.iter().sum();
    let of_cluster = |c: usize| {
        let mut own = representatives.iter();
        own.find(|&&r| clustering.member_of[r] == c)
    };
    let distances = points
        .iter()
        .zip(lengths)
        .enumerate()
        .map(|(i, (p, &len))| {
            let region = of_cluster(clustering.member_of[i]);
            let distance = region.map_or(0.0, |&r| squared_distance(p, &points[r]).sqrt());
            distance * len as f64
        });
    distances.sum::<f64>() / total.max(1) as f64
}

/// SplitMix64: the same numbers in every version.
struct Random(u64);

impl Random {
    /// In `0..1`, the end not included.
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        (mix(self.0) >> 11) as f64 / (1u64 << 53) as f64
    }
}

const fn mix(x: u64) -> u64 {
    let x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ x >> 31
}

#[cfg(test)]
#[path = "regions_tests.rs"]
mod tests;
