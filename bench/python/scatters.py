# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Scatter through layouts, beside strided assignment in NumPy and torch and bare loops."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import carrier_storage as cs
import numpy as np

import machine
from dtypes import ALL, BOOL, FLOAT, INT, Peers, below
from harness import Contender, Options, Row, net, timed

Destination = Callable[[int, cs.DType], cs.Carrier]
KINDS: dict[str, Destination] = {
    "CPU": lambda size, dtype: cs.CPU(size, dtype=dtype),
    "Generic": lambda size, dtype: cs.Generic([], dtype=dtype).allocate_like(size),
    "Evictable": lambda size, dtype: cs.Evictable(cs.CPU(size, dtype=dtype), below(dtype)),
}


@dataclass(frozen=True)
class Job:
    """Values of one shape, read through one set of strides and written through another."""

    name: str
    shape: tuple[int, ...]
    source: tuple[int, ...]
    target: tuple[int, ...]
    limits: dict[str, float]
    control: str = "nest"  # or spread, or transpose
    values: Peers = FLOAT
    slots: Peers = FLOAT

    def spans(self) -> tuple[int, int]:
        """How many slots the source and the destination have."""
        return tuple(
            1 + sum((n - 1) * step for n, step in zip(self.shape, steps, strict=True))
            for steps in (self.source, self.target)
        )  # type: ignore[return-value]


def _line(name: str, count: int, step: int, limits: dict[str, float]) -> Job:
    return Job(name, (count,), (1,), (step,), limits, "spread")


def _square(side: int, numpy: float, torch: float) -> Job:
    sides, limits = (side, side), {"numpy": numpy, "torch": torch}
    return Job(f"transpose {side} x {side}", sides, (side, 1), (1, side), limits, "transpose")


