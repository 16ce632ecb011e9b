#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A training run in PyTorch, written for `shardproof judge`: on one rank, or on several with DistributedDataParallel.

usage: torch_candidate.py --oracle FOLDER --out FOLDER [--dtype f32|f64] [--ranks N] [--break FAULT]

--break plants one fault: sum: the ranks' gradients are added where DistributedDataParallel takes their mean; rate: the
learning rate is twice what it should be.
"""

import argparse
import fnmatch
import math
import os
import pathlib
import socket
import sys

import numpy
import torch
import torch.distributed
import torch.multiprocessing

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from oracle_files import Export, write  # noqa: E402
from torch_model import STATES, Model, learning_rate, make_optimizer  # noqa: E402

DTYPES = {"f32": torch.float32, "f64": torch.float64}


class Gpt(torch.nn.Module):
    """The loss of a part of the batch, by parameters under the oracle's names."""

    def __init__(self, workload, initial, dtype):
        super().__init__()
        self.workload, self.parameter_of = workload, {}
        for name, array in initial.items():
            trained = not any(fnmatch.fnmatchcase(name, pattern) for pattern in workload["frozen"])
            parameter = torch.nn.Parameter(torch.tensor(array, dtype=dtype), requires_grad=trained)
            self.register_parameter(name.replace(".", "__"), parameter)  # modules take no dots
            self.parameter_of[name] = parameter

    def forward(self, tokens, labels, documents, masks, count):
        return Model(self.workload, self.parameter_of).loss(tokens, labels, documents, masks, count)

    def trained(self):
        return {name: parameter for name, parameter in self.parameter_of.items() if parameter.requires_grad}


def summed(state, bucket):
    """What DistributedDataParallel's hook is, without its division by the number of ranks."""
    work = torch.distributed.all_reduce(bucket.buffer(), async_op=True).get_future()
    return work.then(lambda done: done.value()[0])


def part_of(tensors, rank, ranks):
    """The rank's consecutive samples of the batch."""
    cut = slice(*(len(tensors["tokens"]) * r // ranks for r in (rank, rank + 1)))
    inputs = [torch.tensor(tensors[name][cut].astype(numpy.int64)) for name in ("tokens", "labels", "documents")]
    return inputs, {site: mask[cut] for site, mask in tensors.kind("dropout_mask").items()}


def clip(gradients, most):
    """Scales them in place; the norm before, and the factor."""
    norm = math.sqrt(sum(float((g.double() ** 2).sum()) for g in gradients))
    factor = min(1.0, most / (norm + 1e-6)) if most > 0 else 1.0
    for gradient in gradients:
        gradient.mul_(factor)
    return norm, factor


def arrays(kind, tensors):
    return {f"{kind}/{name}": tensor.detach().numpy().copy() for name, tensor in tensors.items()}


def states(optimizer, trained):
    """Of the oracle's names; none before the first update."""
    found = {}
    for name, parameter in trained.items():
        of_parameter = optimizer.state.get(parameter, {})
        for ours, theirs in STATES.items():
            if of_parameter.get(theirs) is not None:
                found |= arrays("state", {f"{name}.{ours}": of_parameter[theirs]})
    return found


def train(rank, ranks, args):
    torch.set_num_threads(1)
    export = Export(args.oracle)
    w, dtype = export.workload, DTYPES[args.dtype]
    gpt = Gpt(w, export.initial().kind("parameter"), dtype)
    model, trained = gpt, gpt.trained()
    if ranks > 1:
        model = torch.nn.parallel.DistributedDataParallel(gpt, find_unused_parameters=bool(w["unused"]))
        if args.fault == "sum":
            model.register_comm_hook(None, summed)
    optimizer = make_optimizer(w, gpt.parameter_of, set(trained))
    for step, tensors in export.steps():
        (tokens, labels, documents), masks = part_of(tensors, rank, ranks)
        count = int((tensors["labels"] >= 0).sum())
        loss = model(tokens, labels, documents, masks, max(count, 1)) * ranks  # the mean over ranks then is their sum
        optimizer.zero_grad()
        loss.backward()
        total = loss.detach().double() / ranks
        if ranks > 1:
            torch.distributed.all_reduce(total)
        for parameter in trained.values():
            parameter.grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
        written = arrays("gradient", {name: parameter.grad for name, parameter in trained.items()})
        norm, factor = clip([parameter.grad for parameter in trained.values()], w["clip"])
        written |= {"norm": numpy.array([norm]), "clip": numpy.array([factor])}
        if count > 0:  # else there is no loss, and no update
            written["loss"] = numpy.array([total.item()])
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(w, step) * (2 if args.fault == "rate" else 1)
            optimizer.step()
        written |= arrays("parameter", gpt.parameter_of) | states(optimizer, trained)
        if rank == 0:
            about = {"workload_hash": export.about["workload_hash"], "step": str(step), "strategy": f"dp{ranks}"}
            write(args.out / f"step-{step:04}.safetensors", written, about)


def start(rank, args):
    torch.distributed.init_process_group("gloo", rank=rank, world_size=args.ranks)
    train(rank, args.ranks, args)
    torch.distributed.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--dtype", choices=DTYPES, default="f32")
    parser.add_argument("--ranks", type=int, default=1)
    parser.add_argument("--break", dest="fault", choices=["sum", "rate"])
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    if args.ranks == 1:
        return train(0, 1, args)
    with socket.socket() as free:  # a port that nobody has
        free.bind(("127.0.0.1", 0))
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    torch.multiprocessing.start_processes(start, args=(args,), nprocs=args.ranks, start_method="fork")


if __name__ == "__main__":
    main()
