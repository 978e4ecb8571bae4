#!/usr/bin/env python3
"""The page references of DULO's sparse matrix multiplication (section 4.2.4).

SciMark2's kernel y = A x with A in compressed rows, as its C source has it: N = 2^20 rows,
M = 2^23 non-zero elements, so 8 in each row; element i of row r lies in column i * (r / 8)
(at least i). Five arrays, each from a page of its own, initialised one after the other in
the order in which the benchmark allocates them, then 15 products.

    smm.py              prints the arrays and counts of the paper's size
    smm.py --check      compares the windows below with a walk of every element, small sizes

A walk of 126 million elements is more than a model needs. References are grouped by
windows of `WINDOW_ROWS` rows, in which `val` stays on one page; a window has every page that
its rows touch once, in order of the first touch. A page that is touched throughout a product is so
touched in every window, as its access bit would be between two scans of the lists.
"""

import sys

PAGE = 4096
N, M, PRODUCTS = 2**20, 2**23, 15
WINDOW_ROWS = 64  # of 8 elements of 8 bytes: one page of val
DOUBLE, INT = 8, 4


def arrays(n=N, m=M):
    """(name, bytes), in the order of allocation and first touch."""
    return [("x", DOUBLE * n), ("y", DOUBLE * n), ("val", DOUBLE * m), ("col", INT * m), ("row", INT * (n + 1))]


def bases(n=N, m=M):
    """The first page of each array, and the number of all pages."""
    out, page = {}, 0
    for name, size in arrays(n, m):
        out[name], page = page, page + -(-size // PAGE)
    return out, page


def initialise(n=N, m=M):
    """(page, written) of the initialisation: each array front to back."""
    for page in range(bases(n, m)[1]):
        yield page, True


def elements(n, m):
    """(page, written) of one product, element by element."""
    base, _ = bases(n, m)
    each = m // n
    for r in range(n):
        yield base["row"] + INT * r // PAGE, False
        yield base["row"] + INT * (r + 1) // PAGE, False
        step = max(r // each, 1)
        for i in range(each):
            at = each * r + i
            yield base["col"] + INT * at // PAGE, False
            yield base["x"] + DOUBLE * i * step // PAGE, False
            yield base["val"] + DOUBLE * at // PAGE, False
        yield base["y"] + DOUBLE * r // PAGE, True


def window(first, rows, n=N, m=M):
    """The pages that rows `first` to `first + rows` of one product touch: {page: written}."""
    base, _ = bases(n, m)
    each, last = m // n, first + rows - 1
    touched = {}

    def span(name, size, low, high, written=False):
        for page in range(size * low // PAGE, size * high // PAGE + 1):
            touched[base[name] + page] = written

    span("row", INT, first, last + 1)
    span("col", INT, each * first, each * last + each - 1)
    for i in range(each):
        steps = [max(r // each, 1) for r in (first, last)]
        span("x", DOUBLE, i * steps[0], i * steps[1])
    span("val", DOUBLE, each * first, each * last + each - 1)
    span("y", DOUBLE, first, last, written=True)
    return touched


def product(n=N, m=M):
    """Windows of one product."""
    for first in range(0, n, WINDOW_ROWS):
        yield window(first, min(WINDOW_ROWS, n - first), n, m)


def check(n, m):
    """Does every window have the pages of its rows, no others, and the same writes?"""
    walk = elements(n, m)
    per_row = 3 + 3 * (m // n)
    for touched in product(n, m):
        seen = {}
        for _ in range(WINDOW_ROWS * per_row):
            page, written = next(walk)
            seen[page] = seen.get(page, False) or written
        if seen != touched:
            raise SystemExit(f"smm: N = {n}, M = {m}: a window has {touched}, its elements {seen}")


def main():
    if sys.argv[1:] == ["--check"]:
        for n, m in ((1024, 8192), (8192, 65536), (65536, 262144)):
            check(n, m)
        print("smm: the windows are those of the elements")
        return
    for name, size in arrays():
        print(f"{name:4} {size:>10} bytes {-(-size // PAGE):>6} pages")
    windows = list(product())
    references = sum(map(len, windows))
    print(f"{bases()[1]} pages, {bases()[1] * PAGE / 2**20:.1f} MB; {len(windows)} windows and "
          f"{references} references a product, {PRODUCTS} products")


if __name__ == "__main__":
    main()
