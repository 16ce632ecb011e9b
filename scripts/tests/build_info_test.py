# SPDX-License-Identifier: Apache-2.0
"""usage: build_info_test.py SOURCE   whether a build knows that what it compiles differs from its commit."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv.pop(1)).resolve()


class BuildInfoTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)
        for path in ["harness/build_info.cpp.in", "results/manifests/one_device.json", "suites/shapes/tiny.json", "README.md"]:
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(SOURCE / path, self.folder / path)
        self.git("init", "--quiet")
        self.git("add", ".")
        self.git("-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "-m", "m")

    def git(self, *args):
        return subprocess.run(["git", "-C", self.folder, *args], check=True, capture_output=True, text=True).stdout.strip()

    def info(self):
        output = self.folder / "build_info.cpp"
        script = SOURCE / "scripts/cmake/BuildInfo.cmake"
        subprocess.run(["cmake", f"-DSOURCE={self.folder}", f"-DOUTPUT={output}", "-P", script], check=True)
        text = output.read_text()
        self.assertIn(self.git("rev-parse", "HEAD"), text)
        return ".dirty = true" in text

    def test_what_is_compiled_in_counts(self):
        self.assertFalse(self.info())
        for path in ["results/manifests/one_device.json", "suites/shapes/tiny.json"]:
            kept = (self.folder / path).read_text()
            (self.folder / path).write_text(kept + " ")
            self.assertTrue(self.info(), path)
            (self.folder / path).write_text(kept)
        (self.folder / "README.md").write_text("")
        self.assertFalse(self.info())


if __name__ == "__main__":
    unittest.main()
