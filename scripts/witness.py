#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A second opinion by PyTorch in float64: every gradient and every optimizer step of an `f64` export.

The model is written from reference/ARITHMETIC.md, sections 4 to 9, and differentiated by autograd. It sees parameters,
token ids, labels, document ids and dropout masks of the export, nothing else of it. Gradients agree when
max|a-b| <= 1e-11 max|b| + 1e-15 G for every tensor, G being the greatest gradient entry of the model; parameters and
state after torch.optim's update of the exported gradients likewise, with their own greatest entry for G.

usage: witness.py [--break FAULT] FOLDER...     exit code 1 where anything disagrees
"""

import argparse
import fnmatch
import math
import sys

import numpy
import torch
import torch.nn.functional as F

from exported import Export

torch.set_default_dtype(torch.float64)
torch.set_num_threads(1)

# One wrong line each: what --break plants, so that a test can see this witness refuse.
FAULTS = ["smoothing", "scale", "causal", "documents", "window", "groups", "dropout", "norm", "shared", "mean", "gelu", "decay"]


class Model:
    def __init__(self, workload, parameters, fault=None):
        self.w, self.p, self.fault = workload, parameters, fault

    def linear(self, name, x):
        return F.linear(x, self.p[name + ".weight"], self.p[name + ".bias"])

    def norm(self, name, x):
        epsilon = 1e-3 if self.fault == "norm" else self.w["layer_norm_epsilon"]
        return F.layer_norm(x, x.shape[-1:], self.p[name + ".weight"], self.p[name + ".bias"], epsilon)

    def drop(self, x, masks, site):
        if site not in masks:
            return x
        factor = 1.0 if self.fault == "dropout" else 1.0 / (1.0 - self.w["dropout"])
        return x * torch.from_numpy(masks[site].astype(numpy.float64)) * factor

    def visible(self, documents):
        """[B, 1, T, T]: key j is seen by query i."""
        i = torch.arange(documents.shape[1])
        seen = i[:, None] >= i[None, :] if self.fault != "causal" else i[:, None] >= i[None, :] - 1
        if self.w["window"] > 0 and self.fault != "window":
            seen = seen & (i[:, None] - i[None, :] < self.w["window"])
        seen = seen[None, :, :]
        if self.fault != "documents":
            seen = seen & (documents[:, :, None] == documents[:, None, :])
        return seen.expand(documents.shape[0], -1, -1)[:, None, :, :]

    def attention(self, block, layer, h, visible, masks):
        w, (batch, length, _) = self.w, h.shape
        size = w["hidden"] // w["heads"]
        q, k, v = (
            self.linear(f"{block}.attention.{name}", h).view(batch, length, heads, size).transpose(1, 2)
            for name, heads in (("query", w["heads"]), ("key", w["kv_heads"]), ("value", w["kv_heads"]))
        )
        group = w["heads"] // w["kv_heads"]
        if self.fault == "groups":
            k, v = k.repeat(1, group, 1, 1), v.repeat(1, group, 1, 1)
        else:
            k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
        scores = q @ k.transpose(-1, -2) / (1.0 if self.fault == "scale" else math.sqrt(size))
        p = torch.softmax(scores.masked_fill(~visible, -math.inf), dim=-1)
        p = self.drop(p, masks, f"blocks.{layer}.attention_probability")
        return (p @ v).transpose(1, 2).reshape(batch, length, w["hidden"])

    def logits(self, tokens, documents, masks):
        w, visible = self.w, self.visible(documents)
        x = self.p["token_embedding.weight"][tokens] + self.p["position_embedding.weight"]
        x = self.drop(x, masks, "embedding")
        for layer in range(w["layers"]):
            owner = layer
            if w["shared_block"] and layer == w["shared_block"][1]:
                owner = w["shared_block"][0]
            block = f"blocks.{owner}"
            h = self.norm(f"{block}.norm1", x)
            o = self.linear(f"{block}.attention.output", self.attention(block, layer, h, visible, masks))
            if not (self.fault == "shared" and owner != layer):
                x = x + self.drop(o, masks, f"blocks.{layer}.attention_output")
            h = self.linear(f"{block}.mlp.up", self.norm(f"{block}.norm2", x))
            h = F.relu(h) if w["activation"] == "relu" else F.gelu(h, approximate="none" if self.fault == "gelu" else "tanh")
            x = x + self.drop(self.linear(f"{block}.mlp.down", h), masks, f"blocks.{layer}.mlp_output")
        x = self.norm("final_norm", x)
        return F.linear(x, self.p["token_embedding.weight" if w["tied_head"] else "head.weight"])

    def loss(self, tokens, labels, documents, masks):
        """The sum over labels, divided by their number over the global batch."""
        z = self.logits(tokens, documents, masks)
        smoothing = 0.0 if self.fault == "smoothing" else self.w["label_smoothing"]
        kept = labels >= 0
        total = F.cross_entropy(z[kept], labels[kept], label_smoothing=smoothing, reduction="sum")
        count = labels.shape[0] if self.fault == "mean" else int(kept.sum())
        return total / count


def learning_rate(w, step):
    base, low, warmup = w["learning_rate"], w["minimum_learning_rate"], w["warmup_steps"]
    if step <= warmup:
        return base * (step / warmup)
    r = min(1.0, (step - warmup) / max(1, w["steps"] - warmup))
    return {
        "constant": base,
        "linear": base + r * (low - base),
        "cosine": low + (base - low) * 0.5 * (1 + math.cos(math.pi * r)),
    }[w["learning_rate_schedule"]]


def make_optimizer(w, parameters, trainable, fault):
    decay = [p for n, p in parameters.items() if n in trainable and decays(w, n, p)]
    keep = [p for n, p in parameters.items() if n in trainable and not decays(w, n, p)]
    amount = 0.0 if fault == "decay" else w["weight_decay"]
    groups = [{"params": decay, "weight_decay": amount}, {"params": keep, "weight_decay": 0.0}]
    groups = [g for g in groups if g["params"]]
    betas = (w["beta1"], w["beta2"])
    return {
        "sgd": lambda: torch.optim.SGD(groups, lr=0.1, weight_decay=0),
        "momentum": lambda: torch.optim.SGD(groups, lr=0.1, momentum=w["momentum"]),
        "adam": lambda: torch.optim.Adam(groups, lr=0.1, betas=betas, eps=w["epsilon"]),
        "adamw": lambda: torch.optim.AdamW(groups, lr=0.1, betas=betas, eps=w["epsilon"]),
    }[w["optimizer"]]()


def decays(w, name, parameter):
    if w["optimizer"] != "adamw" or w["decay_group"] == "none" or name.startswith("unused."):
        return False
    return w["decay_group"] == "all" or parameter.dim() == 2


STATES = {"momentum": "momentum_buffer", "first_moment": "exp_avg", "second_moment": "exp_avg_sq"}


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
