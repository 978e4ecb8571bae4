# shellcheck shell=sh
# Sets of colours and control groups: that part of the module's test; run.sh reads it, with colouring
# on, and has the checks. A colour is a sixteenth of the guest's memory.
P=/proc/piebald
C=/sys/kernel/config/piebald
share=$((${total:?} / 16))	# MiB of a colour, by name: some of it is the kernel's

# The kernel compacts by itself as soon as there are holes, and then moves pages of removed groups and of others out of
# owned colours as well: at times before the module does, which counts its own moves alone.
proactiveness=/proc/sys/vm/compaction_proactiveness
proactiveness_at_first=$(cat $proactiveness)
echo 0 >$proactiveness

event() { sed -n "s/^$2 //p" "$C/$1/events"; }
of_kernel() { sed -n "s/^$2 //p" "/cgroup/$1/memory.events"; }
frames_of() { sed -n "s/^$2 //p" "$C/$1/frames"; }
say() { echo "$2" >"$C/$1"; }
# PROCESSOR: frames on the lists that are its own
at_hand() {
    awk -v cpu="$1" '$1 == "cpu:" { its = $2 == cpu } $1 == "count:" && its { n += $2 } END { print n + 0 }' /proc/zoneinfo
}
# NAME: no frame of another colour was taken, nothing was refused, nobody ended
nobody_suffered() {
    awk '/^(fallback|oom)/ { n += $2 } END { exit n != 0 }' "$C/$1/events" &&
        [ "$(of_kernel "$1" oom_kill)" = 0 ] && return
    cat "$C/$1/events" "/cgroup/$1/memory.events"
    return 1
}

# --- the files --------------------------------------------------------------------

check "a set begins without colors" sh -c "mkdir $C/s /cgroup/s && grep -qx none $C/s/colors"
check "as a hint" grep -qx hint $C/s/mode
check "and pages of others leave it" grep -qx migrate $C/s/foreign
check "for root alone" sh -c "test \$(stat -c %a $C/s/colors) = 600 && test \$(stat -c %a $C/s/frames) = 400"
refuse "no such color" "15" say s/colors 16
refuse "a word is no color" "" say s/colors red
refuse "one color stays for the others" "can be reserved" say s/colors 0-15
refuse "no such mode" "allowed: hint, hard" say s/mode soft
refuse "no such rule for others" "allowed: allow, migrate" say s/foreign maybe
refuse "no such group" "allowed: the path" say s/attach /none
refuse "a word is no group" "allowed: the path" say s/attach none
refuse "no such descriptor" "no control group" say s/attach 77
refuse "the root group has no colors" "everyone else" say s/attach /
refuse "what is not attached cannot be detached" "does not have this set" say s/detach /s
for file in colors mode foreign attach detach; do
    for n in 1 2 7 40 400 4000 5000; do
        head -c $n /dev/urandom >$C/s/$file 2>/dev/null
    done
done
check "garbage is refused, and the books are right" grep -qx ok $P/check
for each in colors=none mode=hint foreign=migrate; do echo "${each#*=}" >"$C/s/${each%=*}"; done
check "by a path" say s/attach /s
check "it is listed" grep -qx /s $C/s/groups
refuse "once is enough" "already" say s/attach /s
check "and by a descriptor" sh -c "echo /s >$C/s/detach && echo 9 >$C/s/attach 9</cgroup/s && grep -qx /s $C/s/groups"
mkdir $C/t
refuse "a group has one set" "the set s already" say t/attach /s
mkdir /cgroup/plain
errno() { # NAME WORDS COMMAND...: what the shell says of a write that fails
    name=$1 words=$2
    shift 2
    check "$name" sh -c "! sh -c '$*' 2>/tmp/said && grep -q '$words' /tmp/said"
}
errno "EBUSY for a group of another set" "Device or resource busy" "echo /s >$C/t/attach"
errno "EEXIST for a group that has it" "File exists" "echo /s >$C/s/attach"
errno "ENOENT for no group" "No such file" "echo /none >$C/t/attach"
errno "EBADF for no descriptor" "Bad file descriptor" "echo 77 >$C/t/attach"
errno "EINVAL for no color" "Invalid argument" "echo 16 >$C/t/colors"
errno "ENOSPC for all colors" "No space left" "echo 0-15 >$C/t/colors"
errno "EOPNOTSUPP for tasks" "Operation not supported" "echo 1 3 >$P/tasks"
refuse "without the controller there are no pages" "no memory controller" sh -c "
    mkdir /cgroup/plain/below && echo /plain/below >$C/t/attach"
