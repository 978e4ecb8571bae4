#!/usr/bin/env bash
# Misses of Piebald's replacement policies beside libCacheSim's, on the same page references:
# four generated traces and two recordings of testdata, at 1 %, 10 % and 40 % of their pages.
#
#   run.sh            writes results.md; RESULTS=FILE writes it elsewhere
#   run.sh --record   writes libCacheSim's counts to testdata/libcachesim as well, which
#                     crates/os-model/tests/replacement_libcachesim.rs compares with ours
#
# Needs python3 with venv and the network: libcachesim==0.3.5 (PyPI) is installed into a cache.
# No part of ./test.sh, which has no network. Takes two minutes, without the build.
set -eu

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$here/../..
version=0.3.5
work=${XDG_CACHE_HOME:-$HOME/.cache}/piebald/bench-libcachesim
target=${CARGO_TARGET_DIR:-$root/target}
mkdir -p "$work"
if ! "$work/venv/bin/python" -c 'import libcachesim, numpy' 2>/dev/null; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet "libcachesim==$version" numpy
fi
cargo build --release --quiet --manifest-path "$root/Cargo.toml" -p piebald
cargo build --release --quiet --manifest-path "$root/Cargo.toml" -p piebald-os-model --example libcachesim_traces
"$target/release/examples/libcachesim_traces" "$work" >"$work/traces.tsv"

counts=$work/counts.tsv
results=${RESULTS:-$here/results.md}
"$work/venv/bin/python" "$here/compare.py" "$version" "$work" "$target/release/piebald" "$counts" >"$results.part"
mv "$results.part" "$results"
if [ "${1:-}" = --record ]; then
    cp "$counts" "$root/testdata/libcachesim/$version.tsv"
fi
cat "$results"
