#!/bin/sh
# The module's test, inside the guest; kernel/test.sh starts it.
#
# Every check prints a line that begins with "ok" or "FAILED"; the status is 0 only if all are ok
# and as many ran as the last line says.
# The map of colours is address bits 12-15: sixteen colours, the low bits of the frame number.
# A group's directory is /cgroup/NAME, its set's $C/NAME.

P=/proc/piebald
C=/sys/kernel/config/piebald
T=/sys/kernel/debug/tracing
checks=0 failed=0

# shellcheck source-path=SCRIPTDIR source=common.sh
. /common.sh
others_are() { grep -qx "$1" $P/others; }

# --- loading, and the files -------------------------------------------------

mkdir /disk /cgroup
mount -t ext4 /dev/vda /disk || exit 1
mount -t configfs configfs /sys/kernel/config || exit 1
mount -t cgroup2 cgroup /cgroup || exit 1
echo +memory >/cgroup/cgroup.subtree_control
swapon /dev/vdb || exit 1
total=$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)
dd if=/dev/zero of=/disk/file bs=64k count=128 2>/dev/null
# The kernel keeps some memory of what it did for the first time (slabs, lists of processors).
warm_up() {
    frames storm 500 0
    frames hog $((total * 3 / 4)) 0
    frames read /disk/file ffff
    frames swapped 16 ffff
    for i in 1 2 3; do mkdir /cgroup/warm; inside warm frames anon 4 ffff; rmdir /cgroup/warm; done
    many_groups
    echo 1 >/proc/sys/vm/compact_memory
    echo 1 >$T/events/sched/sched_process_exit/enable
    echo 0 >$T/events/sched/sched_process_exit/enable
} >/dev/null
warm_up
before=$(free_frames)
cp /proc/meminfo /tmp/meminfo
swapon /dev/vdb
check "without the module pages have other colors: anonymous" sh -c "! frames anon 4 000c"
check "without the module pages have other colors: file" sh -c "! frames read /disk/file 0030"
echo 1 >/sys/kernel/mm/ksm/run
echo 10000 >/sys/kernel/mm/ksm/pages_to_scan
check "without the module equal pages are merged" sh -c "frames merged 4 ffff; test \$? = 1"
check "a kernel with another function than is known is refused" sh -c "! insmod /other.ko"
check "which is named, with what was found and what is allowed" sh -c "
    dmesg | grep 'piebald: function migrate_pages of this kernel is .* enum migrate_mode, [^l].*; allowed: .* enum migrate_mode, long int, '"
cat /tmp/output
check "and nothing of it stays" sh -c "test ! -e $P && ! grep -q '^piebald ' /proc/modules"
check "a kernel that goes another way to a frame is found" sh -c "! insmod /unseen.ko map='12;13;14;15' on=1"
check "loads nevertheless" insmod /unseen.ko "map=12;13;14;15"
refuse "but does not switch on, and says which way" "shared memory does not call folio_alloc_mpol_noprof" write on 1
check "it is off" grep -qx 0 $P/on
check "and all is as without the module" sh -c "! frames anon 4 000c"
rmmod piebald
check "a function that is not known is replaced one below" insmod /below.ko "map=12;13;14;15" on=1
forget_cache
check "where files get their colors as well" with "4-5 hard" frames read /disk/file 0030
check "and count as files" test "$(count file_pages)" -ge 2048
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
refuse "tasks says the new way" "mkdir /sys/kernel/config/piebald" write tasks "$$ 3 hard"
check "and when it is read" grep -q "mkdir /sys/kernel/config/piebald" $P/tasks
refuse "no such process" "no process" write recolor 4000000
refuse "a pool has a size" "1024" write pool_max 3
check "no one has colors yet" others_are 0-15
# Single pages are looked at; where there is more memory than half a gigabyte, the kernel takes huge ones.
huge=/sys/kernel/mm/transparent_hugepage/enabled
echo never >$huge
# After colours that were refused, too, it takes two seconds until all is as before, and more on a busy host.
settled() {
    for _ in $(seq 120); do
        given=$(count anon_pages)
        frames plain 16 ffff >/dev/null || return 1
        [ "$(count anon_pages)" != "$given" ] || return 0
        sleep 1
    done
    return 1
}
check "without colors the kernel soon does it all" settled
given=$(count anon_pages)
check "it does it all" frames plain 16 ffff
check "and the pool has nothing to do" test "$(count anon_pages)" = "$given"

