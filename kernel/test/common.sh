# shellcheck shell=sh
# What the tests inside a guest have in common: run.sh and nodes.sh read it. They set P and C (the module's
# files), checks and failed, and where a check is to print the last line of what it was told, tells.
# shellcheck disable=SC2086,SC2154

check() { # NAME COMMAND...: the command must succeed
    name=$1
    shift
    checks=$((checks + 1))
    if "$@" >/tmp/output 2>&1; then
        echo "ok $name${tells:+: $(tail -n 1 /tmp/output)}"
    else
        failed=$((failed + 1))
        echo "FAILED $name: $*"
        sed 's/^/    /' /tmp/output
    fi
}

refuse() { # NAME WORD COMMAND...: the command must fail and $P/error then say WORD
    name=$1 word=$2
    shift 2
    checks=$((checks + 1))
    if "$@" >/tmp/output 2>&1; then
        failed=$((failed + 1))
        echo "FAILED $name: $* succeeded"
    elif ! grep -q "$word" $P/error; then
        failed=$((failed + 1))
        echo "FAILED $name: no \"$word\" in: $(cat $P/error)"
    else
        echo "ok $name ($(cat $P/error))"
    fi
}

write() { echo "$2" >"$P/$1"; }
count() { sed -n "s/^$1 //p" $P/counters; }
# Has the kernel its free pages by colour itself (kernel/patch)?
by_itself() { dmesg | grep -q 'piebald: this kernel has its free pages by color itself'; }
set_up() { # NAME COLORS [MODE]: a group with a set
    mkdir -p "/cgroup/$1" "$C/$1" || return 1
    echo "${3:-hint}" >"$C/$1/mode" && echo "$2" >"$C/$1/colors" && echo "/$1" >"$C/$1/attach"
}
take_down() { # NAME: the set, and the group when it is empty
    rmdir "$C/$1"
    for _ in $(seq 600); do
        rmdir "/cgroup/$1" 2>/dev/null && return
        sleep 0.1
    done
    echo "group $1 stays"
    return 1
}
inside() { # NAME COMMAND...: in a group
    group=$1
    shift
    sh -c "echo \$\$ >/cgroup/$group/cgroup.procs && exec \"\$@\"" sh "$@"
}
# GROUP: its frames, of the kernel's own files; memory.stat lags behind, by some 128 pages for each processor
charged_to() {
    # A page that moves while they are counted may count twice, or not at all.
    counted=
    for _ in $(seq 10); do
        before_that=$counted
        counted=$(held ffff "/cgroup/$1" | sed -n 's/^charged //p')
        [ "$counted" != "$before_that" ] || break
    done
    echo "$counted"
}
# A process that needs memory has the kernel take some from groups by what their guarantees were when the kernel's own
# thread ran last, 64 pages or more at a time (shrink_one): without the module too. How many pages were taken so, in all,
# since watch_takers.
takers=/sys/kernel/debug/tracing/events/vmscan/mm_vmscan_direct_reclaim_end/enable
watch_takers() { echo >/sys/kernel/debug/tracing/trace && echo 1 >$takers; }
takers_took() {
    echo 0 >$takers
    sed -n 's/.*mm_vmscan_direct_reclaim_end: nr_reclaimed=//p' /sys/kernel/debug/tracing/trace |
        awk '{ n += $1 } END { print n + 0 }'
    echo >/sys/kernel/debug/tracing/trace
}
groups=0
with() { # "COLORS [MODE]" COMMAND...: in a group of its own with these colours
    groups=$((groups + 1))
    own=g$$-$groups colors=$1
    shift
    # shellcheck disable=SC2086  # a word for the mode or none
    set_up $own $colors || return 99
    inside $own "$@"
    result=$?
    take_down $own || return 98
    return $result
}
# For the counters of many groups the kernel takes a mebibyte or more, which it keeps.
many_groups() {
    for group in $(seq 200); do mkdir "/cgroup/warm$group"; done
    rmdir /cgroup/warm*
}
# Is it a kernel that looks for faults (debug.config)?
debugging() { [ -d /sys/kernel/debug/failslab ]; }
# Frames that nobody has: on the kernel's lists, and on those of its processors. Those of the
# kernel's slabs, page tables and stacks count as well, since it keeps more of them after a
# busy time, and of files in memory and of processes; what is missing from the sum, nobody knows of.
free_frames() {
    swapoff /dev/vdb 2>/dev/null
    sync
    for _ in 1 2; do
        echo 3 >/proc/sys/vm/drop_caches
        sleep 2
        cat /proc/sys/vm/stat_refresh
    done
    awk '
        FILENAME == "/proc/zoneinfo" {
            if ($1 == "nr_free_pages" || $1 == "count:") n += $2
            next
        }
        $1 ~ /^nr_(slab_reclaimable|slab_unreclaimable|page_table_pages|shmem|anon_pages)$/ { n += $2 }
        $1 == "nr_kernel_stack" { n += $2 / 4 }
        END { printf "%d\n", n }' /proc/zoneinfo /proc/vmstat
}
forget_cache() { echo 3 >/proc/sys/vm/drop_caches; }
