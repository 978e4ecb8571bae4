#!/usr/bin/env python3
"""Chooses the text files that glimpse indexes, for both of its file sets.

    select_text.py usr KERNEL COUNT     files of /usr and, for the rest of COUNT, of a kernel source
    select_text.py lxr KERNEL COUNT     files of a kernel source only

Text by its name, of at least 1 KiB (a tree of today has more tiny files than one of 2004).
Of the kernel, whole directories in the order of the SHA-256 of their names, without the
register tables of one graphics driver, which alone are a tenth of it.
"""

import hashlib
import os
import sys

USR = ("/usr/share", "/usr/include", "/usr/lib/python3")
USR_TEXT = (".h", ".txt", ".py", ".pl", ".pm", ".c", ".html", ".xml", ".hpp", ".pod", ".sh", ".js", ".css", ".cmake")
USR_NAMES = ("copyright",)  # and all that begin with README
KERNEL_TEXT = (".c", ".h", ".S", ".txt", ".rst", ".dts", ".dtsi", ".yaml", ".json", ".sh", ".py", ".pl")
LEAST = 1024


def is_text(directory, name, endings, names):
    path = os.path.join(directory, name)
    by_name = name.endswith(endings) or name in names or (names is USR_NAMES and name.startswith("README"))
    return by_name and os.path.isfile(path) and not os.path.islink(path) and os.path.getsize(path) >= LEAST


def usr():
    for top in USR:
        for directory, below, names in os.walk(top):
            below.sort()
            for name in sorted(names):
                if is_text(directory, name, USR_TEXT, USR_NAMES):
                    yield os.path.join(directory, name)


def kernel(root, salt, count):
    found = []
    for directory, _, names in os.walk(root):
        inside = os.path.relpath(directory, root)
        if "drm/amd" in inside:
            continue
        names = [n for n in sorted(names) if is_text(directory, n, KERNEL_TEXT, ("Makefile", "Kconfig"))]
        found.append((hashlib.sha256(f"{salt}full/{inside}".encode()).digest(), directory, names))
    paths = [os.path.join(directory, name) for _, directory, names in sorted(found) for name in names]
    return sorted(paths[:count])


def main():
    what, root, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    first = list(usr()) if what == "usr" else []
    print("\n".join(first + kernel(root, "lxr" if what == "lxr" else "", count - len(first))))


main()
