#!/bin/sh
# Millions of references per processor second that are simulated of four programs together on
# the W3540: decoding, translation, kernel, three levels of caches, DRAM.
# Usage: run.sh [RECORDINGS [RUNS]]
# RECORDINGS: the folder of recordings that `scripts/stand-ins.sh hvr DIR` makes (DIR/recorded);
# without it, or with -, built-in programs only. RUNS: 3 unless told; the best counts.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
recordings=${1:--}
runs=${2:-3}
target=${CARGO_TARGET_DIR:-$root/target}
cargo build --release --quiet --manifest-path "$root/Cargo.toml" -p piebald-sim --example corun_rate

# best FEATURES MILLIONS PROGRAM...: the fastest of all runs.
best() {
    for _ in $(seq "$runs"); do
        "$target/release/examples/corun_rate" w3540 "$@"
    done | awk '$5 > most { most = $5; refs = $3 } END { printf "%6.1f %7.1f", refs, most }'
}

echo "M refs  M refs/s  features  programs"
mix() {
    for features in none all; do
        printf '%s  %-8s  %s\n' "$(best "$features" 10 "$@")" "$features" "$*"
    done
}
mix mergesort fft lu sor
mix mergesort scan gups triad
mix gups gups gups gups
[ "$recordings" != - ] || exit 0
cd "$recordings"
mix bzip2.pbr gcc.pbr mcf.pbr perl.pbr
mix gnugo.pbr sjeng.pbr hmmer.pbr json.pbr
mix mcf.pbr omnetpp.pbr astar.pbr soplex.pbr
