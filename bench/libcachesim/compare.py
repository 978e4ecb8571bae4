"""Runs libCacheSim's policies and Piebald's over the same lists of pages, prints a table of
their misses, and writes libCacheSim's to a file.

compare.py VERSION FOLDER PIEBALD COUNTS

FOLDER holds traces.tsv (name, references, different pages, digest, sizes) and NAME.pages.
"""
import json
import pathlib
import subprocess
import sys

import libcachesim as lcs
import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "replay-policies"))
import oracle  # noqa: E402

VERSION, FOLDER, PIEBALD, COUNTS = sys.argv[1], pathlib.Path(sys.argv[2]), *sys.argv[3:]

# Piebald's policies beside each of libCacheSim's, with its default options. Without a reason
# the counts have to be equal.
POLICIES = {
    "FIFO": {"fifo": ""},
    "LRU": {"lru": ""},
    "Clock": {"clock": ""},
    "Sieve": {"sieve": ""},
    "ARC": {"arc": ""},
    "S3FIFO": {
        "s3-fifo": "",
        "s3-fifo:rule=artifact": "new pages enter small while memory fills",
        "s3-fifo:rule=paper": "the same, and the queue is chosen anew after each page that moves on",
    },
    "TwoQ": {
        "2q:rule=libcachesim": "",
        "2q": "a name stays in A1out until its page is in memory",
    },
    "LRUK": {
        "lru-2:retained=0": "",
        "lru-2": "keeps the history of as many pages that left as fit in memory",
    },
    "MQ": {
        "mq:life-time=10000": "",
        "mq": "the life time is 4 times the pages of memory, not 10000",
    },
    "Belady": {"min": ""},
    "LIRS": {
        "lirs": "libCacheSim takes the lowest LIR block out of S at a hit on a block that is in Q "
                "only, and bounds S, not the ghosts",
    },
    "WTinyLFU": {
        "w-tinylfu": "another sketch, counted at other times and halved later; protected fills before "
                     "probation is in use; rounded segments lose a page at a hit; below 100 pages "
                     "libCacheSim's window has none and lets nothing in",
    },
}


class Trace:
    """A list of pages, as a file that both programs read."""

    def __init__(self, line):
        self.name, self.references, self.distinct, self.digest, *sizes = line.split("\t")
        self.sizes = [int(size) for size in sizes]
        pages = np.loadtxt(FOLDER / f"{self.name}.pages", dtype=np.uint64)
        self.path = FOLDER / f"{self.name}.oracleGeneral"
        oracle.write(self.path, pages)

    def theirs(self, policy, pages):
        kind = lcs.TraceType.ORACLE_GENERAL_TRACE
        reader = lcs.TraceReader(str(self.path), kind, lcs.ReaderInitParam(ignore_obj_size=True))
        cache = getattr(lcs, policy)(pages, hashpower=18)
        miss_ratio, _ = cache.process_trace(reader)
        return round(miss_ratio * int(self.references))

    def ours(self, policies):
        """Misses by policy and pages."""
        command = [PIEBALD, "replay", self.path, "--format", "oracle-general", "--quiet", "--json",
                   "--readahead", "none", "--policy", ",".join(policies),
                   "--size", ",".join(f"{pages * 4}KiB" for pages in self.sizes)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        runs = json.loads(done.stdout)["runs"]
        return {(run["policy"], run["size_pages"]): run["misses"] for run in runs}


def record(traces, theirs):
    """Writes libCacheSim's counts."""
    lines = [
        f"# Misses of libCacheSim {VERSION} (libcachesim on PyPI), with the default options of its Python classes.",
        "# Objects of one byte. Written by bench/libcachesim/run.sh --record, which makes the lists of pages, too.",
        "# trace: name, references, different pages, FNV-1a of the list",
        "# misses: trace, policy, pages that fit, misses",
    ]
    lines += ["\t".join(["trace", t.name, t.references, t.distinct, t.digest]) for t in traces]
    lines += ["\t".join(["misses", name, policy, str(pages), str(count)])
              for (name, policy, pages), count in theirs.items()]
    pathlib.Path(COUNTS).write_text("\n".join(lines) + "\n")


def main():
    traces = [Trace(line) for line in (FOLDER / "traces.tsv").read_text().splitlines()]
    theirs = {(t.name, policy, pages): t.theirs(policy, pages)
              for t in traces for policy in POLICIES for pages in t.sizes}
    record(traces, theirs)
    specs = [spec for ours in POLICIES.values() for spec in ours]
    ours = {t.name: t.ours([spec.replace(",", ";") for spec in specs]) for t in traces}
    print(f"""# Misses of replacement policies beside libCacheSim {VERSION}

Written by `bench/libcachesim/run.sh`. The traces are lists of pages, made by
`crates/os-model/examples/libcachesim_traces.rs`; every reference is a demand read of one page.
libCacheSim's policies have the default options of their Python classes.

| trace | references | different pages |
|---|---|---|""")
    for t in traces:
        print(f"| {t.name} | {int(t.references):,} | {int(t.distinct):,} |")
    wrong = []
    for policy, beside in POLICIES.items():
        for spec, reason in beside.items():
            print(f"\n## `{spec}` and {policy}\n")
            if reason:
                print(f"Differs: {reason}.\n")
            print("| trace | pages | misses | libCacheSim's | difference |\n|---|---|---|---|---|")
            for t in traces:
                for pages in t.sizes:
                    mine, other = ours[t.name][spec, pages], theirs[t.name, policy, pages]
                    off = "equal" if mine == other else f"{(mine / other - 1) * 100:+.2f} %"
                    print(f"| {t.name} | {pages:,} | {mine:,} | {other:,} | {off} |")
                    if mine != other and not reason:
                        wrong.append(f"{spec} on {t.name} with {pages} pages: {mine} for {other}")
    if wrong:
        sys.exit("\n".join(["not equal:", *wrong]))


main()
