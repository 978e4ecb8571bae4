#!/bin/sh
# The test of the verbs for a live Linux, inside the guest; crates/linux/guest/test.sh starts it.
#
# The map of colours is address bits 12-15, which is what `frames` looks at.

# shellcheck source-path=SCRIPTDIR source=checks.sh
. /checks.sh

# --- without the module -----------------------------------------------------------

echo 'root:x:0:0::/:/bin/sh
nobody:x:65534:65534::/:/bin/sh' >/etc/passwd
mount -t cgroup2 cgroup2 /sys/fs/cgroup || exit 1
fails "no status without the module" 1 "not loaded" piebald status
fails "no colors without the module" 125 "piebald load" piebald run --colors 0 -- true
fails "nothing to unload" 1 "not loaded" piebald unload
fails "no module in that file" 1 "no module of the running kernel" piebald load /init
fails "no sources to build it from" 1 "kernel/build.sh" piebald load
fails "nobody loads" 1 "not permitted" su nobody -s /bin/sh -c 'piebald load /piebald.ko'
fails "no map of bits that no memory has" 2 "0 in all memory" piebald load /piebald.ko --map 12,29
check "the probe knows this kernel" says "the module can be loaded" piebald probe --no-measure
check "the probe measures" sh -c 'piebald probe --rounds 3 --quiet | tee /tmp/probe; ! grep -q "will isolate programs here: " /tmp/probe'
sed 's/^/    /' /tmp/probe

# --- load, status -----------------------------------------------------------------

check "loads, off" says "loaded" piebald load /piebald.ko
check "status: off, without a map" says "none: no map is set" piebald status
fails "off: no colors" 125 "coloring is off" piebald run --colors 0 -- true
fails "it is loaded already" 1 "loaded already" piebald load /piebald.ko
check "a map switches it on" says "on, 16 colors from address bits 12,13,14,15" piebald load --map 12-15
check "status: on" says "16, from address bits 12,13,14,15" piebald status
fails "no other map while on" 1 "cannot change while coloring is on" piebald load --map 12-14
fails "nobody looks" 1 "not permitted" su nobody -s /bin/sh -c 'piebald status'
check "unloads" piebald unload
# As DKMS leaves it on Debian.
installed=/lib/modules/$(uname -r)/updates/dkms
mkdir -p "$installed"
mv /piebald.ko.xz "$installed"
check "loads what is installed, compressed as it is" says "loaded" piebald load
check "which is the module" says "none: no map is set" piebald status
check "and unloads it" piebald unload
rm -r "$installed"
check "loads with a map in one go" says "on, 16 colors" piebald load /piebald.ko --map 12,13,14,15

# --- run --------------------------------------------------------------------------

check "without colors: all" frames anon 8 ffff
check "colors 0-3" piebald run --colors 0-3 -- frames anon 4 000f
check "colors 0-3, hard, of a child" piebald run --colors 0-3 --hard -- frames fork 4 000f
check "a quarter of the colors" piebald run --share 25% -- frames anon 4 000f
check "colors 2,5" piebald run --colors 2,5 -- sh -c 'frames anon 4 0024'
fails "the status is the program's" 37 "from the program" piebald run --colors 1 -- sh -c 'echo from the program; exit 37'
fails "a signal is the program's" 143 "" sh -c 'piebald run --colors 1 -- sh -c "kill -TERM \$\$"'
fails "no such program" 127 "no-such-program" piebald run --colors 1 -- no-such-program
fails "no such color" 125 "refused" piebald run --colors 16 -- true
fails "used-up hard colors kill" 137 "" sh -c 'piebald run --colors 1 --hard -- frames hog 128 0'
# Sets and groups go with their last process; somebody waits for that beside it.
gone() {
    for _ in $(seq 600); do
        [ -z "$(ls /sys/kernel/config/piebald)$(ls -d /sys/fs/cgroup/piebald-run-* 2>/dev/null)" ] && return
        sleep 0.1
    done
    ls /sys/kernel/config/piebald /sys/fs/cgroup
    return 1
}
check "sets and groups are gone" gone
check "the colors are free again" says "others    0-15" piebald status
check "its processes inherit" piebald run --colors 2 -- sh -c "sh -c 'frames anon 2 0004' & wait \$!"
mkfifo /tmp/stay
check "a child that goes on keeps the colors" piebald run --colors 3 -- sh -c 'read -r x </tmp/stay >/dev/null 2>&1 &'
check "as long as it lives" says "others    0-2,4-15" piebald status
# Whether somebody reads or not.
echo 1<>/tmp/stay
check "and no longer" gone

# --- running processes ------------------------------------------------------------

