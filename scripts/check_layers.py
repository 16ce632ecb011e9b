#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The include rule: who may include whom. Prints every breach and fails if there is one.

    scripts/check_layers.py [ROOT]
"""
import pathlib
import re
import sys

import rules

CORE, WORKLOAD = "kernels/core", "suites/workload"
SHARED_IMPL = ["impl/plan", "impl/comm", "impl/step"]

# A folder's includes come from itself and from the folders named here ("x/*": every folder in x). The longest match of
# a folder's path counts.
MAY_INCLUDE = {
    "kernels/core": [],
    "kernels/*": [CORE],
    "kernels/attention": [CORE, "kernels/matmul", "kernels/dropout"],
    "suites/workload": [CORE],
    "reference": [CORE, WORKLOAD],
    "impl/comm": [CORE],
    "impl/plan": [CORE, WORKLOAD],
    "impl/step": [CORE, WORKLOAD, "impl/plan", "impl/comm"],
    "impl/*": ["kernels/*", WORKLOAD, *SHARED_IMPL],
    "impl/engine": ["kernels/*", WORKLOAD, "impl/*"],
    "harness/predict": [CORE, WORKLOAD, "impl/plan"],
    "harness": ["kernels/*", WORKLOAD, "reference", "impl/*", "harness/*"],
    "scripts": ["kernels/*"],
}
# Tests, and their helpers (a folder or file named testing), see these as well. The helpers are for tests and benchmarks.
TESTS_MAY_INCLUDE = [CORE, WORKLOAD, "reference"]
TESTING = re.compile(r"/testing[/.]")
# Too heavy, or too particular, for a header that others include.
SOURCES_ONLY = re.compile(r"^(nlohmann(?!/json_fwd)|gtest|gmock|benchmark|CLI|oneapi|openssl)/|^(cblas|dnnl)")
# Nobody else sees a device's own headers.
DEVICE_HEADER = re.compile(r"^(cuda|cublas|cudnn|nccl|nvtx)")
DEVICE_FOLDERS = ["kernels/*", "impl/comm"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]')
SUFFIXES = {".hpp", ".cpp", ".h", ".cu", ".cuh", ".in"}
FOLDERS = ["kernels", "suites", "reference", "impl", "harness", "scripts"]


def within(path, folders):
    """Whether the file `path` lies in one of the folders."""
    for folder in folders:
        prefix = folder.removesuffix("*")
        if path.startswith(prefix if folder.endswith("*") else prefix + "/"):
            return True
    return False


def rule_of(path):
    """The key of MAY_INCLUDE for a file, and the folder that it counts as its own."""
    best = max((key for key in MAY_INCLUDE if within(path, [key])), key=lambda k: (k.count("/"), len(k)), default=None)
    if best is None or not best.endswith("*"):
        return best, best
    return best, "/".join(path.split("/")[:2])


def breaches(root):
    for file in sorted(f for folder in FOLDERS for f in (root / folder).rglob("*")):
        if file.suffix not in SUFFIXES:
            continue
        path = file.relative_to(root).as_posix()
        rule, own = rule_of(path)
        if rule is None:
            yield f"{path}: its folder has no rule in {pathlib.Path(__file__).name}"
            continue
        is_test = file.stem.endswith("_test") or TESTING.search(path)
        is_bench = file.stem.endswith("_bench")
        allowed = [own, *MAY_INCLUDE[rule], *(TESTS_MAY_INCLUDE if is_test else [])]
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
            match = INCLUDE.match(line)
            if not match:
                continue
            where, (style, name) = f"{path}:{number}", match.groups()
            if style == "<":
                if file.suffix == ".hpp" and SOURCES_ONLY.match(name) and not is_test:
                    yield f"{where}: <{name}> belongs in a source, not in a header"
                if (root / name).is_file():
                    yield f'{where}: <{name}> is ours: it is included as "{name}"'
                if DEVICE_HEADER.match(name) and not within(path, DEVICE_FOLDERS):
                    yield f"{where}: <{name}> is for {' and '.join(DEVICE_FOLDERS)} only"
            elif not (root / name).is_file():
                yield f'{where}: "{name}" is not a file named from the root'
            elif not (is_test or is_bench) and TESTING.search(name):
                yield f"{where}: {name} is for tests only"
            elif not within(name, allowed):
                yield f"{where}: {own} may not include {name}"


if __name__ == "__main__":
    sys.exit(rules.report(breaches, "includes keep to the rule"))
