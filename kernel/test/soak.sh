#!/bin/sh
# A soak of the module, inside a guest; kernel/soak.sh starts it, with soak=SECONDS and seed=N on the kernel's command
# line. Sets come, change and go, colouring is switched, programs with and without colours begin, use memory up and
# are killed, all at once and drawn by the seed. Every half minute they end, and all that the module promises must hold.

P=/proc/piebald
C=/sys/kernel/config/piebald
checks=0 failed=0
# shellcheck source-path=SCRIPTDIR source=common.sh
. /common.sh

seconds=$(sed -n 's/.*\bsoak=\([0-9]*\).*/\1/p' /proc/cmdline)
seed=$(sed -n 's/.*\bseed=\([0-9]*\).*/\1/p' /proc/cmdline)
MAP="12;13;14;15"

# pick N: `picked` is drawn from 0 to N-1. Each actor sets `drawn`, its seed.
pick() {
    drawn=$(((drawn * 1103515245 + 12345) % 2147483648))
    picked=$((drawn / 65536 % $1))
}
nap() { pick 10; sleep "0.$picked"; }

some_program() { # MOST: MiB
    pick "$1"
    size=$((1 + picked))
    pick 3
    file=/disk/file$((1 + picked))
    pick 10
    case $picked in
        0) frames anon $size ffff ;;
        1) frames fork $size ffff ;;
        2) frames cow $size ffff ;;
        3) frames shared $size ffff ;;
        4) frames swapped $size ffff ;;
        5) frames read $file ffff ;;
        6) frames mapped $file ffff ;;
        7) frames written "/disk/new$$" ffff ;;
        8) frames storm $((20 * size)) 0 ;;
        9) frames hog $size 0 ;;
    esac >/dev/null 2>&1
}

# In a group: /piebald/run program MOST SEED.
if [ "${1:-}" = program ]; then
    drawn=$3
    some_program "$2"
    exit
fi

mkdir /disk /cgroup
mount -t ext4 /dev/vda /disk || exit 1
mount -t configfs configfs /sys/kernel/config || exit 1
mount -t cgroup2 cgroup /cgroup || exit 1
echo "+memory +cpuset" >/cgroup/cgroup.subtree_control
swapon /dev/vdb || exit 1
total=$(awk '/^MemTotal:/ { print int($2 / 1024) }' /proc/meminfo)
for file in 1 2 3; do dd if=/dev/zero of=/disk/file$file bs=64k count=$((file * 200)) 2>/dev/null; done
{
    frames storm 500 0
    frames hog $((total * 3 / 4)) 0
    for file in 1 2 3; do frames read /disk/file$file ffff; done
    frames swapped 16 ffff
} >/dev/null
before=$(free_frames)
swapon /dev/vdb

going() { [ -e /tmp/going ]; }
# did WHAT: one more of that was done to its end.
did() { echo >>"/tmp/did-$1"; }

# Sets `colors`: one, two or several behind one another.
some_colors() {
    pick 16
    first=$picked
    pick 4
    case $picked in
        0) colors=$first ;;
        1)
            pick 16
            if [ "$picked" = "$first" ]; then colors=$first; else colors=$first,$picked; fi
            ;;
        *)
            pick 4
            last=$((first + 1 + picked))
            if [ $first = 15 ]; then colors=15; else colors=$first-$((last > 15 ? 15 : last)); fi
            ;;
    esac
}

# A set, and what runs in its group.
owner() { # NAME SEED
    drawn=$2
    while going; do
        pick 2
        if [ $picked = 0 ]; then mode=hint; else mode=hard; fi
        some_colors
        set_up "$1" "$colors" $mode
        pick 3
        [ $picked != 0 ] || echo allow >"$C/$1/foreign"
        pick 4
        [ $picked != 0 ] || echo $((total / 8))M >"/cgroup/$1/memory.max"
        pick 4
        [ $picked != 0 ] || echo $((total / 16))M >"/cgroup/$1/memory.min"
        for _ in 1 2 3; do
            pick 30000
            inside "$1" /piebald/run program $((total / 8)) $picked &
            nap
        done
        some_colors
        pick 2
        [ $picked != 0 ] || echo "$colors" >"$C/$1/colors"
        pick 3
        case $picked in
            0) while read -r task; do echo "$task" >$P/recolor; done <"/cgroup/$1/cgroup.procs" ;;
        esac
        pick 3
        case $picked in
            0) rmdir "$C/$1" ;;
            1) echo 1 >"/cgroup/$1/cgroup.kill" ;;
        esac
        wait
        rmdir "$C/$1"
        rmdir "/cgroup/$1"
        did sets
    done >/dev/null 2>&1
}

