#!/usr/bin/env bash
# What the module costs, in instructions of the guest per operation: kernel/test/cost.c under
# QEMU's instruction clock, with one processor. Prints a line for each state of the module.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"

module=$("$root/kernel/build.sh")
work=$CARGO_TARGET_DIR/kernel/cost
mkdir -p "$work"
cc -O2 -Wall -Wextra -Werror -static -o "$work/cost" "$root/kernel/test/cost.c"
"$root/scripts/guest.sh" run --run "$root/kernel/test/cost.sh" --file "$module:/piebald.ko" \
    --file "$work/cost:/bin/cost" --cpus 1 --memory 512M --qemu -icount --qemu shift=0,sleep=off |
    tr -d '\r' | grep -a ': new'
