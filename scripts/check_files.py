#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What every file of the project keeps to. Prints every breach and fails if there is one.

    scripts/check_files.py [ROOT]

First line: the license. Length: at most 800 lines; a folder's README at most 40, and every folder has one. Nothing
names a place on one machine or a host other than the few that are cited. No block of more than 12 lines stands, but for
its names and white space, both in reference/ and in kernels/ or impl/: the oracle is written from its definition, not
from what it judges.
"""
import os
import pathlib
import re
import sys

import rules

LICENSE = "SPDX-License-Identifier: Apache-2.0"
LICENSED = {".hpp", ".cpp", ".h", ".cu", ".cuh", ".py", ".sh", ".cmake", ".in"}
TEXTS = LICENSED | {".md", ".json", ".txt"}
SKIPPED = {".git", "build", "runs", "__pycache__", "shared"}
PARTS = {"cmake", "testing", "tests", "commands", "faults", "manifests", "include", "machine"}  # explained by the README one folder up
LONGEST_FILE, LONGEST_README, LONGEST_TWIN = 800, 40, 12

MACHINE_PATH = re.compile(r"(?<![\w.$}])(?:/(?:work|root|home|Users|mnt|scratch)/|\.\./shared\b)")
URL_HOST = re.compile(r"https?://([^/\s\"'<>)]+)")
CITED_HOSTS = {"www.apache.org", "arxiv.org", "doi.org", "json-schema.org", "github.com",
               "www.w3.org"}  # the namespace of SVG
SERVER = re.compile(r"\b(?:deb|pypi|files|registry|proxy|index|mirror|security|archive|ports|ppa)\.[\w.-]+\.(?:org|com|io|net)\b")

COMMENT = re.compile(r"//.*")
IGNORED = re.compile(r"^(?:#.*|[{}();,]*|namespace.*|using .*|\}.*namespace.*|public:|private:|break;|default:.*)$")
TOKEN = re.compile(r'"[^"]*"|[A-Za-z_]\w*|\d[\w.]*|\S')
KEPT_WORDS = {"for", "if", "else", "while", "return", "const", "auto", "double", "float", "int", "template", "switch",
              "case", "struct", "class", "void", "bool", "static", "constexpr"}


def files_of(root):
    for folder, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED)
        for name in sorted(names):
            yield pathlib.Path(folder) / name


def line_breaches(path, lines):
    for number, line in enumerate(lines, 1):
        if MACHINE_PATH.search(line):
            yield f"{path}:{number}: names a place on one machine"
        for host in URL_HOST.findall(line):
            if host not in CITED_HOSTS:
                yield f"{path}:{number}: names the host {host}"
        if SERVER.search(line):
            yield f"{path}:{number}: names the host {SERVER.search(line).group()}"


def file_breaches(root):
    for file in files_of(root):
        path = file.relative_to(root).as_posix()
        if file.suffix not in TEXTS and file.parent.name != ".ci":
            continue
        lines = file.read_text(encoding="utf-8").splitlines()
        is_licensed = file.suffix in LICENSED or file.name == "CMakeLists.txt" or file.parent.name == ".ci"
        head = lines[1:2] if lines and lines[0].startswith("#!") else lines[:1]
        if is_licensed and not any(line.endswith(LICENSE) for line in head):
            yield f"{path}:1: the first line is not '{LICENSE}'"
        if len(lines) > LONGEST_FILE:
            yield f"{path}: {len(lines)} lines, over {LONGEST_FILE}"
        if file.name == "README.md" and file.parent != root and len(lines) > LONGEST_README:
            yield f"{path}: {len(lines)} lines, over {LONGEST_README}"
        yield from line_breaches(path, lines)


def folder_breaches(root):
    folders = {f.parent for f in files_of(root) if f.suffix in TEXTS}
    for folder in sorted(folders | {p for f in folders for p in f.parents if root in p.parents}):
        path = folder.relative_to(root).as_posix()
        if folder.name not in PARTS and not path.startswith(".") and not (folder / "README.md").is_file():
            yield f"{path}/: no README.md"


def code_lines(file):
    """(line number, text) without comments, white space and lines that say nothing."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        text = COMMENT.sub("", line).strip()
        if not IGNORED.match(text):
            yield number, text


def fingerprints(file):
    """Every window of LONGEST_TWIN + 1 lines, its names replaced by the order of their first appearance."""
    lines = list(code_lines(file))
    size = LONGEST_TWIN + 1
    for start in range(len(lines) - size + 1):
        names = {}
        window = []
        for _, text in lines[start:start + size]:
            window.append(" ".join(
                str(names.setdefault(t, f"n{len(names)}")) if (t[0].isalpha() or t[0] == "_") and t not in KEPT_WORDS else t
                for t in TOKEN.findall(text)))
        yield hash(tuple(window)), lines[start][0]


def twin_breaches(root):
    def sources(folder):
        return (f for f in files_of(root / folder)
                if f.suffix in {".hpp", ".cpp", ".cu", ".cuh"} and not f.stem.endswith("_test"))
    oracle = {print_: (file, line) for file in sources("reference") for print_, line in fingerprints(file)}
    for folder in ("kernels", "impl"):
        for file in sources(folder):
            for print_, line in fingerprints(file):
                if print_ in oracle:
                    other, other_line = oracle[print_]
                    yield (f"{file.relative_to(root).as_posix()}:{line}: the same {LONGEST_TWIN + 1} lines as "
                           f"{other.relative_to(root).as_posix()}:{other_line}")
                    break


def breaches(root):
    yield from file_breaches(root)
    yield from folder_breaches(root)
    yield from twin_breaches(root)


if __name__ == "__main__":
    sys.exit(rules.report(breaches, "files keep to the rules"))
