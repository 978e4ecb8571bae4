#!/bin/sh
# Measures the module's cost inside the guest; kernel/cost.sh starts it. Huge pages are off in
# all rows: they are refused while colouring is on, and would hide what a page costs.
P=/proc/piebald
C=/sys/kernel/config/piebald
set -e
echo never >/sys/kernel/mm/transparent_hugepage/enabled
sleep 10
[ ! -e /piebald_model.ko ] || insmod /piebald_model.ko
# A build: the compiler, from one of the tests (nodes.c) with its headers to assembly.
# Or several processes at once, each on its processor.
several=$(cat /options)
if [ -z "$several" ]; then
    cat >/tmp/each <<'EACH'
#!/bin/sh
exec cost "$1" /cc1 -quiet -fpreprocessed -O2 -o /tmp/cost.s /cost.i
EACH
else
    cat >/tmp/each <<EACH
#!/bin/sh
exec cost $several "\$1"
EACH
fi
chmod +x /tmp/each
/tmp/each warm-up >/dev/null
/tmp/each "without the module"
mount -t configfs configfs /sys/kernel/config
mkdir /cgroup
mount -t cgroup2 cgroup /cgroup
echo +memory >/cgroup/cgroup.subtree_control
mkdir /cgroup/four
# The kernel's own accounting of a group's memory costs something as well.
sh -c "
    echo \$\$ >/cgroup/four/cgroup.procs
    /tmp/each 'without the module, in a control group'"
insmod /piebald.ko 'map=12;13;14;15'
/tmp/each "loaded, off"
echo 1 >$P/on
# What the kernel calls for the trial of its functions is taken out after ten seconds.
sleep 15
/tmp/each "on, nobody has colors"
echo 1 >$P/srm
/tmp/each "on, SRM-buffer"
echo 0 >$P/srm
mkdir $C/four
echo hard >$C/four/mode
echo /four >$C/four/attach
echo 0-3 >$C/four/colors
/tmp/each "on, others have 4 of 16 colors"
# From boot to boot a fork differs by several percent.
[ -n "$several" ] || cost -a $P/on "on and off by turns, others have 4 of 16 colors"
sh -c "
    echo \$\$ >/cgroup/four/cgroup.procs
    /tmp/each 'on, with 4 of 16 colors, after others'
    /tmp/each 'on, with 4 of 16 colors'"
# One color can never be had: what the way to a frame costs, without what few colors cost.
echo 0-14 >$C/four/colors
sh -c "
    echo \$\$ >/cgroup/four/cgroup.procs
    /tmp/each 'on, with 15 of 16 colors'"
echo 0 >$P/on
sleep 5
/tmp/each "off again"
