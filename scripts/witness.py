#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A second opinion by PyTorch in float64: every gradient and every optimizer step of an `f64` export.

The model (torch_model.py) is written from reference/ARITHMETIC.md and differentiated by autograd. It sees parameters,
token ids, labels, document ids and dropout masks of the export, nothing else of it. Gradients agree when
max|a-b| <= 1e-11 max|b| + 1e-15 G for every tensor, G being the greatest gradient entry of the model; parameters and
state after torch.optim's update of the exported gradients likewise, with their own greatest entry for G.

usage: witness.py [--break FAULT] FOLDER...     exit code 1 where anything disagrees
"""

import argparse
import fnmatch
import math
import pathlib
import sys

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent / "examples"))
from oracle_files import Export  # noqa: E402
from torch_model import STATES, Model, learning_rate, make_optimizer  # noqa: E402

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

# One wrong line each: what --break plants, so that a test can see this witness refuse.
FAULTS = ["smoothing", "scale", "causal", "documents", "window", "groups", "dropout", "norm", "shared", "mean", "gelu", "decay"]


class Witness:
    def __init__(self, folder, fault):
        self.export, self.fault = Export(folder), fault
        self.w = self.export.workload
        if self.export.track != "f64":
            sys.exit(f"{folder}: track {self.export.track}; the witness reads exports of --track f64")
        self.parameters = {n: torch.tensor(a, requires_grad=True) for n, a in self.export.initial().kind("parameter").items()}
        self.trainable = {n for n in self.parameters if not any(fnmatch.fnmatchcase(n, f) for f in self.w["frozen"])}
        self.optimizer = make_optimizer(self.w, self.parameters, self.trainable, fault)
        self.findings, self.compared, self.worst = [], 0, 0.0

    def compare(self, step, kind, ours, theirs):
        """Both {name: array}."""
        if set(ours) != set(theirs):
            self.findings.append(f"step {step}: {kind}: the names differ: {sorted(set(ours) ^ set(theirs))}")
            return
        greatest = max((numpy.abs(a).max() for a in theirs.values() if a.size), default=0.0)
        for name, a in theirs.items():
            b = ours[name]
            if not a.size:
                continue
            error, bound = numpy.abs(a - b).max(), 1e-11 * numpy.abs(a).max() + 1e-15 * greatest
            self.compared += a.size
            self.worst = max(self.worst, error / bound if bound > 0 else float(error > 0) * math.inf)
            if not error <= bound:
                self.findings.append(f"step {step}: {kind} of {name}: off by {error:.3g}, bound {bound:.3g}")

    def gradients(self, tensors):
        masks = tensors.kind("dropout_mask")
        tokens, labels, documents = (torch.tensor(tensors[n].astype(numpy.int64)) for n in ("tokens", "labels", "documents"))
        for p in self.parameters.values():
            p.grad = None
        loss = None
        if (labels >= 0).any():
            value = Model(self.w, self.parameters, self.fault).loss(tokens, labels, documents, masks)
            value.backward()
            loss = value.item()
        zeros = {n: torch.zeros_like(p) for n, p in self.parameters.items()}
        return loss, {n: (self.parameters[n].grad if self.parameters[n].grad is not None else zeros[n]).numpy() for n in self.trainable}

    def step(self, step, tensors):
        loss, gradients = self.gradients(tensors)
        exported = tensors.kind("gradient")
        self.compare(step, "gradient", gradients, exported)
        self.compare(step, "loss", {"loss": numpy.array([] if loss is None else [loss])}, {"loss": tensors["loss"]})
        norm = math.sqrt(sum(float((g * g).sum()) for g in exported.values()))
        self.compare(step, "norm", {"norm": numpy.array([norm])}, {"norm": tensors["norm"]})
        if (tensors["skipped"][0] != 0) != (loss is None):
            self.findings.append(f"step {step}: skipped is {tensors['skipped'][0]}")
        if loss is not None:
            # The update alone: of the exported gradients, so that noise in them is not carried on.
            factor = min(1.0, self.w["clip"] / (norm + 1e-6)) if self.w["clip"] > 0 else 1.0
            for name in self.trainable:
                self.parameters[name].grad = torch.tensor(exported[name] * factor)
            for group in self.optimizer.param_groups:
                group["lr"] = learning_rate(self.w, step)
            self.optimizer.step()
        self.compare(step, "parameter", {n: p.detach().numpy() for n, p in self.parameters.items()}, tensors.kind("parameter"))
        self.compare(step, "state", self.state(tensors.kind("state")), tensors.kind("state"))
        with torch.no_grad():
            for name, array in tensors.kind("parameter").items():
                self.parameters[name].copy_(torch.tensor(array))

    def state(self, exported):
        ours = {}
        for name, array in exported.items():
            parameter, kind = name.rsplit(".", 1)
            state = self.optimizer.state.get(self.parameters[parameter], {}).get(STATES[kind])
            ours[name] = numpy.zeros_like(array) if state is None else state.numpy()
        return ours

    def run(self):
        for step, tensors in self.export.steps():
            self.step(step, tensors)
        if self.compared == 0:
            self.findings.append("nothing was compared")
        return self.findings


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--break", dest="fault", choices=FAULTS, help="plant one wrong line in the witness")
    parser.add_argument("folder", nargs="+")
    args = parser.parse_args()
    failed = 0
    for folder in args.folder:
        witness = Witness(folder, args.fault)
        findings = witness.run()
        failed += bool(findings)
        print(f"{folder}: {'FAIL' if findings else 'pass'}: {witness.compared} elements, error at most {witness.worst:.2g} of the bound")
        for finding in findings[:10]:
            print(f"  {finding}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
