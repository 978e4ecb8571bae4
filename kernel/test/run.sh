#!/bin/sh
# The module's test, inside the guest; kernel/test.sh starts it.
#
# Every check prints a line that begins with "ok" or "FAILED"; the status is 0 only if all are ok
# and as many ran as the last line says.
# The map of colours is address bits 12-15: sixteen colours, the low bits of the frame number.

P=/proc/piebald
T=/sys/kernel/debug/tracing
checks=0 failed=0

check() { # NAME COMMAND...: the command must succeed
    name=$1
    shift
    checks=$((checks + 1))
    if "$@" >/tmp/output 2>&1; then
        echo "ok $name"
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
with() { # COLORS COMMAND...: as a process with these colours
    colors=$1
    shift
    sh -c "echo \"\$\$ $colors\" >$P/tasks && exec \"\$@\"" sh "$@"
}
# Frames that nobody has: on the kernel's lists, and on those of its processors. Those of the
# kernel's slabs, page tables and stacks count as well, since it keeps more of them after a
# busy time; what is missing from the sum, nobody knows of.
free_frames() {
    swapoff /dev/vdb 2>/dev/null
    sync
    for i in 1 2; do
        echo 3 >/proc/sys/vm/drop_caches
        sleep 1
        cat /proc/sys/vm/stat_refresh
    done
    awk '
        FILENAME == "/proc/zoneinfo" {
            if ($1 == "nr_free_pages" || $1 == "count:") n += $2
            next
        }
        $1 ~ /^nr_(slab_reclaimable|slab_unreclaimable|page_table_pages)$/ { n += $2 }
        $1 == "nr_kernel_stack" { n += $2 / 4 }
        END { printf "%d\n", n }' /proc/zoneinfo /proc/vmstat
}
others_are() { grep -qx "others $1 hint" $P/tasks; }
forget_cache() { echo 3 >/proc/sys/vm/drop_caches; }

# --- loading, and the files -------------------------------------------------

mkdir /disk /cgroup
mount -t ext4 /dev/vda /disk || exit 1
swapon /dev/vdb || exit 1
total=$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)
dd if=/dev/zero of=/disk/file bs=64k count=128 2>/dev/null
# The kernel keeps some memory of what it did for the first time (slabs, lists of processors).
warm_up() {
    frames storm 3000 0
    frames hog $((total * 3 / 4)) 0
    frames read /disk/file ffff
    frames swapped 16 ffff
    echo 1 >/proc/sys/vm/compact_memory
    echo 1 >$T/events/sched/sched_process_exit/enable
    echo 0 >$T/events/sched/sched_process_exit/enable
} >/dev/null
warm_up
before=$(free_frames)
swapon /dev/vdb
check "without the module pages have other colors: anonymous" sh -c "! frames anon 4 000c"
check "without the module pages have other colors: file" sh -c "! frames read /disk/file 0030"
echo 1 >/sys/kernel/mm/ksm/run
echo 10000 >/sys/kernel/mm/ksm/pages_to_scan
check "without the module equal pages are merged" sh -c "! frames merged 4 ffff"
check "a kernel with another function than is known is refused" sh -c "! insmod /other.ko"
check "which is named, with what was found and what is allowed" sh -c "
    dmesg | grep 'piebald: function migrate_pages of this kernel is .* enum migrate_mode, int, .*; allowed: .* enum migrate_mode, long int, '"
