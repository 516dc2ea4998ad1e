# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Carriers to load into: made by the kind that the caller names, and checked."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeAlias, cast

from carrier_storage import CPU, Carrier, DType, Evictable, FileBacked, Generic, Metal

Maker: TypeAlias = Callable[[int, DType], Carrier]

_SHIPPED: dict[type[Carrier], Maker] = {
    CPU: lambda size, dtype: CPU(size, dtype=dtype, empty=True),
    Generic: lambda size, dtype: Generic([], dtype=dtype).allocate_like(size, empty=True),
    FileBacked: lambda size, dtype: FileBacked(dtype=dtype).allocate_like(size, empty=True),
    Metal: lambda size, dtype: Metal(size, dtype=dtype, empty=True),
    Evictable: lambda size, dtype: Evictable(CPU(size, dtype=dtype, empty=True), FileBacked(dtype=dtype)),
}


def maker_of(kind: type[Carrier] | Maker) -> Maker:
    """How a kind makes a carrier; anything else that can be called is called as `kind(size, dtype)`. TypeError."""
    if isinstance(kind, type) and (make := _SHIPPED.get(kind)) is not None:
        return make
    if not callable(kind):
        raise TypeError(
            f"kind must be a carrier class or a callable (size, dtype) -> Carrier, not {type(kind).__name__}"
        )
    return cast("Maker", kind)


@contextmanager
def released_on_error(made: list[Carrier]) -> Iterator[None]:
    """Carriers that a load has made so far go when the block raises."""
    try:
        yield
    except BaseException:
        for carrier in made:
            with suppress(Exception):
                carrier.release()
        raise


def make(maker: Maker, size: int, dtype: DType, label: str, others: list[Carrier]) -> Carrier:
    """A fresh carrier to be filled, which is none of the `others`. TypeError, ValueError, RuntimeError."""
    try:
        carrier = maker(size, dtype)
    except ValueError as error:
        raise ValueError(f"{label}: {error}") from error
    if not isinstance(carrier, Carrier):
        raise TypeError(f"{label}: kind gave {type(carrier).__name__}, which is no Carrier")
    if carrier.is_released():
        raise RuntimeError(f"{label}: kind gave a carrier that is released")
    if isinstance(carrier, Evictable) and carrier.is_evicted():
        raise RuntimeError(f"{label}: kind gave a hierarchy that is evicted; call promote() first")
    if not carrier.is_mutable():
        raise RuntimeError(f"{label}: kind gave a carrier that cannot be written")
    if any(carrier is other for other in others):
        raise ValueError(f"{label}: kind gave the same carrier for two entries")
    if carrier.size() != size or carrier.dtype() is not dtype:
        raise ValueError(
            f"{label}: {size} slots of {dtype.name} are needed; kind gave {carrier.size()} of {carrier.dtype().name}"
        )
    return carrier
