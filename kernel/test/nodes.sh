#!/bin/sh
# The module on a machine with two memory nodes and a processor on each, inside a guest; kernel/test.sh
# starts it. Every check prints a line that begins with "ok" or "FAILED".

P=/proc/piebald
mkfifo /tmp/gate
C=/sys/kernel/config/piebald
checks=0 failed=0
# shellcheck source-path=SCRIPTDIR source=common.sh
. /common.sh

mkdir /disk /cgroup
mount -t ext4 /dev/vda /disk || exit 1
mount -t configfs configfs /sys/kernel/config || exit 1
mount -t cgroup2 cgroup /cgroup || exit 1
echo "+memory +cpuset" >/cgroup/cgroup.subtree_control
echo 0 >/proc/sys/kernel/numa_balancing
echo never >/sys/kernel/mm/transparent_hugepage/enabled
frames storm 500 0 >/dev/null
frames hog 300 0 >/dev/null
for node in 0 1; do nodes local 16 ffff $node >/dev/null; done
many_groups
before=$(free_frames)
# MiB of a node, and of a color there by name: some of it is the kernel's.
each=$(awk '/MemTotal:/ { print int($4 / 1024) }' /sys/devices/system/node/node1/meminfo)
share=$((each / 16))

# Fills node 0 with a file and has a process run there; how much of the file went is `lost`, in MiB.
files_of() { awk '/FilePages:/ { print int($4 / 1024) }' "/sys/devices/system/node/node$1/meminfo"; }
goes_elsewhere() {
    truncate -s $((each * 3 / 4))M /disk/hole
    taskset -c 0 cat /disk/hole >/dev/null
    full=$(files_of 0)
    [ "$full" -gt $((each / 2)) ] && nodes local $((each * 3 / 8)) ffff any
    result=$?
    lost=$((full - $(files_of 0)))
    rm /disk/hole
    forget_cache
    return $result
}
check "without the module memory is local" nodes local 16 ffff 1
check "and has other colors" sh -c "! nodes local 4 000c 1"
check "who runs on a full node gets memory of the other" goes_elsewhere
theirs=$lost
check "loads" insmod /piebald.ko "map=12;13;14;15" on=1
refuse "no SRM-buffer with two nodes" "2 memory nodes; allowed: 1" write srm 1

# --- where pages lie ---------------------------------------------------------------

every_policy() { # WHO COLORS COMMAND...
    who=$1 mask=$2
    shift 2
    for node in 0 1; do
        for kind in local bind prefer many area shared file tmpfs private; do
            check "$who: $kind, node $node" "$@" nodes $kind 8 "$mask" $node
        done
    done
    for kind in interleave weighted; do
        check "$who: $kind" "$@" nodes $kind 8 "$mask" both
    done
}
every_policy "colors 2-3" 000c with "2-3 hard"
set_up holder 0-7 hard
every_policy "others" ff00 env
take_down holder
mkdir /cgroup/second
set_up second 4-5 hard
echo 1 >/cgroup/second/cpuset.mems
check "a cpuset of the second node" inside second nodes far 8 0030 1
check "which holds against a policy" nodes enter 8 0030 1
take_down second

# --- memory that is short ---------------------------------------------------------------

# A node that is full of files is left alone while the other has free memory, as by the kernel alone.
set_up holder 3
check "and with colors" goes_elsewhere
check "files are lost as without: $theirs and $lost MiB" test "$lost" -le $((theirs + 8))
take_down holder

# --- colors that are used up ----------------------------------------------------------

set_up small 3 hard
check "a node whose color is used up is helped by the other" inside small nodes local $((share * 4 / 3)) 0008 any
check "without a kill" grep -qx 'oom_kill 0' /cgroup/small/memory.events
check "who is bound to a node is killed there" sh -c "! sh -c '
    echo \$\$ >/cgroup/small/cgroup.procs; exec nodes bind $((share * 4 / 3)) 0008 0'"
check "by its own group's killer" grep -qx 'oom_kill 1' /cgroup/small/memory.events
check "more than both have ends too" sh -c "! sh -c '
    echo \$\$ >/cgroup/small/cgroup.procs; exec nodes local $((share * 8 / 3)) 0008 any'"
check "in the same way" grep -qx 'oom_kill 2' /cgroup/small/memory.events
# What is preferred is no limit.
for kind in many prefer; do
    check "$kind: one node is not enough" inside small nodes $kind $((share * 4 / 3)) 0008 any
