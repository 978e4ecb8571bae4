#!/usr/bin/env bash
# Builds the kernel module piebald.ko, and piebald_model.ko beside it, which gives an emulated
# guest the counters of the machine model.
#
#   kernel/build.sh              for the guest's kernel (scripts/guest.sh), in target/kernel
#   kernel/build.sh DIR          for the kernel whose headers are in DIR, such as
#                                /lib/modules/$(uname -r)/build
#
# Prints the path of the module. First the policy core and its glue are compiled to one object (core.sh);
# then the C side is built by the headers' Makefile and linked with it. A warning of objtool is an error, and so is one of
# sparse, where that is installed.
#
# PIEBALD_KNOWN=FILE is a table other than kernel/known.tsv, for tests; the module is made beside the other.
#
# Needs make, gcc 12 or 14 (that of the kernel; where this system has it not, or the headers' tools do
# not run here, a small Debian 13 that scripts/guest.sh makes has it) and Rust with its library's source (rustup component add rust-src, or
# Debian's rust-web-src): core is compiled with the same flags.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../scripts/setup.sh
. "$root/scripts/setup.sh"
# shellcheck source=core.sh
. "$root/kernel/core.sh"
settle_target_dir "$root"

case ${1:-} in
    -h | --help) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
esac
headers=${1:-$("$root/scripts/guest.sh" path headers)}
[ -e "$headers/Module.symvers" ] || { warn "build: $headers: no kernel headers there (Debian packages linux-headers-*, that of a running kernel linux-headers-\$(uname -r))"; exit 2; }
release=$(sed -n 's/^#define UTS_RELEASE "\(.*\)"$/\1/p' "$headers/include/generated/utsrelease.h")
[ -n "$release" ] || { warn "build: $headers: no kernel headers there (include/generated/utsrelease.h)"; exit 2; }
# Which kernels the module runs on, it decides when it is loaded (known.c). These never:
if grep -qx 'CONFIG_PREEMPT_RT=y' "$headers/include/config/auto.conf"; then
    warn "build: $headers is of kernel $release, a real-time one (PREEMPT_RT); allowed: kernels without that"
    exit 2
fi

# Kbuild makes type information for a module if the kernel's image lies beside its headers.
if [ -e "$headers/vmlinux" ] && ! have pahole; then
    warn "build: pahole is needed, as type information is made with these headers (Debian package pahole)"
    exit 1
fi

out=$CARGO_TARGET_DIR/kernel
# Another table of what kernels have makes another module, for tests.
known=${PIEBALD_KNOWN:-$root/kernel/known.tsv}
[ -r "$known" ] || { warn "build: PIEBALD_KNOWN=$known: no such file; allowed: a table as kernel/known.tsv"; exit 2; }
# One at a time: they share what Cargo and Kbuild leave there.
mkdir -p "$out"
exec 9>"$out/lock"
flock 9
dir=$out/module
[ -z "${PIEBALD_KNOWN:-}" ] || dir=$out/module-known${KCFLAGS:+-flags}
mkdir -p "$dir"

# --- the policy core ----------------------------------------------------------

object=$(core_object "$(mitigations_of "$headers")" "$out") || exit 1

# --- the module ---------------------------------------------------------------

# Kbuild writes beside its sources, so it gets copies.
rsync_like() { cmp -s "$1" "$2" || cp "$1" "$2"; }
for file in "$root"/kernel/*.c "$root"/kernel/*.h "$root/kernel/Kbuild"; do
    rsync_like "$file" "$dir/$(basename "$file")"
done
known_header "$known" >"$out/known.h"
rsync_like "$out/known.h" "$dir/known.h"
rsync_like "$object" "$dir/core.o_shipped"
log=$out/make.log
make=(make)
# Checked as kernel code is, where the system has what for.
! have sparse || make+=(C=1)
# Debian's headers name their compiler.
compiler=$(sed -n 's/^CC = .*\(gcc-[0-9]*\)$/\1/p' "$headers/.kernelvariables" 2>/dev/null || true)
if [ "$compiler" = gcc-14 ] &&
    { ! have gcc-14 || ldd "$headers/scripts/mod/modpost" 2>&1 | grep -q 'not found'; }; then
    make=("$root/scripts/guest.sh" in-debian-13 make)
fi
"${make[@]}" -C "$headers" M="$dir" PIEBALD_MODEL=m modules >"$log" 2>&1 || {
    cat "$log" >&2
    warn "build: the module does not compile for kernel $release; it is written for those in the last column of kernel/known.tsv"
    exit 1
}
if grep -E '(warning|error):' "$log" >&2; then
    warn "build: warnings are errors"
    rm -f "$dir/piebald.ko" "$dir"/*.o
    exit 1
fi
say "$dir/piebald.ko"
