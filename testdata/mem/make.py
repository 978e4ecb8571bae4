#!/usr/bin/env python3
"""Makes the memory traces of this directory from chase.s.

Needs gcc, objdump, valgrind, xz and zstd. The stack's address depends on the environment's size, and
the tests name it. lackey records the run; the two binary forms are the same run
written in ChampSim's and drmemtrace's record layouts, with the registers from the disassembly.
"""
import gzip, re, struct, subprocess, tempfile, zipfile
from pathlib import Path

here = Path(__file__).parent
# Register numbers of Pin for x86-64, as in ChampSim traces.
PIN = {"di": 3, "si": 4, "bp": 5, "sp": 6, "bx": 7, "dx": 8, "cx": 9, "ax": 10, "ip": 26}
FLAGS, IP, SP = 25, 26, 6


def regs(text):
    return [PIN[r] for r in re.findall(r"%[re](\w\w)", text)]


def operands(text):
    mnemonic, _, rest = text.partition(" ")
    rest = rest.split("#")[0].split("<")[0].strip()
    ops = re.split(r",(?![^(]*\))", rest) if rest else []
    src, dst = [], []
    if mnemonic == "jne":
        return [FLAGS, IP], [IP]
    for op in ops[:-1]:
        src += regs(op)
    if ops:
        memory = "(" in ops[-1]
        if memory or mnemonic in ("add", "dec", "push"):
            src += regs(ops[-1])
        if not memory and mnemonic != "push":
            dst += regs(ops[-1])
    if mnemonic == "xor":
        src = []
    if mnemonic in ("add", "dec", "xor", "incq"):
        dst.append(FLAGS)
    if mnemonic in ("push", "pop"):
        src.append(SP)
        dst.append(SP)
    return src, dst


with tempfile.TemporaryDirectory() as tmp:
    exe = f"{tmp}/chase"
    subprocess.run(["gcc", "-nostdlib", "-static", "-o", exe, here / "chase.s"], check=True)
    text = subprocess.run(["objdump", "-d", "--no-show-raw-insn", exe], check=True, capture_output=True, text=True).stdout
    log = f"{tmp}/log"
    subprocess.run(["valgrind", "--tool=lackey", "--trace-mem=yes", f"--log-file={log}", "./chase"], cwd=tmp)
    lackey = Path(log).read_text()

code = {}
for line in text.splitlines():
    m = re.match(r"\s+([0-9a-f]+):\t(.*)", line)
    if m:
        code[int(m[1], 16)] = re.sub(r"\s+", " ", m[2]).strip()

lackey = re.sub(r"==\d+==", "==7==", lackey).replace("./chase", "chase")
lackey = re.sub(r"Parent PID: \d+", "Parent PID: 1", lackey)
(here / "chase.lackey").write_text(lackey)
subprocess.run(["zstd", "-qf", here / "chase.lackey"], check=True)

run = []
for line in lackey.splitlines():
    m = re.match(r"(I | [LSM]) +([0-9a-f]+),(\d+)", line)
    if not m:
        continue
    kind, addr, size = m[1].strip(), int(m[2], 16), int(m[3])
    if kind == "I":
        run.append((addr, size, []))
    else:
        run[-1][2].append((kind, addr, size))

small, large = b"", b""
for at, (ip, size, data) in enumerate(run):
    src, dst = operands(code[ip])
    branch = code[ip].startswith("jne")
    taken = branch and at + 1 < len(run) and run[at + 1][0] != ip + size
    loads = [a for k, a, _ in data if k in "LM"]
    stores = [a for k, a, _ in data if k in "SM"]
    pad = lambda v, n: (v + [0] * n)[:n]
    small += struct.pack("<QBB2B4B2Q4Q", ip, branch, taken, *pad(dst, 2), *pad(src, 4), *pad(stores, 2), *pad(loads, 4))
    large += struct.pack("<QBB4B4B6x4Q4Q2B6x", ip, branch, taken, *pad(dst, 4), *pad(src, 4), *pad(stores, 4), *pad(loads, 4), 0, 0)
(here / "chase.champsim").write_bytes(small)
(here / "chase.cloudsuite").write_bytes(large)
subprocess.run(["xz", "-kf", here / "chase.champsim"], check=True)

entries = [(25, 0, 6), (28, 12, 6), (28, 9, 0x440), (22, 8, 7), (24, 8, 7), (28, 2, 1000)]
half = None
for at, (ip, size, data) in enumerate(run):
    if at == len(run) // 2:
        half = len(entries)
    kind = 10
    if code[ip].startswith("jne"):
        kind = 48 if run[at + 1][0] != ip + size else 49
    entries.append((kind, size, ip))
    for k, addr, n in data:
        entries += [(0, n, addr)] if k in "LM" else []
        entries += [(1, n, addr)] if k in "SM" else []
    if code[ip].startswith("syscall"):
        entries.append((28, 25, 231))
entries += [(23, 8, 7), (26, 0, 0)]
raw = [struct.pack("<HHQ", *e) for e in entries]
with zipfile.ZipFile(here / "chase.drmemtrace.7.trace.zip", "w", zipfile.ZIP_DEFLATED) as z:
    for n, part in enumerate((raw[:half], raw[half:])):
        z.writestr(zipfile.ZipInfo(f"chunk.{n:04}"), b"".join(part), zipfile.ZIP_DEFLATED)
(here / "chase.drmemtrace.7.trace.gz").write_bytes(gzip.compress(b"".join(raw), mtime=0))
