#!/usr/bin/env python3
"""Writes the files that MFC's programs read: text.py DIR FILES [BYTES [SEED]].

Files NNN.txt of BYTES bytes (262144: the paper's 256 Kbyte files, section 6.1) of lines of
words from a small alphabet, with a line's end each 60 bytes or so, as source text has it.
The paper does not say what its files hold. The character @ occurs in none of them.
"""

import random
import sys
from pathlib import Path

LETTERS = "etaoinshrdlucmfwypvbgkqjxz"


def word(rng):
    """2 to 9 letters, the first ones of the alphabet more often."""
    return "".join(LETTERS[int(26 * rng.random() ** 1.7)] for _ in range(rng.randint(2, 9)))


def text(rng, size, words):
    """Lines of words, `size` bytes with the last line's end."""
    lines, total = [], 0
    while total < size:
        line = " ".join(rng.choice(words) for _ in range(rng.randint(4, 15)))
        lines.append(line)
        total += len(line) + 1
    return ("\n".join(lines)[: size - 1] + "\n").encode()


def main():
    directory, files = Path(sys.argv[1]), int(sys.argv[2])
    size = int(sys.argv[3]) if len(sys.argv) > 3 else 262144
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else 42
    rng = random.Random(seed)
    words = [word(rng) for _ in range(2000)]
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(files):
        (directory / f"{number:03}.txt").write_bytes(text(rng, size, words))


if __name__ == "__main__":
    main()
