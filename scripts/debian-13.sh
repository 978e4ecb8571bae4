#!/usr/bin/env bash
# Runs demo.sh and test.sh in a new Debian 13: a root made with debootstrap, and in it a clone of
# the committed state, with nothing beside it but git.
#
#   scripts/debian-13.sh [OPTION...] [STAGE...]
#
# Without a STAGE: ./demo.sh, then all of ./test.sh. Otherwise these stages of test.sh, of which
# `demo` is one.
#   --keep DIR   makes the root in DIR, or goes on with the one that is there, and leaves it there;
#                otherwise it lies in ${TMPDIR:-/var/tmp} and is removed at the end
#   --record     writes the result to bench/debian-13.md, where rows of stages that were not run stay
#
# The packages come from the archive that apt uses on this machine. The root has this machine's
# proxies, resolver and additional certificates, and nothing else of it. Its mounts and processes
# are in namespaces of their own, which end with this script however it ends. Needs root, 10 GB
# and an hour or two. The output stands in out/debian-13, the result in out/debian-13/result.md.
#
# Exit status: 0, or 1 if something failed in the root, 2 for a wrong argument, 77 if it cannot be
# tried here.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=setup.sh
. "$root/scripts/setup.sh"
# shellcheck source=root.sh
. "$root/scripts/root.sh"

SUITE=trixie
out=$root/out/debian-13

cannot_run() {
    [ -z "${STAGE_NOTE:-}" ] || printf '%s\n' "$*" >"$STAGE_NOTE"
    say "skipped: $*"
    exit 77
}

# --- before the root ------------------------------------------------------------

check_machine() {
    local why
    why=$(can_make_root) || cannot_run "$why"
    archive=$(archive_of "$SUITE") ||
        cannot_run "none of the archives in apt's configuration serves Debian 13 ($SUITE)"
}

# --- the root, in namespaces of its own -----------------------------------------

# timed NAME DIR PROGRAM ARGUMENT...: in the clone, with the output kept; NAME's verdict and seconds
# go to $out/NAME.row.
timed() {
    local name=$1 dir=$2 verdict=passed
    shift 2
    local TIMEFORMAT='%R %U %S'
    # shellcheck disable=SC2016  # the inner shell's variables
    { time enter "$dir" /bin/bash -c 'cd "$1" && shift && exec "$@"' - "$CLONE" "$@" \
        </dev/null > >(tee "$out/$name.log") 2>&1; } 2>"$out/$name.time" || verdict=failed
    awk -v n="$*" -v v="$verdict" '{ printf "| `%s` | %s | %.0f | %.0f |\n", n, v, $1, $2 + $3 }' \
        "$out/$name.time" >"$out/$name.row"
    [ "$verdict" = passed ]
}

