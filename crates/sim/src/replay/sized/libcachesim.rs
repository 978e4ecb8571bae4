//! Misses and missed bytes beside those of libCacheSim 0.3.5, which `bench/libcachesim/sized.py`
//! counted on the same traces.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::super::index::PageKey;
use super::one_queue::{Clock, Fifo, Lru, OneQueue, Sieve};
use super::policy::{Access, Outcome, SizedPolicy, request};
use super::s3_fifo::S3Fifo;

const COUNTS: &str = "testdata/libcachesim/sized-0.3.5.tsv";
const REQUESTS: u64 = 60_000;
const OBJECTS: u64 = 2_000;
const CAPACITIES: [u64; 3] = [100_000, 1_000_003, 8_000_000];

/// Misses and missed bytes by trace, policy and capacity; the last numbers of lines by their first
/// three.
fn counts() -> BTreeMap<Vec<String>, Vec<String>> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join(COUNTS)).expect(COUNTS);
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    let split = |line: &str| {
        let fields: Vec<String> = line.split('\t').map(str::to_owned).collect();
        let keys = if fields[0] == "trace" { 2 } else { 4 };
        (fields[1..keys].to_vec(), fields[keys..].to_vec())
    };
    lines.map(split).collect()
}

/// Objects and sizes, as the script draws them.
fn trace(changes: bool) -> Vec<(u64, u64)> {
    let mut state = 7_u64;
    let mut below = |n: u64| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) % n
    };
    let mut one = || {
        let number = below(OBJECTS) * below(OBJECTS) / OBJECTS + 1;
        let mut size = number * 7_919 % 4_999 + 1;
        if number % 20 == 7 {
            size *= 30;
        }
        if changes {
            size += below(3) * 500;
        }
        (number, size)
    };
    (0..REQUESTS).map(|_| one()).collect()
}

fn digest(trace: &[(u64, u64)]) -> String {
    let numbers = trace.iter().flat_map(|&(number, size)| [number, size]);
    let step = |value: u64, number: u64| (value ^ number).wrapping_mul(0x0100_0000_01b3);
    format!("{:016x}", numbers.fold(0xcbf2_9ce4_8422_2325, step))
}

fn policies(capacity: u64) -> Vec<(&'static str, Box<dyn SizedPolicy>)> {
    vec![
        ("LRU", Box::new(OneQueue::<Lru>::new(capacity))),
        ("FIFO", Box::new(OneQueue::<Fifo>::new(capacity))),
        ("Clock", Box::new(OneQueue::<Clock>::new(capacity))),
        ("Sieve", Box::new(OneQueue::<Sieve>::new(capacity))),
        ("S3FIFO", Box::new(S3Fifo::new(capacity))),
    ]
}

/// One request to a policy.
type Ask<'a> = &'a mut dyn FnMut(&mut dyn SizedPolicy, &Access) -> Outcome;

fn missed(policy: &mut dyn SizedPolicy, trace: &[(u64, u64)], ask: Ask<'_>) -> Vec<String> {
    let (mut misses, mut bytes) = (0_u64, 0_u64);
    for (now, &(number, size)) in (0..).zip(trace) {
        let access = Access {
            key: PageKey(number),
            bytes: size,
            now,
            next_use: None,
        };
        if ask(policy, &access) != Outcome::Hit {
            misses += 1;
            bytes += size;
        }
    }
    policy.validate().expect("books");
    vec![misses.to_string(), bytes.to_string()]
}

fn key(trace: &str, policy: &str, capacity: u64) -> Vec<String> {
    vec![trace.to_owned(), policy.to_owned(), capacity.to_string()]
}

#[test]
fn counts_are_those_of_libcachesim_where_sizes_do_not_change() {
    let (counts, trace) = (counts(), trace(false));
    assert_eq!(counts[&vec!["sizes".to_owned()]][2], digest(&trace));
    for capacity in CAPACITIES {
        for (name, mut policy) in policies(capacity) {
            let own = missed(policy.as_mut(), &trace, &mut |p, a| request(p, a));
            assert_eq!(
                own,
                counts[&key("sizes", name, capacity)],
                "{name} {capacity}"
            );
        }
    }
}

/// Where they do, libCacheSim keeps the size that an object came in with. With that rule the counts
/// are equal, and without it they are not.
#[test]
fn counts_are_those_of_libcachesim_if_objects_keep_their_first_size() {
    let (counts, trace) = (counts(), trace(true));
    assert_eq!(counts[&vec!["changing".to_owned()]][2], digest(&trace));
    let mut different = 0;
    for capacity in CAPACITIES {
        let ours = policies(capacity).into_iter().zip(policies(capacity));
        for ((name, mut keeps), (_, mut plain)) in ours {
            let theirs = &counts[&key("changing", name, capacity)];
            let mut first = HashMap::new();
            let mut ask = |policy: &mut dyn SizedPolicy, access: &Access| {
                // As long as the object is there, it has the size that it came in with.
                let bytes = *first.get(&access.key).unwrap_or(&access.bytes);
                if policy.hit(&Access { bytes, ..*access }) {
                    return Outcome::Hit;
                }
                first.insert(access.key, access.bytes);
                come_in(policy, access)
            };
            let own = missed(keeps.as_mut(), &trace, &mut ask);
            assert_eq!(&own, theirs, "{name} {capacity}");
            let own = missed(plain.as_mut(), &trace, &mut |p, a| request(p, a));
            different += u32::from(&own != theirs);
        }
    }
    assert_eq!(different, 15, "the rule makes no difference");
}

fn come_in(policy: &mut dyn SizedPolicy, access: &Access) -> Outcome {
    if access.bytes > policy.largest() {
        return Outcome::TooLarge;
    }
    while policy.occupied() + access.bytes > policy.capacity() {
        policy.evict(access.now);
    }
    policy.insert(access);
    Outcome::Miss
}
