#!/usr/bin/env python3
"""Writes a directory that stands for SRM-buffer's PostgreSQL build: tree.py DIR MEGABYTES [SEED].

The paper (sections 4.3, 4.4): source and object files, about 100 MiB, most files below
100 KiB. Here: half of the files source text and half object code (random bytes below 128 in
runs, no line longer than 4 KiB), sizes log-normal with a median of 14 KiB [M] and at most
1 MiB, 40 files to a directory, two levels. Names are drawn, so that a directory's order
(in which grep goes) is not that of names (in which diff and sorted lists go). No file
has the word zzyzxqjw, which is what grep looks for.
"""

import random
import sys
from pathlib import Path

LETTERS = "etaoinshrdlucmfwypvbgkqjx"


def name(rng):
    """A file's or directory's name."""
    return "".join(rng.choice(LETTERS) for _ in range(10))


def source(rng, size, words):
    """Lines of words."""
    lines, total = [], 0
    while total < size:
        line = " ".join(rng.choices(words, k=rng.randint(1, 14)))
        lines.append(line)
        total += len(line) + 1
    return "\n".join(lines)[:size].encode()


def code(rng, size):
    """Object code: pieces of few kinds, with a line's end now and then."""
    pieces = [rng.randbytes(rng.randint(8, 120)) for _ in range(200)]
    out = b"".join(rng.choices(pieces, k=size // 60 + 2))
    return out.ljust(size, b"\0")[:size]


def main():
    root, left = Path(sys.argv[1]), int(float(sys.argv[2]) * 2**20)
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 42)
    words = [name(rng)[: rng.randint(2, 9)] for _ in range(3000)]
    number, directory = 0, root
    while left > 0:
        if number % 40 == 0:
            directory = root / name(rng) if number % 400 == 0 else directory.parent / name(rng)
            if directory.parent == root and number % 400:
                directory = directory / name(rng)
            directory.mkdir(parents=True, exist_ok=True)
        size = min(max(int(rng.lognormvariate(9.57, 1.1)), 200), 2**20, left)
        data = source(rng, size, words) if number % 2 else code(rng, size)
        (directory / (name(rng) + (".c" if number % 2 else ".o"))).write_bytes(data)
        left -= size
        number += 1


if __name__ == "__main__":
    main()
