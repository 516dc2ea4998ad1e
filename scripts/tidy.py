#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Runs clang-tidy over src. Usage: tidy.py CLANG_TIDY BUILD JOBS; BUILD holds compile_commands.json.

Most of its time goes into the standard library's headers. So sources that share no local name are looked at joined
to one; only where something is found are they looked at alone, and what is found then counts.
"""

import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
JOINED = 10  # sources at most
# The analyzer's search of a function ends after so many states (by default 225,000).
ANALYZER = ["-Xclang", "-analyzer-config", "-Xclang", "max-nodes=20000"]
# At the beginning of a line: names that two sources may both have (of unnamed namespaces, macros, aliases).
LOCAL = re.compile(
    r"^(?:#\s*define|(?:struct|class|enum(?: class)?|namespace|using))\s+(\w+)|^\w[^;(={\n]*?\b(\w+)\s*[({=;]",
    re.M,
)
FLAG = re.compile(r"^-(?:I|D|isystem|std|m|f(?!lto|fat|no-fat))")


def flags(command: str) -> tuple[str, ...]:
    """What of a compiler's command decides what the source means."""
    words = iter(command.split())
    kept = []
    for word in words:
        if word == "-isystem":
            kept += [word, next(words)]
        elif FLAG.match(word):
            kept.append(word.replace('\\"', '"'))
    return tuple(kept)


def local_names(path: Path) -> set[str]:
    return {a or b for a, b in LOCAL.findall(path.read_text(encoding="utf-8"))} - {"carrier", "python", "nb"}


def join(sources: list[Path]) -> list[list[Path]]:
    """Groups without a local name in common."""
    groups: list[tuple[list[Path], set[str]]] = []
    for path in sources:
        names = local_names(path)
        for group, taken in groups:
            if len(group) < JOINED and not names & taken:
                group.append(path)
                taken |= names
                break
        else:
            groups.append(([path], names))
    return [group for group, _ in groups]


def tidy(program: str, path: Path, options: tuple[str, ...]) -> tuple[int, str]:
    command = [
        program,
        "--quiet",
        f"--config-file={ROOT / '.clang-tidy'}",
        "--warnings-as-errors=*",
        str(path),
    ]
    done = subprocess.run(
        [*command, "--", *options, *ANALYZER], capture_output=True, text=True, check=False, cwd=ROOT
    )
    return done.returncode, done.stdout + (done.stderr if done.returncode else "")


def main(program: str, build: Path, jobs: int) -> int:
    by_flags: dict[tuple, list[Path]] = {}
    for entry in json.loads((build / "compile_commands.json").read_text(encoding="utf-8")):
        path = Path(entry["file"])
        if ROOT / "src" in path.parents and path.suffix == ".cpp":
            by_flags.setdefault((path.parent, flags(entry["command"])), []).append(path)
    units = build / "joined"
    units.mkdir(exist_ok=True)

    def look(number: int, options: tuple[str, ...], group: list[Path]) -> list[str]:
        if len(group) > 1:
            unit = units / f"{group[0].parent.name}{number}.cpp"
            unit.write_text("".join(path.read_text(encoding="utf-8") for path in group), encoding="utf-8")
            status, _ = tidy(program, unit, options)
            if status == 0:
                return []
        found = []
        for path in group:
            status, text = tidy(program, path, options)
            if status != 0:
                found.append(text)
        return found

    work = [(options, group) for (_, options), sources in by_flags.items() for group in join(sorted(sources))]
    if not work:
        print(f"tidy.py: {build} compiles nothing of src", file=sys.stderr)
        return 2
    work.sort(key=lambda item: -sum(path.stat().st_size for path in item[1]))
    with ThreadPoolExecutor(jobs) as pool:
        found = [
            text
            for texts in pool.map(lambda item: look(item[0], *item[1]), enumerate(work))
            for text in texts
        ]
    for text in found:
        print(text)
    sources = sum(len(group) for _, group in work)
    print(f"clang-tidy: {sources} sources in {len(work)} units, findings in {len(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(
        main(
            sys.argv[1],
            Path(sys.argv[2]).resolve(),
            int(sys.argv[3]) if len(sys.argv) > 3 else os.cpu_count() or 1,
        )
    )
