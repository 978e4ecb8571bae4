#!/usr/bin/env python3
"""Pages of results: their numbers come from the rows that were run, by name.

    scripts/results-pages.py check   fails if a page is not what its source and the rows make
    scripts/results-pages.py make    writes the pages, and prints which changed

A page reproduce/PAPER/results.md is made from reproduce/PAPER/results.md.in, in which numbers of rows are
cited:

    {{D-6 reduction of time}}               48.2 % (47.5 to 48.8)
    {{D-6 reduction of time; value}}        48.2 %
    {{D-6 reduction of time; number}}       48.2
    {{D-6 reduction of time; interval}}     48.2 (47.5 to 48.8)
    {{D-6 reduction of time; ends}}         47.5 to 48.8
    {{D-6 reduction of time; negative}}     -48.2 % (-48.8 to -47.5)
    {{D-6 reduction of time; number .0}}    48, in digits behind the point
    {{D-6 reduction of time; paper}}        what the paper has, as the row has it
    {{D-6: verdict}}                        miss
    {{D-7: statements}}                     3 of 4 statements

A value is named in full or by a part that only it has. Where no digits are asked for, the last one of a number is
worth at most a third of the interval's half width, and a number has at most four; three where there is no interval.

Rows are those of testdata/golden/reproduce.json.xz (scripts/golden.py make reproduce), and, where that has
none, of reproduce/PAPER/results.json: rows over recordings, which differ from one recording to the next.
A name that no row has, a value without a number and a verdict in the table of targets that is not the row's
are errors with file and line.
"""
import itertools
import json
import lzma
import math
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CITED = re.compile(r"\{\{(.*?)\}\}")
VERDICTS = ("match", "near", "miss", "given", "not run")
FORMS = ("full", "value", "number", "interval", "ends", "paper")


class Wrong(Exception):
    """What a page's source asks for, and there is not."""


def rows_of(folder):
    """Rows of a paper by id: those that were kept with the page, and those that are golden."""
    rows = {}
    kept = folder / "results.json"
    if kept.exists():
        document = json.loads(kept.read_text(encoding="utf-8"))
        rows = {row["id"]: row for row in document["targets"]}
    golden = lzma.decompress((ROOT / "testdata/golden/reproduce.json.xz").read_bytes())
    return rows | json.loads(golden).get(folder.name, {})


def row_of(rows, name):
    if name not in rows:
        raise Wrong(f"no row {name}; there are {', '.join(rows) or 'none'}")
    return rows[name]


def value_of(row, name):
    """The value of a row that has this name, or the only one with this part in its name."""
    whole = [v for v in row["values"] if v["name"] == name]
    parts = [v for v in row["values"] if name in v["name"]]
    # A row may show what it judges once more.
    found = {(str(v["measured"]), str(v["ci95"])): v for v in reversed(whole)}.values() or parts
    if len(found) != 1:
        names = "; ".join(v["name"] for v in found or row["values"])
        raise Wrong(f"{row['id']} has {len(found)} values {name!r}: {names}")
    return next(iter(found))


def digits_of(value, ends):
    """Digits behind the point."""
    size = math.floor(math.log10(abs(value))) if value else 0
    half = (ends[1] - ends[0]) / 2 if ends else 0
    if half:
        return max(0, min(-math.floor(math.log10(half / 3)), 3 - size))
    return 0 if value == round(value) else max(0, 2 - size)


def number(value, digits):
    text = f"{value:.{digits}f}"
    # Nothing is below zero by less than it shows.
    return text.removeprefix("-") if float(text) == 0 else text


def with_unit(text, unit):
    return f"{text} {unit}" if unit else text


