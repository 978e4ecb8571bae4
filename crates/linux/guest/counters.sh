#!/usr/bin/env bash
# Tests the machine model's counters in a guest: boots the distribution's kernel under the plugin
# with their memory attached, and runs crates/linux/guest/counters-run.sh there.
#
#   crates/linux/guest/counters.sh [PIEBALD PLUGIN [OPTION...]]
#
# PIEBALD, PLUGIN: the command and libpiebald_qemu.so, built already (otherwise a release build of
# both is made); OPTIONs of `scripts/guest.sh boot`, such as --cpus 4.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../../../scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"

install_packages build-essential || exit 1
if [ $# -lt 2 ]; then
    [ $# = 0 ] || { warn "counters: PIEBALD and PLUGIN, or neither"; exit 2; }
    find_rust || { warn "counters: no Rust 1.$MIN_RUST_MINOR or later"; exit 1; }
    "$CARGO" build -q --release --manifest-path "$root/Cargo.toml" -p piebald -p piebald-qemu
    set -- "$CARGO_TARGET_DIR/release/piebald" "$CARGO_TARGET_DIR/release/libpiebald_qemu.so"
fi
piebald=$1 plugin=$2
shift 2
for file in "$piebald" "$plugin"; do
    [ -e "$file" ] || { warn "counters: $file: no such file"; exit 2; }
done
"$root/scripts/guest.sh" fetch
module=$("$root/kernel/build.sh")
work=$CARGO_TARGET_DIR/linux/counters
mkdir -p "$work"
compile() { cc -O2 -Wall -Wextra -Werror -static -o "$work/$1" "$2"; }
compile counters "$root/crates/linux/guest/counters.c"
compile walk "$root/crates/guest/programs/walk.c"
strip -o "$work/piebald" "$piebald"
libraries=()
while read -r library; do
    libraries+=(--file "$library:$library")
done < <(ldd "$piebald" | sed -n 's/^[^/]*\(\/[^ ]*\) (.*/\1/p')
"$root/scripts/guest.sh" pack "$work/initrd" --run "$root/crates/linux/guest/counters-run.sh" \
    --module configfs \
    --file "$root/crates/linux/guest/checks.sh:/checks.sh" --file "$module:/piebald.ko" \
    --file "$(dirname "$module")/piebald_model.ko:/piebald_model.ko" \
    --file "$work/counters:/bin/counters" --file "$work/walk:/bin/walk" \
    --file "$work/piebald:/bin/piebald" ${libraries[@]+"${libraries[@]}"}
rm -f "$work/counters.memory"
plugged=$plugin,machine=w3540,memory=$((512 << 20)),output=$work/results.json,counters=$work/counters.memory
PIEBALD_GUEST_CPU=max,-erms,-fsrm,-monitor "$root/scripts/guest.sh" boot "$work/initrd" \
    --memory 512M --timeout 500 --qemu -plugin --qemu "$plugged" \
    --qemu -icount --qemu shift=0,sleep=off \
    --qemu -object --qemu "memory-backend-file,id=counters,share=on,size=64K,mem-path=$work/counters.memory" \
    --qemu -device --qemu ivshmem-plain,memdev=counters "$@"
