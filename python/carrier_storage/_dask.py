# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""What dask learns of carriers through its entry point, without anybody importing this module: their size.

Without it a carrier of a gigabyte counts as a few bytes, and dask spills nothing. Tokens are `__dask_tokenize__` of
Carrier and Tensor, and values travel by pickle.
"""

import sys
from typing import Any

from carrier_storage import Carrier, Evictable, Tensor


def register(sizeof: Any) -> None:
    """Called by `dask.sizeof` with its dispatch."""
    sizeof.register(Carrier, size_of_carrier)
    sizeof.register(Tensor, size_of_tensor)


def size_of_carrier(carrier: Carrier) -> int:
    """Bytes that the carrier keeps, in memory or, where they lie there, on disk."""
    overhead = sys.getsizeof(carrier)
    while isinstance(carrier, Evictable):
        carrier = carrier.secondary if carrier.is_evicted() else carrier.primary
    return overhead + carrier.size() * (carrier.dtype().bits or 0) // 8


def size_of_tensor(tensor: Tensor) -> int:
    """A Tensor keeps its carriers, whole."""
    carriers = {id(part.carrier): part.carrier for part in tensor.subtensors}
    return sys.getsizeof(tensor) + sum(map(size_of_carrier, carriers.values()))
