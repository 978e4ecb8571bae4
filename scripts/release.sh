#!/usr/bin/env bash
# Makes what a release page holds, of the commit that is checked out:
#
#   piebald_VERSION_amd64.deb, piebald-VERSION-x86_64-linux.tar.gz, CHANGES.md, SHA256SUMS, and the
#   source of the QEMU that is in the first two: qemu-VERSION-source.tar
#
#   scripts/release.sh [DIR]      DIR defaults to out/release/VERSION
#
# Refuses changes that are not committed, a version without a section in CHANGELOG.md, a tag of this
# version that names another commit, and a package without a maintainer. See docs/releasing.md.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
cd "$root"

# The suite of Debian whose QEMU is built. It is the newest that was tried, and runs on Debian 12 too.
QEMU_OF=trixie

fail() { warn "release: $*"; exit 1; }
[ $# -le 1 ] || { warn "usage: scripts/release.sh [DIR]"; exit 2; }
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
find_rust || fail "no Rust 1.$MIN_RUST_MINOR or later: run ./test.sh packages"

say "building piebald $version"
"$CARGO" build --profile dist --locked -p piebald || fail "the build failed"
command=$CARGO_TARGET_DIR/dist/piebald
expected="piebald $version ($(git rev-parse --short=12 HEAD))"
[ "$("$command" --version)" = "$expected" ] || fail "$command is $("$command" --version), not $expected"

say "building the recorder's QEMU, or taking the one that is there"
qemu=$(scripts/qemu.sh build "$QEMU_OF") || fail "no QEMU for the packages"

# Whole or not there.
mkdir -p "$(dirname "$out")"
making=$(mktemp -d "$(dirname "$out")/.release.XXXXXX")
trap 'rm -rf "$making"' EXIT
scripts/package.sh "$command" "$qemu" "$making"
scripts/qemu.sh source "$qemu" "$making" || fail "the source of QEMU cannot be had, without which it may not be given away"
printf '%s\n' "$changes" >"$making/CHANGES.md"
(cd "$making" && sha256sum -- *) >"$making.sums"
mv "$making.sums" "$making/SHA256SUMS"
chmod 755 "$making"
mv "$making" "$out"
say "made $out:"
ls -l "$out"
[ -n "$tagged" ] || say "no tag yet: git tag -a v$version -m \"Piebald $version\""
