# SPDX-License-Identifier: Apache-2.0
"""`shardproof judge` and scripts/examples: candidates that are right, one that is broken, and hostile folders and maps.

    judge_test.py SHARDPROOF SOURCE_FOLDER
"""
import csv
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree

import numpy

import binary
from binary import BINARY, PASS, SOURCE, USAGE

EXAMPLES = SOURCE / "scripts/examples"
sys.path.insert(0, str(EXAMPLES))
from oracle_files import Export, Tensors, write  # noqa: E402

FAIL = 1
PYTHON = "/usr/bin/python3"
QUERY, KEY, VALUE = (f"blocks.0.attention.{name}" for name in ("query", "key", "value"))


def python(*words):
    return subprocess.run([PYTHON, *map(str, words)], check=True, capture_output=True, text=True)


def export(name, workload, *settings, track="f64"):
    words = [word for setting in settings for word in ("--set", setting)]
    subprocess.run([BINARY, "export", "--workload", workload, "--track", track, "--out", ROOT / name, *words], check=True,
                   stdout=subprocess.DEVNULL)
    return ROOT / name


def train(name, *words, oracle=None):
    """What the example in PyTorch writes."""
    python(EXAMPLES / "torch_candidate.py", "--oracle", oracle or ORACLE, "--out", ROOT / name, *words)
    return ROOT / name


def setUpModule():
    global ROOT, ORACLE, GOOD
    shared = tempfile.TemporaryDirectory()
    unittest.addModuleCleanup(shared.cleanup)
    ROOT = pathlib.Path(shared.name)
    ORACLE = export("oracle", "tiny")
    GOOD = train("good", "--dtype", "f64")


class Judge(binary.Cli):
    def judge(self, code, candidate, *words, oracle=None, says=()):
        """Judges into a new folder, whose record and JUnit file say the same as the exit code. Returns what ran."""
        out = self.folder / "judged"
        shutil.rmtree(out, ignore_errors=True)
        done = self.expect(code, "judge", "--oracle", oracle or ORACLE, "--candidate", candidate, "--out", out, *words,
                           says=says)
        if code == USAGE:
            self.assertFalse(out.exists(), "bad input leaves nothing behind")
            return done
        (self.record,) = self.records(out)
        self.assertEqual(self.record["verdict"], "pass" if code == PASS else "fail")
        suite = xml.etree.ElementTree.parse(out / "junit.xml").getroot()
        self.assertEqual((suite.get("tests"), suite.get("failures")), ("1", "0" if code == PASS else "1"))
        self.expect(PASS, "validate", out)
        with open(out / "tensors.csv", newline="") as file:
            self.rows = list(csv.DictReader(file))
        return done

    def changed(self, change, steps=(1, 2, 3), source=None):
        """A copy of the good candidate; `change(tensors, metadata, step)` of each file."""
        folder = self.folder / "candidate"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        for step in steps:
            tensors = Tensors((source or GOOD) / f"step-{step:04}.safetensors")
            kept, metadata = dict(tensors), dict(tensors.metadata)
            change(kept, metadata, step)
            write(folder / f"step-{step:04}.safetensors", kept, metadata)
        return folder

    def map(self, tensors, **keys):
        """A map file: the oracle's own names but for these (None: left out)."""
        names = {name: name for name in Export(ORACLE).initial().kind("parameter")} | tensors
        return self.write("map.json", json.dumps({"tensors": {k: v for k, v in names.items() if v is not None}} | keys))


