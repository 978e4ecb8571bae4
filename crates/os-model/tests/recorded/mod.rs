//! Recorded traces of `testdata` as page references.

#![allow(dead_code, reason = "each test uses a part")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Numbers keys densely in the order of their first use.
pub fn dense(keys: impl Iterator<Item = u64>) -> Vec<u32> {
    let mut numbers = HashMap::new();
    keys.map(|key| {
        let next = numbers.len() as u32;
        *numbers.entry(key).or_insert(next)
    })
    .collect()
}

/// The text of a trace of `testdata`.
fn packed(name: &str) -> String {
    let file = std::fs::File::open(workspace().join("testdata").join(name)).expect(name);
    let text = zstd::decode_all(file).expect(name);
    String::from_utf8(text).expect(name)
}

/// OLTP: `first block, blocks, ignored, number` per line.
pub fn oltp() -> Vec<u32> {
    let text = packed("traces/arc/OLTP.lis.zst");
    let extents = text.lines().map(|line| {
        let mut fields = line
            .split_whitespace()
            .map(|f| f.parse::<u64>().expect(line));
        (fields.next().expect(line), fields.next().expect(line))
    });
    dense(extents.flat_map(|(first, blocks)| first..first + blocks))
}

/// The page references of a trace of file accesses: `R|W|M task file first_page pages` per line.
pub fn file_trace(name: &str) -> Vec<u32> {
    let text = packed(&format!("replay/{name}.fpt.zst"));
    let accesses = text
        .lines()
        .filter(|line| line.starts_with(['R', 'W', 'M']));
    let pages = accesses.flat_map(|line| {
        let numbers = line.split(' ').skip(1).map(|f| f.parse().expect(line));
        let numbers: Vec<u64> = numbers.collect();
        let [_, file, first, pages] = numbers[..] else {
            panic!("{line}");
        };
        (first..first + pages).map(move |page| file << 32 | page)
    });
    dense(pages)
}