# --- frames -------------------------------------------------------------------

check "uncolored: all other colors, anonymous" with "5" sh -c "
    echo \$\$ >/cgroup/cgroup.procs && exec frames plain 16 ffdf"
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
set_up moved 2-3 hard
check "memory moves to the colors of its process" frames moved 8 000c
check "and the moves are counted" test "$(count recolored)" -ge 1500
shared=$(count recolor_shared)
check "memory that a child has too moves when the child is gone" frames parted 8 000c
check "and what was left is counted" test "$(count recolor_shared)" -ge $((shared + 1500))
take_down moved
refuse "who has no colors has none to move to" "no colors" write recolor $$
refuse "a word is not moved" "no process" write recolor me

echo 1 >$T/events/piebald/enable
with "5" frames anon 8 0020 >/dev/null
echo 0 >$T/events/piebald/enable
cp $T/trace /tmp/trace
echo >$T/trace
check "frames can be traced" grep -q 'piebald_frame: .* color=5 fallback=0' /tmp/trace

# Someone holds colours 0-7: others must stay out, but for huge pages and large blocks of files.
check "a set reserves 0-7" set_up holder 0-7 hard
check "others have the rest" others_are 8-15
check "others stay out: anon" frames plain 16 ff00
check "others stay out: fork" frames fork 4 ff00
# Blocks of several pages, which ext4 reads in some kernels, are left to others as huge pages are.
forget_cache
check "others stay out: file, page by page" frames single /disk/file ff00
check "the set can change" sh -c "echo 0-3 >$C/holder/colors"
check "others get what was given back" others_are 4-15
check "and use it" frames anon 16 fff0
check "a set ends with its directory" take_down holder
check "its colors are free" others_are 0-15

check "colors 2-3: pages that are equal" with "2-3 hard" frames merged 4 000c
check "are not merged" test "$(count merging_refused)" -gt 0
echo 2 >/sys/kernel/mm/ksm/run
check "the books are right" grep -qx ok $P/check

# --- limits -------------------------------------------------------------------

check "hint: more than the color has, is swapped" with "3 hint" frames hog $((total / 8)) 0
check "without a frame of another color" test "$(count core_fallbacks)" = 0
swapoff /dev/vdb
set_up small 3
check "hint, without swap: falls back" inside small frames hog $((total / 8)) 0
check "fallbacks are counted" grep -q 'fallback_spent [1-9]' $C/small/events
take_down small
set_up small 3 hard
check "hard: more than the color has, is killed" sh -c "
    ! sh -c 'echo \$\$ >/cgroup/small/cgroup.procs; exec frames hog $((total / 8)) 0'"
check "by its group's own out-of-memory killer" grep -qx 'oom_kill 1' /cgroup/small/memory.events
check "which is counted" grep -qx 'oom 1' $C/small/events
take_down small
# Without the frames of a used-up color the kernel has but small blocks, and their colors lie one
# behind the other: who searches a little finds always the same ones.
for color in 0 4 8 10 15; do
    used=$(((color + 8) % 16))
    with "$used hard" frames hog $((total / 8)) 0 >/dev/null
    check "after a used-up color, hard: half of color $color" with "$color hard" \
        frames anon $((total / 32)) "$(printf %x $((1 << color)))"
done
check "the pool keeps its limit" sh -c "test \$(awk '{ n += \$2 } END { print n }' $P/free) -le \$(cat $P/pool_max)"
check "most of the memory can be used" frames hog $((total * 3 / 4)) 0
if by_itself; then
    echo "skipped: the kernel gets frames back under pressure: it has them by color itself"
else
    check "the kernel got frames back under pressure" test "$(count reclaimed)" -gt 0
fi
mkdir /cgroup/small
echo $((16 << 20)) >/cgroup/small/memory.max
check "a group's limit holds" sh -c "
    ! sh -c 'echo \$\$ >/cgroup/small/cgroup.procs; exec frames hog 64 0' &&
    grep -qx 'oom_kill 1' /cgroup/small/memory.events"
