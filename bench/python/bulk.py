# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Values in bulk: lists, ranges, generators, buffers, allocation."""

from __future__ import annotations

import array
import random
from collections.abc import Callable, Iterator

import carrier_storage as cs
import numpy as np

from harness import Contender, Row

F32, I32, BOOL = cs.DType.Float32, cs.DType.Int32, cs.DType.Bool
N = 1_000_000

# A rival's call, and the largest ratio to it that is the target (None: no target).
Rival = tuple[Callable[[], object], float | None]


def _row(name: str, ours: Callable[[], object], per: float, rounds: int, **rivals: Rival) -> Row:
    named = {rival.replace("np_", "np."): pair for rival, pair in rivals.items()}
    return Row(
        name,
        Contender(ours),
        {rival: Contender(run) for rival, (run, _) in named.items()},
        {rival: limit for rival, (_, limit) in named.items() if limit is not None},
        per=per,
        rounds=rounds,
    )


def rows() -> Iterator[Row]:
    rng = random.Random(1)
    floats = [rng.random() for _ in range(N)]
    ints = [rng.randrange(-(2**31), 2**31) for _ in range(N)]
    bools = [rng.random() < 0.5 for _ in range(N)]
    lists = {
        "float": (F32, floats, {"array": (lambda: array.array("f", floats), 0.25)}, np.float32, 0.2),
        "int": (I32, ints, {"array": (lambda: array.array("i", ints), 0.25)}, np.int32, 0.2),
        "bool": (BOOL, bools, {}, np.bool_, 0.06),
    }
    makers = {
        "CPU": lambda values, dtype: cs.CPU(0, dtype=dtype).new_like(values),
        "Generic": lambda values, dtype: cs.Generic(values, dtype=dtype),
    }
    for kind, make in makers.items():
        for name, (dtype, values, rivals, numpy_type, limit) in lists.items():

            def ours(make=make, values=values, dtype=dtype) -> object:
                return make(values, dtype)

            def numpys(values=values, numpy_type=numpy_type) -> object:
                return np.array(values, numpy_type)

            yield _row(f"{kind} from a list of {name}", ours, N, 7, **rivals, np_array=(numpys, limit))
    cpu_f, cpu_i = cs.CPU(0), cs.CPU(0, dtype=I32)
    f8 = np.random.default_rng(1).random(8 * N)
    f4, i8 = f8.astype(np.float32), (f8 * 1e6).astype(np.int64)
    gib = 2**28
    yield from (
        _row(
            "CPU from a generator",
            lambda: cpu_f.new_like(x for x in floats),
            N,
            5,
            np_fromiter=(lambda: np.fromiter((x for x in floats), np.float32), 0.7),
        ),
        _row(
            "CPU from a range",
            lambda: cpu_i.new_like(range(N)),
            N,
            5,
            np_fromiter=(lambda: np.fromiter(range(N), np.int32), 0.5),
        ),
        _row(
            "CPU from float64, rounded",
            lambda: cpu_f.new_like(f8),
            8 * N,
            15,
            astype=(lambda: f8.astype(np.float32), 1.05),
        ),
        _row(
            "CPU from int64, range-checked",
            lambda: cpu_i.new_like(i8),
            8 * N,
            15,
            astype=(lambda: i8.astype(np.int32), 1.05),
        ),
        _row("CPU from float32", lambda: cpu_f.new_like(f4), 8 * N, 15, copy=(f4.copy, 1.1)),
        _row(
            "CPU(1 GiB) returns",
            lambda: cs.CPU(gib),
            1,
            5,
            np_zeros=(lambda: np.zeros(gib, np.float32), None),
        ),
    )
