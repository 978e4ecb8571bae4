#!/usr/bin/env python3
"""Golden outputs: what the program prints today, number by number.

    scripts/golden.py check [GROUP...]   runs the cases, prints what moved, fails if anything did
    scripts/golden.py make  [GROUP...]   runs them, prints what moved, and keeps the new outputs
    scripts/golden.py list               groups, cases and what they hold

Options:
    --piebald FILE   the command, built already [target/release/piebald]
    --threads N      threads of each case; outputs do not depend on it [1]
    --jobs N         cases at a time [all processors]
    --results DIR    for the group `reproduce`: results that are there, DIR/PAPER/quick/results.json,
                     instead of new ones
    --outputs DIR    keeps the documents of studies and replays as well: DIR/study/N.json, DIR/replay/N.json
    --without GROUP  all groups but this; may be given again
    --case NAME      only this case; may be given again; to check one group, not to make
    --rows PAPER=ROW,ROW  of this paper only these rows of the group `reproduce`; to check, not to make

The cases are in testdata/golden/cases.toml, the outputs beside it: one file GROUP.json.xz for
each group, canonical JSON without what differs between two runs (seconds of the host, version,
command). A redesign leaves them equal; a change that is meant to move them says which, and why.
"""
import argparse
import concurrent.futures
import json
import lzma
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import trace_samples  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "testdata/golden"
# What differs between two runs of the same program.
VOLATILE = {"host_seconds", "version", "command", "seconds", "cpu_seconds"}
SHOWN = 12


def strip(value):
    """The value without what differs between two runs."""
    if isinstance(value, dict):
        return {k: strip(v) for k, v in sorted(value.items()) if k not in VOLATILE}
    if isinstance(value, list):
        return [strip(v) for v in value]
    return value


def leaves(value, path=""):
    """Pairs of path and value of all that holds nothing further."""
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list) and value:
        for at, inner in enumerate(value):
            yield from leaves(inner, f"{path}[{at}]")
    else:
        yield path, value


class Failed(Exception):
    """A case that gave no output."""


def run(command, cwd=ROOT, env=None):
    # A terminal's width and colours, and the user's own settings, are no part of an output.
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PIEBALD_")}
    clean |= {"LC_ALL": "C.UTF-8", "COLUMNS": "100", "NO_COLOR": "1"} | (env or {})
    return subprocess.run(
        [str(word) for word in command], cwd=cwd, env=clean, capture_output=True, text=True,
        errors="backslashreplace", stdin=subprocess.DEVNULL, check=False)


def run_json(command, out, options, cwd=ROOT):
    """What a command writes to `out`; its exit status must be 0."""
    done = run(command, cwd)
    if done.returncode != 0:
        raise Failed(f"{' '.join(map(str, command))}: exit status {done.returncode}\n{done.stderr}")
    document = json.loads(out.read_text(encoding="utf-8"))
    if options.outputs:
        kind = "sweep" if isinstance(document, list) else command[1]
        kept = options.outputs / kind
        kept.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=kept, suffix=".json", delete=False) as file:
            file.write(out.read_bytes())
    return document


# --- the groups: each yields (name of the case, function that runs it in a folder) -----------

def study_cases(table, options):
    for case in table.get("study", []):
        for seed in case.get("seeds", [1, 2]):
            yield f"{case['name']}, seed {seed}", lambda dir, c=case, s=seed: study(c, s, dir, options)


def studies_and_files(table, options):
    yield "files", lambda dir: every_scenario_is_a_case(table)
    yield from study_cases(table, options)


def every_scenario_is_a_case(table):
    """The scenario files that are cases; fails if one is neither a case nor left out."""
    cases = {case["scenario"] for case in table["study"]}
    left_out = set(table["left_out"])
    there = {str(path.relative_to(ROOT)) for folder in ("scenarios", "docs/tutorials")
             for path in (ROOT / folder).glob("*.toml")}
    if there != (cases & there) | left_out or cases & left_out:
        wrong = sorted((there - cases - left_out) | (left_out - there) | (cases & left_out))
        raise Failed(f"testdata/golden/cases.toml: {', '.join(wrong)}: allowed: either a case or left out")
    return {"files": sorted(cases & there)}


