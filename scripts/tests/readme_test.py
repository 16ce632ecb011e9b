#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The READMEs' commands. In their blocks marked `sh`: a script must exist, be executable and parse; any other line must
run, in a shell, and exit 0 (`# exit N` after it: N). build/cpu/shardproof is this build's. Shell scripts are not run: the
tests are run by one of them.

    readme_test.py SHARDPROOF
"""
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import check_files  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXIT = re.compile(r"#\s*exit (\d+)")


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
                yield start, whole, int(expected.group(1)) if expected else 0


def program_of(command):
    return shlex.split(command, comments=True)[0]


class Readme(unittest.TestCase):
    shardproof = None

    def setUp(self):
        readmes = [f for f in check_files.files_of(ROOT) if f.name == "README.md"]
        self.commands = {f.relative_to(ROOT).as_posix(): list(commands(f.read_text(encoding="utf-8"))) for f in readmes}

    def place(self, folder):
        """What the commands find in the project's root, and a python3 without packages that is first in PATH."""
        (folder / "build/cpu").mkdir(parents=True)
        (folder / "build/cpu/shardproof").symlink_to(self.shardproof)
        for name in ["scripts", "suites", "LICENSE"]:
            (folder / name).symlink_to(ROOT / name)
        (folder / "bin").mkdir()
        (folder / "bin/python3").write_text('#!/bin/sh\nexec /usr/bin/python3 -S -E "$@"\n')
        (folder / "bin/python3").chmod(0o755)
        return os.environ | {"PATH": f"{folder}/bin:{os.environ['PATH']}"}

    def test_the_first_commands_are_run_and_test(self):
        self.assertEqual([program_of(c) for _, c, _ in self.commands["README.md"]][:2], ["scripts/run.sh", "scripts/test.sh"])

    def test_scripts_exist_and_parse(self):
        for readme, lines in self.commands.items():
            for line, command, _ in lines:
                program = program_of(command)
                if not program.startswith("scripts/"):
                    continue
                self.assertTrue(os.access(ROOT / program, os.X_OK), f"{readme}:{line}: {program} is not an executable file")
                if program.endswith(".sh"):
                    subprocess.run(["bash", "-n", ROOT / program], check=True)

    def test_the_other_commands_run(self):
        ran = 0
        for readme, lines in self.commands.items():
            with tempfile.TemporaryDirectory() as folder:
                environment = self.place(pathlib.Path(folder))
                for line, command, expected in lines:
                    if program_of(command).endswith(".sh"):
                        continue
                    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment,
                                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
                    self.assertEqual(done.returncode, expected, f"{readme}:{line}: {command}\n{done.stdout}{done.stderr}")
                    ran += 1
        self.assertGreater(ran, 0)


if __name__ == "__main__":
    Readme.shardproof = str(pathlib.Path(sys.argv.pop(1)).resolve())
    unittest.main()
