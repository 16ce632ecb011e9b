# SPDX-License-Identifier: Apache-2.0
"""The shardproof binary on many ranks: suites and cases, injections, layouts, schedules, and what it says of mistakes."""
import json
import os
import re
import shlex
import signal
import subprocess
import time
import xml.etree.ElementTree

import jsonschema

import binary
from binary import INCONCLUSIVE, INTERRUPTED, OUT_OF_MEMORY, PASS, SOURCE, USAGE, Cli

FAILED = 1
CASE = "tiny layers=1 | {} | {} ranks | exact | cpu | threads"


class Suites(Cli):
    def suite(self, *strategies, name="s.json", **more):
        entry = {"name": "n", "why": "w", "workload": "tiny", "set": {"layers": 1}, "strategies": list(strategies),
                 "tracks": ["exact"], "steps": 1, "expect": {"pass": len(strategies)}} | more
        return self.write(name, json.dumps({"why": "w", "cases": [entry]}))

    def verdicts(self, out):
        return {r["strategy"]: r["verdict"] for r in self.records(out)}

    def test_a_listed_line_is_a_case_and_a_filter(self):
        lines = self.expect(PASS, "check", "--suite", self.suite("dp2", "tp2"), "--list").stdout.splitlines()
        self.assertEqual(lines, [CASE.format(s, 2).replace("layers=1", "layers=1 steps=1") + "  # n" for s in ("dp2", "tp2")])
        self.expect(PASS, "check", lines[0], "--out", "one")
        self.expect(PASS, "check", "--suite", "s.json", "--filter", lines[1], "--out", "two")
        self.assertEqual((self.verdicts("one"), self.verdicts("two")), ({"dp2": "pass"}, {"tp2": "pass"}))

    def test_a_case_without_the_injected_call_is_skipped(self):
        fault = ["--inject", "skip:purpose=gradient"]
        suite = self.suite("dp2", "tp2", "dp1")
        self.expect(FAILED, "check", "--suite", suite, *fault, "--out", "some")
        self.assertEqual(self.verdicts("some"), {"dp2": "fail", "tp2": "skipped", "dp1": "skipped"})
        late = ["--inject", "delay:axis=dp,rank=1,ms=0"]  # changes nothing, and dp1 has no rank 1
        self.expect(PASS, "check", "--suite", suite, *late, "--out", "late")
        self.assertEqual(self.verdicts("late"), {"dp2": "pass", "tp2": "skipped", "dp1": "skipped"})
        says = "fail: 2 cases skipped: --inject skip:purpose=gradient: no call matched"
        self.expect(USAGE, "check", "--suite", self.suite("tp2", "pp2"), *fault, "--out", "none", says=says)
        self.expect(USAGE, "check", CASE.format("tp2", 2), *fault, "--out", "alone", says="no call matched")
        self.assertEqual(self.verdicts("alone"), {"tp2": "error"})
        self.assertIn("of several, the first of 130 10 9 8 6 5 4 2 7 1 3", self.expect(PASS, "--help").stdout)

    def test_a_run_that_was_stopped_goes_on(self):
        run = ["run", "--workload", "tiny", "--steps", "2", "--track", "exact", "--strategy", "dp*", "--strategy", "tp*",
               "--devices", "1,2"]
        stopped = self.expect(INCONCLUSIVE, *run, "--time-budget", "0.001s", "--out", "r")
        self.assertIn("2 of 3 cases did not run\nto go on: ", stopped.stderr)
        first = self.records("r")
        line = shlex.split(stopped.stderr.split("to go on: ")[1].splitlines()[0])
        self.assertEqual(line[-3:], ["--out", "r", "--resume"])
        done = self.expect(PASS, *run, "--out", "r", "--resume")
        self.assertEqual(self.records("r")[:1], first, "it did not run again")
        self.assertEqual([r["strategy"] for r in self.records("r")], ["dp1", "dp2", "tp2"])
        for words in ["[2/3]", "[3/3]", "dp1  "]:
            self.assertIn(words, done.stdout)
        self.assertNotIn("[1/3]", done.stdout)
        self.expect(PASS, "validate", "r")
        self.expect(PASS, *run, "--out", "r", "--resume")
        self.expect(USAGE, *run, "--no-check", "--out", "r", "--resume", says="records.jsonl:1 is of another run: ")
        self.expect(USAGE, *run, "--resume", says="--resume needs --out")
        self.expect(USAGE, *run, "--out", "r", "--resume", "--overwrite", says="exclude each other")
        self.expect(USAGE, "check", "--random", "--out", "r", "--resume", says="nothing to --resume")

    def test_a_check_that_was_interrupted_goes_on(self):
        check = ["check", "--suite", "one_device", "--filter", "tiny*", "--track", "exact", "--threads", "1", "--out", "c"]
        whole = self.expect(PASS, *check[:-1], "whole").stdout
        with subprocess.Popen([binary.BINARY, *check], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True) as process:
            while process.poll() is None and len(self.lines("c")) < 2:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            stderr = process.communicate()[1]
        self.assertEqual(process.returncode, INTERRUPTED, stderr)
        there = self.lines("c")
        line = shlex.split(stderr.split("to go on: ")[1].splitlines()[0])
        again = subprocess.run(line, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(again.returncode, PASS, again.stderr)
        self.assertEqual(self.lines("c")[:len(there)], there)
        tally = [[l for l in text.splitlines() if not l.startswith(("seconds", "results"))] for text in (whole, again.stdout)]
        self.assertEqual(*tally)
        self.assertEqual(sorted(r["case"] for r in self.records("c")), sorted(r["case"] for r in self.records("whole")))

    def lines(self, out):
        path = self.folder / out / "records.jsonl"
        return path.read_text().splitlines() if path.exists() else []

    def test_ranks_of_injections_exist(self):
        fault = ["--inject", "skip:rank=1"]
        for command in [["run", "--workload", "tiny"], ["check", CASE.format("dp1", 1).replace("1 ranks", "1 rank")]]:
            self.expect(USAGE, *command, *fault, "--out", "out", says='rank "1": there is one rank, 0')
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_injections_are_written_as_they_are_recorded(self):
        done = self.expect(FAILED, "check", CASE.format("dp2", 2), "--inject", "scale:purpose=gradient", "--out", "out")
        self.assertIn("--inject scale:purpose=gradient,factor=2", done.stderr)
        self.assertEqual(self.records("out")[0]["injections"], ["scale:purpose=gradient,factor=2"])

    def test_a_smaller_failure_names_its_origin_and_fails_alike(self):
        suite = self.suite("dp2", "dp3", "dp4", "dp2 tp2", expect={"pass": 4})
        done = self.expect(FAILED, "check", "--suite", suite, "--inject", "skip:purpose=gradient,rank=1", "--shrink",
                           "--threads", "1", "--out", "out")
        smallest = re.findall(r"^failure (\d) of 4, (.*): the smallest of \d+ tried that fails alike: ", done.stderr, re.M)
        self.assertEqual([k for k, _ in smallest], ["1", "2", "3"])
        self.assertEqual([case for _, case in smallest], [r["case"] for r in self.records("out")][:3])

    def test_a_smaller_failure_fails_alike(self):
        # Smaller ones of this differ in copies alone, where the oracle's gradient is 0.
        case = "tiny hidden=48 layers=4 | dp2 pp2 tp2 schedule=gpipe microbatches=4 | 8 ranks | exact | cpu | threads"
        done = self.expect(FAILED, "check", case, "--inject", "skip:purpose=gradient", "--shrink", "--out", "out")
        first, smallest = (re.search(start + r".*: step \d: gradient of .*", done.stderr)[0] for start in ("fail ", "failure "))
        self.assertNotIn("the copy on", first)
        self.assertNotIn("the copy on", smallest)

    def test_a_wrong_copy_names_both_ranks(self):
        # Rank 1 alone takes other parameters: its own gradient is right on rank 0, which is judged first.
        done = self.expect(FAILED, "check", CASE.format("dp2", 2), "--inject", "skip:purpose=gradient,rank=1", "--out", "out")
        self.assertRegex(done.stderr, r"the copy on rank 1 is \S+, that of rank 0, its primary holder, \S+")

    def test_files_are_found_from_the_suites_folder_and_rerun_from_anywhere(self):
        (self.folder / "suites").mkdir()
        self.write("suites/my.json", '{"layers": 1, "hidden": 8, "heads": 2}')
        self.suite("dp2", name="suites/s.json", workload="my.json", set={})
        self.expect(PASS, "validate", "suites/s.json")
        self.expect(PASS, "check", "--suite", "suites/s.json", "--out", "out")
        again = subprocess.run(self.records("out")[0]["rerun"], shell=True, cwd=self.folder / "suites", capture_output=True, text=True)
        self.assertEqual(again.returncode, PASS, again.stderr)

    def test_the_example_is_a_suite(self):
        text = (SOURCE / "scripts/examples/suite.json").read_text()
        jsonschema.Draft202012Validator(json.loads((SOURCE / "suites/suite.schema.json").read_text())).validate(json.loads(text))
        self.write("s.json", text)
        self.assertIn("a suite of 2 entries, 5 cases", self.expect(PASS, "validate", "s.json").stdout)

    def test_errors_have_their_place(self):
        self.write("s.json", '{"why": "w",\n "cases": [\n  {"name": "n", "why": "w", "workload": "tiny"},\n  {"nam": 1}]}')
        done = self.expect(USAGE, "validate", "s.json", says=[
            's.json: line 3, column 3: entry 1 (n): "expect" is missing: it makes 3 cases, as {"pass": 3}',
            's.json: line 4, column 3: entry 2: unknown key "nam"'])
        self.assertGreater(len(done.stderr.splitlines()), 3, "all at once")

    def test_what_is_neither_a_workload_nor_a_suite(self):
        done = self.expect(USAGE, "validate", SOURCE / "suites/suite.schema.json", says="neither a workload (list --keys) nor a suite")
        self.assertEqual(len(done.stderr.splitlines()), 1)

    def test_what_to_check_is_said_once(self):
        one = CASE.format("dp2", 2)
        self.expect(USAGE, "check", one, one, says="takes one CASE: quote it")
        self.expect(USAGE, "check", one, "--suite", "one_device", says="--suite and a case exclude each other")
        self.expect(USAGE, "check", "--random", "--suite", "one_device", says="--suite and --random exclude each other")
        self.expect(USAGE, "check", says="one of --suite, --random and a case must be given")
        self.expect(USAGE, "check", "--suite", self.suite("dp2"), "--seed", "3", says="--seed has no effect")
        self.assertIn("poisoned", self.expect(PASS, "check", "--help").stdout)

    def test_a_refused_case_is_not_rerun(self):
        self.assertNotIn("rerun", self.expect(USAGE, "check", CASE.format("schedule=gpipe dp2", 2)).stderr)

    def test_an_interrupted_check_says_what_it_knows(self):
        command = [binary.BINARY, "check", "--suite", "one_device", "--threads", "1", "--out", "out"]
        process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        records = self.folder / "out/records.jsonl"
        while process.poll() is None and not (records.is_file() and records.read_bytes().count(b"\n")):
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        try:
            said, errors = process.communicate(timeout=120)
        finally:
            process.kill()
        self.assertEqual(process.returncode, INTERRUPTED, errors)
        self.assertRegex(said, rf"\npass .* {len(self.records('out'))}\n")
        self.assertIn("results  out\n", said)


class Runs(Cli):
    def test_more_ranks_than_threads(self):
        done = self.run_tiny("--strategy", "dp65", code=USAGE, says=["at most 64", "mpirun -n 65"])
        self.assertNotIn("start more", done.stderr)

    def test_of_several_cases_those_without_the_injected_call_are_skipped(self):
        fault = ["--inject", "skip:purpose=gradient", "--track", "exact", "--strategy", "tp2"]
        self.run_tiny(*fault, "--strategy", "dp2", "--strategy", "dp1", "--out", "some", code=FAILED)
        self.assertEqual([r["verdict"] for r in self.records("some")], ["skipped", "fail", "skipped"])
        self.run_tiny(*fault, "--strategy", "pp2", "--out", "none", code=USAGE, says="no case has run")

    def test_the_twin_explains_itself(self):
        twin = ["--strategy", "dp2", "--set", "batch=4", "--no-check", "--steps", "2", "--twin"]
        few = self.run_tiny(*twin, "2", "--out", "few").stdout
        self.assertRegex(few, r"\(median of 2 rounds; [\d.]+ to [\d.]+ are all, too few for an interval\)")
        self.assertRegex(self.run_tiny(*twin, "6", "--out", "six").stdout, r"median of 6 rounds; .* holds the true one at 95 %")
        self.run_tiny("--strategy", "dp2", "--twin", "2", code=USAGE, says="--set batch=6 has one")

    def test_what_a_replay_is_over_is_said_wherever_it_is_shown(self):
        self.write("f.json", '{"name": "slow, 1 s", "latency_seconds": 1, "bytes_per_second": 1e9}')
        case = ["--strategy", "pp2 schedule=gpipe microbatches=2", "--steps", "3"]
        said = self.run_tiny(*case, "--fabric", "f.json", "--out", "slow").stdout
        over = "over slow, 1 s (1e+06 us, 1 GB/s)"
        self.assertRegex(said, rf"replay .* with (processor|wall) time {re.escape(over)}; ")
        self.assertIn(f"replay {over} ", next(line for line in said.splitlines() if line.startswith("bubble ")))
        self.assertIn(over, (self.folder / "slow/report.html").read_text())
        (record,) = self.records("slow")
        self.assertEqual(record["fabric"], {"name": "slow, 1 s", "latency_seconds": 1, "bytes_per_second": 1e9})
        # The last stage takes two messages, and then the first one another, each of a second.
        self.assertGreater(record["figures"]["pipeline_replay_seconds"], 3)
        self.expect(PASS, *shlex.split(record["rerun"])[1:], "--out", "again")
        self.assertEqual(self.records("again")[0]["fabric"], record["fabric"])
        plain = self.run_tiny(*case, "--out", "plain").stdout
        self.assertNotIn("over slow", plain)
        self.assertNotIn("fabric", self.records("plain")[0])
        self.expect(PASS, "validate", "slow", "plain")
        both = self.expect(PASS, "report", "slow", "plain", "--out", "both").stdout
        self.assertIn(f"(replay {over})", both)

    def test_ranks_that_may_use_one_processor_are_replayed_in_its_time(self):
        def on_one():
            os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

        said = self.run_tiny("--strategy", "pp2 schedule=gpipe microbatches=2", "--out", "one", preexec_fn=on_one).stdout
        self.assertIn("with processor time", said)
        figures = self.records("one")[0]["figures"]
        self.assertEqual(figures["replay_processor_time"], 1)
        self.assertNotIn("bubble_wall_fraction", figures)

    def test_wrong_fabrics_are_refused_before_anything_runs(self):
        self.write("bad.json", '{"name": 3, "latency_seconds": -1, "bytes": 1}')
        self.refuse("--fabric", "bad.json", says=['bad.json: "name" must be', '"latency_seconds" is -1: 0 to 1 is legal',
                                                  '"bytes_per_second" is missing', 'unknown key "bytes"'])
        self.refuse("--fabric", "none.json", says="cannot read 'none.json'")

    def test_a_slow_rank_changes_time_alone(self):
        case = ["--strategy", "pp2 schedule=gpipe microbatches=2", "--track", "exact"]
        self.run_tiny(*case, "--out", "plain")
        self.run_tiny(*case, "--inject", "slow:rank=1,factor=3", "--out", "slow")
        (plain,), (slow,) = self.records("plain"), self.records("slow")
        self.assertEqual(slow["digest"], plain["digest"])
        self.assertEqual(slow["injections"], ["slow:rank=1,factor=3"])
        self.assertIn("--inject slow:rank=1,factor=3", slow["rerun"])
        self.run_tiny(*case, "--inject", "slow:rank=2", code=USAGE, says='rank "2": 0 to 1')

    def test_a_signal_reaches_a_rank_that_spins(self):
        process = self.start_long_run("out", "--strategy", "dp2", "--timeout", "1e5", "--inject", "slow:rank=1,factor=1000")
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, errors)

    def test_what_dp4_has_no_room_for_fits_with_pp4_and_tp4(self):
        model = ["--set", "hidden=192", "--set", "layers=4"]
        fit = [*model, "--device-memory", "6M"]
        for strategy in ["pp4", "tp4"]:
            self.run_tiny(*fit, "--strategy", strategy, "--out", strategy)
            self.assertEqual(self.records(strategy)[0]["verdict"], "pass")
            dry = self.run_tiny(*fit, "--strategy", strategy, "--dry-run").stdout
            self.assertRegex(dry, r"fit in 6.00 MiB each +all of 4 ranks")
        self.refuse_memory(*fit, says=["parameters 1.96 MiB", "optimizer state 3.92 MiB", "on rank 0, more than --device-memory 6.00 MiB",
                                       "of 4 ranks these do not fit: 0 to 3"])
        dry = self.run_tiny(*fit, "--strategy", "dp4", "--dry-run").stdout
        self.assertRegex(dry, r"fit in 6.00 MiB each +of 4 ranks these do not: 0 to 3\n")
        # By its forms it fits; what is really allocated does not.
        free = self.run_tiny(*model, "--strategy", "dp4", "--no-check", "--out", "free")
        self.assertIn("total peak", free.stdout)
        ledgers = self.records("free")[0]["ledgers"]
        peak = max(count for name, count in ledgers.items() if name.endswith("memory_total_peak_bytes"))
        # The other ranks' copies, which rank 0 gathers to judge them, have no part in it.
        self.run_tiny(*model, "--strategy", "dp4", "--out", "enough", "--device-memory", str(peak))
        less = [*model, "--strategy", "dp4", "--no-check", "--out", "full", "--device-memory", str(peak - 1)]
        self.run_tiny(*less, code=OUT_OF_MEMORY)
        categories = "parameter|gradient|optimizer_state|activation|workspace|communication"
        self.assertRegex(self.records("full")[0]["reason"],
                         rf"^rank \d: ({categories}) '.+' asks for \d+ bytes with \d+ in use; the device has {peak - 1}$")

    def refuse_memory(self, *args, says):
        self.run_tiny(*args, "--strategy", "dp4", "--out", "refused", code=OUT_OF_MEMORY, says=says)
        self.assertFalse((self.folder / "refused").exists())

    def test_a_failure_is_said_once(self):
        done = self.run_tiny("--track", "exact", "--strategy", "dp2", "--inject", "scale:purpose=gradient", "--out", "out", code=FAILED)
        reason = self.records("out")[0]["reason"]
        self.assertEqual((done.stdout + done.stderr).count(reason), 1)
        self.assertIn(reason, done.stderr)
        self.assertRegex(done.stdout, r"verdict +fail \(judged: full; \d+ elements compared\)\n")


