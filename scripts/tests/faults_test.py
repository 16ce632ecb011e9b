#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""suites/faults.json is complete and valid, its patches are what it says and all apply to one copy of the tree."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import jsonschema

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import faults  # noqa: E402

ROOT = faults.ROOT
# Every fault that was collected. None is ever taken off: what cannot be planted says why.
IDS = [area + number for area, numbers in {
    "A": "01 02 04 05 08 09 10 12 13 14 15",
    "B": "01 02 08 09 10 11 12 13 15 16 17 18 19 20 21 22 23 25 26 27 28 29 30 31 32 34 36 37 39 40 41 42 43 44 45",
    "C": "01 02 04 05 06 07 09 10 11 12 13 15 16 17 19 20 21 23",
    "D": "01 03 05 06 07 09 10 11 12 13 15 16 17 18 20 21 23 24 25 26 27 28 29 30",
    "F": "01 02 03 04 05 06 08 09 11 12",
    "G": "03 05 06 07 08 10 11 12 13 14 15 16",
    "H": "01 02 04 06 08 09 10 11",
    "J": "01 04 05 06 07 08 10 11 12",
    "K": "01 02",
    "L": "01 02 04 06 07 08 10 11",
    "M": "01 03 05 06 07 08 09",
    "N": "02 03 04 05 07 08",
    "Q": "02 03 04",
}.items() for number in numbers.split()]
SOURCES = {".hpp", ".cpp", ".cu", ".cuh", ".in"}


def record(verdict="fail", reason="", forms=None, ledgers=None):
    return {"verdict": verdict, "reason": reason, "forms": forms or {}, "ledgers": ledgers or {}}


class Faults(unittest.TestCase):
    def setUp(self):
        self.data = json.loads((ROOT / "suites/faults.json").read_text())
        self.faults = self.data["faults"]

    def test_schema(self):
        schema = json.loads((ROOT / "suites/faults.schema.json").read_text())
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        validator.validate(self.data)
        for broken in ({"planted": {}}, {"extra": 1}, {"id": "A1"}, {"not_applicable": "a second fate"},
                       {"source": "somewhere"}, {"evidence": "rumour"}, {"fault": ""}):
            entry = next(f for f in self.faults if "waiting" in f) | broken
            self.assertFalse(validator.is_valid(self.data | {"faults": [entry]}), broken)

    def test_complete(self):
        self.assertEqual(len(IDS), 153)
        self.assertEqual([f["id"] for f in self.faults], IDS)
        self.assertEqual({i[0] for i in IDS}, set(self.data["areas"]))

    def test_few_are_not_applicable(self):
        self.assertLessEqual(8 * sum("not_applicable" in f for f in self.faults), len(self.faults))

    def test_what_is_waited_for_is_not_built(self):
        for fault in self.faults:
            name = fault.get("waiting", {}).get("for")
            built = name and [*ROOT.glob(f"impl/*/{name}.cpp"), *ROOT.glob(f"impl/*/{name}"),
                              *ROOT.glob(f"impl/plan/schedules/{name}.cpp")]
            self.assertFalse(built, f"{fault['id']} waits for {name}, which is built: plant it")

    def test_patches(self):
        planted = {f["id"]: f["planted"]["patch"] for f in self.faults if "patch" in f.get("planted", {})}
        found = {p.stem: str(p.relative_to(ROOT)) for p in faults.patches()}
        self.assertEqual(found, planted)
        for name, path in planted.items():
            text = (ROOT / path).read_text()
            added = [line[1:] for line in text.splitlines() if line.startswith("+") and not line.startswith("+++")]
            chosen = set(re.findall(r'\bfault\("(\w+)"\)', "\n".join(added)))
            self.assertEqual(chosen, {name}, path)
            for file in faults.touched(ROOT / path):
                self.assertRegex(file, r"^impl/")
                self.assertTrue((ROOT / file).is_file(), f"{path}: no file {file}")

    def test_all_patches_apply_to_one_copy(self):
        with tempfile.TemporaryDirectory() as folder:
            faults.patched(ROOT, pathlib.Path(folder).resolve())
            for patch in faults.patches():
                files = [(pathlib.Path(folder) / name).read_text() for name in faults.touched(patch)]
                self.assertTrue(any(f'fault("{patch.stem}")' in text for text in files), patch)
                self.assertTrue(all(text.startswith(f'#include "{faults.HEADER}"') for text in files), patch)

    def test_the_sources_carry_none(self):
        for name in faults.sources(ROOT):
            if pathlib.Path(name).suffix in SOURCES:
                self.assertIsNone(re.search(r'\bfault\("[A-Z]\d\d"\)', (ROOT / name).read_text()), name)

    def test_what_a_record_found(self):
        reason = "step 2: gradient of blocks.0.mlp.up.bias, element 3: candidate 1, oracle 2, off by 1 where bits must agree"
        self.assertEqual(faults.observed(record(reason=reason)), (2, "gradient of blocks.0.mlp.up.bias"))
        self.assertEqual(faults.observed(record(reason="step 1: loss: candidate 1, oracle 2")), (1, "loss"))
        reason = "step 2: loss (on rank 2): candidate 1, oracle 2, off by 1 where bits must agree"
        self.assertEqual(faults.observed(record(reason=reason)), (2, "loss"))
        reason = "step 3: parameter of x.bias: element 0: the copy on rank 1 is 2, that of its primary holder 3"
        self.assertEqual(faults.observed(record(reason=reason)), (3, "replica parameter of x.bias"))
        self.assertEqual(faults.observed(record(reason="r", forms={"a": 1, "b": 2}, ledgers={"a": 1, "b": 3})), (None, "ledger b"))
        self.assertEqual(faults.observed(record("error", "rank 1: lost")), (None, "error: rank 1: lost"))

    def test_what_is_expected(self):
        expect = {"verdict": "fail", "observable": ["gradient of blocks.*.bias", "loss"], "step": 2}
        text = "step {}: gradient of {}, element 3: candidate 1, oracle 2"
        self.assertTrue(faults.is_expected(record(reason=text.format(2, "blocks.3.mlp.up.bias")), expect))
        self.assertTrue(faults.is_expected(record(reason=text.format(1, "blocks.3.mlp.up.bias")), expect | {"step": "any"}))
        for other in (record(reason=text.format(1, "blocks.3.mlp.up.bias")), record(reason=text.format(2, "head.weight")),
                      record("mistrusted", text.format(2, "blocks.3.mlp.up.bias")), record("error", "loss")):
            self.assertFalse(faults.is_expected(other, expect), other)

    def test_a_patch_that_does_not_apply_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve() / "root"
            (root / "impl/x/faults").mkdir(parents=True)
            subprocess.run(["git", "init", "-q", root], check=True)
            (root / "impl/x/x.cpp").write_text("int a;\nint b;\nint c;\n")
            patch = "--- a/impl/x/x.cpp\n+++ b/impl/x/x.cpp\n@@ -1,3 +1,4 @@\n int a;\n+{}\n int b;\n int c;\n"
            (root / "impl/x/faults/A01.patch").write_text(patch.format("int d;"))
            (root / "good").mkdir()
            faults.patched(root, root / "good")
            self.assertEqual((root / "good/impl/x/x.cpp").read_text(), f'#include "{faults.HEADER}"\nint a;\nint d;\nint b;\nint c;\n')
            (root / "impl/x/x.cpp").write_text("int e;\n")
            (root / "bad").mkdir()
            with self.assertRaisesRegex(faults.Failed, "impl/x/faults/A01.patch does not apply"):
                faults.patched(root, root / "bad")


if __name__ == "__main__":
    unittest.main()
