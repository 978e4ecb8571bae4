#!/usr/bin/env bash
# Tests the kernel module in a guest: builds it, boots the distribution's kernel with it, and
# runs kernel/test/run.sh there, which reads pages.sh, contracts.sh, huge.sh, groups.sh, srm.sh and unload.sh beside it; then
# another guest with two memory nodes, and kernel/test/nodes.sh in that.
# PIEBALD_GUEST_KERNEL names another kernel (scripts/guest.sh): a version, or a series such as 7.3.
#
#   kernel/test.sh [--turns] [--split] [RUNS [OPTION...]]
#                                        RUNS: how often, one after the other (1); OPTIONs of
#                                        `scripts/guest.sh boot`, such as --cpus 8
#
# With --split the first guest's parts run in guests of their own, two of which run at a time, which is for kernels that take
# hours for all of it.
#
# The first guest has four processors that run in parallel, the second two; with --turns, and where no QEMU can do that
# (scripts/guest.sh emulator), two each that take turns.
# Fails if a check fails, if the kernel complains about anything on its console, and if the
# distribution serves no kernel that the module knows.
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../scripts/setup.sh
. "$root/scripts/setup.sh"
settle_target_dir "$root"
# shellcheck source=processors.sh
. "$root/kernel/processors.sh"
turns=() split=
while :; do
    case ${1:-} in
        --turns) turns=(--turns) ;;
        --split) split=1 ;;
        *) break ;;
    esac
    shift
done
runs=${1:-1}
[[ $runs =~ ^[1-9][0-9]{0,3}$ ]] || { warn "test: \"$runs\" runs; allowed: 1 to 9999"; exit 2; }
[ $# = 0 ] || shift

install_packages build-essential e2fsprogs || exit 1
"$root/scripts/guest.sh" fetch
settle_processors "$root" ${turns[@]+"${turns[@]}"}
module=$("$root/kernel/build.sh")
work=$CARGO_TARGET_DIR/kernel/test
mkdir -p "$work"
# A module for which one function of the kernel has another argument than it has.
sed 's/^\(migrate_pages\t.*\), \(int\|enum migrate_reason\), /\1, long int, /' "$root/kernel/known.tsv" >"$work/known.tsv"
if cmp -s "$work/known.tsv" "$root/kernel/known.tsv"; then warn "test: kernel/known.tsv has no migrate_pages to alter"; exit 1; fi
other=$(PIEBALD_KNOWN=$work/known.tsv "$root/kernel/build.sh")
cp "$other" "$work/other.ko"
# One for which the first function of a hook has a signature without code, as in some kernels.
sed 's/^\(filemap_alloc_folio_noprof\t\)1\t/\1-\t/' "$root/kernel/known.tsv" >"$work/known.tsv"
below=$(PIEBALD_KNOWN=$work/known.tsv "$root/kernel/build.sh")
cp "$below" "$work/below.ko"
# And one that does not see one function, as if the compiler had put it into its callers.
unseen=$(PIEBALD_KNOWN=$root/kernel/known.tsv KCFLAGS=-DPB_UNSEEN=PB_HOOK_MPOL "$root/kernel/build.sh")
cp "$unseen" "$work/unseen.ko"
cc -O2 -Wall -Wextra -Werror -static -pthread -o "$work/frames" "$root/kernel/test/frames.c"
for program in sequences held nodes huge; do
    cc -O2 -Wall -Wextra -Werror -static -o "$work/$program" "$root/kernel/test/$program.c"
done
printf 'root:x:0:0::/:/bin/sh\nnobody:x:65534:65534::/:/bin/sh\n' >"$work/passwd"
"$root/scripts/guest.sh" pack "$work/initrd" --run "$root/kernel/test/run.sh" --module virtio_blk --module configfs \
    --file "$module:/piebald.ko" --file "$work/other.ko:/other.ko" --file "$work/unseen.ko:/unseen.ko" \
    --file "$work/below.ko:/below.ko" \
    --file "$work/frames:/bin/frames" --file "$work/passwd:/etc/passwd" \
    --file "$work/sequences:/bin/sequences" --file "$work/held:/bin/held" --file "$work/huge:/bin/huge" \
    --file "$root/kernel/test/common.sh:/common.sh" --file "$root/kernel/test/srm.sh:/srm.sh" --file "$root/kernel/test/groups.sh:/groups.sh" \
    --file "$root/kernel/test/contracts.sh:/contracts.sh" --file "$root/kernel/test/huge.sh:/huge.sh" \
    --file "$root/kernel/test/pages.sh:/pages.sh" --file "$root/kernel/test/unload.sh:/unload.sh"
"$root/scripts/guest.sh" pack "$work/initrd-nodes" --run "$root/kernel/test/nodes.sh" --module virtio_blk --module configfs \
    --file "$module:/piebald.ko" --file "$root/kernel/test/common.sh:/common.sh" \
    --file "$work/frames:/bin/frames" --file "$work/held:/bin/held" --file "$work/nodes:/bin/nodes"
make_disk() { # NAME
    rm -f "$work/$1"
    truncate -s 400M "$work/$1"
    PATH=$PATH:/usr/sbin:/sbin mke2fs -q -F -t ext4 "$work/$1"
}

one_node() { # PARTS OPTION...
    local parts=$1 name=${1//,/-}
    shift
    make_disk "disk-$name"
    rm -f "$work/swap-$name"
    truncate -s 256M "$work/swap-$name"
    PATH=$PATH:/usr/sbin:/sbin mkswap -q "$work/swap-$name"
    "$root/scripts/guest.sh" boot "$work/initrd" --disk "$work/disk-$name" --disk "$work/swap-$name" --append "piebald_parts=$parts" \
        --memory 512M --timeout 1500 --cpus "$cpus" ${processors[@]+"${processors[@]}"} "$@"
}

two_nodes() { # OPTION...
    make_disk disk-nodes
    # Whatever the options say, a processor for each node.
    "$root/scripts/guest.sh" boot "$work/initrd-nodes" --disk "$work/disk-nodes" --memory 512M --nodes 2 --timeout 900 \
        ${processors[@]+"${processors[@]}"} "$@" --cpus 2
}

ALL=pages,contracts,huge,groups,srm

# Two guests at a time; all run, and what each said comes at the end.
in_parts() { # OPTION...
    local status=0 parts
    one_node pages,contracts,huge "$@" >"$work/first.log" 2>&1 &
    local first=$!
    for parts in groups srm; do one_node $parts "$@" >"$work/$parts.log" 2>&1 || status=1; done
    two_nodes "$@" >"$work/nodes.log" 2>&1 || status=1
    wait "$first" || status=1
    cat "$work/first.log" "$work/groups.log" "$work/srm.log" "$work/nodes.log"
    return "$status"
}

# A shell's jobs in the background do not hear an interrupt, and the next part would begin.
stop() {
    trap - INT TERM
    local job
    for job in $(jobs -p); do
        pkill -TERM -P "$job" || true
        kill "$job" 2>/dev/null || true
    done
    exit 130
}
trap stop INT TERM

for run in $(seq "$runs"); do
    say "run $run of $runs"
    if [ -n "$split" ]; then
        in_parts "$@"
    elif [ ${#processors[@]} = 0 ]; then
        # Each keeps one processor busy.
        two_nodes "$@" >"$work/nodes.log" 2>&1 &
        second=$! status=0
        one_node $ALL "$@" || status=$?
        wait "$second" || status=$?
        cat "$work/nodes.log"
        [ "$status" = 0 ] || exit "$status"
    else
        one_node $ALL "$@"
        two_nodes "$@"
    fi
done
