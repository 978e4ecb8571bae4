#!/usr/bin/env bash
# QEMU user mode that loads plugins, built from the distribution's own source package.
#
#   qemu.sh build [SUITE]   builds it unless it is there, and prints the program's path
#   qemu.sh path [SUITE]    prints the path of one that was built; status 1 if there is none
#   qemu.sh source FILE DIR writes the source of the program FILE, which was built so, to DIR: a tar of
#                           Debian's source package and of what is changed in it
#
# Debian's qemu-user is linked statically from 10.0 on (Debian 13, and the backports of 12), and
# a static program cannot load the recorder's plugin. SUITE is a suite of Debian; without it
# this system's own. `build trixie` works on Debian 12 too.
#
# The source comes from the mirror that apt is set up with, by a source list of its own in
# the cache folder; nothing is written to /etc. apt checks the signature of the list and the
# sums of what it fetches. Packages that a build needs are installed if they are missing (as
# root or through sudo); meson, of which QEMU wants a recent one, is only unpacked. A build
# takes one to three minutes on two processors and 700 MB, of which 20 MB stay. One condition
# in the source is corrected (see correct), so that a recording has all accesses.
#
# Everything is kept in ${XDG_CACHE_HOME:-~/.cache}/piebald/tools/qemu-VERSION, where
# `piebald record` finds it. A folder without the file `complete`, or whose program is not
# the one that was built, is built anew.
set -eu -o pipefail
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=setup.sh
. "$here/setup.sh"

tools=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/piebald/tools
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
PACKAGES="build-essential dpkg-dev ninja-build pkg-config python3-venv libglib2.0-dev"
OTHERWISE="Otherwise name a QEMU from 7.2 on that was built with --enable-plugins in PIEBALD_QEMU."

# Grows when the way of building changes: what was built in another way is built anew.
RECIPE=2

fail() { warn "qemu: $*"; exit 1; }
misuse() { warn "qemu: $*"; exit 2; }
step() { warn "qemu: $*"; }

# Codename of this system, if it is a Debian.
codename() {
    # shellcheck disable=SC1091  # a file of the system
    (. /etc/os-release 2>/dev/null && [ "${ID:-}" = debian ] && say "${VERSION_CODENAME:-}") || true
}

# --- the source list -------------------------------------------------------------

# The mirror of this system's own suite.
mirror() {
    have apt-get || return 0
    # shellcheck disable=SC2016  # apt fills these in
    apt-get indextargets --format '$(CODENAME) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        awk -v suite="$(codename)" '$1 == suite && !found++ { print $2 }'
}

apt_here() { # PROGRAM ARGUMENT...: with the state of $store
    local program=$1
    shift
    "$program" -o Dir::Etc::SourceList="$store/sources.list" -o Dir::Etc::SourceParts=- \
        -o Dir::State::Lists="$store/lists" -o Dir::Cache="$store/cache" \
        -o APT::Sandbox::User=root -o Acquire::Languages=none -o Acquire::Retries=3 "$@"
}

# What apt said of a failure, without the addresses of the mirror.
quote() { sed 's,[a-z]*://[^ ]*/,.../,g; s/ *\[IP:[^]]*\]//; s/^/    /' "$1" | tail -n 8 >&2; }

update() { # SUITE
    local each from signed=''
    from=$(mirror)
    [ -n "$from" ] || fail "apt has no mirror of Debian here, so the source of QEMU cannot be had. $OTHERWISE"
    [ ! -e "$keyring" ] || signed="[signed-by=$keyring] "
    mkdir -p "$store/lists/partial" "$store/cache/archives/partial"
    # What backports are built with is in the suite that they belong to.
    for each in "${1%-backports}" "$1"; do
        printf 'deb %s%s %s main\ndeb-src %s%s %s main\n' "$signed" "$from" "$each" "$signed" "$from" "$each"
    done | sort -u >"$store/sources.list"
    apt_here apt-get -qq -o APT::Update::Error-Mode=any update >"$store/log" 2>&1 || {
        quote "$store/log"
        fail "the lists of packages of $1 cannot be had. Is there a network? $OTHERWISE"
    }
}