sleep 1000 &
pid=$!
check "a running process gets colors" piebald run --pid "$pid" --colors 0-7 --hard
check "it is listed" says "0-7 hard of /piebald-run-$pid" piebald status
check "in JSON as well" says "\"colors\": \"0-7\"" piebald status --json
check "it is in its group" grep -qx "$pid" "/sys/fs/cgroup/piebald-run-$pid/cgroup.procs"
check "others stay out" frames anon 8 ff00
check "others may share its colors" piebald run --colors 7-8 -- frames anon 4 0180
check "and loses them" piebald run --pid "$pid" --none
# Nobody has colors now, and the kernel gives frames in its own order: single frames that came back
# first, which may be of few colors.
given_back() { frames anon 8 ff00 | grep -q 'outside [1-9]'; }
check "others have them" given_back
fails "it has no colors to move to" 1 "no colors" piebald recolor "$pid"
fails "nor colors to lose" 1 "no colors of its own" piebald run --pid "$pid" --none
kill "$pid"
wait "$pid" 2>/dev/null
fails "no such process" 1 "no process 4000000" piebald run --pid 4000000 --colors 1

# A shell's own memory is looked at from outside, through its page table. It begins nothing meanwhile, as
# it would share all pages with a child that has no program of its own yet.
mkfifo /tmp/hold
sh -c 'x=$(head -c 2000000 /dev/zero | tr "\0" x); echo "${#x}" >/tmp/ready; read -r x </tmp/hold' &
pid=$!
for _ in $(seq 60); do
    [ -s /tmp/ready ] && break
    sleep 1
done
check "a running shell gets color 9" piebald run --pid "$pid" --colors 9
checks=$((checks + 1))
piebald recolor "$pid" >/tmp/moved 2>&1
moved=$(sed -n 's/^\([0-9]*\) pages moved.*/\1/p' /tmp/moved)
if [ "${moved:-0}" -gt 300 ]; then
    echo "ok its pages move ($(cat /tmp/moved))"
else
    failed=$((failed + 1))
    echo "FAILED its pages move: $(cat /tmp/moved)"
fi
check "a second time there is nothing to move" says "0 pages moved" piebald recolor "$pid"
kill "$pid"
wait "$pid" 2>/dev/null

# --- compare ----------------------------------------------------------------------

check "a program is compared" piebald compare --pairs 3 --colors 0-3 --quiet -- frames hog 8 0
sed 's/^/    /' /tmp/output
# Runs that are off do not get what runs with few colours have left.
check "on in its own colors, off in all alike" piebald compare --pairs 4 --quiet --colors 0-3 -- sh -c '
    if grep -q 1 /proc/piebald/on; then frames anon 4 000f; else frames anon 4 ffff; fi'
fails "and in no others" 1 "with coloring on" piebald compare --quiet --colors 0-3 -- sh -c '
    if grep -q 1 /proc/piebald/on; then frames anon 4 00f0; fi'
fails "it is off in between" 1 "with coloring off" piebald compare --quiet --colors 0-3 -- grep -q 1 /proc/piebald/on
check "coloring is on again" says "coloring  on" piebald status
check "nobody has colors" says "others    0-15" piebald status

# --- a report of the computer -------------------------------------------------------

report() { piebald hardware-report /piebald.ko --map 12-15 --pairs 3 --rounds 3 --size 1 --quiet "$@"; }
fails "no report while somebody may use the module" 1 "somebody may use it" report
check "the module goes" piebald unload
fails "no report without a place for it" 2 "/no/report.json" report --json=/no/report.json
fails "no report with two colors" 2 "allowed: 4 or more" piebald hardware-report /piebald.ko --map 12 --rounds 3 --quiet
check "a report" says "its self-test passed; books: right" report --json=/tmp/report.json
sed 's/^/    /' /tmp/said
check "four states of three costs, and three neighbours" test "$(grep -c '"what":' /tmp/report.json)" = 15
check "it says which computer" grep -q '"processor": "QEMU' /tmp/report.json
check "the module is out again" test ! -e /proc/piebald
timeout -s INT 10 piebald hardware-report /piebald.ko --map 12-15 --rounds 3 --size 16 --quiet
check "also after an interrupt" test ! -e /proc/piebald
check "and no file stays" sh -c '! ls /tmp/piebald-report-*'
check "loads again" says "on, 16 colors" piebald load /piebald.ko --map 12-15

# --- the end ----------------------------------------------------------------------

check "the books are right" grep -qx ok /proc/piebald/check
check "a set of somebody's own" mkdir /sys/kernel/config/piebald/mine
check "goes with the module" says "unloaded" piebald unload
check "the tree is gone" test ! -e /proc/piebald -a ! -e /sys/kernel/config/piebald
ends
