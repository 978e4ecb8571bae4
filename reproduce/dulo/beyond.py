#!/usr/bin/env python3
"""Tables of what DULO adds to each base, from the replays of beyond.sh."""

import json
import sys
from pathlib import Path

BASES = ["clock", "arc", "lirs", "s3-fifo"]
DEVICES = ["st39102lw", "sata-7200", "sata-ssd", "nvme"]
TRACES = ["P3", "P6", "cloudPhysicsIO", "cloud_storage-sample"]
MIB = 256  # pages


def runs_of(path):
    return {(r["policy"], r["size_pages"]): r for r in json.loads(path.read_text())["runs"]}


def change(before, after):
    return 100 * (after - before) / before


def seconds(run):
    return run["io"]["elapsed_s"]


def ratio(run):
    return 100 * run["hits"] / run["references"]


def cell(plain, with_dulo):
    time = change(seconds(plain), seconds(with_dulo))
    return f"{time:+.1f} ({ratio(with_dulo) - ratio(plain):+.1f})"


def table(folder, trace):
    print(f"\n## {trace}\n")
    print("| device | memory, MiB | base | time, s | hits, % | DULO, uniform cost | DULO, cost of the disk |")
    print("|---|---|---|---|---|---|---|")
    for device in DEVICES:
        runs = runs_of(folder / f"{trace}.{device}.json")
        for size in sorted({size for _, size in runs}):
            for base in BASES:
                plain = runs[base, size]
                uniform, disk = (runs[f"dulo:base={base}{more}", size] for more in ("", ",cost=disk"))
                row = [device, f"{size / MIB:.0f}", base, f"{seconds(plain):.4g}", f"{ratio(plain):.1f}"]
                print("| " + " | ".join(row + [cell(plain, uniform), cell(plain, disk)]) + " |")


def main():
    folder = Path(sys.argv[1])
    for trace in TRACES:
        table(folder, trace)


if __name__ == "__main__":
    main()
