#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Draws what runs wrote, and schedules: throughput and efficiency against ranks, bubble against microbatches, memory by
category beside its form, and what every rank does when.

    scripts/plot.py [throughput|bubble|memory|timeline] PATH... [--out DIR] [--format png|svg]

PATH is the folder of a run, or a FILE.json of `shardproof schedule draw NAME ... --out FILE.json`. Of all folders together:
throughput, bubble, memory and timeline (timeline-2 and so on of further cases, 8 at most), each only where a record has
what it shows, or the one named first; of FILE.json: FILE. They are written into DIR (default: the first folder, or the
file's). Cases that passed are drawn, each once, with all its runs, and those of --no-check as "unchecked": they have no
part in efficiencies. Needs matplotlib (Debian: python3-matplotlib).
"""
import argparse
import pathlib
import re
import sys

from plot_records import (CATEGORIES, cases, device, efficiency, family, group, largest, microbatches, read)

try:
    import matplotlib
except ImportError as missing:
    print(f"plot.py: {sys.executable} has no matplotlib ({missing}): scripts/install.sh installs what is missing",
          file=sys.stderr)
    sys.exit(4)

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.patches import Patch  # noqa: E402

from plot_timeline import run_timeline, schedule_timeline  # noqa: E402

# Text stays text, and equal input gives equal files.
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "shardproof"})
# Okabe and Ito's colours, which people with any colour vision tell apart.
BLUE, ORANGE, GREEN, RED, PINK, SKY = "#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9"
COLOURS = [BLUE, RED, GREEN, PINK, ORANGE, SKY]
MARKERS = "osD^vP"
RATES = {"wall": ("tokens_per_second", "-"), "replay": ("tokens_per_second_replay", "--")}
BUBBLES = {"formula": ("-", "o"), "replay": ("--", "s"), "wall": (":", "^")}
MOST_CASES = 12  # bars that can be read beside each other
MOST_TIMELINES = 8


def draw_line(axes, points, kind, style, colour, marker, gid):
    """`points` are (x, quartiles, case). By the clock with more ranks than cores they are hollow."""
    points.sort(key=lambda p: p[0])
    xs, spreads = [p[0] for p in points], [p[1] for p in points]
    medians = [s[1] for s in spreads]
    axes.plot(xs, medians, linestyle=style, color=colour)
    axes.vlines(xs, [s[0] for s in spreads], [s[2] for s in spreads], colors=colour).set_gid(f"{gid}-interval")
    for crowded in (False, True):
        some = [(x, m) for x, m, (_, _, case) in zip(xs, medians, points) if (kind == "wall" and case.crowded) == crowded]
        axes.plot([x for x, _ in some], [m for _, m in some], linestyle="none", marker=marker, color=colour,
                  markerfacecolor="white" if crowded else colour, gid=f"{gid}-crowded" if crowded else gid)


def legend(axes, lines, drawn, *others):
    """`lines` are (label, style, colour, marker)."""
    handles = [Line2D([], [], linestyle=style, color=colour, marker=marker, label=label)
               for label, style, colour, marker in lines]
    if any(case.crowded for kind, case in drawn if kind == "wall"):
        handles.append(Line2D([], [], linestyle="none", color="0.3", marker="o", markerfacecolor="white",
                              label="hollow: more ranks than cores,\nwhich the wall clock shares"))
    axes.legend(handles=[*handles, *others], fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))


def machines(drawn):
    return "; ".join(dict.fromkeys(case.machine for case in drawn))


def count_axis(axes, values, label):
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, [str(n) for n in values])
    axes.minorticks_off()
    axes.set_xlabel(label)
    axes.grid(alpha=0.3)


def families(members):
    """For each family of strategies its cases, one rank's first."""
    one = [c for c in members if c.ranks == 1 and not c.disturbance]
    name = lambda c: family(c.record["strategy"]) + c.disturbance  # noqa: E731
    others = group([c for c in members if c not in one], name)
    return [(name(cases[0]), one + cases) for cases in others] or [("one rank", one)]


def fastest_of_one_rank(members, name):
    one = [c for c in members if c.ranks == 1 and not c.disturbance and c.spread(name)]
    return max(one, key=lambda c: c.spread(name)[1], default=None)


def throughput(every):
    groups = group([c for c in every if c.spread("tokens_per_second")], lambda c: c.places)
    if not groups:
        return None
    shown, axes = plt.subplots(len(groups), 2, figsize=(12, 4.8 * len(groups)), squeeze=False)
    for panel, (members, (rates, shares)) in enumerate(zip(groups, axes)):
        drawn, lines = [], []
        for number, (name, line) in enumerate(families(members)):
            colour, marker = COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)]
            for kind, (key, style) in RATES.items():
                measured = [c for c in line if c.spread(key)]
                if not measured:
                    continue
                drawn += [(kind, c) for c in measured]
                lines.append((f"{name}, {kind}", style, colour, marker))
                gid = f"{panel}-{number}-{kind}"
                draw_line(rates, [(c.ranks, c.spread(key), c) for c in measured], kind, style, colour, marker,
                          f"throughput-{gid}")
                one = fastest_of_one_rank(members, key)
                if one:
                    draw_line(shares, [(c.ranks, efficiency(c, one, key), c) for c in measured], kind, style, colour, marker,
                              f"efficiency-{gid}")
        ideal = shares.axhline(1, color="0.5", linestyle=":", label="ideal")
        first, kinds = members[0], " and ".join(dict.fromkeys(kind for kind, _ in drawn))
        for axis, title, label in [(rates, "Throughput", "tokens/s (median, quartiles)"),
                                   (shares, "Efficiency", "tokens/s per rank, of one rank's (median, quartiles)")]:
            axis.set_title(f"{title}, {kinds}: {first.record['workload']}, {first.record['track']}, {device(first)}\n"
                           f"{first.machine}", fontsize=10)
            count_axis(axis, sorted({c.ranks for c in members}), "ranks")
            axis.set_ylabel(label)
            axis.set_ylim(bottom=0)
        legend(shares, lines, drawn, ideal)
    shown.tight_layout()
    return shown


