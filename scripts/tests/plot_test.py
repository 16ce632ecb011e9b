#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""scripts/plot.py: what its SVGs show, measured on their axes and compared with the records, traces and schedules.

    plot_test.py SHARDPROOF SOURCE_FOLDER
"""
import json
import math
import os
import pathlib
import re
import statistics
import subprocess
import unittest
import xml.etree.ElementTree

import binary
from binary import ENVIRONMENT, PASS, SOURCE, USAGE, Cli

PYTHON, PLOT = "/usr/bin/python3", SOURCE / "scripts/plot.py"
SVG = "{http://www.w3.org/2000/svg}"
MISSING = f"{PYTHON} has no matplotlib, which scripts/plot.py needs: scripts/install.sh installs it"
RATES = {"wall": "tokens_per_second", "replay": "tokens_per_second_replay"}
PARTS = ["lower_quartile", "median", "upper_quartile"]


def has_matplotlib(env=None):
    return subprocess.run([PYTHON, "-c", "import matplotlib"], env=env, capture_output=True).returncode == 0


class Drawing:
    """An SVG of matplotlib; places on paper become values by the ticks of the axes that they lie in: by their numbers, and by
    counting them where they are names."""

    def __init__(self, path):
        root = xml.etree.ElementTree.parse(path).getroot()
        self.text = " ".join(t for e in root.iter(f"{SVG}text") for t in e.itertext())
        self.groups, self.axes = {}, {}
        for axes in (e for e in root.iter() if (e.get("id") or "").startswith("axes_")):
            for e in axes.iter():
                if e.get("id"):
                    self.groups[e.get("id")], self.axes[e.get("id")] = e, axes

    def value(self, name, letter, place):
        ticks = []
        for tick in self.axes[name].iter():
            if (tick.get("id") or "").startswith(f"{letter}tick_"):
                label = "".join(next(tick.iter(f"{SVG}text")).itertext()).replace("\u2212", "-")
                number = float(label) if re.fullmatch(r"-?[\d.]+", label) else len(ticks)
                ticks.append((float(next(tick.iter(f"{SVG}use")).get(letter)), number))
        exact = [value for at, value in ticks if abs(at - place) < 1e-3]
        if exact:  # also on a logarithmic axis
            return exact[0]
        (at, low), (end, high) = ticks[0], ticks[-1]
        return low + (high - low) * (place - at) / (end - at) if len(ticks) > 1 else low

    def points(self, name):
        """x and y of its marks."""
        return {self.value(name, "x", float(e.get("x"))): self.value(name, "y", float(e.get("y")))
                for e in self.groups[name].iter(f"{SVG}use")} if name in self.groups else {}

    def paths(self, name):
        """Least and largest x and y of each path."""
        found = []
        for e in self.groups[name].iter(f"{SVG}path"):
            numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", e.get("d"))]
            if len(numbers) >= 4:
                xs, ys = ([self.value(name, "xy"[k], n) for n in numbers[k::2]] for k in (0, 1))
                found.append((min(xs), max(xs), min(ys), max(ys)))
        return found

    def intervals(self, name):
        return {left: (low, high) for left, _, low, high in self.paths(f"{name}-interval")}


class Plots(Cli):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        assert has_matplotlib(), MISSING
        cls.place = binary.tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.place.cleanup)
        cls.runs = pathlib.Path(cls.place.name)
        for out, strategy in [("one", "dp1"), ("two", "dp2"), ("pipe", "pp2 schedule=gpipe microbatches=2"),
                              ("longer", "pp2 schedule=gpipe microbatches=4")]:
            subprocess.run([binary.BINARY, "run", "--workload", "tiny", "--track", "native", "--strategy", strategy,
                            "--steps", "6", "--out", cls.runs / out], check=True, capture_output=True)

    def record(self, name):
        return json.loads((self.runs / name / "records.jsonl").read_text())

    def plot(self, *args, code=PASS, says="", env=None):
        done = subprocess.run([PYTHON, PLOT, *args], cwd=self.folder, capture_output=True, text=True, env=env)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertIn(says, done.stderr)
        return done.stdout

    def draw(self, records, which):
        (self.folder / "made").mkdir(exist_ok=True)
        self.write("made/records.jsonl", "".join(json.dumps(r) + "\n" for r in records))
        self.plot(which, "made", "--format", "svg")
        return Drawing(self.folder / f"made/{which}.svg")

    def assert_close(self, found, expected, most):
        """Within what an SVG's six decimals of a point leave of an axis that is hundreds of points long."""
        self.assertEqual(len(found), len(expected))
        for a, b in zip(found, expected):
            self.assertLess(abs(a - b), 1e-6 * most, f"{found} {expected}")

    def scaled(self, record, factor, **changes):
        figures = {k: v * factor if k.startswith("tokens_per_second") else v for k, v in record["figures"].items()}
        return record | {"figures": figures} | changes

    def test_throughput_and_efficiency(self):
        one, two = self.record("one"), self.record("two")
        repeats = [self.scaled(two, factor) for factor in (1, 1.5, 1.2)]
        drawn = self.draw([one, *repeats], "throughput")
        for kind, name in RATES.items():
            spread = {1: [[one["figures"][f"{name}_{part}"]] for part in PARTS],
                      2: [[r["figures"][f"{name}_{part}"] for r in repeats] for part in PARTS]}
            pooled = {n: (min(low), statistics.median(middle), max(high)) for n, (low, middle, high) in spread.items()}
            most = max(high for _, _, high in pooled.values())
            points, intervals = drawn.points(f"throughput-0-0-{kind}"), drawn.intervals(f"throughput-0-0-{kind}")
            self.assertEqual(sorted(points), [1, 2], "repeats are one point")
            for ranks, (low, middle, high) in pooled.items():
                self.assert_close([*intervals[ranks], points[ranks]], [low, high, middle], most)
            (a, b, c), (low, middle, high) = pooled[1], pooled[2]
            down = math.exp(-math.sqrt(math.log(middle / low)**2 + math.log(c / b)**2))
            up = math.exp(math.sqrt(math.log(high / middle)**2 + math.log(b / a)**2))
            share = middle / 2 / b
            points, intervals = drawn.points(f"efficiency-0-0-{kind}"), drawn.intervals(f"efficiency-0-0-{kind}")
            self.assert_close([*intervals[2], points[2]], [share * down, share * up, share], max(1, share * up))
            self.assert_close([*intervals[1], points[1]], [a / b, c / b, 1], max(1, share * up))
        processor, cores = one["environment"]["processor"], one["environment"]["cores"]
        for words in [f"Throughput, wall and replay: tiny, native, cpu {processor}, {cores} core", "dp, wall", "ideal"]:
            self.assertIn(words, drawn.text)
        self.assertNotIn("hollow", drawn.text)

    def test_the_page_says_the_same(self):
        self.expect(PASS, "report", self.runs / "one", self.runs / "two", "--out", "all")
        drawn = self.draw([self.record("one"), self.record("two")], "throughput")
        page = (self.folder / "all/report.html").read_text()
        for kind in RATES:
            cell = re.search(rf'data-case="2" data-figure="efficiency_{kind}" data-value="([\d.]+)">([\d.]+) \(([\d.]+) to ([\d.]+)\)',
                             page)
            value, _, low, high = map(float, cell.groups())
            name = f"efficiency-0-0-{kind}"
            self.assertAlmostEqual(drawn.points(name)[2], value, delta=1e-5)
            for found, said in zip(drawn.intervals(name)[2], (low, high)):
                self.assertAlmostEqual(found, said, delta=5.1e-4, msg="three decimals")

    def test_crowded_points_of_the_wall_are_hollow(self):
        one, two = (r | {"environment": r["environment"] | {"cores": 1}} for r in map(self.record, ["one", "two"]))
        drawn = self.draw([one, two], "throughput")
        for what in ["throughput", "efficiency"]:
            self.assertEqual(list(drawn.points(f"{what}-0-0-wall")), [1])
            self.assertEqual(list(drawn.points(f"{what}-0-0-wall-crowded")), [2])
            self.assertEqual(sorted(drawn.points(f"{what}-0-0-replay")), [1, 2])
        self.assertIn("hollow: more ranks than cores", drawn.text)
        self.assertIn("1 core ", drawn.text)
        for name, hollow in [("wall-crowded", True), ("replay", False)]:
            mark = next(drawn.groups[f"throughput-0-0-{name}"].iter(f"{SVG}use"))
            self.assertEqual("fill: #ffffff" in mark.get("style"), hollow, mark.get("style"))

    def test_disturbed_runs_are_cases_of_their_own(self):
        one, two = self.record("one"), self.record("two")
        slow = self.scaled(two, 0.5, injections=["slow:rank=1,factor=3"], rerun="slow")
        fast_one = self.scaled(one, 9, injections=["slow:rank=0,factor=0.5"], rerun="fast")
        drawn = self.draw([one, two, slow, fast_one], "throughput")
        medians = sorted(round(drawn.points(f"throughput-0-{k}-wall")[2]) for k in (0, 1))
        median = two["figures"]["tokens_per_second_median"]
        self.assertEqual(medians, [round(median / 2), round(median)])
        self.assertIn("dp | slow:rank=1,factor=3, wall", drawn.text)
        self.assert_close([drawn.points("efficiency-0-0-wall")[1]], [1], 10)  # of the undisturbed one rank

    def test_bubble(self):
        runs = [self.record("pipe"), self.record("longer")]
        again = self.record("pipe")
        again["figures"]["bubble_replay_fraction"] *= 0.5
        drawn = self.draw([*runs, again], "bubble")
        seen = 0
        for kind in ["formula", "replay", "wall"]:
            name = f"bubble_{kind}_fraction"
            both = [r["figures"].get(name) for r in (*runs, again)]
            if None in both:
                continue
            seen += 1
            points = drawn.points(f"bubble-0-{kind}")
            self.assert_close([points[2], points[4]], [50 * (both[0] + both[2]), 100 * both[1]], 100)
            self.assertIn(f"schedule=gpipe, {kind}", drawn.text)
        self.assertGreaterEqual(seen, 2)
        low, high = drawn.intervals("bubble-0-replay")[2]
        fraction = runs[0]["figures"]["bubble_replay_fraction"]
        self.assert_close([low, high], [62.5 * fraction, 87.5 * fraction], 100)
        self.assertIn("Pipeline bubble by formula, replay", drawn.text)
        self.assertIn(runs[0]["environment"]["processor"], drawn.text)

    def test_memory(self):
        record = self.record("pipe")
        drawn = self.draw([record, record], "memory")
        unit, = re.findall(r"([KMG]?i?B), of each category", drawn.text)
        factor = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
        seen = 0
        for what in ["ledgers", "forms"]:
            for category in ["parameter", "gradient", "optimizer_state", "activation", "workspace", "communication"]:
                sizes = [v for k, v in record[what].items() if re.fullmatch(rf"(rank\d+_)?memory_{category}_peak_bytes", k)]
                name = f"{what}-0-{category}"
                if not sizes or max(sizes) == 0:
                    self.assertNotIn(name, drawn.groups)
                    continue
                (left, right, _, _), = drawn.paths(name)
                self.assert_close([right - left], [max(sizes) / factor], 2 * max(record["ledgers"].values()) / factor)
                seen += 1
        self.assertGreaterEqual(seen, 6)
        self.assertNotIn("ledgers-1-parameter", drawn.groups, "two runs of a case are one bar")

    def test_the_timeline_of_a_run(self):
        self.plot("timeline", self.runs / "pipe", "--out", "plots", "--format", "svg")
        drawn = Drawing(self.folder / "plots/timeline.svg")
        events = json.loads((self.runs / "pipe/trace.json").read_text())["traceEvents"]
        lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
        spans = [(e, lanes[e["pid"], e["tid"]]) for e in events if e["ph"] == "X"]
        last = max((e for e, lane in spans if lane == "step"), key=lambda e: e["ts"])["name"]
        steps = [e for e, lane in spans if lane == "step" and e["name"] == last]
        start, end = min(e["ts"] for e in steps), max(e["ts"] + e["dur"] for e in steps)
        scale = 1e-3 if "milliseconds" in drawn.text else 1
        for rank in (0, 1):
            expected = sorted((scale * (e["ts"] - start), scale * (e["ts"] + e["dur"] - start)) for e, lane in spans
                              if (lane, e["pid"]) == ("action", rank) and start < e["ts"] + e["dur"] and e["ts"] < end)
            self.assertEqual(len(expected), 4, "two F and two B")
            found = sorted((left, right) for left, right, _, _ in drawn.paths(f"rank{rank}-action"))
            self.assert_close(sum(found, ()), sum(expected, ()), scale * (end - start))
        self.assertIn("wall time on " + self.record("pipe")["environment"]["processor"], drawn.text)

    def schedule(self, name, *args):
        self.expect(PASS, "schedule", "draw", name, "--microbatches", "8", *args, "--out", f"{name}.json")
        self.plot("timeline", f"{name}.json", "--format", "svg")
        return json.loads((self.folder / f"{name}.json").read_text()), Drawing(self.folder / f"{name}.svg")

    def test_the_timeline_of_every_schedule(self):
        """All idle time is seen: what boxes leave of ranks x makespan is the bubble that `schedule bubble` says."""
        names = re.findall(r"^  (\w+)", self.expect(PASS, "list", "--schedules").stdout, re.M)
        self.assertGreaterEqual(len(names), 10)
        for name in names:
            with self.subTest(name):
                file, drawn = self.schedule(name, "--ranks", "4", "--costs", "1,1.5,0.5,0.25")
                about, events = file["otherData"], file["traceEvents"]
                said = self.expect(PASS, "schedule", "bubble", name, "--ranks", "4", "--microbatches", "8", "--costs",
                                   "1,1.5,0.5,0.25").stdout
                self.assertAlmostEqual(float(re.search(r"bubble fraction: .*? ([\d.e-]+)", said).group(1)),
                                       about["bubble_fraction"], delta=5e-5)
                busy = 0
                for rank in range(4):
                    spans = sorted((e["ts"], e["ts"] + e["dur"]) for e in events
                                   if e["ph"] == "X" and e["pid"] == rank and e["dur"] > 0)
                    found = sorted((left, right) for left, right, _, _ in drawn.paths(f"rank{rank}-action"))
                    self.assert_close(sum(found, ()), sum(spans, ()), about["makespan"])
                    busy += sum(right - left for left, right in found)
                self.assertAlmostEqual(1 - busy / 4 / about["makespan"], about["bubble_fraction"], delta=1e-5)
                lines = [line for kind in "FB" for line in drawn.paths(f"messages-{kind}")]
                self.assertEqual(len(lines), sum(e["ph"] == "s" for e in events))
                self.assertEqual({round(right - left, 3) for left, right, _, _ in lines}, {0.25})
                self.assertIn("replay of a plan at costs F 1, I 1.5, W 0.5, message 0.25: makespan", drawn.text)
                self.assertIn("idle", drawn.text)
                self.assertRegex(drawn.text, rf"{name} \(.*\): 4 ranks, \d stages, 8 microbatches")
                self.assertFalse([group for group in drawn.groups if "blocks" in group])

    def test_blocks_have_frames(self):
        file, drawn = self.schedule("dualpipe", "--ranks", "4", "--overlapped")
        self.assertTrue(file["otherData"]["overlapped"])
        frames = 0
        for rank in range(4):
            own = [e for e in file["traceEvents"] if e["ph"] == "X" and e["pid"] == rank]
            parts = [re.fullmatch(r"\d+(\w)(\d+)", e["name"]).groups() for e in own]
            blocks = sorted((a["ts"], b["ts"] + b["dur"]) for a, b, (f, m), (k, n) in zip(own, own[1:], parts, parts[1:])
                            if (f, k) == ("F", "B") and m != n)
            found = sorted((left, right) for left, right, _, _ in drawn.paths(f"rank{rank}-blocks"))
            self.assert_close(sum(found, ()), sum(blocks, ()), file["otherData"]["makespan"])
            frames += len(blocks)
        self.assertEqual(frames, 14)
        self.assertIn("F and B as one block", drawn.text)

    def test_the_messages_of_a_schedule(self):
        file, drawn = self.schedule("gpipe", "--ranks", "2", "--costs", "1,1,1,0.5")
        sent = {(e["name"], e["pid"]): e["args"] for e in file["traceEvents"] if e["ph"] == "s"}
        self.assertEqual({name for name, _ in sent}, {f"0F{m}" for m in range(8)} | {f"1B{m}" for m in range(8)})
        self.assertEqual(sent["0F2", 0], {"sent": 3, "arrives": 3.5})
        received = {e["id"]: e["ts"] for e in file["traceEvents"] if e["ph"] == "f"}
        self.assertTrue(all(e["args"]["arrives"] <= received[e["id"]] for e in file["traceEvents"] if e["ph"] == "s"))
        forward = sorted((left, right) for left, right, _, _ in drawn.paths("messages-F"))
        self.assert_close(sum(forward, ()), [t for m in range(8) for t in (m + 1, m + 1.5)], file["otherData"]["makespan"])
        self.assertIn("message: activation", drawn.text)

    def test_a_message_of_a_block_is_sent_at_its_end(self):
        file, _ = self.schedule("dualpipe", "--ranks", "4", "--costs", "1,1,1,0.5", "--overlapped")
        spans = [e for e in file["traceEvents"] if e["ph"] == "X"]
        received = {e["id"]: e["ts"] for e in file["traceEvents"] if e["ph"] == "f"}
        blocks = 0
        for message in [e for e in file["traceEvents"] if e["ph"] == "s"]:
            own = [e for e in spans if e["pid"] == message["pid"]]
            at = next(k for k, e in enumerate(own) if e["name"] == message["name"])
            action, after = own[at], own[min(at + 1, len(own) - 1)]
            parts = [re.fullmatch(r"(\d+)(\w)(\d+)", e["name"]).groups() for e in (action, after)]
            is_block = parts[0][1] == "F" and parts[1][1] == "B" and parts[0][2] != parts[1][2]
            blocks += is_block
            last = after if is_block else action
            self.assertEqual(message["args"]["sent"], last["ts"] + last["dur"])
            self.assertLessEqual(message["args"]["arrives"], received[message["id"]])
        self.assertGreater(blocks, 0)

    def test_what_was_not_checked_is_drawn_as_that(self):
        unchecked = self.record("pipe") | {"verdict": "skipped", "judged": "unchecked", "reason": "on request", "compared": 0}
        drawn = self.draw([unchecked], "bubble")
        self.assertIn("pp2 schedule=gpipe | unchecked, replay", drawn.text)
        failed = self.record("pipe") | {"verdict": "fail"}
        self.write("made/records.jsonl", json.dumps(failed) + "\n")
        for name, what in [("bubble", "no bubble"), ("timeline", "no trace"), ("memory", "no count of memory")]:
            self.assertEqual(self.plot(name, "made"), f"{name}: nothing to draw: of the cases that passed, or ran with "
                             f"--no-check, there is {what}" + {"bubble": " (a pipeline of two stages has one)",
                                                               "timeline": " (check records none)"}.get(name, "") + "\n")

    def test_png_and_all_at_once(self):
        shown = self.plot(*(self.runs / name for name in ["one", "two", "pipe"]), "--out", "plots")
        for name in ["throughput", "bubble", "memory", "timeline", "timeline-2", "timeline-3"]:
            self.assertTrue((self.folder / f"plots/{name}.png").read_bytes().startswith(b"\x89PNG"), shown)

    def test_what_is_refused(self):
        self.plot("missing", code=USAGE, says="missing")
        self.plot("timeline", code=USAGE, says="PATH is missing")
        self.plot("bubble", "s.json", code=USAGE, says="s.json: a schedule has a timeline alone")
        self.plot("a/s.json", "b/s.json", code=USAGE, says="two files have one name")
        self.write("t.json", '{"traceEvents":[]}')
        self.plot("t.json", code=USAGE, says="a run's timeline is drawn from its folder")
        self.expect(USAGE, "schedule", "draw", "gpipe", "--ranks", "100", "--microbatches", "200", "--out", "s.json",
                    says="40100 actions and rows are too many for a drawing, more than 20000")
        self.assertEqual(self.files("."), ["t.json"])

    def test_without_matplotlib_both_say_what_installs_it(self):
        self.write("matplotlib.py", "raise ImportError('hidden')")
        env = os.environ | {"PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"}
        self.plot(self.runs / "one", code=ENVIRONMENT, says="has no matplotlib (hidden): scripts/install.sh", env=env)
        done = subprocess.run([PYTHON, __file__, binary.BINARY, SOURCE], env=env, capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(MISSING, done.stderr)


if __name__ == "__main__":
    binary.main()
