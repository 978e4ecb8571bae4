#!/bin/sh
# References per CPU second of the machine model, of pycachesim and of cachegrind on
# the same four streams, runs interleaved. Usage: run.sh [REFERENCES] [RUNS] [FEATURES]
# Needs python3 with venv, and valgrind; pycachesim is installed into a cache.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
refs=${1:-2000000}
runs=${2:-5}
features=${3:-none}
work=${XDG_CACHE_HOME:-$HOME/.cache}/piebald/bench-hw-rate
target=${CARGO_TARGET_DIR:-$here/../../target}
mkdir -p "$work"
if [ ! -x "$work/venv/bin/python" ]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet pycachesim==0.3.1 numpy
fi
cargo build --release --quiet --manifest-path "$here/../../Cargo.toml" -p piebald-hw --example rate --example touch
rate=$target/release/examples/rate
command -v valgrind > /dev/null || { echo "valgrind is needed: apt-get install valgrind" >&2; exit 1; }
"$rate" --dump "$work" "$refs"
: > "$work/ours.txt"
: > "$work/theirs.txt"
: > "$work/valgrind.txt"
i=0
while [ "$i" -lt "$runs" ]; do
    PEER_GEOMETRY=lru "$rate" w3540 "$features" "$refs" >> "$work/ours.txt"
    "$work/venv/bin/python" "$here/peer.py" "$work" "$refs" >> "$work/theirs.txt"
    "$work/venv/bin/python" "$here/cachegrind.py" "$work" "$target/release/examples/touch" >> "$work/valgrind.txt"
    i=$((i + 1))
done
"$work/venv/bin/python" - "$work" <<'PY'
import statistics, sys
def read(name):
    rates, misses = {}, {}
    for line in open(f"{sys.argv[1]}/{name}.txt"):
        fields = line.split()
        rates.setdefault(fields[0], []).append(float(fields[3]))
        misses[fields[0]] = fields[4:7]
    return rates, misses
ours, our_misses = read("ours")
theirs, their_misses = read("theirs")
valgrind, _ = read("valgrind")
print("| stream | Piebald, M refs/cpu-s | pycachesim | ratio | cachegrind | ratio | misses L1 L2 L3 as pycachesim's |")
print("|---|---|---|---|---|---|---|")
for name in ours:
    a, b, c = (statistics.median(rates[name]) for rates in (ours, theirs, valgrind))
    same = "yes" if our_misses[name] == their_misses[name] else f"no: {our_misses[name]} {their_misses[name]}"
    print(f"| {name} | {a:.1f} | {b:.1f} | {a / b:.2f} | {c:.1f} | {a / c:.2f} | {same} |")
PY
