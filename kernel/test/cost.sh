#!/bin/sh
# Measures the module's cost inside the guest; kernel/cost.sh starts it. Huge pages are off in
# all rows: they are refused while colouring is on, and would hide what a page costs.
P=/proc/piebald
set -e
echo never >/sys/kernel/mm/transparent_hugepage/enabled
sleep 10
cost warm-up >/dev/null
cost "without the module"
insmod /piebald.ko 'map=12;13;14;15'
cost "loaded, off"
echo 1 >$P/on
cost "on, nobody has colors"
echo 1 >$P/srm
cost "on, SRM-buffer"
echo 0 >$P/srm
sleep 1000 &
echo "$! 0-3" >$P/tasks
cost "on, others have 4 of 16 colors"
echo "$! none" >$P/tasks
sh -c "
    echo \"\$\$ 0-3 hard\" >$P/tasks
    cost 'on, with 4 of 16 colors, after others'
    cost 'on, with 4 of 16 colors'"
echo 0 >$P/on
cost "off again"
