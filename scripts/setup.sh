# shellcheck shell=bash
# What test.sh and demo.sh share: find or install the programs that they need.
#
# Sourced, never run. Sets CARGO, RUSTC and CARGO_TARGET_DIR. Installs Debian
# packages only as root or through sudo, only those that are missing, and never
# lets apt remove a package. Everything is tested by capability ("is there a C
# compiler?"), so that another distribution with the same programs works too.

# Oldest Rust that builds the workspace (rust-version in Cargo.toml).
MIN_RUST_MINOR=95

say() { printf '%s\n' "$*"; }
warn() { printf '%s\n' "$*" >&2; }
have() { command -v "$1" >/dev/null 2>&1; }

# Succeeds if what the Debian package gives is usable here.
has_package() {
    case $1 in
        build-essential) have cc && have ld && have objdump ;;
        python3-venv) have python3 && python3 -c 'import ensurepip, venv' 2>/dev/null ;;
        python3-dev) have python3 && [ -e "$(python3 -c 'import sysconfig; print(sysconfig.get_path("include"))')/Python.h" ] ;;
        pkg-config) have pkg-config ;;
        qemu-user) recorder_qemu >/dev/null ;;
        ca-certificates) [ -e /etc/ssl/certs/ca-certificates.crt ] || [ -d /etc/pki ] ;;
        coreutils) have sort && have timeout ;;
        coinor-clp) have clp ;;
        liblemon-utils) have dimacs-solver ;;
        pocketsphinx) have pocketsphinx_batch ;;
        # Debian 13 gives it in libelf1t64, which apt knows by this name, too.
        libelf1) case $(PATH=$PATH:/usr/sbin:/sbin ldconfig -p) in *libelf.so.1*) ;; *) false ;; esac ;;
        grep | zstd | valgrind | chromium | python3 | bzip2 | git | shellcheck) have "$1" ;;
        g++ | xalan | espeak-ng | sox) have "$1" ;;
        *) dpkg-query -W -f='${Status}' "$1" 2>/dev/null | grep -q '^install ok installed' ;;
    esac
}

# Can this QEMU load plugins? Debian's user mode is linked statically from 10.0 on, and cannot.
takes_plugins() { [[ $("$1" --help 2>/dev/null) == *$'\n'-plugin* ]]; }

# Prints the QEMU that `piebald record` finds, but for one that lies beside the program.
recorder_qemu() {
    local named=${PIEBALD_QEMU:-qemu-x86_64}
    if have "$named" && takes_plugins "$named"; then
        command -v "$named"
    else
        "$(dirname "${BASH_SOURCE[0]}")/qemu.sh" path
    fi
}

# Does the qemu-user that apt would install load plugins?
packaged_qemu_suffices() {
    local major
    major=$(apt-cache policy qemu-user 2>/dev/null | sed -n 's/^ *Candidate: \([0-9]*:\)\{0,1\}\([0-9]*\)\..*/\2/p')
    [ "${major:-0}" -lt 10 ]
}

missing_packages() {
    local package
    for package in "$@"; do
        has_package "$package" || printf '%s ' "$package"
    done
}

# Runs a command as root, or fails. Stages run in the background of the
# terminal, so sudo must not ask there: unlock_sudo asks beforehand.
as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif have sudo; then
        sudo -n "$@"
    else
        return 1
    fi
}

can_install() { have apt-get && as_root true 2>/dev/null; }

# Asks for the password once, in the foreground, if someone is there to type it.
unlock_sudo() {
    [ "$(id -u)" != 0 ] && have sudo && have apt-get && [ -t 0 ] || return 0
    sudo -n true 2>/dev/null || sudo -v || true
}

apt() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get "${apt_sources[@]}" \
        -o DPkg::Lock::Timeout=120 -o Acquire::Retries=3 "$@"
}

apt_updated=
# install_packages PACKAGE...: installs the missing ones; fails naming them.
install_packages() {
    local missing
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    if [[ " $missing" == *" qemu-user "* ]] && ! packaged_qemu_suffices; then
        say "QEMU of this distribution takes no plugins; building one"
        "$(dirname "${BASH_SOURCE[0]}")/qemu.sh" build || return 1
        missing=$(missing_packages "$@")
        [ -n "$missing" ] || return 0
    fi
    if ! can_install; then
        warn "missing: $missing"
        warn "install them with: sudo apt-get install --no-install-recommends $missing"
        return 1
    fi
    say "installing: $missing"
    if [ -z "$apt_updated" ]; then
        apt update -qq || warn "apt-get update failed; trying with the package lists as they are"
        apt_updated=1
    fi
    # shellcheck disable=SC2086  # a list of package names
    apt install -y -qq --no-install-recommends --no-remove $missing >/dev/null || {
        warn "could not install: $missing"
        return 1
    }
    missing=$(missing_packages "$@")
    [ -z "$missing" ] || { warn "still missing after installation: $missing"; return 1; }
}

