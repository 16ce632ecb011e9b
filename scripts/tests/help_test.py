#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every script says what it is for before it does anything."""
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

SCRIPTS = pathlib.Path(__file__).resolve().parent.parent


class Help(unittest.TestCase):
    def test_help_is_printed_and_nothing_is_done(self):
        started = [p.name for p in SCRIPTS.glob("*.sh") if os.access(p, os.X_OK)]
        self.assertGreaterEqual(len(started), 9)
        with tempfile.TemporaryDirectory() as folder:  # no sources: whoever builds fails
            scripts = pathlib.Path(folder) / "scripts"
            scripts.mkdir()
            for path in SCRIPTS.glob("*.sh"):
                shutil.copy(path, scripts)
            for name in started:
                for option in ["-h", "--help"]:
                    with self.subTest(name, option=option):
                        done = subprocess.run([scripts / name, option], cwd="/", stdin=subprocess.DEVNULL,
                                              capture_output=True, text=True, timeout=60)
                        self.assertEqual((done.returncode, done.stderr), (0, ""))
                        self.assertIn("  scripts/" + name, done.stdout)
                        self.assertNotIn("SPDX", done.stdout)
                        self.assertNotRegex(done.stdout, r"(?m)^(#|set|\.|cd) ?")
            self.assertEqual(os.listdir(folder), ["scripts"])


if __name__ == "__main__":
    unittest.main()
