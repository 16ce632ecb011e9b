# SPDX-License-Identifier: Apache-2.0
"""Imported by plot.py: what every rank does when, of a run and of a schedule."""
import collections
import json
import re

import matplotlib.pyplot as plt
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

# Okabe and Ito's colours, which people with any colour vision tell apart; of actions those of schedule_svg.cpp.
KINDS = {"F": ("#56b4e9", "F forward"), "I": ("#e69f00", "I input gradient"), "W": ("#009e73", "W weight gradient"),
         "B": ("#f0c050", "B both gradients"), "U": ("#cc79a7", "U update")}
LANES = {"compute": "#8c8c8c", "communication": "#0072b2", "wait": "#d55e00", "copy": "#333333"}
IDLE = "#e6e6e6"
MESSAGES = {"F": ("#0072b2", 2.2), "B": ("#d55e00", 1)}  # the first, below the other where they meet, is wider
ACTION = re.compile(r"(?P<stage>\d+)(?P<kind>[FIWBU])(?P<unit>\d+(?:\.\d+)?)")
ROW, WIDTH, LETTER = 0.7, 13, 0.0085  # of a row's place; inches; a letter's part of the axes' width


class Action:
    def __init__(self, event):
        self.rank, self.start, self.end = event["pid"], event["ts"], event["ts"] + event["dur"]
        found = ACTION.fullmatch(event["name"])
        if not found:
            raise ValueError(f"\"{event['name']}\" is no action, as 0F1")
        self.stage, self.kind, self.unit = int(found["stage"]), found["kind"], found["unit"]


def lighter(colour, part):
    return tuple(c + part * (1 - c) for c in to_rgb(colour))


def draw_actions(axes, place, actions, whole, scale, zero, gid):
    """One row: grey where nothing runs; the later of several stages of a rank lighter."""
    start, end = whole
    axes.broken_barh([(scale * (start - zero), scale * (end - start))], (place - ROW / 2, ROW), facecolors=IDLE, zorder=0)
    stages = sorted({a.stage for a in actions})
    shade = {s: 0.6 * k / max(len(stages) - 1, 1) for k, s in enumerate(stages)}
    long = [a for a in actions if a.end > a.start]
    axes.broken_barh([(scale * (a.start - zero), scale * (a.end - a.start)) for a in long], (place - ROW / 2, ROW),
                     facecolors=[lighter(KINDS[a.kind][0], shade[a.stage]) for a in long], edgecolor="white", linewidth=0.5,
                     zorder=2).set_gid(gid)
    at_once = [scale * (a.start - zero) for a in actions if a.end == a.start]
    axes.vlines(at_once, place - ROW / 2, place + ROW / 2, colors=KINDS["U"][0], linewidth=2.5, zorder=3).set_gid(f"{gid}-at-once")
    def fits(a, text):
        return len(text) * LETTER < (a.end - a.start) / (end - start)

    with_stage = len(stages) > 1 and all(fits(a, f"{a.stage}:{a.unit}") for a in long)
    for a in long:
        label = f"{a.stage}:{a.unit}" if with_stage else a.unit
        if fits(a, label):
            axes.text(scale * ((a.start + a.end) / 2 - zero), place, label, ha="center", va="center", fontsize=7, clip_on=True,
                      zorder=4)


def blocks_of(actions):
    """Each F with the B of another microbatch just after it on its rank."""
    return [(f, b) for f, b in zip(actions, actions[1:])
            if (f.rank, f.kind, b.kind) == (b.rank, "F", "B") and f.unit.split(".")[0] != b.unit.split(".")[0]]


def of_kinds(actions):
    present = {a.kind for a in actions}
    handles = [Patch(color=colour, label=name) for kind, (colour, name) in KINDS.items() if kind in present]
    return [*handles, Patch(color=IDLE, label="idle")]


def finish(axes, rows, handles, title):
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    axes.set_title(title, fontsize=9)
    axes.legend(handles=handles, fontsize=8, loc="center left", bbox_to_anchor=(1.01, 0.5))


def events_of(path):
    whole = json.loads(path.read_text(encoding="utf-8"))
    return whole, whole["traceEvents"]


