"""Reading what was recorded, and writing traces whose sums are known."""

import hashlib
import os
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
HEADER = ("# page trace of files: F id bytes path; R|W task file first_page pages (4 KiB pages). "
          "A task's access waits for its previous one.\n")


def recorded(name):
    """Text of a recorded file, as one string."""
    path = os.path.join(HERE, "recorded", name + ".zst")
    return subprocess.run(["zstd", "-dcq", "--long=27", path], check=True, stdout=subprocess.PIPE, text=True).stdout


class Disk:
    """The files of a disk: names, bytes and extents."""

    def __init__(self, name):
        self.names, self.bytes, self.extents = [], [], []
        for line in recorded(name + ".files").splitlines():
            file, size, *extents = line.split(" ")
            self.names.append(file)
            self.bytes.append(int(size))
            self.extents.append([tuple(map(int, extent.split(":"))) for extent in extents])
        self.numbers = {name: number for number, name in enumerate(self.names)}

    def table(self, numbers):
        """The lines that declare files."""
        return "".join(f"F {n} {self.bytes[n]} {self.names[n]}\n" for n in sorted(numbers))


class Recording:
    """Accesses of a recorded program: (letter, file, first page, pages), and its queries."""

    def __init__(self, name):
        self.accesses, self.queries = [], []
        for line in recorded(name + ".rec").splitlines():
            word = line.split(" ")
            if word[0] == "Q":
                self.queries.append((word[1], len(self.accesses)))
            else:
                self.accesses.append((word[0], int(word[1]), int(word[2]), int(word[3])))

    def query(self, number):
        """The accesses of one query."""
        end = len(self.accesses) if number + 1 == len(self.queries) else self.queries[number + 1][1]
        return self.accesses[self.queries[number][1]:end]


class Output:
    """A zstd file written in pieces; keeps the sum of what was written, not of the packing."""

    def __init__(self, directory, name):
        self.name, self.sum, self.bytes = name, hashlib.sha256(), 0
        self.path = os.path.join(directory, name + ".zst")
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        self.file = open(self.path + ".new", "wb")
        self.packer = subprocess.Popen(["zstd", "-cq", "-1"], stdin=subprocess.PIPE, stdout=self.file)

    def write(self, text):
        data = text.encode()
        self.sum.update(data)
        self.bytes += len(data)
        self.packer.stdin.write(data)

    def close(self):
        """Ends the file and gives it its name; returns its line for `inputs.sha256`."""
        self.packer.stdin.close()
        if self.packer.wait() != 0:
            raise SystemExit(f"{self.path}: zstd failed")
        self.file.close()
        os.replace(self.path + ".new", self.path)
        return f"{self.sum.hexdigest()}  {self.name}"