# The newest version of QEMU's source, such as 1:10.0.13+ds-0+deb13u1.
newest() {
    apt_here apt-cache showsrc --only-source qemu 2>/dev/null | sed -n 's/^Version: //p' | sort -V | tail -n 1
}

# --- the build -------------------------------------------------------------------

get_source() { # VERSION, into the current folder
    local size
    size=$(apt_here apt-get --print-uris source "qemu=$1" 2>/dev/null |
        awk '/^\047/ { bytes += $3 } END { printf "%d", bytes / 1000000 }')
    step "fetching the source of QEMU ${1#*:} ($size MB)"
    apt_here apt-get -qq source --download-only "qemu=$1" >"$store/log" 2>&1 || {
        quote "$store/log"
        fail "the mirror does not serve the source of QEMU ${1#*:}. $OTHERWISE"
    }
    # meson and pycotap are programs without anything compiled, so the system's need not be replaced.
    apt_here apt-get -qq download meson python3-pycotap >"$store/log" 2>&1 || {
        quote "$store/log"
        fail "the mirror does not serve meson and python3-pycotap. $OTHERWISE"
    }
    mkdir python
    for package in *.deb; do dpkg-deb -x "$package" python; done
    dpkg-source --no-check -x ./*.dsc source >"$store/log" 2>&1 || {
        quote "$store/log"
        fail "the source of QEMU ${1#*:} cannot be unpacked"
    }
}

# QEMU from 9.1 on accesses areas (x87 numbers of 80 bits, register states) directly, and a plugin
# learns nothing of it in user mode: its test for "somebody watches" has no effect there.
correct() { # the source in ./source
    local file=source/target/i386/tcg/access.c line='if (!ac->haddr1) {'
    [ -e "$file" ] || return 0
    grep -qF "$line" "$file" || {
        step "note: $file is not as expected; accesses of whole areas may be missing in recordings"
        return 0
    }
    sed -i 's/if (!ac->haddr1) {/if (!ac->haddr1 || env_cpu(ac->env)->neg.plugin_mem_cbs) {/' "$file"
}

# Lines of ninja's as they come, one for each tenth of the way.
progress() {
    local line now last=-1
    while IFS= read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
            now=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
            [ "$now" = "$last" ] || step "building: ${now}0 %"
            last=$now
        fi
        printf '%s\n' "$line" >>"$1"
    done
}

compile() { # the source in ./source; leaves ./build/qemu-x86_64
    local log=$PWD/log
    mkdir build
    cd build
    step "configuring"
    # linux-user alone: no machines, no tools, nothing that would need more libraries.
    PYTHONPATH=$PWD/../python/usr/lib/python3/dist-packages PATH=$PWD/../python/usr/bin:$PATH \
        ../source/configure --python=/usr/bin/python3 --disable-download --target-list=x86_64-linux-user \
        --disable-system --disable-tools --disable-docs --disable-install-blobs --disable-werror \
        --disable-capstone --enable-plugins >"$log" 2>&1 || {
        tail -n 12 "$log" >&2
        fail "QEMU's configure failed; installed should be: $PACKAGES"
    }
    PYTHONPATH=$PWD/../python/usr/lib/python3/dist-packages ninja ${jobs:+-j "$jobs"} qemu-x86_64 2>&1 |
        progress "$log" || {
        tail -n 20 "$log" >&2
        fail "the build of QEMU failed"
    }
    [ -x qemu-x86_64 ] || {
        tail -n 20 "$log" >&2
        fail "the build of QEMU made no program"
    }
    strip qemu-x86_64
}

sum() { sha256sum <"$1" | cut -d' ' -f1; }

# Is the program of a folder the one that was built there?
whole() { # FOLDER
    [ -e "$1/complete" ] && [ -x "$1/bin/qemu-x86_64" ] && grep -qx "recipe $RECIPE" "$1/complete" &&
        [ "$(sed -n 's/^program //p' "$1/complete")" = "$(sum "$1/bin/qemu-x86_64")" ]
}

build() { # SUITE
    local version
    mkdir -p "$tools/apt"
    # One at a time; what one that was ended left behind goes.
    exec 9>"$tools/qemu.lock"
    flock 9
    rm -rf "$tools"/qemu-*.partial
    update "$1"
    version=$(newest)
    [ -n "$version" ] || fail "Debian's $1 has no source of QEMU"
    target=$tools/qemu-${version#*:}
    if whole "$target"; then
        say "$target/bin/qemu-x86_64"
        return
    fi
    # shellcheck disable=SC2086  # a list of package names
    install_packages $PACKAGES >&2 || fail "a build of QEMU needs the packages above. $OTHERWISE"
    work=$target.partial
    trap 'rm -rf "$work"' EXIT
    mkdir "$work"
    make_in "$work" "$version" "$1"
    rm -rf "$target"
    mv "$work/result" "$target"
    step "built $target/bin/qemu-x86_64"
    say "$target/bin/qemu-x86_64"
}

make_in() ( # FOLDER VERSION SUITE; leaves what is kept in FOLDER/result
    cd "$1"
    get_source "$2"
    correct
    (compile)
    takes_plugins build/qemu-x86_64 || fail "QEMU ${2#*:} was built, but without plugins"
    mkdir -p result/bin
    cp build/qemu-x86_64 result/bin
    cp source/COPYING source/COPYING.LIB source/LICENSE result
    {
        printf 'version %s\nsuite %s\nrecipe %s\n' "$2" "$3" "$RECIPE"
        printf 'program %s\n' "$(sum result/bin/qemu-x86_64)"
        sha256sum ./*.dsc ./*.tar.* | sed 's,\./,,; s/^/source /'
    } >result/complete
)

# The source of a program goes with it where it is given to others.
source_of() ( # FOLDER DIR
    version=$(sed -n 's/^version //p' "$1/complete")
    name=qemu-${version#*:}-source
    mkdir -p "$tools/apt" "$2"
    dir=$(cd "$2" && pwd)
    update "$suite"
    work=$(mktemp -d "$tools/source.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    mkdir "$work/$name"
    cd "$work/$name"
    get_source "$version"
    sed -n 's/^source //p' "$1/complete" | sha256sum --check --quiet >&2 ||
        fail "the mirror serves another source of QEMU ${version#*:} than that which was built"
    cp -r source unchanged
    correct
    # It differs, or there is nothing to correct.
    diff -ruN unchanged source >piebald.diff || true
    rm -rf source unchanged python ./*.deb
    tar -C "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime=@0 -cf "$work/tar" "$name"
    mv "$work/tar" "$dir/$name.tar"
    say "$dir/$name.tar"
)

newest_built() { # SUITE, or nothing for any
    local each
    for each in "$tools"/qemu-*/complete; do
        [ -e "$each" ] || continue
        if [ -z "${1:-}" ] || grep -qx "suite $1" "$each"; then
            if whole "$(dirname "$each")"; then dirname "$each"; fi
        fi
    done | sort -V | tail -n 1
}