class Plans(Cli):
    def test_faults_are_listed_with_their_fields(self):
        text = self.expect(PASS, "list", "--faults").stdout
        for words in ["scale +at,factor=2 ", "corrupt +at,element=0 ", "delay +ms=1 ", "wrong_group ", "purpose +a name ",
                      "call +1 ", r"factor .*\(scale, slow\)", "slow +factor=2 ", r"call .*\(not slow\)", "as scale:axis=dp,kind=all_reduce,rank=1,call=2"]:
            self.assertRegex(text, words)
        for command in ["run", "check"]:
            self.assertIn("list --faults", " ".join(self.expect(PASS, command, "--help").stdout.split()))

    def test_properties_are_counted_and_one_is_told(self):
        lines = self.expect(PASS, "list", "--properties").stdout.splitlines()
        self.assertLess(max(map(len, lines)), 250)
        row = next(line for line in lines if " cases in " in line)
        entries = self.expect(PASS, "list", "--property", row.split()[0]).stdout.splitlines()[1:]
        self.assertEqual(len(entries), int(row.rsplit(" in ", 1)[1].split(";")[0]))
        self.assertRegex(entries[0], r"^  \w+/\S+")
        self.expect(USAGE, "list", "--property", "Z99", says='unknown property "Z99"')

    def test_why_a_strategy_is_refused(self):
        why = ["layout", "--workload", "tiny", "--why"]
        text = self.expect(PASS, *why, "dp2 tp2").stdout
        self.assertRegex(text, r"(?m)^dp2 +legal$")
        self.assertRegex(text, r"(?m)^microbatches=1 +legal, the default$")
        self.assertNotIn("nearest", text)
        done = self.shardproof(*why, "dp2 schedule=gpipe layers=1,1", "--ranks", "4")
        self.assertEqual(done.returncode, USAGE)
        for row in [r"ranks 4 +refused: dp2 is 2 ranks", "schedule=gpipe +refused: schedule=gpipe has no effect with pp1",
                    "layers=1,1 +refused: ", "dp2 +legal", r"nearest legal strategy +dp4$"]:
            self.assertRegex(done.stdout, "(?m)^" + row)

    def test_a_layout_explains_itself_and_parses_back(self):
        text = self.expect(PASS, "layout", "pp2 tp2 dp3 order=tp,pp,dp", "--workload", "tiny").stdout
        self.assertIn("# rank = 3 x pipeline rank + 1 x data rank + 6 x tensor rank", text)
        self.write("l.txt", text)
        self.expect(PASS, "layout", "pp2 tp2", "--workload", "tiny", "--check", "l.txt")

    def test_layouts_that_differ(self):
        text = self.write("l.txt", self.expect(PASS, "layout", "pp2 tp2", "--workload", "tiny").stdout)
        done = self.expect_difference("pp2")
        self.assertRegex(done, r"l.txt: \d+ of \d+ lines differ; the first:\n"
                               r"  the file:      query_heads \S+ \S+\n  the strategy:  query_heads \S+\n$")
        lines = (self.folder / text).read_text().splitlines(keepends=True)
        self.write("l.txt", "".join(lines[:-1]))
        self.assertIn("1 of ", self.expect_difference("pp2 tp2"))
        self.assertIn("  the file:      final_norm.bias is missing\n", self.expect_difference("pp2 tp2"))
        self.write("l.txt", "".join(lines[:-2] + lines[-1:] + lines[-2:-1]))
        self.assertIn("stand in another order", self.expect_difference("pp2 tp2"))

    def test_every_error_of_a_layout_is_reported(self):
        text = self.expect(PASS, "layout", "pp2 tp2", "--workload", "tiny").stdout

        def refusal(*changes):
            changed = text
            for old, new in changes:
                self.assertRegex(changed, old)
                changed = re.sub(old, new, changed, count=1)
            self.write("l.txt", changed)
            said = self.expect(USAGE, "layout", "pp2 tp2", "--workload", "tiny", "--check", "l.txt").stderr
            return re.findall(r"line \d+, column \d+: (.*)", said)

        # A word that is no range, a number of ranges, and a gap; and a gap behind a range that cannot be read.
        self.assertEqual(refusal((r"(?m)^(mlp +0:\d+) \d+(:\d+)$", r"\1 20\2 foo")), [
            '"foo" is no range: they are written as 0:4, begin to end', "3 ranges, but query_heads has 2",
            next(line for line in refusal((r"(?m)^(mlp +0:\d+) \d+(:\d+)$", r"\1 20\2")))])
        self.assertEqual(len(refusal((r"(?m)^(owned_key_heads +)0:", r"\g<1>x:"), (r"(?m)^(vocab +)0:", r"\g<1>1:"))), 2)
        # All of a parameter's words, whatever the first wrong one is.
        self.assertEqual([line.split(" ", 1)[1] for line in refusal(
            (r"(?m)^(final_norm\.weight +)\S+( +\S+ +)trains( +)-( .*)1:head", r"\1y\2t\g<3>9\g<4>9:head"))],
            ["is no size", "must be trains or frozen", "is no dim of y", "9 of 2"])

    def expect_difference(self, strategy):
        done = self.shardproof("layout", strategy, "--workload", "tiny", "--check", "l.txt")
        self.assertEqual(done.returncode, FAILED, done.stderr)
        return done.stdout

    def test_schedules(self):
        shape = ["--ranks", "2", "--microbatches", "2"]
        text = " ".join(self.expect(PASS, "schedule", "--help").stdout.split())
        for words in ["W those of the weights", "B is I then W", "0F1.2 for a slice"]:
            self.assertIn(words, text)
        drawn = self.expect(PASS, "schedule", "draw", "gpipe", *shape).stdout
        self.assertIn("rank 1  .  F0 F1 B0    B1", drawn)
        figures = self.expect(PASS, "schedule", "check", "gpipe", *shape).stdout
        self.assertEqual(figures, "proven: 2 ranks, 2 stages, 2 microbatches\nsends ahead of their receivers: 0\n"
                                  "peak activations by rank: 2 2\nweight copies by rank: 1 1\n")
        self.write("s.txt", self.expect(PASS, "schedule", "print", "gpipe", *shape).stdout)
        for name in ["s.txt", "file:s.txt"]:
            self.assertEqual(self.expect(PASS, "schedule", "check", name).stdout, figures)
        drawn = self.expect(PASS, "schedule", "draw", "1f1b", *shape, "--costs", "1,2,1,0.5", "--out", "s.svg").stdout
        self.assertEqual(drawn, "s.svg\n")
        boxes = xml.etree.ElementTree.parse(self.folder / "s.svg").iter("{http://www.w3.org/2000/svg}title")
        self.assertEqual([b.text.split(":")[0] for b in boxes], "0F0 0F1 0B0 0B1 1F0 1B0 1F1 1B1".split())

        boxes = {b.get("class"): b for b in xml.etree.ElementTree.parse(self.folder / "s.svg").iter("{http://www.w3.org/2000/svg}path")}
        self.assertEqual(boxes["message"].get("d").count("M"), 4, "two forwards and two backwards")

    def test_a_drawing_in_text_says_what_it_is_of_and_leaves_out(self):
        shape = ["--ranks", "2", "--microbatches", "2"]
        drawn = self.expect(PASS, "schedule", "draw", "pipedream", *shape).stdout.splitlines()
        self.assertEqual(drawn[0], "pipedream (Narayanan et al. 2019, section 3): 2 ranks, 2 stages, 2 microbatches")
        self.assertEqual(drawn[-1], "U, which takes no time, is left out: --out draws it")
        self.assertNotIn("U", "".join(drawn[1:-1]))
        self.assertNotIn("left out", self.expect(PASS, "schedule", "draw", "gpipe", *shape).stdout)

    def test_each_action_of_schedules_has_an_example_that_works(self):
        text = self.expect(PASS, "schedule", "--help").stdout
        examples = [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("  shardproof ")]
        self.assertEqual({e[1] for e in examples}, {"print", "check", "draw", "bubble"})
        for example in examples:
            self.expect(PASS, *example)

    def test_all_schedules_are_compared(self):
        """And what a README says of them is what that prints."""
        shape = ["--ranks", "4", "--microbatches", "8"]
        text = self.expect(PASS, "schedule", "bubble", *shape).stdout
        self.assertIn("8 microbatches at F 1, I 1, W 1, message 0\n", text)
        rows = {row.split()[0]: re.split(r"  +", row) for row in text.splitlines() if row.count("  ") > 3}
        listed = {}
        for line in self.expect(PASS, "list", "--schedules").stdout.splitlines()[1:]:
            name, meaning, paper = re.split(r"  +", line.strip())
            listed[name.split()[0]] = meaning
        self.assertEqual(set(rows) - {"schedule"}, set(listed))
        overlapped = self.expect(PASS, "schedule", "bubble", *shape, "--overlapped").stdout
        self.assertRegex(overlapped, r"\n  naive, .*: --overlapped has no effect with|gpipe")
        rows["dualpipe"] = re.split(r"  +", re.search(r"\n(dualpipe .*)", overlapped).group(1))
        readme = (SOURCE / "impl/plan/schedules/README.md").read_text(encoding="utf-8")
        said = re.findall(r"(?m)^\| `(\w+)`.*? \| (.*) \| (.*) \| (\S+).* \| (\S+).* \|$", readme)
        self.assertEqual([name for name, *_ in said], list(listed))
        for name, meaning, bubble, activations, weights in said:
            self.assertEqual(meaning, listed[name])
            _, ranks, _, _, here, _, most, copies = rows[name]
            self.assertEqual((ranks, most, copies), ("4", activations, weights), name)
            if bubble != "none later":
                self.assertEqual(float(here.removesuffix(" %")), float(bubble.removesuffix(" %")), name)
        self.assertEqual(rows["gpipe"][3:6], ["33", "27.3 %", "37.5 %"])
        self.assertIn("pipedream, pipedream_2bw: no flush; ", text)
        text = self.expect(PASS, "schedule", "bubble", "--ranks", "3", "--microbatches", "6").stdout
        self.assertIn("\nrefused\n  dualpipe: ranks 3: it needs an even number", text)
        for args, says in [([], "--ranks or --stages is missing"), (["--ranks", "4"], "--microbatches is missing"),
                           ([*shape, "--costs", "1,2"], "--costs 1,2: 2 numbers, where three or four are due")]:
            said = self.expect(USAGE, "schedule", "bubble", *args, says=says).stderr
            self.assertEqual(said.count(says), 1, "once, not of each schedule")

    def test_what_counts_of_several_stages_a_rank_are_of(self):
        for name, stages in [("interleaved", 8), ("zb_v", 8), ("dualpipe", 4)]:
            unit = f"\nactivations and weights are counted in stages, each 1/{stages} of the model; a rank holds 2\n"
            for action in ["check", "bubble"]:
                self.assertIn(unit, self.expect(PASS, "schedule", action, name, "--ranks", "4", "--microbatches", "8").stdout)

    def test_stages_without_a_layer_are_warned_of(self):
        warning = ("shardproof: warning: 6 of the 8 stages of pp4 schedule=zb_v microbatches=8 have no layer, for tiny has 2\n")
        zb_v = ["--workload", "tiny", "--set", "layers=2", "--strategy", "pp4 schedule=zb_v microbatches=8"]
        self.assertEqual(self.expect(PASS, "run", *zb_v, "--out", "run", "--steps", "1").stderr, warning)
        self.assertEqual(self.expect(PASS, "run", *zb_v, "--dry-run").stderr, warning)
        self.assertEqual(self.expect(PASS, "layout", zb_v[-1], *zb_v[:4]).stderr, warning)
        told = ["--strategy", "pp4 schedule=zb_v microbatches=8 layers=1,0,0,0,0,0,0,1"]
        for strategy in [told, ["--strategy", "pp2"]]:
            self.assertEqual(self.expect(PASS, "run", *zb_v[:4], *strategy, "--dry-run").stderr, "")

    def test_updates_are_drawn_as_lines(self):
        self.expect(PASS, "schedule", "draw", "pipedream", "--ranks", "2", "--microbatches", "2", "--out", "s.svg")
        boxes = xml.etree.ElementTree.parse(self.folder / "s.svg").iter("{http://www.w3.org/2000/svg}rect")
        widths = {b[0].text: float(b.get("width")) for b in boxes if len(b)}
        self.assertEqual({w for name, w in widths.items() if "U" in name}, {2})
        self.assertEqual(len({w for name, w in widths.items() if "F" in name}), 1)
        self.assertGreater(min(w for name, w in widths.items() if "U" not in name), 50)

    def drawing(self, *args):
        self.expect(PASS, "schedule", "draw", *args, "--out", "s.svg")
        return xml.etree.ElementTree.parse(self.folder / "s.svg").getroot()

    def test_later_stages_of_a_rank_are_lighter(self):
        svg = "{http://www.w3.org/2000/svg}"
        root = self.drawing("interleaved", "--ranks", "4", "--microbatches", "8")
        classes = {(int(b[0].text[0]) // 4, b[0].text[1], b.get("class")) for b in root.iter(svg + "rect") if len(b)}
        self.assertEqual(classes, {(0, "F", "F"), (0, "B", "B"), (1, "F", "F1"), (1, "B", "B1")})
        style = root.find(svg + "style").text
        self.assertIn(".F{fill:#56b4e9}.F1{fill:#bbe1f6}", style)
        said = [t.text for t in root.iter(svg + "text")]
        self.assertIn("lighter: a rank's later stages", said)
        self.assertNotIn("lighter: a rank's later stages",
                         [t.text for t in self.drawing("gpipe", "--ranks", "4", "--microbatches", "8").iter(svg + "text")])

    def test_a_block_is_drawn_as_one(self):
        svg = "{http://www.w3.org/2000/svg}"
        root = self.drawing("dualpipe", "--ranks", "4", "--microbatches", "8", "--overlapped")
        said = [t.text for t in root.iter(svg + "text")]
        self.assertEqual(said[:2], ["dualpipe (DeepSeek-AI 2024, section 3.2.1): 4 ranks, 4 stages, 8 microbatches",
                                    "F 1, I 1, W 1, message 0, an F and the B after it as one block: makespan 26, "
                                    "bubble 7.692 % of all ranks' time"])
        within, blocks = set(), 0  # where the F of a block ends, on the upper and on the lower edge of its row
        for row in root.iter(svg + "g"):
            x, y = map(float, re.match(r"translate\((.*),(.*)\)", row.get("transform")).groups())
            frames = [b for b in row.iter(svg + "rect") if b.get("class") == "block"]
            for frame in frames:
                first = next(b for b in row.iter(svg + "rect") if b.get("x") == frame.get("x"))
                self.assertEqual(first[0].text[1], "F")
                self.assertEqual(float(frame.get("width")), 3 * float(first.get("width")))
                middle = x + float(first.get("x")) + float(first.get("width"))
                within |= {(middle, y), (middle, y + 22)}
            blocks += len(frames)
        self.assertEqual(blocks, 14)
        path = next(root.iter(svg + "path")).get("d")
        ends = {tuple(map(float, end.split())) for end in re.split("[ML]", path) if end}
        self.assertFalse(ends & within, "messages from or to the middle of a block")

    def test_a_drawing_letters_all_actions_of_a_kind_or_none(self):
        root = self.drawing("1f1b", "--ranks", "4", "--microbatches", "30")
        svg = "{http://www.w3.org/2000/svg}"
        numbers = sorted(t.text for t in root.iter(svg + "text") if re.fullmatch(r"[\d.]+", t.text))
        self.assertEqual(numbers, sorted([str(m) for m in range(30)] * 4), "each B, and no F, whose boxes are narrow")
        root = self.drawing("gpipe", "--ranks", "2", "--microbatches", "2", "--slices", "2")
        numbers = {t.text for t in root.iter(svg + "text") if re.fullmatch(r"[\d.]+", t.text)}
        self.assertEqual(numbers, {"0.0", "0.1", "1.0", "1.1"})

    def test_figures_are_what_the_commands_draw(self):
        readme = (SOURCE / "impl/plan/schedules/figures/README.md").read_text(encoding="utf-8")
        drawn = {}
        for line in readme.splitlines():
            if line.startswith("build/cpu/shardproof schedule draw"):
                args = shlex.split(line)[1:]
                self.expect(PASS, *args)
                drawn[args[-1]] = (self.folder / args[-1]).read_text(encoding="utf-8")
        figures = {f.name: f.read_text(encoding="utf-8") for f in (SOURCE / "impl/plan/schedules/figures").glob("*.svg")}
        self.assertEqual(sorted(figures), sorted(drawn))
        self.assertEqual(sorted(re.findall(r"\((.*\.svg)\)", readme)), sorted(drawn))
        for name, text in drawn.items():
            self.assertEqual(figures[name], text, f"impl/plan/schedules/figures/{name}: draw it again")

    def test_a_file_s_name_does_not_reach_the_terminal_raw(self):
        self.write("\x1b[1m", "0F0,0B0\n")
        for action in ["draw", "bubble", "check"]:
            self.assertNotIn("\x1b", self.expect(PASS, "schedule", action, "\x1b[1m").stdout)

    def test_bubble_of_a_schedule(self):
        def bubble(*args):
            return self.expect(PASS, "schedule", "bubble", *args).stdout
        text = bubble("zb_h1", "--ranks", "4", "--microbatches", "8", "--costs", "3,2,1")
        for row in [r"makespan +60\n", r"bubble fraction: .* +0\.2\n", r"bubble overhead: .* +0\.25\n",
                    r"bubble time of the longest span +12 +12 +\(p-1\)\(T_F \+ T_B - T_W\), Qi et al\. 2024, table 2\n",
                    r"\n3 +48 +12 +4 +4 +1\n"]:
            self.assertRegex(text, row)
        text = bubble("dualpipe", "--ranks", "4", "--microbatches", "8", "--overlapped")
        self.assertRegex(text, r"bubble time: .* +2 +2 +\(PP/2-1\)")
        self.assertRegex(text, r"\n0 +24 +2 +5 +5 +2\n")
        self.assertNotIn("(PP/2-1)", bubble("dualpipe", "--ranks", "4", "--microbatches", "8"))
        text = bubble("pipedream", "--ranks", "3", "--microbatches", "9")
        self.assertRegex(text, r"\n0 .* 3 +3\n1 .* 2 +2\n2 .* 1 +1\n")
        # Stages of 3 and 9 units: the second is never idle but for the first forward.
        text = bubble("gpipe", "--ranks", "2", "--microbatches", "2", "--stage-costs", "1,3")
        self.assertRegex(text, r"makespan +21\n")
        self.assertRegex(text, r"\n0 +6 +15 .*\n1 +18 +3 ")
        self.assertNotIn("(K-1)", text)

    def test_bubbles_without_a_flush(self):
        options = ["--workload", "tiny", "--set", "layers=4", "--steps", "16", "--ranks", "2", "--microbatches", "2"]
        names = re.findall(r"^  (\w+)", self.expect(PASS, "list", "--schedules").stdout, re.M)
        said = self.expect(PASS, "bubble", *options).stdout
        rows = {row.split()[0]: re.split(r"  +", row) for row in said.splitlines() if row.split() and row.split()[0] in names}
        self.assertGreaterEqual(set(rows), {"gpipe", "one_f_one_b", "pipedream", "pipedream_2bw"})
        percent = lambda text: float(text.removesuffix(" %"))  # noqa: E731
        for name in ["pipedream", "pipedream_2bw"]:
            _, _, _, microbatches, form, unit, recorded, _, in_flight, copies = rows[name]
            self.assertEqual(microbatches, "1" if name == "pipedream" else "2")
            self.assertEqual((form, unit), ("-", "0.00 %"))
            self.assertLess(percent(unit), percent(rows["one_f_one_b"][5]))
            self.assertLess(percent(recorded), 100)
            self.assertEqual((in_flight, copies.strip()), ("2 1", "2 1" if name == "pipedream" else "2 2"))
        self.assertEqual(rows["one_f_one_b"][9].strip(), "1 1")
        self.assertEqual(rows["interleaved"][9].strip(), "1 1")
        self.assertNotIn("ledger", said)
        self.assertRegex(said, r"without a flush \(pipedream, pipedream_2bw\): the steady state alone; .*tied_head=false")
        self.expect(USAGE, "bubble", "--ranks", "2,x", says='--ranks 2,x: "x" is not a whole number from 1 to')

    def test_a_schedule_of_a_file_runs_wherever_a_name_does(self):
        exact = ["--workload", "tiny", "--set", "layers=5", "--set", "batch=6", "--track", "exact", "--steps", "2"]
        self.expect(PASS, "run", *exact, "--out", "dp1")
        digest = self.records("dp1")[0]["digest"]
        forms = {}
        for name, ranks in [("zb_h1", "4"), ("zb_v", "2"), ("dualpipe", "2"), ("interleaved", "3")]:
            printed = self.expect(PASS, "schedule", "print", name, "--ranks", ranks, "--microbatches", "6").stdout
            file = self.write(f"{name},'$*=ü.csv", printed)
            strategy = f"pp{ranks} schedule=file:{file} microbatches=6"
            self.expect(PASS, "run", *exact, "--strategy", f"microbatches=6 schedule=file:{file} pp{ranks}", "--out", name)
            (record,) = self.records(name)
            self.assertEqual((record["digest"], record["strategy"], record["contract"]), (digest, strategy, "EXACT"))
            for key, form in record["forms"].items():
                self.assertEqual(record["ledgers"][key], form, key)
            self.assertNotIn("bubble_formula_fraction", record["figures"])
            # What is printed to repeat it does.
            self.expect(PASS, *shlex.split(record["rerun"])[1:], "--out", name, "--overwrite")
            dry = self.expect(PASS, "run", *exact, "--strategy", strategy, "--dry-run").stdout
            generated = self.expect(PASS, "run", *exact, "--strategy", f"pp{ranks} schedule={name} microbatches=6",
                                    "--dry-run").stdout
            self.assertNotIn("bubble (formula)", dry)
            forms[name] = [re.findall(r"(?m)^(?:memory|traffic|  (?!with)\w+).*", text) for text in (dry, generated)]
            self.assertEqual(*forms[name], name)
        self.expect(PASS, "check", "tiny layers=5 batch=6 steps=2 | pp2 tp2 schedule=file:zb_v,'$*=ü.csv microbatches=6"
                                   " | 4 ranks | exact | cpu | threads")
        layout = self.expect(PASS, "layout", "pp2 schedule=file:zb_v,'$*=ü.csv microbatches=6", "--workload", "tiny").stdout
        self.assertIn("# stages of each pipeline rank: 0,3 1,2\n", layout)
        text = self.expect(PASS, "bubble", "--workload", "tiny", "--ranks", "2", "--microbatches", "6", "--schedule", "zb_v",
                           "--schedule", "file:zb_v,'$*=ü.csv").stdout
        named, filed = (re.split(r" {2,}", row) for row in text.splitlines()[3:5])
        self.assertEqual(filed[0], "file:zb_v,'$*=ü.csv")
        self.assertEqual((named[1:4], named[5], named[8:]), (filed[1:4], filed[5], filed[8:]))
        self.assertEqual(filed[4], "-", "a file has no closed form")
        self.write("s.json", json.dumps({"why": "w", "cases": [
            {"name": "n", "why": "w", "workload": "tiny", "set": {"batch": 6}, "cover": "all", "tracks": ["exact"],
             "most_ranks": 4, "strategy_factors": {
                 "pp": [1, 2], "dp": [1, 2], "schedule": ["naive", "gpipe", "file:dualpipe,'$*=ü.csv"],
                 "microbatches": [4, 6]}, "expect": {"pass": 14}}]}))
        self.expect(PASS, "check", "--suite", "s.json")

    def test_a_file_that_is_no_schedule_for_the_strategy(self):
        why = ["layout", "--workload", "tiny", "--why"]

        def refuse(text, says, keys="pp2 microbatches=2"):
            self.write("s.csv", text)
            strategy = "schedule=file:s.csv " + keys
            self.refuse("--strategy", strategy, says=["schedule=file:s.csv: " + says, "; the nearest legal strategy is "])
            done = self.shardproof(*why, strategy)
            self.assertEqual(done.returncode, USAGE)
            self.assertRegex(done.stdout, "(?m)^schedule=file:s.csv +refused: schedule=file:s.csv: " + re.escape(says))
            self.assertEqual(len(re.findall("refused: ", done.stdout)), 1, done.stdout)

        fine = "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n"
        refuse(fine, "it is for 2 ranks and 2 microbatches, pp2 microbatches=2", "pp4 microbatches=2")
        refuse(fine, "it is for 2 ranks and 2 microbatches, pp2 microbatches=2", "pp2 microbatches=3")
        refuse(fine, "it is for 2 ranks and 2 microbatches, pp2 microbatches=2", "")
        refuse("0F0,0B0\n  1B0, 1F0\n", "line 2, column 3: 1B0 comes before 1F0")
        refuse("0F0,0Q0\n", 'line 1, column 6: "0Q0" is no action')
        refuse(bytes(range(256)) * 4096, "line 1, column 1: ")
        refuse("", "line 1, column 1: there is no rank")
        pipedream = self.expect(PASS, "schedule", "print", "pipedream", "--ranks", "2", "--microbatches", "2").stdout
        refuse(pipedream, "line 1, column ")
        sliced = self.expect(PASS, "schedule", "print", "gpipe", "--ranks", "2", "--microbatches", "2", "--slices", "2").stdout
        refuse(sliced, "line 1, column 1: 0F0.0 is of a slice")
        with open(self.folder / "s.csv", "wb") as file:
            file.truncate(100 << 20)
        self.refuse("--strategy", "pp2 schedule=file:s.csv", says="it is longer than 67108864 bytes")
        self.refuse("--strategy", "pp2 schedule=file:none.csv", says="cannot read 'none.csv': No such file or directory")
        self.refuse("--strategy", "pp2 schedule=file:a b.csv", says="the path of schedule=file:PATH is one word")
        self.refuse("--strategy", "pp2 schedule=file:", says="file: is followed by a path")
        done = self.shardproof("run", "--workload", "tiny", "--strategy", "pp2 schedule=file:a\x1b[1m")
        self.assertEqual(done.returncode, USAGE)
        self.assertNotIn("\x1b", done.stderr)
        # Nothing is read to say what a text names.
        self.assertIn("file:PATH", self.expect(PASS, "list", "--strategies").stdout)

    def test_schedules_that_are_wrong(self):
        self.write("early.txt", "0F0,0B0\n  1B0, 1F0\n")
        done = self.expect(FAILED, "schedule", "check", "early.txt")
        self.assertEqual(done.stderr, "early.txt: line 2, column 3: 1B0 comes before 1F0\n")
        self.write("both.txt", "0F0,0F1,0F2,0B0,0B1,0B2\n1F0,1B0,1F1,1B1,1F2,1B2\n")
        self.expect(FAILED, "schedule", "check", "both.txt", says="both.txt: line 1, column 5: deadlock with rendezvous sends")
        self.expect(PASS, "schedule", "check", "both.txt", "--depth", "1")
        self.assertEqual(self.expect(FAILED, "schedule", "draw", "both.txt").stderr.split("\n", 1)[1],
                         "with sends that may be one message ahead of their receivers it is proven: --depth 1\n")
        self.write("never.txt", "0F0,0B0\n1B0,1F0\n")
        self.assertNotIn("--depth", self.expect(FAILED, "schedule", "check", "never.txt").stderr)
        self.expect(USAGE, "schedule", "check", "s.csv", says="cannot read 's.csv'")
        self.expect(USAGE, "schedule", "check", "1F1B", says="unknown schedule \"1F1B\": did you mean \"1f1b\"?")
        (self.folder / "binary").write_bytes(bytes(range(256)) * 4096)
        self.assertIn("more findings", self.expect(USAGE, "schedule", "check", "binary").stderr)
        with open(self.folder / "large", "wb") as file:
            file.truncate(100 << 20)
        self.expect(USAGE, "schedule", "check", "large", says="large")
        two = ["--ranks", "2", "--microbatches", "2"]
        for args, says in [
            (["draw"], "draw takes one schedule"), (["gpipe"], "\"gpipe\": what to do is one of print, check, draw, bubble"),
            (["print", "gpipe"], "--ranks or --stages is missing"),
            (["print", "gpipe", "--stages", "2", *two], "--ranks and --stages are both given"), (["print", "gpipe", "--ranks", "2"], "--microbatches is missing"),
            (["print", "zb_v", "--stages", "7", "--microbatches", "2"], "--stages 7: a multiple of the chunks of a rank, 2"),
            (["print", "dualpipe", "--ranks", "4", "--microbatches", "6"], "needs an even number of at least two a rank, as 8"),
            (["bubble", "gpipe", "--ranks", "2", "--microbatches", "2", "--costs", "1,2"], "--costs 1,2: 2 numbers, where three or four are due"),
            (["check", "early.txt", "--chunks", "2"], "--chunks has no effect with the file early.txt: its actions are its shape"),
            (["print", "--grid"], "--grid has no effect with print --grid: it goes with check"),
            (["bubble", "--suite", "paper"], "\"paper\" is not papers"), (["check", "gpipe", "--grid"], "take no schedule"),
            (["check", "both.txt", "--stages", "1"], "--stages 1: both.txt has an action of stage 1, so at least 2"),
            (["check", "both.txt", "--microbatches", "2"], "both.txt has an action of microbatch 2, so at least 3"),
            (["check", "both.txt", "--ranks", "3"], "--ranks 3: both.txt is for 2 ranks"),
            (["print", "pipedream", "--stages", "3", "--microbatches", "3", "--replicas", "2,1"], "--stages 3: --replicas 2,1 is of 2 stages"),
            (["print", "pipedream", "--ranks", "1", "--microbatches", "1", "--replicas", "9223372036854775807,9223372036854775807,3"],
             "\"9223372036854775807\" is not a whole number from 1 to 4194304"),
            (["bubble", "gpipe", *two, "--costs", "1,nan,1"], "\"nan\" is not a number from 0 to 1000000000000"),
            (["bubble", "gpipe", *two, "--stage-costs", "1,2,3"], "3 numbers, where the schedule has 2 stages"),
            (["bubble", "naive", *two, "--overlapped"], "--overlapped has no effect with naive"),
            (["bubble", "gpipe", *two, "--overlapped"], "--overlapped does not go with gpipe"),
            (["bubble", "gpipe", *two, "--costs", "1e-310,1,1"], "1e-310 is neither 0 nor from 1e-12 to 1000000000000"),
            (["draw", "gpipe", *two, "--out", "s.png"], "--out s.png: it must end in .svg, or in .json for scripts/plot.py"),
            (["draw", "gpipe", "--ranks", "100", "--microbatches", "100"], "20100 actions and rows are too many for a drawing"),
            (["draw", "naive", "--ranks", "3000", "--microbatches", "1"], "are more than 100000 for a terminal: --out"),
        ]:
            self.expect(USAGE, "schedule", *args, says=says)

    def test_options_without_an_effect_are_refused(self):
        two = ["--ranks", "2", "--microbatches", "2"]
        times = "it goes with bubble of one schedule, and draw with --out"
        proof = "it goes with check, draw and bubble of one schedule"
        for args, lines in [
            (["check", "--grid", "--ranks", "5", "--costs", "1,1,1", "--depth", "0"],
             ["--ranks has no effect with check --grid: it goes with one schedule",
              f"--depth has no effect with check --grid: {proof}", f"--costs has no effect with check --grid: {times}"]),
            (["bubble", "--suite", "papers", "--slices", "3", "--overlapped"],
             ["--slices has no effect with bubble --suite: it goes with one schedule",
              f"--overlapped has no effect with bubble --suite: {times}"]),
            (["draw", "gpipe", *two, "--costs", "1,9,9"], [f"--costs has no effect with draw without --out: {times}"]),
            (["check", "gpipe", *two, "--stage-costs", "1,9"], [f"--stage-costs has no effect with check: {times}"]),
            (["print", "gpipe", *two, "--depth", "1", "--out", "x"],
             ["--out has no effect with print: it goes with draw", f"--depth has no effect with print: {proof}"]),
            (["check", "gpipe", *two, "--suite", "papers"], ["--suite has no effect with check --suite: it goes with bubble"]),
            (["check", "gpipe", *two, "--weights", "flushed"],
             ["--weights has no effect with gpipe, which has its own rule: it goes with a file"]),
        ]:
            said = self.expect(USAGE, "schedule", *args).stderr
            for line in lines:
                self.assertIn(line, said)

    def test_schedules_of_all_shapes_and_papers(self):
        done = self.expect(PASS, "schedule", "check", "--grid").stdout
        self.assertRegex(done, r"\n\d+ proven, each with three depths of sends, \d+ refused, 0 not proven, ")
        for row in [r"\nzb_v +80\n", r"\n808 +slices 2: it takes whole sequences, slices 1 +dualpipe, interleaved, pipedream, pipedream_2bw, zb_v\n"]:
            self.assertRegex(done, row)
        said = self.expect(PASS, "schedule", "bubble", "--suite", "papers").stdout
        self.assertIn("112 cells, 0 apart: 48 of numbers that a paper prints, 64 of a paper's formula evaluated here", said)
        for quantity in set(re.findall(r"  (bubble_\w+|\w+_bubble_time|activations|weight_versions)  ", said)):
            self.assertRegex(said, rf"\n{quantity} +\w.* ")

    def test_selftest_says_where_its_ids_are_explained(self):
        self.assertIn("selftest --list", self.expect(PASS, "selftest").stdout)

    def test_digest_has_help(self):
        done = subprocess.run([SOURCE / "scripts/digest.py", "--help"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (PASS, ""))
        self.assertIn("usage", done.stdout)

    def test_reruns_are_found_from_anywhere(self):
        self.run_tiny("--no-check", "--steps", "1", "--out", "out")
        self.assertTrue(shlex.split(self.records("out")[0]["rerun"])[0].startswith("/"))


if __name__ == "__main__":
    binary.main()
