#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""check_layers.py against trees with one planted breach each, and one with none."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import check_layers  # noqa: E402

HEADERS = ["kernels/core/tensor.hpp", "kernels/core/testing/fill.hpp", "kernels/matmul/matmul.hpp",
           "kernels/matmul/testing.hpp", "kernels/dropout/dropout.hpp", "suites/workload/workload.hpp", "reference/oracle.hpp",
           "impl/plan/mesh.hpp",
           "impl/comm/communicator.hpp", "impl/step/optimizer.hpp", "impl/zero/zero.hpp", "impl/recompute/sqrt_n.hpp",
           "impl/engine/trainer.hpp", "harness/predict/memory.hpp", "harness/judge.hpp"]

LEGAL_SYSTEM = [("harness/json.hpp", "nlohmann/json_fwd.hpp"), ("harness/json.cpp", "nlohmann/json.hpp"),
                ("kernels/matmul/matmul.cpp", "cuda_runtime.h"), ("kernels/core/testing/fill.hpp", "gtest/gtest.h")]

LEGAL = [("kernels/matmul/matmul.cpp", "kernels/core/tensor.hpp"),
         ("kernels/attention/attention.cpp", "kernels/matmul/matmul.hpp"),
         ("kernels/matmul/matmul_test.cpp", "reference/oracle.hpp"),
         ("kernels/matmul/matmul_test.cpp", "kernels/core/testing/fill.hpp"),
         ("kernels/matmul/testing.hpp", "kernels/core/testing/fill.hpp"),
         ("kernels/matmul/matmul_bench.cpp", "kernels/core/testing/fill.hpp"),
         ("suites/workload/batch.cpp", "suites/workload/workload.hpp"),
         ("impl/step/optimizer.cpp", "impl/plan/mesh.hpp"),
         ("impl/zero/zero.cpp", "kernels/matmul/matmul.hpp"),
         ("impl/engine/trainer.cpp", "impl/zero/zero.hpp"),
         ("harness/predict/memory.cpp", "impl/plan/mesh.hpp"),
         ("harness/commands/run.cpp", "reference/oracle.hpp"),
         ("harness/judge.cpp", "harness/predict/memory.hpp")]

PLANTED = [("kernels/core/tensor.cpp", "kernels/matmul/matmul.hpp"),
           ("kernels/dropout/dropout.cpp", "kernels/matmul/matmul.hpp"),
           ("kernels/matmul/matmul.cpp", "kernels/core/testing/fill.hpp"),
           ("kernels/matmul/matmul.cpp", "kernels/matmul/testing.hpp"),
           ("kernels/matmul/matmul.cpp", "reference/oracle.hpp"),
           ("kernels/matmul/matmul_bench.cpp", "reference/oracle.hpp"),
           ("suites/workload/batch.cpp", "kernels/matmul/matmul.hpp"),
           ("reference/oracle.cpp", "kernels/matmul/matmul.hpp"),
           ("reference/oracle.cpp", "impl/plan/mesh.hpp"),
           ("reference/oracle_test.cpp", "kernels/matmul/matmul.hpp"),
           ("impl/comm/threads.cpp", "suites/workload/workload.hpp"),
           ("impl/plan/mesh.cpp", "kernels/matmul/matmul.hpp"),
           ("impl/step/optimizer.cpp", "kernels/matmul/matmul.hpp"),
           ("impl/zero/zero.cpp", "impl/recompute/sqrt_n.hpp"),
           ("impl/zero/zero.cpp", "reference/oracle.hpp"),
           ("impl/zero/zero.cpp", "impl/engine/trainer.hpp"),
           ("impl/engine/trainer.cpp", "reference/oracle.hpp"),
           ("impl/engine/trainer.cpp", "harness/judge.hpp"),
           ("harness/predict/memory.cpp", "impl/engine/trainer.hpp"),
           ("harness/predict/memory.cpp", "kernels/matmul/matmul.hpp"),
           ("harness/predict/memory.cpp", "harness/judge.hpp"),
           ("harness/judge.cpp", "judge.hpp"),
           ("harness/judge.cpp", "kernels/core/missing.hpp"),
           ("suites/shapes/shape.cpp", "kernels/core/tensor.hpp")]

PLANTED_SYSTEM = [("harness/record.hpp", "nlohmann/json.hpp"), ("kernels/core/tensor.hpp", "gtest/gtest.h"),
                  ("harness/judge.cpp", "cuda_runtime.h"), ("impl/engine/trainer.cpp", "nccl.h"),
                  # In angle brackets a header of ours would pass every rule, legal or not.
                  ("reference/oracle.cpp", "kernels/matmul/matmul.hpp"), ("kernels/matmul/matmul.cpp", "kernels/core/tensor.hpp")]


class CheckLayers(unittest.TestCase):
    def found(self, path, include):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for header in HEADERS:
                (root / header).parent.mkdir(parents=True, exist_ok=True)
                (root / header).write_text("#pragma once\n")
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(f"// x\n#include {include}\n")
            return list(check_layers.breaches(root))

    def test_legal_includes_pass(self):
        for path, include in [*((p, f'"{i}"') for p, i in LEGAL), *((p, f"<{i}>") for p, i in LEGAL_SYSTEM)]:
            self.assertEqual(self.found(path, include), [], (path, include))

    def test_each_planted_breach_is_found_and_placed(self):
        for path, include in [*((p, f'"{i}"') for p, i in PLANTED), *((p, f"<{i}>") for p, i in PLANTED_SYSTEM)]:
            found = self.found(path, include)
            self.assertEqual(len(found), 1, (path, include, found))
            self.assertTrue(found[0].startswith(path), found)


if __name__ == "__main__":
    unittest.main()
