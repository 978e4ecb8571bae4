#!/usr/bin/env bash
# Tests the kernel module in a debugging kernel: the distribution's source of 6.12, built as small as
# the guest needs it (small.config), with KASAN, lockdep, DEBUG_VM and more (debug.config). Runs what kernel/test.sh
# runs, and then lets allocations fail, one after another, in everything the module does
# (kernel/test/inject.sh).
#
#   kernel/debug.sh            builds the kernel if it is not there yet, and runs both
#   kernel/debug.sh build      only builds it
#   kernel/debug.sh inject     only lets allocations fail
#   kernel/debug.sh style      only has the kernel's own checkpatch look at the module
#
# Begins with that look.
#
# The kernel takes about twelve minutes of processor time and 2 GB, in
# ${XDG_CACHE_HOME:-~/.cache}/piebald/guest/debug; the tests take some two hours of it, two guests at a time.
# What came out last stands in kernel/debug.md.
set -eu
shopt -s inherit_errexit

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"

what=${1:-all}
case $what in
    all | build | inject | style) ;;
    -h | --help) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
    *) warn "debug: \"$what\"; allowed: build, inject, style"; exit 2 ;;
esac

# shellcheck source=source.sh
. "$root/kernel/source.sh"
# What a module outside of the kernel's tree does otherwise: it declares functions that the kernel keeps to itself, is
# for several versions, has lists as macros, and words that a function has as well.
IGNORED=AVOID_EXTERNS,COMPLEX_MACRO,LINUX_VERSION_CODE,CONSTANT_COMPARISON,EMBEDDED_FUNCTION_NAME

check_style() {
    install_packages perl >&2
    (cd "$root/kernel" && "$debug/$PACKAGE/scripts/checkpatch.pl" --no-tree --no-summary --terse --show-types \
        --ignore "$IGNORED" -f ./*.c ./*.h) || { warn "debug: the module is not in the kernel's style"; exit 1; }
    warn "debug: checkpatch has nothing to say of the module"
}

fetch_source
check_style
[ "$what" != style ] || exit 0
version=$(build_kernel debug "$debug/$PACKAGE" "$root/kernel/small.config" "$root/kernel/debug.config")
say "kernel $version"
[ "$what" != build ] || exit 0
export PIEBALD_GUEST_KERNEL=$version
# A module of its own, beside the one for the distribution's kernel.
CARGO_TARGET_DIR=$CARGO_TARGET_DIR/debug-kernel

if [ "$what" = all ]; then
    "$root/kernel/test.sh" --split 1 --memory 768M --timeout 9000
fi

module=$("$root/kernel/build.sh")
work=$CARGO_TARGET_DIR/inject
mkdir -p "$work"
cc -O2 -Wall -Wextra -Werror -static -o "$work/inject" "$root/kernel/test/inject.c"
rm -f "$work/disk"
truncate -s 64M "$work/disk"
PATH=$PATH:/usr/sbin:/sbin mke2fs -q -F -t ext4 "$work/disk"
"$root/scripts/guest.sh" run --run "$root/kernel/test/inject.sh" --module virtio_blk --module configfs \
    --file "$module:/piebald.ko" --file "$work/inject:/bin/inject" --file "$root/kernel/test/common.sh:/common.sh" \
    --disk "$work/disk" --memory 768M --cpus 1 --timeout 3000
