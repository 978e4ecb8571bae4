#!/usr/bin/env bash
# Makes what a release page holds, of the commit that is checked out:
#
#   piebald_VERSION_amd64.deb, piebald-VERSION-x86_64-linux.tar.gz, piebald-dkms_VERSION_amd64.deb (the kernel
#   module), CHANGES.md, SHA256SUMS, and the source of the QEMU that is in the first two: qemu-VERSION-source.tar
#
#   scripts/release.sh [--here] [DIR]      DIR defaults to out/release/VERSION
#
# All of it is built in a clean Debian 12, the oldest that it is for, which is made for this and
# removed (root; debootstrap). With --here it is built on this system, where missing packages are installed: archives
# run with its C library or a later one.
#
# Refuses changes that are not committed, a version without a section in CHANGELOG.md, a tag of this
# version that names another commit, and a package without a maintainer. See docs/releasing.md.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
# shellcheck source=root.sh
. "$root/scripts/root.sh"
settle_target_dir "$root"
cd "$root"

# The suite of Debian whose QEMU is built. It is the newest that was tried, and runs on Debian 12 too.
QEMU_OF=trixie

# The oldest Debian that a release is for, where it is built.
BUILT_IN=bookworm

fail() { warn "release: $*"; exit 1; }
here=''
[ "${1:-}" != --here ] || { here=1; shift; }
case $#:${1:-} in
    [01]:-* | [2-9]*) warn "usage: scripts/release.sh [--here] [DIR]"; exit 2 ;;
esac
version=$(workspace_version)
out=${1:-out/release/$version}

changed=$(git status --porcelain) || fail "$root is no clone"
[ -z "$changed" ] || fail "changes that are not committed:
$changed"
changes=$(changes_of "$version")
[ -n "$changes" ] || fail "CHANGELOG.md has no section \"## [$version] - DATE\", or it is empty"
tagged=$(git rev-parse --quiet --verify "refs/tags/v$version^{commit}" || true)
[ -z "$tagged" ] || [ "$tagged" = "$(git rev-parse HEAD)" ] ||
    fail "the tag v$version names $tagged, not what is checked out"
[ ! -e "$out" ] || fail "$out is there already"
maintainer >/dev/null || exit 1

# Writes the archives to a folder.
build_here() { # DIR
    local command expected qemu
    install_packages ca-certificates build-essential pkg-config python3 || exit 1
    ensure_rust || exit 1
    say "building piebald $version"
    "$CARGO" build --profile dist --locked -p piebald || fail "the build failed"
    command=$CARGO_TARGET_DIR/dist/piebald
    expected="piebald $version ($(git rev-parse --short=12 HEAD))"
    [ "$("$command" --version)" = "$expected" ] || fail "$command is $("$command" --version), not $expected"
    say "building the recorder's QEMU, or taking the one that is there"
    qemu=$(scripts/qemu.sh build "$QEMU_OF") || fail "no QEMU for the packages"
    scripts/package.sh "$command" "$qemu" "$1"
    scripts/package-dkms.sh "$1"
    scripts/qemu.sh source "$qemu" "$1" || fail "the source of QEMU cannot be had, without which it may not be given away"
    printf '%s\n' "$changes" >"$1/CHANGES.md"
    (cd "$1" && sha256sum -- *) >"$1.sums"
    mv "$1.sums" "$1/SHA256SUMS"
}

# The same in a clean root.
build_in_root() { # DIR
    local why archive clean=$scratch/root
    why=$(can_make_root) || fail "$why. Allowed: --here, which builds on this system"
    archive=$(archive_of "$BUILT_IN") || fail "none of the archives in apt's configuration serves Debian's $BUILT_IN. Allowed: --here"
    make_root "$clean" "$BUILT_IN" "$archive" "$scratch/log" || exit 1
    chmod 755 "$scratch"
    put_clone "$root" "$clean"
    unshare --mount --pid --fork --kill-child scripts/root.sh "$clean" "$CLONE/scripts/release.sh" --here "$HOME_DIR/release" &
    child=$!
    wait "$child" || fail "the release could not be built in a clean $BUILT_IN"
    child=''
    cp "$clean$HOME_DIR/release/"* "$1"
}

# Whole or not there.
mkdir -p "$(dirname "$out")"
making=$(mktemp -d "$(dirname "$out")/.release.XXXXXX")
# Where devices can be made, and there is room.
scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/piebald-release.XXXXXX")
child=''
# shellcheck disable=SC2317  # a trap calls it
end() {
    if [ -n "$child" ]; then
        kill -KILL "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    # Its processes may take a moment to end.
    rm -rf --one-file-system "$making" "$scratch" 2>/dev/null || { sleep 2; rm -rf --one-file-system "$making" "$scratch"; }
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [ -n "$here" ]; then build_here "$making"; else build_in_root "$making"; fi
chmod 755 "$making"
mv "$making" "$out"
say "made $out:"
ls -l "$out"
[ -n "$tagged" ] || say "no tag yet: git tag -a v$version -m \"Piebald $version\""
