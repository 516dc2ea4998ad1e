# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Ends that nobody planned: Ctrl-C, a polite kill, a reader that goes away. Nothing stays behind."""

import os
import signal
import subprocess
import sys
import time

import pytest
from command_line import COMMAND, environment, leftovers


def start(temp, *arguments):
    command = [*COMMAND, "tier", "--size", "8MiB", "--budget", "1MiB", "--passes", "99999", *arguments]
    return subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment(temp)
    )


def wait_for_files(temp, process):
    """Until values are on their way."""
    deadline = time.monotonic() + 60
    while not any(
        os.scandir(folder.path) for folder in os.scandir(temp) if not folder.name.startswith(".carrier-new")
    ):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("delay", [0, 0.3, 1])
def test_ctrl_c(temp, tmp_path, delay):
    process = start(temp, "--plot", tmp_path / "a.png")
    wait_for_files(temp, process)
    time.sleep(delay)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, "", "Interrupted.\n")
    assert leftovers(temp) == [] and leftovers(tmp_path) == ["temp"]


def test_a_polite_kill(temp):
    process = start(temp)
    wait_for_files(temp, process)
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (128 + signal.SIGTERM, "", "")
    assert leftovers(temp) == []


def test_a_reader_that_goes_away(temp):
    command = f"'{sys.executable}' -m carrier_storage tier --size 64KiB | true"
    done = subprocess.run(
        ["bash", "-c", command], capture_output=True, text=True, check=False, env=environment(temp)
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert leftovers(temp) == []
