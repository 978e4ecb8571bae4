#!/usr/bin/env python3
"""Packs page traces of real runs and the layout of their files into what is committed.

    pack.py OUT DISK ROOT [NAME=GLOB]...

Writes OUT/DISK.files, a line `NAME BYTES LOGICAL:PHYSICAL:PAGES...` for each file below ROOT
that a run touched (names are replaced by the group and a number, in order of first use), and
OUT/NAME.rec for each NAME, from the traces that GLOB matches, in order: `Q label` where
another program starts, then `R|W file first pages`, file a line number of DISK.files.
`--all DIRECTORY` adds every file below it by its own name; `--order LIST` numbers the files
that a glimpse index lists in that order, first of all.
`--renamed OLD=NEW` takes accesses to OLD as ones to NEW, which it became.
Accesses to files that are gone since (those between two compilers) are left out and counted.
"""

import glob
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from fiemap import extents  # noqa: E402

GROUPS = {"usr": "usr", "gidx": "glimpse", "kernel": "kernel", "cs": "cscope", "lxr": "lxr"}


class Files:
    """Files of a disk by first use."""

    def __init__(self, root):
        self.root, self.lines, self.number, self.counts = root.rstrip("/") + "/", [], {}, {}
        self.renamed = {}

    def of(self, path, name=None):
        """The number of a file, or None if it is gone."""
        path = self.renamed.get(path, path)
        if path not in self.number:
            self.number[path] = self.enter(path, name)
        return self.number[path]

    def enter(self, path, name):
        if not os.path.isfile(path):
            return None
        top = path.removeprefix(self.root).split("/")[0]
        count = self.counts[top] = self.counts.get(top, 0) + 1
        where = " ".join("%d:%d:%d" % e for e in extents(path))
        name = name or f"{GROUPS[top]}/{count - 1:05}"
        self.lines.append(f"{name} {os.path.getsize(path)} {where}".rstrip() + "\n")
        return len(self.lines) - 1


def packed(files, traces):
    """Lines of a recording, and how many accesses were left out."""
    out, gone = [], 0
    for trace in traces:
        out.append(f"Q {os.path.basename(trace).removesuffix('.fpt')}\n")
        table = {}
        for line in open(trace):
            word = line.split()
            if word[0] == "F":
                table[word[1]] = line.rstrip("\n").split(" ", 3)[3]
            elif word[0] in "RW":
                number = files.of(table[word[2]])
                if number is None:
                    gone += 1
                else:
                    out.append(f"{word[0]} {number} {word[3]} {word[4]}\n")
    return out, gone


def main():
    out, disk, root, *rest = sys.argv[1:]
    files = Files(root)
    while rest and rest[0] == "--order":
        for line in open(rest[1]).read().split("\n")[1:]:
            if line:
                files.of(line)
        rest = rest[2:]
    while rest and rest[0] == "--all":
        for directory, below, names in os.walk(os.path.join(root, rest[1])):
            below.sort()
            for name in sorted(names):
                path = os.path.join(directory, name)
                files.of(path, path.removeprefix(files.root))
        rest = rest[2:]
    while rest and rest[0] == "--renamed":
        old, new = (files.root + path for path in rest[1].split("="))
        files.renamed[old] = new
        rest = rest[2:]
    for word in rest:
        name, pattern = word.split("=")
        lines, gone = packed(files, sorted(glob.glob(pattern)))
        open(os.path.join(out, name + ".rec"), "w").writelines(lines)
        print(name, len(lines), "lines;", gone, "accesses to files that are gone")
    open(os.path.join(out, disk + ".files"), "w").writelines(files.lines)


main()
