# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Scatter through layouts, beside NumPy's strided assignment."""

from __future__ import annotations

from collections.abc import Iterator

import carrier_storage as cs
import numpy as np

from harness import Contender, Row

F32 = cs.DType.Float32


def _layout(shape: list[int], stride: list[int]) -> cs.Layout:
    return cs.Layout(cs.Shape(*shape), cs.Stride(*stride))


def _job(
    shape: list[int], source: list[int], target: list[int], kind: str = "CPU"
) -> tuple[Contender, Contender]:
    """Ours and NumPy's way to move one array through two layouts."""
    from_layout, to_layout = _layout(shape, source), _layout(shape, target)
    n, m = from_layout.cosize, to_layout.cosize
    values = np.random.default_rng(0).random(n).astype(np.float32)
    src = cs.CPU(0).new_like(values)
    if kind == "CPU":
        dst: cs.Carrier = cs.CPU(m)
    elif kind == "Generic":
        dst = cs.Generic(np.zeros(m, np.float32), dtype=F32)
    else:
        dst = cs.Evictable(cs.CPU(m), cs.FileBacked(dtype=F32))
    a, b = cs.Tensor(src, 0, from_layout), cs.Tensor(dst, 0, to_layout)
    flat = np.zeros(m, np.float32)
    view = np.lib.stride_tricks.as_strided
    x = view(values, shape, [4 * s for s in source])
    y = view(flat, shape, [4 * s for s in target])
    return Contender(lambda: dst.scatter(a, b, to_layout)), Contender(lambda: np.copyto(y, x))


def rows() -> Iterator[Row]:
    n = 10_000_000
    jobs = [("contiguous", [n], [1], [1], 1.0)]
    jobs += [(f"stride {k}", [n], [1], [k], 0.85) for k in (2, 3, 4, 8)]
    jobs += [("runs of 10 into pitch 16", [10, n // 10], [1, 10], [1, 16], 0.85)]
    jobs += [("transpose 3000 x 3000", [3000, 3000], [1, 3000], [3000, 1], 0.3)]
    jobs += [("transpose 4096 x 4096", [4096, 4096], [1, 4096], [4096, 1], 0.1)]
    jobs += [
        (
            "shuffled leaves with holes",
            [8, 50, 20, 25, 50],
            [1, 10_000, 8, 160, 4_000],
            [4_000, 1, 50, 40_000, 1_200_000],
            0.6,
        )
    ]
    for name, shape, source, target, limit in jobs:
        size = float(np.prod(shape))
        ours, theirs = _job(shape, source, target)
        yield Row(f"scatter {name}", ours, {"numpy": theirs}, {"numpy": limit}, per=size, rounds=9)
    ours, _ = _job([n], [1], [2], "Evictable")
    cpu, _ = _job([n], [1], [2])
    yield Row("scatter through an Evictable", ours, {"CPU": cpu}, {"CPU": 1.05}, per=n, rounds=9)
    ours, _ = _job([n], [1], [2], "Generic")
    yield Row("scatter into a Generic", ours, {"CPU": cpu}, {"CPU": 1.05}, per=n, rounds=9)
    small, _ = _job([16], [1], [2])
    index, values, flat = np.arange(0, 32, 2), np.ones(16, np.float32), np.zeros(32, np.float32)

    def fancy() -> None:
        flat[index] = values

    yield Row("scatter 16 values", small, {"numpy fancy": Contender(fancy)}, {"numpy fancy": 0.6}, loops=5000)
