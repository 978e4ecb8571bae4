"""Where a file's pages lie on its disk, as the file system says (FIEMAP)."""

import fcntl
import struct

PAGE = 4096
CALL = 0xC020660B
BATCH = 128
LAST, WITHOUT_ADDRESS = 0x1, 0x206  # unknown, delayed or inline


def extents(path):
    """[(first page of the file, page of the disk, pages)], neighbours joined."""
    out, start, last = [], 0, False
    with open(path, "rb") as file:
        while not last:
            buffer = bytearray(struct.pack("=QQLLLL", start, 2**64 - 1 - start, 1, 0, BATCH, 0) + bytes(56 * BATCH))
            fcntl.ioctl(file, CALL, buffer, True)
            count = struct.unpack_from("=L", buffer, 20)[0]
            if count == 0:
                break
            for i in range(count):
                logical, physical, length, _, _, flags = struct.unpack_from("=QQQQQL", buffer, 32 + 56 * i)
                if flags & WITHOUT_ADDRESS and not physical:
                    raise SystemExit(f"{path}: an extent without an address (flags {flags:#x}); sync first")
                join(out, logical // PAGE, physical // PAGE, length // PAGE)
                start, last = logical + length, flags & LAST
    return out


def join(out, logical, physical, pages):
    """Appends an extent, or lengthens the last one by it."""
    if out and out[-1][0] + out[-1][2] == logical and out[-1][1] + out[-1][2] == physical:
        logical, physical, before = out.pop()
        pages += before
    out.append((logical, physical, pages))
