# shellcheck shell=sh
# What must hold for everyone else, and against everyone else, while somebody has colours; run.sh reads
# it, with colouring on, and has the checks. The control groups are mounted at /cgroup.
P=/proc/piebald
: "${total:?}"
huge=/sys/kernel/mm/transparent_hugepage/enabled
until_touched() { # FILE
    for _ in $(seq 300); do
        grep -q touched "$1" && return 0
        sleep 1
    done
    return 1
}

# --- memory policies -------------------------------------------------------------

passed=$(count policy_passed)
check "a policy that names this node: colors 2-3" with "2-3 hard" frames bound 4 000c
check "is no way out" test "$(count policy_passed)" = "$passed"
# An owner that has not touched its memory yet, and somebody without rights who binds half of all.
forget_cache
swapoff -a
mkfifo /tmp/go /tmp/stop
set_up owner 2-3 hard
inside owner sh -c "read -r _ </tmp/go; exec frames anon $((total / 12)) 000c" >/tmp/owner &
owner=$!
su nobody -s /bin/sh -c "frames keep $((total / 2)) 0" </tmp/stop >/tmp/binder &
binder=$!
exec 9>/tmp/stop
until_touched /tmp/binder
echo >/tmp/go
check "who binds memory to the node takes no owned color" wait $owner
cat /tmp/owner
check "and has nobody killed" grep -qx 'oom_kill 0' /cgroup/owner/memory.events
take_down owner
exec 9>&-
wait $binder
rm /tmp/go /tmp/stop
swapon /dev/vdb

# --- guarantees of control groups -------------------------------------------------

# A file in a group with a guarantee, and more of another file than there is memory.
guaranteed() { # memory.min or memory.low, MiB that have to stay
    forget_cache
    mkdir /cgroup/kept
    echo 120M >/cgroup/kept/"$1"
    truncate -s 100M /disk/kept
    truncate -s $((total * 3 / 2))M /disk/hole
    watch_takers
    sh -c "echo \$\$ >/cgroup/kept/cgroup.procs && cat /disk/kept >/dev/null"
    cat /disk/hole >/dev/null
    stayed=$(charged_to kept) took=$(takers_took)
    taken=$(awk '$1 == "pgsteal" { print $2 }' /cgroup/kept/memory.stat)
    echo "$1: $stayed pages of $((100 * 256)) stayed; the kernel itself took $taken, and in all $took for who needed memory"
    rm /disk/kept /disk/hole
    rmdir /cgroup/kept
    test "$((stayed + taken))" -ge $(($2 * 256))
}
write srm 1
check "srm: pages below memory.min stay" guaranteed memory.min 99
check "and the kernel takes none but for who needs memory" test "$taken" -le "$took"
# The kernel itself takes some of these, and counts them, when it finds nothing else in time, which is up to how
# busy the machine is. The module takes none.
check "srm: pages below memory.low stay" guaranteed memory.low 90
# Pages that are in the zone already when their group gets a guarantee.
late() {
    forget_cache
    mkdir /cgroup/late
    truncate -s $((total / 2))M /disk/late
    truncate -s $((total * 3 / 2))M /disk/hole
    sh -c "echo \$\$ >/cgroup/late/cgroup.procs && cat /disk/late >/dev/null"
    dd if=/disk/hole of=/dev/null bs=1M count=$((total / 2)) 2>/dev/null
    echo max >/cgroup/late/memory.min
    had=$(charged_to late)
    cat /disk/hole >/dev/null
    stayed=$(charged_to late)
    echo "$stayed pages of $had stayed"
    rm /disk/late /disk/hole
    rmdir /cgroup/late
    test "$stayed" -ge "$had"
}
check "srm: a guarantee that comes late holds as well" late
write srm 0

# --- large pages and compaction of those without colours ------------------------------

set_up holder 2-3 hard
check "with an owner: memory has other colors without it" frames plain 4 fff3
echo madvise >$huge
forget_cache
# What is free, and in blocks of which sizes, says why there were none.
large_pages() {
    frames large 16 0 && return
    cat /proc/buddyinfo
    grep -E '^(MemFree|Cached|AnonPages|Slab)' /proc/meminfo
    grep -E '^(compact_|thp_fault|thp_collapse|pgmigrate)' /proc/vmstat
    return 1
}
check "huge pages for those without colors" large_pages
# The pool keeps the owned colours of all blocks that single pages are taken from, and breaks them so.
# It holds them still or has given them back, each second: which of both depends on how fast all this runs.
in_pool() { awk '{ n += $2 } END { print n + 0 }' $P/free; }
returned=$(count given_back)
frames plain $((total * 5 / 8)) fff3 >/dev/null
pooled=$(($(in_pool) + $(count given_back) - returned))
check "which single pages of memory have broken" large_pages
frames plain $((total * 5 / 8)) fff3 >/dev/null
if by_itself; then
    echo "skipped: the pool keeps what they had no use for: the kernel has it by color itself"
else
    check "as the pool keeps what they had no use for" test "$pooled" -gt 4096
