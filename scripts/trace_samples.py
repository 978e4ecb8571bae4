"""Small traces in every block and file format that `piebald replay` reads, and in the text formats of
memory traces.

`write(FORMAT, SEED, FOLDER)` writes one from random requests and gives its name. The requests are
the same for all formats and one seed, as far as the format can say them: a scan, a hot part, random
places, two disks, two processes, a tenth of writes. Written after the descriptions of the formats,
not after the readers.
"""
import struct
from collections import namedtuple

Request = namedtuple("Request", "us task disk write sector sectors")
REQUESTS = 1500
# Requests are whole pages.
PAGE_SECTORS = 8


class Draws:
    """Knuth's MMIX generator: the same numbers with every version of Python."""

    def __init__(self, seed):
        self.state = seed

    def below(self, bound):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % (1 << 64)
        return (self.state >> 33) * bound >> 31


def requests(seed):
    draws, place, us, found = Draws(seed), 0, 0, []
    for _ in range(REQUESTS):
        us += 1 + draws.below(900)
        kind = draws.below(10)
        if kind < 4:
            place = (place + 1) % 400
            page = place
        elif kind < 8:
            page = 500 + draws.below(40)
        else:
            page = 600 + draws.below(900)
        found.append(Request(us, 100 + draws.below(2), draws.below(2), draws.below(10) == 0,
                             page * PAGE_SECTORS, PAGE_SECTORS * (1 + draws.below(4))))
    return found


def lines(form, header=()):
    """A writer of text: one line for each request."""
    def write(all_requests):
        text = [*header, *(form(number, request) for number, request in enumerate(all_requests))]
        return "".join(line + "\n" for line in text).encode()
    return write


def records(form):
    """A writer of binary records."""
    return lambda all_requests: b"".join(form(n, r) for n, r in enumerate(all_requests))


def letter(request, letters="RW"):
    return letters[request.write]


def seconds(us):
    return f"{us // 1000000}.{us % 1000000:06}"


def blktrace(number, r):
    action = 1 | 1 << (17 if r.write else 16)
    return struct.pack("<IIQQIIIIIHH", 0x65617407, number + 1, r.us * 1000, r.sector, r.sectors * 512,
                       action, r.task, 8 << 20 | r.disk, 0, 0, 0)


def next_uses(all_requests):
    """For each request its block, and the number from 1 of the next request of it, -1 for none."""
    uses, found = {}, []
    for number in range(len(all_requests), 0, -1):
        block = all_requests[number - 1].sector // PAGE_SECTORS
        found.append((block, uses.get(block, -1)))
        uses[block] = number
    return reversed(found)


