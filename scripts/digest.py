#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Computes the digest of an exported run again, from its files alone (reference/ARITHMETIC.md, section 12).

usage: digest.py FOLDER      prints the digest; exit code 1 where export.json or a step's metadata has another
"""

import hashlib
import pathlib
import sys

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "examples"))
from oracle_files import Export  # noqa: E402

KINDS = ["loss", "gradient", "norm", "clip", "skipped", "parameter", "state"]
SCALARS = {"loss": "f64", "norm": "f64", "clip": "f64", "skipped": "i64"}
NUMPY = {"q23.40": "<i8", "i64": "<i8", "f64": "<f8", "f32": "<f4"}


def observables(track, tensors):
    """(kind, name, dtype, array) of one step, in the order of the digest."""
    tensor = {"exact": "q23.40", "f64": "f64", "native": "f32"}[track]
    state = "f32" if track == "native" else "f64"
    for kind in KINDS:
        if kind in SCALARS:
            if kind in tensors:
                yield kind, kind, SCALARS[kind], tensors[kind]
            continue
        dtype = state if kind == "state" else tensor
        arrays = tensors.kind("raw/" + kind if dtype == "q23.40" else kind)
        for name in sorted(arrays, key=str.encode):
            yield kind, name, dtype, arrays[name]


def add(hasher, step, kind, name, dtype, array):
    null = kind == "loss" and array.shape == (0,)
    dims = "x".join(map(str, array.shape))
    hasher.update(f"{step} {kind} {name} {'null' if null else dtype} {dims}\n".encode())
    values = array.astype(NUMPY[dtype])
    if values.dtype.kind == "f":
        values = numpy.where(values == 0, values.dtype.type(0), values)  # -0 counts as +0
    hasher.update(values.tobytes())


def main(folder):
    export = Export(folder)
    whole, wrong = hashlib.sha256(), []
    for step, tensors in export.steps():
        alone = hashlib.sha256()
        for observable in observables(export.track, tensors):
            add(whole, step, *observable)
            add(alone, step, *observable)
        if alone.hexdigest() != tensors.metadata["digest"]:
            wrong.append(f"step {step}: its metadata says {tensors.metadata['digest']}, its tensors {alone.hexdigest()}")
    if whole.hexdigest() != export.about["digest"]:
        wrong.append(f"export.json says {export.about['digest']}")
    print(whole.hexdigest())
    for line in wrong:
        print(f"digest.py: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    if sys.argv[1:] in (["-h"], ["--help"]):
        print(__doc__)
        sys.exit(0)
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
