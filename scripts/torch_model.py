# SPDX-License-Identifier: Apache-2.0
"""The model and the optimizers of reference/ARITHMETIC.md, sections 4 to 9, in PyTorch, to be differentiated by autograd.

Numbers are of the type of the parameters that the model is given.
"""

import math

import torch
import torch.nn.functional as F


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
        return x * torch.from_numpy(masks[site]).to(x.dtype) * factor

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

    def loss(self, tokens, labels, documents, masks, count=None):
        """The sum over labels, divided by `count`: their number over the global batch, of which these may be a part."""
        z = self.logits(tokens, documents, masks)
        smoothing = 0.0 if self.fault == "smoothing" else self.w["label_smoothing"]
        kept = labels >= 0
        total = F.cross_entropy(z[kept], labels[kept], label_smoothing=smoothing, reduction="sum")
        if self.fault == "mean":
            count = labels.shape[0]
        return total / (int(kept.sum()) if count is None else count)


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


def make_optimizer(w, parameters, trainable, fault=None):
    """Of {name: tensor}; its learning rate is set before each step."""
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
