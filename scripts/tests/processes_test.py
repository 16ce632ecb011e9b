# SPDX-License-Identifier: Apache-2.0
"""The shardproof binary under mpirun: ranks are processes. TEST BINARY SOURCE_FOLDER"""
import json
import os
import shlex
import signal
import subprocess
import time

import binary
from binary import BINARY, ENVIRONMENT, INTERRUPTED, OUT_OF_MEMORY, PASS, SOURCE, USAGE, Cli

FAILED, HANG = 1, 8
MPIRUN = str(SOURCE / "scripts/mpirun.sh")


class Processes(Cli):
    def on(self, processes, code, *args, says=(), launcher=(MPIRUN,), **options):
        """Runs shardproof on so many processes; mpirun's exit code is theirs."""
        line = [*launcher, "-n", str(processes), BINARY, *args]
        done = subprocess.run(line, cwd=self.folder, text=True, capture_output=True, timeout=300, **options)
        self.assertEqual(done.returncode, code, f"{args}\n{done.stdout}\n{done.stderr}")
        for text in [says] if isinstance(says, str) else says:
            self.assertIn(text, done.stderr)
        return done

    def suite(self, *strategies):
        entry = {"name": "n", "why": "w", "workload": "tiny", "set": {"layers": 2, "tied_head": False}, "steps": 2,
                 "strategies": list(strategies), "tracks": ["exact", "f64", "native"],
                 "expect": {"pass": 3 * len(strategies)}}
        return self.write("s.json", json.dumps({"why": "w", "cases": [entry]}))

    def digests(self, out):
        return {r["strategy"]: r["digest"] for r in self.records(out) if r["track"] == "exact"}

    def test_all_kinds_of_strategies_have_the_digests_of_threads(self):
        suite = self.suite("dp3", "tp3", "pp3 schedule=one_f_one_b microbatches=4 layers=1,1,0", "dp2",
                           "pp2 schedule=zb_v microbatches=3", "pp2 schedule=dualpipe microbatches=4", "pp2 schedule=pipedream",
                           "pp2 schedule=pipedream replicas=2,1", "dp1")
        self.expect(PASS, "check", "--suite", suite, "--out", "threads")
        self.on(3, PASS, "check", "--suite", suite, "--out", "mpi")
        self.assertEqual(len(self.records("mpi")), 27)
        self.assertEqual(self.digests("mpi"), self.digests("threads"))
        for record in self.records("mpi"):
            self.assertEqual((record["verdict"], record["transport"]), ("pass", "mpi"))
            self.assertTrue(record["case"].endswith("| mpi"), record["case"])
            self.assertTrue(record["rerun"].startswith(f"{MPIRUN} -n 3 "), record["rerun"])
            self.assertRegex(record["environment"]["libraries"]["MPI"], r"Open MPI .*, (CUDA-aware|host memory alone)$")

    def test_several_ranks_of_a_process_have_the_digests_of_threads(self):
        suite = self.suite("dp3", "tp3", "pp3 schedule=one_f_one_b microbatches=4 layers=1,1,0", "dp2 tp2",
                           "dp2 tp2 order=tp,pp,dp", "pp2 tp2 schedule=zb_v microbatches=3", "pp4 schedule=dualpipe microbatches=8 layers=1,1,0,0",
                           "pp2 schedule=pipedream replicas=2,1", "dp2 pp2 tp2 schedule=interleaved microbatches=4 layers=1,0,1,0")
        self.expect(PASS, "check", "--suite", suite, "--out", "threads")
        threads = {(r["strategy"], r["track"]): r for r in self.records("threads")}
        for processes, of in ((2, []), (3, ["--track", "exact"])):
            out = f"mpi{processes}"
            self.on(processes, PASS, "check", "--suite", suite, *of, "--out", out)
            self.assertEqual(len(self.records(out)), 9 if of else 27)
            self.assertEqual(self.digests(out), self.digests("threads"))
            for mine in self.records(out):
                theirs = threads[mine["strategy"], mine["track"]]
                self.assertEqual((mine["verdict"], mine["transport"]), ("pass", "mpi"))
                self.assertEqual({n: mine["ledgers"][n] for n in mine["forms"]}, {n: theirs["ledgers"][n] for n in theirs["forms"]})

    def test_a_line_that_repeats_a_case_is_read(self):
        self.on(2, PASS, "check", "tiny steps=1 | dp2 | 2 ranks | exact | cpu | mpi", "--out", "mpi")
        self.expect(PASS, "check", self.records("mpi")[0]["case"], "--out", "threads")
        self.assertEqual(self.digests("mpi"), self.digests("threads"))
        # The line itself, as whoever started the first was allowed to: also as root, also with a hostfile.
        hosts = self.write("hosts", "localhost slots=2\n")
        for out, launcher in (("again", []), ("hosts-again", ["--hostfile", hosts])):
            self.on(2, FAILED, "check", "tiny steps=1 | dp2 | 2 ranks | exact | cpu | mpi", "--inject", "skip:rank=0,call=1",
                    "--out", out, launcher=[MPIRUN, *launcher])
            line = shlex.split(self.records(out)[0]["rerun"])
            self.assertEqual(line[:len(launcher) + 1], [MPIRUN, *(f"{self.folder}/hosts" if w == hosts else w for w in launcher)])
            done = subprocess.run([*line, "--out", f"{out}-2"], cwd=self.folder, text=True, capture_output=True, timeout=300)
            self.assertEqual(done.returncode, FAILED, done.stderr)
            self.assertEqual(len(self.records(f"{out}-2")), 1)

    def test_run_says_what_it_says_of_threads(self):
        args = ["run", "--workload", "tiny", "--track", "exact", "--strategy", "dp2 pp2 schedule=gpipe microbatches=4"]
        here, there = self.expect(PASS, *args, "--out", "threads"), self.on(4, PASS, *args, "--out", "mpi")

        def told(text):
            kinds = ("step", "digest", "dp ", "pp ", "world", "saved_", "parameter", "gradient", "optimizer")
            return [line for line in text.splitlines() if line.strip().startswith(kinds)]

        self.assertEqual(told(there.stdout), told(here.stdout))
        self.assertGreater(len(told(here.stdout)), 12)
        mine, theirs = self.records("mpi")[0], self.records("threads")[0]
        forms = {name for name in theirs["forms"]}
        self.assertEqual({n: mine["ledgers"][n] for n in forms}, {n: theirs["ledgers"][n] for n in forms})

    def test_time_is_told_of_ranks_wherever_they_are(self):
        args = ["run", "--workload", "tiny", "--steps", "6", "--set", "layers=2", "--strategy",
                "dp2 pp2 schedule=gpipe microbatches=4"]
        self.expect(PASS, *args, "--out", "threads")
        theirs = self.records("threads")[0]["figures"]
        for processes in (4, 3):
            out = f"mpi{processes}"
            self.on(processes, PASS, *args, "--out", out)
            mine = self.records(out)[0]["figures"]
            self.assertEqual(set(mine), set(theirs))
            self.assertEqual(mine["replay_operations"], theirs["replay_operations"])
            shares = [mine[f"time_{kind}_share"] for kind in ("compute", "copy", "communication", "wait", "host")]
            self.assertAlmostEqual(sum(shares), 1)
            self.assertTrue(all(0 <= share < 1 for share in shares), shares)
            self.assertGreater(mine["time_wait_share"], 0)  # on one clock: waits are between ranks
            with open(f"{self.folder}/{out}/trace.json", encoding="utf8") as trace:
                events = json.load(trace)["traceEvents"]
            self.assertEqual({e["pid"] for e in events}, {0, 1, 2, 3})

    def test_fewer_and_more_ranks_than_processes(self):
        suite = self.suite("dp1", "dp2", "dp4")
        self.on(3, PASS, "check", "--suite", suite, "--ranks-per-process", "1", "--out", "some",
                says="for 3 processes of at most 1 rank were started: 3 cases of more ranks")
        self.assertEqual({r["strategy"] for r in self.records("some")}, {"dp1", "dp2"})
        self.assertTrue(all("--ranks-per-process 1" in r["rerun"] for r in self.records("some")))
        self.on(2, USAGE, "run", "--workload", "tiny", "--strategy", "dp4", "--ranks-per-process", "1", "--out", "no",
                says="dp4 needs 4 ranks, and 2 processes of at most 1 rank were started")
        self.on(3, PASS, "check", "--suite", suite, "--ranks-per-process", "2", "--out", "all")  # 2, 2 and none
        self.assertEqual(len(self.records("all")), 9)

    def test_reductions_by_mpi_itself(self):
        for out, words in (("own", ["--no-shared-memory"]), ("shared", [])):
            self.on(3, PASS, "check", "--suite", self.suite("dp3", "tp3", "dp2 tp2"), "--out", out, *words)
        own, shared = self.records("own"), self.records("shared")
        self.assertTrue(all("--no-shared-memory" in r["rerun"] for r in own))
        self.assertFalse(any("--no-shared-memory" in r["rerun"] for r in shared))
        self.assertEqual(self.digests("own"), self.digests("shared"))

    def test_what_does_not_go_over_processes_is_refused(self):
        self.on(2, USAGE, "selftest", says="without mpirun")
        self.on(2, USAGE, "run", "--workload", "tiny", "--strategy", "dp2", "--twin", "2", says="without mpirun")
        self.on(2, USAGE, "run", "--workload", "tinny", says="tinny")
        self.expect(USAGE, "run", "--workload", "tiny", "--ranks-per-process", "2", "--out", "no",
                    says="--ranks-per-process: there is one process")
        self.expect(USAGE, "check", "--suite", "smoke", "--no-shared-memory", "--out", "no",
                    says="--no-shared-memory: there is one process")

    def test_a_wrong_collective_is_a_failure_of_the_judge(self):
        self.on(2, FAILED, "check", "tiny steps=1 | dp2 | 2 ranks | exact | cpu | mpi", "--out", "wrong",
                "--inject", "corrupt:axis=dp,purpose=gradient,rank=1,call=2", says="gradient of")

    def test_an_error_of_one_rank_ends_all_with_its_code(self):
        self.on(2, OUT_OF_MEMORY, "run", "--workload", "tiny", "--set", "vocab=100", "--strategy", "pp2", "--no-check",
                "--device-memory", "195000", "--out", "small", says="rank 1: activation")
        self.assertEqual(self.records("small")[0]["verdict"], "error")
        self.on(2, OUT_OF_MEMORY, "run", "--workload", "tiny", "--set", "vocab=100", "--strategy", "pp2 tp2", "--no-check",
                "--device-memory", "125000", "--out", "small", "--overwrite", says=": activation")

    def test_a_wait_ends_after_its_time(self):
        self.on(2, HANG, "run", "--workload", "tiny", "--strategy", "dp2", "--no-check", "--timeout", "2", "--out", "hang",
                "--inject", "delay:axis=dp,rank=1,purpose=gradient,call=1,ms=60000", says="all_reduce")

    def test_an_interruption_ends_all(self):
        process = subprocess.Popen([MPIRUN, "-n", "2", BINARY, "run", "--workload", "tiny", "--strategy", "dp2", "--steps",
                                    "1000000", "--no-check", "--out", "long"], cwd=self.folder, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        start = time.monotonic()
        _, text = process.communicate(timeout=60)
        self.assertLess(time.monotonic() - start, 30)
        self.assertNotEqual(process.returncode, PASS)  # mpirun has a code of its own for it
        self.assertIn("interrupted by SIGTERM", text)
        self.assertEqual(self.summary("long")["exit_code"], INTERRUPTED)
        left = subprocess.run(["pgrep", "-f", "steps 1000000 --no-check --out long"], capture_output=True, text=True)
        self.assertEqual(left.stdout, "")

    def test_a_hostfile_also_one_with_too_many_slots(self):
        args = ["run", "--workload", "tiny", "--track", "exact", "--strategy", "dp2 tp2"]
        self.expect(PASS, *args, "--out", "threads")
        many = self.write("hosts", "localhost slots=64\n")
        for name, file, processes in (("example", str(SOURCE / "scripts/examples/hostfile"), 2), ("many", many, 8)):
            self.on(processes, PASS, *args, "--out", name, launcher=[MPIRUN, "--hostfile", file])
            self.assertEqual(self.digests(name), self.digests("threads"))

    def test_the_batch_file_of_slurm(self):
        # srun stands for itself: it starts its step's tasks by mpirun, and tells them what Slurm tells its own.
        task = ("export SLURM_PROCID=$OMPI_COMM_WORLD_RANK SLURM_STEP_NUM_TASKS=$OMPI_COMM_WORLD_SIZE; "
                "unset OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_SIZE; exec \"$@\"")
        srun = self.write("srun", f"#!/bin/sh\nshift\n[ \"$SRUN_CPUS_PER_TASK\" = 2 ] || exit 3\nexec '{MPIRUN}' -n \"$SLURM_NTASKS\" sh -c '{task}' task \"$@\"\n")
        os.chmod(f"{self.folder}/{srun}", 0o755)
        os.makedirs(f"{self.folder}/build/cpu")
        os.symlink(BINARY, f"{self.folder}/build/cpu/shardproof")
        slurm = {"PATH": f"{self.folder}:{os.environ['PATH']}", "SLURM_SUBMIT_DIR": str(self.folder), "SLURM_JOB_ID": "7",
                 "SLURM_NTASKS": "4", "SLURM_CPUS_PER_TASK": "2"}
        done = subprocess.run([SOURCE / "scripts/examples/slurm.sh"], cwd="/", env=os.environ | slurm, text=True,
                              capture_output=True, timeout=300)
        self.assertEqual(done.returncode, PASS, done.stdout + done.stderr)
        for name, ranks in (("check", {1, 2, 4}), ("run", {8})):
            records = self.records(f"results/runs/7/{name}")
            self.assertEqual({r["ranks"] for r in records}, ranks)
            self.assertEqual({(r["verdict"], r["transport"]) for r in records}, {("pass", "mpi")})
            self.assertTrue(all(r["rerun"].startswith("srun -n 4 ") for r in records))

    def test_a_launcher_that_mpi_does_not_know(self):
        # As under srun without --mpi=pmix, or another MPI's mpiexec: each task would do the whole job by itself.
        for variables, name in ((("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"), "srun"), (("PMI_RANK", "PMI_SIZE"), "mpirun")):
            env = os.environ | dict(zip(variables, ("1", "2")))
            self.expect(ENVIRONMENT, "run", "--workload", "tiny", "--out", "no", env=env,
                        says=f"{name} has started 2 processes, and MPI knows of 1")
            self.assertFalse(os.path.exists(f"{self.folder}/no"))

    def test_started_alone_it_has_threads(self):
        self.on(1, PASS, "run", "--workload", "tiny", "--strategy", "dp2", "--track", "exact", "--out", "one")
        self.assertEqual(self.records("one")[0]["transport"], "threads")


if __name__ == "__main__":
    binary.main()
