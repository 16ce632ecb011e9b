#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pipelines on a grid of stages and microbatches, and with a slow stage: the replay of what was recorded beside theory.

    scripts/pipeline_grid.py [--stages 2,3,4,5,6,7,8] [--microbatches 1,2,4,8,16,32] [--repeat 3] [--out FOLDER]

Needs a build (scripts/build.sh cpu); --repeat is of the second and third table. Prints three tables and fails where one of them is out of its bounds, which stand
beside the reasons below. It reads clocks: nightly.sh runs it, ctest does not.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BINARY = ROOT / "build/cpu/shardproof"
# Eight layers, so that eight stages have one each, and 32 samples, so that 32 microbatches have one. Actions take
# milliseconds, messages microseconds.
GRID = ["--workload", "tiny", "--set", "layers=8", "--set", "hidden=128", "--set", "heads=4", "--set", "kv_heads=4",
        "--set", "sequence=64", "--set", "vocab=64", "--set", "batch=32", "--set", "mlp_hidden=512"]
SLOWED = [(2, 1), (4, 2), (8, 5)]  # stages, and which of them is slow
FACTOR, SLOWED_MICROBATCHES = 3, 8

# The form takes each stage's mean cost. Costs that vary make the replay longer, for a makespan is the longest of many
# sums (Jensen's inequality); messages and the host's work between actions are in the replay alone. Both are a few per
# cent here. It is shorter only where the first or the last microbatch happens to be cheap.
LONGER, SHORTER = 0.15, 0.05
# Two runs at different times: processor time changes with what else the machine does, here by up to a half. The costs of
# the stages that are as before say by how much; what is left is the noise of medians of few runs.
BETWEEN_RUNS = 0.15
# On as many processors as ranks the replay's clock is the wall's, but for what waits cost to begin and end.
OF_THE_WALL = 0.10


def on_one_processor():
    """There, ranks share it, so that costs are processor time, in which other programs count little."""
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


def run(out, *words, prepare=on_one_processor):
    """The records of a run."""
    done = subprocess.run([BINARY, "run", *words, "--no-check", "--out", out, "--overwrite"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False, preexec_fn=prepare)
    if done.returncode:
        sys.exit(f"{done.args} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]


def gpipe_seconds(stages, microbatches):
    """harness/predict/bubble.hpp: sum f + (m-1) max f, and the same backward."""
    return sum(sum(way) + (microbatches - 1) * max(way) for way in zip(*stages))


def strategy(stages, microbatches):
    return f"pp{stages} schedule=gpipe microbatches={microbatches}"


def median(records, name):
    return statistics.median(record["figures"][name] for record in records)


def stage_costs(records, stages):
    """Forward and backward seconds of a microbatch on each stage, medians over runs."""
    return [[median(records, f"pipeline_stage{s}_{way}_seconds") for way in ("forward", "backward")] for s in range(stages)]


def grid(stages, microbatches, out):
    """Formula and replay are of the same run, so one of each is enough."""
    cases = [(p, m) for p in stages for m in microbatches]
    words = [word for p, m in cases for word in ("--strategy", strategy(p, m))]
    records = run(out / "grid", *GRID, "--steps", "4", *words)
    print("gpipe, medians of 3 steps\nstages  microbatches  bubble: formula  replay   makespan: formula at recorded costs, s  "
          "replay, s  replay/formula")
    wrong = 0
    for (p, m), record in zip(cases, records, strict=True):
        figures = record["figures"]
        formula, replay = figures["pipeline_formula_seconds"], figures["pipeline_replay_seconds"]
        ratio = replay / formula
        good = 1 - SHORTER <= ratio <= 1 + LONGER
        wrong += not good
        print(f"{p:6}  {m:12}  {figures['bubble_formula_fraction']:15.3f}  {figures['bubble_replay_fraction']:6.3f}"
              f"   {formula:38.5f}  {replay:9.5f}  {ratio:14.3f}{'' if good else '  OUT OF BOUNDS'}", flush=True)
    return wrong


def slowed(repeat, out):
    print(f"\nOne stage {FACTOR} times as slow, {SLOWED_MICROBATCHES} microbatches, medians of {repeat} runs each, by turns\n"
          "stages  slow  replay before, s  other stages' costs since  formula of before with the slow stage, s  replay, s  "
          "replay/formula")
    wrong = 0
    for stages, slow in SLOWED:
        before, after = [], []
        for k in range(repeat):
            words = [*GRID, "--steps", "4", "--strategy", strategy(stages, SLOWED_MICROBATCHES)]
            before += run(out / f"before{stages}-{k}", *words)
            after += run(out / f"slow{stages}-{k}", *words, "--inject", f"slow:rank={slow},factor={FACTOR}")
        costs, later = stage_costs(before, stages), stage_costs(after, stages)
        others = [s for s in range(stages) if s != slow]
        since = sum(sum(later[s]) for s in others) / sum(sum(costs[s]) for s in others)
        costs[slow] = [FACTOR * cost for cost in costs[slow]]
        formula = since * gpipe_seconds(costs, SLOWED_MICROBATCHES)
        replay = median(after, "pipeline_replay_seconds")
        good = abs(replay / formula - 1) <= BETWEEN_RUNS
        wrong += not good
        print(f"{stages:6}  {slow:4}  {median(before, 'pipeline_replay_seconds'):16.5f}  {since:25.3f}  {formula:40.5f}  {replay:9.5f}  "
              f"{replay / formula:14.3f}{'' if good else '  OUT OF BOUNDS'}", flush=True)
    return wrong


def wall(repeat, out):
    """On two ranks whose actions take tens of milliseconds."""
    records = run(out / "wall", "--workload", "laptop", "--steps", "6", "--strategy", strategy(2, 4), "--repeat", str(repeat),
                  prepare=None)
    if records[0]["environment"]["cores"] < 2 or "pipeline_wall_seconds" not in records[0]["figures"]:
        print("\nreplay beside the wall: NOT MEASURED, two ranks need two processors")
        return 1
    ratio = median(records, "replay_over_wall")
    good = abs(ratio - 1) <= OF_THE_WALL
    each = ", ".join(f"{r['figures']['replay_over_wall']:.3f}" for r in records)
    print(f"\nlaptop, {strategy(2, 4)}, {repeat} runs of 5 steps: replay / wall {ratio:.3f} (each: {each})"
          f"{'' if good else '  OUT OF BOUNDS'}")
    return 0 if good else 1


def numbers(text):
    if not re.fullmatch(r"[1-9]\d*(,[1-9]\d*)*", text):
        raise argparse.ArgumentTypeError(f'"{text}" is not a list of numbers from 1, as 2,4,8')
    return [int(word) for word in text.split(",")]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stages", type=numbers, default=list(range(2, 9)))
    parser.add_argument("--microbatches", type=numbers, default=[1, 2, 4, 8, 16, 32])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / "build/pipeline_grid")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error("--repeat: at least 1")
    wrong = (grid(options.stages, options.microbatches, options.out) + slowed(options.repeat, options.out)
             + wall(options.repeat, options.out))
    sys.exit(f"{wrong} rows are out of bounds" if wrong else 0)


if __name__ == "__main__":
    main()