def cited(rows, words):
    """What stands for a citation, without its braces."""
    head, _, options = words.partition(";")
    name, _, what = head.strip().partition(" ")
    if name.endswith(":"):
        row = row_of(rows, name[:-1])
        if what == "verdict":
            return row["verdict"].replace("-", " ")
        if what == "statements":
            if any(p["holds"] is None for p in row["predicates"]):
                raise Wrong(f"{row['id']}: not all of its statements were looked at")
            return f"{sum(p['holds'] for p in row['predicates'])} of {len(row['predicates'])} statements"
        raise Wrong(f"{name} {what}: allowed: verdict, statements")
    value = value_of(row_of(rows, name), what.strip())
    form, sign, digits = "full", 1, None
    for option in options.split():
        if option in FORMS:
            form = option
        elif option == "negative":
            sign = -1
        elif re.fullmatch(r"\.\d", option):
            digits = int(option[1:])
        else:
            raise Wrong(f"option {option}; allowed: {', '.join(FORMS)}, negative, .DIGITS")
    if form == "paper":
        return with_unit(str(value["paper"]), value["unit"])
    if value["measured"] is None:
        raise Wrong(f"{name} {what}: the row has no number")
    measured = sign * value["measured"]
    ends = sorted(sign * end for end in value["ci95"] or [])
    digits = digits_of(measured, ends) if digits is None else digits
    text = number(measured, digits)
    between = " to ".join(number(end, digits) for end in ends)
    # Repetitions that are the same make no interval to be shown.
    ends = ends if between != f"{text} to {text}" else []
    if form in ("number", "value") or not ends:
        if form == "ends":
            raise Wrong(f"{name} {what}: the row has no interval, or one of no width")
        return text if form in ("number", "interval") else with_unit(text, value["unit"])
    if form == "ends":
        return between
    unit = value["unit"] if form == "full" else ""
    return f"{with_unit(text, unit)} ({between})"


def verdict_is_the_rows(rows, line):
    """A line of the table of targets, `| D-6 | ... | verdict ... |`: the verdict is a citation, or another's words
    about a row that is not kept."""
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    row = rows.get(cells[0].rstrip("\\*"))
    said = next((v for v in VERDICTS if cells[-1].startswith(v)), None)
    if line.startswith("|") and row and said:
        raise Wrong(f"{row['id']}: {said!r} is written out; cite it: {{{{{row['id']}: verdict}}}}")


def page_of(source):
    """The page that a source makes."""
    rows = rows_of(source.parent)
    out = [f"<!-- Made by scripts/results-pages.py from {source.name}: change that. -->"]
    for at, line in enumerate(source.read_text(encoding="utf-8").splitlines(), 1):
        try:
            verdict_is_the_rows(rows, line)
            out.append(CITED.sub(lambda found: cited(rows, found[1].strip()), line))
        except Wrong as wrong:
            raise Wrong(f"{source.relative_to(ROOT)}:{at}: {wrong}") from None
    return "\n".join(out) + "\n"


def first_difference(old, new):
    """Number of the first line in which two different texts differ, and what each has there."""
    lines = itertools.zip_longest(old.splitlines(keepends=True), new.splitlines(keepends=True), fillvalue="")
    at, (has, wants) = next((n, pair) for n, pair in enumerate(lines, 1) if pair[0] != pair[1])
    return at, has.rstrip("\n"), wants.rstrip("\n")


def main():
    if sys.argv[1:] not in (["check"], ["make"]):
        sys.exit(__doc__)
    sources = sorted(ROOT.glob("reproduce/*/results.md.in"))
    good = bool(sources)
    for source in sources:
        page = source.with_suffix("")
        name = page.relative_to(ROOT)
        try:
            new = page_of(source)
        except Wrong as wrong:
            print(wrong)
            good = False
            continue
        old = page.read_text(encoding="utf-8") if page.exists() else ""
        if old != new and sys.argv[1] == "make":
            page.write_text(new, encoding="utf-8")
            print(f"{name}: written")
        elif old != new:
            at, has, wants = first_difference(old, new)
            print(f"{name}:{at}: is not what its source and the rows make; scripts/results-pages.py make\n"
                  f"    has   {has}\n    wants {wants}")
            good = False
    print(f"{len(sources)} pages, {'as their rows are' if good else 'NOT as their rows are'}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
