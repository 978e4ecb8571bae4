#!/usr/bin/env bash
# Installs a Debian package in a fresh root, uses it, and removes it again.
#
#   scripts/test-package.sh FILE.deb [SUITE]      SUITE defaults to bookworm
#
# Needs to be root, and debootstrap. The root is made from the mirror that this machine's apt uses.
# It is the smallest system that there is: the recorder's QEMU comes with the package.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"

fail() { warn "test-package: $*"; exit 1; }
[ -r "${1:-}" ] || { warn "usage: scripts/test-package.sh FILE.deb [SUITE]"; exit 2; }
deb=$(realpath "$1")
suite=${2:-bookworm}
[ "$(id -u)" = 0 ] || fail "needs to be root"
have debootstrap || fail "debootstrap is not there: apt-get install debootstrap"

mirror=$(archive_of "$suite") || fail "none of the archives in apt's configuration serves Debian's $suite"

scratch=$(mktemp -d)
new=$scratch/root
trap 'rm -rf --one-file-system "$scratch"' EXIT

say "making a fresh root: $suite, minbase"
debootstrap --variant=minbase "$suite" "$new" "$mirror" >"$scratch/log" 2>&1 ||
    { tail -n 20 "$scratch/log" >&2; fail "debootstrap failed"; }

inside() { chroot "$new" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"; }
# with_proc COMMAND...: as inside, with /proc. The mount is gone with the command.
with_proc() {
    # shellcheck disable=SC2016  # expanded by the inner shell
    unshare --mount bash -c 'mount -t proc proc "$0/proc" && exec chroot "$0" env -i \
        PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"' "$new" "$@"
}

# What there is but for what dpkg and apt write about packages, and what the command keeps for its user.
listing() {
    (cd "$new" && find . -path ./proc -prune -o -path ./var -prune -o -name .cache -prune -o -print |
        LC_ALL=C sort)
}

listing >"$scratch/before"
cp "$deb" "$new/piebald.deb"
inside apt-get install -y --no-install-recommends /piebald.deb >"$scratch/log" 2>&1 ||
    { cat "$scratch/log" >&2; fail "$deb was not installed"; }
rm "$new/piebald.deb"

field() { inside dpkg-query --show --showformat "\${$1}" piebald; }
version=$(field Version)
case $(inside piebald --version) in
    "piebald $version" | "piebald $version ("*) ;;
    *) fail "the package is version $version, and the command says $(inside piebald --version)" ;;
esac
say "installed: $(inside piebald --version), $(field Installed-Size) KiB"

status=0
said=$(inside piebald record -o /x.pbr -- true 2>&1) || status=$?
case $status:$said in
    "1:piebald: /proc is not mounted"*) ;;
    *) fail "without /proc, record ended with $status and said: $said" ;;
esac
with_proc sh -c 'cd / && piebald record -o x.pbr -- ls / && piebald trace info x.pbr && rm x.pbr' ||
    fail "nothing was recorded"
# It fails, as there is no QEMU for whole machines.
said=$(with_proc piebald guest check || true)
grep -qF 'ok       the plugin: inside this program' <<<"$said" || fail "no plugin: $said"
with_proc piebald study --quiet --repetitions 1 /usr/share/doc/piebald/examples/scenarios/builtins.toml |
    sed -n 1,12p
inside bash -c '. /usr/share/bash-completion/completions/piebald && complete -p piebald' ||
    fail "no completions"
inside zcat /usr/share/man/man1/piebald-record.1.gz | grep -q -- 'stop' || fail "no manual page"
for file in COPYING LICENSE README; do
    [ -s "$new/usr/share/doc/piebald/qemu/$file" ] || fail "QEMU came without $file"
done
grep -q 'DiskSim' "$new/usr/share/doc/piebald/copyright" || fail "the copyright lacks the disks' notice"
# Symbols would be most of the size.
file=$(objdump --syms "$new/usr/bin/piebald" 2>&1)
grep -q 'no symbols' <<<"$file" || fail "the command is not stripped"

inside dpkg --purge piebald >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "not removed"; }
inside apt-get autoremove --purge -y >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; fail "not removed"; }
listing >"$scratch/after"
diff "$scratch/before" "$scratch/after" || fail "the package left something behind, or took something away"
say "removed: nothing is left"
