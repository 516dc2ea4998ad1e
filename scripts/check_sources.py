#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Keeps the house in order: each floor includes only those below it, and a licence line opens every source.

No Python.h outside src/python, no system calls outside src/os (see docs/architecture.md).
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Each floor with those it may include; dtype and layout stand side by side.
BELOW = {
    "os": set(),
    "storage": {"os"},
    "layout": {"os"},
    "dtype": {"os"},
    "carrier": {"os", "storage", "layout", "dtype"},
    "kinds": {"os", "storage", "layout", "dtype", "carrier"},
    "python": {"os", "storage", "layout", "dtype", "carrier", "kinds"},
}
# Not fcntl.h: its flags are what src/os takes.
SYSTEM = re.compile(r"^(unistd|dirent|poll|dlfcn|signal|sys/\w+|linux/\w+)\.h$")
PYTHON = re.compile(r"^(Python\.h|nanobind/)")
INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^">]+)[">]', re.MULTILINE)
LICENCE = "SPDX-License-Identifier: Apache-2.0"
SOURCES = {".hpp", ".cpp", ".mm", ".py", ".sh", ".cmake"}


def includes(path: Path) -> list[str]:
    return INCLUDE.findall(path.read_text(encoding="utf-8"))


def check_floor(floor: str, path: Path) -> list[str]:
    found = []
    for name in includes(path):
        other = name.split("/")[0]
        if (ROOT / "include" / name).exists() or name == "carrier/version.hpp":
            continue
        if other in BELOW and other != floor and other not in BELOW[floor]:
            found.append(f"{floor} is not above {other}, yet includes {name}")
        if PYTHON.match(name) and floor != "python":
            found.append(f"{name} belongs to src/python")
        loads_metal = floor == "kinds" and path.parent.name == "metal" and name == "dlfcn.h"
        if SYSTEM.match(name) and floor != "os" and not loads_metal:
            found.append(f"{name}: system calls belong to src/os")
    return found


def main() -> int:
    problems = []
    for folder in ("include", "src", "tests", "bench", "examples", "python", "scripts", "cmake"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix not in SOURCES or not path.is_file():
                continue
            if path.stat().st_size and LICENCE not in path.read_text(encoding="utf-8")[:300]:
                problems.append((path, "has no licence line"))
    for floor in BELOW:
        for path in sorted((ROOT / "src" / floor).rglob("*.[ch]pp")):
            problems += [(path, text) for text in check_floor(floor, path)]
    for path in sorted((ROOT / "include").rglob("*.hpp")):
        problems += [(path, f"{name} in a public header") for name in includes(path) if PYTHON.match(name)]
    for path, text in problems:
        print(f"{path.relative_to(ROOT)}: {text}", file=sys.stderr)
    return 1 if problems else 0


sys.exit(main())
