#!/bin/sh
# The kernel's own tests in one state of the module, inside a guest; kernel/selftests.sh starts it, with the state on
# the kernel's command line. Prints a line "verdict TEST<TAB>PART<TAB>VERDICT" for each part of a test that says
# itself how it went, and one without a part for its exit status.

P=/proc/piebald
C=/sys/kernel/config/piebald
# shellcheck source-path=SCRIPTDIR source=common.sh
. /common.sh

CONTROLLERS="+memory +cpuset +pids +hugetlb +cpu"
state=$(sed -n 's/.*\bstate=\([a-z]*\).*/\1/p' /proc/cmdline)
nodes=$(set -- /sys/devices/system/node/node[0-9]* && echo $#)

mount_groups() { mount -t cgroup2 -o nsdelegate,memory_recursiveprot,memory_hugetlb_accounting cgroup /cgroup; }

if [ "${1:-}" != inside ]; then
    mkdir -p /disk /cgroup /dev/shm /dev/hugepages
    mount -t ext4 /dev/vda /disk || exit 1
    mount -t tmpfs tmpfs /dev/shm
    mount -t configfs configfs /sys/kernel/config || exit 1
    mount_groups || exit 1
    echo "$CONTROLLERS" >/cgroup/cgroup.subtree_control || exit 1
    swapon /dev/vdb || exit 1
    ip link set lo up
    case $state in
        without) ;;
        off) insmod /piebald.ko "map=12;13;14;15" || exit 1 ;;
        on | hint | hard | srm) insmod /piebald.ko "map=12;13;14;15" on=1 || exit 1 ;;
        *) echo "no state \"$state\""; exit 1 ;;
    esac
    case $state in
        hint) set_up tested 0-7 hint || exit 1 ;;
        hard) set_up tested 0-7 hard || exit 1 ;;
        srm) write srm 1 || { cat $P/error; exit 1; } ;;
    esac
    mkdir -p /cgroup/tested
    # Tests make groups at the root that they see, which a namespace makes the colored one.
    (echo 0 >/cgroup/tested/cgroup.procs && exec /usr/bin/unshare --cgroup --mount "$0" inside) || exit 1
    [ "$state" != without ] || exit 0
    cat $P/counters
    # Tests that were killed leave processes and groups.
    echo 1 >/cgroup/tested/cgroup.kill
    for _ in $(seq 100); do
        find /cgroup/tested -depth -type d -exec rmdir {} \; 2>/dev/null
        [ -d /cgroup/tested ] || break
        sleep 0.1
    done
    [ ! -d /cgroup/tested ] || { echo "the group of the tests stays"; exit 1; }
    if [ -d $C/tested ]; then rmdir $C/tested || exit 1; fi
    rmmod piebald
    exit
fi

umount /cgroup && mount_groups && mkdir /cgroup/run && echo 0 >/cgroup/run/cgroup.procs || exit 1
echo "$CONTROLLERS" >/cgroup/cgroup.subtree_control || exit 1
cd /disk || exit 1
echo "state $state, memory nodes: $nodes, module: $(head -n 1 $P/status 2>/dev/null)"

# From what a program printed: its parts. The forms are those of kselftest (TAP), whose parts have numbers, of the tests
# of userfaultfd, and of khugepaged.
parts() { # TEST
    sed 's/\x1b\[[0-9;]*m//g; s/\r//g' /tmp/output | awk -v test="$1" '
        function tell(part, verdict, name) { printf "verdict %s\t%s\t%s\t%s\n", test, part, verdict, name }
        function settle() { if (run != "") tell(run, bad ? "fail" : good ? "pass" : "skip", ""); run = "" }
        /^(not )?ok [0-9]+/ {
            verdict = $0 ~ /^not/ ? "fail" : $0 ~ /# ?SKIP/ ? "skip" : "pass"
            sub(/^(not )?ok /, "")
            name = $0
            sub(/^[0-9]+ */, "", name)
            tell($0 + 0, verdict, name)
        }
        /^Testing .*\.\.\. *(done|skipped|failed)/ {
            verdict = /\.\.\. *done/ ? "pass" : /\.\.\. *skipped/ ? "skip" : "fail"
            sub(/^Testing /, "")
            sub(/\.\.\..*/, "")
            tell($0, verdict, "")
        }
        /^Run test: / { settle(); run = substr($0, 11); good = bad = 0 }
        run != "" && /OK$/ { good = 1 }
        run != "" && /Fail$/ { bad = 1 }
        END { settle() }'
}

