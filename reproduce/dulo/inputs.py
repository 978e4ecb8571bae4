#!/usr/bin/env python3
"""Makes the inputs of `piebald reproduce dulo`, and compares their sums with `inputs.sha256`.

    inputs.py DIR [--sums]     --sums prints the sums instead of comparing them

    viewperf tpc-h glimpse cscope gcc .fpt.zst     page traces, one task each
    multi1 multi2 .fpt.zst                         two mixes of them, a task for each program
    st39102lw.layout.zst                           where their files lie on the simulated disk
    lxr/NNN-KEYWORD.fpt.zst, lxr/results           what a query of LXR reads, and bytes it returns
    lxr/clients                                    the keywords of each client, in its order
    lxr/real.layout.zst, lxr/contiguous.layout.zst the two layouts of LXR's files
"""

import os
import random
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tpch  # noqa: E402
import viewperf  # noqa: E402
from traces import HEADER, HERE, Disk, Output, Recording  # noqa: E402

TASKS = {"viewperf": 1, "cscope": 2, "gcc": 3, "glimpse": 4, "tpc-h": 5}
MIXES = {"multi1": ("cscope", "gcc", "viewperf"), "multi2": ("glimpse", "tpc-h")}

# Pages that a program of a mix reads before it is another's turn. Interleaving cost multi1
# 4 points of sequential share (table 2: 75 %; its programs alone, weighted by their
# accesses, 79 % [M]), which is a change of program every 25 to 50 references.
BURST = 32

CLIENTS, QUERIES = 25, 1_000  # section 4.2.3; far more queries than 15 minutes allow
CLIENTS_SEED = 42

FLUSH = 1 << 20  # characters gathered before they are packed


class Program:
    """A program: its files by number, its accesses, and its own trace."""

    def __init__(self, directory, name, disk):
        self.name, self.task, self.disk = name, TASKS[name], disk
        self.recording = Recording(name) if name in ("cscope", "gcc", "glimpse") else None
        self.files, self.total = self.extent()
        self.out = Output(directory, name + ".fpt")
        self.out.write(HEADER + disk.table(self.files))

    def extent(self):
        """The files, and how many pages are accessed (of a drawn program, about)."""
        numbers = self.disk.numbers
        if self.name == "tpc-h":
            return {n for file, n in numbers.items() if file.startswith("tpch/")}, tpch.ACCESSES
        if self.name == "viewperf":
            return {numbers[file] for file, _ in viewperf.files()}, sum(n for _, _, n in viewperf.accesses())
        accesses = self.recording.accesses
        return {file for _, file, _, _ in accesses}, sum(n for _, _, _, n in accesses)

    def calls(self):
        """(pages, lines), call by call."""
        if self.name == "tpc-h":
            return tpch.pieces(self.task, self.disk)
        if self.name == "viewperf":
            numbers = [self.disk.numbers[file] for file, _ in viewperf.files()]
            accesses = (("R", numbers[file], first, n) for file, first, n in viewperf.accesses())
        else:
            accesses = self.recording.accesses
        return ((n, f"{letter} {self.task} {file} {first} {n}\n") for letter, file, first, n in accesses)

    def pieces(self):
        """The calls, written to the program's own trace on the way."""
        texts, size = [], 0
        for call in self.calls():
            yield call
            texts.append(call[1])
            size += len(call[1])
            if size >= FLUSH:
                self.out.write("".join(texts))
                texts, size = [], 0
        self.out.write("".join(texts))


def gathered(stream):
    """Joins short texts into long ones."""
    texts, size = [], 0
    for text in stream:
        texts.append(text)
        size += len(text)
        if size >= FLUSH:
            yield "".join(texts)
            texts, size = [], 0
    yield "".join(texts)


def turns(sources):
    """Merges (total, pieces): always the one that is least far, for a burst; all end together."""
    done = [0] * len(sources)
    totals = [total for total, _ in sources]
    streams = [iter(stream) for _, stream in sources]
    while streams:
        turn = min(range(len(streams)), key=lambda i: done[i] / totals[i])
        stream, burst = streams[turn], 0
        for pages, text in stream:
            burst += pages
            yield text
            if burst >= BURST:
                break
        else:
            for column in (done, totals, streams):
                del column[turn]
            continue
        done[turn] += burst


def mix(directory, name, disk):
    """Writes a mix and the traces of its programs; returns the lines of their sums."""
    programs = [Program(directory, part, disk) for part in MIXES[name]]
    out = Output(directory, name + ".fpt")
    out.write(HEADER + disk.table(set().union(*(program.files for program in programs))))
    for text in gathered(turns([(program.total, program.pieces()) for program in programs])):
        out.write(text)
    return [program.out.close() for program in programs] + [out.close()]


def layout(directory, name, extents):
    """Writes a layout: (path, [(first page of the file, page of the disk, pages)])."""
    out = Output(directory, name + ".layout")
    lines = (f"{path} {logical} {physical} {pages}\n" for path, all in extents for logical, physical, pages in all)
    for text in gathered(lines):
        out.write(text)
    return out.close()


def contiguous(disk):
    """LXR's files one after the other, in the order in which glimpse numbers them and so
    partition by partition; its own files before them."""
    order = [n for n, name in enumerate(disk.names) if name.startswith("glimpse/")]
    order += [n for n, name in enumerate(disk.names) if name.startswith("lxr/")]
    page = 0
    for n in order:
        pages = -(-disk.bytes[n] // 4096)
        yield disk.names[n], [(0, page, pages)]
        page += pages


def lxr(directory):
    """Writes LXR's queries, clients and layouts."""
    disk, recording = Disk("wd400bb"), Recording("lxr")
    directory = os.path.join(directory, "lxr")
    sums = [layout(directory, "real", zip(disk.names, disk.extents)),
            layout(directory, "contiguous", contiguous(disk))]
    for number, (label, _) in enumerate(recording.queries):
        accesses = recording.query(number)
        out = Output(directory, label + ".fpt")
        out.write(HEADER + disk.table({file for _, file, _, _ in accesses}))
        out.write("".join("%s 1 %d %d %d\n" % access for access in accesses))
        sums.append(out.close())
    draw = random.Random(f"clients {CLIENTS_SEED}").random
    count = len(recording.queries)
    out = Output(directory, "clients")
    for _ in range(CLIENTS):
        out.write(" ".join(str(int(count * draw())) for _ in range(QUERIES)) + "\n")
    sums.append(out.close())
    shutil.copyfile(os.path.join(HERE, "recorded", "lxr.results"), os.path.join(directory, "results"))
    return [line.replace("  ", "  lxr/") for line in sums]


def main():
    words = [word for word in sys.argv[1:] if word != "--sums"]
    if len(words) != 1:
        raise SystemExit("inputs.py: give one directory, and at most --sums")
    disk = Disk("st39102lw")
    os.makedirs(words[0], exist_ok=True)
    sums = [layout(words[0], "st39102lw", zip(disk.names, disk.extents))]
    for name in MIXES:
        sums += mix(words[0], name, disk)
    sums += lxr(words[0])
    if "--sums" in sys.argv:
        print("\n".join(sums))
        return
    with open(os.path.join(HERE, "inputs.sha256")) as file:
        wanted = set(file.read().splitlines())
    wrong = [line for line in sums if line not in wanted]
    if wrong or len(wanted) != len(sums):
        names = ", ".join(line.split("  ")[1] for line in wrong) or "a file is missing"
        raise SystemExit(f"inputs.py: not as in inputs.sha256: {names}")


if __name__ == "__main__":
    main()
