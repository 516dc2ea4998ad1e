# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""What the tests of pickles and copies share: every way to travel, and what a twin is."""

import copy
import pickle

import carrier_storage as cs

from customs import HookedCarrier


def out_of_band(wrap):
    """Protocol 5 with the frames beside the pickle, which arrive as `wrap` makes them."""

    def way(thing):
        frames = []
        head = pickle.dumps(thing, 5, buffer_callback=frames.append)
        return pickle.loads(head, buffers=[wrap(frame) for frame in frames])

    return way


PICKLES = {f"protocol {p}": lambda thing, p=p: pickle.loads(pickle.dumps(thing, p)) for p in range(6)}
PICKLES |= {
    "frames": out_of_band(lambda frame: frame),
    "bytes": out_of_band(lambda frame: bytes(frame.raw())),
    "bytearrays": out_of_band(lambda frame: bytearray(frame.raw())),
    "read-only views": out_of_band(lambda frame: memoryview(bytearray(frame.raw())).toreadonly()),
    "Python's pickler": lambda thing: pickle._loads(pickle._dumps(thing, 5)),
}
COPIES = {"copy": copy.copy, "deepcopy": copy.deepcopy}
WAYS = PICKLES | COPIES


def tree(carrier):
    """The classes of a carrier and, for a hierarchy, of its tiers."""
    if not isinstance(carrier, cs.Evictable):
        return type(carrier)
    return (cs.Evictable, tree(carrier.primary), tree(carrier.secondary))


def check_twin(twin, carrier, values, *, mutable=True):
    """Promoted, unowned, version 0, the same kinds, dtype and values, and independent."""
    assert twin is not carrier and tree(twin) == tree(carrier)
    assert (twin.dtype() is carrier.dtype(), twin.version, twin.size()) == (True, 0, len(values))
    assert (twin.is_mutable(), twin.is_owned(), twin.is_released()) == (mutable, False, False)
    assert repr(twin.tolist()) == repr(values)
    if isinstance(twin, cs.Evictable):
        assert not twin.is_evicted() and twin.secondary.size() == 0
        assert twin.primary is not carrier.primary and twin.secondary is not carrier.secondary


class Travelling(HookedCarrier):
    """A custom carrier that says how it travels."""

    def __reduce__(self):
        return (type(self), (list(self.slots), self.held, self.writable))


def make_travelling(values, dtype, mutable=True):
    return Travelling(list(cs.Generic(values, dtype=dtype)), dtype, mutable)
