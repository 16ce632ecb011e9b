# SPDX-License-Identifier: Apache-2.0
"""Runs the shardproof binary on good and, above all, bad input: cli_test.py BINARY SOURCE_FOLDER [unittest options]."""
import json
import os
import pathlib
import resource
import shlex
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

import jsonschema

BINARY, SOURCE = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
SCHEMA = json.loads((SOURCE / "results/record.schema.json").read_text())
PASS, CHECK_FAILED, USAGE, WRITE_FAILED, OUT_OF_MEMORY, NON_FINITE, INTERRUPTED = 0, 1, 2, 5, 6, 7, 130
RUN_FILES = ["junit.xml", "records.jsonl", "summary.json"]


class Cli(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def shardproof(self, *args, **options):
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "timeout": 300} | options
        return subprocess.run([BINARY, *args], cwd=self.folder, **options)

    def expect(self, code, *args, says=(), **options):
        """Runs, compares the exit code, and looks for each text of `says` on stderr. Returns what ran."""
        done = self.shardproof(*args, **options)
        self.assertEqual(done.returncode, code, f"{args}\n{done.stdout}\n{done.stderr}")
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, done.stderr)
        if code != PASS:
            self.assertNotEqual(done.stderr, "", "a failure says why")
        return done

    def run_tiny(self, *args, code=PASS, **options):
        return self.expect(code, "run", "--workload", "tiny", *args, **options)

    def refuse(self, *args, says):
        """A refused run leaves nothing behind."""
        before = sorted(self.folder.rglob("*"))
        self.run_tiny("--out", "refused", *args, code=USAGE, says=says)
        self.assertEqual(sorted(self.folder.rglob("*")), before)

    def without_privileges(self):
        """Options under which permissions count: root may read and write everything."""
        if os.geteuid() != 0:
            return {}
        self.folder.chmod(0o777)
        try:
            self.shardproof("--version", user=65534, group=65534)
        except PermissionError:
            self.skipTest("the build folder is root's alone")
        return {"user": 65534, "group": 65534}

    def files(self, out):
        return sorted(p.name for p in (self.folder / out).iterdir())

    def records(self, out):
        text = (self.folder / out / "records.jsonl").read_text()
        self.assertTrue(text == "" or text.endswith("\n"))
        records = [json.loads(line) for line in text.splitlines()]
        for record in records:
            jsonschema.Draft202012Validator(SCHEMA).validate(record)
        return records

    def summary(self, out):
        return json.loads((self.folder / out / "summary.json").read_text())

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    def start_long_run(self, out, *args):
        """Starts a run of many steps and returns after its first."""
        process = subprocess.Popen(
            [BINARY, "run", "--workload", "tiny", "--track", "native", "--no-check", "--steps", "100000000", "--out", out, *args],
            cwd=self.folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = process.stdout.readline()
        self.assertTrue(line.startswith("step "), line + process.stderr.read() if process.poll() is not None else line)
        return process


class Commands(Cli):
    def test_help_of_every_command_has_its_example(self):
        listing = self.expect(PASS, "--help").stdout
        commands = [line.split()[0] for line in listing.split("Commands")[1].split("Examples")[0].splitlines()[1:] if line]
        self.assertIn("run", commands)
        for command in commands:
            text = self.expect(PASS, command, "--help").stdout
            self.assertIn(f"Example:\n  shardproof {command}", text)

    def test_every_example_works(self):
        (self.folder / "suites").symlink_to(SOURCE / "suites")
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
        self.write("example.json", self.expect(PASS, "list", "--example").stdout)
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
            self.assertEqual(self.files(track), RUN_FILES)
            (record,) = self.records(track)
            self.assertEqual((record["verdict"], record["judged"], record["track"]), ("pass", "full", track))
            self.assertIn(record["digest"], done.stdout)
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
        again = subprocess.run(first["rerun"] + " --out second", shell=True, cwd=self.folder, capture_output=True, text=True)
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
        done = self.run_tiny("--dry-run", "--out", "out")
        self.assertIn("optimizer_state", done.stdout)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_learning_report_names_the_floor(self):
        self.run_tiny("--set", "corpus=markov", "--out", "out")
        figures = self.records("out")[0]["figures"]
        self.assertGreater(figures["loss_floor"], 0)
        self.assertGreater(figures["loss_mean_of_last_100"], figures["loss_floor"])

    def test_a_run_that_becomes_non_finite(self):
        for track in ["exact", "native"]:
            self.run_tiny("--track", track, "--steps", "20", "--set", "learning_rate=1e30", "--out", track, code=NON_FINITE)
            (record,) = self.records(track)
            self.assertGreater(record["ledgers"]["steps_skipped_non_finite"], 0)
            self.assertEqual(self.summary(track)["exit_code"], NON_FINITE)


class BadWorkloads(Cli):
    def test_settings(self):
        self.refuse("--set", "learning_rat=1", says=["learning_rat", "learning_rate"])
        self.refuse("--set", "steps=0", says="steps is 0")
        self.refuse("--steps", "0", says='--steps: "0" is not a whole number of at least 1')
        self.refuse("--set", "heads=5", says="heads is 5, which does not divide hidden")
        self.refuse("--set", "learning_rate=nan", says="learning_rate")
        self.refuse("--set", "learning_rate=NaN", says="learning_rate")
        self.refuse("--set", "learning_rate=inf", says="learning_rate")
        self.refuse("--set", "learning_rate=fast", says="learning_rate")
        self.refuse("--set", "layers=1.5", says="layers")
        self.refuse("--set", "layers", says="layers")
        self.refuse("--set", "loss_scale=3", says="a power of two")

    def test_strategies(self):
        self.refuse("--strategy", "dp1 microbatch=2", says='did you mean "microbatches"?')
        self.refuse("--strategy", "dp1 dp1", says="doubled")
        self.refuse("--strategy", "dp2", says="dp2 needs 2 ranks")

    def test_files(self):
        def refuse_file(content, *says):
            self.expect(USAGE, "run", "--workload", self.write("w.json", content), "--out", "refused", says=["w.json", *says])
            self.expect(USAGE, "validate", "w.json", says=says)
            self.assertFalse((self.folder / "refused").exists())

        refuse_file('{"layers": 2, "hiden": 8}', "hiden", "hidden")
        refuse_file('{"layers": 2, "layers": 3}', "layers")
        refuse_file('{"layers": "two", "hidden": 8.5, "corpus": 3}', "layers", "hidden", "corpus")
        refuse_file('{"layers": 2, "hidden": 8', "w.json")
        refuse_file("", "w.json")
        refuse_file("[]", "w.json")
        refuse_file("\xff\x00", "w.json")
        # All errors of a file at once.
        refuse_file('{"layer": 2, "hidden": 30, "heads": 4, "steps": 0}', "layer", "heads", "steps")
        self.expect(USAGE, "run", "--workload", "missing.json", says="missing.json")
        self.expect(USAGE, "run", "--workload", "tinny", says="tiny")

    def test_corpora(self):
        self.refuse("--set", "corpus=missing.txt", says="missing.txt")
        self.write("empty.txt", "")
        self.refuse("--set", "corpus=empty.txt", says="empty.txt")
        self.write("short.txt", "abc")
        self.refuse("--set", "corpus=short.txt", says="short.txt")
        self.write("bytes.txt", b"a" * 5000 + b"\xff" + b"a" * 5000)
        self.refuse("--set", "corpus=bytes.txt", "--set", "vocab=128", says=["bytes.txt", "5000", "255"])
        (self.folder / "folder").mkdir()
        self.refuse("--set", "corpus=folder", says="folder")
        self.write("w.json", json.dumps({"corpus": "short.txt"}))
        self.expect(USAGE, "validate", "w.json", says="short.txt")

    def test_an_unreadable_corpus(self):
        unprivileged = self.without_privileges()
        self.write("secret.txt", "x" * 10000)
        os.chmod(self.folder / "secret.txt", 0)
        self.run_tiny("--set", "corpus=secret.txt", code=USAGE, says="secret.txt", **unprivileged)

    def test_a_workload_larger_than_memory_is_refused_before_it_is_allocated(self):
        # Sanitizers reserve far more address space than they use.
        sanitized = "-fsanitize" in json.loads(self.expect(PASS, "env", "--json").stdout)["flags"]
        limit = None if sanitized else lambda: resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
        huge = ["--set", "hidden=65536", "--set", "heads=64", "--set", "kv_heads=64", "--set", "layers=1000"]
        self.run_tiny(*huge, "--out", "out", code=OUT_OF_MEMORY, says=["parameters", "more than this machine's"], preexec_fn=limit)
        self.run_tiny(*huge, "--dry-run", code=OUT_OF_MEMORY, preexec_fn=limit)
        self.run_tiny("--device-memory", "64K", "--out", "out", code=OUT_OF_MEMORY, says="more than --device-memory 64.00 KiB")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_device_limit_holds_during_the_run(self):
        self.run_tiny("--no-check", "--out", "free")
        ledgers = self.records("free")[0]["ledgers"]
        limit = ledgers["memory_total_peak_bytes"]
        self.run_tiny("--no-check", "--device-memory", str(limit), "--out", "enough")
        self.run_tiny("--no-check", "--device-memory", str(limit - 1), "--out", "out", code=OUT_OF_MEMORY, says="rerun: ")
        (record,) = self.records("out")
        self.assertEqual(record["verdict"], "error")
        self.assertEqual(self.summary("out")["exit_code"], OUT_OF_MEMORY)


class Folders(Cli):
    def test_a_run_is_not_overwritten_by_chance(self):
        self.run_tiny("--out", "out")
        before = (self.folder / "out/records.jsonl").read_bytes()
        self.run_tiny("--out", "out", code=USAGE, says="out holds a run already")
        self.assertEqual((self.folder / "out/records.jsonl").read_bytes(), before)
        self.assertEqual(self.files("out"), RUN_FILES)
        self.run_tiny("--out", "out", "--seed", "7", "--overwrite")
        self.assertNotEqual((self.folder / "out/records.jsonl").read_bytes(), before)
        self.assertEqual(self.files("out"), RUN_FILES)

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

    def test_a_run_that_was_killed_does_not_block_its_folder(self):
        process = self.start_long_run("out")
        process.kill()
        process.communicate()
        self.expect(USAGE, "validate", "out", says="no record")
        self.run_tiny("--out", "out", code=USAGE, says="holds a run already")
        self.run_tiny("--out", "out", "--overwrite")
        self.assertEqual(self.files("out"), RUN_FILES)

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
        # Three pages: one each for the lock, the record and what follows; without a mount, a limit to the size of files.
        for pages_taken, records in [(1, 1), (2, 0)]:
            full = self.folder / f"full{pages_taken}"
            full.mkdir()
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", full], capture_output=True).returncode == 0
            if mounted:
                self.addCleanup(subprocess.run, ["umount", full], check=True)
                (full / "filler").write_bytes(b"x" * 4096 * pages_taken)
            limit = None if mounted else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            self.run_tiny("--out", f"{full.name}/out", code=WRITE_FAILED, says="cannot write", preexec_fn=limit)
            self.assertEqual(len(self.records(f"{full.name}/out")), records if mounted else 0)
            self.assertNotIn("summary.json", self.files(f"{full.name}/out"))


class Tensors(Cli):
    def tensors(self, header, data=b"", length=None):
        text = header if isinstance(header, bytes) else json.dumps(header).encode()
        return struct.pack("<Q", len(text) if length is None else length) + text + data

    def refuse_tensors(self, content, *says):
        self.write("t.safetensors", content)
        self.expect(USAGE, "validate", "t.safetensors", says=["t.safetensors", *says])

    def test_a_good_file(self):
        header = {"__metadata__": {"a": "b"}, "x": {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]},
                  "empty": {"dtype": "F32", "shape": [0, 3], "data_offsets": [16, 16]}}
        self.write("t.safetensors", self.tensors(header, bytes(16)))
        self.expect(PASS, "validate", "t.safetensors")

    def test_bad_files(self):
        x = {"dtype": "F64", "shape": [2], "data_offsets": [0, 16]}
        self.refuse_tensors(b"")
        self.refuse_tensors(b"\x01\x02")
        self.refuse_tensors(self.tensors({"x": x}, bytes(15)))
        self.refuse_tensors(self.tensors({"x": x}, bytes(17)))
        self.refuse_tensors(self.tensors({"x": x})[:-5])
        self.refuse_tensors(self.tensors({"x": x}, bytes(16), length=4 << 30), str(4 << 30))
        self.refuse_tensors(self.tensors({"x": x}, bytes(16), length=2**64 - 1))
        self.refuse_tensors(self.tensors(b"not json", bytes(16)))
        self.refuse_tensors(self.tensors(b'{"x": ' + json.dumps(x).encode() + b', "x": ' + json.dumps(x).encode() + b"}", bytes(16)), "x")
        self.refuse_tensors(self.tensors({"x": x, "y": x | {"data_offsets": [8, 24]}}, bytes(24)), "y")
        self.refuse_tensors(self.tensors({"x": x, "y": x | {"data_offsets": [24, 40]}}, bytes(40)), "y")
        self.refuse_tensors(self.tensors({"x": x | {"dtype": "F63"}}, bytes(16)), "F63")
        self.refuse_tensors(self.tensors({"x": x | {"shape": [3]}}, bytes(16)), "x")
        self.refuse_tensors(self.tensors({"x": x | {"shape": [-2]}}, bytes(16)), "x")
        self.refuse_tensors(self.tensors({"x": x | {"shape": [2**62, 2**62]}}, bytes(16)), "x")
        self.refuse_tensors(self.tensors({"x": x | {"data_offsets": [16, 0]}}, bytes(16)), "x")

    def test_exports_of_another_type_or_workload(self):
        self.expect(PASS, "export", "--workload", "tiny", "--track", "exact", "--steps", "2", "--out", "e")
        self.expect(PASS, "validate", "e", "--workload", "tiny", "--set", "steps=2")
        self.expect(USAGE, "validate", "e", "--workload", "tiny", says=["initial", "step-0002", "belongs to another workload"])
        step = self.folder / "e/step-0001.safetensors"
        whole = step.read_bytes()
        length = struct.unpack("<Q", whole[:8])[0]
        header, data = json.loads(whole[8:8 + length]), whole[8 + length:]
        name = next(n for n in header if n.startswith("gradient/"))

        def refuse_entry(change, says):
            new_name = change.pop("name", name)
            changed = {new_name if n == name else n: e | change if n == name else e for n, e in header.items()}
            step.write_bytes(self.tensors(changed, data))
            self.expect(USAGE, "validate", "e", says=["step-0001", *says])

        refuse_entry({"dtype": "I64"}, [name, "is of type i64, not f64"])
        refuse_entry({"name": "gradient/nobody.weight"}, ['no parameter "nobody.weight"'])
        refuse_entry({"name": "momentum"}, ['"momentum" is of no kind'])
        refuse_entry({"shape": [*header[name]["shape"], 1]}, [name, "its workload says"])
        step.unlink()
        self.expect(USAGE, "validate", "e", says="step-0001")

    def test_paths_that_are_no_files(self):
        self.expect(USAGE, "validate", "missing.safetensors", says="missing.safetensors")
        (self.folder / "empty").mkdir()
        self.expect(USAGE, "validate", "empty", says="empty")
        self.write("notes.txt", "x")
        self.expect(USAGE, "validate", "notes.txt", says="its kind is not known")

    def test_every_bad_file_is_named(self):
        self.write("a.safetensors", b"")
        self.write("b.jsonl", "{}\n")
        self.expect(USAGE, "validate", "a.safetensors", "b.jsonl", says=["a.safetensors", "b.jsonl:1"])


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[3:]])
