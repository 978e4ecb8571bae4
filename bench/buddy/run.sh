#!/bin/sh
# The tables of results.md. Usage: run.sh [RUNS]
set -eu
here=$(cd "$(dirname "$0")" && pwd)
runs=${1:-5}
cargo build --release --quiet --locked --manifest-path "$here/Cargo.toml"
bench=${CARGO_TARGET_DIR:-$here/target}/release/piebald-bench-buddy
"$bench" time 1 "$runs"
"$bench" time 4 "$runs"
"$bench" threads 1 "$runs"
"$bench" blocks 1
"$bench" blocks 4
