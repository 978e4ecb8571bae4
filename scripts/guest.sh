#!/usr/bin/env bash
# A guest: the distribution's own 6.12 kernel, started under QEMU with files of yours.
#
#   guest.sh fetch               gets the newest kernel that is served, and its headers, unless
#                                they are here; prints their version (uname -r)
#   guest.sh path WHAT           prints a path of what was fetched last (fetches if nothing
#                                was, as do the verbs below). WHAT: root, kernel,
#                                headers (the directory to give to make -C), config
#   guest.sh emulator            prints the emulator of guests with --parallel: its path, its version
#                                and whether processors run "parallel" or "in turns". If that of this
#                                system cannot run them in parallel, gets a newer one unless it is here
#   guest.sh in-debian-13 PROGRAM ARGUMENT...
#                                runs a program such as make in a small Debian 13, which is made in
#                                the store when it is used first (root; debootstrap): for headers whose
#                                tools do not run on an older system. It sees the store and the
#                                directory CARGO_TARGET_DIR at their paths
#   guest.sh pack OUT OPTION...  packs an initial file system of busybox and your files
#   guest.sh boot INITRD OPTION...
#                                starts it; the console is printed on standard output
#   guest.sh run OPTION...       pack and boot in one, with the options of both
#
# Options of pack:
#   --run FILE           program or script that the guest runs as its only task; it sees
#                        /proc, /sys, /dev, /tmp and debugfs, and starts in /. Needed.
#   --file HOST:GUEST    a file or directory, to be found at the path GUEST; permissions stay
#   --program HOST       a program of this machine with its libraries, at the same path
#   --module NAME        a module of the kernel (virtio_blk, ext4 ...), loaded at the start with
#                        what it needs, in the order of the options
# Options of boot:
#   --memory SIZE        1G        --cpus N   2        --timeout SECONDS   300
#   --append WORDS       more of the kernel's command line
#   --disk FILE          a raw image, /dev/vda and on (pack with --module virtio_blk)
#   --read-disk FILE     the same for reading only, so that several guests may have it at once
#   --qemu ARGUMENT      one more argument of QEMU, such as -plugin; may be repeated
#   --quiet              the console is printed only if something goes wrong; SIGHUP, SIGINT and SIGTERM end QEMU too.
#                        What the guest's program writes to /dev/ttyS1 in lines that begin with "told " is printed
#   --until-eof          with --quiet: so does the end of standard input, as when whoever holds it is gone
#   --nodes N            memory nodes, with the memory and the processors in equal parts   1
#   --parallel           processors run in parallel, on the emulator of `guest.sh emulator`
#
# A QEMU that dies of an assertion of its own before the guest's program begins is started again, twice at most.
#
# Exit status: that of the guest's program; 124 if the time is over, 125 if the guest
# ended without a status (a panic), 126 if the kernel complained on its console (BUG,
# WARNING, Oops, a stall), whatever its program said; 1 or 2 if it could not be started.
#
# Environment: PIEBALD_TIME_SCALE, a whole number by which --timeout is multiplied (1), for a busy
# host; PIEBALD_GUEST_KERNEL, a version such as 6.12.117+deb12-cloud-amd64, or a series such as 7.3
# for its newest, instead of the newest 6.12 that is served. What apt is not set up for is taken from
# Debian 13 and its backports, whose lists lie in the store too. PIEBALD_GUEST_CPU,
# QEMU's -cpu (max,-erms,-fsrm, so that string copies are single accesses); PIEBALD_QEMU_SYSTEM,
# the emulator, instead of those below. Everything is kept in
# ${XDG_CACHE_HOME:-~/.cache}/piebald/guest/VERSION; nothing but tools is installed.
#
# QEMU translates (TCG), one virtual processor after the other. With --parallel each has a thread, from QEMU 10 on:
# QEMU 7.2 corrupts kernel code that is patched while another processor runs it, which is what a module with
# hooks does. On Debian 12 `guest.sh emulator` unpacks the one of its backports in the store. With a plugin,
# or with -icount, processors take turns all the same.
set -eu
shopt -s inherit_errexit

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=setup.sh
. "$here/setup.sh"

