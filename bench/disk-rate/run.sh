#!/bin/sh
# Requests per CPU second of the disk models. Usage: run.sh [REQUESTS] [RUNS] [TRACE]
# TRACE is a measured trace of the Cheetah 9LP (cheetah9LP.trace of DiskSim's
# validation set); default: $PIEBALD_TRACES/disk/cheetah9LP.trace, if it is there.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
requests=${1:-2000000}
runs=${2:-5}
trace=${3:-${PIEBALD_TRACES:-$here/../../../shared/traces}/disk/cheetah9LP.trace}
target=${CARGO_TARGET_DIR:-$here/../../target}
cargo build --release --quiet --manifest-path "$here/../../Cargo.toml" -p piebald-hw --example disk_rate
rate=$target/release/examples/disk_rate
results=$(mktemp)
trap 'rm -f "$results"' EXIT
i=0
while [ "$i" -lt "$runs" ]; do
    if [ -f "$trace" ]; then
        "$rate" st39102lw "$trace" "$requests" >> "$results"
    else
        echo "no measured trace: $trace" >&2
    fi
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
