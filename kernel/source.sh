# shellcheck shell=bash
# The distribution's source of kernel 6.12, for those that source this, after scripts/setup.sh: sets `store`, where
# guests are kept, `debug` in it, and PACKAGE; the source lies in $debug/$PACKAGE once fetch_source was called.

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
    rm -rf "${debug:?}/$PACKAGE" "$debug/build" "$debug/package" "$debug/selftests"
    mkdir "$debug/package"
    (cd "$debug/package" && apt-get "${apt_sources[@]}" -o Acquire::Retries=3 download -qq "$PACKAGE" && dpkg-deb -x ./*.deb .)
    tar xf "$debug/package/usr/src/$PACKAGE.tar.xz" -C "$debug"
    rm -rf "$debug/package"
    echo "$served" >"$debug/source"
}
