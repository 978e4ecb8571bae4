#!/usr/bin/env bash
# Page references per processor second, misses and memory of replacement policies, beside
# libCacheSim's Python package: the same trace, runs interleaved, one thread each.
#
#   run.sh [RUNS] [REQUESTS]             draws from a Zipf distribution; writes results.md.
#                                        RUNS: 3, REQUESTS: 20e6
#   run.sh RUNS FILE.vscsi PAGES         the pages of a block trace; writes results-NAME.md
#
# RESULTS=FILE writes the table elsewhere (a short run, say). Needs python3 with venv;
# libcachesim and numpy are installed into a cache. 20e6 requests take some 15 minutes on a
# quiet machine.
set -eu

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
runs=${1:-3}
requests=${2:-20e6}
pages=${3:-100000}
work=${XDG_CACHE_HOME:-$HOME/.cache}/piebald/bench-replay-policies
target=${CARGO_TARGET_DIR:-$here/../../target}
mkdir -p "$work"
if ! "$work/venv/bin/python" -c 'import libcachesim, numpy' 2>/dev/null; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet libcachesim==0.3.5 numpy
fi
python=$work/venv/bin/python
cargo build --release --quiet --manifest-path "$here/../../Cargo.toml" -p piebald-sim --example replay_rate
cargo build --release --quiet --manifest-path "$here/../../Cargo.toml" -p piebald
case $requests in
*.vscsi)
    name=$(basename "$requests" .vscsi)
    what="the 4 KiB pages of the requests of $name.vscsi"
    trace=$work/$name.oracleGeneral
    make_trace() { "$python" "$here/pages.py" "$requests" "$1"; }
    results=${RESULTS:-$here/results-$name.md}
    ;;
*)
    what="Zipf 1.0 over a million ids"
    trace=$work/zipf-$requests.oracleGeneral
    make_trace() { "$python" "$here/zipf.py" "$1" "$requests"; }
    results=${RESULTS:-$here/results.md}
    ;;
esac
if [ ! -s "$trace" ]; then
    make_trace "$trace.part"
    mv "$trace.part" "$trace"
fi

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

common="lru clock fifo sieve arc 2q lirs s3-fifo w-tinylfu min"
own="dulo lru-2 mq linux-2.6.11 linux-2.6.30 mglru curve"
: >"$work/whole.txt"
: >"$work/cache.txt"
: >"$work/peer.txt"
for _ in $(seq "$runs"); do
    for policy in $common; do
        whole "$policy" >>"$work/whole.txt"
        "$target/release/examples/replay_rate" "$trace" "$pages" "$policy" >>"$work/cache.txt"
        "$python" "$here/peer.py" "$trace" "$policy" "$pages" >>"$work/peer.txt"
    done
    for policy in $own; do
        "$target/release/examples/replay_rate" "$trace" "$pages" "$policy" >>"$work/cache.txt"
    done
done
cpu=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo 2>/dev/null | head -1)
load=$(cut -d ' ' -f 1-3 /proc/loadavg 2>/dev/null || echo unknown)
"$python" "$here/table.py" "$work" "$runs" "$pages" "${cpu:-unknown}" "$load" "$what" >"$results.part"
mv "$results.part" "$results"
cat "$results"