def schedule_timeline(path):
    """A file of `shardproof schedule draw --out FILE.json`."""
    whole, events = events_of(path)
    about = whole.get("otherData", {})
    if "makespan" not in about:
        raise ValueError(f"{path}: not of `shardproof schedule draw --out FILE.json`; a run's timeline is drawn from its folder")
    actions = [Action(e) for e in events if e["ph"] == "X"]
    ranks = sorted({e["pid"] for e in events if e["ph"] == "M"})
    shown, axes = plt.subplots(figsize=(WIDTH, 1.6 + 0.42 * len(ranks)))
    end = about["makespan"]
    for rank in ranks:
        of_rank = [a for a in actions if a.rank == rank]
        draw_actions(axes, rank, of_rank, (0, end), 1, 0, f"rank{rank}-action")
        blocks = blocks_of(of_rank) if about.get("overlapped") else []
        if blocks:
            axes.broken_barh([(f.start, b.end - f.start) for f, b in blocks], (rank - ROW / 2, ROW), facecolors="none",
                             edgecolor="black", linewidth=1.2, zorder=3).set_gid(f"rank{rank}-blocks")
    received = {e["id"]: e["pid"] for e in events if e["ph"] == "f"}
    sent = [e for e in events if e["ph"] == "s"]
    for kind, (colour, width) in MESSAGES.items():
        lines = []
        for e in sent:
            to, down = received[e["id"]], 1 if received[e["id"]] > e["pid"] else -1
            if (ACTION.fullmatch(e["name"])["kind"] == "F") == (kind == "F"):
                lines.append([(e["args"]["sent"], e["pid"] + down * ROW / 2), (e["args"]["arrives"], to - down * ROW / 2)])
        axes.add_collection(LineCollection(lines, colors=colour, linewidths=width, zorder=1)).set_gid(f"messages-{kind}")
        axes.scatter([b[0] for _, b in lines], [b[1] for _, b in lines], s=9, color=colour, linewidths=0, zorder=5)
    axes.set_xlim(0, end or 1)
    axes.set_xlabel("time, in the unit of the costs")
    costs = ", ".join(f"{name} {cost:.6g}" for name, cost in about["costs"].items())
    several = any(len({a.stage for a in actions if a.rank == rank}) > 1 for rank in ranks)
    messages = [Line2D([], [], color=MESSAGES[k][0], linewidth=MESSAGES[k][1], marker="o", markersize=3, label=f"message: {what}")
                for k, what in [("F", "activation"), ("B", "gradient")]] * bool(sent)
    later = [Patch(color=lighter("#000000", 0.75), label="lighter: later stages of a rank")] * several
    framed = [Patch(facecolor="none", edgecolor="black", label="F and B as one block")] * bool(about.get("overlapped"))
    finish(axes, [f"rank {rank}" for rank in ranks], of_kinds(actions) + framed + later + messages,
           f"{about['title']}\nreplay of a plan at costs {costs}: makespan {end:.6g}, "
           f"bubble {100 * about['bubble_fraction']:.3g} % of all ranks' time")
    return shown


def run_timeline(case):
    """The last step of a run's Chrome trace."""
    _, events = events_of(case.record["trace"])
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    spans = [e for e in events if e["ph"] == "X"]
    if not spans:
        return None
    steps = [e for e in spans if names.get((e["pid"], e["tid"])) == "step"]
    last = max(steps, key=lambda e: e["ts"])["name"] if steps else None
    within = [e for e in steps if e["name"] == last] or spans
    start, end = min(e["ts"] for e in within), max(e["ts"] + e["dur"] for e in within)
    boxes = collections.defaultdict(list)
    for e in spans:
        if e["ts"] < end and e["ts"] + e["dur"] > start:
            boxes[e["pid"], names.get((e["pid"], e["tid"]))].append(e)
    rows = [(rank, lane) for rank in sorted({rank for rank, _ in boxes}) for lane in ("action", *LANES) if (rank, lane) in boxes]
    shown, axes = plt.subplots(figsize=(WIDTH, 1.6 + 0.3 * len(rows)))
    scale = 1e-3 if end - start > 5000 else 1
    actions = []
    for place, (rank, lane) in enumerate(rows):
        gid = f"rank{rank}-{lane}"
        if lane == "action":
            of_rank = [Action(e) for e in boxes[rank, lane]]
            draw_actions(axes, place, of_rank, (start, end), scale, start, gid)
            actions += of_rank
        else:
            axes.broken_barh([(scale * (e["ts"] - start), scale * e["dur"]) for e in boxes[rank, lane]],
                             (place - ROW / 2, ROW), facecolors=LANES[lane], linewidth=0).set_gid(gid)
    axes.set_xlim(0, scale * (end - start))
    axes.set_xlabel("milliseconds" if scale != 1 else "microseconds")
    present = {lane for _, lane in rows}
    lanes = [Patch(color=colour, label=lane) for lane, colour in LANES.items() if lane in present]
    crowded = ", shared by more ranks than it has cores" if case.crowded else ""
    finish(axes, [f"rank {rank}  {lane}" for rank, lane in rows], (of_kinds(actions) if actions else []) + lanes,
           f"{case.record['case']}{case.disturbance}\n{last or 'the whole trace'}, wall time on {case.machine}{crowded}")
    return shown