cat /tmp/output
check "and nothing of it stays" sh -c "test ! -e $P && ! grep -q '^piebald ' /proc/modules"
check "a kernel that goes another way to a frame is found" sh -c "! insmod /unseen.ko map='12;13;14;15' on=1"
check "loads nevertheless" insmod /unseen.ko "map=12;13;14;15"
refuse "but does not switch on, and says which way" "shared memory does not call folio_alloc_mpol_noprof" write on 1
check "it is off" grep -qx 0 $P/on
check "and all is as without the module" sh -c "! frames anon 4 000c"
rmmod piebald
check "loads" insmod /piebald.ko
check "off at first" grep -qx 0 $P/on
refuse "no switching on without a map" "no map" write on 1
refuse "no SRM-buffer without a map" "no map" write srm 1
refuse "a bad map is refused" "line 1" write map 7
check "a map is set" write map "$(printf '12\n13\n14\n15\n')"
check "16 colors" grep -qx 16 $P/colors
check "the map reads as written" sh -c "printf '12\n13\n14\n15\n' | cmp - $P/map"
check "root alone may look" sh -c "test \"\$(stat -c %a $P)\" = 500 && test \"\$(stat -c %a $P/tasks)\" = 600"
check "others may not" sh -c "! su nobody -s /bin/sh -c 'cat $P/tasks'"
check "off: pages have other colors still" sh -c "! frames anon 4 000c"
check "switches on" write on 1
refuse "no new map while on" "while" write map 12
refuse "no such process" "no process" write tasks "4000000 0"
refuse "kernel threads have no colors" "kernel's own" write tasks "2 0"
refuse "no such color" "15" write tasks "$$ 16"
refuse "no such mode" "allowed: hard, hint" write tasks "$$ 3 soft"
refuse "the first process is not killed" "allowed for it" write tasks "1 0 hard"
refuse "one color stays for the others" "can be reserved" write tasks "$$ 0-15"
refuse "a word is no process" "PID COLORS" write tasks "me 3"
refuse "a pool has a size" "1024" write pool_max 3
check "no one has colors yet" others_are 0-15
# Where there is more memory than half a gigabyte, huge pages are what the kernel does.
huge=/sys/kernel/mm/transparent_hugepage/enabled
huge_at_first=$(sed 's/.*\[\(.*\)\].*/\1/' $huge)
echo never >$huge
# After colours that were refused, too, it takes two seconds until all is as before, and more on a busy host.
settled() {
    for _ in $(seq 120); do
        given=$(count anon_pages)
        frames anon 16 ffff >/dev/null || return 1
        [ "$(count anon_pages)" != "$given" ] || return 0
        sleep 1
    done
    return 1
}
check "without colors the kernel soon does it all" settled
given=$(count anon_pages)
check "it does it all" frames anon 16 ffff
check "and the pool has nothing to do" test "$(count anon_pages)" = "$given"

# --- frames -------------------------------------------------------------------

check "uncolored: all colors, anonymous" with "5" sh -c "
    sh -c 'echo \"\$\$ none\" >$P/tasks && exec frames anon 16 ffff'"
echo "$huge_at_first" >$huge
for kind in anon huge shared thread fork cow swapped; do
    check "colors 2-3: $kind" with "2-3 hard" frames $kind 4 000c
done
check "colors 0,5,9: anon" with "0,5,9" frames anon 8 0221
check "a quarter is four colors" with "25%" frames anon 4 000f
check "the colors are free again after the exit" others_are 0-15
forget_cache
check "colors 4-5: file, read" with "4-5 hard" frames read /disk/file 0030
forget_cache
check "colors 8-11: file, mapped" with "8-11 hard" frames mapped /disk/file 0f00
check "colors 6-7: file, written to disk" with "6-7 hard" frames written /disk/new 00c0
check "colors 6-7: file, written to tmpfs" with "6-7 hard" frames written /tmp/new 00c0
rm -f /tmp/new /disk/new

# Huge pages of the time before stay where they are.
echo never >$huge
check "memory moves to the colors of its process" frames moved 8 000c
echo "$huge_at_first" >$huge
check "and the moves are counted" test "$(count recolored)" -ge 1500
shared=$(count recolor_shared)
check "memory that a child has too moves when the child is gone" frames parted 8 000c
check "and what was left is counted" test "$(count recolor_shared)" -ge $((shared + 1500))
refuse "who has no colors has none to move to" "no colors" write recolor $$
refuse "a word is not moved" "no process" write recolor me

echo 1 >$T/events/piebald/enable
with "5" frames anon 8 0020 >/dev/null
echo 0 >$T/events/piebald/enable
cp $T/trace /tmp/trace
echo >$T/trace
check "frames can be traced" grep -q 'piebald_frame: .* color=5 fallback=0' /tmp/trace

# Someone holds colours 0-7: others must stay out, but for huge pages.
echo never >$huge
sleep 1000 &
holder=$!
check "a process reserves 0-7" write tasks "$holder 0-7 hard"
check "its colors are listed" grep -qx "$holder 0-7 hard" $P/tasks
check "others have the rest" others_are 8-15
check "others stay out: anon" frames anon 16 ff00
check "others stay out: fork" frames fork 4 ff00
forget_cache
check "others stay out: file" frames read /disk/file ff00
refuse "reserved colors are taken" "belongs to" write tasks "$$ 7-8"
check "the set can change" write tasks "$holder 0-3 hard"
check "others get what was given back" others_are 4-15
check "and use it" frames anon 16 fff0
kill $holder
wait $holder 2>/dev/null
check "a killed process's colors are free" others_are 0-15
echo "$huge_at_first" >$huge

check "colors 2-3: pages that are equal" with "2-3 hard" frames merged 4 000c
check "are not merged" test "$(count merging_refused)" -gt 0
echo 2 >/sys/kernel/mm/ksm/run
check "the books are right" grep -qx ok $P/check

# --- limits -------------------------------------------------------------------

