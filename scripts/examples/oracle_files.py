#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what `shardproof export` wrote (harness/export.hpp), and writes safetensors, with numpy alone.

usage: oracle_files.py FOLDER    prints what the steps of an export hold
"""

import json
import pathlib
import struct
import sys

import numpy

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "U8": "u1"}


class Tensors(dict):
    """Arrays by name, of one safetensors file; `metadata` is its text metadata."""

    def __init__(self, path):
        content = pathlib.Path(path).read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8 : 8 + length])
        self.metadata = header.pop("__metadata__", {})
        for name, entry in header.items():
            begin, end = entry["data_offsets"]
            data = content[8 + length + begin : 8 + length + end]
            self[name] = numpy.frombuffer(data, DTYPES[entry["dtype"]]).reshape(entry["shape"])

    def kind(self, kind):
        """{name: array} of the tensors called KIND/NAME."""
        return {name[len(kind) + 1 :]: array for name, array in self.items() if name.startswith(kind + "/")}


def write(path, tensors, metadata):
    """One safetensors file of {name: array} and {text: text}."""
    names = {numpy.dtype(numpy_name): name for name, numpy_name in DTYPES.items()}
    header, data = {"__metadata__": metadata}, b""
    for name, array in tensors.items():
        begin = len(data)
        data += numpy.ascontiguousarray(array).tobytes()
        header[name] = {"dtype": names[array.dtype], "shape": array.shape, "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)


class Export:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.about = json.loads((self.folder / "export.json").read_text())
        self.workload = self.about["workload"]
        self.track = self.about["track"]

    def initial(self):
        return Tensors(self.folder / "initial.safetensors")

    def steps(self):
        for step in range(1, self.about["steps"] + 1):
            yield step, Tensors(self.folder / f"step-{step:04}.safetensors")


def main(folder):
    export = Export(folder)
    print(f"{export.workload['name']}, track {export.track}, workload_hash {export.about['workload_hash']}")
    for step, tensors in export.steps():
        gradients = tensors.kind("gradient")
        loss = f"{tensors['loss'][0]:.6f}" if tensors.get("loss", numpy.empty(0)).size else "none"
        greatest = max(gradients, key=lambda name: numpy.abs(gradients[name]).max(initial=0), default="none")
        print(f"step {step}: {tensors['tokens'].shape} tokens, loss {loss}, {len(gradients)} gradients, greatest in {greatest}")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
