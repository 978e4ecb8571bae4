# shellcheck shell=sh
# Huge pages in colours, where these follow from address bits above those of a block of 2 MiB: that part of the module's
# test; run.sh reads it, with colouring on, and has the checks. Afterwards the map is as before.
P=/proc/piebald
C=/sys/kernel/config/piebald
: "${total:?}"
huge=/sys/kernel/mm/transparent_hugepage/enabled
quarter=$((total / 4))	# MiB of a colour, by name: some of it is the kernel's

roomy() { forget_cache; echo 1 >/proc/sys/vm/compact_memory; }

write on 0
check "a map of address bits 21 and 22" write map "$(printf '21\n22\n')"
check "has four colors" grep -qx 4 $P/colors
check "switches on" write on 1
echo madvise >$huge
# shellcheck disable=SC2034  # common.sh reads it
tells=1
for mode in hint hard; do
    for set in "1 0002" "0,2 0005"; do
        colors=${set% *} mask=${set#* }
        roomy
        check "$mode: huge pages of colors $colors" with "$colors $mode" huge anon 32 "$mask" 12
    done
done
check "they are counted" test "$(count large_colored)" -ge 48
roomy
check "of a child" with "1 hard" huge child 16 0002 4
roomy
check "a child's copies of a parent's" with "1 hard" huge cow 16 0002 0
roomy
check "huge pages that have their colors are not taken apart by a move" with "1 hard" huge recolor 16 0002 4
refused=$(count thp_refused)
roomy
check "what is put together later would have any color" with "1 hard" huge collapse 16 0002 0
check "and is refused" test "$(count thp_refused)" -gt "$refused"
shmem=/sys/kernel/mm/transparent_hugepage/shmem_enabled
shmem_at_first=$(sed 's/.*\[\(.*\)\].*/\1/' $shmem)
echo advise >$shmem
roomy
check "shared memory" with "1 hard" huge shared 16 0002 4
echo "$shmem_at_first" >$shmem

# More than there are blocks of the colour: the rest comes in single pages of it.
roomy
check "more than half of a color, all of it inside" with "1 hard" huge anon $((quarter * 5 / 8)) 0002 4

# Somebody holds a colour, with nothing in it: others have huge pages of what nobody owns, as long as there are some.
set_up holder 1 hard
roomy
check "others stay out with their huge pages" huge anon 64 000d 24
check "a set's frames come back when it wants them" inside holder huge anon $((quarter / 4)) 0002 0
take_down holder
# Others' huge pages of a colour that somebody takes are split, and their parts move. (khugepaged would put them together
# again, anywhere.)
slow=/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs
slow_at_first=$(cat $slow)
echo 3600000 >$slow
mkfifo /tmp/hold
huge stay 96 000d 0 </tmp/hold >/tmp/stay 2>&1 &
stayer=$!
exec 7>/tmp/hold
for _ in $(seq 600); do
    ! grep -q touched /tmp/stay || break
    sleep 0.1
done
set_up holder 1 hard
exec 7>&-
check "and leave when it is assigned" wait $stayer
sed 's/^/    /' /tmp/stay $C/holder/events
echo "$slow_at_first" >$slow
take_down holder
rm -f /tmp/hold
check "the books are right" grep -qx ok $P/check
unset tells

write on 0
write map "$(printf '12\n13\n14\n15\n')"
write on 1
echo never >$huge
