# SPDX-License-Identifier: Apache-2.0
"""What the tests of the shardproof binary share. Their command line: TEST BINARY SOURCE_FOLDER [unittest options]."""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import unittest

import jsonschema

BINARY, SOURCE = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
SCHEMA = json.loads((SOURCE / "results/record.schema.json").read_text())
PASS, USAGE, INCONCLUSIVE, ENVIRONMENT, WRITE_FAILED, OUT_OF_MEMORY, NON_FINITE, HANG, INTERRUPTED = 0, 2, 3, 4, 5, 6, 7, 8, 130
RUN_FILES = ["benchmark.json", "junit.xml", "records.csv", "records.jsonl", "report.html", "summary.json"]


class Cli(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def shardproof(self, *args, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 300} | options
        return subprocess.run([BINARY, *args], cwd=self.folder, **options)

    def expect(self, code, *args, says=(), **options):
        """Runs, compares the exit code, and looks for each text of `says` on stderr. Returns what ran."""
        done = self.shardproof(*args, **options)
        self.assertEqual(done.returncode, code, f"{args}\n{done.stdout}\n{done.stderr}")
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, done.stderr)
        if code != PASS:
            self.assertNotEqual(done.stderr, "", "a failure says why")
        return done

    def run_tiny(self, *args, code=PASS, **options):
        return self.expect(code, "run", "--workload", "tiny", *args, **options)

    def refuse(self, *args, says):
        """A refused run leaves nothing behind."""
        before = sorted(self.folder.rglob("*"))
        self.run_tiny("--out", "refused", *args, code=USAGE, says=says)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def without_privileges(self):
        """Options under which permissions count: root may read and write everything."""
        if os.geteuid() != 0:
            return {}
        self.folder.chmod(0o777)
        try:
            self.shardproof("--version", user=65534, group=65534)
        except PermissionError:
            self.skipTest("the build folder is root's alone")
        return {"user": 65534, "group": 65534}

    def files(self, out):
        return sorted(p.name for p in (self.folder / out).iterdir())

    def records(self, out):
        text = (self.folder / out / "records.jsonl").read_text()
        self.assertTrue(text == "" or text.endswith("\n"))
        records = [json.loads(line) for line in text.splitlines()]
        for record in records:
            jsonschema.Draft202012Validator(SCHEMA).validate(record)
        return records

    def summary(self, out):
        return json.loads((self.folder / out / "summary.json").read_text())

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    def start_long_run(self, out, *args):
        """Starts a run of many steps and returns after its first."""
        process = subprocess.Popen(
            [BINARY, "run", "--workload", "tiny", "--no-check", "--steps", "100000000", "--out", out, *args],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        self.assertTrue(line.startswith("step "), line + process.stderr.read() if process.poll() is not None else line)
        return process


def flight_record(cli):
    """Of a process that has done nothing, the only one of its job."""
    head = b"SPFLIGHT" + struct.pack("<II", 1, 0)
    cli.write("cut.flight/rank-0.flight", head + bytes(64))
    refused = cli.expect(USAGE, "flight", "cut.flight").stderr
    size = int(re.search(r"whole ones have (\d+)", refused)[1])
    return (b"SPFLIGHT" + struct.pack("<IIqq", 1, size, 0, 1)).ljust(size, b"\0")


def main():
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
