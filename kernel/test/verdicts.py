#!/usr/bin/env python3
"""Compares the verdicts of the kernel's own tests in states of the module with those without it.

    verdicts.py EXPECTED FOLDER STATE...

FOLDER holds files STATE-NODES.verdicts with lines TEST, PART, VERDICT, NAME between tabs (kernel/test/selftests.sh); of
several lines with the same test and part the best counts. EXPECTED has lines STATE, TEST, PART, VERDICTS, REASON: there
may be the verdicts `without/state`, such as pass/skip; the first three are patterns of the shell.

Prints a table, each difference, and what is expected and was not seen. Exit status 1 if a difference is not expected, or a file is missing:
SRM-buffer alone has none for two nodes.
"""

import collections
import fnmatch
import pathlib
import sys

RANK = {"pass": 2, "skip": 1, "fail": 0}


def read(path):
    best, names = {}, {}
    if not path.is_file():
        sys.exit(f"{path}: is not there: that state was not run")
    for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
        fields = line.split("\t")
        if len(fields) != 4 or fields[2] not in RANK:
            sys.exit(f"{path}:{number}: {line!r}: allowed: TEST, PART, pass, skip or fail, NAME between tabs")
        key = (fields[0], fields[1])
        if key not in best or RANK[fields[2]] > RANK[best[key]]:
            best[key] = fields[2]
            names[key] = fields[3]
    return best, names


def read_expected(path):
    rules = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        fields = line.split("\t")
        if len(fields) != 5:
            sys.exit(f"{path}:{number}: {len(fields)} fields; allowed: STATE, TEST, PART, VERDICTS, REASON between tabs")
        rules.append(tuple(fields))
    return rules


def main():
    expected = read_expected(pathlib.Path(sys.argv[1]))
    folder, states = pathlib.Path(sys.argv[2]), sys.argv[3:]
    used, wrong = set(), 0
    print("| state | memory nodes | pass | skip | fail | other than without |")
    print("|---|---|---|---|---|---|")
    lines = []
    for nodes in (1, 2):
        without, names = read(folder / f"without-{nodes}.verdicts")
        for state in ["without", *states]:
            path = folder / f"{state}-{nodes}.verdicts"
            if (state, nodes) == ("srm", 2):
                continue
            found, _ = read(path)
            other = 0
            for key in sorted(without.keys() | found.keys()):
                before, now = without.get(key, "none"), found.get(key, "none")
                if before == now:
                    continue
                other += 1
                reason = None
                for rule in expected:
                    fits = fnmatch.fnmatchcase(state, rule[0]) and fnmatch.fnmatchcase(key[0], rule[1])
                    if fits and fnmatch.fnmatchcase(key[1], rule[2]) and rule[3] == f"{before}/{now}":
                        reason = rule[4]
                        used.add(rule)
                        break
                wrong += reason is None
                part = f"{key[1]} {names.get(key, '')}".strip() or "as a whole"
                lines.append(f"{state}, {nodes}: {key[0]}: {part}: {before}, now {now}: {reason or 'NOT EXPECTED'}")
            counts = collections.Counter(found.values())
            print(f"| {state} | {nodes} | {counts['pass']} | {counts['skip']} | {counts['fail']} | {other} |")
    print()
    print("\n".join(lines))
    for rule in expected:
        if rule not in used and any(fnmatch.fnmatchcase(state, rule[0]) for state in states):
            print(f"expected, and not seen: {' '.join(rule[:4])}")
    print(f"differences that are not expected: {wrong}")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