SERIES=6.12
FLAVOUR=cloud-amd64
TOOLS="qemu-system-x86 busybox-static cpio kmod xz-utils build-essential libelf1"
store=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/piebald/guest
# How apt is asked: as the system has it, or with lists of our own.
apt_options=(-q "${apt_sources[@]}")

fail() { warn "guest: $*"; exit 1; }
misuse() { warn "guest: $*"; exit 2; }

# What is asked for: a version, or nothing and a series.
wanted_version='' series=$SERIES
settle_version() {
    local asked=${PIEBALD_GUEST_KERNEL:-}
    if [ -z "$asked" ]; then return; fi
    if [[ $asked =~ ^[1-9][0-9]?\.[0-9]{1,3}$ ]]; then
        series=$asked
    elif [[ $asked =~ ^[1-9][0-9.]*[^/[:space:]]*-"$FLAVOUR"$ ]] || fetched "$asked"; then
        wanted_version=$asked
    else
        misuse "PIEBALD_GUEST_KERNEL=$asked: allowed: a version that ends in -$FLAVOUR, a series such as 7.3, or a version of kernel/debug.sh or kernel/patched.sh that was built"
    fi
}

# The version that is served, of what is asked for. Without headers a kernel is of no use.
served_version() {
    local pattern="$series\\..*-$FLAVOUR"
    [ -z "$wanted_version" ] || pattern=${wanted_version//+/\\+}
    apt-cache "${apt_options[@]}" search --names-only "^linux-headers-$pattern\$" 2>/dev/null |
        sed 's/ .*//; s/^linux-headers-//' | sort -V | tail -n 1
}

# The archive of Debian that apt uses here.
archive() {
    local codename
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    # shellcheck disable=SC2016  # apt fills these in
    apt-get indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages' |
        sed -n "s/^$codename \(http.*[^/]\)\/*$/\1/p" | head -n 1
}

# Has apt ask for Debian 13, with the kernels of its backports, in lists of our own.
use_debian_13() {
    local mirror own=$store/apt
    mirror=$(archive)
    [ -n "$mirror" ] || fail "apt's configuration has no archive of Debian, from which other kernels could be fetched"
    mkdir -p "$own/lists/partial" "$own/cache/archives/partial"
    printf 'deb %s main\n' "$mirror trixie" "$mirror trixie-backports" "$mirror-security trixie-security" \
        >"$own/sources.list"
    apt_options=(-q -o "Dir::Etc::SourceList=$own/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$own/lists" -o Dir::State::Status=/dev/null -o "Dir::Cache=$own/cache"
        -o APT::Sandbox::User=root -o Acquire::Retries=3)
    apt-get "${apt_options[@]}" update -qq >&2 || warn "apt-get update failed for Debian 13; trying with the package lists as they are"
}

# The packages that a kernel and its headers are. From 7.x on the image is an empty package that
# depends on those that hold the kernel, its configuration and its modules.
packages_of() { # VERSION
    local base=${1%-"$FLAVOUR"}
    say "linux-image-$1 linux-headers-$1 linux-headers-$base-common linux-kbuild-$base"
    apt-cache "${apt_options[@]}" depends --important "linux-image-$1" 2>/dev/null |
        sed -n "s/^ *Depends: \(linux-.*-$1\)$/\1/p"
}

fetched() { [ -e "$store/$1/complete" ]; }

fetch() {
    local found wanted
    # shellcheck disable=SC2086  # a list of package names
    [ -z "$(missing_packages $TOOLS)" ] || install_packages $TOOLS >&2 || exit 1
    if [ -n "$wanted_version" ] && fetched "$wanted_version"; then say "$wanted_version"; return; fi
    if ! have apt-get || ! have dpkg-deb; then
        fail "kernel packages are fetched with apt-get and dpkg-deb, which are not here"
    fi
    if can_install; then
        enable_security_archive >&2
        apt_options=(-q "${apt_sources[@]}")
        apt update -qq >&2 || warn "apt-get update failed; trying with the package lists as they are"
    fi
    found=$(served_version)
    if [ -z "$found" ] && [ -n "${PIEBALD_GUEST_KERNEL:-}" ]; then
        use_debian_13
        found=$(served_version)
    fi
    [ -n "$found" ] || fail "neither the distribution nor Debian 13 serves headers of kernel ${wanted_version:-$series}: no package linux-headers-${wanted_version:-$series.*-$FLAVOUR}"
    if fetched "$found"; then say "$found"; return; fi
    read -r -d '' -a wanted < <(packages_of "$found") || true
    unpack "$found" "${wanted[@]}"
    say "$found"
}

newest_fetched() {
    local each
    for each in "$store/$series".*-"$FLAVOUR"/complete; do
        [ -e "$each" ] && basename "$(dirname "$each")"
    done | sort -V | tail -n 1
}

unpack() ( # VERSION PACKAGE...
    version=$1
    shift
    mkdir -p "$store"
    partial=$(mktemp -d "$store/$version.XXXXXX.partial")
    trap 'rm -rf "$partial"' EXIT
    chmod 755 "$partial"
    cd "$partial"
    warn "guest: fetching kernel $version and its headers"
    apt-get "${apt_options[@]}" -o Acquire::Retries=3 download -qq "$@" 2>"$partial/log" || {
        cat "$partial/log" >&2
        fail "the distribution does not serve all of: $*"
    }
    for package in *.deb; do dpkg-deb -x "$package" .; done
    rm -f ./*.deb log
    # Debian 13's packages have the modules below usr/lib, which programs look for below lib.
    [ -e lib ] || ln -s usr/lib lib
    # From 7.x on the kernel and its configuration lie beside them.
    mkdir -p boot
    for file in vmlinuz config; do
        [ -e "boot/$file-$version" ] || ln -s "../lib/modules/$version/$file" "boot/$file-$version"
    done
    # The headers name themselves and their other half by the paths of an installation. And without
    # the kernel's image beside them no type information is made for modules, which needs pahole.
    headers=usr/src/linux-headers-$version
    sed -i "s,/usr/src/,$store/$version/usr/src/," "$headers/Makefile"
    rm -f "$headers/vmlinux"
    "$(tool depmod)" -b "$partial" "$version" || fail "depmod of the fetched modules failed"
    touch complete
    rm -rf "${store:?}/$version"
    mv "$partial" "$store/$version"
)

# tool NAME: a program that may be in a directory of the superuser.
tool() {
    PATH=$PATH:/usr/sbin:/sbin command -v "$1" || fail "no program $1"
}

current() {
    local found
    found=${wanted_version:-$(newest_fetched)}
    if [ -z "$found" ] || ! fetched "$found"; then found=$(fetch); fi
    say "$found"
}

path_of() {
    local version
    version=$(current)
    case ${1:-} in
        root) say "$store/$version" ;;
        kernel) say "$store/$version/boot/vmlinuz-$version" ;;
        headers) say "$store/$version/usr/src/linux-headers-$version" ;;
        config) say "$store/$version/boot/config-$version" ;;
        *) misuse "path \"${1:-}\": allowed: root, kernel, headers, config" ;;
    esac
}

# --- tools of another distribution ----------------------------------------------

# What the headers' makefiles call; the libraries are those of the programs in linux-kbuild.
DEBIAN_13_TOOLS=gcc,make,kmod,pahole,libelf1t64,libssl3t64

make_debian_13() ( # DIR
    mirror=$(archive)
    [ -n "$mirror" ] || fail "apt's configuration has no archive of Debian, from which a Debian 13 could be made"
    install_packages debootstrap >&2 || exit 1
    partial=$(mktemp -d "$store/debian-13.XXXXXX.partial")
    trap 'rm -rf "$partial"' EXIT
    warn "guest: making a small Debian 13 in $1"
    debootstrap --variant=minbase --include="$DEBIAN_13_TOOLS" trixie "$partial/tree" "$mirror" >"$partial/log" 2>&1 || {
        tail -n 20 "$partial/log" >&2
        fail "debootstrap failed"
    }
    touch "$partial/tree/complete"
    rm -rf "${1:?}"
    mv "$partial/tree" "$1"
)

in_debian_13() { # PROGRAM ARGUMENT...
    local dir=$store/debian-13
    [ $# -gt 0 ] || misuse "in-debian-13: a program is needed"
    [ "$(id -u)" = 0 ] || fail "a Debian 13 can be made and entered by root alone; on Debian 13 itself none is needed"
    mkdir -p "$store"
    [ -e "$dir/complete" ] || make_debian_13 "$dir"
    settle_target_dir "$here/.."
    # The mounts are seen from inside alone, and end with the program.
    # shellcheck disable=SC2016  # the inner shell's variables
    unshare --mount bash -c '
        set -eu
        dir=$1
        shift
        while [ "$1" != -- ]; do
            mkdir -p "$dir$1"
            mount --rbind "$1" "$dir$1"
            shift
        done
        shift
        exec chroot "$dir" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LC_ALL=C KCFLAGS="${KCFLAGS:-}" "$@"
    ' - "$dir" /dev /proc "$store" "$CARGO_TARGET_DIR" -- "$@"
}

# --- the emulator ---------------------------------------------------------------

# From this QEMU on processors may run in parallel: 7.2 corrupts code that is patched meanwhile, 10.0 did not
# when it was tried, and 8 and 9 were not tried.
PARALLEL_FROM=10

# The newest emulator that was unpacked here; it takes its libraries from the system.
unpacked_emulator() {
    local each
    for each in "$store"/qemu-*/complete; do
        [ -e "$each" ] && say "${each%/complete}/usr/bin/qemu-system-x86_64"
    done | sort -V | tail -n 1
}

version_of() { "$1" --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9][0-9.]*\).*/\1/p'; }

