#!/usr/bin/env bash
# The module on a kernel that has its free pages by colour itself: the distribution's source of 6.12 with
# patch/page-coloring.patch, as small as the guest needs it (small.config), beside a kernel of the same configuration
# without the patch.
#
#   kernel/patched.sh build            builds both, if they are not there yet
#   kernel/patched.sh cost [[-p N] PLUGIN [MACHINE]]
#                                      what the module costs on both: kernel/cost.sh for each
#   kernel/patched.sh test             kernel/test.sh on the patched one
#   kernel/patched.sh version NAME     the version of one that was built, `plain` or `colored`, for PIEBALD_GUEST_KERNEL
#
# Each kernel takes about eight minutes of processor time and 600 MB, in ${XDG_CACHE_HOME:-~/.cache}/piebald/guest/debug.
# What came out last stands in docs/kernel.md.
set -eu
shopt -s inherit_errexit

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"

what=${1:-}
case $what in
    build | test) [ $# = 1 ] || { warn "patched: \"$2\": nothing more is allowed"; exit 2; } ;;
    cost) ;;
    version) case ${2:-} in plain | colored) ;; *) warn "patched: \"${2:-}\"; allowed: plain, colored"; exit 2 ;; esac ;;
    -h | --help) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
    *) warn "patched: \"$what\"; allowed: build, cost, test, version"; exit 2 ;;
esac

# shellcheck source=source.sh
. "$root/kernel/source.sh"
patch=$root/kernel/patch/page-coloring.patch

# The source with the patch, in $debug/patched; the files that it does not change are the same ones.
patch_source() {
    ! cmp -s "$patch" "$debug/patched/piebald.patch" || return 0
    install_packages patch >&2
    warn "patching the source"
    if [ -d "$debug/patched" ]; then
        # Only what changes again is built again.
        patch -s -f -R -p1 -d "$debug/patched" <"$debug/patched/piebald.patch" || rm -rf "${debug:?}/patched"
    fi
    [ -d "$debug/patched" ] || cp -al "$debug/$PACKAGE" "$debug/patched"
    # patch(1) makes new files of those that it changes.
    patch -s -f -p1 -d "$debug/patched" <"$patch" >&2 || {
        rm -rf "${debug:?}/patched"
        warn "patched: $patch does not fit the source $(cat "$debug/source")"
        return 1
    }
    cp "$patch" "$debug/patched/piebald.patch"
}

build() { # NAME
    case $1 in
        plain) build_kernel plain "$debug/$PACKAGE" "$root/kernel/small.config" ;;
        colored) patch_source && build_kernel colored "$debug/patched" "$root/kernel/small.config" "$root/kernel/patch/colored.config" ;;
    esac
}

# run NAME COMMAND...: with the kernel of that name, and a module of its own for it.
run() {
    local version
    version=$(build "$1")
    say "kernel $version"
    PIEBALD_GUEST_KERNEL=$version CARGO_TARGET_DIR=$CARGO_TARGET_DIR/kernel-$1 "${@:2}"
}

fetch_source
case $what in
    build) build plain; build colored ;;
    version) build "$2" ;;
    cost) run plain "$root/kernel/cost.sh" "${@:2}"; run colored "$root/kernel/cost.sh" "${@:2}" ;;
    test) run colored "$root/kernel/test.sh" 1 --timeout 3000 ;;
esac
