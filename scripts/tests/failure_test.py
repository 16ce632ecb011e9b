# SPDX-License-Identifier: Apache-2.0
"""What happens to a job when one of its processes fails: mpirun's exit code, who is named, what is left. Seeds choose
the rank and the moment: SHARDPROOF_FAILURE_SEEDS (2) for each failure. TEST BINARY SOURCE_FOLDER"""
import json
import os
import pathlib
import random
import re
import resource
import signal
import socket
import subprocess
import threading
import time
import uuid

import binary
from binary import BINARY, ENVIRONMENT, HANG, OUT_OF_MEMORY, PASS, SOURCE, WRITE_FAILED, Cli

RANK_LOST, INTERNAL = 9, 10
SEEDS = int(os.environ.get("SHARDPROOF_FAILURE_SEEDS", "2"))
RANKS = 3
# In seconds. The first is what a monitor leaves process 0 to write (impl/comm/monitor.hpp), the second what mpirun takes
# to start and to kill on a busy machine.
GRACE, SLACK = 20, 40
STRATEGIES = ["dp3", "tp3", "pp3 schedule=one_f_one_b microbatches=4 layers=1,1,0"]
THREADS = ["dp2 tp2", "dp2 pp2 schedule=gpipe microbatches=2", "tp2 pp2 schedule=one_f_one_b microbatches=4"]
MODEL = ["--workload", "tiny", "--set", "layers=2", "--set", "tied_head=false"]


class Job:
    """mpirun and what it started."""

    def __init__(self, test, *args, launch=None, ranks=RANKS, **options):
        self.token = uuid.uuid4().hex
        self.environment = os.environ | {"SHARDPROOF_TEST_TOKEN": self.token}
        line = [SOURCE / "scripts/mpirun.sh", *(launch or ["-n", str(ranks), BINARY, *args])]
        self.out, self.errors, self.steps, self.namespaces = [], "", threading.Condition(), set()
        self.begin = time.monotonic()
        self.process = subprocess.Popen(line, cwd=test.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=self.environment, **options)
        self.readers = [threading.Thread(target=self.read_out), threading.Thread(target=self.read_errors)]
        for reader in self.readers:
            reader.start()

    def read_out(self):
        for line in self.process.stdout:
            with self.steps:
                self.out.append(line)
                self.steps.notify_all()
        with self.steps:
            self.steps.notify_all()

    def read_errors(self):
        self.errors = self.process.stderr.read()

    def await_step(self, step):
        with self.steps:
            there = self.steps.wait_for(lambda: len(self.out) >= step or self.process.poll() is not None, 120)
        assert there and self.process.poll() is None, "".join(self.out) + self.errors

    def pids(self):
        """Of all its processes but mpirun and what it runs in."""
        found = []
        for folder in pathlib.Path("/proc").iterdir():
            try:
                if folder.name.isdigit() and self.token.encode() in (environment := (folder / "environ").read_bytes()):
                    if (folder / "exe").resolve().name.startswith("shardproof"):
                        found.append(int(folder.name))
                        self.namespaces.update(re.findall(rb"\0PMIX_NAMESPACE=([^\0]+)", environment))
            except OSError:  # has ended, or is another's
                pass
        return found

    def left_in_memory(self):
        """Flight records of its processes."""
        return [path for path in pathlib.Path("/dev/shm").glob("shardproof.*.flight")
                if any(name.decode() in path.name for name in self.namespaces)]

    def monitor(self, rank):
        """The process that mpirun started."""
        worker = self.worker(rank)
        return int(re.search(r"^PPid:\s+(\d+)", pathlib.Path(f"/proc/{worker}/status").read_text(), re.M)[1])

    def worker(self, rank):
        """The process that trains: its parent is one of shardproof too."""
        pids = self.pids()
        for pid in pids:
            folder = pathlib.Path(f"/proc/{pid}")
            variables = dict(v.split("=", 1) for v in (folder / "environ").read_text().split("\0") if "=" in v)
            parent = int(re.search(r"^PPid:\s+(\d+)", (folder / "status").read_text(), re.M)[1])
            if variables.get("OMPI_COMM_WORLD_RANK") == str(rank) and parent in pids:
                return pid
        raise AssertionError(f"no worker of rank {rank} among {pids}")

    def end(self, timeout):
        code = self.process.wait(timeout=timeout)
        for reader in self.readers:
            reader.join()
        return code


