#!/usr/bin/env bash
# Tests the verbs for a live Linux in a guest: boots the distribution's kernel, and runs
# crates/linux/guest/run.sh there with the `piebald` command and the kernel module.
#
#   crates/linux/guest/test.sh [PIEBALD [OPTION...]]
#
# PIEBALD: the command, built already (otherwise a release build is made); OPTIONs of
# `scripts/guest.sh boot`, such as --memory 1G.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../../.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../../../scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
piebald=${1:-}
[ $# = 0 ] || shift

install_packages build-essential || exit 1
if [ -z "$piebald" ]; then
    find_rust || { warn "test: no Rust 1.$MIN_RUST_MINOR or later"; exit 1; }
    "$CARGO" build -q --release --manifest-path "$root/Cargo.toml" -p piebald
    piebald=$CARGO_TARGET_DIR/release/piebald
fi
[ -x "$piebald" ] || { warn "test: $piebald: no such program"; exit 2; }
"$root/scripts/guest.sh" fetch
module=$("$root/kernel/build.sh")
work=$CARGO_TARGET_DIR/linux/guest
mkdir -p "$work"
cc -O2 -Wall -Wextra -Werror -static -pthread -o "$work/frames" "$root/kernel/test/frames.c"
# What a debugger wants would take much of a small guest's memory.
strip -o "$work/piebald" "$piebald"
libraries=()
while read -r library; do
    libraries+=(--file "$library:$library")
done < <(ldd "$piebald" | sed -n 's/^[^/]*\(\/[^ ]*\) (.*/\1/p')
# The kernel's own form: checksums that it knows, and a dictionary that it has room for.
xz --check=crc32 --lzma2=dict=1MiB -c "$module" >"$work/piebald.ko.xz"
"$root/scripts/guest.sh" pack "$work/initrd" --run "$root/crates/linux/guest/run.sh" \
    --module configfs --file "$work/piebald.ko.xz:/piebald.ko.xz" --file "$root/crates/linux/guest/checks.sh:/checks.sh" --file "$module:/piebald.ko" \
    --file "$work/frames:/bin/frames" \
    --file "$work/piebald:/bin/piebald" ${libraries[@]+"${libraries[@]}"}
"$root/scripts/guest.sh" boot "$work/initrd" --memory 512M --timeout 600 "$@"
