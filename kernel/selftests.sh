#!/usr/bin/env bash
# The kernel's own tests of control groups and of memory (tools/testing/selftests of the distribution's source)
# in guests: without the module, and in each of the states below; their verdicts must be the same.
#
#   kernel/selftests.sh               all states
#   kernel/selftests.sh STATE...      these beside `without`
#
# States: off       the module is loaded, and off
#         on        on, and nobody is colored
#         hint      the tests run in a group with half of 16 colors, a wish (bits 12 to 15)
#         hard      the same, firm
#         srm       SRM-buffer
# Each state is a boot of its own with 2 GiB, and two boots run at a time. One more with two memory nodes and four
# processors has the tests that need them; SRM-buffer wants one node, and has none of these.
#
# A test that fails is tried three times, one of merged pages once; its best verdict counts. Fails if a verdict differs from that without the
# module, but for those that kernel/test/selftests.tsv lists with a reason.
# What came out last stands in kernel/selftests.md.
set -eu
shopt -s inherit_errexit

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
# shellcheck source=source.sh
. "$root/kernel/source.sh"

STATES=(off on hint hard srm)
case ${1:-} in -h | --help) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;; esac
[ $# -gt 0 ] || set -- "${STATES[@]}"
for state; do
    [[ " ${STATES[*]} " = *" $state "* ]] || { warn "selftests: \"$state\"; allowed: ${STATES[*]}"; exit 2; }
done

# The programs lie in $debug/selftests/bin then.
build_tests() {
    local out=$debug/selftests own=$debug/$PACKAGE/tools/testing/selftests flags
    [ ! -e "$out/complete" ] || return 0
    install_packages libnuma-dev libcap-dev rsync >&2
    warn "selftests: building the kernel's tests"
    rm -rf "$out"
    mkdir -p "$out"
    make -s -C "$debug/$PACKAGE" O="$out/headers" headers >"$debug/log" 2>&1 || { tail -n 20 "$debug/log" >&2; return 1; }
    # Static, for a guest that has no libraries. Khugepaged's test lacks an include in 6.12.117, so what the first
    # round leaves is built with it.
    for flags in -static "-static -include $own/kselftest.h"; do
        make -s -k -j"$(nproc)" -C "$own" O="$out/headers" TARGETS="cgroup mm" EXTRA_CFLAGS="$flags" LDFLAGS=-static \
            >>"$debug/log" 2>&1 || true
    done
    mkdir "$out/bin"
    find "$out/headers/kselftest" -type f -executable ! -name '*.sh' -exec cp {} "$out/bin" \;
    if ! [ -x "$out/bin/test_memcontrol" ] || ! [ -x "$out/bin/khugepaged" ]; then tail -n 40 "$debug/log" >&2; return 1; fi
    touch "$out/complete"
}

fetch_source
"$root/scripts/guest.sh" fetch
build_tests
module=$("$root/kernel/build.sh")
work=$CARGO_TARGET_DIR/kernel/selftests
mkdir -p "$work"
install_packages e2fsprogs util-linux
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$work/passwd"
"$root/scripts/guest.sh" pack "$work/initrd" --run "$root/kernel/test/selftests.sh" --module virtio_blk --module configfs \
    --file "$module:/piebald.ko" --file "$work/passwd:/etc/passwd" --file "$debug/selftests/bin:/tests" \
    --file "$root/kernel/test/common.sh:/common.sh" --program /usr/bin/unshare

# boot STATE NODES: leaves its verdicts in $work/STATE-NODES.
boot() {
    local name=$1-$2 status=0
    rm -f "$work/$name".*
    truncate -s 1G "$work/$name.disk"
    truncate -s 512M "$work/$name.swap"
    PATH=$PATH:/usr/sbin:/sbin mke2fs -q -F -t ext4 "$work/$name.disk"
    PATH=$PATH:/usr/sbin:/sbin mkswap -q "$work/$name.swap"
    "$root/scripts/guest.sh" boot "$work/initrd" --disk "$work/$name.disk" --disk "$work/$name.swap" --memory 2G \
        --nodes "$2" --cpus "$((2 * $2))" --timeout 5400 --append "state=$1" >"$work/$name.log" 2>&1 || status=$?
    rm -f "$work/$name.disk" "$work/$name.swap"
    if [ "$status" != 0 ]; then
        warn "selftests: $name: status $status; the end of $work/$name.log:"
        tail -n 20 "$work/$name.log" >&2
        return 1
    fi
    grep -a '^verdict ' "$work/$name.log" | tr -d '\r' | cut -d' ' -f2- >"$work/$name.verdicts"
    say "$name: $(wc -l <"$work/$name.verdicts") verdicts"
}

# Two boots at a time.
failed=0 running=0
for nodes in 1 2; do
    for state in without "$@"; do
        [ "$nodes-$state" != 2-srm ] || continue
        if [ "$running" = 2 ]; then wait -n || failed=1; running=1; fi
        boot "$state" "$nodes" &
        running=$((running + 1))
    done
done
while [ "$running" -gt 0 ]; do wait -n || failed=1; running=$((running - 1)); done
[ "$failed" = 0 ] || exit 1
python3 "$root/kernel/test/verdicts.py" "$root/kernel/test/selftests.tsv" "$work" "$@"
