"""Records the programs of programs.toml, each once, into DIR/recorded/NAME.pbr.

    record.py PIEBALD QEMU DIR [NAME...]

PIEBALD is the program that records, QEMU the one that it takes, DIR has the inputs. A recording is
kept if its command, its limits, its inputs, the program's file and QEMU's are those of NAME.key
beside it; a NAME that is given is recorded anew. Ends with a table; its status is 1 if a recording failed.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

LIST = Path(__file__).resolve().parent / "programs.toml"
# What one recording may take: multiplied on a busy machine.
SECONDS = 300 * int(os.environ.get("PIEBALD_TIME_SCALE", "1"))
# What would differ from computer to computer; waiting threads shall sleep and not spin.
FIXED = {"LC_ALL": "C", "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1", "OMP_WAIT_POLICY": "passive"}
LEFT = {"PATH", "HOME", "PIEBALD_PLUGIN", "XDG_CACHE_HOME", "TMPDIR"}


class Refused(Exception):
    """Why there is no recording."""


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def key_of(qemu, program, folder):
    """What a recording depends on, as text."""
    first = program["command"][0]
    binary = folder / first if first.startswith("./") else shutil.which(first)
    if binary is None or not Path(binary).exists():
        raise Refused(f"{first}: not there")
    names = set(program["inputs"]) | {program.get("stdin", program["inputs"][0])}
    missing = [name for name in sorted(names) if not (folder / name).exists()]
    if missing:
        raise Refused(f"inputs = {missing}: not in {folder}")
    parts = {name: digest(folder / name) for name in sorted(names)}
    said = {key: program.get(key) for key in ("command", "stdin", "skip", "limit")}
    return json.dumps({**said, "program": digest(binary), "qemu": digest(qemu), "inputs": parts}, indent=1) + "\n"


def record(piebald, qemu, program, folder, output):
    """Runs the recorder; what it says is in NAME.log."""
    words = [piebald, "record", "--output", output, "--skip", program["skip"]]
    words += ["--limit", program["limit"], "--stop-at-limit", "--", *program["command"]]
    environment = {key: value for key, value in os.environ.items() if key in LEFT} | FIXED
    environment["PIEBALD_QEMU"] = qemu
    with open(output.with_suffix(".log"), "wb") as log:
        pipe = subprocess.PIPE if "stdin" in program else subprocess.DEVNULL
        with subprocess.Popen(
            words, cwd=folder, env=environment, stdin=pipe, stdout=subprocess.DEVNULL, stderr=log
        ) as running:
            if "stdin" in program:
                # Open until the program ends: an end of the file would be news to it.
                running.stdin.write((folder / program["stdin"]).read_bytes())
                running.stdin.flush()
            try:
                status = running.wait(SECONDS)
            except subprocess.TimeoutExpired:
                running.terminate()
                raise Refused(f"not recorded within {SECONDS} s") from None
    if status != 0:
        raise Refused(f"the recorder ended with status {status}, see {output.with_suffix('.log')}")


def described(piebald, output):
    """References, instructions and threads of a recording, which must be complete."""
    words = [piebald, "trace", "info", "--json", output]
    found = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    if not found["complete"]:
        raise Refused(f"{output}: not complete, {'; '.join(found['missing'])}")
    counts = found["counts"]
    return counts["references"], counts["instructions"], counts["threads"]


def made(piebald, qemu, program, folder, anew):
    """The row of the table for a program."""
    name = program["name"]
    output = folder / "recorded" / f"{name}.pbr"
    beside = output.with_suffix(".key")
    key = key_of(qemu, program, folder)
    kept = output.exists() and beside.exists() and beside.read_text() == key and not anew
    if not kept:
        print(f"recording {name}", flush=True)
        beside.unlink(missing_ok=True)
        record(piebald, qemu, program, folder, output)
    refs, instructions, threads = described(piebald, output)
    if threads < program.get("threads", 1):
        raise Refused(f"{threads} threads; allowed: {program['threads']} and more")
    beside.write_text(key)
    return f"{name:<12} {refs / 1e6:>8.1f} {instructions / 1e6:>8.1f} {threads:>7} {output.stat().st_size / 1e6:>8.1f}"


def main(words):
    if len(words) < 3:
        print("usage: record.py PIEBALD QEMU DIR [NAME...]", file=sys.stderr)
        return 2
    piebald, qemu, folder, wanted = words[0], words[1], Path(words[2]).resolve(), words[3:]
    programs = [p for p in tomllib.loads(LIST.read_text())["program"] if "command" in p]
    unknown = set(wanted) - {p["name"] for p in programs}
    if unknown:
        allowed = ", ".join(p["name"] for p in programs)
        print(f"record.py: {', '.join(sorted(unknown))}: allowed: {allowed}", file=sys.stderr)
        return 2
    (folder / "recorded").mkdir(exist_ok=True)
    rows, failed = [], []
    for program in programs:
        if wanted and program["name"] not in wanted:
            continue
        try:
            rows.append(made(piebald, qemu, program, folder, bool(wanted)))
        except Refused as why:
            failed.append(f"{program['name']}: {why}")
    print(f"\n{'program':<12} {'M refs':>8} {'M instr':>8} {'threads':>7} {'MB':>8}")
    print("\n".join(rows))
    for line in failed:
        print(f"NOT RECORDED: {line}", file=sys.stderr)
    return 1 if failed else 0


sys.exit(main(sys.argv[1:]))
