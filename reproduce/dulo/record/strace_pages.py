#!/usr/bin/env python3
"""Page accesses of a program from `strace -f -y -s 0` of it.

    strace_pages.py TRACE OUT ROOT      accesses to files below ROOT

Writes `F id bytes path` for each file, then `R|W process file first_page pages`. Positions
are followed by process and descriptor, over fork.
"""

import os
import re
import sys

PAGE = 4096
CALL = re.compile(r"(\d+)\s+(\w+)\((.*)$")
RESUMED = re.compile(r"(\d+)\s+<\.\.\. (\w+) resumed>(.*)$")
RESULT = re.compile(r"=\s+(-?\d+|0x[0-9a-f]+)[^=]*$")
OPENED = re.compile(r"=\s+(\d+)<([^>]*)>\s*$")
DESCRIPTOR = re.compile(r"(\d+)<([^>]*)>")
AT = re.compile(r", (\d+)\)\s+=")


def calls(lines):
    """(process, name, arguments and result, result) of each call that succeeded."""
    begun = {}
    for line in lines:
        found = CALL.match(line)
        if found:
            process, name, rest = found.groups()
            if "<unfinished ...>" in rest:
                begun[process, name] = rest.split("<unfinished")[0]
                continue
        else:
            found = RESUMED.match(line)
            if not found or found.group(1, 2) not in begun:
                continue
            process, name, rest = found.groups()
            rest = begun.pop((process, name)) + rest
        result = RESULT.search(rest)
        if result and int(result.group(1), 0) >= 0:
            yield process, name, rest, int(result.group(1), 0)


def accesses(lines):
    """(letter, process, path, first byte, bytes)."""
    positions = {}
    for process, name, rest, result in calls(lines):
        if name in ("open", "openat"):
            opened = OPENED.search(rest)
            if opened:
                positions[process, opened.group(1)] = 0
        elif name in ("clone", "clone3", "fork", "vfork"):
            for (parent, number), at in list(positions.items()):
                if parent == process:
                    positions[str(result), number] = at
        descriptor = DESCRIPTOR.match(rest)
        if not descriptor:
            continue
        number, path = descriptor.groups()
        if name == "lseek":
            positions[process, number] = result
        elif name == "close":
            positions.pop((process, number), None)
        elif name in ("read", "readv", "write") and result:
            at = positions.get((process, number), 0)
            positions[process, number] = at + result
            yield name[0].upper(), process, path, at, result
        elif name in ("pread64", "pwrite64") and result:
            yield name[1].upper(), process, path, int(AT.search(rest).group(1)), result


def main():
    source, target, root = sys.argv[1:]
    numbers, lines = {}, []
    with open(source, errors="replace") as file:
        for letter, process, path, at, count in accesses(file):
            if path.startswith(root):
                number = numbers.setdefault(path, len(numbers))
                first = at // PAGE
                lines.append(f"{letter} {process} {number} {first} {-(-(at + count) // PAGE) - first}\n")
    with open(target, "w") as out:
        for path, number in numbers.items():
            out.write(f"F {number} {os.path.getsize(path) if os.path.exists(path) else -1} {path}\n")
        out.writelines(lines)


main()