def bubble(every):
    key = "bubble_{}_fraction".format
    measured = [c for c in every if any(c.over_runs(key(kind)) for kind in BUBBLES)]
    if not measured:
        return None
    shown, axes = plt.subplots(figsize=(9, 5))
    without = lambda c: re.sub(r"\s*\bmicrobatches=\d+", "", c.record["strategy"]) + c.disturbance  # noqa: E731
    drawn, lines = [], []
    several_machines = len({c.machine for c in measured}) > 1
    for number, members in enumerate(group(measured, lambda c: [*c.places, without(c)])):
        first, colour = members[0], COLOURS[number % len(COLOURS)]
        where = f" ({first.machine})" if several_machines else ""
        for kind, (style, marker) in BUBBLES.items():
            points = [(microbatches(c.record), [100 * v for v in c.over_runs(key(kind))], c) for c in members
                      if c.over_runs(key(kind))]
            if points:
                draw_line(axes, points, kind, style, colour, marker, f"bubble-{number}-{kind}")
                drawn += [(kind, c) for _, _, c in points]
                lines.append((f"{first.record['workload']}, {first.record['track']}, {device(first)}: {without(first)}, {kind}{where}",
                              style, colour, marker))
    count_axis(axes, sorted({microbatches(c.record) for c in measured}), "microbatches")
    axes.set_ylabel("bubble, % of ranks x makespan\n(median; of several runs with quartiles)")
    axes.set_ylim(0, 100)
    kinds = [kind for kind in BUBBLES if any(kind == k for k, _ in drawn)]
    axes.set_title(f"Pipeline bubble by {', '.join(kinds)}\n{machines(measured)}", fontsize=10)
    legend(axes, lines, drawn)
    return shown