stranger() { # SEED
    drawn=$1
    while going; do
        some_program $((total / 4))
        did programs
    done
}

switch() { # SEED
    drawn=$1
    while going; do
        pick 9
        case $picked in
            0 | 1)
                echo 0 >$P/on
                nap
                echo 1 >$P/on
                ;;
            2)
                echo 1 >$P/srm
                sleep 1
                echo 0 >$P/srm
                ;;
            3)
                pick 6
                echo $((1024 << picked)) >$P/pool_max
                ;;
            4) forget_cache ;;
            5) echo 1 >/proc/sys/vm/compact_memory ;;
            6)
                echo 0 >$P/on
                echo 13 >$P/map
                echo 1 >$P/on
                nap
                echo 0 >$P/on
                printf '12\n13\n14\n15\n' >$P/map
                echo 1 >$P/on
                ;;
            7) for task in /proc/[1-9]*; do echo "${task#/proc/}" >$P/recolor; done ;;
            8) rmmod piebald && insmod /piebald.ko "map=$MAP" on=1 && did loaded ;;
        esac
        did switched
        nap
    done >/dev/null 2>&1
}

ends=$(($(cut -d. -f1 /proc/uptime) + seconds))
insmod /piebald.ko "map=$MAP" on=1 || exit 1
pool=$(cat $P/pool_max)
round=0
while [ "$(cut -d. -f1 /proc/uptime)" -lt $ends ]; do
    round=$((round + 1))
    rm -f /tmp/did-*
    first_seed=$((seed * 1000 + round * 10))
    echo >/tmp/going
    owner one $first_seed &
    owner two $((first_seed + 1)) &
    owner three $((first_seed + 2)) &
    stranger $((first_seed + 3)) &
    switch $((first_seed + 4)) &
    sleep 30
    rm /tmp/going
    wait
    [ -e $P ] || insmod /piebald.ko "map=$MAP" on=1
    for group in one two three; do
        [ ! -d "$C/$group" ] || rmdir "$C/$group"
        [ ! -d "/cgroup/$group" ] || rmdir "/cgroup/$group"
    done
    echo 0 >$P/srm
    echo 0 >$P/on
    printf '12\n13\n14\n15\n' >$P/map
    echo "$pool" >$P/pool_max
    echo 1 >$P/on
    rm -f /disk/new*
    cp $P/counters /tmp/counters
    for what in sets programs switched; do
        check "round $round: there was load: $what, $(wc -l <"/tmp/did-$what")" test -s "/tmp/did-$what"
    done
    check "round $round: the books are right" grep -qx ok $P/check
    check "round $round: nobody has colors" grep -qx 0-15 $P/others
    set_up holder 0-7 hard
    check "round $round: colors, anonymous" with "2-3 hard" frames anon 8 000c
    forget_cache
    check "round $round: colors, files" with "4-5 hard" frames fresh /disk/file1 0030
    echo never >/sys/kernel/mm/transparent_hugepage/enabled
    check "round $round: others stay out" frames plain 16 ff00
    echo always >/sys/kernel/mm/transparent_hugepage/enabled
    check "round $round: a set ends" take_down holder
done
check "unloads" rmmod piebald
check "nobody was killed for want of memory of the machine" sh -c "! dmesg | grep 'CONSTRAINT_NONE'"
after=$(free_frames)
check "no frame is missing: $before free before, $after after" test "$after" -ge $((before - 512))
cat /tmp/counters
echo "rounds: $round, checks: $checks, failed: $failed"
[ "$failed" = 0 ]