# rust_minor RUSTC: prints the minor version of a 1.x compiler, 0 for none.
rust_minor() {
    local version
    version=$("$1" --version 2>/dev/null) || version=
    case $version in
        "rustc 1."*) version=${version#rustc 1.}; printf '%s\n' "${version%%.*}" ;;
        *) printf '0\n' ;;
    esac
}

rust_ok() {
    [ -x "$1/rustc" ] && [ -x "$1/cargo" ] && [ "$(rust_minor "$1/rustc")" -ge "$MIN_RUST_MINOR" ]
}

# Directories that may hold a Rust toolchain, the user's own choice first.
rust_dirs() {
    have cargo && dirname "$(command -v cargo)"
    printf '%s\n' "${CARGO_HOME:-${HOME:-/root}/.cargo}/bin" /usr/bin
}

# Sets CARGO, RUSTC and RUST_DIR to the first toolchain that is new enough.
find_rust() {
    local dir
    for dir in $(rust_dirs); do
        if rust_ok "$dir"; then
            RUST_DIR=$dir CARGO=$dir/cargo RUSTC=$dir/rustc
            export CARGO RUSTC RUST_DIR
            return 0
        fi
    done
    return 1
}

# Sets CARGO and RUSTC to a toolchain that has its library's source, for targets that have
# no library built (rustup's component rust-src, or Debian's rust-web-src).
find_rust_with_source() {
    local dir
    for dir in $(rust_dirs); do
        if rust_ok "$dir" &&
            [ -e "$("$dir/rustc" --print sysroot)/lib/rustlib/src/rust/library/Cargo.lock" ]; then
            CARGO=$dir/cargo RUSTC=$dir/rustc
            export CARGO RUSTC
            return 0
        fi
    done
    return 1
}

# cargo_tool NAME ARGS...: cargo fmt and cargo clippy of the chosen toolchain;
# cargo itself would look into ~/.cargo/bin first and mix two toolchains.
cargo_tool() {
    local tool=$1
    shift
    if [ -x "$RUST_DIR/cargo-$tool" ]; then
        "$RUST_DIR/cargo-$tool" "$tool" "$@"
    else
        "$CARGO" "$tool" "$@"
    fi
}

# Options that let apt see our sources beside the system's.
apt_sources=()
OWN_SOURCES=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/piebald/apt

# Has apt see the system's sources as they are now, and those in $OWN_SOURCES/own.
use_own_sources() {
    local each parts=$OWN_SOURCES/parts
    mkdir -p "$parts"
    for each in "$parts"/*; do [ -e "$each" ] || rm -f "$each"; done
    for each in /etc/apt/sources.list.d/* "$OWN_SOURCES"/own/*; do
        case $each in *.list | *.sources) ln -sfn "$each" "$parts" ;; esac
    done
    apt_sources=(-o "Dir::Etc::SourceParts=$parts")
}

# Debian 12 has a recent Rust (the *-web packages) only in its security
# archive, which a bare debootstrap does not list. Lets apt see it, derived from the
# mirror that is already in use; nothing is written to /etc. Debian 13 has it in its main archive.
enable_security_archive() {
    local suites mirror
    grep -q '^VERSION_CODENAME=bookworm' /etc/os-release 2>/dev/null || return 0
    # shellcheck disable=SC2016  # apt fills these in
    suites=$(apt-get "${apt_sources[@]}" indextargets --format '$(RELEASE) $(REPO_URI)' 'Created-By: Packages')
    case $suites in *bookworm-security*) return 0 ;; esac
    mirror=$(sed -n 's/^bookworm //p' <<<"$suites" | head -n 1)
    [ -n "$mirror" ] || return 0
    mkdir -p "$OWN_SOURCES/own"
    say "Debian's security archive is asked as well"
    printf 'deb %s-security bookworm-security main\n' "${mirror%/}" >"$OWN_SOURCES/own/security.list"
    use_own_sources
    apt_updated=
}

# What was asked once is asked from then on: with fewer sources, packages that came from there could not be matched.
[ ! -e "$OWN_SOURCES/own/security.list" ] || use_own_sources

# install_rust PACKAGE...: Debian's Rust packages at a version that is enough.
install_rust() {
    can_install || return 1
    enable_security_archive
    install_packages "$@"
}

# ensure_rust: a toolchain is there, or the message says what to do.
ensure_rust() {
    find_rust && return 0
    say "no Rust 1.$MIN_RUST_MINOR or later found; trying Debian's packages"
    install_rust rustc-web cargo-web rust-web-clippy rustfmt-web && find_rust && return 0
    warn "Rust 1.$MIN_RUST_MINOR or later is needed, and was neither found nor installable here."
    warn "Install it with rustup, or on Debian 12 and 13: sudo apt-get install rustc-web cargo-web"
    return 1
}

# archive_of SUITE: the first archive in apt's configuration that serves Debian's SUITE.
archive_of() {
    local archive list
    list=$(mktemp -d)
    # shellcheck disable=SC2016  # apt fills these in
    while read -r archive; do
        if /usr/lib/apt/apt-helper download-file "${archive%/}/dists/$1/InRelease" "$list/InRelease" \
            >/dev/null 2>&1 && grep -qx 'Origin: Debian' "$list/InRelease"; then
            rm -rf "$list"
            say "$archive"
            return
        fi
    done < <(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' | grep -E '^https?:' | sort -u)
    rm -rf "$list"
    return 1
}

# The target directory as an absolute path; a relative one counts from the
# caller's directory, as cargo itself has it. Call before changing directory.
settle_target_dir() {
    case ${CARGO_TARGET_DIR:-} in
        '') CARGO_TARGET_DIR=$1/target ;;
        /*) ;;
        *) CARGO_TARGET_DIR=$PWD/$CARGO_TARGET_DIR ;;
    esac
    export CARGO_TARGET_DIR
}

# The version of the workspace in the current directory.
workspace_version() {
    sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml
}

# maintainer: who answers for a package, as "NAME <ADDRESS>": DEBFULLNAME and DEBEMAIL, or else the first of
# `authors` of the workspace in the current directory. Fails, and says what is missing, if that is neither.
maintainer() {
    local who form='^[^<>[:cntrl:][:space:]][^<>[:cntrl:]]* <[^<>@[:cntrl:][:space:]]+@[^<>@[:cntrl:][:space:]]+>$'
    who=$(sed -n '/^\[workspace.package\]/,/^\[/s/^authors = \["\([^"]*\)".*/\1/p' Cargo.toml)
    [ -z "${DEBFULLNAME:-}${DEBEMAIL:-}" ] || who="${DEBFULLNAME:-} <${DEBEMAIL:-}>"
    [[ $who =~ $form ]] || {
        warn "maintainer \"$who\": allowed: NAME <ADDRESS>, from DEBFULLNAME and DEBEMAIL, or from authors = [\"NAME <ADDRESS>\"] in [workspace.package] of Cargo.toml"
        return 1
    }
    say "$who"
}