verb=${1:-}
case $verb in
    build | path) [ $# -le 2 ] || misuse "$verb: at most one SUITE" ;;
    source) [ $# = 3 ] || misuse "source: needed are the program and a folder" ;;
    -h | --help) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
    *) misuse "\"$verb\": allowed: build, path, source, --help" ;;
esac
if [ "$verb" = source ]; then
    folder=$(cd "$(dirname "$2")/.." 2>/dev/null && pwd) || misuse "$2: no such program"
    whole "$folder" || misuse "$2: no program that was built by this script; allowed: what \"qemu.sh path\" prints"
    suite=$(sed -n 's/^suite //p' "$folder/complete")
    store=$tools/apt/$suite
    source_of "$folder" "$3"
    exit
fi
suite=${2:-}
[[ $suite =~ ^[a-z-]*$ ]] || misuse "suite \"$suite\": allowed: a suite of Debian, such as trixie or trixie-backports"
# As cargo: fewer processors than there are, if the caller wants it so.
jobs=${CARGO_BUILD_JOBS:-}
if [ "$verb" = path ]; then
    found=$(newest_built "$suite")
    [ -n "$found" ] || exit 1
    say "$found/bin/qemu-x86_64"
    exit
fi
suite=${suite:-$(codename)}
[ -n "$suite" ] || fail "this is no Debian, whose source package would be built. $OTHERWISE"
store=$tools/apt/$suite
build "$suite"
