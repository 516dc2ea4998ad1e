# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""The dtypes, and each one's peers: NumPy's dtype, array's code, values to store."""

from __future__ import annotations

import random
from dataclasses import dataclass

import carrier_storage as cs


@dataclass(frozen=True)
class Peers:
    name: str
    dtype: cs.DType
    numpy: str
    code: str  # array.array has no bools: its bytes stand in
    word: str  # what Python calls such a value
    sample: float | int | bool  # none that Python keeps ready, except of bools

    def values(self, count: int) -> list:
        rng = random.Random(1)
        make = {
            "float": rng.random,
            "int": lambda: rng.randrange(-(2**31), 2**31),
            "bool": lambda: rng.random() < 0.5,
        }[self.word]
        return [make() for _ in range(count)]


FLOAT = Peers("Float32", cs.DType.Float32, "f4", "f", "float", 2.5)
INT = Peers("Int32", cs.DType.Int32, "i4", "i", "int", 123_456)
BOOL = Peers("Bool", cs.DType.Bool, "?", "b", "bool", True)
ALL = (FLOAT, INT, BOOL)


def below(dtype: cs.DType) -> cs.Carrier:
    """A secondary tier for the dtype: a file where it can be one."""
    return cs.CPU(0, dtype=dtype) if dtype is cs.DType.Bool else cs.FileBacked(dtype=dtype)
