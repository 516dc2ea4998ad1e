# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Carriers and blocks of bytes, counted: what every call leaves alive."""

import gc
import itertools

import pytest
from carrier_storage import (
    CPU,
    DType,
    Evictable,
    FileBacked,
    Generic,
    Layout,
    Shape,
    Stride,
    Tensor,
    _core,
)


def live():
    gc.collect()
    return _core._live()


def blocks():
    return {name: count for name, count in live().items() if name.endswith("_blocks")}


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
def test_dropping_frees_everything(make):
    before = live()
    c = make()
    assert live()["carriers"] > before["carriers"]
    assert blocks() != {name: before[name] for name in blocks()}
    del c
    assert live() == before


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_release_frees_every_block(make):
    before = blocks()
    c = make()
    if isinstance(c, Evictable):
        c.evict()
        c.promote()
        c.evict()
    c.release()
    assert blocks() == before
    assert c.is_released()


@pytest.mark.parametrize("name", [name for name in MAKERS if isinstance(MAKERS[name](), Evictable)])
def test_transitions_keep_no_replaced_tier(name):
    c = MAKERS[name]()
    c.evict()
    c.promote()
    before = live()
    for _ in range(3):
        c.evict()
        c.promote()
    assert live() == before


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_refers_to_a_carrier_gives_it_back(make):
    before = live()
    c = make()
    whole = Layout(Shape(c.size()), Stride(1))
    token = c.claim()
    held = [Tensor(c, 0, whole), iter(c), token.access(), c.numpy(), c.tolist()]
    with token.access(), c.edit() as memory:
        held.append(memory)
    held.append(held)
    del c, token, memory, held
    assert live() == before


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
def test_failing_calls_free_everything(fail):
    keep = FileBacked("taken", dtype=DType.Float32)
    before = live()
    for _ in range(3):
        with pytest.raises(Exception, match=r"."):
            fail()
    assert live() == before
    keep.release()