attempts="1 2 3"
try() { # TEST LIMIT PROGRAM ARGUMENT...
    test=$1 limit=$2
    shift 2
    for attempt in $attempts; do
        begun=$(cut -d. -f1 /proc/uptime)
        timeout -s KILL "$limit" "$@" >/tmp/output 2>&1
        result=$?
        parts "$test"
        case $result in
            0) verdict=pass ;;
            4) verdict=skip ;;
            *) verdict=fail ;;
        esac
        printf 'verdict %s\t\t%s\t\n' "$test" "$verdict"
        echo "$test: $verdict ($result), attempt $attempt, $(($(cut -d. -f1 /proc/uptime) - begun)) s"
        [ $verdict = fail ] || return
        sed 's/\x1b\[[0-9;]*m//g; s/^/    /' /tmp/output | tail -n 40
    done
}

huge() { # PAGES of 2 MiB that lie ready
    echo 3 >/proc/sys/vm/drop_caches
    echo 1 >/proc/sys/vm/compact_memory
    echo "$1" >/proc/sys/vm/nr_hugepages
}

T=/tests
thp=/sys/kernel/mm/transparent_hugepage/enabled
# Their sums are in small pages.
echo never >$thp
if [ "$nodes" = 1 ]; then
    for test in cpuset freezer kill kmem; do try test_$test 600 $T/test_$test; done
    huge 20
    try test_hugetlb_memcg 600 $T/test_hugetlb_memcg
    huge 0
    # Reclaim by generations, and by lists of what was used of late.
    for generations in y n; do
        echo $generations >/sys/kernel/mm/lru_gen/enabled
        try "test_memcontrol, generations $generations" 600 $T/test_memcontrol
    done
    echo y >/sys/kernel/mm/lru_gen/enabled
    echo always >$thp
    for test in mremap_test mremap_dontunmap madv_populate mlock2-tests mlock-random-test mrelease_test \
        soft-dirty mkdirty mdwe_test map_populate map_fixed_noreplace memfd_secret mseal_test droppable; do
        try $test 600 $T/$test
    done
    try compaction_test 600 $T/compaction_test
    huge 40
    try cow 900 $T/cow
    try gup_longterm 600 $T/gup_longterm
    try pagemap_ioctl 600 $T/pagemap_ioctl
    try uffd-unit-tests 900 $T/uffd-unit-tests
    try "uffd-stress hugetlb" 600 $T/uffd-stress hugetlb 32 4
    huge 0
    for kind in anon shmem shmem-private; do
        try "uffd-stress $kind" 600 $T/uffd-stress $kind 20 4
    done
    try khugepaged 1200 $T/khugepaged
    try "khugepaged -s 2" 1200 $T/khugepaged -s 2
    try "khugepaged all:shmem" 1200 $T/khugepaged all:shmem
    try transhuge-stress 600 $T/transhuge-stress -d 5
    # Pages in colors are not merged, which these wait for.
    attempts=1
    for pages in 1 10; do try "ksm_tests -M -p $pages" 100 $T/ksm_tests -l 15 -M -p $pages; done
    try "ksm_tests -U" 100 $T/ksm_tests -l 15 -U
    try "ksm_tests -Z -z 0" 100 $T/ksm_tests -l 15 -Z -p 10 -z 0
    try "ksm_tests -Z -z 1" 100 $T/ksm_tests -l 15 -Z -p 10 -z 1
    try ksm_functional_tests 100 $T/ksm_functional_tests
else
    try test_cpuset 300 $T/test_cpuset
    echo n >/sys/kernel/mm/lru_gen/enabled
    try "test_memcontrol, generations n" 600 $T/test_memcontrol
    echo always >$thp
    huge 40
    try migration 900 $T/migration
    try uffd-unit-tests 900 $T/uffd-unit-tests
    huge 0
    attempts=1
    try "ksm_tests -N -m 1" 100 $T/ksm_tests -l 15 -N -m 1
    try "ksm_tests -N -m 0" 100 $T/ksm_tests -l 15 -N -m 0
fi
exit 0
