# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""One slot at a time, and iteration."""

from __future__ import annotations

import array
import os
from collections.abc import Iterator

import carrier_storage as cs
import numpy as np

from dtypes import ALL, FLOAT, Peers, below
from harness import Options, Row, net, timed

READ, WRITE = "c[7]", "c[7] = v"
LIMITS = {READ: {"array": 0.7, "numpy": 0.5}, WRITE: {"array": 0.45, "numpy": 0.4}}
KINDS = {
    "CPU": lambda values, dtype: cs.CPU(0, dtype=dtype).new_like(values),
    "Generic": lambda values, dtype: cs.Generic(values, dtype=dtype),
    "Evictable": lambda values, dtype: cs.Evictable(cs.CPU(0, dtype=dtype).new_like(values), below(dtype)),
}


def _slots(peers: Peers) -> Iterator[Row]:
    values = [peers.sample] * 64
    carriers = {kind: make(values, peers.dtype) for kind, make in KINDS.items()}
    others = {"array": array.array(peers.code, values), "numpy": np.array(values, peers.numpy)}
    for statement, limits in LIMITS.items():
        for kind, carrier in carriers.items():
            rivals = others if kind == "CPU" else {**others, "CPU": carriers["CPU"]}
            yield Row(
                f"{kind} {statement} of {peers.name}",
                net(statement, c=carrier, v=peers.sample),
                {name: net(statement, c=rival, v=peers.sample) for name, rival in rivals.items()},
                limits if kind == "CPU" else {**limits, "CPU": 1.1},
                rounds=25,
            )


def _file_slots() -> Iterator[Row]:
    file = cs.FileBacked(dtype=FLOAT.dtype).allocate_like(64)
    fd = os.open(file.path, os.O_RDWR)
    try:
        for statement, call, last in ((READ, os.pread, 4), (WRITE, os.pwrite, b"\0\0\0\0")):
            name = f"os.{call.__name__}"
            yield Row(
                f"FileBacked {statement}",
                net(statement, loops=50, c=file, v=FLOAT.sample),
                {name: net("f(fd, last, 28)", loops=50, f=call, fd=fd, last=last)},
                {name: 1.2},
            )
    finally:
        os.close(fd)


def _walk(values: object) -> None:
    for _ in values:  # type: ignore[attr-defined]
        pass


def _iteration(count: int) -> Iterator[Row]:
    for peers in ALL:
        values = peers.values(count)
        for kind, make in KINDS.items():
            carrier, rival = make(values, peers.dtype), array.array(peers.code, values)
            yield Row(
                f"for x in {kind} of {peers.name}",
                timed(lambda c=carrier: _walk(c), per=count),
                {"array": timed(lambda c=rival: _walk(c), per=count)},
                {"array": 1.0},
            )


def rows(options: Options) -> Iterator[Row]:
    for peers in ALL:
        yield from _slots(peers)
    yield from _file_slots()
    yield from _iteration(options.pick(100_000, 100))