def memory(every):
    counted = [c for c in every if largest(c.record["ledgers"], "parameter") is not None]
    shown_cases = ([c for c in counted if c.spread("tokens_per_second")] or counted)[:MOST_CASES]
    if not shown_cases:
        return None
    most = max(largest(c.record["ledgers"], "total") or 0 for c in shown_cases)
    unit, factor = next(((u, 2**k) for u, k in [("GiB", 30), ("MiB", 20), ("KiB", 10)] if most >= 2**k), ("B", 1))
    shown, axes = plt.subplots(figsize=(10, 1.8 + 0.9 * len(shown_cases)))
    colours = dict(zip(CATEGORIES, [BLUE, "#7f7f7f", ORANGE, GREEN, SKY, PINK, RED]))
    for place, case in enumerate(shown_cases):
        for what, at, hatch in [("ledgers", place - 0.19, None), ("forms", place + 0.19, "///")]:
            left = 0
            for category in CATEGORIES:
                sizes = [largest(run[what], category) or 0 for run in case.runs]
                size = max(sizes) / factor
                if size == 0:
                    continue
                bar, = axes.barh(at, size, 0.34, left=left, color=colours[category], edgecolor="white", linewidth=0.5,
                                 hatch=hatch)
                bar.set_gid(f"{what}-{place}-{category}")
                left += size
    axes.set_yticks(range(len(shown_cases)),
                    [f"{c.record['workload']}, {c.record['track']}, {c.record['device']}\n{c.record['strategy']}"
                     f"{c.disturbance}, {c.ranks} rank{'s' * (c.ranks > 1)}" for c in shown_cases], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"{unit}, of each category the peak of the rank that needs most")
    axes.set_title(f"Memory: counted (upper bar) beside its formula (lower, hatched)\n{machines(shown_cases)}", fontsize=10)
    axes.set_axisbelow(True)
    axes.margins(x=0.03)
    axes.grid(axis="x", alpha=0.3)
    handles = [Patch(color=colours[category], label=category.replace("_", " ")) for category in CATEGORIES
               if any(largest(c.record["ledgers"], category) for c in shown_cases)]
    axes.legend(handles=handles, fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
    return shown


def timelines(every):
    traced = [c for c in every if c.record["trace"].exists()]
    return [run_timeline(c) for c in traced[:MOST_TIMELINES]] or [None]


MISSING = {"throughput": "no tokens per second (check measures nothing)", "bubble": "no bubble (a pipeline of two stages has one)",
           "memory": "no count of memory", "timeline": "no trace (check records none)"}
PLOTS = {"throughput": lambda every: [throughput(every)], "bubble": lambda every: [bubble(every)],
         "memory": lambda every: [memory(every)], "timeline": timelines}


def drawings(which, folders, files):
    """Name and figure of each, None where there is nothing to draw."""
    every = cases([r for folder in folders for r in read(folder)])
    for name in which if folders else []:
        for number, figure in enumerate(PLOTS[name](every), 1):
            yield name if number == 1 else f"{name}-{number}", figure
    for file in files:
        yield file.stem, schedule_timeline(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", metavar="PATH")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--format", choices=["png", "svg"], default="png")
    options = parser.parse_args()
    which = [options.paths.pop(0)] if options.paths[0] in PLOTS else list(PLOTS)
    paths = [pathlib.Path(p) for p in options.paths]
    files = [p for p in paths if p.suffix == ".json"]
    folders = [p for p in paths if p.suffix != ".json"]
    if not paths or (files and "timeline" not in which):
        parser.error(f"{which[0]}: of which runs? PATH is missing" if not paths else f"{files[0]}: a schedule has a timeline alone")
    if len({f.stem for f in files}) < len(files):
        parser.error("two files have one name, and would be drawn over each other")
    out = options.out or (folders[0] if folders else files[0].parent)
    try:
        drawn = list(drawings(which, folders, files))
    except (OSError, ValueError, KeyError, TypeError) as error:
        print(f"plot.py: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    try:
        out.mkdir(parents=True, exist_ok=True)
        for name, figure in drawn:
            if figure is None:
                print(f"{name}: nothing to draw: of the cases that passed, or ran with --no-check, there is {MISSING[name]}")
                continue
            path = out / f"{name}.{options.format}"
            partial = path.with_name(path.name + ".partial")
            figure.savefig(partial, dpi=150, bbox_inches="tight", format=options.format,
                           metadata={"Date": None} if options.format == "svg" else None)
            partial.replace(path)
            print(path)
    except OSError as error:
        print(f"plot.py: {error}", file=sys.stderr)
        return 5
    return 0


if __name__ == "__main__":
    sys.exit(main())
