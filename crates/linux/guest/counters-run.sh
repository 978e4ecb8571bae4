#!/bin/sh
# The test of the machine model's counters, inside the guest; crates/linux/guest/counters.sh starts
# it on a modelled W3540: 64 B lines, 8 MiB of shared L3, 256 KiB of L2.

# shellcheck source-path=SCRIPTDIR source=checks.sh
. /checks.sh

between() { # LEAST MOST LINE...: the number at the end of the line that begins with LINE
    least=$1 most=$2
    shift 2
    found=$(sed -n "s/^$* \([0-9]*\)$/\1/p" /tmp/counts)
    [ -n "$found" ] && [ "$found" -ge "$least" ] && [ "$found" -le "$most" ] && return
    echo "$*: ${found:-nothing}, wanted $least to $most"
    return 1
}

mount -t cgroup2 cgroup2 /sys/fs/cgroup
unit=/sys/bus/event_source/devices/piebald_model
check "loads" insmod /piebald_model.ko
check "says which machine" sh -c 'dmesg | grep -q "counters of the modelled machine w3540"'
check "the unit is there" test -e $unit/type
check "its events are named" grep -qx event=0x05 $unit/events/llc-misses
check "what it cannot do is refused" counters refused

# 1 MiB, four times: beyond the L2, within the L3. Each line is read by a loop of five instructions or so.
counters touch 16384 4 >/tmp/counts || echo FAILED
sed 's/^/    /' /tmp/counts
check "instructions are those of the loop" between 200000 700000 own instructions
check "references too" between 190000 210000 own references
check "each line misses the L2" between 63000 70000 own l2-misses
check "what fits misses nothing" between 0 1500 own llc-misses
check "a child's counts come to its parent" between 200000 1500000 child instructions
check "and its misses of the L2" between 63000 80000 child l2-misses

# 16 MiB, twice: twice the L3, in order.
counters touch 262144 2 >/tmp/counts || echo FAILED
sed 's/^/    /' /tmp/counts
check "what does not fit misses every time" between 500000 560000 own llc-misses
check "and comes from memory" between 500000 560000 own memory-reads
check "mostly from open rows" between 400000 560000 own row-hits
check "time goes by" between 10000000 1000000000 own cycles

counters quiet >/tmp/counts || echo FAILED
check "who sleeps counts nothing" between 0 20000 asleep instructions

# A reading hands on what all did so far, out of turn for those who are behind, which must not change what it reads: words
# of 4 MiB are drawn on one processor, twice the cache is gone over in order on the other.
taskset 2 counters touch 262144 1000 >/dev/null &
beside=$!
sleep 0.1
misses() { # EACH: last-level misses of a million draws, all counters read after each EACH of them
    taskset 1 counters draw 1000000 "$1" | sed -n 's/^drawn llc-misses //p'
}
seldom=$(misses 1000000) often=$(misses 50000)
kill $beside
echo "    misses beside a scan: $seldom, with 20 readings $often"
near() { [ "$((100 * ($1 - $2)))" -lt "$((3 * $2))" ] && [ "$((100 * ($2 - $1)))" -lt "$((3 * $2))" ]; }
check "readings change nothing" near "${often:-0}" "${seldom:-0}"

# shellcheck disable=SC2016  # the inner shell's variables
check "what is in use does not go" sh -c 'counters touch 262144 100 >/dev/null & sleep 0.2; rmmod piebald_model; status=$?; kill $!; [ $status != 0 ]'

# --- compare has counters now -------------------------------------------------------

check "the policy's module loads" piebald load /piebald.ko --map 15-18
check "without counters it says so" says "not counted here: cycles" sh -c '
    rmmod piebald_model && piebald compare --pairs 3 --quiet -- true && insmod /piebald_model.ko'
# Five pairs, the default: the frames that a run gets change its misses by an eighth.
check "colors cost a program of 4 MiB its place" sh -c '
    piebald compare --colors 0-1 --quiet -- walk 4194304 200000 >/tmp/compared'
sed 's/^/    /' /tmp/compared
check "in misses" grep -q 'last-level misses .*: more' /tmp/compared
check "which are the model's" grep -q 'counted by the machine model' /tmp/compared
check "the policy's module unloads" piebald unload
check "unloads" rmmod piebald_model
check "the unit is gone" test ! -e $unit
check "loads again" insmod /piebald_model.ko
check "unloads again" rmmod piebald_model
ends