def study(case, seed, dir, options):
    source = ROOT / case["scenario"]
    text = source.read_text(encoding="utf-8")
    for old, new in case.get("replace", []):
        if old not in text:
            raise Failed(f"{case['scenario']} has no {old!r}, which {case['name']} replaces")
        text = text.replace(old, new)
    # Beside recordings that it names by relative paths.
    for recording in source.parent.glob("*.pbr"):
        (dir / recording.name).symlink_to(recording)
    scenario = dir / source.name
    scenario.write_text(text, encoding="utf-8")
    out = dir / "out.json"
    command = [options.piebald, "study", scenario.name, "--json", out, "--quiet",
               "--threads", options.threads, "--seed", seed, *case.get("options", [])]
    return run_json(command, out, options, dir)


def replay_cases(table, options):
    for case in table.get("replay", []):
        for below, words in case["below"].items():
            yield f"{case['name']}, {below}", lambda dir, c=case, w=words: replay(c, w, dir, options)


def replay(case, words, dir, options):
    out = dir / "out.json"
    command = [options.piebald, "replay", *case["traces"], f"--json={out}", "--quiet",
               "--threads", options.threads, *case.get("options", []), *words]
    return run_json(command, out, options)


def format_cases(table, options):
    """Two replays of each block format, and what is said of each memory format."""
    yield "names", lambda dir: every_format_has_a_sample(table, options)
    for form in trace_samples.FORMATS:
        for seed in (1, 2):
            yield f"{form}, seed {seed}", lambda dir, f=form, s=seed: format_replay(f, s, dir, options)
    for path in table["formats"]["memory"]:
        yield path, lambda dir, p=path: memory_format(p, options)
    for form in trace_samples.MEMORY:
        yield form, lambda dir, f=form: memory_format(dir / trace_samples.write(f, 1, dir), options)


def every_format_has_a_sample(table, options):
    """All names; fails if nothing here reads one of them."""
    found = json.loads(run([options.piebald, "trace", "formats", "--json"]).stdout)
    names = sorted(form["name"] for form in found["formats"])
    paths = " ".join(table["formats"]["memory"])
    # Those that lie in testdata/mem are called so by their files' endings.
    endings = {"champsim-cloudsuite": "cloudsuite"}
    missing = [name for name in names
               if name not in trace_samples.FORMATS and name not in trace_samples.MEMORY
               and f".{endings.get(name, name)}" not in paths]
    if missing:
        raise Failed(f"no sample of {', '.join(missing)}; scripts/trace_samples.py writes them")
    return {"names": names}


def format_replay(form, seed, dir, options):
    name = trace_samples.write(form, seed, dir)
    out = dir / "out.json"
    command = [options.piebald, "replay", name, f"--json={out}", "--quiet", "--threads",
               options.threads, "--policy", "lru,s3-fifo,dulo", "--size", "10%,50%"]
    if seed == 2:
        command += ["--readahead", "none"]
    if form == "columns":
        command += ["--columns", trace_samples.COLUMNS]
    elif seed == 2 or form in trace_samples.TO_BE_NAMED:
        command += ["--format", form]
    return run_json(command, out, options, dir)


def memory_format(path, options):
    told = {}
    for verb in ("info", "head"):
        done = run([options.piebald, "trace", verb, path])
        if done.returncode != 0:
            raise Failed(f"trace {verb} {path}: {done.stderr}")
        # A file that was written for this lies in another folder each time.
        told[verb] = done.stdout.replace(str(path), Path(path).name).splitlines()
    return told


def refused_cases(_, options):
    folder = GOLDEN / "refused"
    for path in sorted(folder.glob("*.toml")):
        yield path.name, lambda dir, p=path: refused(p, dir, options)


def refused(path, dir, options):
    verb = ["guest", "run"] if path.name.startswith("guest-") else ["study"]
    done = run([options.piebald, *verb, path.name, "--output", dir / "out"], path.parent)
    left = sorted(str(p.relative_to(dir)) for p in dir.rglob("*"))
    return {"status": done.returncode, "stdout": done.stdout, "stderr": done.stderr, "left": left}


def reproduce_cases(table, options):
    for paper, case in table["reproduce"].items():
        yield paper, lambda dir, p=paper, c=case: reproduce(p, c, dir, options)


