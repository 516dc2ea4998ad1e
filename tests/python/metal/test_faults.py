# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Failures of the GPU as a Python program meets them. They are arranged on the stand-in, so only there."""

import ctypes
from pathlib import Path

import carrier_storage as cs
import pytest

from helpers import run_child

STANDIN = Path(cs.__file__).with_name("libmetal_standin.so")
pytestmark = pytest.mark.skipif(not STANDIN.exists(), reason="no Metal stand-in in this installation")

ARRANGE = f"""
import ctypes
import carrier_storage as cs
gpu = ctypes.CDLL({str(STANDIN)!r})
def arrange(field, value):
    gpu.standin_set.restype = ctypes.c_bool
    assert gpu.standin_set(field.encode(), ctypes.c_long(value))
def refusal(call):
    try:
        call()
    except RuntimeError as error:
        assert not isinstance(error, NotImplementedError)
        return str(error)
    raise AssertionError("went through")
"""


@pytest.fixture
def gpu():
    library = ctypes.CDLL(str(STANDIN))
    library.standin_set.restype = ctypes.c_bool
    cs.Metal(1)
    library.standin_reset()
    yield lambda field, value: library.standin_set(field.encode(), ctypes.c_long(value)) or pytest.fail(field)
    assert library.standin_violations() == 0
    library.standin_reset()


def tensor(carrier, count):
    return cs.Tensor(carrier, 0, cs.Layout(cs.Shape(count), cs.Stride(1)))


def scatter(onto, source, count):
    layout = cs.Layout(cs.Shape(count), cs.Stride(1))
    onto.scatter(tensor(source, count), tensor(onto, count), layout, mapping_offset=0)


@pytest.mark.parametrize(
    ("field", "value", "error"),
    [
        ("stop_after_threads", 0, RuntimeError),
        ("stop_after_threads", 2, RuntimeError),
        ("stop_after_threads", 1000, RuntimeError),
        ("encoder", 0, RuntimeError),
        ("command_buffer", 0, RuntimeError),
        ("allocations_left", 0, MemoryError),
        ("allocations_left", 1, MemoryError),
        ("max_buffer", 15, MemoryError),
    ],
)
def test_a_failed_scatter_changes_nothing(gpu, field, value, error):
    source = cs.Metal(0).new_like([1.0, 2.0, 3.0, 4.0])
    onto = cs.Metal(0).new_like([5.0, 6.0, 7.0, 8.0])
    gpu(field, value)
    with pytest.raises(error):
        scatter(onto, source, 4)
    assert list(onto) == [5.0, 6.0, 7.0, 8.0]
    assert onto.version == 0
    gpu("stop_after_threads", -1)
    gpu("encoder", 1)
    gpu("command_buffer", 1)
    gpu("allocations_left", -1)
    gpu("max_buffer", 2**36)
    scatter(onto, source, 4)
    assert list(onto) == [1.0, 2.0, 3.0, 4.0]
    assert onto.version == 1


@pytest.mark.parametrize("field", ["compiler", "functions", "pipelines"])
def test_a_refused_kernel_changes_nothing(field):
    run_child(
        ARRANGE
        + f"""
source = cs.Metal(0).new_like([1, 2])
onto = cs.Metal(2)
layout = cs.Layout(cs.Shape(2), cs.Stride(1))
go = lambda: onto.scatter(cs.Tensor(source, 0, layout), cs.Tensor(onto, 0, layout), layout, mapping_offset=0)
arrange({field!r}, 0)
assert "nothing was changed" in refusal(go)
assert list(onto) == [0.0, 0.0] and onto.version == 0
arrange({field!r}, 1)
go()
assert list(onto) == [1.0, 2.0]
"""
    )


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("devices", 0, "shows no device to this process"),
        ("unified_from", 1, "only GPUs with memory of their own (Stand-in GPU)"),
        ("queue", 0, "no command queue"),
    ],
)
def test_construction_says_which_of_these_it_is_and_can_be_repeated(field, value, says):
    run_child(
        ARRANGE
        + f"""
arrange({field!r}, {value})
text = refusal(lambda: cs.Metal(3))
assert {says!r} in text and "use CPU" in text, text
gpu.standin_reset()
assert list(cs.Metal(3)) == [0.0] * 3
"""
    )


def test_an_allocation_beyond_the_device_is_a_memory_error(gpu):
    gpu("max_buffer", 64)
    assert len(cs.Metal(16)) == 16
    with pytest.raises(MemoryError, match="68 bytes exceeds the 64"):
        cs.Metal(17)
    gpu("allocations_left", 0)
    with pytest.raises(MemoryError):
        cs.Metal(1)
    assert cs.Metal(0).size() == 0


def test_a_failed_promotion_leaves_the_hierarchy_evicted(gpu):
    c = cs.Evictable(cs.Metal(0).new_like([1.0, 2.0]), cs.FileBacked(dtype=cs.DType.Float32))
    c.evict()
    gpu("allocations_left", 0)
    with pytest.raises(MemoryError):
        c.promote()
    gpu("allocations_left", -1)
    c.promote()
    assert list(c) == [1.0, 2.0]


def test_a_forked_child_is_refused():
    run_child(
        ARRANGE
        + """
import os
c = cs.Metal(3)
h = cs.Evictable(cs.Metal(3), cs.CPU(1))
each = iter(c)
child = os.fork()
if child == 0:
    try:
        def write(carrier):
            carrier[0] = 1.0
        for carrier in (c, h):
            for touch in (lambda: carrier[0], lambda: write(carrier), lambda: list(carrier)):
                assert "forked" in refusal(touch)
        assert "forked" in refusal(lambda: next(each))
        assert "forked" in refusal(lambda: cs.Metal(3))
        assert "forked" in refusal(lambda: c.new_like([1.0]))
        c.release()
        os._exit(0)
    except BaseException:
        os._exit(1)
assert os.waitpid(child, 0)[1] == 0
c[0] = h[0] = 1.0
assert next(each) == 1.0
"""
    )


def test_no_buffer_outlives_its_carrier(gpu, collected):
    library = ctypes.CDLL(str(STANDIN))
    before = library.standin_live(b"StandinBuffer")
    held = [cs.Metal(3) for _ in range(10)]
    assert library.standin_live(b"StandinBuffer") == before + 10
    held[0].release()
    assert library.standin_live(b"StandinBuffer") == before + 9
    held.clear()
    assert library.standin_live(b"StandinBuffer") == before