done
# With the file's own pages twice that.
check "private: one node is not enough" inside small nodes private $((share * 3 / 4)) 0008 any
# Half of it would be on each node, but one has little left.
rm -f /tmp/stayed
inside small nodes stay $((share * 2 / 3)) 0008 1 </tmp/gate >/tmp/stayed 2>&1 &
exec 4>/tmp/gate
for _ in $(seq 600); do grep -q touched /tmp/stayed && break; sleep 0.1; done
for kind in interleave weighted; do
    check "$kind: one node has little left" inside small nodes $kind $((share * 9 / 10)) 0008 any
done
check "a page that has to stay holds up no other" nodes mixed $((share / 2)) 0008 1
exec 4>&-
wait $!
check "nobody was killed for that" grep -qx 'oom_kill 2' /cgroup/small/memory.events
take_down small
set_up small 3
check "a hint does not fall back while the other node has frames" inside small nodes local $((share * 4 / 3)) 0008 any
check "as its events say" grep -qx 'fallback_spent 0' $C/small/events
check "a hint that is bound falls back" inside small nodes bind $((share * 4 / 3)) ffff 0
check "and stays on its node" grep -q 'fallback_spent [1-9]' $C/small/events
take_down small
check "the books are right" grep -qx ok $P/check

# --- pages that move -------------------------------------------------------------------

for node in 0 1; do
    for kind in move remap migrate; do
        check "colors 2-3: $kind to node $node" with "2-3 hard" nodes $kind 8 000c $node
    done
done
# What fails while the module keeps it, nobody gets.
set_up small 3 hard
# The kernel says something of each on its console.
level=$(cut -f 1 /proc/sys/kernel/printk)
echo 1 >/proc/sys/kernel/printk
if [ -e /sys/devices/system/memory/hard_offline_page ]; then
    check "some fail" inside small frames fail $((share / 2)) 0
    failing=1
else
    echo "skipped: some fail while the module keeps them: this kernel has no hard_offline_page"
    failing=0
fi
echo "$level" >/proc/sys/kernel/printk
check "others do not get them" frames plain $((share * 12)) fff7
check "nor those whose colors they have" inside small frames anon $((share / 2)) 0008
[ $failing = 0 ] || check "as some were" test "$(count failed_frames)" -gt 0
take_down small
set_up holder 0-7 hard
check "others: moved, not into owned colors" nodes move 8 ff00 1
take_down holder
moved=$(count moves_colored)
check "colors 2-3: frames fail" with "2-3 hard" nodes failing 4 000c 1
check "their pages moved in colors" test "$(count moves_colored)" -gt "$moved"
check "moves are counted" test "$(count moves_colored)" -ge 2000
echo 1 >/proc/sys/kernel/numa_balancing
check "automatic balancing keeps colors" with "2-3 hard" nodes balance 8 000c 1
echo 0 >/proc/sys/kernel/numa_balancing
# Who stays out of owned colours leaves them on the node where it is.
for node in 0 1; do
    mkdir -p /cgroup/other
    rm -f /tmp/stayed
    inside other nodes stay 32 fff0 $node </tmp/gate >/tmp/stayed 2>&1 &
    exec 4>/tmp/gate
    for _ in $(seq 600); do grep -q touched /tmp/stayed && break; sleep 0.1; done
    check "node $node: colors are assigned" set_up owner 0-3 hard
    check "which nobody else has then" held none 000f /cgroup/owner
    check "the counts are those of the kernel's files" held compare 000f /cgroup/owner $C/owner/frames
    exec 4>&-
    wait $!
    result=$?
    cat /tmp/stayed
    check "others left them, and stayed on their node" test "$result" = 0
    take_down owner
done
rmdir /cgroup/other

# --- all of the memory -------------------------------------------------------------------

set_up holder 1
total=$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)
left=64
! debugging || left=96
check "most of the memory can be used" frames hog $((total - left)) 0
if by_itself; then
    echo "skipped: the pools were asked for frames: the kernel has them by color itself"
else
    check "the pools were asked for frames" test "$(count reclaimed)" -gt 0
fi
check "1000 children" frames storm 1000 0
take_down holder
check "the books are right" grep -qx ok $P/check
check "switches off" write on 0
check "off: the pools are empty" sh -c "test \$(awk '{ n += \$2 } END { print n }' $P/free) = 0"
check "every frame is accounted for" test $(($(count refill_frames) + $(count hand_returned))) = \
    $(($(count given_back) + $(count reclaimed) + $(count core_grants) + $(count recycled)))
check "unloads" rmmod piebald
after=$(free_frames)
# But those that have failed.
check "no frame is missing: $before free before, $after after" test "$after" -ge $((before - 256 - 64 - 16))
echo "checks: $checks, failed: $failed"
[ "$failed" = 0 ]
