#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Planted faults (suites/faults.json): the copy of the tree that holds all patches, and the kill table.

    scripts/faults.py copy FOLDER                 the tree with every patch applied; writes only what changed
    scripts/faults.py kill BINARY [OPTION...]     runs each fault against a suite; scripts/faults.sh does both
"""
import argparse
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = "kernels/core/fault.hpp"  # of the copy alone; what a patch touched includes it
HEADER_TEXT = """#pragma once
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace shardproof {

/// Whether the environment chose this fault.
inline bool fault(std::string_view id) {
  static const char* const value = std::getenv("SHARDPROOF_FAULT");
  static const std::string_view chosen = value != nullptr ? value : "";
  if (chosen != id) return false;
  static const int told = std::fprintf(stderr, "fault %s reached\\n", value);
  return told != 0;
}

}  // namespace shardproof
"""
CASES_A_RUN = 8  # a fault's runs end at the first that catches it
RUN_SECONDS = 900


class Failed(Exception):
    pass


def faults(root=ROOT):
    return json.loads((root / "suites/faults.json").read_text())["faults"]


def patches(root=ROOT):
    """In the order in which they are applied: a patch may rely on those before it."""
    return sorted(root.glob("impl/*/faults/*.patch"), key=lambda p: p.stem)


def touched(patch):
    return re.findall(r"^\+\+\+ b/(\S+)", patch.read_text(), re.M)


def sources(root):
    listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=root, check=True,
                            capture_output=True).stdout.decode().split("\0")
    return [name for name in listed if name and (root / name).is_file() and not name.endswith(".patch")]


def patched(root, folder):
    """Fills the empty folder with the tree and every patch. Raises Failed naming all patches that do not apply."""
    for name in sources(root):
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes((root / name).read_bytes())
        file.chmod((root / name).stat().st_mode)
    (folder / HEADER).parent.mkdir(parents=True, exist_ok=True)
    (folder / HEADER).write_text(HEADER_TEXT)
    # Git must not take the folder for a part of this repository: it would leave out every file, and say nothing.
    environment = os.environ | {"GIT_CEILING_DIRECTORIES": str(folder.parent)}
    refused = []
    for patch in patches(root):
        done = subprocess.run(["git", "apply", "-C1", patch], cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            refused.append(f"{patch.relative_to(root)} does not apply:\n{done.stderr}")
    if refused:
        raise Failed("".join(refused))
    for name in {name for patch in patches(root) for name in touched(patch)}:
        (folder / name).write_text(f'#include "{HEADER}"\n' + (folder / name).read_text())


def copy(folder):
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        new = pathlib.Path(temporary).resolve()
        patched(ROOT, new)
        wanted = {p.relative_to(new) for p in new.rglob("*") if p.is_file()}
        for old in [p for p in folder.rglob("*") if p.is_file()]:
            name = old.relative_to(folder)
            if name not in wanted and name.parts[0] != "build":
                old.unlink()
        for name in sorted(wanted):
            source, target = new / name, folder / name
            if target.is_file() and target.read_bytes() == source.read_bytes():
                continue  # its time stays, so that only what changed is built
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)


def observed(record):
    """(step or None, what) of the first thing that a record found wrong."""
    reason = record["reason"]
    if record["verdict"] == "error":
        return None, f"error: {reason}"
    found = re.match(r"step (\d+): ((?:\w+ of )?[\w.]+)(?:[,:]| \()", reason)
    if found:
        copies = re.search(r": the copy on rank \d+ is ", reason)
        return int(found[1]), ("replica " if copies else "") + found[2]
    for name, form in record["forms"].items():
        if record["ledgers"].get(name) != form:
            return None, f"ledger {name}"
    return None, reason


def is_expected(record, expect):
    step, what = observed(record)
    return expect["verdict"] in ("any", record["verdict"]) and (
        record["verdict"] == "error" or expect["step"] in ("any", step)) and any(
        fnmatch.fnmatchcase(what, p) for p in expect["observable"])


class Suite:
    """Runs parts of a suite, the same for every fault: nothing in it is made for one."""

    def __init__(self, binary, options):
        self.binary = binary
        self.base = ["check", "--suite", options.suite, "--track", options.track]
        self.order = self.run(["--list"]).stdout.splitlines()
        self.parts = -(-len(self.order) // CASES_A_RUN)

    def run(self, arguments, fault=None):
        environment = {k: v for k, v in os.environ.items() if k != "SHARDPROOF_FAULT"} | (
            {"SHARDPROOF_FAULT": fault} if fault else {})
        return subprocess.run([self.binary, *self.base, *arguments], env=environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=RUN_SECONDS)

    def records(self, part, inject=None, fault=None):
        """Of one part, in the suite's order, and what the program said."""
        with tempfile.TemporaryDirectory() as folder:
            try:
                done = self.run(["--shard", f"{part}/{self.parts}", "--out", folder, "--overwrite",
                                 *(["--inject", inject] if inject else [])], fault)
            except subprocess.TimeoutExpired:
                raise Failed(f"no verdict within {RUN_SECONDS} s")
            file = pathlib.Path(folder) / "records.jsonl"
            if not file.is_file() or not file.read_text():
                raise Failed(f"exit code {done.returncode}, no records:\n{done.stderr}")
            found = [json.loads(line) for line in file.read_text().splitlines()]
        place = {line.rsplit("  # ", 1)[0]: at for at, line in enumerate(self.order)}
        return sorted(found, key=lambda r: place[r["case"]]), done.stderr

    def wrong(self, **fault):
        """The first case that is neither passed nor refused, or None; and whether a patched line ran."""
        reached = False
        for part in range(1, self.parts + 1):
            records, said = self.records(part, **fault)
            reached = reached or " reached\n" in said
            for record in records:
                if "inject" in fault and record["verdict"] == "skipped":
                    continue  # the case makes no such call
                reached = reached or "inject" in fault
                if record["verdict"] not in ("pass", "unsupported"):
                    return record, True
        return None, reached


