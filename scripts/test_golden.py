#!/usr/bin/env python3
"""Tests of the comparison of golden outputs: what it must not miss. Seconds.

    scripts/test_golden.py
"""
import contextlib
import io
import sys
import tempfile
import types
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import golden  # noqa: E402

KEPT = {"first": {"rows": [{"misses": 12, "ratio": 0.1}, {"misses": 7, "ratio": None}], "title": "a"},
        "second": {"status": 2}}


class Comparison(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        before = golden.GOLDEN, dict(golden.GROUPS), golden.PLAIN
        self.addCleanup(self.restore, before)
        golden.GOLDEN = Path(folder.name)

    @staticmethod
    def restore(before):
        golden.GOLDEN, golden.GROUPS, golden.PLAIN = before[0], before[1], before[2]

    def run_group(self, cases, group="planted", rows=None, case=()):
        """What the group says of these cases, each an output or an exception; and its verdict."""
        def work(output):
            def give(_):
                if isinstance(output, Exception):
                    raise output
                return output
            return give

        rows = rows or {}
        golden.GROUPS = {group: lambda table, options: [(n, work(o)) for n, o in cases.items()]}
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            outputs, good, whole = golden.run_group(group, {}, types.SimpleNamespace(jobs=2, rows=rows, case=case))
        return outputs, good, whole, said.getvalue()

    def check(self, cases, group="planted"):
        golden.keep(group, KEPT)
        _, good, _, said = self.run_group(cases, group)
        return good, said

    def test_equal_outputs_pass_packed_and_plain(self):
        self.assertTrue(self.check(KEPT)[0])
        golden.PLAIN = {"planted"}
        self.assertTrue(self.check(KEPT)[0])

    def test_what_differs_between_two_runs_is_no_part_of_an_output(self):
        later = KEPT | {"second": {"status": 2, "host_seconds": 3, "version": "0.2.0"}}
        self.assertTrue(self.check(later)[0])

    def test_a_number_that_moved_in_its_last_digit_is_named(self):
        for value in (0.1 + 2**-56, 0.1000000000000001, 1):
            moved = {"rows": [{"misses": 12, "ratio": value}, {"misses": 7, "ratio": None}], "title": "a"}
            good, said = self.check(KEPT | {"first": moved})
            self.assertFalse(good)
            self.assertIn(".rows[0].ratio: 0.1 -> ", said)

    def test_values_that_came_went_or_changed_their_kind_are_named(self):
        for rows, place in [
            ([{"misses": 12, "ratio": 0.1}], ".rows[1].misses: 7 -> \"(absent)\""),
            ([{"misses": 12, "ratio": 0.1}, {"misses": 7}], ".rows[1].ratio: null -> \"(absent)\""),
            ([{"misses": 12, "ratio": 0.1}, {"misses": "7", "ratio": None}], ".rows[1].misses: 7 -> \"7\""),
            (KEPT["first"]["rows"] + [{}], ".rows[2]: \"(absent)\" -> {}"),
        ]:
            good, said = self.check(KEPT | {"first": {"rows": rows, "title": "a"}})
            self.assertFalse(good, place)
            self.assertIn(place, said)

    def test_values_of_another_kind_are_not_equal(self):
        for before, after in [(1, True), (0, False), (1, 1.0), (0.0, -0.0)]:
            golden.keep("planted", {"only": {"flag": before}})
            _, good, _, said = self.run_group({"only": {"flag": after}})
            self.assertFalse(good, said)

    def test_cases_that_fail_are_new_or_are_gone_fail_the_check(self):
        for cases, said in [
            (KEPT | {"second": golden.Failed("exit status 1")}, "second: failed: exit status 1"),
            (KEPT | {"second": OSError("no such program")}, "second: failed: no such program"),
            (KEPT | {"third": {}}, "third: new"),
            ({"first": KEPT["first"]}, "second: is kept, and no longer a case"),
        ]:
            good, printed = self.check(cases)
            self.assertFalse(good)
            self.assertIn(said, printed)

    def test_of_rows_that_are_named_each_must_be_kept_and_equal(self):
        kept = {"paper": {"X-1": {"value": 1}, "X-2": {"value": 2}, "X-3": {"value": 3}}}
        golden.keep("planted", kept)
        for rows, output, good in [
            (["X-1", "X-3"], {"X-1": {"value": 1}, "X-3": {"value": 3}}, True),
            (["X-1", "X-3"], {"X-1": {"value": 1}, "X-3": {"value": 4}}, False),
            (["X-1", "X-4"], {"X-1": {"value": 1}, "X-4": {"value": 3}}, False),
            (None, {"X-1": {"value": 1}}, False),
        ]:
            _, found, _, said = self.run_group({"paper": output}, rows={"paper": rows})
            self.assertEqual(found, good, said)

    def test_of_cases_that_are_named_only_these_are_compared(self):
        golden.keep("planted", KEPT)
        moved = KEPT | {"first": {"rows": [], "title": "a"}}
        for named, good in [(["second"], True), (["first"], False), (["second", "third"], False)]:
            outputs, found, _, said = self.run_group(moved, case=named)
            self.assertEqual(found, good, said)
            self.assertLessEqual(outputs.keys(), set(named))

    def test_without_a_kept_file_all_cases_are_new(self):
        _, good, whole, said = self.run_group(KEPT)
        self.assertFalse(good)
        self.assertTrue(whole)
        self.assertIn("first: new", said)


if __name__ == "__main__":
    unittest.main()
