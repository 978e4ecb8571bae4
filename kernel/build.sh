#!/usr/bin/env bash
# Builds the kernel module piebald.ko, and piebald_model.ko beside it, which gives an emulated
# guest the counters of the machine model.
#
#   kernel/build.sh              for the guest's kernel (scripts/guest.sh), in target/kernel
#   kernel/build.sh DIR          for the kernel whose headers are in DIR, such as
#                                /lib/modules/$(uname -r)/build
#
# Prints the path of the module. First the policy core and its glue (kernel/core) are compiled
# to one object with the kernel's own flags against speculation and for its unwinder; then the
# C side is built by the headers' Makefile and linked with it. A warning of objtool is an
# error, and so is a panic that can be reached in the object, or a stack frame above 1 KiB.
#
# Needs make, gcc 12 or 14 (that of the kernel) and Rust with its library's source (rustup component add rust-src, or
# Debian's rust-web-src): core is compiled with the same flags.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"

case ${1:-} in
    -h | --help) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
esac
headers=${1:-$("$root/scripts/guest.sh" path headers)}
[ -e "$headers/Module.symvers" ] || { warn "build: $headers: no kernel headers there"; exit 2; }
release=$(sed -n 's/^#define UTS_RELEASE "\(.*\)"$/\1/p' "$headers/include/generated/utsrelease.h")
case $release in
    6.12.*) ;;
    *) warn "build: $headers is of kernel ${release:-?}; allowed: 6.12.*"; exit 2 ;;
esac

# Kbuild makes type information for a module if the kernel's image lies beside its headers.
if [ -e "$headers/vmlinux" ] && ! have pahole; then
    warn "build: pahole is needed, as type information is made with these headers (Debian package pahole)"
    exit 1
fi

out=$CARGO_TARGET_DIR/kernel
target=x86_64-unknown-none
mkdir -p "$out/module"

# --- the policy core ----------------------------------------------------------

find_rust_with_source || {
    install_rust rustc-web cargo-web rust-web-src >&2 && find_rust_with_source
} || { warn "build: no Rust with its library's source (rustup component add rust-src)"; exit 1; }

flags=(
    -C relocation-model=static -C code-model=kernel -C force-unwind-tables=no -C jump-tables=n
    -Z plt=yes -Z direct-access-external-data=yes
    -Z retpoline -Z retpoline-external-thunk -Z cf-protection=branch -Z function-return=thunk-extern
    -Z "patchable-function-entry=16,16" -Z indirect-branch-cs-prefix
)
RUSTC_BOOTSTRAP=1 RUSTFLAGS="${flags[*]}" "$CARGO" build -q --release --locked \
    --manifest-path "$root/kernel/core/Cargo.toml" --target "$target" --target-dir "$out/core" \
    -Z build-std=core,compiler_builtins >&2
library=$out/core/$target/release/libpiebald_kernel_core.a
rm -rf "$out/objects"
mkdir "$out/objects"
(cd "$out/objects" && ar x "$library")
# Everything that is used is in the crate's own object; what is left is compiler_builtins.
object=$(find "$out/objects" -name 'piebald_kernel_core*.o')
if [ -z "$object" ] || [ "$(wc -l <<<"$object")" != 1 ]; then
    warn "build: not one object: $object"
    exit 1
fi
allowed='^(memcpy|memset|memmove|memcmp|__x86_.*)$'
foreign=$(nm -u "$object" | awk '{ print $2 }' | grep -Ev "$allowed" || true)
if [ -n "$foreign" ]; then
    warn "build: the policy core reaches what a kernel does not have (pb_core_panic: a panic): $foreign"
    exit 1
fi

# As scripts/bare-metal.sh has it for the policy core.
large=$(objdump -d --no-show-raw-insn "$object" |
    sed -n 's/^[0-9a-f]* <\(.*\)>:$/\1/p; s/.*sub *\$\(0x[0-9a-f]*\),%rsp.*/\1/p' |
    while read -r word; do
        case $word in
            0x*) [ $((word)) -le 1024 ] || printf '%s (%d B) ' "$name" "$word" ;;
            *) name=$word ;;
        esac
    done)
if [ -n "$large" ]; then
    warn "build: stack frames above 1024 B: $large"
    exit 1
fi

# --- the module ---------------------------------------------------------------

# Kbuild writes beside its sources, so it gets copies.
rsync_like() { cmp -s "$1" "$2" || cp "$1" "$2"; }
for file in "$root"/kernel/*.c "$root"/kernel/*.h "$root/kernel/Kbuild"; do
    rsync_like "$file" "$out/module/$(basename "$file")"
done
rsync_like "$object" "$out/module/core.o_shipped"
: >"$out/module/.core.o.cmd"
log=$out/make.log
make -C "$headers" M="$out/module" modules >"$log" 2>&1 || { cat "$log" >&2; exit 1; }
if grep -E 'warning:' "$log" >&2; then
    warn "build: warnings are errors"
    rm -f "$out/module/piebald.ko"
    exit 1
fi
say "$out/module/piebald.ko"