def reproduce(paper, case, dir, options):
    """The rows whose inputs are generated or committed, with all their digits."""
    if options.results:
        out = Path(options.results) / paper / "quick/results.json"
        found = json.loads(out.read_text(encoding="utf-8"))
    else:
        out = dir / "results.json"
        command = [options.piebald, "reproduce", paper, "--quick", "--quiet", "--store", "none", "--json", out,
                   "--threads", options.threads]
        found = run_json(command + (["--only", ",".join(case["only"])] if "only" in case else []), out, options)
    rows = {row["id"]: row for row in found["targets"]}
    wanted = options.rows.get(paper) or case.get("only", sorted(rows))
    missing = [row for row in wanted if row not in rows]
    if missing:
        raise Failed(f"reproduce {paper}: no rows {', '.join(missing)} in {out}")
    cut = [row for row in wanted if rows[row].get("why") and "interrupted" in rows[row]["why"]]
    if cut:
        raise Failed(f"reproduce {paper}: {', '.join(cut)} in {out} were interrupted")
    return {row: rows[row] for row in wanted}


def hw_cases(_, options):
    yield "digests", lambda dir: hw_digests(dir)


def hw_digests(dir):
    """Counters, clocks and occupancy of many runs of the machine model, one number for each."""
    out = dir / "digests"
    command = [os.environ.get("CARGO", "cargo"), "test", "--quiet", "-p", "piebald-hw", "--test", "all", "digest::"]
    run(command, env={"PIEBALD_DIGESTS": str(out)})
    if not out.exists():
        raise Failed("cargo test -p piebald-hw --test all digest:: wrote no digests")
    return dict(sorted(line.split() for line in out.read_text(encoding="utf-8").splitlines()))


GROUPS = {
    "hw": hw_cases,
    "study": studies_and_files,
    "recordings": lambda table, options: study_cases({"study": table["recordings"]}, options),
    "replay": replay_cases,
    "formats": format_cases,
    "refused": refused_cases,
    "reproduce": reproduce_cases,
}
# Kept as text, as it is read by people and by tests of cargo.
PLAIN = {"hw", "refused"}


# --- keeping and comparing --------------------------------------------------------------------

def kept_at(group):
    return GOLDEN / (f"{group}.json" if group in PLAIN else f"{group}.json.xz")


def load(group):
    path = kept_at(group)
    if not path.exists():
        return {}
    data = path.read_bytes()
    return json.loads(data if group in PLAIN else lzma.decompress(data))


