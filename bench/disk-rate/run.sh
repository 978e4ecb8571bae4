#!/bin/sh
# Requests per CPU second of the disk models. Usage: run.sh [REQUESTS] [RUNS] [TRACE]
# TRACE is a measured trace of the Cheetah 9LP as text (see crates/hw/examples/disk_rate.rs);
# default: the packed one of testdata/traces/disk. Needs the program zstd.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
requests=${1:-2000000}
runs=${2:-5}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
results=$scratch/results
trace=${3:-$scratch/cheetah9LP.trace}
if [ $# -lt 3 ]; then
    zstd -dqo "$trace" "$root/testdata/traces/disk/cheetah9LP.trace.zst"
elif [ ! -f "$trace" ]; then
    echo "$trace: no such file" >&2
    exit 2
fi
target=${CARGO_TARGET_DIR:-$root/target}
cargo build --release --quiet --manifest-path "$root/Cargo.toml" -p piebald-hw --example disk_rate
rate=$target/release/examples/disk_rate
i=0
while [ "$i" -lt "$runs" ]; do
    "$rate" st39102lw "$trace" "$requests" >> "$results"
    for kind in random sequential mixed queue; do
        "$rate" st39102lw "$kind" "$requests" >> "$results"
    done
    for preset in sata-7200 sata-ssd nvme; do
        "$rate" "$preset" random "$requests" >> "$results"
        "$rate" "$preset" queue "$requests" >> "$results"
    done
    i=$((i + 1))
done
echo "| disk | requests | thousands per CPU second | mean response, ms |"
echo "|---|---|---|---|"
sort -k1,2 -k5,5n "$results" | awk '
    { key = $1 " " $2 }
    key != last { flush(); last = key; n = 0; disk = $1; kind = $2 }
    { rate[n++] = $5; mean = $6 }
    END { flush() }
    function flush() {
        if (n > 0) printf "| %s | %s | %d | %s |\n", disk, kind, rate[int(n / 2)], mean
    }'
