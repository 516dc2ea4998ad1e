# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Runs the command line in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path

COMMAND = (sys.executable, "-m", "carrier_storage")


def environment(directory: Path, **more: str) -> dict[str, str]:
    return {**os.environ, "TMPDIR": str(directory), "COLUMNS": "120", **more}


def run(
    directory: Path, *arguments: object, timeout: float = 120, **more: str
) -> subprocess.CompletedProcess:
    """With `directory` as the temporary directory."""
    return subprocess.run(
        [*COMMAND, *map(str, arguments)],
        capture_output=True, text=True, timeout=timeout, check=False, env=environment(directory, **more),
    )  # fmt: skip


def run_code(directory: Path, code: str, timeout: float = 120) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True, text=True, timeout=timeout, check=False, env=environment(directory),
    )  # fmt: skip


def tier(directory: Path, *arguments: object) -> dict:
    """A run that has to succeed and leave nothing: what it tells machines."""
    done = run(directory, "tier", "--json", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert leftovers(directory) == []
    return json.loads(done.stdout)


def refused(directory: Path, *arguments: object, **more: str) -> str:
    """A run that has to end as bad input, with one message and nothing left: the message."""
    done = run(directory, *arguments, **more)
    assert (done.returncode, done.stdout) == (2, ""), (done.stdout, done.stderr)
    assert "Traceback" not in done.stderr
    if directory.is_dir():
        assert leftovers(directory) == []
    return done.stderr


def leftovers(directory: Path) -> list[str]:
    return sorted(os.listdir(directory))