rmdir /cgroup/plain/below /cgroup/plain
rmdir $C/t
check "a group without colors has those that nobody has" inside s frames plain 8 ffff
check "colors come later" say s/colors 2-3
check "in the group" inside s frames anon 4 000c
check "in a group below, which inherits" sh -c "
    echo +memory >/cgroup/s/cgroup.subtree_control && mkdir /cgroup/s/below &&
    sh -c 'echo \$\$ >/cgroup/s/below/cgroup.procs && exec frames anon 4 000c'"
set_up_below() { mkdir $C/below && echo 9 >$C/below/colors && echo /s/below >$C/below/attach; }
check "unless it has a set of its own" set_up_below
check "which is nearer" sh -c "
    sh -c 'echo \$\$ >/cgroup/s/below/cgroup.procs && exec frames anon 4 0200'"
rmdir $C/below /cgroup/s/below
echo -memory >/cgroup/s/cgroup.subtree_control
check "a group that is removed has no set" sh -c "rmdir /cgroup/s && test -z \"\$(cat $C/s/groups)\""
check "the colors are reserved without it" others_are 0-1,4-15
check "colors can be given up" say s/colors none
check "and are free" others_are 0-15
rmdir $C/s

# --- more than the colors have ------------------------------------------------------

dd if=/dev/zero of=/disk/large bs=1M count=$((share * 5 / 2)) 2>/dev/null
sync
for mode in hint hard; do
    forget_cache
    set_up cat 3 $mode
    check "$mode: a file larger than its colors is read" inside cat sh -c "exec cat /disk/large >/dev/null"
    check "$mode: nobody suffers" nobody_suffered cat
    check "$mode: the group's own pages went" test "$(event cat reclaimed)" -gt 0
    check "$mode: all frames are inside" held inside 0008 /cgroup/cat
    check "$mode: and are as many as the set says" held compare 0008 /cgroup/cat $C/cat/frames
    sed 's/^/    /' /tmp/output
    forget_cache
    check "$mode: mapped" inside cat frames random /disk/large 0008
    check "$mode: nobody suffers" nobody_suffered cat
    check "$mode: all frames are inside" held inside 0008 /cgroup/cat
    forget_cache
    check "$mode: such a file is written" inside cat dd if=/dev/zero of=/disk/written bs=64k count=$((share * 32))
    check "$mode: nobody suffers" nobody_suffered cat
    rm -f /disk/written
    sed 's/^/    /' $C/cat/events
    take_down cat
done
check "the books are right" grep -qx ok $P/check

# All of the colours' frames are to be written before one of them can be had, to a disk that is slow. (A request to it has up to
# 1 MiB, all of which is done at once.)
echo +io >/cgroup/cgroup.subtree_control
for mode in hint hard; do
    set_up slow 3 $mode
    check "$mode: a disk is slow" sh -c "echo '$(cat /sys/block/vda/dev) wbps=2000000' >/cgroup/slow/io.max"
    began=$(cut -d . -f 1 /proc/uptime)
    check "$mode: who writes to it waits" inside slow dd if=/dev/zero of=/disk/written bs=64k count=$(((share + 4) * 16))
    check "$mode: for seconds" test $(($(cut -d . -f 1 /proc/uptime) - began)) -ge 3
    check "$mode: and nobody suffers" nobody_suffered slow
    echo "$(cat /sys/block/vda/dev) wbps=max" >/cgroup/slow/io.max
    rm -f /disk/written
    take_down slow
done
echo -io >/cgroup/cgroup.subtree_control

# Less than its name says: some frames are the kernel's for ever.
set_up few 5 hard
capacity=$(cat $C/few/capacity)
check "capacity is at most what the color has: $capacity frames" test "$capacity" -le $((share * 256))
check "and at least three quarters of it" test "$capacity" -ge $((share * 192))
usable=$((capacity / 256 - 2))
check "memory up to the capacity can be had: $usable MiB" inside few frames anon $usable 0020
check "nobody suffers" nobody_suffered few
check "more ends the process" sh -c "! sh -c 'echo \$\$ >/cgroup/few/cgroup.procs && exec frames anon $((share + 1)) 0020'"
check "by the group's killer" test "$(of_kernel few oom_kill)" = 1
take_down few

