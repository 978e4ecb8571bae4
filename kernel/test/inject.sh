#!/bin/sh
# The module with allocations that fail, inside a guest with a debugging kernel; kernel/debug.sh
# starts it. Every check prints a line that begins with "ok" or "FAILED".

P=/proc/piebald
C=/sys/kernel/config/piebald
F=/sys/kernel/debug
checks=0 failed=0 tells=1

# shellcheck source-path=SCRIPTDIR source=common.sh
. /common.sh

as() { # "COLORS [MODE]" COMMAND...: in the group with these colours
    # shellcheck disable=SC2086  # a word for the mode or none
    set -- $1 -- "$@"
    echo "$1" >$C/own/colors
    case $2 in --) echo hint >$C/own/mode ;; *) echo "$2" >$C/own/mode; shift ;; esac
    shift 3
    sh -c "echo \$\$ >/cgroup/own/cgroup.procs && exec \"\$@\"" sh "$@"
}

mkdir /disk
mount -t ext4 /dev/vda /disk || exit 1
dd if=/dev/zero of=/disk/file bs=64k count=16 2>/dev/null
sync
for each in failslab fail_page_alloc; do
    echo N >$F/$each/ignore-gfp-wait
    echo 0 >$F/$each/verbose
done
echo N >$F/fail_page_alloc/ignore-gfp-highmem
echo 0 >$F/fail_page_alloc/min-order

# Groups come first: the kernel takes 4 MiB for the counters of more than a few, and keeps them.
mount -t configfs configfs /sys/kernel/config
mkdir /cgroup
mount -t cgroup2 cgroup /cgroup
echo +memory >/cgroup/cgroup.subtree_control
mkdir /cgroup/set /cgroup/own

map='map=12;13;14;15'
check "loads, with nothing" inject load /piebald.ko ""
before=$(free_frames)
check "loads, with all" inject load /piebald.ko "$map on=1 srm=1"

insmod /piebald.ko "$map" || exit 1
check "a map" inject write $P/map "$(printf '12\n13\n14\n15\n')"
check "on, without users" inject write $P/on 1 0
echo 1 >$P/on
mkdir $C/set $C/own
echo /own >$C/own/attach
check "a group of a set" inject write $C/set/attach /set
check "colors of a set" inject write $C/set/colors 4-5 none
echo 4-5 >$C/set/colors
check "colors that change" inject write $C/set/colors 6-7
check "who holds them" sh -c "cat $C/set/frames >/dev/null"
sleep 10000 &
sleeper=$!
echo $sleeper >/cgroup/set/cgroup.procs
check "pages that move" inject write $P/recolor $sleeper
for colors in "0-3" "0-3 hard"; do
    check "fork with $colors" as "$colors" inject fork
    check "memory with $colors" as "$colors" inject touch
    check "a file with $colors" as "$colors" inject read /disk/file
done
check "fork without colors" inject fork
check "memory without colors" inject touch
check "a file without colors" inject read /disk/file
check "SRM-buffer" inject write $P/srm 1 0
echo 1 >$P/srm
check "a threshold" inject write $P/threshold 20 32
for colors in "0-3" "0-3 hard"; do
    check "SRM-buffer: fork with $colors" as "$colors" inject fork
    check "SRM-buffer: memory with $colors" as "$colors" inject touch
    check "SRM-buffer: a file with $colors" as "$colors" inject read /disk/file
done
check "SRM-buffer: memory without colors" inject touch
check "SRM-buffer: a file without colors" inject read /disk/file
check "the books are right" grep -qx ok $P/check
cat $P/counters >/tmp/counters
kill $sleeper
check "on, with users" sh -c "echo 0 >$P/on && inject write $P/on 1 0"
rmdir $C/set $C/own
check "unloads" rmmod piebald
after=$(free_frames)
check "no frame is missing: $before free before, $after after" test "$after" -ge $((before - 256))

echo "--- counters"
cat /tmp/counters
echo "checks: $checks, failed: $failed"
[ "$failed" = 0 ]