# The section of a version in CHANGELOG.md of the current directory, without its heading.
changes_of() { # VERSION
    awk -v heading="## [$1] - " '
        index($0, heading) == 1 { found = 1; next }
        /^## / { found = 0 }
        found && (NF || any) { any = 1; print }
    ' CHANGELOG.md
}

# clone_as_built ROOT DIR: clones the committed state. What was built of the same files is not built
# again with the same target directory: cargo goes by the times of files, and of folders that a build script
# names (crates/sim/build.rs), and a clone's are new. A file that differs keeps its new time, and so does a folder
# that holds others; one that is not committed is missing, so that what depends on it is built. The same holds for the
# commit that the command names (crates/cli/build.rs).
clone_as_built() {
    local root=$1 clone=$2 file folder
    git clone --quiet --no-hardlinks "$root" "$clone"
    while IFS= read -r -d '' file; do
        if cmp -s "$root/$file" "$clone/$file"; then touch -r "$root/$file" "$clone/$file"; fi
    done < <(git -C "$clone" ls-files -z)
    while IFS= read -r -d '' folder; do
        if cmp -s <(ls -A "$root/$folder") <(ls -A "$clone/$folder"); then
            touch -r "$root/$folder" "$clone/$folder"
        fi
    done < <(cd "$clone" && find . -name .git -prune -o -type d -print0)
    touch -r "$(git -C "$root" rev-parse --path-format=absolute --git-path logs/HEAD)" "$clone/.git/logs/HEAD"
}

# table_with FILE HEADER ROW...: the table below HEADER in FILE, with these rows: each takes the place of the
# one whose first cell is the same, or stands at the end.
table_with() {
    local file=$1 header=$2
    shift 2
    printf '%s\n' "$header" "${header//[!|]/-}"
    printf '%s\n' "$@" | awk -v header="$header" '
        function key(row, cells) { split(row, cells, "|"); return cells[2] }
        FILENAME == "-" { if (NF) { new[key($0)] = $0; order[++n] = key($0) } next }
        $0 == header { inside = 1; next }
        !/^\|/ { inside = 0 }
        !inside || /^\|-/ { next }
        key($0) in new { print new[key($0)]; delete new[key($0)]; next }
        { print }
        END { for (i = 1; i <= n; i++) if (order[i] in new) print new[order[i]] }
    ' - "$file"
}

# When, of which commit and on what a measurement is made here: the last cell of a row.
measured_here() {
    printf '%s, %s, %s x %s' "$(date -u +%F)" "$(git rev-parse --short HEAD)" "$(nproc)" \
        "$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)"
}
