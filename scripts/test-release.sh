#!/usr/bin/env bash
# Tries scripts/release.sh in a clone: what it has to refuse, and a whole release.
#
#   scripts/test-release.sh
#
# Nothing is tagged or written outside of the clone. The release is built in a clean root, so this needs to be
# root, and debootstrap.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"

fail() { warn "test-release: $*"; exit 1; }
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
clone_as_built "$root" "$scratch/clone"
cd "$scratch/clone"
git config user.name test
git config user.email test@localhost
version=$(workspace_version)

# refused REASON: release.sh fails with this reason and leaves nothing.
refused() {
    local said
    if said=$(scripts/release.sh "$scratch/out" 2>&1); then fail "not refused: $1"; fi
    grep -qF -- "$1" <<<"$said" || fail "expected \"$1\", and it said: $said"
    [ ! -e "$scratch/out" ] || fail "refused ($1), and yet something was made"
    say "refused: $1"
}

echo change >>README.md
refused "changes that are not committed"
git checkout --quiet README.md
if grep -q "^## \[$version\]" CHANGELOG.md; then
    sed -i "s/^## \[$version\]/## [0.0.0]/" CHANGELOG.md
    git commit --quiet --all -m "no section"
fi
refused "CHANGELOG.md has no section \"## [$version] - DATE\""
sed -i "s/^## \[Unreleased\]\$/&\n\n## [$version] - 2000-01-01/" CHANGELOG.md
git commit --quiet --all -m "a section"
git tag --force "v$version" HEAD~1 >/dev/null
refused "the tag v$version names $(git rev-parse HEAD~1)"
git tag --force "v$version" HEAD >/dev/null
export DEBFULLNAME=Tester DEBEMAIL=nobody
refused "maintainer \"Tester <nobody>\": allowed: NAME <ADDRESS>, from DEBFULLNAME and DEBEMAIL"
DEBEMAIL=$'test@localhost\nX: y' refused "allowed: NAME <ADDRESS>"
DEBEMAIL=test@localhost

scripts/release.sh "$scratch/out"
cd "$scratch/out"
for package in "piebald_${version}_amd64.deb" "piebald-dkms_${version}_amd64.deb"; do
    [ "$(dpkg-deb --field "$package" Maintainer)" = "Tester <test@localhost>" ] ||
        fail "the maintainer of $package is $(dpkg-deb --field "$package" Maintainer)"
done
sha256sum --check --quiet SHA256SUMS
[ "$(find . -type f | wc -l)" = 6 ] || fail "expected six files: $(ls)"
[ "$(tar -tf qemu-*-source.tar | grep -c 'orig.tar\|debian.tar\|dsc$\|piebald.diff')" = 4 ] || fail "not the source of QEMU: $(tar -tf qemu-*-source.tar)"
tar -xf "piebald-$version-x86_64-linux.tar.gz" -C "$scratch"
# From another folder, with nothing of the clone on the way.
mkdir "$scratch/elsewhere"
cd "$scratch/elsewhere"
# The QEMU beside the command is taken before that of the system.
env -u PIEBALD_PLUGIN -u PIEBALD_QEMU PATH=/nowhere:/bin "$scratch/piebald-$version-x86_64-linux/piebald" record -o x.pbr -- true
cp "$scratch/out/"*.deb "${1:-$scratch}"
say "a release was made, and its tarball records from another folder"
