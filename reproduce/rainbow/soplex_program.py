"""The linear program that the stand-in for 450.soplex solves, in the MPS format.

    soplex_program.py PROGRAM

The thesis runs 450.soplex on pds-50, one of the patient distribution programs
(Carolan and others, Operations Research 38, 1990): patients of several kinds are
to be moved over fifty days from where they are to where there are beds, on flights
that all kinds share. Such a program is a flow of several commodities through a
network in time, tied together by the capacity of each flight; two to three
non-zero entries in a column, all of them 1 or -1. This is one of the same form,
drawn, and smaller than pds-50 (83,060 rows, 275,814 columns).
"""

import sys

from draw import Draw

DAYS = 25
PLACES = 36
KINDS = 11
FLIGHTS = 4  # per place and day
LARGE = 5000  # cost of a patient who waits at the end of all days


def main():
    draw = Draw(450)
    hospitals = PLACES // 3
    rows, columns, sides, bounds = [], [], [], []
    for kind in range(KINDS):
        for place in range(PLACES):
            for day in range(DAYS):
                rows.append(("E", f"B{kind:02d}P{place:02d}D{day:02d}"))
                if place >= hospitals and draw.below(2) == 0:
                    sides.append((rows[-1][1], draw.between(1, 40)))

    def column(cost, entries):
        columns.append((cost, entries))
        return len(columns) - 1

    def balance(kind, place, day):
        return f"B{kind:02d}P{place:02d}D{day:02d}"

    for day in range(DAYS):
        for place in range(PLACES):
            for flight in range(FLIGHTS):
                to = (place + 1 + draw.below(PLACES - 1)) % PLACES
                takes = 1 + draw.below(2)
                capacity = f"F{place:02d}D{day:02d}N{flight}"
                rows.append(("L", capacity))
                sides.append((capacity, draw.between(20, 120)))
                cost = draw.between(10, 60)
                for kind in range(KINDS):
                    entries = [(balance(kind, place, day), 1), (capacity, 1)]
                    if day + takes < DAYS:
                        entries.append((balance(kind, to, day + takes), -1))
                        column(cost + draw.below(10), entries)
            for kind in range(KINDS):
                # Waiting for the next day, at the end for good.
                entries = [(balance(kind, place, day), 1)]
                if day + 1 < DAYS:
                    entries.append((balance(kind, place, day + 1), -1))
                    column(draw.between(3, 12), entries)
                else:
                    column(LARGE, entries)
                if place < hospitals:
                    bed = column(0, [(balance(kind, place, day), 1)])
                    bounds.append((bed, draw.between(5, 60)))

    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("NAME          PATIENTS\nROWS\n N  COST\n")
        for sense, name in rows:
            out.write(f" {sense}  {name}\n")
        out.write("COLUMNS\n")
        for number, (cost, entries) in enumerate(columns):
            for name, value in [("COST", cost), *entries]:
                out.write(f"    X{number:07d}  {name:<8}  {value}\n")
        out.write("RHS\n")
        for name, value in sides:
            out.write(f"    RHS       {name:<8}  {value}\n")
        out.write("BOUNDS\n")
        for number, value in bounds:
            out.write(f" UP BND       X{number:07d}  {value}\n")
        out.write("ENDATA\n")


main()