class Examples(Judge):
    def test_a_plain_candidate_passes_in_both_types(self):
        done = self.judge(PASS, GOOD, says=())
        self.assertIn("by the bounds of f64", done.stdout)
        self.assertEqual((self.record["track"], self.record["strategy"], self.record["ranks"]), ("f64", "dp1", 1))
        self.assertEqual(self.record["compared"], 3 * (3 + 4 * 8426))
        self.assertIn("by the bounds of f32", self.judge(PASS, train("f32")).stdout)

    def test_two_ranks_pass(self):
        self.judge(PASS, train("ddp", "--ranks", "2"))
        self.assertEqual((self.record["strategy"], self.record["ranks"]), ("dp2", 2))

    def test_a_sum_for_a_mean_is_named(self):
        done = self.judge(FAIL, train("sum", "--ranks", "2", "--break", "sum"),
                          says=["fail: step 1: gradient of final_norm.bias", "candidate = 2 x oracle on 34 of 34: doubled, dp is 2"])
        self.assertIn("x2.000 on 34 of 34 gradients of step 1 that differ: doubled, dp is 2", done.stdout)
        first = next(row for row in self.rows if row["verdict"] == "fail")
        self.assertEqual((first["step"], first["kind"], first["name"]), ("1", "gradient", "final_norm.bias"))
        self.assertAlmostEqual(float(first["ratio"]), 2, delta=1e-5)
        wrong = [row for row in self.rows if row["verdict"] == "fail" and row["step"] == "1"]
        self.assertEqual({row["kind"] for row in wrong}, {"gradient", "norm"})  # the update is right for its gradients
        self.judge(FAIL, ROOT / "sum", "--strategy", "dp1 tp2", says="doubled, tp is 2")

    def test_a_wrong_learning_rate_is_one_of_the_update(self):
        self.judge(FAIL, train("rate", "--break", "rate"), says="fail: step 1: parameter of ")
        self.assertEqual({row["kind"] for row in self.rows if row["verdict"] == "fail" and row["step"] == "1"}, {"parameter"})

    def test_hard_workloads_pass(self):
        for name, workload, settings in [
            ("everything", "tiny", ["dropout=0.1", "valid_labels=[2,5,0]", "documents=[4,3]", "optimizer=adamw", "weight_decay=0.1",
                                    "clip=0.05", 'frozen=["blocks.1.norm2.bias"]', "unused=[0,7]", "beta2=0.999"]),
            ("sgd", "tiny", ["optimizer=sgd", "learning_rate=0.1", "clip=0.05", "tied_head=false"]),
            ("momentum", "tiny", ["optimizer=momentum", "learning_rate=0.05", "shared_block=[0,1]"]),
            ("no_label", "w15", []),
        ]:
            oracle = export(name, workload, *settings)
            for words in (("--dtype", "f64"), ("--ranks", "2")):
                with self.subTest(name, words=words):
                    self.judge(PASS, train(f"{name}-{words[1]}", *words, oracle=oracle), oracle=oracle)

    def test_the_reader_reads(self):
        done = python(EXAMPLES / "oracle_files.py", ORACLE)
        self.assertIn("step 3: (5, 9) tokens, loss ", done.stdout)

    def test_the_workflow_runs(self):
        """Its commands in a folder where it would stand; those that install and build must exist."""
        place = self.folder / "shardproof"
        (place / "build/cpu").mkdir(parents=True)
        (place / "build/cpu/shardproof").symlink_to(BINARY)
        (place / "scripts").symlink_to(SOURCE / "scripts")
        commands = re.findall(r"^ +(?:- )?run: (.*)$", (EXAMPLES / "judge.yml").read_text(), re.MULTILINE)
        ran = 0
        for command in commands:
            if "/install.sh" in command:
                for word in command.split():
                    self.assertTrue(not word.endswith(".sh") or os.access(self.folder / word, os.X_OK), word)
                continue
            done = subprocess.run(["bash", "-ec", command], cwd=self.folder, capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, f"{command}\n{done.stdout}{done.stderr}")
            ran += 1
        self.assertEqual(ran, 3)
        self.assertEqual(self.files("judged"), sorted([*binary.RUN_FILES, "tensors.csv"]))

    def test_an_export_is_a_candidate(self):
        native = export("native", "tiny", track="native")
        self.judge(PASS, native, "--precision", "f32")
        self.judge(FAIL, native)  # of numbers in float, held to the bounds of f64