check "hint: more than the color has, falls back" with "3 hint" frames hog $((total / 8)) 0
check "fallbacks are counted" test "$(count core_fallbacks)" -gt 0
swapoff /dev/vdb
kills=$(count hard_kills)
check "hard: more than the color has, is killed" sh -c "! sh -c 'echo \"\$\$ 3 hard\" >$P/tasks; exec frames hog $((total / 8)) 0'"
check "the kill is counted" test "$(count hard_kills)" -gt "$kills"
# Without the frames of a used-up color the kernel has but small blocks, and their colors lie one
# behind the other: who searches a little finds always the same ones.
for color in 0 4 8 10 15; do
    used=$(((color + 8) % 16))
    check "after a used-up color, hard: half of color $color" sh -c "
        ! sh -c 'echo \"\$\$ $used hard\" >$P/tasks; exec frames hog $((total / 8)) 0' &&
        sh -c 'echo \"\$\$ $color hard\" >$P/tasks; exec frames anon $((total / 32)) $(printf %x $((1 << color)))'"
done
check "the pool keeps its limit" sh -c "test \$(awk '{ n += \$2 } END { print n }' $P/free) -le \$(cat $P/pool_max)"
check "most of the memory can be used" frames hog $((total * 3 / 4)) 0
check "the kernel got frames back under pressure" test "$(count reclaimed)" -gt 0
mount -t cgroup2 cgroup /cgroup
echo +memory >/cgroup/cgroup.subtree_control
mkdir /cgroup/small
echo $((16 << 20)) >/cgroup/small/memory.max
check "a group's limit holds" sh -c "
    ! sh -c 'echo \$\$ >/cgroup/small/cgroup.procs; exec frames hog 64 0' &&
    grep -qx 'oom_kill 1' /cgroup/small/memory.events"
check "in a group: colors 2-3" sh -c "
    echo \$\$ >/cgroup/small/cgroup.procs
    echo \"\$\$ 2-3 hard\" >$P/tasks
    exec frames anon 8 000c"
rmdir /cgroup/small
# shellcheck source-path=SCRIPTDIR source=contracts.sh
. /contracts.sh
check "the books are right" grep -qx ok $P/check

# --- storms -------------------------------------------------------------------

joined=$(count processes_joined)
check "10,000 children of a process with colors" with "1-2" frames storm 10000 0
check "each inherited" test "$(count processes_joined)" -ge $((joined + 10000))
check "all have left" others_are 0-15
check "nobody is listed" sh -c "test \$(wc -l <$P/tasks) = 1"
check "on and off under load" sh -c "
    frames storm 3000 0 &
    frames hog 64 0 &
    for i in 1 2 3 4 5; do echo 0 >$P/on; echo 1 >$P/on; done
    wait"
check "the books are right" grep -qx ok $P/check

# --- SRM-buffer -----------------------------------------------------------------

# shellcheck source-path=SCRIPTDIR source=srm.sh
. /srm.sh

# --- the end ------------------------------------------------------------------

check "switches off" write on 0
check "off: the pool is empty" sh -c "test \$(awk '{ n += \$2 } END { print n }' $P/free) = 0"
check "every frame is accounted for" test $(($(count refill_frames) + $(count hand_returned))) = \
    $(($(count given_back) + $(count reclaimed) + $(count core_grants) + $(count recycled)))
cp $P/counters /tmp/counters
check "switches on again" write on 1
check "and SRM-buffer" write srm 1
frames storm 3000 0 &
with "1-2" frames storm 3000 0 &
forget_cache
with "4-5" frames read /disk/file ffff >/dev/null &
sleep 1
check "unloads under load" rmmod piebald
wait
check "the tree is gone" test ! -e $P
check "memory works as before" frames hog 64 0
check "and has any color" sh -c "! frames anon 4 000c"
echo madvise >$huge
check "unloaded: huge pages" frames large 16 0
echo "$huge_at_first" >$huge
for i in 1 2 3 4 5; do
    check "loads and unloads, round $i" sh -c "
        insmod /piebald.ko map='12;13;14;15' on=1 srm=1 && frames anon 4 ffff && rmmod piebald"
done
check "a bad parameter is refused" sh -c "! insmod /piebald.ko map=5"
check "on without a map is refused" sh -c "! insmod /piebald.ko on=1"
check "srm without a map is refused" sh -c "! insmod /piebald.ko srm=1"
after=$(free_frames)
# The kernel's own lists and caches differ by that much from one time to the next.
check "no frame is missing: $before free before, $after after" test "$after" -ge $((before - 256))

echo "--- counters"
cat /tmp/counters
echo "checks: $checks, failed: $failed"
[ "$failed" = 0 ]
