# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`doctor`, `sessions`, `--version`, `--help`."""

import fcntl
import json
import os
import signal
import subprocess
import sys

import carrier_storage as cs
import pytest
from command_line import environment, leftovers, refused, run, run_code

HOLD = """
import sys
import carrier_storage as cs
c = cs.FileBacked(dtype=cs.DType.Int32)
c.grow(100_000)
c[99_999] = 1
print(c.path.parent, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(temp):
    """A process with a session."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(temp),
    )
    process.path = process.stdout.readline().strip()
    yield process
    process.kill()
    process.communicate()


def sessions(temp, *arguments):
    done = run(temp, "sessions", "--json", *arguments)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def kill(process):
    process.send_signal(signal.SIGKILL)
    process.wait()


def test_no_sessions(temp):
    assert sessions(temp) == (0, [])
    assert f"No sessions in {temp}" in run(temp, "sessions").stdout


def test_a_live_session(temp, holder):
    status, (seen,) = sessions(temp)
    assert status == 0
    assert (seen["state"], seen["pid"], seen["uid"], seen["files"]) == ("live", holder.pid, os.geteuid(), 1)
    assert seen["bytes"] >= 4096 and seen["path"] == holder.path
    assert "live" in run(temp, "sessions").stdout


def test_reaping_leaves_the_living(temp, holder):
    status, (seen,) = sessions(temp, "--reap")
    assert (status, seen["state"]) == (0, "live")
    assert os.path.isdir(holder.path)


def test_a_dead_session_is_told_and_reaped(temp, holder):
    kill(holder)
    _, (seen,) = sessions(temp)
    assert (seen["state"], seen["pid"]) == ("dead", holder.pid)
    assert os.path.isdir(holder.path)
    text = run(temp, "sessions").stdout
    assert "dead" in text and "--reap" in text
    done = run(temp, "sessions", "--reap")
    assert done.returncode == 0 and "Removed 1" in done.stdout
    assert leftovers(temp) == []


def test_what_holds_more_than_files_is_left(temp, holder):
    kill(holder)
    os.mkdir(f"{holder.path}/folder")
    status, (seen,) = sessions(temp, "--reap")
    assert (status, seen["state"]) == (1, "left") and seen["reason"]
    assert os.path.isdir(f"{holder.path}/folder")


def test_links_and_strangers_are_left(temp, tmp_path):
    target = tmp_path / "target"
    target.mkdir()
    (target / "precious").touch()
    (temp / ".carrier-storage-1-aaaa").symlink_to(target)
    (temp / ".carrier-storage-2-bbbb").touch()
    (temp / ".carrier-storage-x-cccc").mkdir()
    (temp / "carrier-storage-3-dddd").mkdir()
    status, seen = sessions(temp, "--reap")
    assert (status, [s["state"] for s in seen]) == (0, ["unknown", "unknown"])
    assert (target / "precious").exists() and len(leftovers(temp)) == 4


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a directory of another user")
def test_another_users_session_is_left(temp):
    other = temp / ".carrier-storage-1-aaaa"
    other.mkdir()
    os.chown(other, 65534, 65534)
    status, (seen,) = sessions(temp, "--reap")
    assert (status, seen["state"], seen["uid"]) == (0, "dead", 65534)
    assert other.is_dir()


def test_a_lock_of_anybody_keeps_a_session(temp):
    folder = temp / ".carrier-storage-1-aaaa"
    folder.mkdir()
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_SH)
        _, (seen,) = sessions(temp, "--reap")
    finally:
        os.close(lock)
    assert seen["state"] == "live" and folder.is_dir()


def test_doctor(temp):
    done = run(temp, "doctor")
    assert (done.returncode, done.stderr) == (0, "")
    assert leftovers(temp) == []
    for text in (
        sys.version.split()[0],
        cs.__version__,
        str(temp),
        "huge pages",
        "file system",
        "direct I/O",
    ):
        assert text in done.stdout
    report = json.loads(run(temp, "doctor", "--json").stdout)
    assert report["temporary directory"] == str(temp) and report["file tier"] == "works"
    assert report["Metal"].startswith(("available", "not available: "))


@pytest.mark.skipif(sys.platform == "darwin", reason="there may be Metal on this system")
def test_doctor_says_why_there_is_no_metal(temp):
    with pytest.raises(RuntimeError) as error:
        cs.Metal(1)
    assert f"not available: {error.value}" in run(temp, "doctor").stdout


def test_doctor_without_a_temporary_directory(tmp_path):
    done = run(tmp_path / "missing", "doctor")
    assert (done.returncode, done.stderr) == (1, "")
    assert "unusable" in done.stdout and "Metal" in done.stdout


@pytest.mark.parametrize("command", ["doctor", "sessions"])
def test_tools_need_no_other_package(temp, command):
    code = f"""
import sys
for name in ("numpy", "rich", "safetensors", "matplotlib"):
    sys.modules[name] = None
from carrier_storage.cli.app import main
sys.exit(main([{command!r}]))
"""
    done = run_code(temp, code)
    assert (done.returncode, done.stderr) == (0, "")


def test_sessions_in_a_place_that_is_not_there(tmp_path):
    assert "TMPDIR" in refused(tmp_path / "missing", "sessions")


def test_version_and_help(temp):
    done = run(temp, "--version")
    assert (done.returncode, done.stdout) == (0, f"carrier-storage {cs.__version__}\n")
    for arguments in (["--help"], ["tier", "--help"], ["doctor", "--help"], ["sessions", "--help"]):
        done = run(temp, *arguments)
        assert done.returncode == 0 and "usage: python -m carrier_storage" in done.stdout
    assert "Examples:" in run(temp, "tier", "--help").stdout
