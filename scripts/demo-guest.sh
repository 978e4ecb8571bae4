#!/usr/bin/env bash
# Boots the distribution's kernel under QEMU twelve times, watched by the machine model: a
# mergesort alone and beside grep, without Piebald's module and with it and SRM-buffer, three times
# each with other free memory. Says what was missed in the last-level cache, what the module costs the mergesort
# by itself, and how sure that is, and writes a report with pictures.
#
#   ./demo.sh --guest
#
# Installs what is missing (needs root or sudo only then), fetches the kernel, builds the
# program and the module, and leaves everything it makes in out/demo-guest. After the build it
# takes some seven minutes of processor time, as many guests at a time as there are cores.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
cd "$root"

scenario=scenarios/guest-srm.toml
out=$root/out/demo-guest
piebald=$CARGO_TARGET_DIR/release/piebald

step() { printf '\n== %s\n' "$*"; }
fail() { warn "demo: $*"; exit 1; }

packages="ca-certificates build-essential pkg-config qemu-system-x86 busybox-static cpio kmod
    xz-utils libelf1 e2fsprogs grep"
# shellcheck disable=SC2086  # a list of package names
if [ -n "$(missing_packages $packages)" ] || ! find_rust; then
    unlock_sudo
    step "installing what is missing"
    install_packages $packages || fail "the programs above are needed"
    ensure_rust || fail "no Rust compiler"
fi

step "fetching the distribution's kernel and its headers"
scripts/guest.sh fetch || fail "no kernel to boot"

step "building (release)"
"$CARGO" build --release -p piebald || fail "the build failed"
step "building the module"
module=$(kernel/build.sh) || fail "the module was not built"
say "$module"

mkdir -p "$out"
# Scenarios name the module where it is built unless CARGO_TARGET_DIR says otherwise.
set --
if [ "$CARGO_TARGET_DIR" != "$root/target" ]; then
    set -- --set "guest.module=$module"
fi

step "booting it twelve times: $scenario"
printf '$ piebald guest run %s --repetitions 3 --output out/demo-guest/report\n' "$scenario${*:+ $*}"
"$piebald" guest run "$scenario" --repetitions 3 "$@" --output "$out/report" || fail "the guests gave no results"
report=$out/report/report.html
[ -s "$report" ] || fail "$report: no report was written"

# figure POLICY PHASE METRIC: its mean of the mergesort and half of its 95 % interval.
figure() {
    awk -F, -v p="$1" -v h="$2" -v m="$3" \
        '$1 == p && $2 == "mergesort" && $4 == h && $5 == m { print $7, $8; found = 1 }
         END { exit !found }' "$out/report/study.csv" ||
        fail "$out/report/study.csv: no line of $1, mergesort, $2, $3"
}
misses="L3 misses per million instructions"
{
    figure stock together "$misses"
    figure SRM-buffer together "$misses"
    figure stock together slowdown
    figure SRM-buffer together slowdown
    figure stock alone instructions
    figure SRM-buffer alone instructions
    figure stock alone time
    figure SRM-buffer alone time
} >"$out/figures"

step "done"
awk '{ mean[NR] = $1; half[NR] = $2 }
# How much more the second is than the first, in percent, and how far that may be off.
function more(first, second,   a, b) {
    a = half[first] / mean[first]
    b = half[second] / mean[second]
    return sprintf("%+.2f %% (±%.2f)", 100 * (mean[second] / mean[first] - 1),
        100 * mean[second] / mean[first] * sqrt(a * a + b * b))
}
END {
    printf "Beside grep the mergesort misses the last-level cache %.0f times (±%.0f) per million\n", mean[1], half[1]
    printf "instructions, and %.0f times (±%.0f) with the module and SRM-buffer.\n", mean[2], half[2]
    printf "It takes %.1f %% (±%.1f) longer than alone, and %.1f %% (±%.1f) longer with them.\n",
        100 * mean[3], 100 * half[3], 100 * mean[4], 100 * half[4]
    printf "Alone, the module costs it %s instructions and %s time.\n", more(5, 6), more(7, 8)
    print "Intervals: 95 %, three boots each. Times are upper bounds (docs/guest.md)."
}' "$out/figures"
say "the report with pictures: $report"
