"""The results of run.sh as a page of Markdown.

table.py DIRECTORY RUNS PAGES PROCESSOR LOAD TRACE
"""
import datetime
import statistics
import sys

directory, runs, pages, processor, load, trace = sys.argv[1:]

# Why counts differ, where they do by design; what is not here has to be equal.
REASONS = {
    "lirs": "libCacheSim takes the lowest LIR block out of S at a hit on a block that is in Q only, and "
            "bounds S, not the ghosts.",
    "2q": "the name of a page that is asked for stays in A1out until the page is in memory; with "
          "`2q:rule=libcachesim` it does not, and counts are equal.",
    "w-tinylfu": "the sketch, what is counted in it and when it is halved differ, and how the main part "
                 "fills; [all rules](../../docs/replay.md#policies-beside-libcachesim).",
}


class Row:
    """What was measured of one policy by one program."""

    def __init__(self):
        self.rates, self.sizes, self.counts, self.references = [], [], set(), 0

    @property
    def rate(self):
        return statistics.median(self.rates)

    @property
    def bytes(self):
        return statistics.median(self.sizes)

    @property
    def misses(self):
        """The same in every run; a set of several would be a defect."""
        return " / ".join(f"{n:,}" for n in sorted(self.counts))


def read(name):
    rows = {}
    for line in open(f"{directory}/{name}.txt"):
        policy, _, references, count, rate, *size = line.split()
        row = rows.setdefault(policy, Row())
        row.rates.append(float(rate))
        row.sizes.extend(float(s) for s in size)
        row.counts.add(int(count))
        row.references = int(references)
    return rows


whole, cache, peer = read("whole"), read("cache"), read("peer")
references = next(iter(peer.values())).references
print(f"""# Replacement policies beside libCacheSim 0.3.5

{datetime.date.today()}, {processor}; load {load} at the end. {references:,} references, {trace};
{int(pages):,} pages fit. One thread; medians of {runs} runs each, the programs in turns.

* *Command*: `piebald replay`, decoding and output included; its rate and libCacheSim's are per
  second of processor time of what reads the trace from a file.
* *Cache*: the policy with its host, over references in memory: what policies differ in. The
  command also reads and decodes the trace and counts its pages and how sequential they are.
* *Memory*: what the process has grown by when the cache is full, for each page that fits, tables of
  names and ghosts included. libCacheSim's hash tables have a fixed size.

| policy | command, M refs/s | cache, M refs/s | libCacheSim, M refs/s | command / libCacheSim | cache / libCacheSim | B per page | libCacheSim's | misses | libCacheSim's | note |
|---|---|---|---|---|---|---|---|---|---|---|""")
notes = {}
for p, theirs in peer.items():
    ours = cache[p]
    assert ours.counts == whole[p].counts, f"{p}: command and cache differ"
    note = "equal"
    if ours.counts != theirs.counts:
        notes[p] = REASONS.get(p, "not explained")
        off = (max(ours.counts) / max(theirs.counts) - 1) * 100
        note = f"{off:+.2f} %, see below"
    print(f"| {p} | {whole[p].rate:.1f} | {ours.rate:.1f} | {theirs.rate:.1f} "
          f"| {whole[p].rate / theirs.rate:.1f} | {ours.rate / theirs.rate:.1f} | {ours.bytes:.0f} | {theirs.bytes:.0f} "
          f"| {ours.misses} | {theirs.misses} | {note} |")
for p in cache:
    if p not in peer and p != "curve":
        print(f"| {p} | | {cache[p].rate:.1f} | | | | {cache[p].bytes:.0f} | | {cache[p].misses} | | |")
curve = cache["curve"]
same = "the same" if curve.counts == cache["lru"].counts else "NOT the same"
print(f"""
LRU's curve, exact at every size in one pass: {curve.rate:.1f} M refs/s, of LRU at one size
{curve.rate / cache["lru"].rate:.2f}; its misses at {int(pages):,} pages are {same} as those of `lru`. DULO over
references without places costs {cache["clock"].rate / cache["dulo"].rate:.2f} times CLOCK.
""")
for p, why in notes.items():
    print(f"* `{p}`: {why}")
