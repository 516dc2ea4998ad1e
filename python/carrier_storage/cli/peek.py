# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""The bytes under a carrier, for comparing all of it at the speed of memory.

Relies on two promises: `CPU.pointer()` is the address of the slots, in order, four bytes for a Float32 or Int32 one;
`FileBacked.path` names a raw file of the same, without a header, in the byte order of the machine.
"""

import ctypes

import numpy as np

import carrier_storage as cs
from carrier_storage.cli.entries import ITEM, Values


def view_of(carrier: cs.Carrier, start: int, stop: int, dtype: np.dtype) -> Values:
    """Slots [start, stop). Over a CPU it is the memory itself: use it before the carrier moves, then let it go."""
    if isinstance(carrier, cs.Evictable):
        return view_of(carrier.secondary if carrier.is_evicted() else carrier.primary, start, stop, dtype)
    if isinstance(carrier, cs.CPU):
        memory = (ctypes.c_char * ((stop - start) * ITEM)).from_address(carrier.pointer() + start * ITEM)
        return np.frombuffer(memoryview(memory), dtype=dtype)
    if isinstance(carrier, cs.FileBacked):
        # Short when the file is: the caller sees fewer values than it asked for.
        return np.fromfile(carrier.path, dtype=dtype, count=stop - start, offset=start * ITEM)
    raise TypeError(f"no view of a {type(carrier).__name__}")
