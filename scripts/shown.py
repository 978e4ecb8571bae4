#!/usr/bin/env python3
"""Holds the output that a page shows against what its commands printed.

    scripts/shown.py [--near] SHOWN PRINTED

The lines that are shown must be among those that were printed, in this order; a line `...` stands
for any number of lines. With --near, numbers may differ as those of a program that is recorded anew
do: by a fifth, by 2, or by their intervals together; intervals (±) by a factor of three, or by 2. All other words
must be equal.
"""

import re
import sys

NUMBER = re.compile(r"(± ?)?(\d+(?:,\d{3})*(?:\.\d+)?)")
# Of tables, how wide a column is depends on its numbers.
SPACES = re.compile(r"\s+|─+")


def numbers(line):
    """The numbers of a line without thousands separators, and whether each is an interval."""
    return [(float(n.replace(",", "")), bool(mark)) for mark, n in NUMBER.findall(line)]


def is_near(shown, printed):
    """The same words, and numbers close to one another?"""
    words = [SPACES.sub(" ", NUMBER.sub(r"\1#", line)).strip() for line in (shown, printed)]
    if words[0] != words[1]:
        return False
    pairs = list(zip(numbers(shown), numbers(printed)))
    for at, ((a, is_interval), (b, _)) in enumerate(pairs):
        if is_interval:
            near = max(a, b) <= 3 * min(a, b)
        else:
            behind = pairs[at + 1] if at + 1 < len(pairs) else ((0, False), (0, False))
            intervals = sum(n for n, mark in behind if mark)
            near = abs(a - b) <= max(0.2 * max(a, b), intervals)
        if not near and abs(a - b) > 2:
            return False
    return True


def missing(shown, printed, near):
    """The first line that is shown and was not printed behind those before it; else None."""
    same = is_near if near else lambda a, b: a == b
    at = 0
    gap = True
    for line in shown:
        if line == "...":
            gap = True
            continue
        ahead = printed[at:] if gap else printed[at : at + 1]
        found = next((n for n, other in enumerate(ahead) if same(line, other)), None)
        if found is None:
            return line
        at += found + 1
        gap = False
    return None


def lines(path):
    """Lines without blanks at their ends."""
    with open(path, encoding="utf-8") as file:
        return [line.rstrip() for line in file]


def self_test():
    """What it is for, on small cases: a check that cannot fail would check nothing."""
    printed = ["a 10.0 %", "", "b 2", "c"]
    assert missing(["a 10.0 %", "...", "c"], printed, False) is None
    assert missing(["a 10.0 %", "c"], printed, False) == "c"
    assert missing(["c", "...", "a 10.0 %"], printed, False) == "a 10.0 %"
    assert missing(["a 11.5 %"], printed, False) == "a 11.5 %"
    assert missing(["a 11.5 %"], printed, True) is None
    assert missing(["a 20.0 %"], printed, True) == "a 20.0 %"
    assert missing(["z 10.0 %"], printed, True) == "z 10.0 %"
    printed = ["it is 20 % (±4.0), 7"]
    assert missing(["it is 12 % (±5), 7"], printed, True) is None
    assert missing(["it is 10 % (±5), 7"], printed, True) == "it is 10 % (±5), 7"
    assert missing(["it is 20 % (±13), 7"], printed, True) == "it is 20 % (±13), 7"
    assert missing(["it is 20 % (4), 7"], printed, True) == "it is 20 % (4), 7"


def main():
    """Exit status 1 names the line."""
    self_test()
    words = sys.argv[1:]
    near = words[:1] == ["--near"]
    if len(words) - near != 2:
        sys.exit(__doc__)
    line = missing(lines(words[-2]), lines(words[-1]), near)
    if line is not None:
        sys.exit(f'shown, but not printed at this place: "{line}"')


if __name__ == "__main__":
    main()