def jobs(options: Options) -> Iterator[Job]:
    count = options.pick(10_000_000, 1000)
    contiguous, doubled = (
        _line("contiguous", count, 1, {"numpy": 1.0}),
        _line("stride 2", count, 2, {"numpy": 0.85}),
    )
    yield from (contiguous, doubled)
    yield from (_line(f"stride {k}", count, k, {"numpy": 0.85}) for k in (3, 4, 8))
    yield Job("runs of 10 into pitch 16", (10, count // 10), (1, 10), (1, 16), {"numpy": 0.85})
    yield _square(options.pick(3000, 48), 0.3, 0.45)
    yield _square(options.pick(4096, 64), 0.1, 0.35)
    last = options.pick(50, 1)
    yield Job(
        "shuffled leaves with holes",
        (8, 50, 20, 25, last),
        (1, 10_000, 8, 160, 4_000) if last > 1 else (1, 4_000, 8, 160, 4_000),
        (4_000, 1, 50, 40_000, 1_200_000),
        {"numpy": 0.6},
    )
    for values, slots in ((INT, INT), (BOOL, BOOL), (INT, FLOAT), (BOOL, FLOAT)):
        said = slots.name if values is slots else f"{values.name} into {slots.name}"
        for job in (contiguous, doubled):
            yield replace(job, name=f"{job.name}, {said}", values=values, slots=slots)


def _layout(shape: tuple[int, ...], stride: tuple[int, ...]) -> cs.Layout:
    return cs.Layout(cs.Shape(*shape), cs.Stride(*stride))


def _values(job: Job) -> np.ndarray:
    ones = np.random.default_rng(0).random(job.spans()[0]) * 100
    return (ones > 50).astype("?") if job.values is BOOL else ones.astype(job.values.numpy)


def _ours(job: Job, kind: str = "CPU", source_kind: str = "CPU") -> Contender:
    source = KINDS[source_kind](0, job.values.dtype).new_like(_values(job))
    target = KINDS[kind](job.spans()[1], job.slots.dtype)
    mapping = _layout(job.shape, job.target)
    read, onto = cs.Tensor(source, 0, _layout(job.shape, job.source)), cs.Tensor(target, 0, mapping)
    return timed(lambda: target.scatter(read, onto, mapping), per=math.prod(job.shape))


def _rivals(job: Job) -> dict[str, Contender | None]:
    values, slots = _values(job), np.zeros(job.spans()[1], job.slots.numpy)
    count, view = math.prod(job.shape), np.lib.stride_tricks.as_strided
    x = view(values, job.shape, [values.itemsize * step for step in job.source])
    y = view(slots, job.shape, [slots.itemsize * step for step in job.target])
    return {
        "numpy": timed(lambda: np.copyto(y, x), per=count),
        "torch": _torch(job, values, slots),
        "bare C": _bare(job, values, slots),
    }


def _torch(job: Job, values: np.ndarray, slots: np.ndarray) -> Contender | None:
    torch = machine.torch()
    if torch is None:
        return None
    x = torch.as_strided(torch.from_numpy(values), job.shape, job.source)
    y = torch.as_strided(torch.from_numpy(slots), job.shape, job.target)
    return timed(lambda: y.copy_(x), per=math.prod(job.shape))


def _nest(job: Job) -> tuple[np.ndarray, ...]:
    """Loops in the order of the destination, but the mode that the source has in a row just outside the innermost."""
    modes = sorted(zip(job.shape, job.source, job.target, strict=True), key=lambda mode: -mode[2])
    inner = modes.pop()
    modes.sort(key=lambda mode: -mode[1])
    modes = (
        [(1, 0, 0)] * (4 - len(modes)) + sorted(modes[:-1], key=lambda mode: -mode[2]) + modes[-1:] + [inner]
    )
    return tuple(np.array(column, np.int64) for column in zip(*modes, strict=True))


def _bare(job: Job, values: np.ndarray, slots: np.ndarray) -> Contender | None:
    if job.control == "transpose":
        name, sizes = "transpose", job.shape[:1]
    elif job.control == "nest":
        name, sizes = "nest", _nest(job)
    else:
        pair = [peers.numpy.replace("?", "b1") for peers in (job.values, job.slots)]
        name, sizes = f"spread_{pair[0]}_{pair[1]}", (*job.shape, *job.target)
    return machine.control(timed(lambda: machine.call(name, values, slots, *sizes), per=math.prod(job.shape)))


def line_pair(count: int, step: int) -> tuple[Contender, Contender | None]:
    """So many values in a row to slots that lie ``step`` apart: ours, and the bare loop."""
    job = _line("", count, step, {})
    return _ours(job), _rivals(job)["bare C"]


def _between_kinds(job: Job) -> Iterator[Row]:
    pairs = [("CPU", "Evictable"), ("Generic", "Generic"), ("Generic", "CPU"), ("CPU", "Generic")]
    for source, target in pairs:
        yield Row(
            f"scatter {job.name}, {source} to {target}",
            _ours(job, target, source),
            {"CPU to CPU": _ours(job)},
            {"CPU to CPU": 1.05},
        )


def _small(peers: Peers) -> Row:
    job = replace(_line("16 values", 16, 2, {}), values=peers, slots=peers)
    values, slots, index = _values(job), np.zeros(32, peers.numpy), np.arange(0, 32, 2)
    source = cs.CPU(0, dtype=peers.dtype).new_like(values)
    target, mapping = cs.CPU(32, dtype=peers.dtype), _layout(job.shape, job.target)
    read, onto = cs.Tensor(source, 0, _layout(job.shape, job.source)), cs.Tensor(target, 0, mapping)
    torch = machine.torch()
    return Row(
        f"scatter 16 values, {peers.name}",
        net("c.scatter(read, onto, mapping)", c=target, read=read, onto=onto, mapping=mapping),
        {
            "numpy fancy": net("c[index] = values", c=slots, index=index, values=values),
            "numpy slice": net("c[::2] = values", c=slots, values=values),
            "torch": torch
            and net(
                "c.copy_(values)", loops=50, c=torch.from_numpy(slots)[::2], values=torch.from_numpy(values)
            ),
        },
        {"numpy fancy": 0.6},
    )


def rows(options: Options) -> Iterator[Row]:
    for job in jobs(options):
        yield Row(f"scatter {job.name}", _ours(job), _rivals(job), job.limits, rounds=9)
    for job in list(jobs(options))[:2]:
        yield from _between_kinds(job)
    for peers in ALL:
        yield _small(peers)
