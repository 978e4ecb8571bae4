#!/bin/bash
# Replays real block traces on four devices with several policies, and with DULO on top of
# each: beyond.sh TRACES FOLDER writes FOLDER/*.json and prints the tables of beyond.md.
# TRACES is the folder of third-party traces (see testdata/replay/README.md).
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
traces=${1:?usage: beyond.sh TRACES FOLDER}
out=${2:?usage: beyond.sh TRACES FOLDER}
piebald=${PIEBALD:-piebald}
mkdir -p "$out"

policies=clock
for base in clock arc lirs s3-fifo; do
    [ "$base" = clock ] || policies+=",$base"
    policies+=",dulo:base=$base,dulo:base=$base;cost=disk"
done

for trace in arc/P3.lis.zst arc/P6.lis.zst block/cloudPhysicsIO.vscsi block/cloud_storage-sample.bz2; do
    for device in st39102lw sata-7200 sata-ssd nvme; do
        name=$(basename "${trace%%.*}")
        "$piebald" replay "$traces/$trace" --policy "$policies" --size '2%,10%,25%' \
            --device "$device" --json="$out/$name.$device.json" -q >"$out/$name.$device.txt"
    done
done

python3 "$here/beyond.py" "$out"
