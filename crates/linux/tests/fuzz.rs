//! Fuzz targets for all that is read from a command line or from the kernel's files: a corpus,
//! changes of it, and random bytes. `PIEBALD_FUZZ_CASES` sets how many inputs (default 20000).

use std::{env, fs};

use piebald_linux::{Facts, MapBits, Module, Share, Wanted, memory_end};
use piebald_policy::color_map::ColorMap;
use rand::{Rng as _, SeedableRng as _, rngs::StdRng};

const CORPUS: &[&str] = &[
    "",
    "15-18",
    "12,13,16^20",
    "12^13,13^14,12^14",
    "63",
    "12-63",
    "25%",
    "12.5%",
    "100%",
    "0-3,8",
    "none",
    "0-4095",
    "1\n",
    "12\n13\n14\n15 19\n",
    "B 14 18\nC 16\n",
    "hard\n",
    "/user.slice/web\n/a (deleted)\n",
    "0 10\n1 20\n",
    "anon_pages 7\nrecolored 5\n",
    "00100000-1fffffff : System RAM\n",
    "ffffffffffffffff-ffffffffffffffff : System RAM\n",
    "flags : hypervisor cat_l3\n",
    "MemAvailable: 18446744073709551615 kB\n",
    "always [madvise] never",
    "][",
    "0-63,128-191",
    "4294967296",
    "Unified",
];

fn cases() -> u64 {
    let text = env::var("PIEBALD_FUZZ_CASES").ok();
    text.map_or(20_000, |text| text.parse().expect("a number"))
}

/// A text of the corpus, or what becomes of one or two by a few changes.
fn input(rng: &mut StdRng) -> String {
    let one = |rng: &mut StdRng| {
        CORPUS[rng.random_range(0..CORPUS.len())]
            .as_bytes()
            .to_vec()
    };
    let mut bytes = one(rng);
    for _ in 0..rng.random_range(0..4) {
        let at = rng.random_range(0..=bytes.len());
        match rng.random_range(0..4) {
            0 => bytes.insert(at, rng.random()),
            1 => bytes.truncate(at),
            2 => bytes.extend(one(rng)),
            _ => bytes.insert(at, b"0123456789-,^%. \n"[rng.random_range(0..17)]),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn fuzz_what_is_asked_for_reads_back_as_it_prints() {
    let mut rng = StdRng::seed_from_u64(1);
    let (mut maps, mut shares, mut sets) = (0, 0, 0);
    for _ in 0..cases() {
        let text = input(&mut rng);
        if let Ok(map) = text.parse::<MapBits>() {
            maps += 1;
            assert_eq!(map.to_string().parse(), Ok(map.clone()), "{text:?}");
            let lines = map.as_lines();
            let core = ColorMap::from_text(&lines)
                .expect("what the module reads")
                .map;
            assert_eq!(core.colors(), map.colors(), "{text:?}");
            assert!((12..64).contains(&map.highest()), "{text:?}");
        }
        if let Ok(share) = text.parse::<Share>() {
            shares += 1;
            assert!((1..=10_000).contains(&share.basis_points()), "{text:?}");
            assert_eq!(share.to_string().parse(), Ok(share), "{text:?}");
        }
        if let Ok(wanted) = Wanted::colors(&text) {
            sets += 1;
            assert_eq!(Wanted::colors(&wanted.to_string()), Ok(wanted), "{text:?}");
        }
        let _ = memory_end(&text);
    }
    assert!(maps > 0 && shares > 0 && sets > 0, "{maps} {shares} {sets}");
}

#[test]
fn fuzz_files_of_the_kernel_are_read_or_refused() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("proc/piebald");
    fs::create_dir_all(&dir).expect("made");
    let names = [
        "on", "map", "colors", "others", "free", "pool_max", "counters", "check",
    ];
    let set = root.path().join("sys/kernel/config/piebald/web");
    fs::create_dir_all(&set).expect("made");
    let mut rng = StdRng::seed_from_u64(2);
    let mut read = 0;
    let module = Module::attach(root.path()).expect("a tree");
    for _ in 0..cases().div_ceil(100) {
        // One file is changed, the others are right.
        let right = ["1", "12\n13", "4", "0-3", "0 1", "1024", "a 1", "ok"];
        for (name, text) in names.iter().zip(right) {
            fs::write(dir.join(name), text).expect("written");
        }
        for (name, text) in [("colors", "0-1"), ("mode", "hard"), ("groups", "/web")] {
            fs::write(set.join(name), text).expect("written");
        }
        let of_set = ["colors", "mode", "groups"];
        let changed = match rng.random_range(0..2) {
            0 => dir.join(names[rng.random_range(0..names.len())]),
            _ => set.join(of_set[rng.random_range(0..of_set.len())]),
        };
        fs::write(changed, input(&mut rng)).expect("written");
        let _ = module.check();
        match module.status() {
            Ok(_) => read += 1,
            Err(error) => assert!(error.to_string().contains("piebald/"), "{error}"),
        }
        let text = input(&mut rng);
        let _ = Facts::read(&text, None, &|_| Some(text.clone()));
    }
    assert!(read > 0);
}
