#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what runs wrote: throughput and efficiency against ranks, bubble against microbatches, memory by category beside
its form, and the timeline of the ranks.

    scripts/plot.py FOLDER... [--out DIR] [--format png|svg]

Writes throughput, bubble, memory and timeline (timeline-2 and so on of further cases, 8 at most) into DIR (default: the
first FOLDER), each only where a record has what it shows. Only cases that passed are drawn. Needs matplotlib (Debian: python3-matplotlib).
"""
import argparse
import collections
import json
import math
import pathlib
import re
import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402

# Okabe and Ito's colours, which people with any colour vision tell apart.
BLUE, ORANGE, GREEN, RED, PINK, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"
COLOURS = [BLUE, RED, GREEN, PINK, ORANGE, SKY]
MARKERS = "osD^vP"
KINDS = {"wall": ("tokens_per_second", "-"), "replay": ("tokens_per_second_replay", "--")}
LANES = {"action": ORANGE, "compute": SKY, "communication": GREEN, "wait": PINK, "copy": BLUE}
CATEGORIES = ["parameter", "master_parameter", "gradient", "optimizer_state", "activation", "workspace", "communication"]
MOST_CASES = 12  # bars that can be read beside each other
MOST_TIMELINES = 8


def read(folder):
    """The records that passed; raises ValueError naming what is wrong."""
    path = folder / "records.jsonl"
    text = path.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        raise ValueError(f"{path}: the last record does not end with a newline: it was cut off")
    records = []
    for number, line in enumerate(text.splitlines(), 1):
        record = json.loads(line)
        if record.get("schema") != "shardproof.record/1":
            raise ValueError(f"{path}:{number}: the schema is {record.get('schema')!r}, not 'shardproof.record/1'")
        record["trace"] = folder / ("trace.json" if number == 1 else f"trace-{number}.json")
        records.append(record)
    return [r for r in records if r["verdict"] == "pass"]


def figure(record, name):
    value = record["figures"].get(name)
    return math.nan if value is None else value


def spread(record, name):
    """Lower quartile, median, upper quartile; none where not measured."""
    values = [figure(record, f"{name}_{part}") for part in ("lower_quartile", "median", "upper_quartile")]
    return values if all(map(math.isfinite, values)) else None


def family(strategy):
    """The strategy without its sizes: "dp2 pp1 schedule=gpipe" is "dp schedule=gpipe"."""
    words = [w if "=" in w else re.sub(r"\d+$", "", w) for w in strategy.split() if "=" in w or not w.endswith("1")
             or w[-2].isdigit()]
    return " ".join(words)


def places(record):
    return (record["workload"], record["workload_hash"], record["track"], record["device"], record.get("fabric"),
            record["transport"], json.dumps(record["environment"], sort_keys=True))


def device(record):
    """With the fabric that its replays are over."""
    fabric = record.get("fabric")
    return record["device"] + (f"; replay over {fabric['name']}" if fabric else "")


def group(records, key):
    groups = collections.defaultdict(list)
    for record in records:
        groups[json.dumps(key(record))].append(record)
    return list(groups.values())


def lines(records):
    """For each family of strategies its records, one rank's first."""
    one = [r for r in records if r["ranks"] == 1]
    families = group([r for r in records if r["ranks"] > 1], lambda r: family(r["strategy"]))
    named = [(family(members[0]["strategy"]), one + members) for members in families]
    return named or [("one rank", one)]


def draw_line(axes, points, style, colour, marker, label):
    points.sort(key=lambda p: p[0])
    x, y = [p[0] for p in points], [p[1][1] for p in points]
    errors = [[m - low for _, (low, m, _) in points], [up - m for _, (_, m, up) in points]]
    axes.errorbar(x, y, yerr=errors, linestyle=style, color=colour, marker=marker, capsize=3, label=label,
                  markerfacecolor=colour if style == "-" else "white")


