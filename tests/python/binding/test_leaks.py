# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Blocks of bytes, counted: what every call leaves alive."""

import gc
import itertools

import pytest
from carrier_storage import CPU, DType, Evictable, FileBacked, Generic, _core


def live():
    gc.collect()
    return _core._live()


def boom():
    yield 1.0
    raise KeyError("mine")


MAKERS = {
    "CPU": lambda: CPU(3),
    "large CPU": lambda: CPU(1 << 20),
    "new_like": lambda: CPU(0).new_like(itertools.repeat(1.0, 5000)),
    "Generic": lambda: Generic([1.0], dtype=DType.Float32),
    "FileBacked": lambda: FileBacked(dtype=DType.Float32).new_like([1.0]),
    "Evictable": lambda: Evictable(CPU(3), FileBacked(dtype=DType.Float32)),
    "nested": lambda: Evictable(Evictable(CPU(3), CPU(3)), FileBacked(dtype=DType.Float32)).allocate_like(2),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_dropping_frees_every_block(make):
    before = live()
    c = make()
    assert live() != before
    del c
    assert live() == before


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_release_frees_every_block(make):
    before = live()
    c = make()
    if isinstance(c, Evictable):
        c.evict()
        c.promote()
        c.evict()
    c.release()
    assert live() == before
    assert c.is_released()


@pytest.mark.parametrize(
    "fail",
    [
        lambda: CPU(0).new_like(boom()),
        lambda: FileBacked(dtype=DType.Int32).new_like([1, 2.5]),
        lambda: Generic([1, None], dtype=DType.Int32),
        lambda: CPU(2**62),
        lambda: CPU(1, pointer=-1),
        lambda: FileBacked("a/b", dtype=DType.Float32),
        lambda: FileBacked("taken", dtype=DType.Float32),
        lambda: Evictable(CPU(3), CPU(3, mutable=False)),
        lambda: Evictable(CPU(3), FileBacked(dtype=DType.Int32)),
        lambda: Evictable(CPU(3), CPU(3)).new_like(boom()),
    ],
)
def test_failing_calls_free_every_block(fail):
    keep = FileBacked("taken", dtype=DType.Float32)
    before = live()
    for _ in range(3):
        with pytest.raises(Exception, match=r"."):
            fail()
    assert live() == before
    keep.release()
