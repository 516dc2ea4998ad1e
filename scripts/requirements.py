#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Prints what pyproject.toml requires, one a line: `requirements.py build test` for the build system and an extra."""

import sys
import tomllib
from pathlib import Path

# What a build without isolation needs besides its requirements: these are programs, so a frontend would fetch them.
TOOLS = ["cmake>=3.22", "ninja"]


def main() -> None:
    with (Path(__file__).parent.parent / "pyproject.toml").open("rb") as file:
        project = tomllib.load(file)
    for group in sys.argv[1:]:
        if group == "build":
            wanted = TOOLS + project["build-system"]["requires"]
        else:
            wanted = project["project"]["optional-dependencies"][group]
        print("\n".join(wanted))


main()
