#!/usr/bin/env bash
# A clean Debian: a new root made with debootstrap, and programs in it. It has this machine's proxies,
# resolver and additional certificates, and nothing else of it. Sourced after setup.sh; needs root.
#
#   unshare --mount --pid --fork --kill-child scripts/root.sh DIR PROGRAM ARGUMENT...
#                     runs a program in the root DIR; its mounts and processes end with it
set -eu

HOME_DIR=/root
CLONE=$HOME_DIR/piebald

# What a person who installs Debian here would set, too.
set_up_network() { # DIR
    local file
    for file in /etc/resolv.conf /etc/hosts; do
        [ ! -e "$file" ] || cp --remove-destination "$file" "$1$file"
    done
    mkdir -p "$1/usr/local/share/ca-certificates"
    [ ! -d /usr/local/share/ca-certificates ] ||
        cp -r /usr/local/share/ca-certificates "$1/usr/local/share/"
    apt-config dump | grep -E '^Acquire::((http|https)::Proxy|Check-(Date|Valid-Until)) ' \
        >"$1/etc/apt/apt.conf.d/80network" || true
}

# can_make_root: or the reason why not is said, and the status is 1.
can_make_root() {
    [ "$(id -u)" = 0 ] || { say "a root of another Debian can be made and entered by root alone"; return 1; }
    have apt-get || { say "the archive is taken from apt's configuration, and there is no apt-get here"; return 1; }
    install_packages debootstrap git >&2 || { say "missing: $(missing_packages debootstrap git)"; return 1; }
    unshare --mount --pid --fork mount -t tmpfs none /mnt 2>/dev/null ||
        { say "root may not make namespaces and mount in them here"; return 1; }
}

make_root() { # DIR SUITE ARCHIVE LOG
    say "making a root of Debian's $2 in $1"
    mkdir -p "$1"
    debootstrap --variant=minbase --include=git "$2" "$1" "$3" >"$4" 2>&1 || {
        tail -n 20 "$4" >&2
        warn "debootstrap of $2 failed"
        return 1
    }
    set_up_network "$1"
    touch "$1/complete"
}

# put_clone REPOSITORY DIR: its committed state. A clone that is there already moves to the commit: what
# was built of unchanged files stays.
put_clone() {
    if [ -d "$2$CLONE/.git" ]; then
        git -C "$2$CLONE" fetch -q "$1" HEAD
        git -C "$2$CLONE" reset -q --hard FETCH_HEAD
    else
        git clone -q --no-hardlinks "$1" "$2$CLONE"
    fi
}

# For programs in the root, in a namespace of its own.
mount_in() { # DIR
    mount -t proc proc "$1/proc"
    mount -t sysfs sysfs "$1/sys"
    mount --rbind /dev "$1/dev"
}

enter() { # DIR PROGRAM ARGUMENT...
    local dir=$1 name kept=()
    shift
    for name in http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY CI CARGO_BUILD_JOBS \
        DEBFULLNAME DEBEMAIL; do
        [ -z "${!name:-}" ] || kept+=("$name=${!name}")
    done
    chroot "$dir" /usr/bin/env -i HOME="$HOME_DIR" TERM=dumb LANG=C.UTF-8 \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
        ${kept[@]+"${kept[@]}"} "$@"
}

if [ "${BASH_SOURCE[0]}" = "$0" ]; then
    [ $# -ge 2 ] || { sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
    mount_in "$1"
    enter "$@"
fi
