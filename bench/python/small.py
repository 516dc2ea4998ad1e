# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Small carriers, many carriers, and what the package itself costs."""

from __future__ import annotations

import array
import os
from collections.abc import Iterator

import carrier_storage as cs
import numpy as np

from children import child
from dtypes import FLOAT
from harness import Options, Row, net
from machine import control
from scratch import Folder


def _made_and_dropped() -> Iterator[Row]:
    yield Row(
        "CPU(16) made and dropped",
        net("CPU(16)", CPU=cs.CPU),
        {
            "np.zeros": net("zeros(16, f4)", zeros=np.zeros, f4=np.float32),
            "array": net("array('f', zero)", array=array.array, zero=bytes(64)),
        },
        {"np.zeros": 0.6},
        rounds=25,
    )
    names = {"Evictable": cs.Evictable, "CPU": cs.CPU}
    yield Row(
        "Evictable(CPU(16), CPU(1))",
        net("Evictable(CPU(16), CPU(1))", **names),
        {"two CPU": net("CPU(16); CPU(1)", CPU=cs.CPU)},
        {"two CPU": 3.0},
        rounds=25,
    )
    with Folder() as folder:
        bare = "fd = open(path, flags, 0o600); unlink(path); close(fd)"
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
        yield Row(
            "Evictable(CPU(16), FileBacked())",
            net(
                "Evictable(CPU(16), File(dtype=f4))", loops=20, **names, File=cs.FileBacked, f4=FLOAT.dtype
            ),
            {
                "open + unlink": net(
                    bare, loops=20, open=os.open, unlink=os.unlink, close=os.close,
                    path=folder.fresh(), flags=flags, fd=0,
                )
            },
            {"open + unlink": 1.5},
        )  # fmt: skip


def _many(options: Options) -> Iterator[Row]:
    count, rounds = options.pick(1_000_000, 1000), 3
    for what, key, unit, limit in (
        ("time each", "seconds", "s", 0.6),
        ("resident bytes each", "bytes", "B", 1.0),
    ):
        yield Row(
            f"{count:,} CPU(16) live: {what}",
            child("live", "carriers", count, key=key),
            {"np.zeros": child("live", "zeros", count, key=key)},
            {"np.zeros": limit},
            rounds=rounds,
            unit=unit,
            warm=False,
        )
    count = options.pick(10_000, 300)
    for what, limit in (("made", 1.2), ("released", 1.0)):
        ways = {way: child("files", count, key=f"{what} {way}") for way in ("carriers", "control", "python")}
        bare = control(ways["control"])
        yield Row(
            f"{count:,} FileBacked under 256 descriptors: {what}",
            ways["carriers"],
            {"bare C": bare, "from Python": ways["python"]},
            {"bare C" if bare else "from Python": limit},
            rounds=1,
            warm=False,
        )


def rows(options: Options) -> Iterator[Row]:
    yield from _made_and_dropped()
    yield from _many(options)
    yield Row(
        "import: CPU time",
        child("imports", "carrier_storage", key="seconds"),
        {"numpy": child("imports", "numpy", key="seconds")},
        {"numpy": 0.3},
        rounds=9,
    )
