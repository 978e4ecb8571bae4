#!/usr/bin/env bash
# Cache misses of one stream in independent simulators.
#
#   compare-simulators.sh pycachesim FILE SETS WAYS SETS WAYS SETS WAYS
#       FILE holds little-endian 64-bit byte addresses of loads; prints the misses
#       of three non-inclusive LRU levels.
#   compare-simulators.sh cachegrind D1 LL LOADS BYTES
#       D1 and LL as cachegrind takes them (size,ways,line); prints the data read
#       misses of D1 and LL for the second LOADS of 2 x LOADS pseudo-random loads
#       from BYTES (a power of two).
#
# Ends with status 77 if the simulator is neither there nor to be had. pycachesim is
# installed into a virtual environment under target/ unless PIEBALD_PYTHON names a
# Python that has it.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

find_python() {
    local venv=$root/target/compare-venv python
    for python in "${PIEBALD_PYTHON:-}" "$venv/bin/python" python3; do
        if [ -n "$python" ] && "$python" -c 'import cachesim' 2>/dev/null; then
            echo "$python"
            return
        fi
    done
    # Its C passes pointers of other types, which gcc 14 refuses unless it is told not to.
    python3 -m venv "$venv" >&2 &&
        CFLAGS="${CFLAGS:-} -Wno-incompatible-pointer-types" "$venv/bin/pip" -q install pycachesim==0.3.1 >&2 ||
        return 1
    echo "$venv/bin/python"
}

pycachesim() {
    local python
    python=$(find_python) || { echo "pycachesim is not installed" >&2; exit 77; }
    "$python" - "$@" <<'PYTHON'
import sys
from array import array
from cachesim import Cache, CacheSimulator, MainMemory

stream = array("Q")
with open(sys.argv[1], "rb") as f:
    stream.frombytes(f.read())
shape = [int(x) for x in sys.argv[2:8]]
levels = []
for n in (3, 2, 1):
    sets, ways = shape[2 * n - 2 : 2 * n]
    outer = {"store_to": levels[-1], "load_from": levels[-1]} if levels else {}
    levels.append(Cache(f"L{n}", sets, ways, 64, "LRU", **outer))
memory = MainMemory()
memory.load_to(levels[0])
memory.store_from(levels[0])
simulator = CacheSimulator(levels[-1], memory)
for address in stream:
    simulator.load(address, length=8)
print(*(level.stats()["MISS_count"] for level in reversed(levels)))
PYTHON
}

# Data read misses of D1 and LL of a whole run with that many rounds.
cachegrind_run() {
    valgrind --tool=cachegrind --cache-sim=yes --I1=32768,8,64 --D1="$1" --LL="$2" \
        --cachegrind-out-file=/dev/null "$work/loads" "$3" "$4" 2>&1 |
        sed -n 's/,//g; s/.*\(D1\|LLd\) *misses:.*( *\([0-9]*\) rd.*/\2/p' | paste -sd' '
}

cachegrind() {
    local cc
    command -v valgrind >/dev/null || { echo "valgrind is not installed" >&2; exit 77; }
    cc=$(command -v cc) || { echo "no C compiler" >&2; exit 77; }
    cat >"$work/loads.c" <<'C'
#include <stdint.h>
#include <stdlib.h>
static volatile unsigned char area[BYTES] __attribute__((aligned(1 << 22)));
int main(int argc, char **argv) {
    uint64_t x = 1, rounds = strtoull(argv[1], 0, 10) * strtoull(argv[2], 0, 10);
    for (uint64_t i = 0; i < rounds; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        (void)area[x >> 33 & (BYTES - 1)];
    }
    return argc == 0;
}
C
    "$cc" -O1 -DBYTES="$4" -o "$work/loads" "$work/loads.c"
    local once twice
    # What starting and ending the program costs is in both.
    read -r -a once <<<"$(cachegrind_run "$1" "$2" "$3" 1)"
    read -r -a twice <<<"$(cachegrind_run "$1" "$2" "$3" 2)"
    echo $((twice[0] - once[0])) $((twice[1] - once[1]))
}

case "${1:-}" in
pycachesim) shift; pycachesim "$@" ;;
cachegrind) shift; cachegrind "$@" ;;
*) sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
