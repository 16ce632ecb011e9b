#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""README.md's commands. In its blocks marked `sh`: a script must exist, be executable and parse; any other line must run
and exit 0 (`# exit N` after it: N) with build/cpu/shardproof replaced by this build's. Scripts are not run: the tests
are run by one of them.

    readme_test.py SHARDPROOF
"""
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXIT = re.compile(r"#\s*exit (\d+)")
PROGRAM = "build/cpu/shardproof"


def commands(text):
    """(line number, command, expected exit code) of each line in the text's `sh` blocks; `\\` goes on to the next line."""
    inside, parts, start = False, [], 0
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            inside = line.strip() == "```sh"
        elif inside and line.strip() and not line.startswith("#"):
            start = start if parts else number
            parts.append(line.removesuffix("\\"))
            if not line.endswith("\\"):
                whole, parts = " ".join(parts), []
                expected = EXIT.search(whole)
                yield start, shlex.split(whole, comments=True), int(expected.group(1)) if expected else 0


class Readme(unittest.TestCase):
    shardproof = None

    def setUp(self):
        self.commands = list(commands((ROOT / "README.md").read_text(encoding="utf-8")))

    def test_the_first_commands_are_run_and_test(self):
        self.assertEqual([c for _, c, _ in self.commands][:2], [["scripts/run.sh"], ["scripts/test.sh"]])

    def test_scripts_exist_and_parse(self):
        for line, command, _ in self.commands:
            if not command[0].startswith("scripts/"):
                continue
            path = ROOT / command[0]
            self.assertTrue(os.access(path, os.X_OK), f"README.md:{line}: {command[0]} is not an executable file")
            if path.suffix == ".sh":
                subprocess.run(["bash", "-n", path], check=True)

    def test_the_other_commands_run(self):
        ran = 0
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy(ROOT / "README.md", folder)
            shutil.copytree(ROOT / "suites", pathlib.Path(folder) / "suites")
            (pathlib.Path(folder) / "scripts").symlink_to(ROOT / "scripts")
            for line, command, expected in self.commands:
                if command[0].startswith("scripts/") and not command[0].endswith(".py"):
                    continue
                words = [self.shardproof if word == PROGRAM else word for word in command]
                if words[0].endswith(".py"):
                    words.insert(0, sys.executable)
                done = subprocess.run(words, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, text=True)
                self.assertEqual(done.returncode, expected,
                                 f"README.md:{line}: {shlex.join(command)}\n{done.stdout}{done.stderr}")
                ran += 1
        self.assertGreater(ran, 0)


if __name__ == "__main__":
    Readme.shardproof = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
