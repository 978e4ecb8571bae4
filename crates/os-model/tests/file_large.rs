//! A million pages through every kernel. Slow without optimisation: run it with
//! `cargo test --release -p piebald-os-model --test all file_large:: -- --ignored --nocapture`.

use std::time::Instant;

use crate::filehost::{driver, host};
use piebald_os_model::file::{FileConfig, Span};
use rand::{Rng, SeedableRng, rngs::SmallRng};

#[test]
#[ignore = "a million pages: ./test.sh --long large-cache"]
fn a_million_pages() {
    let kernels = [
        ("plain", FileConfig::plain()),
        ("DULO's simulation", FileConfig::dulo_simulation()),
        ("2.6.11", FileConfig::linux_2_6_11()),
        ("2.6.30", FileConfig::linux_2_6_30()),
        ("6", FileConfig::linux_6()),
    ];
    for (name, config) in kernels {
        let mut rng = SmallRng::seed_from_u64(1);
        let mut h = host(config, 20_000, &[30_000; 4]);
        let mut ops = Vec::new();
        while ops.len() < 1_000_000 {
            let (file, first) = (rng.random_range(0..4), rng.random_range(0..30_000));
            let row = rng.random_range(0..20) * rng.random_range(0..20);
            let hot = first * first / 30_000;
            ops.extend((hot..hot + row).map(|p| driver::Do::Read(file, Span::pages(p, 1))));
        }
        let began = Instant::now();
        let end = driver::run(&mut h, &mut driver::one(ops), |_| {});
        let took = began.elapsed().as_secs_f64();
        h.validate().unwrap();
        let (s, io) = (h.stats(), h.io_stats());
        assert_eq!(io.pages_read, s.reads.misses + s.prefetched);
        let hits = s.hit_ratio().unwrap();
        println!(
            "{name:18} {took:5.2} s, {:5.0} ns per page; hit ratio {hits:.4}, {} requests, ends at {end}",
            took * 1e9 / s.reads.references as f64,
            io.requests_read,
        );
    }
}