# --- other groups ---------------------------------------------------------------------

# A service is started again: its files are charged to a group that is no more.
forget_cache
dd if=/dev/zero of=/disk/some bs=1M count=$((share * 5 / 8)) 2>/dev/null
sync
forget_cache
set_up service 3
inside service cat /disk/some >/dev/null
take_down service
set_up service 3 hard
check "after a restart the colors can be had" inside service frames anon $((share * 3 / 4)) 0008
check "nobody suffers" nobody_suffered service
take_down service

# The same with the set kept: then what is left leaves when it is wanted.
forget_cache
set_up service 3
inside service cat /disk/some >/dev/null
# A wish gets other colors where the computer is busy.
left=$(held 0008 /cgroup/service | sed -n 's/^own //p')
rmdir /cgroup/service
# A newer kernel gives what a removed group has left to the group above, of others.
check "what the old group left is counted" \
    test $(($(frames_of service dying) + $(frames_of service others))) -ge $((left * 15 / 16)) -a "$left" -gt $((share * 32))
mkdir /cgroup/service
echo /service >$C/service/attach
echo hard >$C/service/mode
check "a group in its place has the colors" inside service frames anon $((share * 3 / 4)) 0008
check "nobody suffers" nobody_suffered service
check "what was left has moved" test "$(event service moved_out)" -gt 0
take_down service

# What is free lies on the lists of a processor that other processors do not look at: the kernel gives it
# to one that is about to fail, and so does a set.
fraction=/proc/sys/vm/percpu_pagelist_high_fraction
fraction_at_first=$(cat $fraction)
echo 8 >$fraction
last=$(($(nproc) - 1))
# Frames that it keeps at most, of all colours; here most have one.
kept=$((total * 32 / (last + 1)))
[ $kept -lt $((share * 96)) ] || kept=$((share * 96))
check "there is more than one processor" test $last -gt 0
for mode in hint hard; do
    forget_cache
    set_up aside 3 $mode
    # While the kernel reclaims, a processor keeps few.
    for _ in $(seq 20); do
        inside aside taskset -c $last frames anon $((share * 3 / 8)) 0008 >/dev/null || break
        [ "$(at_hand $last)" -le $((kept * 3 / 4)) ] || break
        sleep 0.5
    done
    check "$mode: another processor keeps what it freed" test "$(at_hand $last)" -gt $((kept * 3 / 4))
    check "$mode: they can be had on this one" inside aside taskset -c 0 frames anon $((share * 3 / 4)) 0008
    check "$mode: nobody suffers" nobody_suffered aside
    take_down aside
done
echo "$fraction_at_first" >$fraction

# Memory is full of what others have read, as it is where a machine has run for a while; and the kernel's own reclaim
# waits behind somebody on its processor. Those who are to leave need frames then that nobody has.
runtime=/proc/sys/kernel/sched_rt_runtime_us
runtime_at_first=$(cat $runtime)
kswapd=$(pidof kswapd0)
truncate -s $((total * 3 / 2))M /disk/hole
truncate -s $((total / 2))M /disk/guarded
mkdir /cgroup/stranger /cgroup/guarded
for mode in hint hard; do
    forget_cache
    inside guarded cat /disk/guarded >/dev/null
    inside stranger dd if=/disk/hole of=/dev/null bs=1M count=$((total / 2)) 2>/dev/null
    taskset -pc $last "$kswapd" >/dev/null
    echo -1 >$runtime
    rm -f /tmp/runs
    # It ends by itself if this test does not get to its end.
    taskset -c $last frames first 60 0 >/tmp/runs &
    hog=$!
    for _ in $(seq 600); do
        grep -q runs /tmp/runs && break
        sleep 0.1
    done
    check "$mode: somebody runs before the kernel's reclaim" sh -c "
        grep -q runs /tmp/runs && taskset -pc $kswapd | grep -q ': $last\$'"
    # Most of what there is, guaranteed since the kernel's own thread ran last: without that a sixth of it goes.
    echo $((total / 2 + share))M >/cgroup/guarded/memory.min
    watch_takers
    guarded=$(charged_to guarded)
    check "$mode: most of it is one group's" test "$guarded" -gt $((total * 256 * 5 / 16))
    made=$(count room_made)
    set_up full 3-5 $mode
    # But a few that come meanwhile, or are on their way to the kernel's lists: of some 19,000.
    check "$mode: full memory: all that can leave does" test "$(frames_of full others)" -le $((128 * (last + 1)))
    check "$mode: room was made for it" test "$(count room_made)" -gt "$made"
    most=$(($(cat $C/full/capacity) / 256 - 4))
    check "$mode: full memory: $most MiB of three colors can be had" inside full \
        timeout 600 taskset -c 0 frames anon $most 0038
    kill -9 $hog
    wait $hog
    taskset -pc "0-$last" "$kswapd" >/dev/null
    echo "$runtime_at_first" >$runtime
    check "$mode: nobody suffers" nobody_suffered full
    left=$(charged_to guarded) took=$(takers_took)
    echo "guarded: $guarded pages, $left left; processes that needed memory had the kernel take $took"
    check "$mode: memory.min kept what it keeps" test $((left + took)) -ge "$guarded"
    echo 0 >/cgroup/guarded/memory.min
    take_down full
