#!/usr/bin/env python3
"""Makes kernel/known.tsv: the signatures of the kernel's functions that the module calls or replaces.

  kernel/known.py VMLINUZ...    adds what these kernels have: files vmlinuz-VERSION of their packages
                                (/boot/vmlinuz-VERSION), or .../VERSION/vmlinuz

Which functions these are is read from the module's sources. A row has the function, the variant of it
that the module has code for, its signature, and the kernels that have it. A signature that is new gets
the variant "-": kernels with it are refused until somebody has written the code and put a number there,
or has named another function of theirs that is replaced in its place.
A function that a kernel does not have gets no row of it; the module says so when it is loaded.

Needs cargo, and zstd or lz4 for kernels that are packed so.
"""
import lzma
import os
import re
import struct
import subprocess
import sys
import tempfile
import zlib

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "known.tsv")
HEAD = "# function\tvariant\tsignature\tkernels (made by known.py)\n"
NAMED = re.compile(r'(?:PB_VARIANT\(\w+, |pb_symbol\(|pb_known_variant\()"(\w+)"')


def fail(text):
    sys.exit(f"known: {text}")


def functions():
    """The functions that the sources name, in their order."""
    names = []
    for file in sorted(os.listdir(HERE)):
        if file.endswith(".c"):
            with open(os.path.join(HERE, file), encoding="utf-8") as source:
                names += NAMED.findall(source.read())
    return sorted(set(names))


def unpack(path, image):
    """The kernel in a bzImage (Documentation/arch/x86/boot.rst: setup_sects, payload)."""
    if image[0x202:0x206] != b"HdrS":
        fail(f"{path}: no kernel image for x86")
    setup = (image[0x1F1] or 4) + 1
    offset, length = struct.unpack_from("<II", image, 0x248)
    packed = image[setup * 512 + offset:][:length]
    if packed.startswith(b"\xfd7zXZ"):
        return lzma.LZMADecompressor().decompress(packed)
    if packed.startswith(b"\x1f\x8b"):
        return zlib.decompressobj(31).decompress(packed)
    for magic, program in ((b"\x28\xb5\x2f\xfd", "zstd"), (b"\x02\x21\x4c\x18", "lz4")):
        if packed.startswith(magic):
            # Four bytes with the size come behind what is packed.
            done = subprocess.run([program, "-dc"], input=packed[:-4], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, check=False)
            return done.stdout
    return fail(f"{path}: packed in a way that is not known")


def btf_of(path):
    """The type information of a kernel."""
    with open(path, "rb") as file:
        elf = unpack(path, file.read())
    if elf[:4] != b"\x7fELF":
        fail(f"{path}: the kernel in it is no ELF file")
    table, = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    sections = [struct.unpack_from("<IIQQQQ", elf, table + i * size) for i in range(count)]
    strings = sections[names][4]
    for section in sections:
        name = elf[strings + section[0]:].split(b"\0", 1)[0] if section[0] < 1 << 20 else b""
        if name == b".BTF":
            return elf[section[4]:section[4] + section[5]]
    return fail(f"{path}: the kernel has no type information (.BTF)")


def signatures(path, names):
    """The signature of each function that the kernel has, as the module prints it."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(btf_of(path))
        file.flush()
        command = ["cargo", "run", "-q", "--locked", "--manifest-path", f"{HERE}/core/Cargo.toml",
                   "--example", "signatures", "--", file.name, *names]
        lines = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True).stdout
    return dict(line.split("\t") for line in lines.splitlines())


def version_of(path):
    """VERSION of vmlinuz-VERSION or VERSION/vmlinuz."""
    name = os.path.basename(path)
    if name == "vmlinuz":
        return os.path.basename(os.path.dirname(os.path.abspath(path)))
    if not name.startswith("vmlinuz-"):
        fail(f"{path}: allowed: vmlinuz-VERSION or VERSION/vmlinuz")
    return name[len("vmlinuz-"):]


def read_table():
    """Rows by function and signature: the variant, and the kernels in their order."""
    rows = {}
    if os.path.exists(TABLE):
        with open(TABLE, encoding="utf-8") as table:
            for line in table:
                if not line.startswith("#"):
                    name, variant, text, kernels = line.rstrip("\n").split("\t")
                    rows[name, text] = (variant, kernels.split())
    return rows


def parts(version):
    """A version's numbers, and what is between them: versions are sorted by these."""
    return [(not word.isdigit(), int(word) if word.isdigit() else 0, word) for word in re.findall(r"\d+|\D+", version)]


def main():
    if len(sys.argv) < 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    names, rows = functions(), read_table()
    for path in sys.argv[1:]:
        version = version_of(path)
        for name, text in signatures(path, names).items():
            variant, kernels = rows.get((name, text), ("-", []))
            rows[name, text] = (variant, sorted({*kernels, version}, key=parts))
    with open(TABLE + ".partial", "w", encoding="utf-8") as table:
        table.write(HEAD)
        for (name, text), (variant, kernels) in sorted(rows.items(), key=lambda r: (r[0][0], parts(r[1][1][0]))):
            if name in names:
                table.write(f"{name}\t{variant}\t{text}\t{' '.join(kernels)}\n")
    os.replace(TABLE + ".partial", TABLE)


main()
