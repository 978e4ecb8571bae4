#!/usr/bin/env bash
# Gets the recorded traces that tests can use and that may not, or need not, lie in this repository.
#
#   fetch-traces.sh [DIRECTORY]   default: $PIEBALD_TRACES, or piebald/traces in the user's cache
#   fetch-traces.sh --list        their names, origins and terms
#
# Each file comes from a fixed commit of a public repository, and must have the SHA-256 of
# testdata/traces/fetched.sha256. What is there already is not fetched again. Ends with status
# 77 if the host cannot be reached; the files that are missing are named then.
# PIEBALD_TRACES_HOST replaces https://raw.githubusercontent.com. Needs python3.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
sums=$root/testdata/traces/fetched.sha256
host=${PIEBALD_TRACES_HOST:-https://raw.githubusercontent.com}
SKIP=77

CAFFEINE=ben-manes/caffeine/b479ff7d4d91f120771bd0d4fd636f47177e8ed3
CAFFEINE+=/simulator/src/main/resources/com/github/benmanes/caffeine/cache/simulator/parser
ARC=moka-rs/cache-trace/ef0a9de8cf0202a1f2fee186a0af497774b0f0a9/arc
LIBCACHESIM=1a1a11a/libCacheSim/aa0fc40914b2b786f4b9f4dafb099f8f332b216a/data
RAMULATOR=CMU-SAFARI/ramulator/214f635845214adf030367939655d172ef0fed5f/cputraces

# origin_of FILE: owner/repository/commit/path, and the terms.
origin_of() {
    local name=${1##*/}
    case $1 in
        arc/*) echo "$ARC/$name" "the ARC paper (FAST 2003) is to be cited; not packed for its size" ;;
        block/cloudPhysicsIO.*) echo "$LIBCACHESIM/$name" "a repository under the GPL 3.0" ;;
        block/cloud_storage-*) echo "$CAFFEINE/snia_tencent_block/$name" "terms of SNIA IOTTA" ;;
        block/msr-*) echo "$CAFFEINE/snia_cambridge/$name" "terms of SNIA IOTTA and Microsoft" ;;
        block/systor17-*) echo "$CAFFEINE/snia_systor/$name" "terms of SNIA IOTTA" ;;
        lirs/*) echo "$CAFFEINE/lirs/$name" "public, no licence stated" ;;
        mem/*.trace.gz) echo "$CAFFEINE/address/$name" "of unknown origin" ;;
        mem/*.gz) echo "$RAMULATOR/$name" "MIT; not packed for its size" ;;
        *) echo "fetch-traces.sh: $sums: no origin of $1" >&2; return 1 ;;
    esac
}

list() {
    local file origin
    while read -r _ file; do
        origin=$(origin_of "$file") || return 1
        printf '%s\n    %s/%s\n    %s\n' "$file" "$host" "${origin%% *}" "${origin#* }"
    done <"$sums"
}

# download URL FILE: status 1 if there is no such file or it cannot be written, 2 if the
# host cannot be reached.
download() {
    python3 - "$1" "$2" <<'PYTHON'
import http.client
import sys
import time
import urllib.error
import urllib.request

url, file = sys.argv[1:]
for again in range(3):
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            content = answer.read()
        break
    except (OSError, http.client.HTTPException) as error:
        why = f"{url}: {error}"
        if isinstance(error, urllib.error.HTTPError) and error.code in (404, 410):
            sys.exit(why)
        time.sleep(again)
else:
    print(why, file=sys.stderr)
    sys.exit(2)
try:
    with open(file, "wb") as out:
        out.write(content)
except OSError as error:
    sys.exit(f"{file}: {error}")
PYTHON
}

sum_of() { sha256sum <"$1" | cut -d' ' -f1; }

# fetch FILE SUM: status 1 if what there is, here or on the host, is not the file; 2 if the host
# cannot be reached.
fetch() {
    local target=$directory/$1 origin found status=0
    if [ -e "$target" ]; then
        found=$(sum_of "$target") || return 1
        [ "$found" != "$2" ] || return 0
        printf '%s: SHA-256 is %s, expected %s; remove it to fetch it again\n' "$target" "$found" "$2" >&2
        return 1
    fi
    [ -z "$unreachable" ] || return 2
    origin=$(origin_of "$1") || return 1
    mkdir -p "$(dirname "$target")" || return 1
    partial=$target.$$.partial
    download "$host/${origin%% *}" "$partial" || status=$?
    if [ "$status" = 0 ]; then
        found=$(sum_of "$partial")
        if [ "$found" = "$2" ]; then
            mv "$partial" "$target" || status=1
        else
            printf '%s: SHA-256 of %s is %s, expected %s\n' "$1" "$host/${origin%% *}" "$found" "$2" >&2
            status=1
        fi
    fi
    rm -f "$partial"
    [ "$status" != 0 ] || fetched=$((fetched + 1))
    return "$status"
}

case ${1:-} in
    --list) list; exit ;;
    -h | --help) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    -*) echo "fetch-traces.sh: unknown option $1; allowed: --list, --help" >&2; exit 2 ;;
esac
[ $# -le 1 ] || { echo "usage: fetch-traces.sh [DIRECTORY]" >&2; exit 2; }
command -v python3 >/dev/null || { echo "fetch-traces.sh: python3 is not installed (Debian package python3)" >&2; exit 1; }
directory=${1:-${PIEBALD_TRACES:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/piebald/traces}}
mkdir -p "$directory" || exit 1

partial=
trap 'rm -f "$partial"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
fetched=0 total=0 unreachable='' wrong=() missing=()
while read -r sum file; do
    total=$((total + 1))
    status=0
    fetch "$file" "$sum" || status=$?
    case $status in
        0) ;;
        2) unreachable=1; missing+=("$file") ;;
        *) wrong+=("$file") ;;
    esac
done <"$sums"

there=$((total - ${#wrong[@]} - ${#missing[@]}))
echo "$directory: $there of $total traces, $fetched of them fetched now"
if [ ${#missing[@]} -gt 0 ]; then
    echo "$host cannot be reached; missing: ${missing[*]}" >&2
fi
if [ ${#wrong[@]} -gt 0 ]; then
    echo "failed: ${wrong[*]}" >&2
    exit 1
fi
[ ${#missing[@]} = 0 ] || exit "$SKIP"
