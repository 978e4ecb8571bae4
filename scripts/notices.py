#!/usr/bin/env python3
"""Prints the licences of everything that is compiled into the command.

    scripts/notices.py >NOTICES

One line for each crate, then each text once with the crates that come with it. CARGO names cargo.
"""

import collections
import json
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
NAMES = ("licen", "copying", "notice", "copyright")
TARGET = "x86_64-unknown-linux-gnu"


def metadata():
    """What cargo says of all packages."""
    command = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1"]
    command += ["--filter-platform", TARGET]
    return json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)


def compiled_in(data):
    """Packages that the command depends on, but for tests and build scripts."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    packages = {package["id"]: package for package in data["packages"]}
    todo = [i for i, package in packages.items() if package["name"] == "piebald"]
    seen = set()
    while todo:
        this = todo.pop()
        if this in seen:
            continue
        seen.add(this)
        for dependency in nodes[this]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                todo.append(dependency["pkg"])
    found = [packages[i] for i in seen if packages[i]["source"]]
    return sorted(found, key=lambda package: (package["name"], package["version"]))


def texts(package):
    """Licence files of a package, and of C code within it."""
    folder = pathlib.Path(package["manifest_path"]).parent
    files = [p for p in folder.rglob("*") if p.is_file() and p.name.lower().startswith(NAMES)]
    small = [p for p in sorted(files) if p.suffix.lower() in ("", ".md", ".txt") or "-" in p.name]
    for path in small:
        yield path.read_text(encoding="utf-8", errors="replace").strip()


def main():
    """Prints all of it, and the notice of the disks' parameters."""
    packages = compiled_in(metadata())
    if not packages:
        sys.exit("notices.py: no dependency was found")
    by_text = collections.defaultdict(list)
    print("What is compiled into piebald beside its own code:\n")
    print("the standard library of Rust: MIT OR Apache-2.0")
    for package in packages:
        name = f"{package['name']} {package['version']}"
        print(f"{name}: {package['license']}")
        for text in dict.fromkeys(texts(package)):
            by_text[text].append(name)
    disks = ROOT / "crates/hw/presets/disks/COPYING.disksim"
    by_text[disks.read_text(encoding="utf-8").strip()].append("parameters of four disks")
    for text, names in by_text.items():
        print(f"\n{'-' * 78}\n{', '.join(names)}:\n\n{text}")


if __name__ == "__main__":
    main()
