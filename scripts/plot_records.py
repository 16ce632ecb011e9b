# SPDX-License-Identifier: Apache-2.0
"""Imported by plot.py: the records of runs, and what is read out of them."""
import collections
import json
import math
import re

CATEGORIES = ["parameter", "master_parameter", "gradient", "optimizer_state", "activation", "workspace", "communication"]


def read(folder):
    """The records that passed, and those that were not to be judged; raises ValueError naming what is wrong."""
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
    return [r for r in records if r["verdict"] == "pass" or is_unchecked(r)]


def is_unchecked(record):
    """By --no-check: what was measured is there, but nobody says that it is right."""
    return (record["verdict"], record["judged"]) == ("skipped", "unchecked")


def group(things, key):
    groups = collections.defaultdict(list)
    for thing in things:
        groups[json.dumps(key(thing))].append(thing)
    return list(groups.values())


def places(record):
    """What must be equal for speeds to be compared."""
    return [record["workload"], record["workload_hash"], record["track"], record["device"], record.get("fabric"),
            record["transport"], record["environment"]]


class Case:
    """A case with all its runs: those that one line made, as --repeat does."""

    def __init__(self, runs):
        self.runs, self.record = runs, runs[0]
        self.ranks, self.places = self.record["ranks"], places(self.record)
        disturbances = [f"delays {self.record['delays']}"] * (self.record["delays"] != 0) + self.record["injections"]
        disturbances += ["unchecked"] * is_unchecked(self.record)
        self.disturbance = "".join(f" | {d}" for d in disturbances)
        environment = self.record["environment"]
        self.crowded = self.record["device"] == "cpu" and self.ranks > environment["cores"]
        self.machine = f"{environment['processor']}, {environment['cores']} core{'s' * (environment['cores'] != 1)}"

    def figures(self, name):
        """Of each run; [] where some run has none."""
        values = [run["figures"].get(name) for run in self.runs]
        return values if all(v is not None and math.isfinite(v) for v in values) else []

    def spread(self, name):
        """Lower quartile, median, upper quartile of a figure that has all three: of several runs the middle one's median
        and the outermost quartiles, as in report_data.hpp. None where not measured."""
        lower, medians, upper = (self.figures(f"{name}_{part}") for part in ("lower_quartile", "median", "upper_quartile"))
        return [min(lower), quartiles(medians)[1], max(upper)] if lower and medians and upper else None

    def over_runs(self, name):
        """The same of a figure that is one number a run, over the runs."""
        values = self.figures(name)
        return quartiles(values) if values else None


def cases(records):
    return [Case(runs) for runs in group(records, lambda r: [*places(r), r["case"], r["rerun"]])]


def quartiles(values):
    """Between the nearest two where they lie between."""
    ordered = sorted(values)

    def at(part):
        place = part * (len(ordered) - 1)
        below = math.floor(place)
        above = min(below + 1, len(ordered) - 1)
        return ordered[below] + (place - below) * (ordered[above] - ordered[below])
    return [at(0.25), at(0.5), at(0.75)]


def ratio(a, b):
    """Quartiles of a / b for independent a and b, as in report_data.cpp: in logarithms the distances from median to
    quartile add in squares, each side by itself."""
    up = math.hypot(math.log(a[2] / a[1]), math.log(b[1] / b[0]))
    down = math.hypot(math.log(a[1] / a[0]), math.log(b[2] / b[1]))
    median = a[1] / b[1]
    return [median * math.exp(-down), median, median * math.exp(up)]


def efficiency(case, one, name):
    """Tokens/s per rank over those of one rank; of that one rank itself with its own spread alone."""
    ideal = one.spread(name)
    return ratio(case.spread(name), [case.ranks * (ideal[1] if case is one else v) for v in ideal])


def family(strategy):
    """The strategy without its sizes: "dp2 pp1 schedule=gpipe" is "dp schedule=gpipe"."""
    words = [w if "=" in w else re.sub(r"\d+$", "", w) for w in strategy.split() if "=" in w or not w.endswith("1")
             or w[-2].isdigit()]
    return " ".join(words)


def device(case):
    """With the fabric that its replays are over."""
    fabric = case.record.get("fabric")
    return case.record["device"] + (f"; replay over {fabric['name']}" if fabric else "")


def microbatches(record):
    found = re.search(r"\bmicrobatches=(\d+)", record["strategy"])
    return int(found.group(1)) if found else 1


def largest(counts, category):
    """Of the ranks; none where nothing is counted under that name."""
    name = re.compile(rf"(?:rank\d+_)?memory_{category}_peak_bytes")
    return max((v for k, v in counts.items() if name.fullmatch(k)), default=None)
