#!/usr/bin/env bash
# Builds the policy core for a target without an operating system and inspects
# the machine code: nothing may panic, use floating point, or take a stack frame
# above 1 KiB (scripts/bare-metal/check.py says exactly what counts).
#
# Two views, since each misses what the other sees:
#   1. the libraries of `units` and `policy`, with every function that is not
#      generic compiled, called or not;
#   2. a small program (scripts/bare-metal/) linked against them, which uses the
#      generic parts and contains everything that is reached, `core` included.
#
# That each check can fail is tested every time: the small program is built once
# more per planted defect (cargo features plant-*: an index out of bounds, a
# float product, a frame of 1280 B, a 128-bit division), and the check must
# report exactly that kind. To see it by hand in a room, write `table[i]` with an
# unknown i into a policy function and run ./test.sh bare-metal.
#
# The target's `core` is built from source (-Zbuild-std), which needs the
# standard library's source for the very compiler in use: rustup's component
# `rust-src`, or Debian's rust-web-src beside rustc-web.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
cd "$root"

target=x86_64-unknown-none
out=$CARGO_TARGET_DIR/bare-metal
check=$root/scripts/bare-metal/check.py

cannot_run() {
    [ -z "${STAGE_NOTE:-}" ] || printf '%s\n' "$*" >"$STAGE_NOTE"
    say "skipped: $*"
    exit 77
}

for program in python3 objdump ar ld c++filt; do
    have "$program" || cannot_run "$program is not installed"
done
find_rust_with_source || {
    say "no toolchain with the library's source; trying Debian's packages"
    install_rust rustc-web cargo-web rust-web-src && find_rust_with_source
} || cannot_run "no Rust with its library's source (rustup component add rust-src, or Debian's rust-web-src)"
"$RUSTC" --version

# Unstable flags (-Z) on a release compiler; only this stage uses them.
export RUSTC_BOOTSTRAP=1
# In pieces, whatever the workspace's profile says: compiled in one piece, with dead code kept, a crate
# also holds methods that core gives to every type (clamp, step_by) and that nothing calls.
# One profile for the workspace and for the small program, which is no part of it: `core`, `units` and
# `policy` are then compiled once for both.
build_std=(--release --target "$target" -Zbuild-std=core --target-dir "$out"
    --config profile.release.lto=false --config profile.release.codegen-units=16)

library() { # CRATE: compile with nothing left out, so that all of it can be seen
    "$CARGO" rustc -q -p "$1" --lib "${build_std[@]}" \
        -- -C link-dead-code -Z cross-crate-inline-threshold=never -C panic=abort
}

program() { # NAME CARGO-ARGUMENTS...: link the probe to $out/NAME.elf
    local name=$1
    shift
    "$CARGO" build -q --manifest-path scripts/bare-metal/Cargo.toml "${build_std[@]}" "$@"
    ld -static --gc-sections -e piebald_probe_start -o "$out/$name.elf" \
        "$out/$target/release/libpiebald_bare_metal_probe.a"
}

# later COMMAND...: beside what is compiled meanwhile.
checks=()
later() { "$@" & checks+=($!); }

# rlib NAME LIBRARY: a copy that the next program does not replace.
rlib() {
    cp "$out/$target/release/lib$2.rlib" "$out/$1.rlib"
    printf '%s\n' "$out/$1.rlib"
}

# 128-bit division occurs only where text is parsed, which no kernel does.
library piebald-units
later python3 "$check" rlib "$(rlib units piebald_units)" --allow __udivti3 --allow __umodti3
library piebald-policy
later python3 "$check" rlib "$(rlib policy piebald_policy)"
program probe
later python3 "$check" elf "$out/probe.elf"

# Called by `later`.
# shellcheck disable=SC2317
expect() { # KIND VIEW FILE: the check must fail and name this kind alone
    local report
    if report=$(python3 "$check" "$2" "$3"); then
        warn "the check of $2 does not see a planted $1"
        return 1
    fi
    if ! grep -q "^$1: " <<<"$report"; then
        warn "the check of $2 does not name the planted $1:"
        warn "$report"
        return 1
    fi
    if grep -E '^(panic|float|frame|helper|empty): ' <<<"$report" | grep -qv "^$1: "; then
        warn "the check of $2 reports more than the planted $1:"
        warn "$report"
        return 1
    fi
    say "planted $1 is found ($2)"
}

for defect in panic float frame helper; do
    # The small program itself brings what a kernel does not have.
    if [ "$defect" != helper ]; then
        program "planted-$defect" --features "plant-$defect"
        later expect "$defect" elf "$out/planted-$defect.elf"
    fi
    "$CARGO" rustc -q --manifest-path scripts/bare-metal/Cargo.toml --lib "${build_std[@]}" \
        --crate-type rlib --features "plant-$defect" \
        -- -C link-dead-code -Z cross-crate-inline-threshold=never
    later expect "$defect" rlib "$(rlib "planted-$defect" piebald_bare_metal_probe)"
done
failed=0
for each in "${checks[@]}"; do wait "$each" || failed=1; done
exit "$failed"
