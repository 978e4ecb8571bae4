"""Draws the stand-in for tpc-h: lookups in the recorded trees, page by page."""

from bisect import bisect_right

import tpch_shape
from traces import recorded

ACCESSES = 13_500_000  # table 2
SEED = 1


class Tree:
    """One file: for each leaf, the lines of a trace that lead to it."""

    def __init__(self, task, file, rows, leaves):
        self.rows, self.starts, self.reach, self.step = rows, [], [], []
        row, before = 0, ()
        for pages, count in leaves:
            shared = next((i for i, (a, b) in enumerate(zip(before, pages)) if a != b), 0)
            self.starts.append(row)
            self.reach.append(self.lines(task, file, pages))
            self.step.append(self.lines(task, file, pages[shared:]))
            row, before = row + count, pages
        if row != rows:
            raise SystemExit(f"tpch.trees: {row} rows in file {file}; expected: {rows}")

    @staticmethod
    def lines(task, file, pages):
        return len(pages), "".join(f"R {task} {file} {page} 1\n" for page in pages)

    def lookup(self, first, rows):
        """(pages, lines) of reading `rows` rows from row `first`, counted from 0.

        A scan ends at the row after its last one, for it stops when it sees it."""
        leaf = bisect_right(self.starts, first) - 1
        if rows == 1:
            return self.reach[leaf]
        pages, text = self.reach[leaf]
        last = min(first + rows, self.rows - 1)
        while leaf + 1 < len(self.starts) and self.starts[leaf + 1] <= last:
            leaf += 1
            more, lines = self.step[leaf]
            pages, text = pages + more, text + lines
        return pages, text


def trees(task, disk):
    """The 49 trees, in the order of `tpch_shape.files()`."""
    leaves = []
    for line in recorded("tpch.trees").splitlines():
        word = line.split(" ")
        if word[0] == "T":
            leaves.append([])
        else:
            leaves[-1].append((tuple(map(int, word[1:-1])), int(word[-1])))
    files = tpch_shape.files()
    return [Tree(task, disk.numbers["tpch/" + name], rows, found)
            for (name, rows, _), found in zip(files, leaves, strict=True)]


def pieces(task, disk, accesses=ACCESSES):
    """(pages, lines) of one lookup after the other, whole walks until `accesses` are reached."""
    lookup = [tree.lookup for tree in trees(task, disk)]
    done = 0
    for walk in tpch_shape.walks(SEED):
        for file, first, rows in walk:
            piece = lookup[file](first, rows)
            done += piece[0]
            yield piece
        if done >= accesses:
            return