done
rm -f /disk/hole /disk/guarded
rmdir /cgroup/stranger /cgroup/guarded

# Somebody's colours bind and are used up: what it has in others' cannot leave. That keeps nobody else's there, which lie
# between its pages.
forget_cache
truncate -s $((total / 4))M /disk/hole
mkdir /cgroup/bound /cgroup/stranger
mkfifo /tmp/early /tmp/late
says_touched() { # FILE: waits for it, a minute at most
    for _ in $(seq 600); do
        grep -q touched "$1" && return
        sleep 0.1
    done
}
inside bound frames holes 96 ffff </tmp/early >/tmp/early-says &
early=$!
exec 7>/tmp/early
says_touched /tmp/early-says
set_up bound 3 hard
most=$(($(cat $C/bound/capacity) / 256 - 2))
inside bound frames keep $most 0008 </tmp/late >/tmp/late-says &
late=$!
exec 8>/tmp/late
says_touched /tmp/late-says
check "a group's colors are used up: $most MiB" grep -q touched /tmp/late-says
inside stranger cat /disk/hole >/dev/null
stranger=$(charged_to stranger)
set_up owner 4-5
check "what it has in others' colors stays" test "$(frames_of owner others)" -gt 512
its=$(held 0030 /cgroup/bound | sed -n 's/^own //p')
check "what is anybody else's leaves" test "$(frames_of owner others)" -le $((its + 128 * (last + 1)))
# Two of sixteen colors, less what the group that is bound has of them: as little as a sixteenth was there.
check "and was there" test "$(event owner moved_out)" -gt $((stranger / 32))
exec 7>&- 8>&-
wait $early $late
take_down owner
take_down bound
rm -f /disk/hole /tmp/early /tmp/late
rmdir /cgroup/stranger

# A group that memory.min keeps everything for loses nothing, though its pages leave.
forget_cache
mkdir /cgroup/kept
echo $((share * 4))M >/cgroup/kept/memory.min
inside kept cat /disk/some >/dev/null
kept=$(charged_to kept)
held 0040 /cgroup/kept >/tmp/before
check "others have pages of the color" sh -c "! held none 0040 /cgroup/kept"
set_up owner 6 hard
check "they leave when it is assigned" held none 0040 /cgroup/kept
check "and are counted" test "$(event owner moved_out)" -gt 0
check "memory.min kept them" test "$(charged_to kept)" -ge "$kept"
check "the color can be had" inside owner frames anon $((share * 3 / 4)) 0040
check "nobody suffers" nobody_suffered owner
check "memory.min kept them still" test "$(charged_to kept)" -ge "$kept"
take_down owner

# Where others may stay, they do.
forget_cache
inside kept cat /disk/some >/dev/null
mkdir $C/lenient
echo allow >$C/lenient/foreign
check "colors where others may stay" say lenient/colors 6
check "they stay" sh -c "! held none 0040 /cgroup/kept"
check "and are counted" test "$(frames_of lenient others)" -gt 0
check "until they may not" say lenient/foreign migrate
check "then they leave" held none 0040 /cgroup/kept
rmdir $C/lenient /cgroup/kept

