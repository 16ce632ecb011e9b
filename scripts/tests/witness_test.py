# SPDX-License-Identifier: Apache-2.0
"""usage: witness_test.py SHARDPROOF   exports every model option, alone and all together, and has witness.py judge it."""

import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

SHARDPROOF = sys.argv.pop(1)
SCRIPTS = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(SCRIPTS))
import witness  # noqa: E402

OPTIONS = {
    "plain": [],
    "relu": ["activation=relu"],
    "untied": ["tied_head=false"],
    "tied": ["tied_head=true"],
    "shared": ["layers=3", "shared_block=[0,2]"],
    "one_kv_head": ["kv_heads=1"],
    "all_kv_heads": ["kv_heads=6"],
    "dropout": ["dropout=0.2"],
    "smoothing": ["label_smoothing=0.1"],
    "valid_labels": ["valid_labels=[2,7,0]"],
    "no_label": ["valid_labels=[0]"],
    "prompt": ["prompt=4"],
    "documents": ["documents=[4,3]"],
    "window": ["window=3"],
    "frozen": ['frozen=["*.norm1.*","token_embedding.weight"]'],
    "unused": ["unused=[0,7]"],
    "short_epoch": ["samples=7"],
    "sgd": ["optimizer=sgd", "learning_rate=0.1"],
    "sgd_clipped": ["optimizer=sgd", "clip=0.05"],
    "momentum": ["optimizer=momentum", "clip=1000"],
    "adamw": ["optimizer=adamw", "weight_decay=0.1"],
    "adamw_all": ["optimizer=adamw", "weight_decay=0.1", "decay_group=all", "unused=3"],
    "linear_rate": ["learning_rate_schedule=linear", "warmup_steps=1"],
    "cosine_rate": ["learning_rate_schedule=cosine", "minimum_learning_rate=0.0001"],
    "gpt2_start": ["initialization=gpt2"],
    "everything": [
        "activation=gelu", "tied_head=true", "layers=3", "shared_block=[0,2]", "kv_heads=2", "dropout=0.1",
        "label_smoothing=0.1", "valid_labels=[2,5,0]", "prompt=1", "documents=[4,3]", "window=3",
        'frozen=["blocks.1.norm2.bias"]', "unused=[0,7]", "samples=8", "optimizer=adamw", "weight_decay=0.1",
        "clip=0.05", "learning_rate_schedule=cosine", "warmup_steps=1",
    ],
}
# The option whose export each planted fault must be refused on. ("groups": tiny has 6 heads on 3; on one, both ways to
# repeat are the same.)
FAULT_SHOWS_ON = {
    "smoothing": "smoothing", "scale": "plain", "causal": "plain", "documents": "documents", "window": "window",
    "groups": "plain", "dropout": "dropout", "norm": "plain", "shared": "shared", "mean": "valid_labels",
    "gelu": "plain", "decay": "adamw",
}


class WitnessTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        for name, settings in OPTIONS.items():
            cls.export(name, "f64", settings)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    @classmethod
    def export(cls, name, track, settings, strategy="dp1"):
        path = pathlib.Path(cls.folder.name) / name
        command = [SHARDPROOF, "export", "--workload", "tiny", "--track", track, "--strategy", strategy, "--out", str(path)]
        for setting in settings:
            command += ["--set", setting]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return path

    def path(self, name):
        return pathlib.Path(self.folder.name) / name

    def test_every_option_alone_and_all_together(self):
        for name in OPTIONS:
            with self.subTest(name):
                self.assertEqual(witness.Witness(self.path(name), None).run(), [])

    def test_every_planted_fault_is_refused(self):
        self.assertEqual(sorted(FAULT_SHOWS_ON), sorted(witness.FAULTS))
        for fault, name in FAULT_SHOWS_ON.items():
            with self.subTest(fault):
                self.assertNotEqual(witness.Witness(self.path(name), fault).run(), [])

    def test_the_digest_is_computed_again(self):
        for track, strategy in (("exact", "dp1"), ("exact", "microbatches=3"), ("f64", "dp1"), ("native", "dp1")):
            with self.subTest(track + strategy):
                path = self.export(f"digest-{track}-{strategy}", track, OPTIONS["everything"], strategy)
                command = [sys.executable, str(SCRIPTS / "digest.py"), str(path)]
                self.assertEqual(subprocess.run(command, stdout=subprocess.DEVNULL).returncode, 0)

    def test_a_flipped_bit_changes_the_digest(self):
        path = self.export("flipped", "exact", [])
        step = path / "step-0002.safetensors"
        content = bytearray(step.read_bytes())
        (length,) = struct.unpack("<Q", content[:8])
        _, end = json.loads(content[8 : 8 + length])["raw/parameter/final_norm.bias"]["data_offsets"]
        content[8 + length + end - 8] ^= 1  # the lowest bit of its last element
        step.write_bytes(content)
        command = [sys.executable, str(SCRIPTS / "digest.py"), str(path)]
        self.assertEqual(subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode, 1)


if __name__ == "__main__":
    unittest.main()
