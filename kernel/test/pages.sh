# shellcheck shell=sh
# shellcheck disable=SC2086,SC2154
# Single pages of processes with colours and without, and limits; run.sh reads it, with colouring on, and has the checks.
: "${total:?}"

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
check "the books are right" grep -qx ok $P/check

# --- storms -------------------------------------------------------------------

check "1000 children of a group with colors" with "1-2" frames storm 1000 0
check "the colors are free again" others_are 0-15
check "on and off under load" sh -c "
    frames storm 2000 0 &
    frames hog 64 0 &
    for i in 1 2 3 4 5; do echo 0 >$P/on; echo 1 >$P/on; done
    wait"
check "the books are right" grep -qx ok $P/check
