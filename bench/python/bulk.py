# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Values in bulk: lists, generators, ranges and buffers in, lists out."""

from __future__ import annotations

import array
from collections.abc import Callable, Iterator

import carrier_storage as cs
import numpy as np

import machine
from dtypes import ALL, BOOL, FLOAT, INT, Peers
from harness import Contender, Options, Row, timed

Maker = Callable[[object, cs.DType], cs.Carrier]
KINDS: dict[str, Maker] = {
    "CPU": lambda values, dtype: cs.CPU(0, dtype=dtype).new_like(values),
    "Generic": lambda values, dtype: cs.Generic(values, dtype=dtype),
}
# What a buffer holds, and the dtype it goes into. u8 has 64 bits, as in NumPy.
BUFFERS = (
    ("f4", FLOAT), ("i4", INT), ("?", BOOL),
    ("f8", FLOAT), ("i8", INT), ("u8", INT), ("u1", INT), ("i4", FLOAT), ("i8", FLOAT), ("?", FLOAT),
)  # fmt: skip
C_NAMES = {"?": "b1"}


def _from_lists(count: int) -> Iterator[Row]:
    for peers in ALL:
        values = peers.values(count)
        for kind, make in KINDS.items():
            code = None if peers is BOOL else peers.code
            yield Row(
                f"{kind} from a list of {peers.word}",
                timed(lambda m=make, p=peers, v=values: m(v, p.dtype), per=count),
                {
                    "array": timed(lambda c=code, v=values: array.array(c, v), per=count) if code else None,
                    "np.array": timed(lambda p=peers, v=values: np.array(v, p.numpy), per=count),
                },
                {"array": 0.25, "np.array": 0.06 if peers is BOOL else 0.2},
                rounds=9,
            )


def _from_iterables(count: int) -> Iterator[Row]:
    floats = FLOAT.values(count)
    sources: dict[str, tuple[Callable[[], object], Peers, float]] = {
        "a generator": (lambda: (x for x in floats), FLOAT, 0.7),
        "a range": (lambda: range(count), INT, 0.5),
    }
    for said, (source, peers, limit) in sources.items():
        for kind, make in KINDS.items():
            yield Row(
                f"{kind} from {said}",
                timed(lambda m=make, s=source, p=peers: m(s(), p.dtype), per=count),
                {"np.fromiter": timed(lambda s=source, p=peers: np.fromiter(s(), p.numpy), per=count)},
                {"np.fromiter": limit},
                rounds=9,
            )


def buffer(code: str, count: int) -> np.ndarray:
    """Values that every dtype which takes the buffer takes."""
    return (np.random.default_rng(1).random(count) * 200).astype("?" if code == "?" else code)


def taken(code: str, into: Peers, values: np.ndarray) -> Contender | None:
    """The control: fresh memory, filled from the buffer without a check, and given back."""
    name = f"take_{C_NAMES.get(code, code)}_{C_NAMES.get(into.numpy, into.numpy)}"
    return machine.control(timed(lambda: machine.call(name, values, len(values)), per=len(values)))


def _from_buffers(count: int) -> Iterator[Row]:
    for code, into in BUFFERS:
        values = buffer(code, count)
        for kind, make in KINDS.items():
            if code == into.numpy:
                rival, run, limit = "copy", values.copy, 1.1
            else:
                rival, run, limit = "astype", lambda v=values, p=into: v.astype(p.numpy), 1.05
            yield Row(
                f"{kind} of {into.name} from a buffer of {values.dtype.name}",
                timed(lambda m=make, v=values, p=into: m(v, p.dtype), per=count),
                {rival: timed(run, per=count), "bare C": taken(code, into, values)},
                {rival: limit},
            )


def _to_lists(count: int) -> Iterator[Row]:
    for peers in ALL:
        values = peers.values(count)
        rival = np.array(values, peers.numpy)
        for kind, make in KINDS.items():
            carrier = make(values, peers.dtype)
            for said, run, limit in (
                ("tolist()", carrier.tolist, 0.5 if peers is BOOL else 1.05),
                ("list(c)", lambda c=carrier: list(c), None),
            ):
                yield Row(
                    f"{said} of {kind} of {peers.name}",
                    timed(run, per=count),
                    {"numpy's tolist": timed(rival.tolist, per=count)},
                    {"numpy's tolist": limit} if limit else {},
                    rounds=9,
                )


def rows(options: Options) -> Iterator[Row]:
    million = options.pick(1_000_000, 100)
    yield from _from_lists(million)
    yield from _from_iterables(million)
    yield from _from_buffers(8 * million)
    yield from _to_lists(million)
