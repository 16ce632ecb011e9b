#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_files.py against trees with one planted breach each, and one with none."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import check_files  # noqa: E402

HEAD = "// SPDX-License-Identifier: Apache-2.0\n"


def block(lines, prefix="", indent=""):
    return "".join(f"{indent}{prefix}total{i} += f{i % 3}({prefix}x[{i} * {prefix}n + 1], {prefix}y[{i}]);\n"
                   for i in range(lines))


class CheckFiles(unittest.TestCase):
    def found(self, **files):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            tree = {"kernels/README.md": "# kernels\n", "reference/README.md": "# reference\n",
                    "kernels/a.cpp": HEAD + block(40), "reference/b.cpp": HEAD + "int x;\n", **files}
            for path, text in tree.items():
                if text is not None:
                    (root / path).parent.mkdir(parents=True, exist_ok=True)
                    (root / path).write_text(text)
            return list(check_files.breaches(root))

    def expect_one(self, path, **files):
        found = self.found(**files)
        self.assertEqual(len(found), 1, found)
        self.assertTrue(found[0].startswith(path), found)

    def test_a_clean_tree_passes(self):
        self.assertEqual(self.found(), [])

    def test_license_comes_first(self):
        self.expect_one("kernels/c.cpp", **{"kernels/c.cpp": "int x;\n" + HEAD})
        self.expect_one("kernels/CMakeLists.txt", **{"kernels/CMakeLists.txt": "project(x)\n"})
        self.assertEqual(self.found(**{"kernels/c.sh": "#!/bin/sh\n# SPDX-License-Identifier: Apache-2.0\n"}), [])

    def test_lengths(self):
        self.assertEqual(self.found(**{"kernels/c.hpp": HEAD + "\n" * 799}), [])
        self.expect_one("kernels/c.hpp", **{"kernels/c.hpp": HEAD + "\n" * 800})
        self.expect_one("kernels/README.md", **{"kernels/README.md": "x\n" * 41})

    def test_folders_have_a_readme(self):
        self.expect_one("kernels/", **{"kernels/README.md": None})
        self.expect_one("kernels/new/", **{"kernels/new/c.cpp": HEAD})

    def test_machine_paths(self):
        for place in ("work", "home", "root"):
            self.expect_one("kernels/c.cpp:2", **{"kernels/c.cpp": HEAD + f'auto p = "/{place}/me/x";\n'})
        self.expect_one("kernels/c.cpp:2", **{"kernels/c.cpp": HEAD + "// see .." + "/shared/x\n"})

    def test_hosts(self):
        self.expect_one("kernels/c.cpp:2", **{"kernels/c.cpp": HEAD + "// http" + "s://example.net/x\n"})
        self.expect_one("kernels/c.cpp:2", **{"kernels/c.cpp": HEAD + "// from registry" + ".example.org\n"})
        self.assertEqual(self.found(**{"kernels/c.cpp": HEAD + "// https://arxiv.org/abs/2205.05198\n"}), [])

    def test_the_oracle_shares_no_block(self):
        self.assertEqual(self.found(**{"reference/b.cpp": HEAD + block(12)}), [])
        self.expect_one("kernels/a.cpp", **{"reference/b.cpp": HEAD + block(13)})
        # Renamed, indented, and with comments between the lines it is still the same block.
        renamed = block(13, "my_", "    ").replace("\n", "  // why\n\n")
        self.expect_one("kernels/a.cpp", **{"reference/b.cpp": HEAD + renamed})
        self.assertEqual(self.found(**{"reference/b.cpp": HEAD + block(13).replace("+ 1", "+ 2")}), [])


if __name__ == "__main__":
    unittest.main()
