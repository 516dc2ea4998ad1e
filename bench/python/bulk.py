# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Values in bulk: lists, ranges, generators, buffers, allocation."""

from __future__ import annotations

import array
import random
from collections.abc import Iterator

import carrier_storage as cs
import numpy as np

from harness import Contender, Row

F32, I32, BOOL = cs.DType.Float32, cs.DType.Int32, cs.DType.Bool
N = 1_000_000


def rows() -> Iterator[Row]:
    rng = random.Random(1)
    floats = [rng.random() for _ in range(N)]
    ints = [rng.randrange(-(2**31), 2**31) for _ in range(N)]
    bools = [rng.random() < 0.5 for _ in range(N)]
    protos = {d: cs.CPU(0, dtype=d) for d in (F32, I32, BOOL)}
    for kind in ("CPU", "Generic"):

        def into(values: object, dtype: cs.DType, kind: str = kind) -> object:
            return protos[dtype].new_like(values) if kind == "CPU" else cs.Generic(values, dtype=dtype)

        limits = {"array": 0.25, "np.array": 0.2}
        yield Row(
            f"{kind} from a list of float",
            Contender(lambda: into(floats, F32)),
            {
                "array": Contender(lambda: array.array("f", floats)),
                "np.array": Contender(lambda: np.array(floats, np.float32)),
            },
            limits,
            per=N,
            rounds=7,
        )
        yield Row(
            f"{kind} from a list of int",
            Contender(lambda: into(ints, I32)),
            {
                "array": Contender(lambda: array.array("i", ints)),
                "np.array": Contender(lambda: np.array(ints, np.int32)),
            },
            limits,
            per=N,
            rounds=7,
        )
        yield Row(
            f"{kind} from a list of bool",
            Contender(lambda: into(bools, BOOL)),
            {"np.array": Contender(lambda: np.array(bools, np.bool_))},
            {"np.array": 0.06},
            per=N,
            rounds=7,
        )
    cpu_f, cpu_i = protos[F32], protos[I32]
    yield Row(
        "CPU from a generator",
        Contender(lambda: cpu_f.new_like(x for x in floats)),
        {"np.fromiter": Contender(lambda: np.fromiter((x for x in floats), np.float32))},
        {"np.fromiter": 0.7},
        per=N,
        rounds=5,
    )
    yield Row(
        "CPU from a range",
        Contender(lambda: cpu_i.new_like(range(N))),
        {"np.fromiter": Contender(lambda: np.fromiter(range(N), np.int32))},
        {"np.fromiter": 0.5},
        per=N,
        rounds=5,
    )
    yield from _buffers(cpu_f, cpu_i)


def _buffers(cpu_f: cs.Carrier, cpu_i: cs.Carrier) -> Iterator[Row]:
    n = 8 * N
    f8 = np.random.default_rng(1).random(n)
    f4, i8 = f8.astype(np.float32), (f8 * 1e6).astype(np.int64)
    yield Row(
        "CPU from float64, rounded",
        Contender(lambda: cpu_f.new_like(f8)),
        {"astype": Contender(lambda: f8.astype(np.float32))},
        {"astype": 1.05},
        per=n,
    )
    yield Row(
        "CPU from int64, range-checked",
        Contender(lambda: cpu_i.new_like(i8)),
        {"astype": Contender(lambda: i8.astype(np.int32))},
        {"astype": 1.05},
        per=n,
    )
    yield Row(
        "CPU from float32",
        Contender(lambda: cpu_f.new_like(f4)),
        {"ndarray.copy": Contender(f4.copy)},
        {"ndarray.copy": 1.1},
        per=n,
    )
    gib = 2**28

    yield Row(
        "CPU(1 GiB) returns",
        Contender(lambda: cs.CPU(gib)),
        {"np.zeros": Contender(lambda: np.zeros(gib, np.float32))},
        rounds=5,
    )