def throughput(records):
    measured = [r for r in records if spread(r, "tokens_per_second")]
    groups = group(measured, places)
    if not groups:
        return None
    shown, axes = plt.subplots(len(groups), 2, figsize=(11, 4.6 * len(groups)), squeeze=False)
    for members, (rates, shares) in zip(groups, axes):
        ranks = sorted({r["ranks"] for r in members})
        for number, (name, line) in enumerate(lines(members)):
            for kind, (key, style) in KINDS.items():
                points = [(r["ranks"], spread(r, key)) for r in line if spread(r, key)]
                one = max((s[1] for n, s in points if n == 1), default=None)
                look = style, COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)], f"{name}, {kind}"
                if points:
                    draw_line(rates, points, *look)
                if one:
                    draw_line(shares, [(n, [v / n / one for v in s]) for n, s in points], *look)
        shares.axhline(1, color="0.5", linestyle=":", label="ideal")
        r = members[0]
        for axis, title, label in [(rates, "Throughput", "tokens/s (median, quartiles)"),
                                   (shares, "Efficiency", "tokens/s per rank, of one rank's")]:
            axis.set_title(f"{title}: {r['workload']}, {r['track']}, {device(r)}")
            axis.set_xscale("log", base=2)
            axis.set_xticks(ranks, [str(n) for n in ranks])
            axis.minorticks_off()
            axis.set_xlabel("ranks")
            axis.set_ylabel(label)
            axis.set_ylim(bottom=0)
            axis.grid(alpha=0.3)
        handles, labels = rates.get_legend_handles_labels()
        ideal = [h for h, name in zip(*shares.get_legend_handles_labels()) if name == "ideal"]
        shares.legend(handles + ideal, labels + ["ideal"], fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return shown


def microbatches(record):
    found = re.search(r"\bmicrobatches=(\d+)", record["strategy"])
    return int(found.group(1)) if found else 1


def bubble(records):
    kinds = [("formula", "-", "o"), ("replay", "--", "s"), ("wall", ":", "^")]
    measured = [r for r in records if any(math.isfinite(figure(r, f"bubble_{k}_fraction")) for k, _, _ in kinds)]
    if not measured:
        return None
    shown, axes = plt.subplots(figsize=(9, 5))
    without = lambda r: [*places(r), re.sub(r"\s*\bmicrobatches=\d+", "", r["strategy"])]  # noqa: E731
    for number, members in enumerate(group(measured, without)):
        name = f"{members[0]['workload']}, {device(members[0])}: {without(members[0])[-1]}"
        for kind, style, marker in kinds:
            points = sorted((microbatches(r), 100 * figure(r, f"bubble_{kind}_fraction")) for r in members)
            points = [p for p in points if math.isfinite(p[1])]
            if points:
                axes.plot(*zip(*points), linestyle=style, marker=marker, color=COLOURS[number % len(COLOURS)],
                          label=f"{name}, {kind}")
    ticks = sorted({microbatches(r) for r in measured})
    axes.set_xscale("log", base=2)
    axes.set_xticks(ticks, [str(n) for n in ticks])
    axes.minorticks_off()
    axes.set_xlabel("microbatches")
    axes.set_ylabel("bubble, % of ranks x makespan (median)")
    axes.set_ylim(0, 100)
    axes.set_title("Pipeline bubble")
    axes.grid(alpha=0.3)
    axes.legend(fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return shown


def largest(counts, category):
    """Of the ranks; none where nothing is counted under that name."""
    name = re.compile(rf"(?:rank\d+_)?memory_{category}_peak_bytes")
    return max((v for k, v in counts.items() if name.fullmatch(k)), default=None)


def memory(records):
    cases = [r for r in records if largest(r["ledgers"], "parameter") is not None]
    cases = ([r for r in cases if spread(r, "tokens_per_second")] or cases)[:MOST_CASES]
    if not cases:
        return None
    most = max(largest(r["ledgers"], "total") or 0 for r in cases)
    unit, factor = next(((u, 2**k) for u, k in [("GiB", 30), ("MiB", 20), ("KiB", 10)] if most >= 2**k), ("B", 1))
    shown, axes = plt.subplots(figsize=(10, 1.6 + 0.9 * len(cases)))
    colours = dict(zip(CATEGORIES, [BLUE, "#7f7f7f", ORANGE, GREEN, SKY, PINK, RED]))
    for place, record in enumerate(cases):
        for counts, at in [(record["ledgers"], place - 0.19), (record["forms"], place + 0.19)]:
            left = 0
            for category in CATEGORIES:
                size = (largest(counts, category) or 0) / factor
                axes.barh(at, size, 0.34, left=left, color=colours[category], edgecolor="white", linewidth=0.5,
                          hatch=None if counts is record["ledgers"] else "///")
                left += size
    axes.set_yticks(range(len(cases)), [f"{r['workload']}, {r['track']}, {r['device']}\n{r['strategy']}, "
                                        f"{r['ranks']} rank{'s' * (r['ranks'] > 1)}" for r in cases], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"{unit}, of each category the peak of the rank that needs most")
    axes.set_title("Memory: counted (upper bar) beside its form (lower, hatched)")
    axes.set_axisbelow(True)
    axes.margins(x=0.03)
    axes.grid(axis="x", alpha=0.3)
    handles = [Patch(color=colours[c], label=c.replace("_", " ")) for c in CATEGORIES
               if any(largest(r["ledgers"], c) for r in cases)]
    axes.legend(handles=handles, fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return shown


def timeline(record):
    """The last step of a case's Chrome trace."""
    events = json.loads(record["trace"].read_text(encoding="utf-8"))["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    spans = [e for e in events if e["ph"] == "X"]
    steps = [e for e in spans if names.get((e["pid"], e["tid"])) == "step"]
    if not spans:
        return None
    last = max(steps, key=lambda e: e["ts"])["name"] if steps else None
    within = [e for e in steps if e["name"] == last] or spans
    start, end = min(e["ts"] for e in within), max(e["ts"] + e["dur"] for e in within)
    rows = [(rank, lane) for rank in sorted({e["pid"] for e in spans}) for lane in LANES
            if any(names.get((e["pid"], e["tid"])) == lane for e in spans if e["pid"] == rank)]
    boxes = collections.defaultdict(list)
    for e in spans:
        if e["ts"] < end and e["ts"] + e["dur"] > start:
            boxes[e["pid"], names.get((e["pid"], e["tid"]))].append(e)
    shown, axes = plt.subplots(figsize=(13, 1.5 + 0.3 * len(rows)))
    scale = 1e-3 if end - start > 5000 else 1
    for place, row in enumerate(rows):
        axes.broken_barh([(scale * (e["ts"] - start), scale * e["dur"]) for e in boxes[row]], (place - 0.4, 0.8),
                         facecolors=LANES[row[1]], edgecolor="white", linewidth=0.5 if row[1] == "action" else 0)
        for e in boxes[row]:
            if row[1] == "action" and e["dur"] * 170 > (end - start) * len(e["name"]):
                axes.text(scale * (e["ts"] + e["dur"] / 2 - start), place, e["name"], ha="center", va="center",
                          fontsize=6.5, clip_on=True)
    axes.set_yticks(range(len(rows)), [f"rank {rank}  {lane}" for rank, lane in rows], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlim(0, scale * (end - start))
    axes.set_xlabel("milliseconds" if scale != 1 else "microseconds")
    axes.set_title(f"{record['case']}\n{last or 'the whole trace'}, wall time (actions: stage, F, B, I or W, microbatch)",
                   fontsize=9)
    axes.legend(handles=[Patch(color=c, label=lane) for lane, c in LANES.items()], fontsize=8, loc="center left",
                bbox_to_anchor=(1.01, 0.5))
    return shown


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=pathlib.Path, metavar="FOLDER")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--format", choices=["png", "svg"], default="png")
    options = parser.parse_args()
    out = options.out or options.folders[0]
    try:
        records = [r for folder in options.folders for r in read(folder)]
        drawn = {"throughput": throughput(records), "bubble": bubble(records), "memory": memory(records)}
        drawn["timeline"] = None
        traced = [r for r in records if r["trace"].exists()]
        for number, record in enumerate(traced[:MOST_TIMELINES], 1):
            drawn["timeline" if number == 1 else f"timeline-{number}"] = timeline(record)
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"plot.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, shown in drawn.items():
            if shown is None:
                print(f"{name}: nothing to draw")
                continue
            path = out / f"{name}.{options.format}"
            partial = path.with_name(path.name + ".partial")
            shown.savefig(partial, dpi=150, bbox_inches="tight", format=options.format)
            partial.replace(path)
            print(path)
    except OSError as error:
        print(f"plot.py: {error}", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