class Hostile(Judge):
    def test_folders(self):
        self.judge(USAGE, self.folder / "none", says="there is no such folder")
        (self.folder / "empty").mkdir()
        self.judge(USAGE, self.folder / "empty", says="step-0001.safetensors is not there")
        self.judge(USAGE, GOOD, oracle=self.folder / "none", says="export.json")
        exact = export("exact", "tiny", track="exact")
        self.judge(USAGE, GOOD, oracle=exact, says="only one of --track f64 judges others")
        constant = export("constant", "tiny", "hidden=1", "heads=1", "kv_heads=1")
        self.judge(USAGE, constant, oracle=constant, says="its workload has hidden=1")
        bare = self.folder / "bare"
        shutil.copytree(ORACLE, bare)
        (bare / "yardstick.safetensors").unlink()
        self.judge(USAGE, GOOD, oracle=bare, says="export the oracle without --no-yardstick")

    def test_options(self):
        self.expect(USAGE, "judge", "--candidate", GOOD, says="--oracle is missing")
        self.expect(USAGE, "judge", "--oracle", ORACLE, says="--candidate is missing")
        self.judge(USAGE, GOOD, "--precision", "f23", says='did you mean "f32"')
        self.judge(USAGE, GOOD, "--strategy", "db2", says="dp")
        help_text = self.expect(PASS, "judge", "--help").stdout
        for text in ("gradient/NAME", "workload_hash", '"shards"', "Example:", "--precision"):
            self.assertIn(text, help_text)

    def test_truncated_files(self):
        folder = self.changed(lambda tensors, metadata, step: None)
        path = folder / "step-0002.safetensors"
        for length in (0, 7, 100, path.stat().st_size - 1):
            content = (GOOD / path.name).read_bytes()
            path.write_bytes(content[:length])
            self.judge(USAGE, folder, says="step-0002.safetensors")

    def test_one_wrong_element_is_found(self):
        def change(tensors, metadata, step):
            if step == 2:
                tensors["gradient/" + QUERY + ".weight"] = array = tensors["gradient/" + QUERY + ".weight"].copy()
                array[3, 5] += 1e-12
        self.judge(FAIL, self.changed(change), says=f"step 2: gradient of {QUERY}.weight, element 77: ")

    def test_what_is_not_finite_is_named(self):
        for value in (numpy.nan, numpy.inf):
            def change(tensors, metadata, step):
                if step == 3:
                    tensors["parameter/final_norm.bias"] = array = tensors["parameter/final_norm.bias"].copy()
                    array[7] = value
            self.judge(FAIL, self.changed(change), says=f"step 3: parameter of final_norm.bias: element 7 is {value}")

    def test_missing_and_extra_tensors(self):
        def change(tensors, metadata, step):
            del tensors["gradient/" + KEY + ".weight"]
            tensors["gradient/" + KEY + ".wieght"] = numpy.zeros(3)
        done = self.judge(FAIL, self.changed(change), says=[f"step 1: gradient of {KEY}.weight: missing", f'"gradient/{KEY}.wieght"'])
        self.assertIn(f"not judged  gradient/{KEY}.wieght", done.stdout)
        self.judge(FAIL, self.changed(lambda tensors, *_: tensors.pop("loss")), says="step 1: loss: missing")

    def test_left_out_is_left_out_in_every_step(self):
        def change(tensors, metadata, step):
            for name in [n for n in tensors if n in ("norm", "clip") or n.startswith("state/")]:
                del tensors[name]
        self.judge(PASS, self.changed(change))
        self.judge(FAIL, self.changed(lambda t, m, step: step == 2 and t.pop("norm")), says="step 2: norm: missing")
        state = f"state/{KEY}.weight.first_moment"
        self.judge(FAIL, self.changed(lambda t, m, step: t.pop(state)), says=f"step 1: state of {KEY}.weight.first_moment: missing")

    def test_shapes_and_types(self):
        name = f"gradient/{KEY}.weight"
        self.judge(FAIL, self.changed(lambda t, *_: t.update({name: t[name].T.copy()})),
                   says="has dims 24x12, not 12x24 (a map can transpose it)")
        self.judge(FAIL, self.changed(lambda t, *_: t.update({name: t[name].reshape(-1)})), says="has dims 288, not 12x24")
        self.judge(FAIL, self.changed(lambda t, *_: t.update({name: t[name].astype(numpy.int64)})), says="is of type i64")

    def test_step_counts(self):
        same = lambda *_: None  # noqa: E731
        self.judge(FAIL, self.changed(same, steps=(1, 2)), says="has 2 steps of the oracle's 3: step-0003.safetensors is missing")
        self.judge(FAIL, self.changed(same, steps=(2, 3)), says="step-0001.safetensors is missing")
        folder = self.changed(same)
        shutil.copy(folder / "step-0003.safetensors", folder / "step-0004.safetensors")
        self.judge(FAIL, folder, says="step-0004.safetensors is one too many")

    def test_metadata(self):
        self.judge(FAIL, self.changed(lambda t, m, step: m.update(workload_hash="0" * 64)), says="it is of another workload")
        self.judge(FAIL, self.changed(lambda t, m, step: m.pop("workload_hash")), says='its metadata lack "workload_hash"')
        self.judge(FAIL, self.changed(lambda t, m, step: m.update(step="1")), says="step-0002.safetensors: its metadata say step 1")
        self.judge(USAGE, self.changed(lambda t, m, step: m.update(strategy="dq2")), says="its metadata's strategy")

    def test_a_precision_without_yardstick_is_refused_by_name(self):
        name = f"parameter/{KEY}.weight"
        folder = self.changed(lambda t, *_: t.update({name: t[name].astype(numpy.float16)}))
        self.judge(USAGE, folder, says="precision f16: ")
        self.judge(USAGE, GOOD, "--precision", "bf16", says="stores no yardstick for it")
        self.judge(FAIL, folder, "--precision", "f32", says=f"step 1: parameter of {KEY}.weight")

    def test_an_input_that_cannot_show_a_fault_is_mistrusted(self):
        oracle = export("silent", "tiny", "valid_labels=[0]")
        self.expect(FAIL, "judge", "--oracle", oracle, "--candidate", oracle, "--out", "silent", says="mistrusted: no step showed gradient")


