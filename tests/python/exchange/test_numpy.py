# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M, NumPy: numpy(), __array__ and what numpy.asarray and numpy.array make of carriers and Tensors."""

import itertools
import warnings

import carrier_storage as cs
import pytest
from handed import NAMES, copies, layouts, library, shares, simple

from customs import HookedCarrier
from helpers import many_planes, run_child, state, tensor
from kinds import BOOL, F32, I32, each, is_evictable

np = pytest.importorskip("numpy", reason="NumPy is not installed here")


@pytest.fixture(autouse=True)
def _strict():
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy warns about an __array__ without dtype and copy
        yield


@each()
def test_numpy_is_read_only(cell):
    """c.numpy() is the read-only array, on every kind; not a version step."""
    c = cell.make(5)
    before = state(c)
    a = c.numpy()
    assert type(a) is np.ndarray and (a.shape, a.dtype.name) == ((5,), NAMES[cell.dtype])
    assert a.tolist() == cell.samples(5) and not a.flags.writeable
    with pytest.raises(ValueError):
        a[0] = 0
    with pytest.raises(ValueError):
        a.flags.writeable = True
    assert state(c) == before
    assert cell.make([]).numpy().shape == (0,)


@each(shares)
def test_zero_copy(cell):
    """One memory behind every array, which sees later writes."""
    c = cell.make(4)
    arrays = [c.numpy(), np.asarray(c), np.asarray(c, copy=False), tensor(c).numpy(), np.asarray(tensor(c))]
    arrays.append(np.frombuffer(c, arrays[0].dtype))
    assert len({a.ctypes.data for a in arrays}) == 1
    value = not c[1] if cell.dtype is BOOL else cell.good
    c[1] = value
    assert all(a[1] == value and not a.flags.writeable for a in arrays)


@each(copies)
def test_a_copy(cell):
    """FileBacked and custom carriers give NumPy a copy: its own, so asarray's may be written."""
    c = cell.make(4)
    for x in (c, tensor(c)):
        one, two = np.asarray(x), x.numpy()
        assert one.flags.writeable and not two.flags.writeable
        one[0] = one[1]
        assert list(c) == two.tolist() == cell.samples(4) and c.version == 0
        with pytest.raises(ValueError, match="copy"):
            np.asarray(x, copy=False)


@each()
def test_copy_true(cell):
    """numpy.array is the caller's own, on every kind."""
    c = cell.make(4)
    for x in (c, tensor(c)):
        for a in (np.array(x), np.array(x, copy=True), x.__array__(copy=True), x.__array__(None, True)):
            assert a.flags.writeable
            assert a.tolist() == cell.samples(4)
            a[:] = a[::-1]
            assert list(c) == cell.samples(4)


