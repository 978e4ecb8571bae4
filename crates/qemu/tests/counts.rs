//! Counts compared with an independent tool, valgrind's lackey.

use crate::common::*;
use piebald_trace::recording::model::AccessKind;
use std::process::Command;

/// Sorts and searches: branches, calls, pushes, updates, bytes to 8-byte words.
const SOURCE: &str = r#"
#include <stdlib.h>
static unsigned long a[4096]; static unsigned short b[4096]; static char c[4096];
static void sift(int i, int n) {
    while (2 * i + 1 < n) {
        int k = 2 * i + 1;
        if (k + 1 < n && a[k + 1] > a[k]) k++;
        if (a[i] >= a[k]) return;
        unsigned long t = a[i]; a[i] = a[k]; a[k] = t; b[k & 4095]++; i = k;
    }
}
static long walk(int d) { c[d & 4095] ^= d; return d <= 0 ? 1 : walk(d - 1) + walk(d - 2); }
int main(int argc, char **argv) {
    int n = atoi(argv[1]); unsigned long x = 88172645463325252ul;
    for (int i = 0; i < n; i++) { x ^= x << 13; x ^= x >> 7; x ^= x << 17; a[i] = x; }
    for (int i = n / 2; i >= 0; i--) sift(i, n);
    for (int m = n - 1; m > 0; m--) { unsigned long t = a[0]; a[0] = a[m]; a[m] = t; sift(0, m); }
    return (walk(n / 200) + b[5]) == 42;
}"#;

#[derive(Debug)]
struct Counts {
    instrs: f64,
    loads: f64,
    stores: f64,
}

fn ours(dir: &std::path::Path, program: &str, n: &str) -> Counts {
    let (refs, instrs) = record(dir, &[program, n]).refs(0);
    let with = |a: AccessKind| {
        refs.iter()
            .filter(|r| r.0 == a || r.0 == AccessKind::Update)
            .count()
    };
    Counts {
        instrs: instrs as f64,
        loads: with(AccessKind::Load) as f64,
        stores: with(AccessKind::Store) as f64,
    }
}

fn lackey(program: &str, n: &str) -> Counts {
    let out = Command::new("valgrind")
        .args([
            "--tool=lackey",
            "--basic-counts=yes",
            "--detailed-counts=yes",
            program,
            n,
        ])
        .output()
        .expect("valgrind runs");
    let text = String::from_utf8_lossy(&out.stderr).replace(',', "");
    let mut counts = Counts {
        instrs: 0.0,
        loads: 0.0,
        stores: 0.0,
    };
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let number = |i: usize| words[i].parse::<f64>().unwrap_or(0.0);
        match words[..] {
            ["guest", "instrs:", _] => counts.instrs = number(2),
            [kind, _, _, _] if kind.starts_with(['I', 'F', 'D', 'V']) => {
                counts.loads += number(1);
                counts.stores += number(2);
            }
            _ => {}
        }
    }
    counts
}

/// The difference of two runs cancels what the tools do not share: start-up, and
/// library code chosen by processor features. What remains is the program's own
/// code, in which every instruction and access counts the same in both; 0.1 %
/// leaves room for library calls whose length depends on addresses.
#[test]
#[ignore = "needs qemu-user and valgrind: ./test.sh recorder"]
fn counts_agree_with_lackey() {
    let dir = bench();
    need("valgrind", "valgrind");
    let program = cc(dir.path(), "sort", SOURCE, &["-static", "-no-pie"]);
    let program = program.to_str().expect("path");
    let (a, b) = (
        ours(dir.path(), program, "400"),
        ours(dir.path(), program, "4000"),
    );
    let (c, d) = (lackey(program, "400"), lackey(program, "4000"));
    for (what, ours, lackey) in [
        ("instructions", b.instrs - a.instrs, d.instrs - c.instrs),
        ("loads", b.loads - a.loads, d.loads - c.loads),
        ("stores", b.stores - a.stores, d.stores - c.stores),
    ] {
        eprintln!("{what}: {ours} here, {lackey} by lackey");
        assert!(ours > 100_000.0, "{what}: {ours} is too few to compare");
        assert!(
            (ours / lackey - 1.0).abs() < 0.001,
            "{what}: {ours} and {lackey}"
        );
    }
}