def with_next_use(pack, header=b""):
    """A writer of libCacheSim's binary forms: pack(request, seconds, block, next use)."""
    def write(all_requests):
        both = zip(all_requests, next_uses(all_requests))
        return header + b"".join(pack(r, r.us // 1000000, block, use) for r, (block, use) in both)
    return write


def lcs_header(version):
    magic = struct.pack("<Q", 0x123456789ABCDEF0)
    return (magic + struct.pack("<Q", version)).ljust(8184, b"\0") + magic


# libCacheSim's req_op_e: 12 is read, 13 is write.
def lcs_operation(r):
    return 13 if r.write else 12


def validate(all_requests):
    before, text = 0, []
    for r in all_requests:
        text.append(f"{letter(r)} Miss {r.sector} {r.sectors} 5000 {r.us - before}\n")
        before = r.us
    return "".join(text).encode()


def accusim(all_requests):
    before, out = 0, []
    for task in (100, 101):
        out.append(struct.pack("<II", task << 5, 4) + b"prog")
        for disk in (0, 1):
            name = b"/data/" + b"ab"[disk:disk + 1]
            out.append(struct.pack("<IIIHH", 5 | task << 5, 7 + disk, 1 << 24, len(name), 3 + disk) + name)
    for r in all_requests:
        kind = 14 if r.write else 13
        size = r.sectors * 512
        out.append(struct.pack("<II", kind | r.task << 5, 7 + r.disk))
        out.append(struct.pack("<IIIiiHHIII", 1, 2, 3, size, size, 3 + r.disk, 0, r.us - before,
                               1 << 24, r.sector * 512))
        before = r.us
    return b"".join(out)


def fpt(all_requests):
    text = ["F 0 16777216 /data/a\n", "F 1 16777216 /data/b\n"]
    for r in all_requests:
        pages = (r.sector // PAGE_SECTORS, r.sectors // PAGE_SECTORS)
        text.append(f"{letter(r)} {r.task} {r.disk} {pages[0]} {pages[1]}\n")
    return "".join(text).encode()


def strace(number, r):
    call = "pwrite64" if r.write else "pread64"
    size = r.sectors * 512
    stamp = seconds(1600000000 * 1000000 + r.us)
    return (f'{r.task} {stamp} {call}({3 + r.disk}</data/{"ab"[r.disk]}>, "x"..., {size}, '
            f"{r.sector * 512}) = {size}")


FORMATS = {
    "blktrace": records(blktrace),
    "blkparse": lines(lambda n, r: f"8,{r.disk} 0 {n + 1} {seconds(r.us)}000 {r.task} Q "
                                   f"{letter(r)} {r.sector} + {r.sectors} [cmd]"),
    "msr": lines(lambda n, r: f"{128166372003061629 + r.us * 10},host,{r.disk},"
                              f"{letter(r, ('Read', 'Write'))},{r.sector * 512},{r.sectors * 512},900"),
    "spc": lines(lambda n, r: f"{r.disk},{r.sector},{r.sectors * 512},{letter(r)},{seconds(r.us)}"),
    "vscsi-v1": records(lambda n, r: struct.pack(
        "<IIIHHQQ", n, r.sectors * 512, 1, 0x2A if r.write else 0x28, 1 << 8, r.sector, r.us)),
    "vscsi-v2": records(lambda n, r: struct.pack(
        "<HHIIIQQQ", 0x2A if r.write else 0x28, 2 << 8, n, r.sectors * 512, 1, r.sector, r.us, 90)),
    "libcachesim-csv": lines(lambda n, r: f"1,{seconds(r.us)},{'2A' if r.write else '28'},"
                                          f"{r.sectors * 512},{r.sector}",
                             ["version,time,op,size,lbn"]),
    "oracle-general": with_next_use(lambda r, time, block, use: struct.pack(
        "<IQIq", time, block, 4096, use)),
    "oracle-general-opns": with_next_use(lambda r, time, block, use: struct.pack(
        "<IQIBHq", time, block, 4096, lcs_operation(r), 1, use)),
    "lcs-v1": with_next_use(lambda r, time, block, use: struct.pack(
        "<IQIq", time, block, 4096, use), lcs_header(1)),
    "lcs": with_next_use(lambda r, time, block, use: struct.pack(
        "<IQqIIq", time, block, 4096, lcs_operation(r) | 1 << 8, 0, use), lcs_header(3)),
    "ids": lines(lambda n, r: str(r.sector // PAGE_SECTORS)),
    "arc": lines(lambda n, r: f"{r.sector} {r.sectors} 0 {n}"),
    "systor17": lines(lambda n, r: f"{seconds(1455592711 * 1000000 + r.us)},0.001,{letter(r)},{r.disk},"
                                   f"{r.sector * 512},{r.sectors * 512}",
                      ["Timestamp,Response,IOType,LUN,Offset,Size"]),
    "tencent": lines(lambda n, r: f"{1538323200 + r.us // 1000000},{r.sector},{r.sectors},"
                                  f"{int(r.write)},{1283 + r.disk}"),
    "mqsim": lines(lambda n, r: f"{r.us * 1000} {r.disk} {r.sector} {r.sectors} {int(not r.write)}"),
    "disksim": lines(lambda n, r: f"{r.us // 1000}.{r.us % 1000:03}000 {r.disk} {r.sector} {r.sectors} "
                                  f"{int(not r.write)}"),
    "disksim-validate": validate,
    "accusim": accusim,
    "strace": lines(strace),
    "fpt": fpt,
    "fio": lines(lambda n, r: f"/data/{'ab'[r.disk]} {letter(r, ('read', 'write'))} {r.sector * 512} "
                              f"{r.sectors * 512}",
                 ["fio version 2 iolog", "/data/a add", "/data/b add", "/data/a open", "/data/b open"]),
    "w106": records(lambda n, r: struct.pack("<I", r.sector // PAGE_SECTORS)),
    "w106-be": records(lambda n, r: struct.pack(">I", r.sector // PAGE_SECTORS)),
    "valpin": records(lambda n, r: struct.pack("<Q", r.sector // PAGE_SECTORS)),
}


# Formats that cannot be found out, or may be another one.
TO_BE_NAMED = {"mqsim", "w106", "w106-be", "valpin"}
# What is in the columns of the text that has no format.
COLUMNS = "time=1:us,op=2,offset=3:sector,size=4:sector,device=5"
FORMATS["columns"] = lines(lambda n, r: f"{r.us},{letter(r)},{r.sector},{r.sectors},{r.disk}")


def address(number, r):
    """A reference of a program for each request: a line of 64 bytes in its first sector."""
    return 0x10000000 + r.sector * 512 + number % 8 * 64


# References of programs; those of binary formats lie in testdata/mem.
MEMORY = {
    "ramulator-cpu": lines(lambda n, r: f"{r.us % 97} {address(n, r)}" +
                           (f" {address(n + 1, r)}" if r.write else "")),
    "ramulator-dram": lines(lambda n, r: f"{address(n, r):#x} {letter(r)}"),
    "ramulator2-load-store": lines(lambda n, r: f"{letter(r, ('LD', 'ST'))} {address(n, r):#x}"),
    "ramulator2-read-write": lines(lambda n, r: f"{letter(r)} 0,{r.disk},{n % 16},{r.sector},{n % 128}"),
    "load-store": lines(lambda n, r: f"{letter(r, 'ls')} {address(n, r):#x} {r.us % 97}"),
    "din": lines(lambda n, r: f"{2 if n % 3 == 0 else int(r.write)} {address(n, r) + 0xa0000000:x}"),
    "pinatrace": lines(lambda n, r: f"{0x7f0a1b000000 + n % 50 * 4:#x}: {letter(r)} {address(n, r):#x}"),
}


def write(form, seed, folder):
    """Writes the sample; its file's name in `folder`."""
    name = f"{form}.trace"
    writers = FORMATS if form in FORMATS else MEMORY
    (folder / name).write_bytes(writers[form](requests(seed)))
    return name
