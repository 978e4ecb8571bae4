"""The stand-in for viewperf: whole reads of a few large files.

Drawn from what is published of the trace (section 4.1.1 and table 2): 0.3 million accesses,
495 MB, 289 files, over 99 % of the references to consecutive blocks within a few large
files. 289 files cannot be entered only once each: 1 % of 0.3 million are 3,000 jumps. So
small files are read again and again between the parts of the large ones.

The benchmark of that time has six view sets. Each has its large files (nine in all) and its
share of 280 small ones. A view set reads each of its large files front to back, in `TESTS`
tests; every test first reads the view set's small files. Some view sets do so twice, the
others three times, which makes 2.4 accesses of each page.
"""

import random

PAGE = 4096
VIEW_SETS = 6
LARGE_FILES, SMALL_FILES = 9, 280
LARGE_BYTES = 490 << 20
SMALL_BYTES = (2 << 10, 64 << 10)  # log-uniform between these
TESTS = 3
PASSES = (2, 3, 2, 3, 2, 2)  # of each view set
READ_PAGES = 16  # 64 KiB with one call
SEED = 42


def files():
    """(name, bytes) of all files, view set by view set, the large ones first."""
    draw = random.Random(f"viewperf {SEED}").random
    weights = [1 + draw() for _ in range(LARGE_FILES)]
    low, high = SMALL_BYTES
    large = [int(LARGE_BYTES * w / sum(weights)) for w in weights]
    small = [int(low * (high / low) ** draw()) for _ in range(SMALL_FILES)]
    out = []
    for view in range(VIEW_SETS):
        out += [(f"viewperf/{view}/large{i}", size) for i, size in enumerate(large) if i % VIEW_SETS == view]
        out += [(f"viewperf/{view}/small{i:03}", size) for i, size in enumerate(small) if i % VIEW_SETS == view]
    return out


def accesses():
    """(file's number in `files()`, first page, pages), in order."""
    table = files()
    for view in range(VIEW_SETS):
        mine = [i for i, (name, _) in enumerate(table) if name.startswith(f"viewperf/{view}/")]
        small = [i for i in mine if "/small" in table[i][0]]
        for _ in range(PASSES[view]):
            for large in (i for i in mine if "/large" in table[i][0]):
                pages = -(-table[large][1] // PAGE)
                for test in range(TESTS):
                    for file in small:
                        yield from reads(file, 0, -(-table[file][1] // PAGE))
                    yield from reads(large, pages * test // TESTS, pages * (test + 1) // TESTS)


def reads(file, first, end):
    """Calls that read the pages from `first` up to `end`."""
    for page in range(first, end, READ_PAGES):
        yield file, page, min(READ_PAGES, end - page)