def chosen(only):
    words = [w for w in (only or "").split(",") if w]
    planted = [f for f in faults() if "planted" in f]
    picked = [f for f in planted if not words or f["id"] in words or f["id"][0] in words]
    unknown = [w for w in words if not any(w in (f["id"], f["id"][0]) for f in planted)]
    if unknown:
        raise Failed(f"not planted: {', '.join(unknown)}")
    return picked


def kill_one(suite, entry):
    """(outcome, named, case, observable) of one planted fault."""
    planted = entry["planted"]
    try:
        record, reached = suite.wrong(**({"inject": planted["inject"]} if "inject" in planted else {"fault": entry["id"]}))
    except Failed as error:
        return "survived", "no", "-", f"the program itself failed: {error}"
    if record is None:
        return "survived", "no", "-", "every case passed" + ("" if reached else ", and none reached the patched line")
    step, what = observed(record)
    return ("caught", "yes" if is_expected(record, planted["expect"]) else "no", record["case"],
            (f"step {step}: " if step else "") + what.split("\n")[0])


def kill(options):
    entries = chosen(options.only)
    if not os.access(options.binary, os.X_OK):
        raise Failed(f"{options.binary} is not a program")
    suite = Suite(options.binary, options)
    if not suite.order:
        raise Failed(f"suite {options.suite} has no cases")
    start = time.monotonic()
    record, _ = suite.wrong()
    if record:
        raise Failed(f"without a fault: {record['verdict']}: {record['case']}: {record['reason']}")
    print(f"no fault chosen: {len(suite.order)} cases passed in {time.monotonic() - start:.0f} s\n")
    print(f"{'id':4} {'outcome':9} {'named':6} {'seconds':>7}  observable | case")
    bad = {"survived": 0, "misnamed": 0}
    for entry in entries:
        start = time.monotonic()
        outcome, named, case, what = kill_one(suite, entry)
        print(f"{entry['id']:4} {outcome:9} {named:6} {time.monotonic() - start:7.1f}  {what} | {case}", flush=True)
        bad["survived"] += outcome == "survived"
        bad["misnamed"] += outcome == "caught" and named == "no"
    print(f"\n{len(entries)} planted: {len(entries) - bad['survived']} caught, {bad['survived']} survived, "
          f"{bad['misnamed']} caught by another observable than expected")
    return 1 if any(bad.values()) else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("copy").add_argument("folder", type=pathlib.Path)
    kill_parser = commands.add_parser("kill")
    kill_parser.add_argument("binary", type=pathlib.Path)
    kill_parser.add_argument("--suite", default="conformance", metavar="NAME|FILE")
    kill_parser.add_argument("--only", metavar="ID,AREA,...", help="faults by id or by the letter of their area")
    kill_parser.add_argument("--track", default="exact")
    options = parser.parse_args()
    try:
        if options.command == "copy":
            copy(options.folder)
            return 0
        return kill(options)
    except Failed as error:
        print(error, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
