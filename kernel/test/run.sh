#!/bin/sh
# The module's test, inside the guest; kernel/test.sh starts it.
#
# The words piebald_parts=PART,... on the kernel's command line leave the other ones of pages, contracts, huge, groups and
# srm out; without them all run.
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
parts=$(sed -n 's/.*piebald_parts=\([a-z,]*\).*/\1/p' /proc/cmdline)
part() {
    case ",${parts:-$1}," in
        *",$1,"*) ;;
        *) return 1 ;;
    esac
}
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

# --- the parts ----------------------------------------------------------------------

# shellcheck source-path=SCRIPTDIR source=pages.sh
! part pages || . /pages.sh
# The others begin without swap.
swapoff -a
# shellcheck source-path=SCRIPTDIR source=contracts.sh
! part contracts || . /contracts.sh
# shellcheck source-path=SCRIPTDIR source=huge.sh
! part huge || . /huge.sh
# shellcheck source-path=SCRIPTDIR source=groups.sh
! part groups || . /groups.sh
# shellcheck source-path=SCRIPTDIR source=srm.sh
! part srm || . /srm.sh
swapoff -a
swapon /dev/vdb
# shellcheck source-path=SCRIPTDIR source=unload.sh
. /unload.sh

# --- what is left -------------------------------------------------------------------

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
