#!/usr/bin/env bash
# Installs the package of the kernel module in a fresh Debian 13, has it built for that Debian's kernels, loads what was built
# in a guest, and removes the package again.
#
#   scripts/test-dkms.sh FILE.deb
#
# Needs to be root, debootstrap, and what scripts/guest.sh needs. The root is made from the mirror that this machine's apt uses.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
# shellcheck source=root.sh
. "$root/scripts/root.sh"

# Headers of its default kernel, and of the one for guests, which is loaded here.
HEADERS="linux-headers-amd64 linux-headers-cloud-amd64"

fail() { warn "test-dkms: $*"; exit 1; }
[ -r "${1:-}" ] || { warn "usage: scripts/test-dkms.sh FILE.deb"; exit 2; }
deb=$(realpath "$1")
why=$(can_make_root) || fail "$why"
archive=$(archive_of trixie) || fail "none of the archives in apt's configuration serves Debian's trixie"

scratch=$(mktemp -d "${TMPDIR:-/var/tmp}/piebald-dkms.XXXXXX")
new=$scratch/root
trap 'rm -rf --one-file-system "$scratch"' EXIT
make_root "$new" trixie "$archive" "$scratch/log" || exit 1
# Programs in the root, with its mounts.
inside() { unshare --mount --pid --fork --kill-child "$root/scripts/root.sh" "$new" "$@"; }
quietly() {
    inside env DEBIAN_FRONTEND=noninteractive "$@" >"$scratch/log" 2>&1 && return
    tail -n 40 "$scratch/log" >&2
    find "$new/var/lib/dkms" -name make.log -exec tail -n 40 {} + 2>/dev/null >&2 || true
    fail "$* failed"
}

# What the package leaves where the system's files are.
listing() { (cd "$new" && find usr etc var/lib/dkms -not -path '*/__pycache__*' 2>/dev/null | LC_ALL=C sort); }

quietly apt-get update
say "installing $HEADERS and dkms"
# shellcheck disable=SC2086  # a list of names
quietly apt-get install -y --no-install-recommends dkms make openssl $HEADERS
listing >"$scratch/before"
cp "$deb" "$new/piebald-dkms.deb"
quietly apt-get install -y --no-install-recommends /piebald-dkms.deb
rm "$new/piebald-dkms.deb"
cp "$scratch/log" "$scratch/installed"

kernels=$(inside ls /lib/modules)
[ "$(wc -l <<<"$kernels")" = 2 ] || fail "two kernels were expected, and there are: $kernels"
for kernel in $kernels; do
    status=$(inside dkms status -m piebald -k "$kernel")
    grep -q ': installed' <<<"$status" || { cat "$scratch/installed" >&2; fail "not built for $kernel: $status"; }
    module=$(find "$new/lib/modules/$kernel" "$new/usr/lib/modules/$kernel" -name 'piebald.ko*' 2>/dev/null | head -n 1)
    [ -n "$module" ] || fail "no module of $kernel"
    say "$kernel: ${module#"$new"}"
    [ "$(find "$new/usr/lib/modules/$kernel" -name 'piebald_model.ko*' | wc -l)" = 0 ] || fail "counters of the model were built as well"
    # The machine's key, which DKMS makes.
    [ -n "$(inside modinfo -F signer "${module#"$new"}")" ] || fail "${module#"$new"} is not signed"
done

# Another kernel's measures against speculation are named.
source=$(cd "$new" && echo usr/src/piebald-*)
mkdir -p "$new/other/include/config"
printf 'CONFIG_MITIGATION_RETHUNK=y\n' >"$new/other/include/config/auto.conf"
if said=$(inside "/$source/choose-core" /other 2>&1); then fail "a kernel with other measures was taken"; fi
grep -q 'than this package has: rethunk; allowed: .*none' <<<"$said" || fail "it was refused with: $said"
rm -r "$new/other"

cloud=$(grep cloud <<<"$kernels")
module=$(find "$new/usr/lib/modules/$cloud" -name 'piebald.ko*' | head -n 1)
case $module in
    *.xz) xz -dc "$module" >"$scratch/piebald.ko" ;;
    *) cp "$module" "$scratch/piebald.ko" ;;
esac
cat >"$scratch/run" <<'END'
#!/bin/sh
insmod /piebald.ko map='12;13;14;15' on=1 && grep -qx 1 /proc/piebald/on && grep -qx ok /proc/piebald/check &&
    rmmod piebald && echo "loaded and unloaded"
END
chmod 755 "$scratch/run"
export PIEBALD_GUEST_KERNEL=$cloud
"$root/scripts/guest.sh" fetch >/dev/null
"$root/scripts/guest.sh" pack "$scratch/initrd" --run "$scratch/run" --file "$scratch/piebald.ko:/piebald.ko" --module configfs
"$root/scripts/guest.sh" boot "$scratch/initrd" --memory 512M --timeout 300 >"$scratch/boot" 2>&1 ||
    { tail -n 40 "$scratch/boot" >&2; fail "the module was not loaded in $cloud"; }
grep -qa 'loaded and unloaded' "$scratch/boot" || { tail -n 40 "$scratch/boot" >&2; fail "nothing was loaded"; }
say "$cloud: loaded and unloaded"

quietly dpkg --purge piebald-dkms
listing >"$scratch/after"
diff "$scratch/before" "$scratch/after" | grep -v '/mok\.' | grep '^[<>]' && fail "the package left something behind, or took something away"
say "removed: nothing is left but the machine's key"
