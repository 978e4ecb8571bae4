#!/usr/bin/env bash
# Makes a Debian package and a tarball of a built command.
#
#   scripts/package.sh COMMAND QEMU DIR    writes DIR/piebald_VERSION_amd64.deb and
#                                          DIR/piebald-VERSION-x86_64-linux.tar.gz
#
# COMMAND is what `cargo build --profile dist -p piebald` leaves, with the recorder's plugin
# inside; its symbols are left out. QEMU is the program that `scripts/qemu.sh build` prints; the recorder takes it where it lies beside
# the command. It is under the GPL: who gives an archive to others gives what `scripts/qemu.sh source` writes, too. The package names its maintainer: DEBFULLNAME and DEBEMAIL, or the first of `authors` in Cargo.toml.
# The control file is written here rather than by debhelper, which would build the
# workspace a second time with a toolchain of its own choice.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"

# What a package may take when it is installed.
MOST_KIB=$((25 * 1000 * 1000 / 1024))

fail() { warn "package: $*"; exit 1; }
[ $# = 3 ] || { warn "usage: scripts/package.sh COMMAND QEMU DIR"; exit 2; }
[ -x "$1" ] || fail "$1: no program; make it with: cargo build --profile dist -p piebald"
have strip || fail "strip is not there (Debian's package binutils)"
have dpkg-deb || fail "dpkg-deb is not there (Debian's package dpkg)"
find_rust || fail "no Rust 1.$MIN_RUST_MINOR or later: run ./test.sh packages"
[ -x "$2" ] || fail "$2: no program; make it with: scripts/qemu.sh build"
takes_plugins "$2" || fail "$2: takes no plugins; allowed: what scripts/qemu.sh build prints"
command=$(realpath "$1")
qemu=$(realpath "$2")
facts=$(dirname "$qemu")/..
qemu_version=$(sed -n 's/^version \(.*:\)\{0,1\}//p' "$facts/complete") ||
    fail "$2: not built by scripts/qemu.sh, so that its source is not known"
mkdir -p "$3"
out=$(realpath "$3")
cd "$root"

version=$(workspace_version)
case $("$command" --version) in
    "piebald $version" | "piebald $version ("*) ;;
    *) fail "$1 is $("$command" --version), and the workspace is version $version" ;;
esac
maintainer=$(maintainer) || exit 1
# Same files, same archives: times are those of the commit.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
umask 022
strip -o "$scratch/piebald" "$command"
command=$scratch/piebald

# What both hold: manual pages, completions, licences, scenarios.
common=$scratch/common
mkdir -p "$common/completions"
"$command" man "$common/man"
for shell in bash zsh fish; do "$command" completions "$shell" >"$common/completions/$shell"; done
scripts/notices.py >"$common/NOTICES"
mkdir -p "$common/examples"
cp -r scenarios docs/tutorials "$common/examples"

# QEMU, its licences and where its source is.
mkdir "$common/qemu"
cp "$facts/COPYING" "$facts/COPYING.LIB" "$facts/LICENSE" "$common/qemu"
cat >"$common/qemu/README" <<EOF
qemu-x86_64 is QEMU $qemu_version in user mode, under version 2 of the GNU General Public License
(COPYING; parts under others: LICENSE, COPYING.LIB). It was built from Debian's source package of this version,
with the change that scripts/qemu.sh of Piebald names; qemu-$qemu_version-source.tar,
which lies where this archive is offered, holds both.
EOF

# The oldest C library that the command, the plugin inside it and QEMU run with: they name what they use.
libc=$(grep -aoh 'GLIBC_2\.[0-9]*' "$command" "$qemu" | sed 's/GLIBC_//' | sort -uV | tail -n 1)
[ -n "$libc" ] || fail "$1: no version of the C library found in it"

deb() {
    local tree=$scratch/deb doc
    doc=$tree/usr/share/doc/piebald
    mkdir -p "$tree/DEBIAN" "$doc" "$tree/usr/share/man/man1"
    install -D "$command" "$tree/usr/bin/piebald"
    install -D "$qemu" "$tree/usr/lib/piebald/qemu-x86_64"
    cp -r "$common/qemu" "$doc/"
    cp "$common/man/"*.1 "$tree/usr/share/man/man1/"
    gzip -9n "$tree/usr/share/man/man1/"*.1
    install -Dm644 "$common/completions/bash" "$tree/usr/share/bash-completion/completions/piebald"
    install -Dm644 "$common/completions/zsh" "$tree/usr/share/zsh/vendor-completions/_piebald"
    install -Dm644 "$common/completions/fish" "$tree/usr/share/fish/vendor_completions.d/piebald.fish"
    cp -r "$common/examples" "$doc/"
    gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
    {
        printf 'Piebald is under the licence of MIT or that of Apache 2.0, at your choice.\n\n'
        cat LICENSE-MIT
        printf '\nApache 2.0: /usr/share/common-licenses/Apache-2.0\n\n'
        cat "$common/NOTICES"
        printf '\nQEMU (/usr/lib/piebald/qemu-x86_64) is under the GPL: see the folder qemu.\n'
    } >"$doc/copyright"
    local size
    size=$(du -sk --apparent-size "$tree/usr" | cut -f1)
    [ "$size" -le "$MOST_KIB" ] || fail "the package takes $size KiB when installed; allowed: $MOST_KIB"
    cat >"$tree/DEBIAN/control" <<EOF
Package: piebald
Version: $version
Architecture: amd64
Maintainer: $maintainer
Installed-Size: $size
Depends: libc6 (>= $libc), libgcc-s1, libglib2.0-0t64 | libglib2.0-0, libatomic1
Suggests: qemu-system-x86, busybox-static, cpio, kmod, xz-utils, e2fsprogs
Section: devel
Priority: optional
Description: memory management that knows the machine
 Records real programs, runs them together on a modelled multicore machine,
 and compares policies of page frames, page caches and disks by what they do
 to the programs. The recorder's plugin is inside the command, and its QEMU
 lies beside it.
EOF
    (cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
    dpkg-deb --root-owner-group --build "$tree" "$scratch/piebald.deb" >/dev/null
    mv "$scratch/piebald.deb" "$out/piebald_${version}_amd64.deb"
    say "$out/piebald_${version}_amd64.deb: $size KiB installed, for libc6 $libc or later"
}

tarball() {
    local name=piebald-$version-x86_64-linux
    mkdir "$scratch/$name"
    install "$command" "$scratch/$name/piebald"
    install "$qemu" "$scratch/$name/qemu-x86_64"
    cp -r "$common/." "$scratch/$name/"
    cp LICENSE-MIT LICENSE-APACHE CHANGELOG.md "$scratch/$name/"
    tar -C "$scratch" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner \
        -cf - "$name" | gzip -9n >"$scratch/tarball"
    mv "$scratch/tarball" "$out/$name.tar.gz"
    say "$out/$name.tar.gz"
}

deb
tarball