def keep(group, outputs):
    text = json.dumps(outputs, indent=1, sort_keys=True, ensure_ascii=False) + "\n"
    path = kept_at(group)
    data = text.encode()
    partial = path.with_name(path.name + ".partial")
    partial.write_bytes(data if group in PLAIN else lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
    partial.replace(path)


def number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def moved(group, name, old, new):
    """Prints in what two outputs of a case differ; how many values do."""
    if old is None:
        print(f"{group}: {name}: new")
        return 1
    old, new = dict(leaves(old)), dict(leaves(new))
    # As text: to Python, 1, 1.0 and True are equal.
    old_text, new_text = ({p: json.dumps(v) for p, v in of.items()} for of in (old, new))
    paths = [p for p in {**old, **new} if old_text.get(p) != new_text.get(p)]
    if not paths:
        return 0
    print(f"{group}: {name}: {len(paths)} of {len(new)} values moved")
    for path in paths[:SHOWN]:
        before, after = old.get(path, "(absent)"), new.get(path, "(absent)")
        relative = ""
        if number(before) and number(after) and before:
            relative = f"  ({(after - before) / abs(before):+.2%})"
        print(f"    {path}: {short(before)} -> {short(after)}{relative}")
    if len(paths) > SHOWN:
        print(f"    ... and {len(paths) - SHOWN} more")
    return len(paths)


def short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 160 else text[:157] + "..."


def run_case(case):
    """Name, output, why there is none, and the seconds that it took."""
    name, work = case
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        try:
            output, why = strip(work(Path(folder))), None
        except (Failed, OSError, ValueError) as error:
            output, why = None, str(error)
    return name, output, why, time.monotonic() - began


def wanted_of(kept, rows):
    """Of an output that is kept, these rows: all, if none are named."""
    return {row: kept.get(row) for row in rows} if kept and rows else kept


def run_group(group, table, options):
    """Outputs of a group by case, and whether all of them are those that are kept."""
    cases = list(GROUPS[group](table, options))
    asked = set(options.case)
    if unknown := sorted(asked - {name for name, _ in cases}):
        print(f"{group}: no case {', '.join(unknown)}; allowed: {', '.join(name for name, _ in cases)}")
        return {}, False, False
    cases = [case for case in cases if not asked or case[0] in asked]
    before, outputs, good, slowest = load(group), {}, True, (0, "")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for name, output, why, took in pool.map(run_case, cases):
            slowest = max(slowest, (took, name))
            if why is not None:
                print(f"{group}: {name}: failed: {why}")
                good = False
                continue
            outputs[name] = output
            # As it will be read back.
            output = json.loads(json.dumps(output))
            good &= moved(group, name, wanted_of(before.get(name), options.rows.get(name)), output) == 0
    for name in () if asked else before.keys() - {name for name, _ in cases}:
        print(f"{group}: {name}: is kept, and no longer a case")
        good = False
    values = sum(1 for output in outputs.values() for _ in leaves(output))
    print(f"{group}: {len(outputs)} cases, {values} values, {'equal' if good else 'NOT equal'}; "
          f"the slowest, {slowest[1]}, took {slowest[0]:.0f} s", flush=True)
    return outputs, good, len(outputs) == len(cases)


def rows_of(words, parser):
    """The rows of each paper, from PAPER=ROW,ROW."""
    papers = tomllib.loads((GOLDEN / "cases.toml").read_text(encoding="utf-8"))["reproduce"]
    rows = {}
    for word in words:
        paper, _, names = word.partition("=")
        if paper not in papers or not names:
            parser.error(f"--rows {word}: allowed: PAPER=ROW,ROW with one of {', '.join(papers)}")
        rows[paper] = names.split(",")
    return rows


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["check", "make", "list"])
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--piebald", default=ROOT / "target/release/piebald")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--results")
    parser.add_argument("--outputs", type=Path)
    parser.add_argument("--rows", action="append", default=[])
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--without", choices=GROUPS, action="append", default=[])
    options = parser.parse_args()
    options.rows = rows_of(options.rows, parser)
    if options.rows and (options.verb, options.groups) != ("check", ["reproduce"]):
        parser.error("--rows: allowed: check reproduce")
    if options.case and (options.verb != "check" or len(options.groups) != 1):
        parser.error("--case: allowed: check GROUP, one")
    for group in options.groups:
        if group not in GROUPS:
            parser.error(f"group {group!r}: allowed: {', '.join(GROUPS)}")
    options.piebald = Path(shutil.which(options.piebald) or options.piebald).resolve()
    if not options.piebald.is_file():
        parser.error(f"--piebald {options.piebald}: no such program; build it with cargo build --release")
    if options.results:
        options.results = Path(options.results).resolve()
    if options.outputs:
        options.outputs = options.outputs.resolve()
    return options


def main():
    options = arguments()
    table = tomllib.loads((GOLDEN / "cases.toml").read_text(encoding="utf-8"))
    # `reproduce` takes minutes: test.sh compares what its own stage has made.
    groups = options.groups or [g for g in GROUPS if g not in ("reproduce", *options.without)]
    if options.verb == "list":
        for group in options.groups or GROUPS:
            for name, _ in GROUPS[group](table, options):
                print(f"{group}: {name}")
        return 0
    all_good = True
    for group in groups:
        outputs, good, whole = run_group(group, table, options)
        if options.verb == "make":
            if not whole:
                print(f"{group}: not kept, as cases failed")
                all_good = False
            elif not good:
                keep(group, outputs)
        else:
            all_good &= good
    if options.verb == "check" and not all_good:
        print("Meant to move? Then scripts/golden.py make, and say why in the commit.")
    size = sum(p.stat().st_size for p in GOLDEN.rglob("*") if p.is_file())
    print(f"{re.sub(r'^.*/testdata', 'testdata', str(GOLDEN))}: {size / 1e6:.1f} MB")
    return 0 if all_good else 1


if __name__ == "__main__":
    sys.exit(main())