runs_parallel() { # EMULATOR
    local version
    version=$(version_of "$1")
    [ "${version%%.*}" -ge "$PARALLEL_FROM" ] 2>/dev/null
}

# Of a guest with --parallel: what was asked for, what this system has, or what was unpacked.
parallel_emulator() {
    local unpacked=''
    [ -n "${PIEBALD_QEMU_SYSTEM:-}" ] || runs_parallel "$emulator" || unpacked=$(unpacked_emulator)
    if [ -n "$unpacked" ] && runs_parallel "$unpacked"; then say "$unpacked"; else say "$emulator"; fi
}

# Where an emulator that was unpacked finds its own: options of QEMU, none for another.
data_of() { # EMULATOR
    case $1 in "$store"/*) printf '%s\n' -L "${1%/bin/*}/share/qemu" -L "${1%/bin/*}/share/seabios" ;; esac
}

# No emulator is unpacked, and why, for a day.
none_because() { # REASON [LOG]
    {
        printf 'guest: %s\n' "$1"
        [ -z "${2:-}" ] || sed 's,[a-z]*://[^ ]*/,.../,g; s/ *\[IP:[^]]*\]//; s/^/    /' "$2" | tail -n 4
        printf 'guest: asked at %s, and again after a day, or when %s is removed\n' \
            "$(date '+%Y-%m-%d %H:%M')" "$store/emulator.none"
    } >"$store/emulator.none"
}