@each()
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "?", "c16", "O"])
def test_conversions(cell, dtype):
    """Conversions follow NumPy, and are a copy."""
    c = cell.make(4)
    for x in (c, tensor(c)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # out of an integer's range
            expected = c.numpy().astype(dtype)
            for a in (np.asarray(x, dtype=dtype), np.array(x, dtype), x.__array__(np.dtype(dtype))):
                assert a.dtype == np.dtype(dtype)
                np.testing.assert_array_equal(a, expected)
        same = expected.dtype == c.numpy().dtype
        if same and shares(cell.kind):
            assert np.asarray(x, dtype=dtype, copy=False).ctypes.data == c.numpy().ctypes.data
        else:
            with pytest.raises(ValueError):
                np.asarray(x, dtype=dtype, copy=False)


@each()
def test_arguments(cell):
    """Wrong arguments are a TypeError, before the state is looked at."""
    c = cell.make(2)
    t = tensor(c)
    c.release()
    for x in (c, t):
        for bad in (1, "no", [], np.True_):
            with pytest.raises(TypeError):
                x.__array__(copy=bad)
    d = cell.make(2)
    with pytest.raises(TypeError):
        d.__array__(dtype="no such dtype")


@each()
def test_released(cell):
    """A RuntimeError from numpy.asarray, numpy.array and numpy(), never an object array."""
    c = cell.make(3)
    t = tensor(c)
    c.release()
    for x in (c, t):
        calls = (
            np.asarray,
            np.array,
            lambda x: x.numpy(),
            lambda x: np.asarray(x, "f8"),
            lambda x: np.array([x, x]),
        )
        for call in (*calls, lambda x: np.asarray(x, copy=False)):
            with pytest.raises(RuntimeError, match="released"):
                call(x)


@each(is_evictable)
def test_evicted(cell):
    """As after release, and the message names promote()."""
    h = cell.make(3)
    t = tensor(h)
    h.evict()
    for x in (h, t):
        for call in (np.asarray, np.array, lambda x: x.numpy()):
            with pytest.raises(RuntimeError, match=r"promote\(\)"):
                call(x)
    h.promote()
    assert np.asarray(h).tolist() == t.numpy().tolist() == cell.samples(3)


@each()
def test_axes_of_a_tensor(cell):
    """Axis k is the k-th leaf mode, so ravel("F") is the logical order; no copy where there is memory."""
    c = cell.make(12)
    for t, expected in layouts(c):
        a = t.numpy()
        assert a.shape == expected.shape and a.dtype == expected.dtype
        np.testing.assert_array_equal(a, expected)
        assert a.ravel("F").tolist() == [t[i] for i in range(t.size())]
        np.testing.assert_array_equal(np.asarray(t), expected)
        assert not a.flags.writeable
        if shares(cell.kind):
            assert a.ctypes.data == c.numpy().ctypes.data + t.offset * a.itemsize
            assert np.asarray(t, copy=False).ctypes.data == a.ctypes.data


@each(simple)
def test_zero_copy_of_a_strided_tensor(cell):
    """A write to the carrier is seen through every layout."""
    c = cell.make(12)
    arrays = [t.numpy() for t, _ in layouts(c)]
    for i in range(12):
        c[i] = not c[i] if cell.dtype is BOOL else cell.good
    for (_, expected), a in zip(layouts(c), arrays, strict=True):
        np.testing.assert_array_equal(a, expected)


def test_no_axes():
    """Shape() is a 0-d array of the one value."""
    c = cs.CPU(0).new_like([1.5, 2.5])
    t = cs.Tensor(c, 1, cs.Layout(cs.Shape(), cs.Stride()))
    for a in (t.numpy(), np.asarray(t), np.array(t)):
        assert a.shape == () and a[()] == 2.5


def test_too_many_axes():
    """More axes than NumPy has are its own ValueError."""
    ones = [1] * 100
    t = cs.Tensor(cs.CPU(1), 0, cs.Layout(cs.Shape(*ones), cs.Stride(*ones)))
    with pytest.raises(ValueError):
        t.numpy()


def test_several_subtensors():
    """NotImplementedError: there is no one array for them."""
    for call in (np.asarray, lambda t: t.numpy()):
        with pytest.raises(NotImplementedError):
            call(many_planes())


def test_a_dtype_without_bytes():
    """A TypeError that says to read the slots one by one, never an object array."""
    for held, values in ((cs.DType.Float64, [1.0]), (cs.DType.Any, ["x"])):
        c = HookedCarrier(values, held)
        for call in (np.asarray, np.array, lambda c: c.numpy()):
            with pytest.raises(TypeError, match="one by one"):
                call(c)


def test_hooks_that_raise():
    """A hook's error comes through."""

    class Broken(HookedCarrier):
        def _get_value(self, index, /):
            raise LookupError("mine")

    for call in (np.asarray, lambda c: c.numpy(), lambda c: tensor(c).numpy()):
        with pytest.raises(LookupError, match="mine"):
            call(Broken([1.0], F32))


@pytest.mark.parametrize(
    ("dtype", "values"), [(F32, [1.5, -0.0, 2.0**127]), (I32, [1, -(2**31)]), (BOOL, [True, False])]
)
def test_numpy_round_trip(dtype, values):
    """Out to NumPy and in again: every bit."""
    c = cs.CPU(0, dtype=dtype).new_like(values)
    assert repr(list(cs.CPU(0, dtype=dtype).new_like(c.numpy()))) == repr(values)
    assert repr(list(cs.CPU.from_buffer(c.numpy()))) == repr(values)
    assert repr(list(cs.CPU.from_dlpack(c.numpy()))) == repr(values)


def test_jax_round_trip():
    """JAX takes carriers through jnp.asarray(c.numpy()), and its arrays come in by both doors."""
    jnp = library("jax.numpy")
    for dtype, kind in itertools.product((F32, I32, BOOL), (cs.CPU, cs.FileBacked)):
        if (kind, dtype) == (cs.FileBacked, BOOL):
            continue
        values = {F32: [1.5, 2.5], I32: [1, -2], BOOL: [True, False]}[dtype]
        c = (kind(0, dtype=dtype) if kind is cs.CPU else kind(dtype=dtype)).new_like(values)
        j = jnp.asarray(c.numpy())
        assert j.dtype.name == NAMES[dtype] and j.tolist() == values
        for door in (cs.CPU.from_dlpack, cs.CPU.from_buffer):
            twin = door(j)
            assert list(twin) == values and not twin.is_mutable()


def test_numpy_is_imported_by_need():
    """Nothing imports NumPy before the first array; without NumPy the calls say so and the rest works."""
    run_child("""
        import carrier_storage as cs
        c = cs.CPU(3)
        memoryview(c); c.__dlpack__(); cs.CPU.from_dlpack(c)
        assert "numpy" not in sys.modules
        sys.modules["numpy"] = None
        t = cs.Tensor(c, 0, cs.Layout(cs.Shape(3), cs.Stride(1)))
        for call in (c.numpy, c.__array__, c.edit().__enter__, t.numpy, t.__array__):
            try:
                call()
            except ImportError as error:
                assert "pip install numpy" in str(error)
                continue
            raise AssertionError(call)
        assert c.version == 2 and memoryview(c).tolist() == [0.0] * 3
    """)
