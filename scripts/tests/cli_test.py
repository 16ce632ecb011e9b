# SPDX-License-Identifier: Apache-2.0
"""The shardproof binary: its commands, its runs, and the folders that they write."""
import json
import resource
import shlex
import signal
import subprocess

import jsonschema

import binary
from binary import HANG, INCONCLUSIVE, INTERRUPTED, NON_FINITE, OUT_OF_MEMORY, PASS, RUN_FILES, SCHEMA, SOURCE, USAGE, WRITE_FAILED, Cli


class Commands(Cli):
    def test_help_of_every_command_has_its_example(self):
        listing = self.expect(PASS, "--help").stdout
        lines = listing.split("Commands")[1].split("Examples")[0].splitlines()[1:]
        commands = [line.split()[0] for line in lines if line]
        self.assertIn("run", commands)
        for command in commands:
            text = self.expect(PASS, command, "--help").stdout
            self.assertIn(f"Example:\n  shardproof {command}", text)

    def test_every_example_works(self):
        (self.folder / "suites").symlink_to(SOURCE / "suites")
        (self.folder / "build").mkdir()
        (self.folder / "build/candidate").symlink_to("oracle")  # the export's example; an export is a candidate too
        self.run_tiny("--out", "results/runs/tiny")  # what the report's example is about
        (self.folder / "results/runs/tiny/flight").mkdir()  # as of a run over processes that failed
        self.write("results/runs/tiny/flight/rank-0.flight", binary.flight_record(self))
        examples = self.expect(PASS, "--help").stdout.split("Examples:\n")[1].split("\n\n")[0].splitlines()
        self.assertGreater(len(examples), 3)
        for example in examples:
            program, *args = shlex.split(example)
            self.assertEqual(program, "shardproof")
            self.expect(PASS, *args)

    def test_version(self):
        self.assertRegex(self.expect(PASS, "--version").stdout, r"^shardproof \d+\.\d+\.\d+ \(\w+")

    def test_wrong_command_lines(self):
        self.expect(USAGE, says="a command is missing")
        self.expect(USAGE, "rum", says='unknown command "rum": did you mean "run"?')
        self.expect(USAGE, "run", says="--workload is missing")
        self.expect(USAGE, "run", "--workload", "tiny", "--trak", "exact", says='did you mean "--track"?')
        self.expect(USAGE, "run", "--workload", "tiny", "exact", says='unexpected "exact"')
        self.expect(USAGE, "run", "--workload", says="--workload: a value is missing")
        self.expect(USAGE, "run", "--workload", "tiny", "--track", "exat", says='did you mean "exact"?')
        self.expect(USAGE, "validate", says="nothing to validate")

    def test_list(self):
        everything = self.expect(PASS, "list").stdout
        for word in ["Workloads", "one_device", "tiny", "laptop", "exact", "microbatches", "learning_rate"]:
            self.assertIn(word, everything)
        only = self.expect(PASS, "list", "--workloads").stdout
        self.assertIn("tiny", only)
        self.assertNotIn("learning_rate", only)

    def test_the_example_workload_is_valid(self):
        self.write("example.json", self.expect(PASS, "list", "--workloads", "--example").stdout)
        self.expect(PASS, "validate", "example.json")

    def test_env(self):
        found = json.loads(self.expect(PASS, "env", "--json").stdout)
        jsonschema.Draft202012Validator(SCHEMA["$defs"]["environment"] | {"$defs": SCHEMA["$defs"]}).validate(found)
        self.assertIn(found["processor"], self.expect(PASS, "env").stdout)

    def test_standard_output_that_is_full_is_no_success(self):
        with open("/dev/full", "w") as full:
            self.expect(WRITE_FAILED, "list", stdout=full, says="standard output")


