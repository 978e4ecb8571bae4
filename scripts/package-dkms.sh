#!/usr/bin/env bash
# Makes the Debian package piebald-dkms: the kernel module, whose C is compiled on the machine that it is installed on, by
# DKMS, for each kernel that the module knows.
#
#   scripts/package-dkms.sh DIR      writes DIR/piebald-dkms_VERSION_amd64.deb
#
# The policy core inside is compiled here, once for each set of measures against speculation that kernels have
# (kernel/core.sh). Who installs the package needs no Rust. Where Secure Boot is on, DKMS signs the module with the machine's key.
# The package names its maintainer as scripts/package.sh does. Needs Rust with its library's source.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
# shellcheck source-path=SCRIPTDIR source=../kernel/core.sh
. "$root/kernel/core.sh"
settle_target_dir "$root"
cd "$root"

# All that Debian's kernels have; the same without room in front of functions, which depth of calls is counted with; and none.
CORES="retpoline-rethunk-ibt-padding retpoline-rethunk-ibt none"

fail() { warn "package-dkms: $*"; exit 1; }
case $#:${1:-} in
    1:-* | 0:* | [2-9]*) warn "usage: scripts/package-dkms.sh DIR"; exit 2 ;;
esac
have dpkg-deb || fail "dpkg-deb is not there (Debian's package dpkg)"
mkdir -p "$1"
out=$(realpath "$1")
version=$(workspace_version)
maintainer=$(maintainer) || exit 1
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
umask 022
tree=$scratch/deb
source=$tree/usr/src/piebald-$version
doc=$tree/usr/share/doc/piebald-dkms
mkdir -p "$tree/DEBIAN" "$source/cores" "$doc"

mkdir -p "$CARGO_TARGET_DIR/kernel"
exec 9>"$CARGO_TARGET_DIR/kernel/lock"
flock 9
for core in $CORES; do
    say "the policy core: $core"
    object=$(core_object "$core" "$CARGO_TARGET_DIR/kernel") || exit 1
    cp "$object" "$source/cores/$core.o"
done

cp kernel/*.c kernel/*.h kernel/Kbuild kernel/core.sh kernel/dkms/choose-core "$source"
rm "$source/model.c"
known_header kernel/known.tsv >"$source/known.h"
# The series that some signature is known of: others would not compile, or not be loaded.
series=$(cut -f4 kernel/known.tsv | tr ' ' '\n' | sed -n 's/^\([0-9]*\)\.\([0-9]*\)\..*/\1\\.\2/p' | sort -u | paste -sd '|')
[ -n "$series" ] || fail "kernel/known.tsv: no kernels in its last column"
cat >"$source/dkms.conf" <<EOF
PACKAGE_NAME="piebald"
PACKAGE_VERSION="$version"
BUILT_MODULE_NAME[0]="piebald"
DEST_MODULE_LOCATION[0]="/updates/dkms"
AUTOINSTALL="yes"
BUILD_EXCLUSIVE_ARCH="x86_64"
BUILD_EXCLUSIVE_KERNEL="^($series)\."
BUILD_EXCLUSIVE_CONFIG="CONFIG_MEMCG CONFIG_DEBUG_INFO_BTF !CONFIG_PREEMPT_RT"
PRE_BUILD="choose-core \${kernel_source_dir}"
MAKE[0]="make -C \${kernel_source_dir} M=\${dkms_tree}/piebald/$version/build modules"
EOF

# Those who are given the objects are given what they were made of, too.
git archive --prefix="piebald-$version/" HEAD kernel crates/policy crates/units Cargo.toml Cargo.lock LICENSE-MIT LICENSE-APACHE scripts/setup.sh |
    xz -9 >"$doc/source.tar.xz"
gzip -9nc CHANGELOG.md >"$doc/changelog.gz"
{
    printf 'The kernel module is under version 2 of the GNU General Public License: /usr/share/common-licenses/GPL-2.\n'
    printf 'The policy core inside it (cores/*.o) is under the licence of MIT or that of Apache 2.0, at your choice; what binds it to the kernel, under the GPL or that of MIT.\n'
    printf 'What they are made of is in source.tar.xz.\n\n'
    cat LICENSE-MIT
    printf '\nApache 2.0: /usr/share/common-licenses/Apache-2.0\n'
} >"$doc/copyright"

cat >"$tree/DEBIAN/control" <<EOF
Package: piebald-dkms
Version: $version
Architecture: amd64
Maintainer: $maintainer
Installed-Size: $(du -sk --apparent-size "$tree/usr" | cut -f1)
Depends: dkms (>= 3.0.10), make
Recommends: openssl
Enhances: piebald
Section: kernel
Priority: optional
Description: colours of page frames for control groups, as a kernel module
 Gives control groups page colours, and so shares of caches and of banks of
 memory, and files their own (SRM-buffer). For the kernels of the series
 $(sed 's/\\//g; s/|/, /g' <<<"$series") that have type information; the module refuses those whose
 functions it does not know when it is loaded. Never run on hardware yet.
EOF
cat >"$tree/DEBIAN/postinst" <<EOF
#!/bin/sh
set -e
[ "\$1" != configure ] || /usr/lib/dkms/common.postinst piebald $version /usr/share/piebald-dkms "" "\$2"
EOF
cat >"$tree/DEBIAN/prerm" <<EOF
#!/bin/sh
set -e
if [ -x /usr/sbin/dkms ] && [ -n "\$(dkms status -m piebald -v $version)" ]; then
    dkms remove -m piebald -v $version --all
fi
EOF
chmod 755 "$tree/DEBIAN/postinst" "$tree/DEBIAN/prerm"
(cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
dpkg-deb --root-owner-group --build "$tree" "$scratch/piebald-dkms.deb" >/dev/null
mv "$scratch/piebald-dkms.deb" "$out/piebald-dkms_${version}_amd64.deb"
say "$out/piebald-dkms_${version}_amd64.deb: for kernels ^($series)\\."
