"""Misses of libCacheSim's policies on two generated traces of objects of different sizes.

sized.py COUNTS

Needs libcachesim 0.3.5 and numpy from PyPI. Writes testdata/libcachesim/sized-0.3.5.tsv, which
crates/sim/src/replay/sized/libcachesim.rs compares with ours: it draws the same traces.
"""
import importlib.metadata
import pathlib
import sys
import tempfile

import libcachesim as lcs
import numpy as np

RECORD = np.dtype([("time", "<u4"), ("id", "<u8"), ("size", "<u4"), ("next", "<i8")])
REQUESTS = 60_000
OBJECTS = 2_000
CAPACITIES = [100_000, 1_000_003, 8_000_000]
POLICIES = ["LRU", "FIFO", "Clock", "Sieve", "S3FIFO"]


def requests(changes):
    """Objects and sizes: few objects are used often, one in 20 is 30 times as large. With
    `changes` each request says one of three sizes."""
    state = 7

    def below(n):
        nonlocal state
        state = (state * 6_364_136_223_846_793_005 + 1) % 2**64
        return (state >> 33) % n

    for _ in range(REQUESTS):
        number = below(OBJECTS) * below(OBJECTS) // OBJECTS + 1
        size = number * 7_919 % 4_999 + 1
        if number % 20 == 7:
            size *= 30
        if changes:
            size += below(3) * 500
        yield number, size


def digest(trace):
    """FNV-1a over objects and sizes."""
    value = 0xCBF29CE484222325
    for pair in trace:
        for number in pair:
            value = (value ^ number) * 0x100000001B3 % 2**64
    return value


def write(path, trace):
    """The trace as oracleGeneral."""
    records = np.zeros(len(trace), dtype=RECORD)
    following = {}
    for at in range(len(trace) - 1, -1, -1):
        number, size = trace[at]
        records[at] = (at, number, size, following.get(number, -1))
        following[number] = at + 1
    records.tofile(path)


def main():
    version = importlib.metadata.version("libcachesim")
    lines = [
        f"# Misses and missed bytes of libCacheSim {version} (libcachesim on PyPI), default options of its Python classes,",
        "# on traces of objects of different sizes. Written by bench/libcachesim/sized.py, which makes the traces, too.",
        "# trace: name, requests, bytes asked for, FNV-1a of objects and sizes",
        "# misses: trace, policy, bytes of the cache, misses, missed bytes",
    ]
    for name, changes in [("sizes", False), ("changing", True)]:
        trace = list(requests(changes))
        asked = sum(size for _, size in trace)
        lines.append(f"trace\t{name}\t{len(trace)}\t{asked}\t{digest(trace):016x}")
        with tempfile.TemporaryDirectory() as folder:
            path = str(pathlib.Path(folder) / "trace")
            write(path, trace)
            for policy in POLICIES:
                for capacity in CAPACITIES:
                    reader = lcs.TraceReader(path, lcs.TraceType.ORACLE_GENERAL_TRACE)
                    cache = getattr(lcs, policy)(capacity)
                    misses, missed = cache.process_trace(reader)
                    misses, missed = round(misses * len(trace)), round(missed * asked)
                    lines.append(f"misses\t{name}\t{policy}\t{capacity}\t{misses}\t{missed}")
    pathlib.Path(sys.argv[1]).write_text("\n".join(lines) + "\n")


main()
