# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Values from nothing but a number: the generated set, and the updates that each pass writes."""

import numpy as np
from numpy.typing import NDArray

from carrier_storage.cli.entries import ITEM, Entry, Values

PERIOD = 8  # pass p writes every eighth slot, beginning at slot p % 8


def bits(slots: NDArray[np.uint64], seed: int) -> NDArray[np.uint32]:
    """32 well-mixed bits a slot, the same ones every time."""
    x = slots * np.uint64(0x9E3779B97F4A7C15) + np.uint64(seed * 0xBF58476D1CE4E5B9 % 2**64)
    x ^= x >> np.uint64(32)
    x *= np.uint64(0xD6E8FEB86659FD93)
    x ^= x >> np.uint64(32)
    x *= np.uint64(0xD6E8FEB86659FD93)
    return (x >> np.uint64(32)).astype(np.uint32)


def values_of(random: NDArray[np.uint32], dtype: np.dtype) -> Values:
    """Any int32, any bool, any float32 but signalling NaNs: infinities, subnormals, -0.0 and NaN payloads occur."""
    if dtype.kind == "b":
        return (random & 1).astype(bool)
    if dtype.kind == "f":
        special = (random & np.uint32(0x7F800000)) == np.uint32(0x7F800000)
        random[special] |= np.uint32(0x00400000)
    return random.view(dtype)


def update(entry: Entry, number: int, start: int, stop: int) -> Values:
    """What pass `number` writes into slots [start, stop), of which only every eighth is written, in order."""
    first = start + (number % PERIOD - start) % PERIOD
    random = bits(np.arange(first, stop, PERIOD, dtype=np.uint64), seed=number + 1)
    if entry.dtype.kind == "b":
        return (random & np.uint32(1)).astype(entry.stored)
    return values_of(random, entry.stored)


def expected(entry: Entry, start: int, stop: int, passes: int) -> Values:
    """Slots [start, stop) after that many passes: the source read again, and the same updates applied to it."""
    values = entry.values(start, stop)
    for number in range(max(0, passes - PERIOD), passes):
        first = (number % PERIOD - start) % PERIOD
        values[first::PERIOD] = update(entry, number, start, stop)
    return values


def generated_set(size: int) -> list[Entry]:
    """About `size` bytes (of stored values) in arrays of unlike size and dtype."""
    parts = [
        ("embedding", "f4", 8),
        ("weights", "f4", 4),
        ("tokens", "i4", 2),
        ("bias", "f4", 1),
        ("mask", "?", 1),
    ]
    slots = size // ITEM
    entries = []
    for seed, (name, code, share) in enumerate(parts):
        count = max(1, slots * share // 16 - 3 * seed)  # not all of them whole pages
        entries.append(_generated(name, np.dtype(code), count, seed + 1000))
    return entries


def _generated(name: str, dtype: np.dtype, size: int, seed: int) -> Entry:
    def fetch(start: int, stop: int) -> Values:
        return values_of(bits(np.arange(start, stop, dtype=np.uint64), seed), dtype)

    return Entry("generated", name, dtype, size, fetch)
