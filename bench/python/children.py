# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Jobs that each need a process of their own: memory, limits, imports. Run as ``children.py JOB ARGUMENT...``.

Each job prints its figures as JSON. What it needs is imported inside it, so that a job's memory is its own.
"""

from __future__ import annotations

import array
import importlib
import itertools
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from carrier_storage import FileBacked

MIB = 1 << 20


# What the runs of each command gave: rows about different figures of one job share its runs, in their order.
_runs: dict[tuple[str, ...], list[dict[str, float]]] = {}


def child(job: str, *arguments: object, key: str) -> Callable[[], float]:
    """A contender: runs the job in a fresh process and takes one of its figures."""
    command = (sys.executable, __file__, job, *map(str, arguments))
    runs, turns = _runs.setdefault(command, []), itertools.count()

    def sample() -> float:
        turn = next(turns)
        if turn == len(runs):
            runs.append(_run(command))
        return runs[turn][key]

    return sample


def _run(command: tuple[str, ...]) -> dict[str, float]:
    with tempfile.TemporaryDirectory(
        prefix="carrier-bench-"
    ) as folder:  # what a killed process leaves goes with it
        here = {**os.environ, "TMPDIR": folder}
        done = subprocess.run(command, check=False, capture_output=True, text=True, env=here)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr}")
    figures = json.loads(done.stdout)
    if "unavailable" in figures:
        from harness import UnavailableError

        raise UnavailableError(figures["unavailable"])
    return figures


def _status(field: str) -> int:
    """A field of /proc/self/status that is in KiB, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    raise KeyError(field)


def live(kind: str, count: str) -> dict[str, float]:
    """So many of 16 float32 slots at once: seconds and resident bytes each."""
    if kind == "carriers":
        from carrier_storage import CPU

        def make(turns: range) -> list:
            return [CPU(16) for _ in turns]
    else:
        from numpy import float32, zeros

        def make(turns: range) -> list:
            return [zeros(16, float32) for _ in turns]

    make(range(1))
    turns, before = range(int(count)), _status("VmRSS")
    begin = time.perf_counter()
    kept = make(turns)
    seconds, after = time.perf_counter() - begin, _status("VmRSS")
    return {"seconds": seconds / len(kept), "bytes": (after - before) / len(kept)}


def files(count: str) -> dict[str, float]:
    """So many files of 64 bytes while a process may have 256 open: seconds each to make and to remove them.

    The ways take turns in one folder, a part of the files each, and nothing is removed before everything is made: a
    file system looks long for room where files have just gone, and whoever comes first would pay for all.
    """
    import carrier_storage as cs

    import machine

    parts = [range(at, at + PART) for at in range(0, int(count), PART)]
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, most))
    ways = {"carriers": _carriers, "control": _control, "python": _python}
    if not machine.control(lambda: 0.0):
        del ways["control"]
    took: dict[str, list[float]] = {}
    prototype = cs.FileBacked(dtype=cs.DType.Float32)
    pairs = {way: job(prototype) for way, job in ways.items()}
    for step, what in enumerate(("made", "released")):
        for part in parts:
            for way in random.sample(list(ways), len(ways)):
                begin = time.perf_counter()
                pairs[way][step](part)
                took.setdefault(f"{what} {way}", []).append(time.perf_counter() - begin)
    return {name: statistics.median(times) / PART for name, times in took.items()}


PART = 100
Pair = tuple[Callable[[range], object], Callable[[range], object]]


def _carriers(prototype: FileBacked) -> Pair:
    values, kept = array.array("f", bytes(64)), []

    def make(part: range) -> None:
        for _ in part:
            kept.append(prototype.new_like(values))

    def remove(part: range) -> None:
        for i in part:
            kept[i].release()

    return make, remove


def _control(prototype: FileBacked) -> Pair:
    import machine

    folder = prototype.path.parent

    def make(part: range) -> None:
        machine.checked(machine.call("make_files", folder, part.start, part.stop), "bare C")

    def remove(part: range) -> None:
        machine.call("remove_files", folder, part.start, part.stop)

    return make, remove


def _python(prototype: FileBacked) -> Pair:
    slots, flags = bytes(64), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    at = os.open(prototype.path.parent, os.O_RDONLY)

    def make(part: range) -> None:
        for i in part:
            fd = os.open(f"python-{i}", flags, 0o600, dir_fd=at)
            os.fstat(fd)
            os.pwrite(fd, slots, 0)
            os.close(fd)

    def remove(part: range) -> None:
        for i in part:
            os.unlink(f"python-{i}", dir_fd=at)

    return make, remove


def imports(name: str) -> dict[str, float]:
    """User and system time of one import, on all threads."""
    begin = time.process_time()
    importlib.import_module(name)
    return {"seconds": time.process_time() - begin}


def peak(job: str, kind: str, mib: str) -> dict[str, float | str]:
    """Memory at its highest during one call, less what there was before and less the result's payload, in MiB.

    Read from VmHWM, which is set back to VmRSS just before the call.
    """
    size = int(mib) * MIB
    call, payload = {"evict": _evict, "promote": _promote, "buffer": _buffer, "list": _list}[job](kind, size)
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError as why:
        return {"unavailable": f"the highest memory use cannot be set back: {why}"}
    before = _status("VmRSS")
    kept = call()
    beyond = _status("VmHWM") - before - payload
    del kept
    return {"mib": max(beyond, 0) / MIB}


Job = tuple[Callable[[], object], int]


def _hierarchy(size: int):
    import carrier_storage as cs

    primary = cs.CPU(size // 4)
    primary.fill(1.5)
    return cs.Evictable(primary, cs.FileBacked(dtype=cs.DType.Float32))


def _evict(_: str, size: int) -> Job:
    return _hierarchy(size).evict, 0


def _promote(_: str, size: int) -> Job:
    made = _hierarchy(size)
    made.evict()
    return made.promote, size


def _maker(kind: str, size: int) -> tuple[Callable[[object], object], int]:
    """What makes a carrier of the kind from values, and how much of it lies in memory."""
    import carrier_storage as cs

    dtype = cs.DType.Float32
    if kind == "Generic":
        return lambda values: cs.Generic(values, dtype=dtype), size
    if kind == "CPU":
        return cs.CPU(0).new_like, size
    return cs.FileBacked(dtype=dtype).new_like, 0


def _buffer(kind: str, size: int) -> Job:
    make, payload = _maker(kind, size)
    values = array.array("d", [1.5]) * (size // 4)
    return lambda: make(values), payload


def _list(kind: str, size: int) -> Job:
    make, payload = _maker(kind, size)
    values = [0.5, 1.5, 2.5, 3.5] * (size // 16)
    return lambda: make(values), payload


JOBS = {job.__name__: job for job in (live, files, imports, peak)}

if __name__ == "__main__":
    print(json.dumps(JOBS[sys.argv[1]](*sys.argv[2:])))