set_up small 2-3 hard
check "with a limit: colors 2-3" inside small frames anon 8 000c
take_down small
# shellcheck source-path=SCRIPTDIR source=contracts.sh
. /contracts.sh
check "the books are right" grep -qx ok $P/check

# --- huge pages ---------------------------------------------------------------

# shellcheck source-path=SCRIPTDIR source=huge.sh
. /huge.sh

# --- storms -------------------------------------------------------------------

check "1000 children of a group with colors" with "1-2" frames storm 1000 0
check "the colors are free again" others_are 0-15
check "on and off under load" sh -c "
    frames storm 2000 0 &
    frames hog 64 0 &
    for i in 1 2 3 4 5; do echo 0 >$P/on; echo 1 >$P/on; done
    wait"
check "the books are right" grep -qx ok $P/check

# --- groups -----------------------------------------------------------------------

# shellcheck source-path=SCRIPTDIR source=groups.sh
. /groups.sh

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
# Until the file goes: processes that begin and end, without colors and with some, and one that reads.
echo >/tmp/load
loaded() { while [ -e /tmp/load ]; do "$@" >/dev/null; echo >"/tmp/begun-$1"; done; }
storms() { frames storm 100 0; }
storms_inside() { inside one frames storm 100 0; }
reads() { forget_cache; inside other frames read /disk/file ffff; }
set_up one 1-2
set_up other 4-5
for load in storms storms_inside reads; do loaded $load & done
for load in storms storms_inside reads; do
    for _ in $(seq 6000); do
        [ ! -e /tmp/begun-$load ] || break
        sleep 0.1
    done
    check "there is load: $load" test -e /tmp/begun-$load
done
check "a set holds the module" sh -c "! rmmod piebald"
check "sets end under load" rmdir $C/one $C/other
check "unloads under load" rmmod piebald
rm /tmp/load
wait
rmdir /cgroup/one /cgroup/other
check "the tree is gone" test ! -e $P -a ! -e $C
check "memory works as before" frames hog 64 0
check "and has any color" sh -c "! frames anon 4 000c"
echo madvise >$huge
check "unloaded: huge pages" frames large 16 0
echo never >$huge
for i in 1 2 3 4 5; do
    check "loads and unloads, round $i" sh -c "
        insmod /piebald.ko map='12;13;14;15' on=1 srm=1 && frames anon 4 ffff && rmmod piebald"
done
# Maps of more colors, of which every sixteenth two have the address bits 12 to 15 of 2 and 3.
twos() { awk -v n="$1" 'BEGIN { for (i = 2; i < n; i += 16) printf("%s%d-%d", (i == 2 ? "" : ","), i, i + 1) }'; }
for bits in 6 7 8; do
    colors=$((1 << bits))
    check "loads with $colors colors" insmod /piebald.ko on=1 "map=$(seq -s ';' 12 $((11 + bits)))"
    set_up two "$(twos $colors)" hard
    check "$colors colors: those of a set" inside two frames anon 8 000c
    check "$colors colors: others have others" frames plain $((total / 4)) fff3
    check "$colors colors: nobody takes most of the memory" su nobody -s /bin/sh -c "frames hog $((total * 5 / 8)) 0"
    check "$colors colors: those of a set after that" inside two frames anon 8 000c
    frames hog $((total / 2)) 0 &
    for i in 1 2 3; do write on 0; sleep 0.2; write on 1; done
    wait $!
    check "$colors colors: switched meanwhile: the books are right" grep -qx ok $P/check
    take_down two
    check "$colors colors: unloads" rmmod piebald
done
check "a bad parameter is refused" sh -c "! insmod /piebald.ko map=5"
check "on without a map is refused" sh -c "! insmod /piebald.ko on=1"
check "srm without a map is refused" sh -c "! insmod /piebald.ko srm=1"
after=$(free_frames)
# The kernel's own lists and caches differ by that much from one time to the next.
none_missing() {
    test "$after" -ge $((before - 256)) && return
    diff /tmp/meminfo /proc/meminfo
    return 1
}
check "no frame is missing: $before free before, $after after" none_missing

echo "--- counters"
cat /tmp/counters
echo "checks: $checks, failed: $failed"
[ "$failed" = 0 ]