# Unpacks the emulator of this Debian's backports, if it is one that runs processors in parallel.
unpack_emulator() (
    rm -rf "$store"/emulator.*.partial
    codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    mirror=$(archive)
    [ -n "$mirror" ] || { none_because "apt's configuration has no archive of Debian, whose backports may have a newer QEMU"; exit; }
    lists=$store/backports
    mkdir -p "$lists/state/partial" "$lists/cache/archives/partial"
    printf 'deb %s %s-backports main\n' "$mirror" "$codename" >"$lists/sources.list"
    apt_options=(-q -o "Dir::Etc::SourceList=$lists/sources.list" -o Dir::Etc::SourceParts=/dev/null
        -o "Dir::State::Lists=$lists/state" -o Dir::State::Status=/dev/null -o "Dir::Cache=$lists/cache"
        -o APT::Sandbox::User=root -o Acquire::Retries=3)
    if ! apt-get "${apt_options[@]}" -o APT::Update::Error-Mode=any update -qq >"$lists/log" 2>&1; then
        none_because "the lists of backports, which may have a newer QEMU, cannot be had:" "$lists/log"
        exit
    fi
    version=$(LC_ALL=C apt-cache "${apt_options[@]}" policy qemu-system-x86 | sed -n 's/^ *Candidate: //p')
    upstream=${version#*:}
    if ! [ "${upstream%%.*}" -ge "$PARALLEL_FROM" ] 2>/dev/null; then
        none_because "the backports have no QEMU from version $PARALLEL_FROM on"
        exit
    fi
    partial=$(mktemp -d "$store/emulator.XXXXXX.partial")
    trap 'rm -rf "$partial"' EXIT
    chmod 755 "$partial"
    cd "$partial"
    warn "guest: fetching QEMU $upstream, which runs processors in parallel"
    if ! apt-get "${apt_options[@]}" download -qq "qemu-system-x86=$version" "qemu-system-data=$version" seabios \
        >"$lists/log" 2>&1; then
        none_because "the backports do not serve QEMU $upstream:" "$lists/log"
        exit
    fi
    for package in *.deb; do
        dpkg-deb -x "$package" . >"$lists/log" 2>&1 || { none_because "QEMU $upstream cannot be unpacked:" "$lists/log"; exit; }
    done
    rm -f -- *.deb
    if ! starts "$partial/usr/bin/qemu-system-x86_64" 2>"$lists/log"; then
        none_because "QEMU $upstream of backports does not start here:" "$lists/log"
        exit
    fi
    mkdir whole
    mv usr whole
    touch whole/complete
    rm -rf "${store:?}/qemu-$upstream"
    mv whole "$store/qemu-$upstream"
)

# Does a machine of this emulator start? It is ended before it does anything.
starts() { # EMULATOR
    local data
    mapfile -t data < <(data_of "$1")
    echo quit | timeout --kill-after=5 60 "$1" ${data[@]+"${data[@]}"} -M q35 -accel tcg,thread=multi -smp 4 -m 128M \
        -nodefaults -display none -S -monitor stdio >/dev/null
}

must_be_emulator() { # EMULATOR
    [ -z "$(version_of "$1")" ] || return 0
    [ -z "${PIEBALD_QEMU_SYSTEM:-}" ] || misuse "PIEBALD_QEMU_SYSTEM=$1: allowed: QEMU in system mode, such as qemu-system-x86_64 (Debian's package qemu-system-x86)"
    fail "no QEMU in system mode: sudo apt-get install --no-install-recommends qemu-system-x86"
}

print_emulator() {
    local found how
    [ -n "${PIEBALD_QEMU_SYSTEM:-}" ] || have "$emulator" || install_packages qemu-system-x86 >&2 || exit 1
    found=$(parallel_emulator)
    must_be_emulator "$found"
    if [ -z "${PIEBALD_QEMU_SYSTEM:-}" ] && ! runs_parallel "$found" && have apt-get && have dpkg-deb; then
        mkdir -p "$store"
        # Of several guests that are started at once one unpacks it. The shell goes on after a failure,
        # and the steps above end with theirs.
        set +e
        (
            set -e
            flock 9
            if ! runs_parallel "$(unpacked_emulator)" && [ -z "$(find "$store/emulator.none" -mmin -1440 2>/dev/null)" ]; then
                rm -f "$store/emulator.none"
                unpack_emulator
            fi
        ) 9>"$store/emulator.lock"
        set -e
        found=$(parallel_emulator)
        runs_parallel "$found" || [ ! -e "$store/emulator.none" ] || cat "$store/emulator.none" >&2
    fi
    if runs_parallel "$found"; then how=parallel; else how='in turns'; fi
    say "$found $(version_of "$found") $how"
}

# --- pack ---------------------------------------------------------------------

# What the guest does first and last. The second serial line carries the status, so that
# nothing a program prints can be taken for it.
write_init() {
    cat >"$1/init" <<'INIT'
#!/bin/sh
export PATH=/bin:/sbin:/usr/bin:/usr/sbin HOME=/ TERM=dumb
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
mount -t tmpfs tmp /tmp
mount -t debugfs debug /sys/kernel/debug 2>/dev/null
status=0
stty -F /dev/ttyS1 raw 2>/dev/null
echo begun >/dev/ttyS1
for module in $(cat /piebald/modules); do
    insmod "$module" || { echo "guest: cannot load $module"; status=1; }
done
if [ "$status" = 0 ]; then
    /piebald/run
    status=$?
fi
sync
echo "status $status" >/dev/ttyS1
sleep 0.2
poweroff -f
INIT
    chmod 755 "$1/init"
}

add_program() { # TREE PROGRAM
    local file
    [ -x "$2" ] || misuse "--program $2: no such program"
    { printf '%s\n' "$2"; ldd "$2" 2>/dev/null | sed -n 's/^[^/]*\(\/[^ ]*\) (.*/\1/p'; } |
        while read -r file; do
            mkdir -p "$1$(dirname "$file")"
            cp -L --remove-destination "$file" "$1$file"
        done
}

add_module() { # TREE VERSION NAME
    local line file name
    "$(tool modprobe)" -d "$store/$2" -S "$2" --show-depends "$3" >"$1.modules" 2>/dev/null ||
        misuse "--module $3: kernel $2 has no such module"
    while read -r line; do
        case $line in
            insmod*) file=$(awk '{ print $2 }' <<<"$line") ;;
            *) continue ;; # built in
        esac
        name=$(basename "${file%.xz}")
        if ! grep -qx "/piebald/$name" "$1/piebald/modules"; then
            case $file in
                *.xz) xz -dc "$file" >"$1/piebald/$name" ;;
                *) cp "$file" "$1/piebald/$name" ;;
            esac
            printf '/piebald/%s\n' "$name" >>"$1/piebald/modules"
        fi
    done <"$1.modules"
}

