#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Prints what pyproject.toml requires, one a line: `requirements.py build test` for build and an extra."""

import sys
import tomllib
from pathlib import Path

# Programs that a build frontend would fetch by itself.
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