fi
given_back() {
    for _ in $(seq 120); do
        [ "$(in_pool)" -gt 1024 ] || return 0
        sleep 1
    done
    return 1
}
check "until so many are not asked for in a second" given_back
refused=$(count thp_refused)
check "none for those with colors" with "4-5 hard" frames huge 4 0030
check "which are counted" test "$(count thp_refused)" -gt "$refused"
take_down holder
# Pages with free ones between them, which compaction can put together, and some of an owner.
moved() { sed -n 's/^pgmigrate_success //p' /proc/vmstat; }
mkfifo /tmp/until /tmp/until2
set_up stayer 12-13 hard
inside stayer frames stay 4 3000 </tmp/until >/tmp/stay &
stay=$!
# From here on: the kernel compacts by itself as soon as there are holes.
before_move=$(moved)
frames holes $((total * 5 / 8)) cfff </tmp/until2 >/tmp/holes &
holes=$!
exec 8>/tmp/until2 9>/tmp/until
until_touched /tmp/stay && until_touched /tmp/holes
echo 1 >/proc/sys/vm/compact_memory
moves=$(($(moved) - before_move))
check "compaction moves pages of those without colors" test "$moves" -gt 4000
echo "$moves pages moved, $(count compaction_refused) stayed"
exec 8>&- 9>&-
check "and puts none of them into owned colors" wait $holes
cat /tmp/holes
wait $stay
check "nor those of owners into others" grep -q 'outside 0 missing 0' /tmp/stay
# What an owner leaves between its pages is put together as well.
# How many that are depends on where free frames of their colors lie: none to 3,200.
for _ in 1 2 3 4 5; do
    kept=$(count moves_colored)
    inside stayer frames holes $((total * 3 / 32)) 3000 </tmp/until >/tmp/stay &
    stay=$!
    exec 9>/tmp/until
    until_touched /tmp/stay
    # Its free frames go back to the kernel, where compaction finds them.
    check "an owner's free frames go back" given_back
    echo 1 >/proc/sys/vm/compact_memory
    kept=$(($(count moves_colored) - kept))
    [ "$kept" = 0 ] || break
    exec 9>&-
    wait $stay
done
check "compaction moves pages of owners: $kept" test "$kept" -gt 0
exec 9>&-
check "to frames of their colors" wait $stay
cat /tmp/stay
take_down stayer

# --- ftrace ---------------------------------------------------------------------------

ftrace=/proc/sys/kernel/ftrace_enabled
set_up stayer 2-3 hard
inside stayer frames stay 8 000c </tmp/until >/tmp/stay &
stay=$!
exec 9>/tmp/until
until_touched /tmp/stay
check "ftrace cannot be switched off meanwhile" sh -c "! echo 0 >$ftrace"
check "and is on" grep -qx 1 $ftrace
check "so colors bind" with "4-5 hard" frames anon 8 0030
exec 9>&-
wait $stay
take_down stayer
write on 0
stock() {
    for _ in $(seq 120); do
        [ -n "$(cat /sys/kernel/tracing/enabled_functions)" ] || return 0
        sleep 1
    done
    cat /sys/kernel/tracing/enabled_functions
    return 1
}
mount -t tracefs trace /sys/kernel/tracing 2>/dev/null
check "off: no function is replaced" stock
check "off: huge pages" frames large 16 0
# From 7.3 on, at the latest, the kernel itself refuses that, and says so once.
sh -c "echo 0 >$ftrace" 2>/dev/null
if dmesg | grep -q 'ftrace_enabled file is deprecated and no longer disables ftrace'; then
    check "off: ftrace cannot be switched off in this kernel" grep -qx 1 $ftrace
    check "switches on" write on 1
else
    check "off: ftrace can be switched off" grep -qx 0 $ftrace
    refuse "no colors without ftrace" "ftrace" write on 1
    check "it stays off" grep -qx 0 $P/on
    echo 1 >$ftrace
    check "with it again" write on 1
fi
echo never >$huge
check "the books are right" grep -qx ok $P/check

# --- tasks that wait inside a replacement ---------------------------------------------------

# The disk gives one group almost nothing, so its reader waits, and so does who writes to the page that
# is being read: inside the kernel's lookup of pages, which SRM-buffer replaces.
disk=$(cat /sys/block/vda/dev)
echo +io >/cgroup/cgroup.subtree_control
mkdir /cgroup/slow
echo "$disk rbps=64" >/cgroup/slow/io.max
write srm 1
dd if=/dev/zero of=/disk/slow bs=64k count=16 2>/dev/null
sync
forget_cache
waits() { grep -q folio_wait "/proc/$1/wchan"; }
until_it_waits() { # PID
    for _ in $(seq 300); do
        waits "$1" && return 0
        sleep 0.1
    done
    return 1
}
sh -c "echo \$\$ >/cgroup/slow/cgroup.procs && exec cat /disk/slow" >/dev/null &
reader=$!
until_it_waits $reader
dd if=/dev/zero of=/disk/slow bs=1 count=1 conv=notrunc 2>/dev/null &
writer=$!
check "a task waits inside" until_it_waits $writer
check "switches SRM-buffer off meanwhile" write srm 0
check "and coloring" write on 0
check "the task waits still" waits $writer
check "who sets a map waits for it, and can be killed" sh -c "
    ! timeout -s KILL 2 sh -c 'echo 12 >$P/map' && grep -q . $P/colors"
check "switches on again" write on 1
check "and works" with "2-3 hard" frames anon 4 000c
check "the task waits all the time" waits $writer
write on 0
echo "$disk rbps=max" >/cgroup/slow/io.max
wait $reader $writer
check "a map can be set when it has ended" write map "$(printf '12\n13\n14\n15\n')"
write on 1
rmdir /cgroup/slow
rm /disk/slow
check "the books are right" grep -qx ok $P/check
swapoff /dev/vdb