inside() { # DIR ARCHIVE STAGE...
    local dir=$1 archive=$2 failed=0 origin='used before'
    shift 2
    if [ ! -e "$dir/complete" ]; then
        origin=new
        make_root "$dir" "$SUITE" "$archive" "$out/debootstrap.log"
    fi
    put_clone "$root" "$dir"
    mount_in "$dir"
    # The result of the first is there while the second runs.
    if [ $# = 0 ]; then
        timed demo "$dir" ./demo.sh || failed=1
        write_result "$dir" "$origin"
    fi
    timed test "$dir" ./test.sh --record "$@" || failed=1
    write_result "$dir" "$origin" "$@"
    return "$failed"
}

# --- the result -----------------------------------------------------------------

version_of() { # DIR PACKAGE
    # shellcheck disable=SC2016  # dpkg-query fills these in
    enter "$1" dpkg-query -W -f '| ${Package} | ${Version} |\n' "$2" 2>/dev/null || true
}

COMMAND_TABLE='| command | verdict | seconds | processor seconds | root | when, commit, processors |'
STAGE_TABLE='| stage | verdict | seconds | load at its start | when, commit, processors |'

# Rows of the stages that were run now: those that ./test.sh --record changed in the clone.
stage_rows() { # DIR
    git -C "$1$CLONE" diff --unified=0 -- bench/ci.md | sed -n 's/^+\(| `.*\)/\1/p'
}

# What is there, and the rows of commands and stages, to be put into a file together.
write_result() { # DIR ORIGIN STAGE...
    local dir=$1 origin=$2 row package build
    shift 2
    {
        printf 'Last: Debian %s.\n\n' "$(cat "$dir/etc/debian_version")"
        printf '| package | version |\n|---|---|\n'
        for package in gcc rustc-web qemu-user qemu-system-x86 chromium; do version_of "$dir" "$package"; done
        for package in "$dir$HOME_DIR"/.cache/piebald/guest/*/complete; do
            [ ! -e "$package" ] || printf '| kernel in the guest | %s |\n' "$(basename "$(dirname "$package")")"
        done
        for package in "$dir$HOME_DIR"/.cache/piebald/tools/qemu-*/complete; do
            [ ! -e "$package" ] || printf '| QEMU that records, built from source | %s |\n' \
                "$(sed -n 's/^version //p' "$package")"
        done
    } >"$out/packages.md"
    for row in demo test; do
        # Stages by name are rows of their own table.
        if [ -e "$out/$row.row" ] && [ $# = 0 ]; then
            printf '%s %s | %s |\n' "$(cat "$out/$row.row")" "$origin" "$(cd "$dir$CLONE" && measured_here)"
        fi
    done >"$out/commands.rows"
    # shellcheck disable=SC2016  # cargo writes these quotation marks
    build=$(sed -n 's/.*Finished `release` profile.* in \(.*\)/\1/p' "$out/demo.log" 2>/dev/null) || true
    [ -z "$build" ] || sed -i "1s/ | $origin | / | $origin; first build $build | /" "$out/commands.rows"
    stage_rows "$dir" >"$out/stages.rows"
    put_together /dev/null >"$out/result.md"
}

# put_together FILE: what was found, with the rows that FILE has of what was not run now.
put_together() {
    local command_rows=() stage_rows=()
    mapfile -t command_rows <"$out/commands.rows"
    mapfile -t stage_rows <"$out/stages.rows"
    cat "$out/packages.md"
    printf '\n'
    table_with "$1" "$COMMAND_TABLE" ${command_rows[@]+"${command_rows[@]}"}
    printf '\n'
    table_with "$1" "$STAGE_TABLE" ${stage_rows[@]+"${stage_rows[@]}"}
}

record() {
    local file=$root/bench/debian-13.md
    { sed '/^<!-- recorded -->$/q' "$file"; printf '\n'; put_together "$file"; } >"$scratch/record"
    cat "$scratch/record" >"$file"
}

# --- arguments --------------------------------------------------------------------

misuse() { warn "debian-13: $*"; exit 2; }

if [ "${1:-}" = --inside ]; then
    shift
    inside "$@"
    exit
fi
keep='' to_record=''
while [ $# -gt 0 ]; do
    case $1 in
        --keep)
            case ${2:-} in /?*) ;; *) misuse "--keep \"${2:-}\": allowed: a directory from /" ;; esac
            keep=${2%/}
            shift
            ;;
        --record) to_record=1 ;;
        -h | --help) sed -n '2,/^set -eu/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit ;;
        -*) misuse "\"$1\": allowed: --keep DIR, --record, --help" ;;
        *) break ;;
    esac
    shift
done
stages=$("$root/test.sh" --list)
for stage in "$@"; do
    grep -q "^$stage  *[0-9]" <<<"$stages" || misuse "\"$stage\": no stage of test.sh (./test.sh --list)"
    [ "$stage" != debian-13 ] || misuse "debian-13: cannot run inside itself"
done
if [ -n "$keep" ] && [ -e "$keep" ] && [ ! -e "$keep/complete" ] && [ -n "$(ls -A "$keep")" ]; then
    misuse "--keep $keep: neither empty nor a root that this script has made"
fi

scratch=$(mktemp -d)
child='' made=''
# shellcheck disable=SC2317  # a trap calls it
end() {
    if [ -n "$child" ]; then
        kill -KILL "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    # The mounts are not seen from here, so this removes what lies on the root's own disk alone.
    # Processes of the root may take a moment to end.
    [ -z "$made" ] || rm -rf "$made" 2>/dev/null || { sleep 2; rm -rf "$made"; }
    rm -rf "$scratch"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

check_machine
[ -z "$(git -C "$root" status --porcelain)" ] || say "note: changes that are not committed are not tested here"
mkdir -p "$out"
rm -f "$out"/*
dir=$keep
if [ -z "$dir" ]; then
    dir=$(mktemp -d "${TMPDIR:-/var/tmp}/piebald-debian-13.XXXXXX")
    made=$dir
    chmod 755 "$dir"
fi
status=0
unshare --mount --pid --kill-child bash "${BASH_SOURCE[0]}" --inside "$dir" "$archive" "$@" &
child=$!
wait "$child" || status=$?
child=
[ ! -e "$out/result.md" ] || [ -z "$to_record" ] || record
exit "$status"