# Two groups, one colour: who wants it takes from the other, down to what memory.min keeps.
forget_cache
set_up one 3 hard
set_up other 3,4 hard
inside one cat /disk/some >/dev/null
check "a shared color: the other's pages go" inside other frames anon $((share * 3 / 2)) 0018
check "nobody suffers" nobody_suffered other
forget_cache
inside one cat /disk/some >/dev/null
kept=$(charged_to one)
echo $((share * 2))M >/cgroup/one/memory.min
check "a shared color: memory.min keeps its pages" sh -c "
    ! sh -c 'echo \$\$ >/cgroup/other/cgroup.procs && exec frames anon $((share * 7 / 4)) 0018'"
check "who has no more colors ends" test "$(of_kernel other oom_kill)" = 1
check "and the other has what it had" test "$(charged_to one)" -ge $((kept * 31 / 32))
check "they are counted as shared" test "$(frames_of other sharing)" -gt $((share * 64))
check "several groups of one set" sh -c "mkdir /cgroup/third && echo /third >$C/one/attach && test \$(wc -l <$C/one/groups) = 2"
check "have its colors" inside third frames anon 2 0008
rmdir /cgroup/third
take_down other
take_down one

# The set and a limit on the group's memory, which is what the colors have by name: whichever is
# reached first.
dd if=/dev/zero of=/disk/large bs=1M count=$((share * 5 / 2)) 2>/dev/null
sync
for limit in $share $((share * 7 / 8)) $((share * 5 / 8)); do
    for mode in hint hard; do
        forget_cache
        set_up limited 3 $mode
        echo "${limit}M" >/cgroup/limited/memory.max
        check "$mode: a file larger than the limit of $limit MiB" inside limited sh -c "exec cat /disk/large >/dev/null"
        check "$mode: nobody suffers" nobody_suffered limited
        take_down limited
    done
done
rm /disk/large

# Groups below one that has the set share its colors; each has a limit above them.
forget_cache
set_up top 3 hard
echo +memory >/cgroup/top/cgroup.subtree_control
mkdir /cgroup/top/x /cgroup/top/y
echo "$((share))M" >/cgroup/top/x/memory.max
echo "$((share))M" >/cgroup/top/y/memory.max
inside top/x cat /disk/some >/dev/null
check "groups below share the colors" inside top/y frames anon $((share * 3 / 4)) 0008
check "nobody suffers" nobody_suffered top
rmdir /cgroup/top/x /cgroup/top/y
take_down top

# Reclaim of everything finds what a group that was removed has left.
forget_cache
set_up gone 3
inside gone cat /disk/some >/dev/null
take_down gone
set_up back 3 hard
check "and after reclaim of the root group" sh -c "
    echo $((share * 3 / 4))M >/cgroup/memory.reclaim 2>/dev/null
    echo \$\$ >/cgroup/back/cgroup.procs && exec frames anon $((share * 3 / 4)) 0008"
check "nobody suffers" nobody_suffered back
take_down back

# The kernel's memory for many files is charged to the group and has any color.
set_up files 5 hard
echo "$((share))M" >/cgroup/files/memory.max
mkdir /disk/many
# shellcheck disable=SC2016  # the inner shell's variables
check "a group makes 3000 files" inside files sh -c 'i=0; while [ $i -lt 3000 ]; do : >/disk/many/$i; i=$((i + 1)); done'
check "nobody suffers" nobody_suffered files
rm -r /disk/many
take_down files

# A file that another group has read: its pages stay that group's, in its colours.
forget_cache
cat /disk/some >/dev/null
set_up reader 3 hard
check "a file of others is mapped" inside reader frames random /disk/some 0008
check "nobody suffers" nobody_suffered reader
# Frames that a page table needs, and others that were brought in meanwhile, are few.
check "it takes nothing of the colors" sh -c "held 0008 /cgroup/reader | awk '\$1 == \"own\" { exit \$2 > 512 }'"
take_down reader

# Moving a process moves no page; what comes then is of the new group.
mkfifo /tmp/gate
frames stay 4 ffff </tmp/gate >/tmp/stay &
mover=$!
exec 8>/tmp/gate
for _ in $(seq 300); do
    grep -q touched /tmp/stay && break
    sleep 0.1
done
set_up new 4 hard
echo $mover >/cgroup/new/cgroup.procs
held 0010 /cgroup/new >/tmp/moved
exec 8>&-
wait $mover
check "a process that is moved keeps its pages" grep -q 'outside 0 missing 0' /tmp/stay
take_down new
rm -f /tmp/gate /disk/large /disk/some
check "the books are right" grep -qx ok $P/check
check "nobody has colors" others_are 0-15
echo "$proactiveness_at_first" >$proactiveness
