#!/usr/bin/env bash
# Records three real programs on this computer, runs each of them alone and beside
# a program that scans a file, on a modelled four-core machine, and writes a report
# that shows what the scanner did to them. Then it replays what a text search read
# against four policies of the page cache, with a disk below.
#
#   ./demo.sh
#   ./demo.sh --guest    instead: what a real kernel misses, with the module and without it
#                        (scripts/demo-guest.sh)
#
# Installs what is missing (needs root or sudo only then), builds the program,
# and leaves everything it makes in out/demo.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/setup.sh
. "$root/scripts/setup.sh"
case $*: in
    :) ;;
    --guest:) exec "$root/scripts/demo-guest.sh" ;;
    *) warn "demo: \"$*\": allowed: nothing, or --guest"; exit 2 ;;
esac
settle_target_dir "$root"
cd "$root"

scenario=scenarios/demo.toml
out=$root/out/demo
piebald=$CARGO_TARGET_DIR/release/piebald

step() { printf '\n== %s\n' "$*"; }
fail() { warn "demo: $*"; exit 1; }

packages="ca-certificates build-essential pkg-config qemu-user bzip2 mawk python3"
# shellcheck disable=SC2086  # a list of package names
if [ -n "$(missing_packages $packages)" ] || ! find_rust; then
    unlock_sudo
    step "installing what is missing"
    install_packages $packages || fail "the programs above are needed"
    ensure_rust || fail "no Rust compiler"
fi

step "building (release)"
"$CARGO" build --release -p piebald || fail "the build failed"

mkdir -p "$out/input"
[ -r "$scenario" ] || fail "$scenario: not found"

# Large enough that the programs work on megabytes, small enough for seconds.
step "preparing inputs"
[ -r /bin/bash ] || fail "/bin/bash: not readable"
head -c 900000 /bin/bash >"$out/input/binary"
LC_ALL=C awk 'BEGIN {
    s = 42
    for (i = 0; i < 60000; i++) {
        s = (s * 1103515245 + 12345) % 2147483648
        printf "%010d line %d of a text that is to be sorted\n", s, i
    }
}' >"$out/input/text"
# Counted by key over and over: the tables stay, and the programs go over them again and again.
head -n 30000 "$out/input/text" >"$out/input/half"
cat >"$out/input/table.py" <<'PY'
import json
import sys

table = {}
with open(sys.argv[1], encoding="utf-8") as text:
    for line in text:
        key, rest = line.split(" ", 1)
        table[key] = rest.split()
copy = json.loads(json.dumps(table))
print(len(copy), sum(len(words) for words in copy.values()))
PY

# Each program is met where its data is built: the first references are passed
# over, the next 48 million kept, and the program then runs on to its end.
record() { # NAME SKIP COMMAND...
    local name=$1 skip=$2
    shift 2
    printf '\n$ piebald record -o %s --skip %s --limit 48M -- %s\n' \
        "out/demo/$name.pbr" "$skip" "$*"
    "$piebald" record -o "$out/$name.pbr" --skip "$skip" --limit 48M -- "$@" >"$out/$name.out" ||
        fail "recording $name failed; what the program printed is in $out/$name.out"
    [ -s "$out/$name.pbr" ] || fail "$out/$name.pbr: nothing was recorded"
}

step "recording real programs under QEMU"
# The interpreter itself: python3 on the path may be a script that chooses one.
python=$(python3 -c 'import sys; print(sys.executable)')
export LC_ALL=C
cd "$out/input"
record bzip2 20M bzip2 -k -c binary
record json 30M "$python" -S table.py text
# shellcheck disable=SC2016  # awk's own variables
count_awk=(mawk '{ sum[$1] += $3 } END { for (k in sum) n++; print n }')
eight=(half half half half half half half half)
record awk 30M "${count_awk[@]}" "${eight[@]}"
cd "$root"

# That the programs did their work under the recorder, not merely that it ended.
bzip2 -dc "$out/bzip2.out" 2>/dev/null | cmp -s - "$out/input/binary" ||
    fail "bzip2 under the recorder wrote something else than without it"
[ "$(cat "$out/awk.out")" = "$("${count_awk[@]}" "$out/input/half")" ] ||
    fail "awk under the recorder counted something else than without it"

[ "$(cat "$out/json.out")" = "$("$python" -S "$out/input/table.py" "$out/input/text")" ] ||
    fail "the Python script under the recorder printed something else than without it"

step "running them on the modelled machine: $scenario"
printf '$ piebald study %s --output out/demo/report\n' "$scenario"
"$piebald" study "$scenario" --output "$out/report" || fail "the study failed"

report=$out/report/report.html
[ -s "$report" ] || fail "$report: the study wrote no report"

# What a text search read, against policies of the page cache, with a disk below.
step "replaying a trace of file accesses"
replay=(replay testdata/replay/glimpse.fpt.zst --layout testdata/replay/layout.ext4.txt.zst
    --readahead 2.6.11 --policy "clock,dulo,arc,s3-fifo,lirs" --size "32MiB,64MiB,128MiB,192MiB"
    --output out/demo/replay)
printf '$ piebald %s\n' "${replay[*]}"
"$piebald" "${replay[@]}" || fail "the replay failed"
plot=$out/replay/report.html
[ -s "$plot" ] || fail "$plot: the replay wrote no report"

step "done"
say "The study's sentences say what the scanner did to each program, and why;"
say "the replay's, which policy of the page cache would have saved how much time."
say "the study with pictures:  $report"
say "the replay with pictures: $plot"
say "recordings:             $out/*.pbr"
