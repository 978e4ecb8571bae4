#!/usr/bin/env python3
"""Builds the database of the stand-in for tpc-h with SQLite, and writes down its trees.

    tpch_build.py build DIR SHAPE      makes the 49 files in DIR, and SHAPE from them
    tpch_build.py run DIR WALKS        runs the first WALKS walks in them, to be traced

SHAPE has a line `T name pages` for each file, then a line for each leaf in the order of its
rows: `L levels-above.. page rows`, pages counted from 0, the root first.
"""

import os
import sqlite3
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import tpch_shape as shape  # noqa: E402

PAGE = 4096


def build(path, rows, size):
    """One file: a table of `rows` rows, loaded in the order of their numbers."""
    if os.path.exists(path):
        os.remove(path)
    base = sqlite3.connect(path)
    for pragma in ("page_size=4096", "journal_mode=off", "synchronous=off", "cache_size=-2000"):
        base.execute(f"pragma {pragma}")
    base.execute("create table t(r integer primary key, d)")
    if size:
        data = ((i + 1, "x" * (size - 8)) for i in range(rows))
    else:
        data = ((i + 1, 8_388_608 + i) for i in range(rows))
    base.executemany("insert into t values(?,?)", data)
    base.commit()
    base.close()


def leaves(file, page, above):
    """Leaves below a page of a table's tree, in order: (pages from the root, rows)."""
    file.seek((page - 1) * PAGE)
    data = file.read(PAGE)
    kind, cells = data[0], struct.unpack(">H", data[3:5])[0]
    path = (*above, page - 1)
    if kind == 13:
        yield path, cells
        return
    if kind != 5:
        raise ValueError(f"{file.name}: page {page} is of kind {kind}; allowed: 5 and 13")
    for at in struct.unpack(f">{cells}H", data[12:12 + 2 * cells]):
        yield from leaves(file, struct.unpack(">I", data[at:at + 4])[0], path)
    yield from leaves(file, struct.unpack(">I", data[8:12])[0], path)


def run(directory, count):
    """Runs walks: a connection for each file, one page of cache, one transaction."""
    bases = []
    for name, _, _ in shape.files():
        base = sqlite3.connect(os.path.join(directory, name), isolation_level=None)
        base.execute("pragma cache_size=1")
        base.execute("begin")
        base.execute("select 1 from t limit 1").fetchall()
        bases.append(base)
    os.write(2, b"walks\n")  # what is read before this opens the files
    walks = shape.walks(1)
    for _ in range(count):
        for file, first, rows in next(walks):
            if rows == 1:
                bases[file].execute("select d from t where r=?", (first + 1,)).fetchall()
            else:
                bases[file].execute("select d from t where r between ? and ?", (first + 1, first + rows)).fetchall()


def main():
    if sys.argv[1] == "run":
        return run(sys.argv[2], int(sys.argv[3]))
    directory = sys.argv[2]
    with open(sys.argv[3], "w") as out:
        for name, rows, size in shape.files():
            path = os.path.join(directory, name)
            build(path, rows, size)
            out.write(f"T {name} {os.path.getsize(path) // PAGE}\n")
            with open(path, "rb") as file:
                for pages, count in leaves(file, 2, ()):
                    out.write("L %s %d\n" % (" ".join(map(str, pages)), count))


main()
