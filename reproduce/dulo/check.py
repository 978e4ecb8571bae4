#!/usr/bin/env python3
"""Compares the inputs of `piebald reproduce dulo` with table 2 of the paper.

    check.py DIR [NAME...]      DIR as `inputs.py` filled it; all five traces if none is named

Counts, in the traces as they lie there: pages referenced; the bytes of the files that they
are of; those files; and references to the page after the one that the same task referred to
before. Fails if a count is beyond what `inputs.toml` allows.
"""

import os
import subprocess
import sys
import tomllib

HERE = os.path.dirname(os.path.abspath(__file__))


def counted(path):
    """(references, bytes of files, files, pages touched, sequential, sequential in trace order)."""
    size, known, pages = {}, {}, set()
    total = sequential = in_order = 0
    next_of, before = {}, None
    with subprocess.Popen(["zstd", "-dcq", path], stdout=subprocess.PIPE) as source:
        for line in source.stdout:
            access = known.get(line)
            if access is None:
                word = line.split(b" ", 4)
                if word[0] == b"F":
                    size[int(word[1])] = int(word[2])
                if word[0] not in (b"R", b"W"):
                    continue
                task, file, first, count = map(int, word[1:])
                # A file's pages as one range of numbers, so that an access is two of them.
                start = file << 32 | first
                access = known[line] = task, start, count, start + count
                pages.update(range(start, start + count))
            task, start, count, end = access
            total += count
            sequential += count - 1 + (next_of.get(task) == start)
            in_order += count - 1 + (before == start)
            before = next_of[task] = end
    if source.returncode != 0:
        raise SystemExit(f"{path}: zstd failed")
    used = {page >> 32 for page in pages}
    if used - size.keys():
        raise SystemExit(f"{path}: files that are not declared: {sorted(used - size.keys())[:5]}")
    beyond = [page for page in pages if (page & 0xFFFFFFFF) * 4096 >= max(size[page >> 32], 1)]
    if beyond:
        raise SystemExit(f"{path}: {len(beyond)} pages beyond the end of their files, as page {beyond[0]:#x}")
    return total, sum(size[f] for f in used), len(used), len(pages), sequential, in_order


def main():
    if len(sys.argv) < 2:
        raise SystemExit("check.py: give the directory of the inputs")
    with open(os.path.join(HERE, "inputs.toml"), "rb") as file:
        settings = tomllib.load(file)
    wanted = sys.argv[2:] or [i["name"] for i in settings["input"] if "paper" in i]
    within, points = settings["table2"]["within_percent"], settings["table2"]["within_points"]
    print(f"{'':9}{'accesses M':>16}{'MB':>14}{'files':>16}{'sequential %':>16}{'MB of pages':>13}{'in order %':>12}")
    failed = False
    for one in settings["input"]:
        if one["name"] not in wanted:
            continue
        total, size, files, pages, sequential, in_order = counted(os.path.join(sys.argv[1], one["name"] + ".fpt.zst"))
        ours = (total / 1e6, size / 2**20, files, 100 * sequential / total)
        paper = one.get("paper", {})
        theirs = [paper.get(key) for key in ("accesses_millions", "megabytes", "files", "sequential_percent")]
        cells = ["%.2f" % ours[0], "%.0f" % ours[1], "%d" % ours[2], "%.1f" % ours[3]]
        beside = [cell if their is None else f"{cell} ({their})" for cell, their in zip(cells, theirs)]
        print("%-9s%16s%14s%16s%16s%13.0f%12.1f" % (one["name"], *beside, pages / 256, 100 * in_order / total))
        for what, our, their in zip(("accesses", "MB", "files"), ours, theirs):
            # A count that the paper rounds to 0.1 million may be off by half of that.
            slack = 0.05 if what == "accesses" else 0
            if their is not None and abs(our - their) > their * within / 100 + slack:
                failed = True
                print(f"  {what}: more than {within} % from the paper's")
        if theirs[3] is not None and abs(ours[3] - theirs[3]) > points:
            failed = True
            print(f"  sequential references: more than {points} points from the paper's")
    if failed:
        raise SystemExit(1)


main()
