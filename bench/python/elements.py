# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Single slots, small carriers, iteration."""

from __future__ import annotations

import array
import os
from collections.abc import Callable, Iterator

import carrier_storage as cs
import numpy as np

from harness import Contender, Row

F32, I32, BOOL = cs.DType.Float32, cs.DType.Int32, cs.DType.Bool
N = 10_000


def _reader(c: object) -> Callable[[], None]:
    def run() -> None:
        for _ in range(N):
            c[7]

    return run


def _writer(c: object, value: object) -> Callable[[], None]:
    def run() -> None:
        for _ in range(N):
            c[7] = value

    return run


def _nothing() -> None:
    for _ in range(N):
        pass


def rows() -> Iterator[Row]:
    plain = array.array("f", [1.5] * 64)
    ndarray = np.ones(64, np.float32)
    cpu = cs.CPU(64)
    kinds = {
        "CPU": cpu,
        "Generic": cs.Generic([0.0] * 64, dtype=F32),
        "Evictable": cs.Evictable(cs.CPU(64), cs.FileBacked(dtype=F32)),
    }
    for name, c in kinds.items():
        read = {"array": Contender(_reader(plain)), "numpy": Contender(_reader(ndarray))}
        write = {"array": Contender(_writer(plain, 2.5)), "numpy": Contender(_writer(ndarray, 2.5))}
        read_limits, write_limits = {"array": 0.7, "numpy": 0.5}, {"array": 0.45, "numpy": 0.4}
        if name != "CPU":
            read["CPU"], write["CPU"] = Contender(_reader(cpu)), Contender(_writer(cpu, 2.5))
            read_limits["CPU"] = write_limits["CPU"] = 1.1
        yield Row(f"{name} c[i]", Contender(_reader(c)), read, read_limits, per=N)
        yield Row(f"{name} c[i] = v", Contender(_writer(c, 2.5)), write, write_limits, per=N)
    file = cs.FileBacked(dtype=F32).allocate_like(64)
    fd = os.open(file.path, os.O_RDWR)
    packed = b"\0\0\0\0"

    def pread() -> None:
        for _ in range(N):
            os.pread(fd, 4, 28)

    def pwrite() -> None:
        for _ in range(N):
            os.pwrite(fd, packed, 28)

    yield Row(
        "FileBacked c[i]", Contender(_reader(file)), {"os.pread": Contender(pread)}, {"os.pread": 1.2}, per=N
    )
    yield Row(
        "FileBacked c[i] = v",
        Contender(_writer(file, 2.5)),
        {"os.pwrite": Contender(pwrite)},
        {"os.pwrite": 1.2},
        per=N,
    )
    os.close(fd)
    big, wide = cs.CPU(0).new_like(range(100_000)), array.array("f", range(100_000))

    def walk(c: object) -> Callable[[], None]:
        def run() -> None:
            for _ in c:
                pass

        return run

    yield Row(
        "for x in c", Contender(walk(big)), {"array": Contender(walk(wide))}, {"array": 1.0}, per=100_000
    )
    yield from _small()


def _small() -> Iterator[Row]:
    def repeat(make: Callable[[], object]) -> Callable[[], None]:
        def run() -> None:
            for _ in range(1000):
                make()

        return run

    yield Row(
        "CPU(16) made and dropped",
        Contender(repeat(lambda: cs.CPU(16))),
        {
            "np.zeros": Contender(repeat(lambda: np.zeros(16, np.float32))),
            "array": Contender(repeat(lambda: array.array("f", bytes(64)))),
        },
        {"np.zeros": 0.6},
        per=1000,
    )
    yield Row(
        "Evictable(CPU(16), CPU(1))",
        Contender(repeat(lambda: cs.Evictable(cs.CPU(16), cs.CPU(1)))),
        {"two CPU": Contender(repeat(lambda: (cs.CPU(16), cs.CPU(1))))},
        {"two CPU": 3.0},
        per=1000,
    )
    folder = cs.FileBacked(dtype=F32)
    path = str(folder.path) + ".bench"

    def open_unlink() -> None:
        for _ in range(200):
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            os.unlink(path)
            os.close(fd)

    def hierarchy() -> None:
        for _ in range(200):
            cs.Evictable(cs.CPU(16), cs.FileBacked(dtype=F32))

    yield Row(
        "Evictable(CPU(16), FileBacked())",
        Contender(hierarchy),
        {"open + unlink": Contender(open_unlink)},
        {"open + unlink": 1.5},
        per=200,
    )
