#!/usr/bin/env bash
# Soaks the kernel module in guests: kernel/test/soak.sh, for so many seconds with each seed, two guests at a time.
#
#   kernel/soak.sh [--turns] [SECONDS [SEED...]]     180 seconds, seed 1
#
# The seconds are the guest's, which has four processors that run in parallel; with --turns, and where no QEMU can do that
# (scripts/guest.sh emulator), two that take turns. Fails if a check fails or the kernel complains of anything.
# What came out last stands in kernel/soak.md. PIEBALD_GUEST_KERNEL names another kernel (scripts/guest.sh).
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
case ${1:-} in -h | --help) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;; esac
# shellcheck source=processors.sh
. "$root/kernel/processors.sh"
turns=()
if [ "${1:-}" = --turns ]; then turns=(--turns); shift; fi
seconds=${1:-180}
[ $# = 0 ] || shift
[ $# -gt 0 ] || set -- 1
for number in "$seconds" "$@"; do
    [[ $number =~ ^[1-9][0-9]{0,5}$ ]] || { warn "soak: \"$number\"; allowed: whole numbers from 1 to 999999"; exit 2; }
done

install_packages build-essential e2fsprogs || exit 1
"$root/scripts/guest.sh" fetch
settle_processors "$root" ${turns[@]+"${turns[@]}"}
module=$("$root/kernel/build.sh")
work=$CARGO_TARGET_DIR/kernel/soak
mkdir -p "$work"
cc -O2 -Wall -Wextra -Werror -static -pthread -o "$work/frames" "$root/kernel/test/frames.c"
"$root/scripts/guest.sh" pack "$work/initrd" --run "$root/kernel/test/soak.sh" --module virtio_blk --module configfs \
    --file "$module:/piebald.ko" --file "$work/frames:/bin/frames" --file "$root/kernel/test/common.sh:/common.sh"

soak() { # SEED
    local disk=$work/disk-$1 swap=$work/swap-$1 status=0
    rm -f "$disk" "$swap"
    truncate -s 400M "$disk"
    PATH=$PATH:/usr/sbin:/sbin mke2fs -q -F -t ext4 "$disk"
    truncate -s 512M "$swap"
    PATH=$PATH:/usr/sbin:/sbin mkswap -q "$swap"
    "$root/scripts/guest.sh" boot "$work/initrd" --disk "$disk" --disk "$swap" --memory 512M --append "soak=$seconds seed=$1" --cpus "$cpus" ${processors[@]+"${processors[@]}"} \
        --timeout $((3 * seconds + 900)) >"$work/log-$1" 2>&1 || status=$?
    rm -f "$disk" "$swap"
    say "seed $1: $(tr -d '\r' <"$work/log-$1" | grep -a '^rounds:' || echo "no end"), status $status"
    [ "$status" = 0 ] || { grep -a -A 20 '^FAILED' "$work/log-$1" || tail -n 40 "$work/log-$1"; } >&2
    return "$status"
}

failed=0 running=0
for seed; do
    if [ "$running" = 2 ]; then wait -n || failed=1; running=1; fi
    soak "$seed" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do wait -n || failed=1; running=$((running - 1)); done
exit "$failed"
