# SPDX-License-Identifier: Apache-2.0
"""What the shardproof binary says to wrong workloads, corpora, sizes and tensors."""
import json
import os
import resource
import struct

import binary
from binary import NON_FINITE, OUT_OF_MEMORY, PASS, SOURCE, USAGE, Cli


class BadWorkloads(Cli):
    def test_settings(self):
        self.refuse("--set", "learning_rat=1", says=["learning_rat", "learning_rate"])
        self.refuse("--set", "steps=0", says="steps is 0")
        self.refuse("--steps", "0", says='--steps: "0" is not a whole number from 1')
        self.refuse("--set", "heads=5", says="heads is 5, which does not divide hidden")
        self.refuse("--set", "learning_rate=nan", says="learning_rate")
        self.refuse("--set", "learning_rate=NaN", says="learning_rate")
        self.refuse("--set", "learning_rate=inf", says="learning_rate")
        self.refuse("--set", "learning_rate=fast", says="learning_rate")
        self.refuse("--set", "layers=1.5", says="layers")
        self.refuse("--set", "layers", says="layers")
        self.refuse("--set", "loss_scale=3", says="a power of two")
        self.refuse("--set", "heads=5", "--strategy", "dp0", says=["heads is 5", "--strategy: "])
        self.refuse("--seed", str(2**64 - 1), says=str(2**63 - 1))
        self.run_tiny("--out", "", code=USAGE, says="--out: the value is empty")

    def test_stars_in_patterns_take_no_time(self):
        self.run_tiny("--dry-run", "--set", "frozen=" + "*" * 26 + "bias", timeout=30)

    def test_strategies(self):
        self.refuse("--strategy", "dp1 microbatch=2", says='did you mean "microbatches"?')
        self.refuse("--strategy", "dp1 dp1", says="doubled")
        self.refuse("--strategy", "schedule=gpipe", says="schedule=gpipe has no effect with pp1")

    def test_files(self):
        def refuse_file(content, *says):
            self.write("w.json", content)
            self.expect(USAGE, "run", "--workload", "w.json", "--out", "refused", says=["w.json", *says])
            self.expect(USAGE, "validate", "w.json", says=says)
            self.assertFalse((self.folder / "refused").exists())

        refuse_file('{"layers": 2, "hiden": 8}', "hiden", "hidden")
        refuse_file('{"layers": 2, "layers": 3}', "layers")
        refuse_file('{"layers": "two", "hidden": 8.5, "corpus": 3}', "layers", "hidden", "corpus")
        refuse_file('{"layers": 2, "hidden": 8', "w.json")
        refuse_file("", "w.json")
        refuse_file("[]", "w.json")
        refuse_file('{"documents": ' + "[" * 100000, "nested more than 64 deep")
        refuse_file('{"nobody": ' + '{"a": ' * 100000, "nested more than 64 deep")
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
        self.refuse("--set", "corpus=/dev/zero", says="a device")
        (self.folder / "folder").mkdir()
        self.refuse("--set", "corpus=folder", says="folder")
        self.write("w.json", json.dumps({"corpus": "short.txt"}))
        self.expect(USAGE, "validate", "w.json", says="short.txt")

    def test_what_is_no_file_is_refused_at_once(self):
        # No one writes to the pipe: reading it would never end. An extension says what a file is to be.
        (self.folder / "folder.json").mkdir()
        os.mkfifo(self.folder / "pipe.json")
        for suffix in ["jsonl", "safetensors"]:
            (self.folder / f"pipe.{suffix}").symlink_to("pipe.json")
        (self.folder / "zero.json").symlink_to("/dev/zero")
        self.expect(PASS, "export", "--workload", "tiny", "--track", "f64", "--steps", "1", "--out", "e")
        (self.folder / "c").mkdir()
        (self.folder / "c/step-0001.safetensors").symlink_to("../pipe.json")
        tiny = ["--workload", "tiny"]
        for name, what in [("pipe.json", "a pipe"), ("zero.json", "a device"), ("folder.json", "a folder")]:
            for args in [["run", "--workload", name], ["run", "--workload", "hf:" + name], ["run", "--suite", name],
                         ["check", "--suite", name], ["run", *tiny, "--fabric", name], ["run", *tiny, "--set", "corpus=" + name],
                         ["schedule", "check", "./" + name], ["layout", "dp1", *tiny, "--check", name],
                         ["run", *tiny, "--strategy", "pp2 schedule=file:" + name],
                         ["layout", "pp2 schedule=file:" + name, *tiny],
                         ["judge", "--oracle", "e", "--candidate", "e", "--map", name]]:
                done = self.expect(USAGE, *args, says=[name, f"it is {what}, not a file"], timeout=30)
                self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for args in [["check", "pipe.json | dp1 | 1 rank | exact | cpu | threads"], ["validate", "pipe.json"],
                     ["validate", "pipe.jsonl"], ["validate", "pipe.safetensors"],
                     ["judge", "--oracle", "e", "--candidate", "c"]]:
            self.expect(USAGE, *args, says="it is a pipe, not a file", timeout=30)
        (self.folder / "out").mkdir()
        os.mkfifo(self.folder / "out/records.jsonl")
        for args in [["report", "out"], ["run", *tiny, "--out", "out", "--resume"]]:
            self.expect(USAGE, *args, says="it is a pipe, not a file", timeout=30)

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
        says = ["parameters", "more than this machine's"]
        self.run_tiny(*huge, "--out", "out", code=OUT_OF_MEMORY, says=says, preexec_fn=limit)
        dry = self.run_tiny(*huge, "--dry-run", code=PASS, preexec_fn=limit)
        self.assertRegex(dry.stdout, r"fits here +no: workload .* more than this machine's")
        says = "more than --device-memory 64.00 KiB"
        self.run_tiny("--device-memory", "64K", "--out", "out", code=OUT_OF_MEMORY, says=says)
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_the_device_limit_holds_during_the_run(self):
        self.run_tiny("--no-check", "--out", "free")
        ledgers = self.records("free")[0]["ledgers"]
        limit = ledgers["memory_total_peak_bytes"]
        self.run_tiny("--no-check", "--device-memory", str(limit), "--out", "enough")
        less = ["--no-check", "--device-memory", str(limit - 1), "--out", "out"]
        self.run_tiny(*less, code=OUT_OF_MEMORY, says="rerun: ")
        (record,) = self.records("out")
        self.assertEqual(record["verdict"], "error")
        self.assertEqual(self.summary("out")["exit_code"], OUT_OF_MEMORY)


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
        doubled = f'{{"x": {json.dumps(x)}, "x": {json.dumps(x)}}}'.encode()
        self.refuse_tensors(self.tensors(doubled, bytes(16)), "x")
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
        self.expect(PASS, "validate", "e/yardstick.safetensors", "e/step-0002.safetensors")
        says = ["initial", "step-0002", "belongs to another workload"]
        self.expect(USAGE, "validate", "e", "--workload", "tiny", says=says)
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
        refuse_entry({"name": "gradient/nobody.weight"}, ['"gradient/nobody.weight" is none', f'"{name}" is missing'])
        refuse_entry({"name": "lossy"}, ['"lossy" is none'])
        refuse_entry({"name": "tokens2"}, ['"tokens2" is none'])
        refuse_entry({"name": "state/" + name.split("/")[1] + ".third_moment"}, ['.third_moment" is none'])
        refuse_entry({"shape": [*header[name]["shape"], 1]}, [name, "its workload says"])
        for other, shape in [("clip", [1, 1]), ("tokens", [45]), ("labels", [9, 5]), ("skipped", [1, 1, 1])]:
            step.write_bytes(self.tensors(header | {other: header[other] | {"shape": shape}}, data))
            self.expect(USAGE, "validate", "e", says=["step-0001", f'"{other}" has dims', "its workload says"])
        for key, value, says in [
                ("track", "zzz", "unknown track"), ("track", "f64", "its track is"), ("loss_scale", "-5", "its loss_scale"),
                ("workload_hash", "00", "its workload_hash"), ("step", "2", "it is of step 2"), ("step", None, "another file")]:
            metadata = {k: v for k, v in (header["__metadata__"] | {key: value}).items() if v is not None}
            step.write_bytes(self.tensors(header | {"__metadata__": metadata}, data))
            self.expect(USAGE, "validate", "e", says=["step-0001", says])
        begin, _ = header["labels"]["data_offsets"]
        step.write_bytes(self.tensors(header, data[:begin] + struct.pack("<i", 10**9) + data[begin + 4:]))
        self.expect(USAGE, "validate", "e", says='"labels" holds 1000000000 at element 0')
        step.write_bytes(self.tensors({"__metadata__": header["__metadata__"]}))
        self.expect(USAGE, "validate", "e", says="it holds no tensor")
        step.write_bytes((self.folder / "e/initial.safetensors").read_bytes())
        self.expect(USAGE, "validate", "e", says="another file of an export")
        step.write_bytes(whole)
        self.expect(PASS, "validate", "e")
        step.unlink()
        self.expect(USAGE, "validate", "e", says="step-0001")

    def test_the_steps_of_an_export_are_not_counted_without_end(self):
        self.expect(PASS, "export", "--workload", "tiny", "--steps", "1", "--no-yardstick", "--out", "e")
        about = json.loads((self.folder / "e/export.json").read_text())
        self.write("e/export.json", json.dumps(about | {"steps": 2**63 - 1}))
        self.expect(USAGE, "validate", "e", says="step-0002", timeout=30)
        self.write("e/export.json", '{"steps": 1}')
        self.expect(USAGE, "validate", "e", says=['"schema" is missing', '"digest" is missing'])

    def test_what_is_no_export_is_not_overwritten(self):
        (self.folder / "home").mkdir()
        self.write("home/thesis.txt", "x")
        command = ["export", "--workload", "tiny", "--steps", "1", "--no-yardstick", "--overwrite", "--out"]
        for out in ["home", ".", "..", "home/..", "home/thesis.txt"]:
            self.expect(USAGE, *command, out)
            self.assertEqual((self.folder / "home/thesis.txt").read_text(), "x")
        self.expect(PASS, "run", "--workload", "tiny", "--no-check", "--out", "run")
        self.expect(USAGE, *command, "run", says="which no export writes")
        self.expect(PASS, *command, "e")
        self.expect(PASS, *command, "e")
        self.expect(PASS, "validate", "e")
        self.assertEqual(self.files("."), ["e", "home", "run"])

    def test_an_export_that_becomes_non_finite_is_no_success(self):
        command = ["export", "--workload", "tiny", "--set", "optimizer=sgd", "--set", "learning_rate=1e30", "--out", "e"]
        self.expect(NON_FINITE, *command, says="step 3 is not finite")
        self.expect(PASS, "validate", "e")

    def test_a_file_that_holds_nothing(self):
        self.write("t.safetensors", self.tensors({}))
        self.expect(USAGE, "validate", "t.safetensors", says="it holds no tensor")

    def test_suites_are_read_to_the_end(self):
        def refuse_suite(entry, *says):
            self.write("s.json", json.dumps({"why": "w", "cases": [{"name": "n", "why": "w", "tracks": ["exact"]} | entry]}))
            self.expect(USAGE, "validate", "s.json", says=["s.json", *says])

        refuse_suite({"workload": "tniy", "expect": {"pass": 1}}, 'did you mean "tiny"?')
        refuse_suite({"workload": "tiny", "set": {"heads": 5}, "expect": {"pass": 1}}, "heads is 5")
        refuse_suite({"workload": "tiny", "strategies": ["tq2"], "expect": {"pass": 1}}, 'unknown strategy key "tq"')
        self.write("s.json", '{"why": "w", "cases": [{"set": ' + "[" * 500000)
        self.expect(USAGE, "validate", "s.json", says="nested more than 64 deep")
        self.expect(PASS, "validate", SOURCE / "suites/cases/one_device.json")

    def test_settings_belong_to_a_workload(self):
        self.expect(USAGE, "validate", SOURCE / "suites/shapes/tiny.json", "--set", "heads=5", says="--workload")

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
    binary.main()
