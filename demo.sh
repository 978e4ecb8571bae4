#!/usr/bin/env bash
# Records real programs on this computer, runs them together on a modelled
# machine under several policies, and writes a report.
#
#   ./demo.sh
#
# Installs what is missing (needs root or sudo only then), builds the program,
# and leaves everything it makes in out/demo.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
cd "$root"

scenario=scenarios/demo.toml
out=$root/out/demo
piebald=$CARGO_TARGET_DIR/release/piebald

step() { printf '\n== %s\n' "$*"; }
fail() { warn "demo: $*"; exit 1; }

packages="ca-certificates build-essential pkg-config qemu-user bzip2 grep coreutils python3"
# shellcheck disable=SC2086  # a list of package names
if [ -n "$(missing_packages $packages)" ] || ! find_rust; then
    unlock_sudo
    step "installing what is missing"
    install_packages $packages || fail "the programs above are needed"
    ensure_rust || fail "no Rust compiler"
fi

step "building (release)"
"$CARGO" build --release --bin piebald || fail "the build failed"

mkdir -p "$out/input"
[ -r "$scenario" ] || fail "$scenario: not found"

# A real binary and a real text, found on every Debian; the sizes are cut so
# that recording takes seconds.
step "preparing inputs"
[ -r /bin/bash ] || fail "/bin/bash: not readable"
head -c 262144 /bin/bash >"$out/input/binary"
# Programs and their man pages differ between computers; the repository's own
# sources do not.
find "$root/crates" -name '*.rs' -print0 | LC_ALL=C sort -z | xargs -0 cat |
    head -c 524288 >"$out/input/text"
cat >"$out/input/count.py" <<'PY'
import json
import sys

words = {}
with open(sys.argv[1], encoding="utf-8", errors="replace") as text:
    for line in text:
        for word in line.split():
            words[word] = words.get(word, 0) + 1
copy = json.loads(json.dumps(words))
print(sum(copy.values()), len(copy))
PY

record() { # NAME COMMAND...
    local name=$1
    shift
    printf '\n$ piebald record --output %s -- %s\n' "out/demo/$name.pbr" "$*"
    "$piebald" record --output "$out/$name.pbr" -- "$@" >"$out/$name.out" ||
        fail "recording $name failed; what the program printed is in $out/$name.out"
    [ -s "$out/$name.pbr" ] || fail "$out/$name.pbr: nothing was recorded"
    "$piebald" trace info "$out/$name.pbr" || fail "$out/$name.pbr: cannot be read back"
}

step "recording real programs under QEMU"
# The interpreter itself: python3 on the path may be a script that chooses one.
python=$(python3 -c 'import sys; print(sys.executable)')
export LC_ALL=C
cd "$out/input"
record bzip2 bzip2 -k -c -1 binary
record grep grep -c -E '(self|fn).*->' text
record sort sort text
record json "$python" -S count.py text
cd "$root"

# That the programs did their work under the recorder, not merely that it ended.
bzip2 -dc "$out/bzip2.out" 2>/dev/null | cmp -s - "$out/input/binary" ||
    fail "bzip2 under the recorder wrote something else than without it"
[ "$(cat "$out/grep.out")" = "$(grep -c -E '(self|fn).*->' "$out/input/text")" ] ||
    fail "grep under the recorder counted something else than without it"

sort "$out/input/text" | cmp -s - "$out/sort.out" ||
    fail "sort under the recorder wrote something else than without it"

step "comparing policies: $scenario"
printf '$ piebald study %s --output out/demo/report\n' "$scenario"
"$piebald" study "$scenario" --output "$out/report" || fail "the study failed"

report=$(find "$out/report" -name '*.html' -print -quit 2>/dev/null)
[ -n "$report" ] || fail "$out/report: the study wrote no report"
step "done"
say "report:     $report"
say "recordings: $out/*.pbr"
