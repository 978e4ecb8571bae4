#!/usr/bin/env bash
# Boots the distribution's kernel under QEMU four times, watched by the machine model: a
# mergesort alone and beside grep, without Piebald's module and with it and SRM-buffer. Says
# what was missed in the last-level cache each time, and writes a report with pictures.
#
#   ./demo.sh --guest
#
# Installs what is missing (needs root or sudo only then), fetches the kernel, builds the
# program and the module, and leaves everything it makes in out/demo-guest. After the build it
# takes some three minutes of processor time.
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

step "booting it four times: $scenario"
printf '$ piebald guest run %s --output out/demo-guest/report\n' "$scenario${*:+ $*}"
"$piebald" guest run "$scenario" "$@" --output "$out/report" || fail "the guests gave no results"
report=$out/report/report.html
[ -s "$report" ] || fail "$report: no report was written"

# figure POLICY PHASE METRIC: a mean of the mergesort.
figure() {
    awk -F, -v p="$1" -v h="$2" -v m="$3" \
        '$1 == p && $2 == "mergesort" && $4 == h && $5 == m { print $7; found = 1 }
         END { exit !found }' "$out/report/study.csv" ||
        fail "$out/report/study.csv: no line of $1, mergesort, $2, $3"
}
misses="L3 misses per million instructions"
before=$(figure stock together "$misses")
after=$(figure SRM-buffer together "$misses")
slow_before=$(figure stock together slowdown)
slow_after=$(figure SRM-buffer together slowdown)

step "done"
awk -v b="$before" -v a="$after" -v sb="$slow_before" -v sa="$slow_after" 'BEGIN {
    printf "Beside grep the mergesort misses the last-level cache %.0f times per million\n", b
    printf "instructions, and %.0f times with the module and SRM-buffer: %.1f %% fewer.\n",
        a, (b > 0 ? 100 * (b - a) / b : 0)
    printf "It takes %.1f %% longer than alone, and %.1f %% longer with them (times are upper\n",
        100 * sb, 100 * sa
    print "bounds, docs/guest.md)."
}'
say "the report with pictures: $report"