class Runs(Cli):
    def test_a_run_passes_and_its_record_is_valid(self):
        for track in ["exact", "f64", "native"]:
            done = self.run_tiny("--track", track, "--out", track)
            self.assertEqual(done.stderr, "", "progress goes to terminals only")
            self.assertEqual(self.files(track), [*RUN_FILES, "trace.json"])
            (record,) = self.records(track)
            self.assertEqual((record["verdict"], record["judged"], record["track"]), ("pass", "full", track))
            self.assertEqual(record["digest_steps"], 3)
            self.assertIn(record["digest"] + " (steps 1 to 3)", done.stdout)
            self.assertEqual(self.summary(track)["exit_code"], 0)
            self.assertEqual(self.summary(track)["verdicts"]["pass"], 1)
            self.expect(PASS, "validate", track)

    def test_every_form_equals_its_ledger(self):
        self.run_tiny("--track", "exact", "--strategy", "microbatches=3", "--out", "out")
        (record,) = self.records("out")
        self.assertIn("memory_parameter_peak_bytes", record["forms"])
        self.assertEqual({name: record["ledgers"][name] for name in record["forms"]}, record["forms"])

    def test_the_digest_does_not_depend_on_layout_or_checking(self):
        digests = set()
        for k, options in enumerate([[], ["--strategy", "dp1 microbatches=2"], ["--strategy", "microbatches=7"],
                                     ["--no-check"], ["--poison"]]):
            self.run_tiny("--track", "exact", "--out", str(k), *options)
            digests.add(self.records(str(k))[0]["digest"])
        self.assertEqual(len(digests), 1)
        self.run_tiny("--track", "exact", "--out", "other", "--seed", "9")
        self.assertNotIn(self.records("other")[0]["digest"], digests)

    def test_the_rerun_line_reruns(self):
        self.run_tiny("--track", "exact", "--set", "dropout=0.1", "--strategy", "dp1 microbatches=2", "--out", "first")
        (first,) = self.records("first")
        line = first["rerun"] + " --out second"
        again = subprocess.run(line, shell=True, cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(again.returncode, PASS, again.stderr)
        (second,) = self.records("second")
        for key in ["case", "workload_hash", "digest", "rerun", "ledgers"]:
            self.assertEqual(first[key], second[key])

    def test_unchecked_is_said(self):
        self.run_tiny("--no-check", "--out", "out")
        (record,) = self.records("out")
        self.assertEqual((record["verdict"], record["judged"], record["compared"]), ("skipped", "unchecked", 0))

    def test_without_out_a_new_folder_is_made(self):
        for _ in range(2):
            self.run_tiny("--no-check")
        self.assertEqual(len(list((self.folder / "results/runs").iterdir())), 2)

    def test_a_dry_run_writes_nothing(self):
        self.assertIn("optimizer_state", self.run_tiny("--dry-run").stdout)
        for option in [["--out", "out"], ["--out", "out", "--resume"], ["--twin", "2"]]:
            self.run_tiny("--dry-run", *option, code=USAGE, says="have no effect")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_learning_report_names_the_floor(self):
        self.run_tiny("--set", "corpus=markov", "--out", "out")
        figures = self.records("out")[0]["figures"]
        self.assertGreater(figures["loss_floor"], 0)
        self.assertGreater(figures["loss_mean"], figures["loss_floor"])
        self.assertEqual(figures["loss_mean_steps"], 3)

    def test_a_run_that_becomes_non_finite(self):
        for track in ["exact", "native"]:
            options = ["--track", track, "--steps", "20", "--set", "learning_rate=1e30", "--out", track]
            self.run_tiny(*options, code=NON_FINITE, says="not finite")
            (record,) = self.records(track)
            self.assertGreater(record["ledgers"]["steps_skipped_non_finite"], 0)
            self.assertEqual(self.summary(track)["exit_code"], NON_FINITE)
            self.assertNotEqual(record["verdict"], "pass", "who reads records or junit.xml alone sees it too")
            self.assertEqual(self.summary(track)["verdicts"]["pass"], 0)
            self.expect(PASS, "validate", track)

    def test_a_stale_program_that_becomes_non_finite(self):
        stale = ["--strategy", "pp2 schedule=pipedream", "--set", "tied_head=false", "--set", "optimizer=sgd"]
        for name, options in {"judged": [], "unchecked": ["--no-check"]}.items():
            options += stale + ["--steps", "6", "--set", "learning_rate=1e30", "--out", name]
            text = self.run_tiny(*options, code=NON_FINITE, says="cannot skip the step")
            self.assertNotRegex(text.stdout, r"nan|learning|staleness")
            self.assertNotIn(self.records(name)[0]["verdict"], ["pass", "skipped"])
            self.expect(PASS, "validate", name)

    def test_a_stale_program_is_compared_with_the_synchronous_one_unless_unchecked(self):
        stale = ["--strategy", "pp2 schedule=pipedream", "--set", "tied_head=false", "--steps", "6"]
        text = self.run_tiny(*stale, "--out", "judged").stdout
        self.assertRegex(text, r"\nstaleness +the synchronous program's mean at equal tokens is \d")
        self.assertIn("loss_mean_synchronous", self.records("judged")[0]["figures"])
        text = self.run_tiny(*stale, "--out", "unchecked", "--no-check").stdout
        self.assertRegex(text, r"\nstaleness +not compared with the synchronous program, which --no-check does not train\n")
        self.assertNotIn("loss_mean_synchronous", self.records("unchecked")[0]["figures"])
        self.assertNotIn("staleness", self.run_tiny("--no-check", "--out", "synchronous").stdout)

    def test_a_norm_that_is_no_number_has_no_sign(self):
        options = ["--set", "learning_rate=1e30", "--set", "optimizer=sgd", "--no-check", "--out", "out"]
        done = self.run_tiny(*options, code=NON_FINITE, says="training stopped at step")
        self.assertIn("norm nan", done.stdout)
        self.assertIn("no step was taken after the first", done.stdout)

    def test_the_digest_names_its_steps(self):
        run = self.run_tiny("--track", "f64", "--steps", "4", "--out", "r").stdout
        self.assertRegex(run, r"digest +[0-9a-f]{64} \(steps 1 to 3\)\n")
        for steps, said in [("4", "steps 1 to 4"), ("1", "step 1")]:
            export = self.expect(PASS, "export", "--workload", "tiny", "--steps", steps, "--out", "e" + steps).stdout
            self.assertRegex(export, rf"digest [0-9a-f]{{64}} \({said}\)\n")

    def test_a_printed_case_parses_back(self):
        self.write("my 'corpus'.txt", "abc" * 100)
        self.run_tiny("--track", "exact", "--set", "vocab=128", "--set", "corpus=my 'corpus'.txt", "--out", "r")
        (record,) = self.records("r")
        self.expect(PASS, "check", record["case"], "--out", "c")
        (again,) = self.records("c")
        self.assertEqual((again["case"], again["digest"]), (record["case"], record["digest"]))

    def test_a_refused_case_is_a_usage_error(self):
        done = self.expect(USAGE, "check", "tiny | schedule=gpipe | 1 rank | exact | cpu | threads", says="unsupported")
        self.assertNotIn("fail:", done.stderr)

    def test_an_exhaustive_check_goes_on_where_it_was_stopped(self):
        entry = {"name": "grid", "why": "w", "workload": "tiny", "set": {"layers": 1}, "tracks": ["exact"], "steps": 1,
                 "cover": "pairs", "factors": {"dropout": [0, 0.5], "tied_head": [True, False]},
                 "strategy_factors": {"dp": [1, 2, 3, 8], "tp": [1, 2]}, "expect": {"pass": 9}}
        self.write("s.json", json.dumps({"why": "w", "cases": [entry]}))
        check = ["check", "--suite", "./s.json", "--exhaustive"]
        listed = self.expect(PASS, *check, "--list").stdout.splitlines()
        self.assertEqual(len(set(listed)), 28)
        done = self.expect(PASS, *check, "--out", "all", "--threads", "1", says="grid  32     28 legal")
        self.assertIn("grids  32 of 32 cases looked at, to the end, 28 of them legal", done.stdout)
        text = (self.folder / "all/records.jsonl").read_text().splitlines(keepends=True)
        self.assertEqual(sorted(json.loads(line)["case"] for line in text), sorted(line.split("  #")[0] for line in listed))
        self.expect(USAGE, *check, "--filter", "nothing", says="--exhaustive has no effect")
        self.expect(USAGE, "check", "--random", "--exhaustive", says="--exhaustive belongs to --suite")
        (self.folder / "part").mkdir()
        (self.folder / "part/records.jsonl").write_text("".join(text[3:7]))
        self.expect(PASS, *check, "--out", "part", "--resume")
        self.assertEqual({r["case"] for r in self.records("part")}, {json.loads(line)["case"] for line in text})
        self.expect(USAGE, *check, "--filter", "grid", "--track", "f64", "--out", "part", "--resume", says="no effect")

    def test_a_dry_run_needs_what_is_checked(self):
        def saved(*options):
            lines = self.run_tiny("--dry-run", *options).stdout.splitlines()
            return [line for line in lines if "saved" in line or "FLOPs" in line]

        self.assertEqual(saved("--set", "samples=1", "--set", "batch=100000"), saved("--set", "samples=1", "--set", "batch=1"))


class SeveralCases(Cli):
    def records(self, folder="out"):
        return [json.loads(line) for line in (self.folder / folder / "records.jsonl").read_text().splitlines()]

    def test_strategies_on_devices_are_compared(self):
        done = self.run_tiny("--devices", "1,2,4", "--strategy", "dp*", "--strategy", "tp*", "--strategy", "dp2 pp2",
                             "--strategy", "pp* schedule=gpipe", "--steps", "3", "--out", "out", code=PASS)
        records = self.records()
        strategies = [record["strategy"] for record in records]
        self.assertEqual(strategies, ["dp1", "dp2", "dp4", "tp2", "tp4", "dp2 pp2", "schedule=gpipe", "pp2 schedule=gpipe",
                                      "pp4 schedule=gpipe"])
        self.assertEqual([r["verdict"] for r in records], ["pass"] * 6 + ["unsupported"] + ["pass"] * 2)
        self.assertIn("schedule=gpipe has no effect with pp1", done.stdout)
        self.assertIn("tiny, native", done.stdout)
        for record in records:
            if record["verdict"] == "pass":
                self.assertIn("tokens_per_second_replay_median", record["figures"])

    def test_each_case_runs_again_by_its_line(self):
        self.run_tiny("--devices", "2", "--strategy", "dp*", "--strategy", "tp*", "--steps", "2", "--track", "exact",
                      "--out", "out", code=PASS)
        for number, record in enumerate(self.records()):
            words = shlex.split(record["rerun"])[1:]
            self.expect(PASS, *words, "--out", f"again{number}")
            self.assertEqual(self.records(f"again{number}")[0]["digest"], record["digest"])

    def test_a_suite_is_measured_and_chosen_from(self):
        self.expect(PASS, "run", "--suite", "smoke", "--devices", "1,2", "--filter", "data", "--track", "native", "--out", "out")
        self.assertEqual([r["strategy"] for r in self.records()], ["dp1", "dp2"])
        self.expect(PASS, "run", "--suite", "smoke", "--shard", "2/10", "--repeat", "2", "--steps", "2", "--out", "twice")
        self.assertEqual(len(self.records("twice")), 4)
        self.assertEqual(len({r["case"] for r in self.records("twice")}), 2)

    def test_one_bad_case_ends_that_case_only(self):
        done = self.run_tiny("--devices", "1,4", "--strategy", "tp*", "--device-memory", "200K", "--steps", "2",
                             "--out", "out", code=OUT_OF_MEMORY)
        self.assertEqual([r["verdict"] for r in self.records()], ["error", "pass"])
        self.assertIn("--device-memory 200.00 KiB", done.stderr)

    def test_nothing_selected_is_an_error(self):
        for args in (["--strategy", "dp2", "--devices", "3"], ["--devices", "1,"], ["--devices", "0"], ["--devices", "x"],
                     ["--filter", "x"], ["--strategy", "dp*"], ["--strategy", "dp* tp*", "--devices", "4"],
                     ["--suite", "smoke", "--strategy", "dp1"], ["--shard", "2/2"]):
            self.run_tiny(*args, "--out", "out", code=USAGE)
            self.assertFalse((self.folder / "out").exists(), args)
        self.expect(USAGE, "run", "--suite", "smoke", "--filter", "no such", says="no case is selected")

    def test_a_time_budget_that_is_over_is_no_pass(self):
        done = self.expect(INCONCLUSIVE, "run", "--suite", "smoke", "--time-budget", "0.01s", "--out", "out")
        self.assertIn("cases did not run", done.stderr)
        self.assertGreaterEqual(len(self.records()), 1)

    def test_a_dry_run_of_a_trillion_parameters(self):
        for name, billions in (("1.7b", "1.7"), ("3.6b", "3.6"), ("7.5b", "7.5"), ("18b", "18.4"), ("39b", "39.1"),
                               ("76b", "76.1"), ("145b", "145.6"), ("310b", "310.1"), ("530b", "529.6"), ("1t", "1008.0")):
            done = self.expect(PASS, "run", "--dry-run", "--workload", f"megatron-{name}", "--strategy", "tp8 pp2 dp2")
            self.assertIn(f"({billions} billion)", done.stdout)
        done = self.expect(PASS, "run", "--dry-run", "--workload", "megatron-1t", "--strategy",
                           "dp6 pp64 tp8 schedule=gpipe microbatches=512")
        self.assertRegex(done.stdout, r"bubble \(formula\) +11.0 % .* 0.123 of")
        self.assertRegex(done.stdout, r"model FLOPs of a step +\S+ \(Korthikanti et al. 2022, eq. 7\)\n")
        self.assertRegex(done.stdout, r"with full recomputation +\S+ \(Narayanan et al. 2021, eq. 3\)\n")

    def test_a_dry_run_of_several_ends_with_a_table(self):
        case = ["--dry-run", "--devices", "1,2", "--strategy", "dp*", "--strategy", "pp* schedule=gpipe microbatches=4"]
        lines = self.run_tiny(*case, "--track", "f64").stdout.splitlines()
        start = next(i for i, line in enumerate(lines) if line.startswith("strategy "))
        head, *rows = [[cell for cell in line.split("  ") if cell] for line in lines[start:]]
        self.assertEqual([cell.strip() for cell in head],
                         ["strategy", "ranks", "parameters of a rank", "peak memory of a rank", "traffic of a step", "bubble"])
        rows = {row[0]: [cell.strip() for cell in row[1:]] for row in rows}
        self.assertEqual(list(rows), ["dp1", "dp2", "schedule=gpipe microbatches=4", "pp2 schedule=gpipe microbatches=4"])
        self.assertEqual(rows["schedule=gpipe microbatches=4"], ["1", "refused"])
        one, two, pipeline = rows["dp1"], rows["dp2"], rows["pp2 schedule=gpipe microbatches=4"]
        self.assertEqual((one[1], one[3:], two[4]), (two[1], ["0 B", "-"], "-"))
        self.assertNotEqual(two[3], "0 B")
        self.assertLess(int(pipeline[1]), int(one[1]))
        self.assertEqual(pipeline[4], "20.0 %")  # (p-1) / (m + p-1) with p = 2, m = 4
        text = "\n".join(lines)
        self.assertIn(one[2] + ", at least", text)
        self.assertRegex(text, r"parameter +\S+ \S+ \(8 bytes an element\)")
        self.assertRegex(text, r"saved +.+\(4 microbatches in flight; 8 bytes an element, of masks 1\)")
        self.assertNotIn("strategy ", self.run_tiny("--dry-run").stdout)

    def test_a_dry_run_names_an_equation_only_where_it_holds(self):
        for change, holds in [({}, True), ({"kv_heads": 2}, False), ({"mlp_hidden": 100}, False), ({"frozen": "*query.weight"}, False)]:
            settings = {"heads": 6, "kv_heads": 6, "mlp_hidden": 96, "frozen": ""} | change
            text = self.run_tiny("--dry-run", *(word for key, value in settings.items() for word in ["--set", f"{key}={value}"])).stdout
            self.assertEqual((text.count("(from shapes)"), text.count("et al.")), (0, 2) if holds else (2, 0), change)


class Folders(Cli):
    def test_a_run_is_not_overwritten_by_chance(self):
        self.run_tiny("--out", "out")
        before = (self.folder / "out/records.jsonl").read_bytes()
        self.run_tiny("--out", "out", code=USAGE, says="out holds a run already")
        self.assertEqual((self.folder / "out/records.jsonl").read_bytes(), before)
        self.assertEqual(self.files("out"), [*RUN_FILES, "trace.json"])
        self.run_tiny("--out", "out", "--seed", "7", "--overwrite")
        self.assertNotEqual((self.folder / "out/records.jsonl").read_bytes(), before)
        self.assertEqual(self.files("out"), [*RUN_FILES, "trace.json"])

    def test_two_runs_on_one_folder(self):
        first = self.start_long_run("out")
        try:
            self.run_tiny("--out", "out", "--overwrite", code=USAGE, says=f"is being written by process {first.pid}")
        finally:
            first.terminate()
            first.communicate(timeout=60)
        self.assertEqual(first.returncode, INTERRUPTED)
        self.run_tiny("--out", "out", "--overwrite")

    def test_signals_in_the_middle_of_a_run(self):
        for number in [signal.SIGINT, signal.SIGTERM]:
            out = number.name
            process = self.start_long_run(out)
            process.send_signal(number)
            _, errors = process.communicate(timeout=60)
            self.assertEqual(process.returncode, INTERRUPTED)
            self.assertIn(f"interrupted by {number.name}", errors)
            self.assertEqual(self.files(out), RUN_FILES)
            self.assertEqual(self.records(out), [])
            self.assertEqual(self.summary(out)["exit_code"], INTERRUPTED)
            self.assertIn("a run of 0 records, exit code 130", self.expect(PASS, "validate", out).stdout)

    def test_a_signal_reaches_ranks_that_wait(self):
        # The second step's first call never ends by itself: rank 1 sleeps, rank 0 waits for it.
        late = "delay:rank=1,purpose=label_count,call=2,ms=1e6"
        process = self.start_long_run("out", "--strategy", "dp2", "--timeout", "1e5", "--inject", late)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertIn("interrupted by SIGINT", errors)

    def test_a_rank_that_is_late_is_a_hang(self):
        out = self.run_tiny("--no-check", "--strategy", "dp2", "--timeout", "0.2s", "--inject", "delay:rank=1,ms=1e6",
                            code=HANG, timeout=60)
        self.assertIn("no rank began or ended a call for 0.2 s while rank 0 waited for rank 1", out.stderr)
        self.assertIn("--timeout 0.2", out.stderr.split("rerun: ")[1])

    def test_a_reader_that_goes_away(self):
        options = ["run", "--workload", "tiny", "--steps", "100", "--no-check", "--out", "out"]
        process = subprocess.Popen([binary.BINARY, *options], cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.stdout.close()
        errors = process.stderr.read().decode()
        process.stderr.close()
        self.assertEqual(process.wait(timeout=60), WRITE_FAILED, errors)
        self.assertIn("standard output", errors)
        (record,) = self.records("out")
        self.assertEqual(record["ledgers"]["steps_taken"], 100)
        self.assertEqual(self.summary("out")["exit_code"], WRITE_FAILED)

    def test_closed_standard_files(self):
        def run(out, closed, *more):
            line = shlex.join([str(binary.BINARY), "run", "--workload", "tiny", "--out", out, *more]) + closed
            return subprocess.run(["bash", "-c", line], cwd=self.folder, stdout=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE).returncode

        for out, closed in [("a", " <&- >&- 2>&-"), ("b", " >&-"), ("c", " >/dev/full 2>/dev/full")]:
            self.assertEqual(run(out, closed), WRITE_FAILED)
            self.assertEqual(self.records(out)[0]["verdict"], "pass")
        self.assertEqual(run("d", " <&- 2>&-", "--set", "learning_rate=1e30"), NON_FINITE)
        self.assertEqual(len(self.records("d")), 1)
        for closed in [" 2>&-", " 2>/dev/full"]:
            self.assertEqual(run("e", closed, "--set", "nothing=1"), USAGE)

    def test_a_lock_that_is_a_link_is_not_followed(self):
        self.write("target", "mine")
        (self.folder / "out").mkdir()
        (self.folder / "out/run.lock").symlink_to("../target")
        self.run_tiny("--out", "out", code=WRITE_FAILED, says="run.lock")
        self.assertEqual((self.folder / "target").read_text(), "mine")

    def test_a_run_that_was_killed_does_not_block_its_folder(self):
        process = self.start_long_run("out")
        process.kill()
        process.communicate()
        self.expect(USAGE, "validate", "out", says="no record")
        self.run_tiny("--out", "out", code=USAGE, says="holds a run already")
        self.run_tiny("--out", "out", "--overwrite")
        self.assertEqual(self.files("out"), [*RUN_FILES, "trace.json"])

    def test_folders_that_cannot_be_written(self):
        self.write("file", "x")
        for out in ["file", "file/below", "/proc/shardproof", "/dev/null/x"]:
            self.run_tiny("--out", out, code=WRITE_FAILED, says=out)
        self.assertEqual((self.folder / "file").read_text(), "x")

    def test_a_folder_without_permission(self):
        unprivileged = self.without_privileges()
        (self.folder / "locked").mkdir(mode=0o555)
        for out in ["locked", "locked/out"]:
            self.run_tiny("--out", out, code=WRITE_FAILED, says=out, **unprivileged)
        self.assertEqual(list((self.folder / "locked").iterdir()), [])

    def test_a_full_disk(self):
        # Three pages, for the lock, the record and what follows; without a mount, a limit to the size of files.
        for pages_taken, records in [(1, 1), (2, 0)]:
            full = self.folder / f"full{pages_taken}"
            full.mkdir()
            mount = ["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", full]
            mounted = subprocess.run(mount, capture_output=True).returncode == 0
            if mounted:
                self.addCleanup(subprocess.run, ["umount", full], check=True)
                (full / "filler").write_bytes(b"x" * 4096 * pages_taken)
            limit = None if mounted else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            self.run_tiny("--out", f"{full.name}/out", code=WRITE_FAILED, says="cannot write", preexec_fn=limit)
            self.assertEqual(len(self.records(f"{full.name}/out")), records if mounted else 0)
            self.assertNotIn("summary.json", self.files(f"{full.name}/out"))


if __name__ == "__main__":
    binary.main()
