#!/usr/bin/env python3
"""Inspects compiled code of the policy core.

    check.py rlib FILE [--allow SYMBOL]...   every function of one crate
    check.py elf FILE                        everything that a linked program reaches

Prints one line per finding and exits 1 if there is any. What counts:

* a reference to code that panics (rlib), or the panic handler in the program (elf);
* an instruction that uses an x87, SSE or AVX register, or a reference to a
  soft-float helper of the compiler: a kernel may not use the FPU;
* a frame above FRAME_LIMIT bytes, counted as pushes plus what the prologue
  subtracts from the stack pointer;
* (rlib) a reference to another helper of the compiler (`__*`) than the mem*
  functions: a kernel has no 128-bit division, for example.
"""
import os
import re
import subprocess
import sys
import tempfile

FRAME_LIMIT = 1024

FUNCTION = re.compile(r"^[0-9a-f]+ <(.+)>:$")
RELOCATION = re.compile(r"R_X86_64_\w+\s+(\S+?)(?:[-+]0x[0-9a-f]+)?$")
PANIC = re.compile(r"^<?core::.*(panic|_fail(ed)?\b)|rust_begin_unwind|piebald_panic_reached")
FLOAT_HELPER = re.compile(
    r"^__((add|sub|mul|div|neg|eq|ne|lt|le|gt|ge|unord|cmp|pow)[hsdtx]f\w*"
    r"|fix(uns)?[hsdtx]f[sdt]i|float(un)?[sdt]i[hsdtx]f|(extend|trunc)[hsdtx]f[hsdtx]f\d)$"
)
FLOAT_REGISTER = re.compile(r"%(?:[xyz]mm\d+|mm\d|st\b)")
X87 = re.compile(r"^f(?:ld|st|add|sub|mul|div|ild|ist|com|ucom|xch|abs|chs|sqrt|ninit|nst)\w*$")
CRATE_HASH = re.compile(r"\[[0-9a-f]{12,}\]|::h[0-9a-f]{16}$")
SUB_RSP = re.compile(r"^\$0x([0-9a-f]+),%rsp$")
# What a kernel module has beside the crates themselves.
KERNEL_HAS = re.compile(r"^(mem(cpy|move|set|cmp)|bcmp)$")


def run(*command, text=None):
    return subprocess.run(command, check=True, capture_output=True, text=True, input=text).stdout


class Function:
    """One compiled function: instructions, and the symbols that it refers to."""

    def __init__(self):
        self.code, self.refs = [], set()


def functions(path):
    """Mangled name -> Function."""
    found, function = {}, None
    for line in run("objdump", "-dr", "-w", "--no-show-raw-insn", path).splitlines():
        start = FUNCTION.match(line)
        if start:
            function = found.setdefault(start.group(1), Function())
        elif function and ":\t" in line:
            relocation = RELOCATION.search(line)
            if relocation:
                function.refs.add(relocation.group(1).removeprefix(".text."))
            words = line.split(":\t", 1)[1].split("#")[0].split("\t")[0].split(None, 1)
            if words:
                function.code.append((words[0], words[1].strip() if len(words) > 1 else ""))
    return found


def demangled(symbols):
    """Mangled name -> name for people."""
    symbols = sorted(symbols)
    printed = run("c++filt", text="\n".join(symbols)).splitlines()
    return {s: CRATE_HASH.sub("", p) for s, p in zip(symbols, printed, strict=True)}


def frame(code):
    """Bytes that a function takes from the stack, its return address excluded.

    Pushes count until the first branch; every subtraction from the stack
    pointer counts, so that a probing loop (frames above a page) is seen too.
    """
    size, prologue = 0, True
    for mnemonic, operands in code:
        if prologue and mnemonic in ("push", "pushq"):
            size += 8
        if mnemonic.startswith(("j", "call", "ret")):
            prologue = False
        found = SUB_RSP.match(operands) if mnemonic.startswith("sub") else None
        if found:
            value = int(found.group(1), 16)
            size += 2**64 - value if value >= 2**63 else value
    return size


def uses_float(mnemonic, operands):
    return FLOAT_REGISTER.search(operands) or X87.match(mnemonic)


def reached(found, roots):
    """The functions that the roots reach, with the one that leads to each.

    Calls through pointers are not followed; what a crate's own tables point to
    is its own functions, and those are roots.
    """
    via = dict.fromkeys(roots)
    queue = list(roots)
    while queue:
        name = queue.pop()
        for ref in found[name].refs:
            if ref in found and ref not in via:
                via[ref] = name
                queue.append(ref)
    return via


def references(names, function, allowed):
    """Findings about the symbols that one function refers to."""
    for ref in sorted(function.refs):
        symbol = names.get(ref, ref)
        if PANIC.search(symbol):
            yield "panic", f"refers to {symbol}"
        elif FLOAT_HELPER.match(symbol):
            yield "float", f"refers to {symbol}"
        elif symbol.startswith("__") and symbol not in allowed and not KERNEL_HAS.match(symbol):
            yield "helper", f"refers to {symbol}, which a kernel does not have"


def code_findings(function):
    """Findings about the instructions of one function."""
    if any(uses_float(*instruction) for instruction in function.code):
        yield "float", "uses a floating-point register"
    size = frame(function.code)
    if size > FRAME_LIMIT:
        yield "frame", f"takes {size} B of stack; allowed: {FRAME_LIMIT} B"


def objects(path, directory):
    """The object files of a Rust library (which holds metadata beside them)."""
    members = [m for m in run("ar", "t", path).split() if m.endswith(".o")]
    subprocess.run(["ar", "x", os.path.abspath(path), *members], check=True, cwd=directory)
    merged = os.path.join(directory, "merged")
    run("ld", "-r", "-o", merged, *(os.path.join(directory, m) for m in members))
    return merged


def findings(kind, path, allowed):
    with tempfile.TemporaryDirectory() as directory:
        yield from inspect(kind, path if kind == "elf" else objects(path, directory), path, allowed)


def inspect(kind, path, shown, allowed):
    found = functions(path)
    names = demangled(set(found) | {r for f in found.values() for r in f.refs})
    if kind == "elf":
        via = dict.fromkeys(found)
    else:
        # Parts of core that were compiled along count only where they are used.
        via = reached(found, [n for n in found if "piebald_" in names[n]])
    for name in via:
        function = found[name]
        by = f" (reached from {names[via[name]]})" if via[name] else ""
        if kind == "elf" and PANIC.search(names[name]):
            yield f"panic: {names[name]} is part of the program"
        if kind == "elf" and FLOAT_HELPER.match(names[name].split("::")[-1]):
            yield f"float: {names[name]} is part of the program"
        for what, text in (*references(names, function, allowed), *code_findings(function)):
            yield f"{what}: {names[name]}{by} {text}"
    if not via:
        yield f"empty: no function found in {shown}"
        return
    size, name = max((frame(found[n].code), names[n]) for n in via)
    print(f"{os.path.basename(shown)}: {len(via)} functions, largest frame {size} B in {name}")


def main(arguments):
    if len(arguments) < 2 or arguments[0] not in ("rlib", "elf"):
        sys.exit(__doc__)
    allowed = {b for a, b in zip(arguments[2:], arguments[3:]) if a == "--allow"}
    found = list(findings(arguments[0], arguments[1], allowed))
    for line in found:
        print(line)
    sys.exit(1 if found else 0)


main(sys.argv[1:])
