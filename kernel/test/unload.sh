# shellcheck shell=sh
# shellcheck disable=SC2086,SC2154
# Switching off, and unloading under load; run.sh reads it, with colouring on, and has the checks.
: "${total:?}"

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
