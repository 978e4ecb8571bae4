#!/bin/sh
# References per processor second that the machine model takes in from a guest, emulation
# included. Usage: run.sh [REPETITIONS]
# Runs scenarios/guest.toml: a mergesort alone, and beside grep over a cached file.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
repetitions=${1:-1}
target=${CARGO_TARGET_DIR:-$root/target}
cargo build --release --quiet --manifest-path "$root/Cargo.toml" -p piebald -p piebald-qemu
"$target/release/piebald" guest run --quiet --repetitions "$repetitions" "$root/scenarios/guest.toml"
