#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Checks the Markdown files: links lead somewhere, Python blocks parse, C++ programs compile.

Examples with `>>>` are run by `make test`. A C++ block with a `main` counts as a program.
"""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)


def anchors(text: str) -> set[str]:
    """The names that a forge gives to the headings of a page."""
    found = set()
    for title in HEADING.findall(FENCE.sub("", text)):
        plain = re.sub(r"[^\w\- ]", "", title.lower().replace("`", ""))
        found.add(plain.strip().replace(" ", "-"))
    return found


def check_links(page: Path, text: str) -> list[str]:
    problems = []
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))):
        if re.match(r"^[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists():
            problems.append(f"link to {target}: no such file")
        elif anchor and path.suffix == ".md" and anchor not in anchors(path.read_text(encoding="utf-8")):
            problems.append(f"link to {target}: no such heading")
    return problems


def check_python(block: str) -> list[str]:
    if ">>>" in block:
        return []
    try:
        ast.parse(block)
    except SyntaxError as error:
        return [f"Python block does not parse: {error}"]
    return []


def check_cxx(block: str) -> list[str]:
    if not re.search(r"\bmain\s*\(", block):
        return []
    command = [os.environ.get("CXX", "g++"), "-std=c++20", "-fsyntax-only", "-x", "c++"]
    command += [f"-I{ROOT / 'include'}", "-"]
    done = subprocess.run(command, input=block, capture_output=True, text=True, check=False)
    return [] if done.returncode == 0 else [f"C++ block does not compile:\n{done.stderr}"]


def main() -> int:
    status = 0
    for page in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]:
        text = page.read_text(encoding="utf-8")
        problems = check_links(page, text)
        for language, block in FENCE.findall(text):
            if language in ("python", "py"):
                problems += check_python(block)
            elif language in ("cpp", "c++"):
                problems += check_cxx(block)
        for problem in problems:
            print(f"{page.relative_to(ROOT)}: {problem}", file=sys.stderr)
            status = 1
    return status


sys.exit(main())