pack() { # OUT
    local version tree item host guest
    version=$(current)
    [ -n "$run" ] || misuse "pack: --run FILE is needed"
    [ -f "$run" ] || misuse "--run $run: no such file"
    tree=$scratch/tree
    rm -rf "$tree"
    mkdir -p "$tree"/{bin,sbin,proc,sys,dev,tmp,etc,usr/bin,usr/sbin,piebald}
    cp "$(tool busybox)" "$tree/bin/busybox"
    "$tree/bin/busybox" --list | while read -r item; do
        [ "$item" = busybox ] || ln -s busybox "$tree/bin/$item"
    done
    write_init "$tree"
    install -m 755 "$run" "$tree/piebald/run"
    : >"$tree/piebald/modules"
    for item in ${modules[@]+"${modules[@]}"}; do add_module "$tree" "$version" "$item"; done
    for item in ${programs[@]+"${programs[@]}"}; do add_program "$tree" "$item"; done
    for item in ${files[@]+"${files[@]}"}; do
        host=${item%:*} guest=${item##*:}
        case $item in *:/*) ;; *) misuse "--file $item: allowed: HOST:GUEST, GUEST from /" ;; esac
        [ -e "$host" ] || misuse "--file $item: no file $host"
        mkdir -p "$tree$(dirname "$guest")"
        cp -RLp --remove-destination "$host" "$tree$guest"
    done
    # The same files give the same bytes.
    find "$tree" -exec touch -h -d @0 {} +
    (cd "$tree" && find . | LC_ALL=C sort | cpio -o -H newc --owner 0:0 --reproducible --quiet) >"$1.partial"
    mv "$1.partial" "$1"
}

# --- boot ---------------------------------------------------------------------

COMPLAINTS='BUG:|WARNING:|Oops|general protection fault|Kernel panic|soft lockup|hard LOCKUP|rcu.*stall|hung_task|blocked for more than|list_(add|del) corruption|Bad page state|Bad rss-counter'

# QEMU system mode; another than that of PATH for tests.
emulator=${PIEBALD_QEMU_SYSTEM:-qemu-system-x86_64}

# Sets `emulator`, `threads` (of TCG) and `data` (where the emulator finds its own) for this guest.
choose_emulator() {
    local word turns=''
    [ "$parallel" = 1 ] || turns=1
    for word in ${qemu[@]+"${qemu[@]}"}; do
        case $word in -plugin | -icount) turns=1 ;; esac
    done
    [ -n "$turns" ] || emulator=$(parallel_emulator)
    must_be_emulator "$emulator"
    if [ -z "$turns" ] && runs_parallel "$emulator"; then threads=multi; else threads=single; fi
    mapfile -t data < <(data_of "$emulator")
}

# QEMU's options for memory nodes.
memory_nodes() {
    local node each=$((cpus / nodes)) mib
    mib=$(numfmt --from=iec "$memory") || misuse "--memory $memory: allowed with --nodes: a size such as 512M"
    mib=$((mib / 1048576 / nodes))
    [ $((each * nodes)) = "$cpus" ] || misuse "--nodes $nodes: allowed: what divides the $cpus processors"
    for ((node = 0; node < nodes; node++)); do
        printf '%s\n' -object "memory-backend-ram,id=node$node,size=${mib}M" \
            -numa "node,nodeid=$node,memdev=node$node,cpus=$((node * each))-$((node * each + each - 1))"
    done
}

# Runs QEMU for boot; sets `code`.
emulate() {
    local running watcher='' bound=()
    code=0
    : >"$scratch/status"
    if [ "$quiet" = 1 ]; then
        # Where this script itself is killed, as with all of its process group, the kernel ends timeout, and that QEMU.
        if setpriv --pdeathsig TERM true 2>/dev/null; then bound=(setpriv --pdeathsig TERM); fi
        ${bound[@]+"${bound[@]}"} timeout --kill-after=5 "$limit" "$emulator" "${machine[@]}" ${qemu[@]+"${qemu[@]}"} \
            </dev/null >"$scratch/console" &
        # Whoever ends this script ends QEMU.
        running=$!
        trap 'kill "$running" || :; wait "$running" || :; exit 143' HUP INT TERM
        if [ "$until_eof" = 1 ]; then
            # The shell itself reads: a program would go on reading when the shell is killed below.
            { while read -r _; do :; done; kill "$running" 2>/dev/null || :; } <&0 &
            watcher=$!
        fi
        wait "$running" || code=$?
        trap - HUP INT TERM
        [ -z "$watcher" ] || kill "$watcher" 2>/dev/null || :
    else
        set +e
        timeout --foreground --kill-after=5 "$limit" "$emulator" "${machine[@]}" ${qemu[@]+"${qemu[@]}"} \
            </dev/null | tee "$scratch/console"
        code=${PIPESTATUS[0]}
        set -e
    fi
}

boot() { # INITRD
    local kernel machine disk access n=0 code=0 status threads data how again=2
    [ "$quiet" = 1 ] || [ "$until_eof" = 0 ] || misuse "--until-eof: allowed with --quiet"
    choose_emulator
    limit=$((limit * ${PIEBALD_TIME_SCALE:-1}))
    kernel=$(path_of kernel)
    [ -f "$1" ] || misuse "boot: no initial file system $1"
    # On a busy host the emulated timer may come late at boot, for which the kernel would panic.
    # The kernel's tests of its ciphers run in threads of their own, seconds into what the guest does,
    # and take half a processor from whatever is measured meanwhile.
    machine=(${data[@]+"${data[@]}"} -M q35 -accel "tcg,thread=$threads" -cpu "${PIEBALD_GUEST_CPU:-max,-erms,-fsrm}"
        -smp "$cpus" -m "$memory" -nodefaults -nographic -no-reboot
        -serial stdio -serial "file:$scratch/status"
        -kernel "$kernel" -initrd "$1"
        -append "console=ttyS0 panic=-1 oops=panic loglevel=4 no_timer_check cryptomgr.notests $append")
    if [ "$nodes" != 1 ]; then
        memory_nodes >"$scratch/nodes"
        mapfile -t -O "${#machine[@]}" machine <"$scratch/nodes"
    fi
    for disk in ${disks[@]+"${disks[@]}"}; do
        access=${disk%%:*} disk=${disk#*:}
        [ -f "$disk" ] || misuse "disk $disk: no such file"
        machine+=(-drive "file=$disk,if=none,id=disk$n,format=raw,readonly=$access" -device "virtio-blk-pci,drive=disk$n")
        n=$((n + 1))
    done
    if [ "$cpus" = 1 ]; then how=''; elif [ "$threads" = multi ]; then how=' in parallel'; else how=' in turns'; fi
    [ "$quiet" = 1 ] || warn "guest: QEMU $(version_of "$emulator"), processors: $cpus$how"
    emulate
    # QEMU 10.0.2 with processors in parallel died of an assertion of its own in one boot of some twenty, while Linux asked
    # the BIOS for disks.
    while [ "$code" = 134 ] && ! grep -q '^begun' "$scratch/status" && [ "$again" -gt 0 ]; do
        again=$((again - 1))
        warn "guest: QEMU died before the guest's program began; once more"
        emulate
    done
    status=$(sed -n 's/^status \([0-9]*\).*/\1/p' "$scratch/status" | tail -n 1)
    if [ "$code" = 124 ] || [ "$code" = 137 ]; then
        warn "guest: stopped at its limit of $limit s"
        code=124
    elif grep -aqE "$COMPLAINTS" "$scratch/console"; then
        warn "guest: the kernel complained: $(grep -aE -m 1 "$COMPLAINTS" "$scratch/console")"
        code=126
    elif [ "$code" != 0 ]; then
        warn "guest: QEMU ended with status $code"
        code=1
    elif [ -z "$status" ]; then
        warn "guest: ended without a status; its line for that had $(wc -c <"$scratch/status") bytes: $(head -c 200 "$scratch/status" | cat -v | tr '\n' ' ')"
        code=125
    else
        code=$status
    fi
    if [ "$quiet" = 1 ]; then
        if [ "$code" = 0 ]; then sed -n '/^told /p' "$scratch/status"; else cat "$scratch/console"; fi
    fi
    return "$code"
}

# --- arguments ----------------------------------------------------------------

run='' memory=1G cpus=2 nodes=1 limit=300 append='' quiet=0 until_eof=0 parallel=0
files=() programs=() modules=() disks=() qemu=()

options() { # "pack", "boot" or both, then the arguments
    local sort=$1
    shift
    while [ $# -gt 0 ]; do
        case $1 in
            --run | --file | --program | --module)
                [[ $sort == *pack* ]] || misuse "$1 is an option of pack" ;;
            --memory | --cpus | --timeout | --append | --disk | --read-disk | --qemu | --nodes | --quiet | --until-eof | --parallel)
                [[ $sort == *boot* ]] || misuse "$1 is an option of boot" ;;
            *) misuse "\"$1\": no such option of $sort (guest.sh --help)" ;;
        esac
        if [ "$1" = --quiet ]; then quiet=1; shift; continue; fi
        if [ "$1" = --until-eof ]; then until_eof=1; shift; continue; fi
        if [ "$1" = --parallel ]; then parallel=1; shift; continue; fi
        [ $# -ge 2 ] || misuse "$1 needs a value"
        case $1 in
            --run) run=$2 ;;
            --file) files+=("$2") ;;
            --program) programs+=("$2") ;;
            --module) modules+=("$2") ;;
            --memory) memory=$2 ;;
            --cpus) whole "$1" "$2"; cpus=$2 ;;
            --timeout) whole "$1" "$2"; limit=$2 ;;
            --append) append="$append $2" ;;
            --disk) disks+=("off:$2") ;;
            --read-disk) disks+=("on:$2") ;;
            --qemu) qemu+=("$2") ;;
            --nodes) whole "$1" "$2"; nodes=$2 ;;
        esac
        shift 2
    done
}

whole() { # OPTION VALUE
    [[ $2 =~ ^[1-9][0-9]{0,5}$ ]] || misuse "$1 $2: allowed: whole numbers from 1"
}

verb=${1:-}
settle_version
case $verb in
    fetch) fetch; exit ;;
    path) path_of "${2:-}"; exit ;;
    emulator) print_emulator; exit ;;
    in-debian-13) shift; in_debian_13 "$@"; exit ;;
    pack | boot)
        [ $# -ge 2 ] || misuse "$verb: a file is needed"
        target=$2
        shift 2
        options "$verb" "$@"
        ;;
    run) shift; options "pack or boot" "$@" ;;
    -h | --help) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
    *) misuse "\"$verb\": allowed: fetch, path, emulator, in-debian-13, pack, boot, run, --help" ;;
esac

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
case $verb in
    pack) pack "$target" ;;
    boot) boot "$target" ;;
    run) pack "$scratch/initrd"; boot "$scratch/initrd" ;;
esac