class Maps(Judge):
    def fused(self, tensors, metadata, step):
        """GPT-2's: q, k and v in one matrix, transposed."""
        for kind in ("gradient", "parameter"):
            for part in ("weight", "bias"):
                fused = numpy.concatenate([tensors.pop(f"{kind}/{name}.{part}") for name in (QUERY, KEY, VALUE)])
                tensors[f"{kind}/h.0.attn.c_attn.{part}"] = fused.T.copy()
        for name in [n for n in tensors if n.startswith("state/")]:
            del tensors[name]

    def fused_map(self, order=(QUERY, KEY, VALUE), transpose=True):
        tensors, begin = {}, 0
        for name in order:
            end = begin + (24 if name == QUERY else 12)
            for part in ("weight", "bias"):
                tensors[f"{name}.{part}"] = {"from": f"h.0.attn.c_attn.{part}", "dim": 0, "range": [begin, end]}
            if transpose:
                tensors[f"{name}.weight"]["transpose"] = True
            begin = end
        return self.map(tensors)

    def test_fused_and_transposed(self):
        folder = self.changed(self.fused)
        self.judge(PASS, folder, "--map", self.fused_map())
        self.judge(FAIL, folder, "--map", self.fused_map(order=(QUERY, VALUE, KEY)), says=f"step 1: gradient of {VALUE}")
        self.judge(FAIL, folder, "--map", self.fused_map(transpose=False), says="has dims 24x48: there is no range 36 to 48 of dim 0")
        self.judge(FAIL, folder, says=f"gradient of {VALUE}.bias: missing")

    def test_renamed_by_a_star(self):
        def change(tensors, metadata, step):
            for name in list(tensors):
                if ".mlp." in name:
                    tensors[name.replace("blocks.", "h.")] = tensors.pop(name)
        tensors = {f"blocks.{layer}.mlp.{rest}": None for layer in range(2) for rest in
                   ("up.weight", "up.bias", "down.weight", "down.bias")}
        tensors |= {"blocks.*.mlp.up.weight": "h.*.mlp.up.weight", "blocks.*.mlp.up.bias": "h.*.mlp.up.bias",
                    "blocks.0.mlp.down.*": "h.0.mlp.down.*", "blocks.1.mlp.down.*": "h.1.mlp.down.*"}
        self.judge(PASS, self.changed(change), "--map", self.map(tensors))

    def test_what_a_map_does_not_name_has_the_oracles_name(self):
        up, down = "blocks.0.mlp.up.weight", "blocks.0.mlp.down.weight"

        def change(tensors, metadata, step):
            for name in [n for n in tensors if up in n or down in n]:
                tensors[name.replace("blocks.0.", "first.")] = tensors.pop(name)

        def only(tensors):
            return self.write("map.json", json.dumps({"tensors": tensors}))
        both = {up: "first.mlp.up.weight", down: "first.mlp.down.weight"}
        self.judge(PASS, GOOD, "--map", only({}))
        self.judge(PASS, self.changed(change), "--map", only(both))
        # It has neither the map's name nor the oracle's.
        self.judge(FAIL, self.changed(change), "--map", only({up: both[up]}),
                   says=f'step 1: gradient of {down}: missing: there is no "gradient/{down}" in step-0001.safetensors')
        # Under the oracle's name lies what the map takes for another.
        self.judge(USAGE, GOOD, "--map", only({down: up}), says=f'"{up}" is used twice')

    def shards(self, parts=2, edit=lambda tensors, rank, step: None):
        """rank-R/step-N: rows of mlp.up, columns of mlp.down and the loss cut unevenly; the rest copied to every rank."""
        folder = self.folder / "shards"
        for rank in range(parts):
            (folder / f"rank-{rank}").mkdir(parents=True, exist_ok=True)
        for step in (1, 2, 3):
            whole = Tensors(GOOD / f"step-{step:04}.safetensors")
            for rank in range(parts):
                begin, end = (37 * r // parts for r in (rank, rank + 1))
                tensors = {}
                for name, array in whole.items():
                    if "mlp.up" in name:
                        array = array[begin:end]
                    if "mlp.down.weight" in name:
                        array = array[:, begin:end]
                    tensors[name] = array
                edit(tensors, rank, step)
                write(folder / f"rank-{rank}/step-{step:04}.safetensors", tensors, whole.metadata)
        return folder

    def shards_map(self, parts=2, **more):
        tensors = {}
        for layer in range(2):
            for name, dim in (("up.weight", 0), ("up.bias", 0), ("down.weight", 1)):
                tensors[f"blocks.{layer}.mlp.{name}"] = {"from": f"blocks.{layer}.mlp.{name}", "shards": dim}
        return self.map(tensors | more, files=[f"rank-{rank}/step-{{step}}.safetensors" for rank in range(parts)])

    def test_shards(self):
        for parts in (2, 3):
            self.judge(PASS, self.shards(parts), "--map", self.shards_map(parts))
        up = "blocks.0.mlp.up.bias"
        joined = {"join": [{"from": up, "file": 0}, {"from": up, "file": 1}], "along": 0}
        self.judge(PASS, self.shards(), "--map", self.shards_map(**{up: joined}))
        joined["join"].reverse()
        self.judge(FAIL, self.shards(), "--map", self.shards_map(**{up: joined}), says=f"gradient of {up}")

    def test_copies_must_be_equal(self):
        def edit(tensors, rank, step):
            if rank == 1 and step == 2:
                tensors["parameter/final_norm.bias"] = tensors["parameter/final_norm.bias"] * (1 + 2.0**-52)
        self.judge(FAIL, self.shards(edit=edit), "--map", self.shards_map(),
                   says="step 2: parameter of final_norm.bias: its copies")

    def test_a_rank_without_its_step_is_missing(self):
        folder = self.shards()
        (folder / "rank-1/step-0003.safetensors").unlink()
        self.judge(FAIL, folder, "--map", self.shards_map(), says="rank-1/step-0003.safetensors is missing")

    def test_bad_maps(self):
        weight = f"{QUERY}.weight"
        for text, says in [
            ("", "map.json"), ("{", "map.json"), ("[]", "a JSON object is expected"), ('{"tensors": 3}', "must be an object"),
            ('{"tensor": {}}', 'did you mean "tensors"'), ('{"files": []}', '"files" is empty'),
            ('{"files": ["a"]}', "must have {step} once"), ('{"tensors": {"a": "b", "a": "c"}}', 'key "a" is doubled'),
            ('{"files": ["s{step}", "s{step}"]}', "is named twice"), ("[" * 1000, "map.json"),
        ]:
            with self.subTest(text[:40]):
                self.judge(USAGE, GOOD, "--map", self.write("map.json", text), says=says)
        self.judge(USAGE, GOOD, "--map", "none.json", says="none.json")
        for tensors, says in [
            ({weight: 3}, "a name or an object is expected"),
            ({weight: {"form": "x"}}, ['"from" is missing', 'did you mean "from"']),
            ({weight: f"{KEY}.weight"}, "is used twice"),
            ({"blocks.*.query.weight": "x.*"}, "names"),
            ({"blocks.0.atention.query.weight": "x"}, f'did you mean "{weight}"'),
            ({weight: {"from": weight, "range": [0, 3]}}, '"dim" is missing'),
            ({weight: {"from": weight, "dim": 0}}, '"range", which is missing'),
            ({weight: {"from": weight, "dim": 0, "range": [3, 3]}}, "begin < end"),
            ({weight: {"from": weight, "dim": -1, "range": [0, 3]}}, "below 0"),
            ({weight: {"from": weight, "file": 1}}, "there are 1 files"),
            ({weight: {"from": weight, "transpose": "yes"}}, "must be true or false"),
            ({weight: {"join": [], "along": 0}}, "not empty"),
            ({weight: {"join": [weight]}}, '"along" is missing'),
            ({weight: {"join": [weight, weight], "along": 0}}, "is used twice"),
            ({"a.*.*": "x"}, "has 2 stars"),
            ({weight: "h.*"}, "has no star"),
        ]:
            with self.subTest(says):
                self.judge(USAGE, GOOD, "--map", self.map(tensors), says=says)
        for tensors, says in [
            ({weight: {"from": weight, "dim": 0, "range": [0, 25]}}, "there is no range 0 to 25 of dim 0"),
            ({weight: {"from": weight, "dim": 2, "range": [0, 1]}}, "of dim 2"),
            ({"final_norm.bias": {"from": "final_norm.bias", "transpose": True}}, "only a matrix is transposed"),
            ({weight: {"join": [weight, "final_norm.extra"], "along": 0}}, "missing"),
        ]:
            with self.subTest(says):
                self.judge(FAIL, GOOD, "--map", self.map(tensors), says=says)


if __name__ == "__main__":
    binary.main()
