# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Large allocations, and memory beyond the payload."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator

import carrier_storage as cs
import numpy as np

import machine
from children import child
from harness import Options, Row, timed

LARGEST = 64  # MiB beyond the payload
KINDS = ("CPU", "Generic", "FileBacked")


def _whole(size: int) -> Iterator[Row]:
    """One block of so many bytes."""

    def bare() -> tuple[int, int]:
        made = machine.call("fresh", size)
        assert made
        ctypes.memset(made, 1, size)
        return made, size

    def ours() -> cs.CPU:
        made = cs.CPU(size // 4)
        ctypes.memset(made.pointer(), 1, size)
        return made

    def zeros() -> np.ndarray:
        made = np.zeros(size // 4, np.float32)
        ctypes.memset(made.ctypes.data, 1, size)
        return made

    bare_run = timed(bare, keep=True, after=lambda _, kept: machine.call("drop", *kept))
    name = f"CPU({size >> 20} MiB)"
    yield Row(
        f"{name} returns",
        timed(lambda: cs.CPU(size // 4), keep=True),
        {"np.zeros": timed(lambda: np.zeros(size // 4, np.float32), keep=True)},
        at_most=1e-4,
        rounds=9,
    )
    yield Row(
        f"{name} returns, and is written whole",
        timed(ours, keep=True),
        {"np.zeros": timed(zeros, keep=True), "bare C": machine.control(bare_run)},
        {"np.zeros": 1.1},
        rounds=5,
    )


def rows(options: Options) -> Iterator[Row]:
    yield from _whole(options.pick(1 << 30, 1 << 20))
    jobs = [("evict", ""), ("promote", "")]
    jobs += [(source, kind) for source in ("buffer", "list") for kind in KINDS]
    for job, kind in jobs:
        said = f"{kind} from a {job}" if kind else job
        yield Row(
            f"peak beyond the payload: {said}, {options.mib} MiB",
            child("peak", job, kind, options.mib, key="mib"),
            {},
            at_most=LARGEST,
            rounds=3,
            unit="MiB",
            warm=False,
        )
