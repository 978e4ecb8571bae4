#!/usr/bin/env bash
# Page references per processor second and misses of replacement policies, beside
# libCacheSim's Python package, runs interleaved, one thread each.
#
#   run.sh [RUNS] [REQUESTS]      RUNS: 3, REQUESTS of the Zipf trace: 20e6
#
# Needs python3 with venv; libcachesim and numpy are installed into a cache. Prints a table.
set -eu

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
runs=${1:-3}
requests=${2:-20e6}
work=${XDG_CACHE_HOME:-$HOME/.cache}/piebald/bench-replay-policies
target=${CARGO_TARGET_DIR:-$here/../../target}
pages=100000
mkdir -p "$work"
if [ ! -x "$work/venv/bin/python" ]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet libcachesim==0.3.5 numpy
fi
python=$work/venv/bin/python
cargo build --release --quiet --manifest-path "$here/../../Cargo.toml" -p piebald-sim --example replay_rate
cargo build --release --quiet --manifest-path "$here/../../Cargo.toml" -p piebald
trace=$work/zipf-$requests.oracleGeneral
[ -s "$trace" ] || "$python" "$here/zipf.py" "$trace" "$requests"

# One policy through the whole command: decoding, cache, output.
whole() { # POLICY
    "$python" - "$target/release/piebald" "$trace" "$1" "$pages" <<'PY'
import json
import resource
import subprocess
import sys

piebald, trace, policy, pages = sys.argv[1:]
size = f"{int(pages) * 4}KiB"
done = subprocess.run(
    [piebald, "replay", trace, "--readahead", "none", "--policy", policy, "--size", size,
     "--threads", "1", "--quiet", "--json"],
    check=True, capture_output=True)
use = resource.getrusage(resource.RUSAGE_CHILDREN)
run = json.loads(done.stdout)["runs"][0]
rate = run["references"] / (use.ru_utime + use.ru_stime) / 1e6
print(policy, pages, run["references"], run["misses"], rate)
PY
}

policies="lru clock fifo sieve arc 2q lirs s3-fifo w-tinylfu"
: >"$work/whole.txt"
: >"$work/cache.txt"
: >"$work/peer.txt"
for _ in $(seq "$runs"); do
    for policy in $policies; do
        whole "$policy" >>"$work/whole.txt"
        "$target/release/examples/replay_rate" "$trace" "$pages" "$policy" >>"$work/cache.txt"
        "$python" "$here/peer.py" "$trace" "$policy" "$pages" >>"$work/peer.txt"
    done
    for policy in dulo curve; do
        "$target/release/examples/replay_rate" "$trace" "$pages" "$policy" >>"$work/cache.txt"
    done
done
"$python" - "$work" <<'PY'
import statistics
import sys


def read(name):
    rates, misses = {}, {}
    for line in open(f"{sys.argv[1]}/{name}.txt"):
        policy, _, _, count, rate = line.split()
        rates.setdefault(policy, []).append(float(rate))
        misses[policy] = int(count)
    return {p: statistics.median(r) for p, r in rates.items()}, misses


whole, misses = read("whole")
cache, _ = read("cache")
peer, theirs = read("peer")
print("| policy | command, M refs/cpu-s | cache alone, M refs/s | libCacheSim, M refs/cpu-s | command / libCacheSim | misses | libCacheSim's |")
print("|---|---|---|---|---|---|---|")
for p in peer:
    print(f"| {p} | {whole[p]:.1f} | {cache[p]:.1f} | {peer[p]:.1f} | {whole[p] / peer[p]:.1f} | {misses[p]} | {theirs[p]} |")
for p in sorted(set(cache) - set(peer)):
    print(f"| {p} | | {cache[p]:.1f} | | | | |")
PY
