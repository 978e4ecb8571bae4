"""The network that the stand-in for 429.mcf solves, in the DIMACS format.

    mcf_network.py NETWORK

429.mcf schedules the vehicles of public transport, one depot, as a minimum-cost
flow: each timetabled trip needs one vehicle, which comes from the depot or, by a
dead-head arc, from a trip that has ended in time. The same problem on a drawn
timetable. A trip has two nodes: where it ends it offers a vehicle, where it begins
it wants one.
"""

import sys
from bisect import bisect_left

from draw import Draw

TRIPS = 40000
DEADHEADS = 24  # of each trip at most; the next ones that can be reached
STOPS = 60  # along each side of a square town; a minute from one to the next
DAY = 20 * 60  # minutes
PULL = 4000  # cost of a vehicle more, in minutes


def main():
    draw = Draw(429)

    def place():
        return draw.below(STOPS), draw.below(STOPS)

    trips = []
    for _ in range(TRIPS):
        begin, first, last = draw.below(DAY), place(), place()
        away = abs(first[0] - last[0]) + abs(first[1] - last[1])
        trips.append((begin, begin + 5 + away, first, last))
    trips.sort()
    begins = [trip[0] for trip in trips]

    arcs = []
    depot_out, depot_in = 2 * TRIPS + 1, 2 * TRIPS + 2
    for number, (_, end, first, last) in enumerate(trips):
        wants, offers = 2 * number + 1, 2 * number + 2
        out = abs(first[0] - STOPS // 2) + abs(first[1] - STOPS // 2)
        back = abs(last[0] - STOPS // 2) + abs(last[1] - STOPS // 2)
        arcs.append((depot_out, wants, 1, PULL + out))
        arcs.append((offers, depot_in, 1, back))
        found = 0
        for other in range(bisect_left(begins, end), TRIPS):
            begin, _, start, _ = trips[other]
            drive = abs(last[0] - start[0]) + abs(last[1] - start[1])
            if end + drive <= begin:
                arcs.append((offers, 2 * other + 1, 1, 2 * drive + begin - end - drive))
                found += 1
                if found == DEADHEADS:
                    break
    arcs.append((depot_in, depot_out, TRIPS, 0))

    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("c vehicles of one depot for the trips of a day\n")
        out.write(f"p min {2 * TRIPS + 2} {len(arcs)}\n")
        for number in range(TRIPS):
            out.write(f"n {2 * number + 1} -1\nn {2 * number + 2} 1\n")
        for tail, head, capacity, cost in arcs:
            out.write(f"a {tail} {head} 0 {capacity} {cost}\n")


main()
