"""The database of the stand-in for tpc-h, and the lookups made in it.

49 files, each a B+ tree of 4 KiB pages: the eight tables of TPC-H at scale factor 0.75,
orders and lines split by year of the order, and seven indexes of each year. A row's place
in a tree is its number there, from 0. Keys that join tables are affine permutations, so
that both directions of a join are formulas, and nothing has to be kept in memory.

Used by `record/tpch_build.py`, which builds the trees with SQLite and runs lookups in them,
and by `tpch.py`, which draws the same lookups from the recorded trees.
"""

import random

YEARS = 7
PARTS = 150_000
SUPPLIERS = 7_500
CUSTOMERS = 112_500
BUYERS = 75_000  # a third of the customers have no orders (TPC-H, 4.2.3)
ORDERS = 150_000  # of a year
LINES = 600_000  # of a year, four of an order
NATIONS, REGIONS = 25, 5

# Multipliers of the permutations: powers of primes that divide no count of rows.
BY_PART, BY_SUPPLIER, BY_CUSTOMER = 13**5, 11**5, 17**4
STEP = 104_729  # offset from one year to the next

# Bytes of a row beside its key, as a fixed-width row of the TPC-H schema takes
# (TPC-H, 1.4.1), with a line's comment at its full width.
ROW = {
    "region": 150, "nation": 150, "supplier": 160, "part": 155, "partsupp": 145,
    "customer": 175, "orders": 115, "lineitem": 172,
}
INDEX = 0  # an entry of an index holds a row's number only


def files():
    """(name, rows, bytes of a row), in the order in which they are loaded."""
    out = [
        ("region", REGIONS, ROW["region"]),
        ("nation", NATIONS, ROW["nation"]),
        ("supplier", SUPPLIERS, ROW["supplier"]),
        ("part", PARTS, ROW["part"]),
        ("partsupp", 4 * PARTS, ROW["partsupp"]),
        ("customer", CUSTOMERS, ROW["customer"]),
        ("customer.nation", CUSTOMERS, INDEX),
    ]
    for kind, rows, size in (("orders", ORDERS, ROW["orders"]), ("orders.customer", ORDERS, INDEX),
                             ("lineitem", LINES, ROW["lineitem"]), ("lineitem.order", LINES, INDEX),
                             ("lineitem.part", LINES, INDEX), ("lineitem.supplier", LINES, INDEX)):
        out += [(f"{kind}.{1992 + year}", rows, size) for year in range(YEARS)]
    return out


REGION, NATION, SUPPLIER, PART, PARTSUPP, CUSTOMER, CUSTOMER_NATION = range(7)
ORDER, ORDER_CUSTOMER, LINE, LINE_ORDER, LINE_PART, LINE_SUPPLIER = range(7, 49, YEARS)


def forward(place, factor, year, rows):
    """The row that an index's entry `place` names."""
    return (place * factor + year * STEP) % rows


def backward(row, inverse, year, rows):
    """The place of a row's entry in an index; `inverse` is that of the factor."""
    return (row - year * STEP) * inverse % rows


PART_OF, SUPPLIER_OF = pow(BY_PART, -1, LINES), pow(BY_SUPPLIER, -1, LINES)


def order_walk(year, order, pick):
    """An order, its lines, and what they name (as queries 3, 5, 9 and 10 join)."""
    yield ORDER + year, order, 1
    yield LINE_ORDER + year, 4 * order, 4
    yield LINE + year, 4 * order, 4
    for line in range(4 * order, 4 * order + 4):
        part = backward(line, PART_OF, year, LINES) // 4
        yield PART, part, 1
        yield PARTSUPP, 4 * part + int(4 * pick()), 1
        yield SUPPLIER, backward(line, SUPPLIER_OF, year, LINES) // 80, 1


def part_walk(part, _pick):
    """A part, its suppliers, its lines of all years and their orders (queries 8, 14, 17)."""
    yield PART, part, 1
    yield PARTSUPP, 4 * part, 4
    for year in range(YEARS):
        yield LINE_PART + year, 4 * part, 4
        for place in range(4 * part, 4 * part + 4):
            line = forward(place, BY_PART, year, LINES)
            yield LINE + year, line, 1
            yield ORDER + year, line // 4, 1


def supplier_walk(year, supplier, _pick):
    """A supplier and its lines of a year (queries 7, 15, 21)."""
    yield SUPPLIER, supplier, 1
    yield LINE_SUPPLIER + year, 80 * supplier, 80
    for place in range(80 * supplier, 80 * supplier + 80):
        yield LINE + year, forward(place, BY_SUPPLIER, year, LINES), 1


def customer_walk(customer, pick):
    """A customer, its nation, orders and lines (queries 3, 10, 13, 18)."""
    nation = int(NATIONS * pick())
    yield REGION, nation // 5, 1
    yield NATION, nation, 1
    yield CUSTOMER_NATION, customer, 1
    yield CUSTOMER, customer, 1
    for year in range(YEARS):
        yield ORDER_CUSTOMER + year, 2 * customer, 2
        for place in (2 * customer, 2 * customer + 1):
            order = forward(place, BY_CUSTOMER, year, ORDERS)
            yield ORDER + year, order, 1
            yield LINE_ORDER + year, 4 * order, 4
            yield LINE + year, 4 * order, 4


# Lines of a range scan (queries 1 and 6), and its share of the walks. The share is the one
# number that is fitted, to the paper's 3 % of sequential references; nothing else knows it.
SCAN_LINES = 1_000
SCAN_SHARE = 0.06


def walks(seed):
    """Lookups without end, walk by walk: lists of (file, first row, rows)."""
    pick = random.Random(f"tpc-h {seed}").random
    while True:
        kind, year = pick(), int(YEARS * pick())
        if kind < SCAN_SHARE:
            walk = iter([(LINE + year, int((LINES - SCAN_LINES) * pick()), SCAN_LINES)])
        elif kind < 0.5:
            walk = order_walk(year, int(ORDERS * pick()), pick)
        elif kind < 0.7:
            walk = part_walk(int(PARTS * pick()), pick)
        elif kind < 0.8:
            walk = supplier_walk(year, int(SUPPLIERS * pick()), pick)
        else:
            walk = customer_walk(int(BUYERS * pick()), pick)
        yield list(walk)
