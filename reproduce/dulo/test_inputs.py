#!/usr/bin/env python3
"""Tests of what makes the inputs: python3 test_inputs.py. Seconds."""

import os
import re
import sys
import tomllib
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import inputs  # noqa: E402
import smm  # noqa: E402
import tpch  # noqa: E402
import tpch_shape  # noqa: E402
import viewperf  # noqa: E402
from traces import HERE, Disk, Recording, recorded  # noqa: E402

DRIVE_PAGES = {"st39102lw": 17_783_240 // 8, "wd400bb": 78_165_360 // 8}


class Files(unittest.TestCase):
    def test_files_lie_on_the_drive_without_sharing_a_page(self):
        for name, pages in DRIVE_PAGES.items():
            disk = Disk(name)
            spans = sorted((p, p + n) for extents in disk.extents for _, p, n in extents)
            self.assertGreater(spans[0][0], 0)
            self.assertLessEqual(spans[-1][1], pages)
            for (_, end), (start, _) in zip(spans, spans[1:]):
                self.assertLessEqual(end, start)

    def test_extents_hold_every_page_of_a_file_in_order(self):
        for name in DRIVE_PAGES:
            disk = Disk(name)
            for file, size, extents in zip(disk.names, disk.bytes, disk.extents):
                at = 0
                for logical, _, pages in extents:
                    self.assertEqual(logical, at, file)
                    at += pages
                self.assertGreaterEqual(at, -(-size // 4096), file)

    def test_recordings_stay_within_their_files(self):
        for disk, names in (("st39102lw", ("glimpse", "cscope", "gcc")), ("wd400bb", ("lxr",))):
            sizes = Disk(disk).bytes
            for name in names:
                recording = Recording(name)
                self.assertGreater(len(recording.accesses), 100_000)
                for letter, file, first, pages in recording.accesses:
                    self.assertIn(letter, "RW")
                    self.assertGreater(pages, 0)
                    self.assertLessEqual(first + pages, -(-sizes[file] // 4096))

    def test_contiguous_files_touch(self):
        at = 0
        for _, ((logical, physical, pages),) in inputs.contiguous(Disk("wd400bb")):
            self.assertEqual((logical, physical), (0, at))
            at += pages
        self.assertGreater(at * 4096, 236 << 20)


class Viewperf(unittest.TestCase):
    def test_every_page_of_every_file_is_read_two_or_three_times_or_more(self):
        read = [[0] * -(-size // viewperf.PAGE) for _, size in viewperf.files()]
        for file, first, pages in viewperf.accesses():
            for page in range(first, first + pages):
                read[file][page] += 1
        for (name, _), pages in zip(viewperf.files(), read):
            self.assertEqual(len(set(pages)), 1, name)
            self.assertIn(pages[0], (2, 3) if "large" in name else (6, 9, 12, 18), name)


class Tpch(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.disk = Disk("st39102lw")
        cls.trees = tpch.trees(9, cls.disk)
        cls.numbers = [cls.disk.numbers["tpch/" + name] for name, _, _ in tpch_shape.files()]

    def test_walks_read_what_sqlite_read(self):
        real = [tuple(map(int, line.split())) for line in recorded("tpch.reads").splitlines()]
        drawn, walks = [], tpch_shape.walks(tpch.SEED)
        for _ in range(100):
            for file, first, rows in next(walks):
                _, lines = self.trees[file].lookup(first, rows)
                drawn += [(file, int(line.split()[3])) for line in lines.splitlines()]
        self.assertGreater(len(real), 10_000)
        self.assertEqual(drawn, real)

    def test_lines_name_the_tree_s_file_and_their_count(self):
        for file, tree in enumerate(self.trees):
            pages, lines = tree.lookup(0, min(3, tree.rows))
            self.assertEqual(len(lines.splitlines()), pages)
            for line in lines.splitlines():
                self.assertRegex(line, rf"^R 9 {self.numbers[file]} \d+ 1$")

    def test_walks_stay_within_their_trees(self):
        walks, rows = tpch_shape.walks(7), [rows for _, rows, _ in tpch_shape.files()]
        for _ in range(5_000):
            for file, first, count in next(walks):
                self.assertTrue(0 <= first and first + count <= rows[file], (file, first, count))

    def test_both_directions_of_a_join_agree(self):
        for place in range(0, tpch_shape.LINES, 7919):
            for year in range(tpch_shape.YEARS):
                row = tpch_shape.forward(place, tpch_shape.BY_PART, year, tpch_shape.LINES)
                self.assertEqual(tpch_shape.backward(row, tpch_shape.PART_OF, year, tpch_shape.LINES), place)


class Mixes(unittest.TestCase):
    def test_a_mix_has_each_program_in_its_order_and_all_end_together(self):
        parts = [[(7, f"{name}{i}") for i in range(count)] for name, count in (("a", 1000), ("b", 300), ("c", 50))]
        mixed = list(inputs.turns([(7 * len(part), part) for part in parts]))
        for part in parts:
            self.assertEqual([text for text in mixed if text[0] == part[0][1][0]], [text for _, text in part])
        # Two thirds through the mix, so is each program.
        third = mixed[:len(mixed) * 2 // 3]
        for part in parts:
            share = sum(text[0] == part[0][1][0] for text in third) / len(part)
            self.assertAlmostEqual(share, 2 / 3, delta=0.1)

    def test_a_turn_lasts_a_burst(self):
        mixed = list(inputs.turns([(1000, [(1, "a")] * 1000), (1000, [(1, "b")] * 1000)]))
        runs = [len(run.group()) for run in re.finditer("a+|b+", "".join(mixed))]
        self.assertTrue(all(run >= inputs.BURST for run in runs[:-2]), runs)

    def test_programs_of_wrong_length_are_not_cut(self):
        mixed = list(inputs.turns([(10, [(1, "a")] * 500), (10_000, [(1, "b")] * 20)]))
        self.assertEqual((mixed.count("a"), mixed.count("b")), (500, 20))


class Settings(unittest.TestCase):
    def test_windows_of_smm_are_those_of_its_elements(self):
        for n, m in ((1024, 8192), (65536, 262144)):
            smm.check(n, m)

    def test_inputs_toml_names_what_is_made(self):
        with open(os.path.join(HERE, "inputs.toml"), "rb") as file:
            settings = tomllib.load(file)
        with open(os.path.join(HERE, "inputs.sha256")) as file:
            made = {line.split()[1] for line in file}
        names = {one["name"] for one in settings["input"]}
        self.assertEqual(names, set(inputs.TASKS) | set(inputs.MIXES))
        self.assertTrue({name + ".fpt" for name in names} <= made)
        self.assertEqual({one["name"]: tuple(one["of"]) for one in settings["input"] if "of" in one}, inputs.MIXES)
        lxr = settings["lxr"]
        self.assertTrue({path.removesuffix(".zst") for path in lxr["layouts"].values()} | {lxr["sequences"]} <= made)
        self.assertEqual(sum("lxr/" in name and name.endswith(".fpt") for name in made), sum(lxr["keywords"].values()))
        self.assertEqual(settings["smm"]["bytes"], dict(smm.arrays()))
        self.assertEqual((settings["smm"]["rows"], settings["smm"]["elements"]), (smm.N, smm.M))


if __name__ == "__main__":
    unittest.main()
