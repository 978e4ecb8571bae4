# shellcheck shell=bash
# The distribution's source of kernel 6.12, and kernels of it, for those that source this, after scripts/setup.sh: sets
# `store`, where guests are kept, `debug` in it, and PACKAGE; the source lies in $debug/$PACKAGE once fetch_source was
# called.

PACKAGE=linux-source-6.12
store=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/piebald/guest
mkdir -p "$store/debug"
debug=$(cd -P "$store/debug" && pwd)

# Fails if the distribution serves none. What was built of an older one goes.
fetch_source() {
    local served
    install_packages build-essential e2fsprogs flex bison bc libelf-dev libssl-dev kmod xz-utils pahole >&2
    if can_install; then enable_security_archive >&2; fi
    # shellcheck disable=SC2154  # scripts/setup.sh sets it
    served=$(apt-cache "${apt_sources[@]}" policy "$PACKAGE" | sed -n 's/^ *Candidate: //p')
    case $served in '' | '(none)') warn "the distribution serves no $PACKAGE"; return 1 ;; esac
    [ "$(cat "$debug/source" 2>/dev/null)" != "$served" ] || return 0
    warn "fetching and unpacking $PACKAGE $served"
    rm -rf "${debug:?}/$PACKAGE" "$debug/patched" "$debug"/build* "$debug/package" "$debug/selftests"
    mkdir "$debug/package"
    (cd "$debug/package" && apt-get "${apt_sources[@]}" -o Acquire::Retries=3 download -qq "$PACKAGE" && dpkg-deb -x ./*.deb .)
    tar xf "$debug/package/usr/src/$PACKAGE.tar.xz" -C "$debug"
    rm -rf "$debug/package"
    echo "$served" >"$debug/source"
}

# build_kernel NAME SOURCE CONFIG...: builds the source in $debug/build-NAME with what the files say together, as a kernel of
# scripts/guest.sh; prints its version, which ends in -piebald-NAME. What has not changed since is not built again.
build_kernel() {
    local name=$1 source=$2 out=$debug/build-$1 log=$debug/log-$1 line version make
    shift 2
    mkdir -p "$out"
    make=(make -s -j"$(nproc)" -C "$source" O="$out" LOCALVERSION="-piebald-$name")
    # With what finds faults the compiler would put the function that gives frames to the page cache into
    # its only caller in that file, where it cannot be replaced; in the distribution's it does not.
    [ "$name" != debug ] || make+=(CFLAGS_filemap.o=-fno-inline)
    cat "$@" >"$out/asked.new"
    if ! cmp -s "$out/asked.new" "$out/asked"; then
        rm -f "$out/asked"
        "${make[@]}" KCONFIG_ALLCONFIG="$out/asked.new" allnoconfig >"$log" 2>&1 || { cat "$log" >&2; return 1; }
        grep '^CONFIG_' "$out/asked.new" | while read -r line; do
            grep -qxF "$line" "$out/.config" ||
                { warn "$name kernel: $line: the kernel's configuration does not take it"; return 1; }
        done || return 1
        mv "$out/asked.new" "$out/asked"
    fi
    warn "building the $name kernel"
    "${make[@]}" bzImage modules >"$log" 2>&1 || { tail -n 40 "$log" >&2; return 1; }
    version=$("${make[@]}" kernelrelease)
    rm -rf "${store:?}/$version"
    mkdir -p "$store/$version/boot" "$store/$version/usr/src"
    "${make[@]}" INSTALL_MOD_PATH="$store/$version" modules_install >"$log" 2>&1 || { cat "$log" >&2; return 1; }
    cp "$out/arch/x86/boot/bzImage" "$store/$version/boot/vmlinuz-$version"
    cp "$out/.config" "$store/$version/boot/config-$version"
    ln -s "$out" "$store/$version/usr/src/linux-headers-$version"
    touch "$store/$version/complete"
    say "$version"
}