class Failures(Cli):
    def job(self, *args, **options):
        job = Job(self, *args, **options)
        self.addCleanup(self.clean, job)
        return job

    @staticmethod
    def clean(job):
        for pid in [*job.pids(), job.process.pid]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        job.process.wait()

    def long_job(self, out, draw, *args, threads=False):
        """A run far longer than it is given, at a drawn moment: a process for each rank, or two of two ranks each."""
        job = self.job("run", *MODEL, "--strategy", draw.choice(THREADS if threads else STRATEGIES), "--steps", "1000000",
                       "--no-check", "--track", draw.choice(["exact", "native"]), "--out", out, *args,
                       ranks=2 if threads else RANKS)
        job.await_step(1)
        time.sleep(draw.random())
        return job

    @staticmethod
    def name(process, threads):
        who = f"process {process} of ranks {2 * process}-{2 * process + 1}" if threads else f"rank {process}"
        return f"{who} on host {re.escape(socket.gethostname())}"

    def ends(self, job, code, within, says=()):
        """With this code, within so many seconds from now; nothing of it is left."""
        begin = time.monotonic()
        got = job.end(within + SLACK)
        said = "".join(job.out) + job.errors
        self.assertEqual(got, code, said)
        self.assertLess(time.monotonic() - begin, within + SLACK, said)
        for text in [says] if isinstance(says, str) else says:
            self.assertRegex(job.errors, text, said)
        for _ in range(50):  # mpirun may return a moment before the last one has gone
            if not job.pids():
                break
            time.sleep(0.1)
        self.assertEqual(job.pids(), [], said)
        self.assertEqual(job.left_in_memory(), [], said)
        return said

    def flight(self, out, says):
        self.assertRegex(self.expect(PASS, "flight", out).stdout, says)

    def seeds(self):
        for seed in range(SEEDS):
            yield seed, random.Random(f"{self.id()} {seed}")

    def test_a_rank_that_is_killed(self):
        for seed, draw in self.seeds():
            threads, out = seed % 2 == 1, f"killed{seed}"
            rank = draw.randrange(2 if threads else RANKS)
            job = self.long_job(out, draw, threads=threads)
            os.kill(job.worker(rank), signal.SIGKILL)
            name = self.name(rank, threads) + r" was killed by signal 9 \(Killed\) in step \d+"
            said = self.ends(job, RANK_LOST, GRACE, says=name + r", (ranks? [\d,-]+ )?in( no call, after)? \w+ \d+ .*\(purpose \w+")
            self.flight(out, name)
            if rank > 0:  # process 0 lives to write it
                (record,) = self.records(out)
                self.assertRegex(record["reason"], name)
                self.assertEqual(self.summary(out)["exit_code"], RANK_LOST)
                self.assertIn("shardproof flight ", said)

    def test_a_rank_that_is_stopped(self):
        for seed, draw in self.seeds():
            threads, out, timeout = seed % 2 == 1, f"stopped{seed}", 3
            rank = draw.randrange(2 if threads else RANKS)
            job = self.long_job(out, draw, "--timeout", f"{timeout}s", threads=threads)
            os.kill(job.worker(rank), signal.SIGSTOP)
            name = self.name(rank, threads) + r" is stopped \(SIGSTOP\)"
            self.ends(job, HANG, timeout + GRACE,
                      says=name + r".* in step \d+, (ranks? [\d,-]+ )?in( no call, after)? \w+ \d+ .*\(purpose \w+")
            if rank > 0:
                self.assertRegex(self.records(out)[0]["reason"], name)
            self.flight(out, name)
            # All others wait, as they did when the time was over.
            others = [str(k) for k in (range(4) if threads else range(RANKS)) if k // (2 if threads else 1) != rank]
            waits = self.expect(PASS, "flight", out).stdout.split("\n\n")[1]
            for other in others:
                self.assertRegex(waits, rf"(?m)^{other} +[3-9]\d*\.\d s +\S+ +\w+ \d+ ")

    def test_a_rank_that_is_slow_is_no_failure(self):
        draws = [random.Random(f"slow {seed}") for seed in range(SEEDS)]
        jobs = []
        for seed, draw in enumerate(draws):  # at once: most of the time they sleep
            job = self.job("run", *MODEL, "--strategy", draw.choice(STRATEGIES), "--steps", "1500", "--no-check", "--out",
                           f"slow{seed}", "--timeout", "40s")
            job.await_step(draw.randint(1, 5))
            job.slow = job.worker(draw.randrange(RANKS))
            os.kill(job.slow, signal.SIGSTOP)
            jobs.append(job)
        time.sleep(10)
        for job in jobs:
            self.assertIsNone(job.process.poll(), "it waits")
            os.kill(job.slow, signal.SIGCONT)
        for job in jobs:
            self.ends(job, PASS, 60)

    def test_calls_that_do_not_match(self):
        for seed, draw in self.seeds():
            rank, out = draw.randrange(RANKS), f"mismatch{seed}"
            job = self.job("run", *MODEL, "--strategy", draw.choice(STRATEGIES[:2]), "--steps", "2000", "--no-check",
                           "--track", draw.choice(["exact", "native"]), "--out", out, "--inject",
                           f"mismatch:rank={rank},call={draw.randint(1, 300)}")
            self.ends(job, RANK_LOST, GRACE, says=[r"calls do not match: rank \d+ on host .* calls .*, rank \d+ on host .* calls",
                                                   rf"rank {rank} on host \S+ calls \w+ \d+[^,]* for injected"])
            self.flight(out, "for injected")

    def test_an_exception(self):
        for seed, draw in self.seeds():
            rank, out = draw.randrange(RANKS), f"exception{seed}"
            job = self.job("run", *MODEL, "--strategy", draw.choice(STRATEGIES), "--steps", "2000", "--no-check", "--out",
                           out, "--inject", f"fail:rank={rank},call={draw.randint(1, 300)}")
            said = self.ends(job, INTERNAL, GRACE, says=rf"--inject fail:rank={rank},call=\d+: \w+ \d+ of axis \w+ \(purpose")
            if rank > 0:
                self.assertIn(f"rank {rank}: --inject", said)
            self.flight(out, rf"rank {rank} on host \S+ failed: (rank \d+: )?--inject fail")
            self.assertEqual(len(self.records(out)), 1)

    def test_memory_that_is_exhausted(self):
        job = self.job("run", "--workload", "tiny", "--set", "vocab=100", "--strategy", "pp2", "--no-check",
                       "--device-memory", "195000", "--out", "small", ranks=2)
        self.ends(job, OUT_OF_MEMORY, GRACE, says=["rank 1: activation", "shardproof flight "])
        self.flight("small", r"rank 1 on host \S+ failed: (rank 1: )?activation")

    # Calls of one training are compared: processes count trainings alike, also those that they carry no rank of.
    def test_calls_that_do_not_match_after_idle_processes(self):
        job = self.job("run", *MODEL, "--strategy", "tp2", "--strategy", "dp2 tp2", "--steps", "3", "--no-check", "--inject",
                       "mismatch:rank=1,axis=dp,call=5", "--out", "idle", ranks=4)
        self.ends(job, RANK_LOST, GRACE, says=r"calls do not match: rank 1 on host \S+ calls .* for injected, rank 3")

    # The first case's record is there; the second's is not, or is cut off nowhere.
    def test_a_full_disk_on_rank_0(self):
        for seed, draw in self.seeds():
            full = self.folder / f"full{seed}"
            full.mkdir()
            mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12k", "tmpfs", full], capture_output=True).returncode == 0
            if mounted:
                self.addCleanup(subprocess.run, ["umount", full], check=True)
                (full / "filler").write_bytes(b"x" * 4096 * draw.randint(1, 2))
            limit = None if mounted else lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
            job = self.job("run", *MODEL, "--strategy", draw.choice(STRATEGIES), "--no-check", "--out", f"{full.name}/out",
                           preexec_fn=limit)
            self.ends(job, WRITE_FAILED, GRACE, says="cannot write")
            self.records(f"{full.name}/out")  # whole ones only
            self.assertNotIn("summary.json", self.files(f"{full.name}/out"))

    def test_finished_records_survive(self):
        for rank in [0, 1]:
            out = f"survive{rank}"
            run = ["run", *MODEL, "--strategy", "dp2", "--strategy", "tp3", "--strategy", "dp3", "--steps", "1000", "--no-check",
                   "--out", out]
            job, path = self.job(*run), self.folder / out / "records.jsonl"
            while not (path.exists() and path.read_text().count("\n") == 2) and job.process.poll() is None:
                time.sleep(0.02)
            os.kill(job.worker(rank), signal.SIGKILL)
            self.ends(job, RANK_LOST, GRACE, says=rf"rank {rank} on host \S+ was killed by signal 9")
            finished = self.records(out)[:2]
            self.assertEqual([r["strategy"] for r in finished], ["dp2", "tp3"])
            self.assertEqual({r["verdict"] for r in finished}, {"skipped"}, "as they were not to be judged")
            # That of the case that ended so is there too, unless process 0 was killed, or waited in a function of MPI.
            self.assertLessEqual(len(self.records(out)), 2 + rank)
            self.ends(self.job(*run, "--resume"), PASS, 120)
            self.assertEqual(self.records(out)[:2], finished, "they did not run again")
            self.assertEqual([r["strategy"] for r in self.records(out)], ["dp2", "tp3", "dp3"])
            self.assertNotIn("flight", self.files(out))

    # mpirun ends the rest: nothing is left, of a process that none is left to tidy up after either.
    def test_a_monitor_that_is_killed(self):
        job = self.long_job("monitor", random.Random(1))
        os.kill(job.monitor(1), signal.SIGKILL)
        self.ends(job, 128 + signal.SIGKILL, GRACE, says="exited on signal 9")
        self.flight("monitor", "rank 1 is waited for and waits for nobody: of it there is no record here")

    def test_a_launcher_that_is_killed_leaves_nothing(self):
        job = self.long_job("orphans", random.Random(1))
        os.kill(job.process.pid, signal.SIGKILL)
        job.process.wait()
        for _ in range(300):
            if not job.pids():
                break
            time.sleep(0.1)
        self.assertEqual(job.pids(), [])
        self.assertEqual(job.left_in_memory(), [])

    # Its user, or a batch system whose time is over.
    def test_a_launcher_that_is_asked_to_end(self):
        job = self.long_job("asked", random.Random(2))
        os.kill(job.process.pid, signal.SIGTERM)
        self.ends(job, 1, GRACE, says="interrupted by SIGTERM")  # mpirun's own
        self.flight("asked", r"the job was ended from outside, by signal 15 \(Terminated\)")

    def other_binary(self, name):
        """That differs in a letter of its help."""
        text = BINARY.read_bytes()
        self.assertIn(b"Checks that distributed training", text)
        path = self.folder / name
        path.write_bytes(text.replace(b"Checks that distributed training", b"Cheeks that distributed training"))
        path.chmod(0o755)
        return path

    def test_an_unequal_binary(self):
        for seed, draw in self.seeds():
            other, rank, out = self.other_binary(f"shardproof{seed}"), draw.randrange(1, RANKS), f"unequal{seed}"
            launch = []
            for k in range(RANKS):
                launch += [":"] * (k > 0) + ["-n", "1", other if k == rank else BINARY, "run", *MODEL, "--strategy", "dp3",
                                             "--no-check", "--out", out]
            job = self.job(launch=launch)
            self.ends(job, ENVIRONMENT, GRACE, says=rf"binary: rank 0 on host \S+: [0-9a-f]{{64}}; rank {rank} on host \S+: [0-9a-f]{{64}}")
            self.assertFalse((self.folder / out).exists())

    def test_an_unequal_variable(self):
        run = [BINARY, "run", *MODEL, "--strategy", "dp2", "--no-check", "--out", "no"]
        job = self.job(launch=["-n", "1", *run, ":", "-n", "1", "env", "OMP_NUM_THREADS=3", *run])
        self.ends(job, ENVIRONMENT, GRACE, says="variable OMP_NUM_THREADS: rank 0 on host .*; rank 1 on host .*: 3")

    def test_every_machine_is_recorded(self):
        job = self.job("run", *MODEL, "--strategy", "dp2", "--track", "exact", "--no-check", "--out", "nodes")
        self.ends(job, PASS, GRACE)
        (record,) = self.records("nodes")
        (node,) = self.summary("nodes")["nodes"]
        self.assertEqual(node["processes"], [0, 1, 2])
        self.assertEqual(node["host"], record["environment"]["host"])
        self.assertNotIn("flight", self.files("nodes"))

    # As many processes as a hostfile says, for a case of two ranks on a machine of two cores.
    def test_a_hostfile_of_too_many_slots(self):
        self.write("hosts", "localhost slots=16\n")
        job = self.job(launch=["--hostfile", "hosts", BINARY, "check", "tiny steps=1 | dp2 | 2 ranks | exact | cpu | mpi",
                               "--out", "many"])
        self.ends(job, PASS, 120)
        self.assertEqual(self.summary("many")["nodes"][0]["processes"], list(range(16)))

    def test_what_is_no_flight_record(self):
        self.expect(binary.USAGE, "flight", says="no folder is given")
        self.expect(binary.USAGE, "flight", "nowhere", says="nowhere: no folder")
        (self.folder / "empty").mkdir()
        self.expect(binary.USAGE, "flight", "empty", says="it holds no flight record")
        self.write("empty/rank-0.flight", json.dumps({"not": "a flight record"}))
        self.expect(binary.USAGE, "flight", "empty", says="empty/rank-0.flight: no flight record")


if __name__ == "__main__":
    binary.main()
