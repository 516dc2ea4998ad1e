# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Whether an element of a large job costs what one of a small job does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import carrier_storage as cs
import numpy as np

from bulk import taken
from dtypes import FLOAT
from files import Bench
from harness import Contender, Growth, Options, timed
from scatters import line_pair
from scratch import Folder

MIB = 1 << 20
Pair = tuple[Contender, Contender | None]


def _list(count: int) -> Pair:
    values, make = np.random.default_rng(1).random(count).tolist(), cs.CPU(0).new_like
    return timed(lambda: make(values), per=count), timed(lambda: np.array(values, np.float32), per=count)


def _buffer(count: int, code: str) -> Pair:
    values, make = np.random.default_rng(1).random(count).astype(code), cs.CPU(0).new_like
    return timed(lambda: make(values), per=count), taken(code, FLOAT, values)


def _evict(count: int, folder: Folder) -> Pair:
    bench = Bench(4 * count, folder)
    # Each is beside the faster of the two bare loops at its size.
    direct, buffered = bench.bare_write(direct=True), bench.bare_write(direct=False)
    return (
        timed(lambda e: e.evict(), bench.promoted, per=count),
        direct and buffered and (lambda: min(direct(), buffered()) / count),
    )


def _growth(
    name: str, counts: list[int], make: Callable[[int], Pair], rounds: int, bare: bool = True
) -> Growth:
    pairs = {f"{count:,}": make(count) for count in counts}
    control = {size: theirs for size, (_, theirs) in pairs.items() if theirs is not None}
    return Growth(
        f"growth: {name}", {size: ours for size, (ours, _) in pairs.items()}, control, bare, rounds=rounds
    )


def rows(options: Options) -> Iterator[Growth]:
    large = options.pick(1 << 26, 1 << 12)
    sizes = [large >> 10, large >> 6, large >> 2, large]
    yield _growth("new_like from a list", [size >> 2 for size in sizes], _list, 3, bare=False)
    for code in ("f4", "f8"):
        yield _growth(f"new_like from a buffer of {code}", sizes, lambda n, c=code: _buffer(n, c), 5)
    for step in (1, 2):
        said = "contiguous" if step == 1 else f"stride {step}"
        yield _growth(f"scatter {said}", sizes, lambda n, k=step: line_pair(n, k), 5)
    with Folder() as folder:
        payload = options.mib * MIB // 4
        counts = [payload >> 8, payload >> 4, payload >> 2, payload]
        yield _growth("evict", counts, lambda n: _evict(n, folder), 3)
