#!/usr/bin/env bash
# What the module costs, in instructions of the guest per operation: kernel/test/cost.c under
# QEMU's instruction clock, with one processor. Prints a line for each state of the module; kernel/test/cost.c says what
# its numbers are.
#
#   kernel/cost.sh              instructions; a minute
#   kernel/cost.sh PLUGIN [MACHINE]
#                               and cycles, last-level misses, locked instructions and stores to lines that another
#                               processor wrote last on a modelled machine, a W3540 or the one that is
#                               named (a preset or a file); PLUGIN is libpiebald_qemu.so. Some minutes
#   kernel/cost.sh -p N PLUGIN [MACHINE]
#                               the same of N processes at once on as many processors, without a build
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"

several=
case ${1:-} in
    -p)
        several=${2:-}
        if ! [[ $several =~ ^[1-9][0-9]?$ ]] || [ $# -lt 3 ]; then
            warn "cost: -p \"$several\"; allowed: 1 to 99, and then PLUGIN"
            exit 2
        fi
        shift 2
        ;;
    -h | --help) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
esac
install_packages build-essential || exit 1
module=$("$root/kernel/build.sh")
work=$CARGO_TARGET_DIR/kernel/cost
mkdir -p "$work"
cc -O2 -Wall -Wextra -Werror -static -o "$work/cost" "$root/kernel/test/cost.c" -lm
cc -E -P -o "$work/cost.i" "$root/kernel/test/nodes.c"
compiler=$(cc -print-prog-name=cc1)
echo "${several:+-p $several}" >"$work/options"
options=(--file "$work/options:/options" --program "$compiler" --file "$compiler:/cc1" --file "$work/cost.i:/cost.i")
if [ -n "${1:-}" ]; then
    [ -e "$1" ] || { warn "cost: $1: no such file"; exit 2; }
    rm -f "$work/counters"
    memory="memory-backend-file,id=counters,share=on,size=64K,mem-path=$work/counters"
    options+=(--file "$(dirname "$module")/piebald_model.ko:/piebald_model.ko")
    options+=(--qemu -plugin --qemu "$1,machine=${2:-w3540},memory=$((512 << 20)),output=$work/results.json,counters=$work/counters")
    options+=(--qemu -object --qemu "$memory" --qemu -device --qemu "ivshmem-plain,memdev=counters")
fi
"$root/scripts/guest.sh" run --run "$root/kernel/test/cost.sh" --module configfs --file "$module:/piebald.ko" \
    --file "$work/cost:/bin/cost" --cpus "${several:-1}" --memory 512M --timeout 1500 "${options[@]}" \
    --qemu -icount --qemu shift=0,sleep=off |
    tr -d '\r' | grep -aE ': (new|fork)'
