# SPDX-License-Identifier: Apache-2.0
"""Reads a folder that `shardproof export` wrote (harness/export.hpp), with numpy alone."""

import json
import pathlib
import struct

import numpy

DTYPES = {"F64": "<f8", "F32": "<f4", "I64": "<i8", "I32": "<i4", "U8": "u1"}


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
