#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The reports: report.html, as headless Chromium shows it (where there is none: as html.parser reads it), records.csv,
benchmark.json and trace.json, each read back and compared with the records.

    report_test.py SHARDPROOF SOURCE_FOLDER
"""
import csv
import html.parser
import importlib.util
import io
import json
import math
import os
import pathlib
import re
import shutil
import subprocess
import time
import unittest

import binary
from binary import PASS, SOURCE, USAGE, WRITE_FAILED, Cli

COMPARE = pathlib.Path("/usr/share/benchmark/compare.py")


class Page(html.parser.HTMLParser):
    """The numbers of a page: figures, ledgers and forms by (case, name); verdicts by case; counts by verdict."""

    def __init__(self, text):
        super().__init__()
        self.figures, self.ledgers, self.forms, self.verdicts, self.counts = {}, {}, {}, {}, {}
        self.tags, self.loaded = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        of = dict(attributes)
        self.tags.append(tag)
        self.loaded += [v for k, v in of.items() if k in ("src", "href", "xlink:href", "data", "action")]
        case = int(of["data-case"]) if "data-case" in of else None
        if "data-figure" in of:
            value = math.nan if of["data-value"] == "null" else float(of["data-value"])
            same = self.figures.setdefault((case, of["data-figure"]), value)
            assert same == value or math.isnan(same) and math.isnan(value), "one figure, one value"
        elif "data-ledger" in of:
            self.ledgers[case, of["data-ledger"]] = int(of["data-value"])
        elif "data-form" in of:
            self.forms[case, of["data-form"]] = int(of["data-value"])
        elif "data-verdict" in of:
            self.verdicts[case] = of["data-verdict"]
        elif "data-count" in of:
            self.counts[of["data-count"]] = int(of["data-value"])


BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")


def shown(path, *options):
    """The page as a browser has it after loading; the text of the file where there is no browser."""
    if not BROWSER:
        return path.read_text(encoding="utf-8")
    done = subprocess.run([BROWSER, *options, "--headless", "--no-sandbox", "--disable-gpu", f"--user-data-dir={path.parent}/.profile",
                           "--dump-dom", path.as_uri()], capture_output=True, text=True, timeout=120)
    shutil.rmtree(path.parent / ".profile", ignore_errors=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def of_all_ranks(counts):
    """Of several ranks the largest, under the name without the rank."""
    largest = {}
    for name, value in counts.items():
        rank, _, rest = name.partition("_")
        bare = rest if rank.startswith("rank") and rank[4:].isdigit() else name
        largest[bare] = max(value, largest.get(bare, 0))
    return largest


class Reports(Cli):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.place = binary.tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.place.cleanup)
        cls.runs = pathlib.Path(cls.place.name)
        for out, strategy in [("one", "dp1"), ("two", "dp2"), ("pipe", "pp2 schedule=gpipe microbatches=2")]:
            subprocess.run([binary.BINARY, "run", "--workload", "tiny", "--track", "native", "--strategy", strategy,
                            "--steps", "6", "--out", cls.runs / out], check=True, capture_output=True)

    def together(self):
        self.expect(PASS, "report", *(self.runs / out for out in ["one", "two", "pipe"]), "--out", "all")
        return [json.loads(line) for out in ["one", "two", "pipe"]
                for line in (self.runs / out / "records.jsonl").read_text().splitlines()]

    def test_the_page_has_the_records_numbers(self):
        records = self.together()
        text = shown(self.folder / "all/report.html")
        page = Page(text)
        self.assertEqual(page.counts, {v: 0 for v in page.counts} | {"cases": 3, "pass": 3})
        self.assertEqual(page.verdicts, {1: "pass", 2: "pass", 3: "pass"})
        derived = {key for key in page.figures if key[1].startswith("efficiency_")}
        self.assertEqual({k: v for k, v in page.figures.items() if k not in derived},
                         {(n, name): value for n, r in enumerate(records, 1) for name, value in r["figures"].items()})
        for n, record in enumerate(records, 1):
            for found, counts in [(page.ledgers, record["ledgers"]), (page.forms, record["forms"])]:
                expected = {k: v for k, v in of_all_ranks(counts).items() if k.startswith(("memory_", "traffic_"))}
                self.assertEqual({name: v for (case, name), v in found.items() if case == n}, expected)
            self.assertIn(record["environment"]["commit"], text)
        one, two = (r["figures"]["tokens_per_second_median"] for r in records[:2])
        self.assertAlmostEqual(page.figures[2, "efficiency_wall"], two / 2 / one, places=12)
        self.assertNotIn("script", page.tags)
        self.assertEqual(page.loaded, [], "nothing is loaded")
        for kind in ["Throughput: tiny", "Efficiency: tiny", "Pipeline bubble", "Timeline", "Where the time goes"]:
            self.assertIn(kind, text)
        self.assertEqual(text.count("data-ranks="), 3, "a timeline for each run")

    @unittest.skipUnless(BROWSER, "no browser here: nothing lays out the page")
    def test_wide_tables_scroll_in_their_own_box(self):
        """The page is no wider than its window, a telephone's too, and hides no part of a table."""
        record = json.loads((self.runs / "pipe/records.jsonl").read_text())
        record["environment"]["flags"] = "-march=native," * 40
        (self.folder / "wide").mkdir()
        self.write("wide/records.jsonl", json.dumps(record) + "\n")
        self.expect(PASS, "report", "wide")
        for width in (360, 1200):
            self.write("frame.html", f"""<iframe src="wide/report.html" style="width:{width}px;height:800px"></iframe><script>
                onload = () => {{
                  const page = frames[0].document;
                  page.querySelectorAll("details").forEach(d => d.open = true);
                  const boxed = [...page.querySelectorAll("table, svg.timeline")].every(t => {{
                    const box = t.closest(".wide");
                    return box && getComputedStyle(box).overflowX == "auto" && box.scrollWidth >= t.offsetWidth;
                  }});
                  document.body.textContent = JSON.stringify({{page: page.documentElement.scrollWidth, boxed: boxed,
                    window: page.documentElement.clientWidth, tables: page.querySelectorAll("table").length}});
                }};</script>""")
            found = json.loads(re.search(r"\{.*\}", shown(self.folder / "frame.html", "--allow-file-access-from-files")).group())
            self.assertLessEqual(found["page"], found["window"], found)
            self.assertGreater(found["tables"], 6)
            self.assertTrue(found["boxed"], "every table is in a box that scrolls")

    def test_a_run_writes_the_same_as_report(self):
        names = ["report.html", "records.csv", "benchmark.json"]
        (self.folder / "copy").mkdir()
        for name in os.listdir(self.runs / "pipe"):
            shutil.copy(self.runs / "pipe" / name, self.folder / "copy")
        before = {name: (self.folder / "copy" / name).read_bytes() for name in names}
        for name in names:
            (self.folder / "copy" / name).unlink()
        self.expect(PASS, "report", "copy")
        self.assertEqual(before, {name: (self.folder / "copy" / name).read_bytes() for name in names})

    def test_csv(self):
        records = self.together()
        rows = list(csv.DictReader(io.StringIO((self.folder / "all/records.csv").read_text(), newline="")))
        self.assertEqual(len(rows), len(records))
        for row, record in zip(rows, records):
            self.assertNotIn(None, row, "no cell without a column")
            self.assertEqual((row["case"], row["rerun"], int(row["ranks"])), (record["case"], record["rerun"], record["ranks"]))
            figures = record["figures"]
            self.assertEqual({k: float(row[k]) for k in figures}, figures)
            for prefix, counts in [("", record["ledgers"]), ("form_", record["forms"])]:
                self.assertEqual({k: int(row[prefix + k]) for k in of_all_ranks(counts)}, of_all_ranks(counts))
        self.assertEqual(rows[0]["bubble_wall_fraction"], "", "not measured is empty")

    def test_benchmark_json(self):
        records = self.together()
        whole = json.loads((self.folder / "all/benchmark.json").read_text())
        self.assertEqual(whole["context"]["num_cpus"], records[0]["environment"]["cores"])
        self.assertEqual(len(whole["benchmarks"]), len(records))
        for found, record in zip(whole["benchmarks"], records):
            self.assertEqual((found["name"], found["time_unit"], found["run_type"], found["iterations"]),
                             (record["case"], "ns", "iteration", 1))
            self.assertEqual(found["real_time"], 1e9 * record["figures"]["step_seconds_median"])
            self.assertEqual(found["cpu_time"], 0)
            self.assertEqual(found["tokens_per_second_median"], record["figures"]["tokens_per_second_median"])

    @unittest.skipUnless(COMPARE.exists() and importlib.util.find_spec("scipy"), "Debian's libbenchmark-tools and scipy")
    def test_compare_reads_it(self):
        self.together()
        file = self.folder / "all/benchmark.json"
        slower = json.loads(file.read_text())
        for benchmark in slower["benchmarks"]:
            benchmark["real_time"] *= 2
        self.write("slower.json", json.dumps(slower))
        done = subprocess.run(["/usr/bin/python3", COMPARE, "benchmarks", file, "slower.json"], cwd=self.folder,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("+1.0000"), 3 + 1, "each case, and their mean: " + done.stdout)

    def test_the_trace_is_one(self):
        """What viewers of Chrome traces need: complete events with finite times, every lane named, none overlapping."""
        trace = json.loads((self.runs / "pipe/trace.json").read_text())
        lanes = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"]
                 if e["ph"] == "M" and e["name"] == "thread_name"}
        self.assertEqual({rank for rank, _ in lanes}, {0, 1})
        ends = {}
        spans = [e for e in trace["traceEvents"] if e["ph"] == "X"]
        for event in sorted(spans, key=lambda e: e["ts"]):
            self.assertTrue(event["name"] and event["dur"] > 0 and event["ts"] >= 0, event)
            lane = event["pid"], event["tid"]
            self.assertIn(lane, lanes)
            if lanes[lane] in ("step", "action"):
                # Times have three decimals of a microsecond: two roundings of half of the last one meet.
                self.assertGreaterEqual(event["ts"], ends.get(lane, 0) - 0.0011)
                ends[lane] = event["ts"] + event["dur"]
        self.assertEqual({lanes[lane] for lane in ends}, {"step", "action"})

    def test_what_is_refused(self):
        self.expect(USAGE, "report", says="nothing to report on")
        self.expect(USAGE, "report", "a", "b", says="--out says where")
        self.write("a", "x")
        self.expect(USAGE, "report", "a", "b", "--out", "c", says=["a: there is no such folder", "b: there is no such folder"])
        self.assertFalse((self.folder / "c").exists())
        (self.folder / "d").mkdir()
        self.expect(WRITE_FAILED, "report", self.runs / "one", "--out", "a/x", says="a/x")
        record = (self.runs / "one/records.jsonl").read_text()
        self.write("d/records.jsonl", record[:100])
        self.expect(USAGE, "report", "d", says="it was cut off")
        self.assertEqual(self.files("d"), ["records.jsonl"])

    def test_a_full_disk(self):
        """Files may not grow beyond what the records need: the reports do not fit, the records stay whole."""
        limit = 20000
        code = f"ulimit -f {limit // 1024}; exec {binary.BINARY} run --workload tiny --track native --steps 6 --no-check --out out"
        done = subprocess.run(["bash", "-c", code], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, WRITE_FAILED, done.stdout + done.stderr)
        self.assertIn("File too large", done.stderr)
        self.assertEqual(len(self.records("out")), 1)
        self.assertFalse([name for name in self.files("out") if "partial" in name])

    def test_no_locale_changes_a_number(self):
        names = subprocess.run(["locale", "-a"], capture_output=True, text=True).stdout.split()
        commas = [n for n in names if n.lower().startswith(("de_", "fr_", "nl_"))] + ["de_DE.UTF-8"]
        self.expect(PASS, "report", self.runs / "two", "--out", "here")
        self.expect(PASS, "report", self.runs / "two", "--out", "there", env=os.environ | {"LC_ALL": commas[0]})
        for name in ["report.html", "records.csv", "benchmark.json"]:
            self.assertEqual((self.folder / "here" / name).read_bytes(), (self.folder / "there" / name).read_bytes())

    def test_two_thousand_cases(self):
        """How long it takes is printed, not judged: clocks of loaded machines say little."""
        record = json.loads((self.runs / "two/records.jsonl").read_text())
        lines = []
        for n in range(2000):
            record["case"] = f"tiny seed={n} steps=6 | dp2 | 2 ranks | native | cpu | threads"
            lines.append(json.dumps(record, separators=(",", ":")) + "\n")
        (self.folder / "many").mkdir()
        self.write("many/records.jsonl", "".join(lines))
        start = time.monotonic()
        self.expect(PASS, "report", "many")
        print(f"a report of 2000 cases: {time.monotonic() - start:.2f} s", flush=True)
        self.assertEqual(Page((self.folder / "many/report.html").read_text()).counts["pass"], 2000)


if __name__ == "__main__":
    binary.main()
