#!/usr/bin/env python3
"""Tests of the pages of results: what their numbers look like, and what is refused. Seconds.

    scripts/test_results_pages.py
"""
import importlib.util
import json
import lzma
import tempfile
import unittest
from pathlib import Path

SPEC = importlib.util.spec_from_file_location("pages", Path(__file__).with_name("results-pages.py"))
pages = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(pages)


def value(name, measured, ci95=None, unit="%", paper=None):
    return {"name": name, "measured": measured, "ci95": ci95, "unit": unit, "paper": paper}


def row(name, values, verdict="miss", holds=()):
    return {"id": name, "verdict": verdict, "values": values, "predicates": [{"holds": h} for h in holds]}


ROWS = {
    "X-1": row("X-1", [value("reduction of time", 48.1747, [47.512, 48.837], paper=55.3),
                       value("reduction of time, alone", -0.4589, [-2.3518, 1.4339]),
                       value("pages", 28000.0, unit=""), value("moved", 1096.0, [1096.0, 1096.0], unit="")],
               holds=(True, False, True)),
    "X-2": row("X-2", [value("absent", None)], verdict="not-run", holds=(True, None)),
    # Shown once more, and shown as something else.
    "X-3": row("X-3", [value("time", 2.0, unit="s", paper=3.0), value("time", 2.0, unit="s"), value("hits", 1.0),
                       value("hits", 2.0)]),
}


class Citations(unittest.TestCase):
    def test_forms(self):
        for words, expected in {
            "X-1 reduction of time": "48.2 % (47.5 to 48.8)",
            "X-1 reduction of time; value": "48.2 %",
            "X-1 reduction of time; number": "48.2",
            "X-1 reduction of time; interval": "48.2 (47.5 to 48.8)",
            "X-1 reduction of time; ends": "47.5 to 48.8",
            "X-1 reduction of time; negative": "-48.2 % (-48.8 to -47.5)",
            "X-1 reduction of time; number .0": "48",
            "X-1 reduction of time; paper": "55.3 %",
            "X-1 alone": "-0.5 % (-2.4 to 1.4)",
            # What shows as nothing has no sign.
            "X-1 alone; number .0": "0",
            "X-1 pages": "28000",
            "X-1 moved": "1096",
            "X-3 time": "2 s",
            "X-1: verdict": "miss",
            "X-2: verdict": "not run",
            "X-1: statements": "2 of 3 statements",
        }.items():
            self.assertEqual(pages.cited(ROWS, words), expected, words)

    def test_digits_follow_the_interval(self):
        for measured, half, expected in [(18, 9, 0), (38.63, 1.9, 1), (1.6, 0.6, 1), (7.916, 0.017, 3),
                                         (0.0905, 0.0005, 4), (1234.5, 0.001, 0)]:
            self.assertEqual(pages.digits_of(measured, [measured - half, measured + half]), expected, (measured, half))

    def test_refused(self):
        for words, said in {
            "X-9 time": "no row X-9; there are X-1, X-2, X-3",
            "X-1 time": "2 values 'time': reduction of time; reduction of time, alone",
            "X-1 hits": "0 values 'hits'",
            "X-3 hits": "2 values 'hits'",
            "X-2: statements": "not all of its statements",
            "X-1 pages; ends": "no interval",
            "X-1 pages; nearly": "option nearly; allowed",
            "X-1: title": "allowed: verdict, statements",
            "X-2 absent": "has no number",
        }.items():
            with self.assertRaises(pages.Wrong) as caught:
                pages.cited(ROWS, words)
            self.assertIn(said, str(caught.exception))

    def test_a_verdict_is_cited(self):
        with self.assertRaises(pages.Wrong):
            pages.verdict_is_the_rows(ROWS, "| X-1\\* | a paper's | ours | match, nearly |")
        pages.verdict_is_the_rows(ROWS, "| X-1 | a paper's | ours | {{X-1: verdict}}, nearly |")
        # A row that is not kept has no verdict to be cited.
        pages.verdict_is_the_rows(ROWS, "| X-7 | a paper's | ours | match |")


class Pages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.addCleanup(setattr, pages, "ROOT", pages.ROOT)
        pages.ROOT = Path(folder.name)
        golden = pages.ROOT / "testdata/golden/reproduce.json.xz"
        golden.parent.mkdir(parents=True)
        golden.write_bytes(lzma.compress(json.dumps({"paper": {"X-1": ROWS["X-1"]}}).encode()))
        self.source = pages.ROOT / "reproduce/paper/results.md.in"
        self.source.parent.mkdir(parents=True)

    def test_golden_rows_come_before_those_kept_with_the_page(self):
        kept = {"targets": [row("X-1", [value("reduction of time", 1.0)]), row("X-3", [value("time", 2.0, unit="s")])]}
        (self.source.parent / "results.json").write_text(json.dumps(kept), encoding="utf-8")
        self.source.write_text("{{X-1 reduction of time; value}} and {{X-3 time}}\n", encoding="utf-8")
        self.assertTrue(pages.page_of(self.source).endswith("48.2 % and 2 s\n"))

    def test_any_difference_has_a_line(self):
        for old, new, expected in [("", "a\n", (1, "", "a")), ("a\nb\n", "a\n", (2, "b", "")), ("a", "a\n", (1, "a", "a")),
                                   ("a\n\n", "a\n", (2, "", "")), ("a\nb\n", "a\nc\n", (2, "b", "c"))]:
            self.assertEqual(pages.first_difference(old, new), expected)

    def test_an_error_names_file_and_line(self):
        self.source.write_text("good\n\n{{X-4 time}}\n", encoding="utf-8")
        with self.assertRaises(pages.Wrong) as caught:
            pages.page_of(self.source)
        self.assertIn("reproduce/paper/results.md.in:3: no row X-4", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
