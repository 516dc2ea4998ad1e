# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions A: Tensor.from_subtensors, the multi-subtensor Tensor of a compound dtype."""

import carrier_storage as cs
import pytest

from helpers import compound, line, many_planes, state, tensor

F32, I32 = cs.DType.Float32, cs.DType.Int32


def parts(classes=(cs.CPU, cs.CPU), dtypes=(F32, I32), size=4, layouts=None):
    layouts = layouts or [line(2)] * len(classes)
    return [cs.Subtensor(c(size, dtype=d), 0, m) for c, d, m in zip(classes, dtypes, layouts, strict=True)]


def small(size, dtype):
    return cs.Generic([cs.storage_zero(dtype)] * size, dtype=dtype)


def build(dtype=None, subtensors=None, adjacent=None):
    return cs.Tensor.from_subtensors(
        compound() if dtype is None else dtype,
        parts() if subtensors is None else subtensors,
        [line(2)] if adjacent is None else adjacent,
    )


def test_a_tensor_of_several_planes():
    """One Subtensor(carrier, offset, layout) per plane, in the dtype's order."""
    dtype, subtensors = compound(), parts()
    t = cs.Tensor.from_subtensors(dtype, subtensors, [line(2)])
    assert isinstance(t, cs.Tensor) and t.dtype() is dtype
    assert isinstance(build(subtensors=tuple(subtensors), adjacent=(line(2),)), cs.Tensor)
    s = subtensors[0]
    assert s.offset == 0 and s.layout == line(2) and s.carrier.dtype() is F32


def test_scatter_refuses_it():
    """Such a Tensor is what scatter must refuse (decision G: NotImplementedError)."""
    c = cs.CPU(4)
    before = state(c)
    for args in ((many_planes(), tensor(c), line(2)), (tensor(c), many_planes(), line(4))):
        with pytest.raises(NotImplementedError):
            c.scatter(*args)
    assert state(c) == before


def test_the_dtype_is_compound():
    """A dtype that is none: TypeError; one that is not compound: TypeError or ValueError."""
    for dtype in ("Float32", None, 3):
        with pytest.raises(TypeError):
            cs.Tensor.from_subtensors(dtype, parts(), [line(2)])
    for dtype in (F32, cs.DType.Any):
        with pytest.raises((TypeError, ValueError)):
            build(dtype)


def test_one_subtensor_per_plane():
    """As many as planes, Subtensors all."""
    for count in (0, 1, 3):
        with pytest.raises(ValueError):
            build(subtensors=(parts() + parts())[:count])
    for bad in ([1, 2], [None, None], [tensor(cs.CPU(2))] * 2, 3):
        with pytest.raises(TypeError):
            build(subtensors=bad)


def test_every_carrier_of_the_planes_dtype():
    """Every carrier is of the plane's dtype, in order."""
    with pytest.raises((TypeError, ValueError)):
        build(subtensors=parts(dtypes=(I32, F32)))
    with pytest.raises((TypeError, ValueError)):
        build(subtensors=parts(dtypes=(F32, F32)))


def test_every_carrier_of_one_exact_class():
    """Every carrier of one exact class."""
    mixed = [parts()[0], cs.Subtensor(small(4, I32), 0, line(2))]
    with pytest.raises((TypeError, ValueError)):
        build(subtensors=mixed)
    same = [cs.Subtensor(small(4, d), 0, line(2)) for d in (F32, I32)]
    assert build(subtensors=same).dtype().is_compound()


def test_every_placement_in_bounds():
    """Every placement in bounds: ValueError or TypeError, before anything is returned."""
    c = cs.CPU(4, dtype=F32)
    for offset, layout, error in (
        (-1, line(2), ValueError),
        (3, line(2), ValueError),
        (2**70, line(1), ValueError),
        (1.0, line(2), TypeError),
        (0, None, TypeError),
    ):
        with pytest.raises(error):
            build(subtensors=[cs.Subtensor(c, offset, layout), parts()[1]])
    with pytest.raises(TypeError):
        build(subtensors=[cs.Subtensor(None, 0, line(2)), parts()[1]])


def test_adjacent_layouts():
    """n-1 adjacent Layouts: same shape as the level they leave, indices inside the next level's size."""
    for adjacent, error in (
        ([], ValueError),
        ([line(2), line(2)], ValueError),
        ([line(3)], ValueError),
        ([line(2, 2)], ValueError),
        ([cs.Layout(cs.Shape([[2]]), cs.Stride([[1]]))], ValueError),
        ([None], TypeError),
        ([3], TypeError),
    ):
        with pytest.raises(error):
            build(adjacent=adjacent)
    with pytest.raises(ValueError):
        cs.Tensor.from_subtensors(compound(), parts())
    wide = parts(layouts=[line(2), line(4)])
    assert build(subtensors=wide, adjacent=[line(2, 3)]).dtype().is_compound()


def test_three_planes():
    """n planes, n-1 adjacent layouts."""
    dtype = compound((F32, I32, F32))
    three = parts((cs.CPU,) * 3, (F32, I32, F32))
    assert cs.Tensor.from_subtensors(dtype, three, [line(2), line(2)]).dtype() is dtype
    with pytest.raises(ValueError):
        cs.Tensor.from_subtensors(dtype, three, [line(2)])


def test_a_released_carrier():
    """Tensor construction over a released carrier is a RuntimeError (decision E)."""
    c = cs.CPU(4, dtype=F32)
    good = parts()[1]
    c.release()
    with pytest.raises(RuntimeError):
        build(subtensors=[cs.Subtensor(c, 0, line(2)), good])
    late = parts()
    late[0].carrier.release()
    with pytest.raises(RuntimeError):
        build(subtensors=late)
