# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M, DLPack in: CPU.from_dlpack wraps, keeps the owner alive, and says what it cannot take."""

import array
import ctypes
import gc
import math

import carrier_storage as cs
import pytest
from capsules import READ_ONLY, Exporter, name_of
from handed import NAMES, copies, layouts, library, shares, simple

from helpers import tensor, values
from kinds import BOOL, F32, I32, each

BOTH = pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "unversioned"])
FLOATS = [1.0, 2.0, 3.0, 4.0]


def floats(count):
    return array.array("f", range(count))


@BOTH
@pytest.mark.parametrize(("code", "dtype"), [("f", F32), ("i", I32)])
def test_wrapping(versioned, code, dtype):
    """No copy: the carrier is over the exporter's memory."""
    memory = array.array(code, [1, 2, 3, 4])
    c = cs.CPU.from_dlpack(Exporter(memory, versioned=versioned), mutable=True)
    assert type(c) is cs.CPU and c.dtype() is dtype and c.version == 0 and not c.is_owned()
    assert c.pointer() == memory.buffer_info()[0] and values(c) == [1, 2, 3, 4]
    c[1] = 20
    memory[2] = 30
    assert memory.tolist() == values(c) == [1, 20, 30, 4]


@BOTH
def test_bool_bytes(versioned):
    """Any byte but 0 is true, as elsewhere."""
    memory = array.array("B", [0, 1, 2, 255])
    c = cs.CPU.from_dlpack(Exporter(memory, versioned=versioned, type=(6, 8)))
    assert c.dtype() is BOOL and values(c) == [False, True, True, True]
    assert list(c.new_like(c)) == [False, True, True, True]


@pytest.mark.parametrize(
    ("versioned", "flags", "wanted", "result"),
    [
        (True, 0, None, True),
        (True, 0, True, True),
        (True, 0, False, False),
        (True, READ_ONLY, None, False),
        (True, READ_ONLY, False, False),
        (True, READ_ONLY, True, BufferError),
        (False, 0, None, False),
        (False, 0, False, False),
        (False, 0, True, True),
    ],
)
def test_mutability(versioned, flags, wanted, result):
    """As the source is, unless told otherwise; an unversioned capsule cannot tell, so it comes in immutable."""
    source = Exporter(versioned=versioned, flags=flags)
    if result is BufferError:
        with pytest.raises(BufferError, match="read-only"):
            cs.CPU.from_dlpack(source, mutable=wanted)
        return
    c = cs.CPU.from_dlpack(source, mutable=wanted)
    assert c.is_mutable() is result
    if wanted is None:
        assert cs.CPU.from_dlpack(source).is_mutable() is result
    if not result:
        with pytest.raises(RuntimeError):
            c[0] = 9.0
        with pytest.raises(BufferError):
            c.__dlpack__()
        assert source.memory.tolist() == FLOATS


DENSE = [
    ((), None),
    ((0,), None),
    ((0,), (9,)),
    ((3, 0, 2), (0, 0, 0)),
    ((0, 2**62, 4), None),
    ((4,), None),
    ((4,), (1,)),
]
DENSE += [
    ((1,), (-7,)),
    ((2, 3), None),
    ((2, 3), (3, 1)),
    ((6, 1), (1, 99)),
    ((1, 6), (99, 1)),
    ((2, 1, 3), (3, 0, 1)),
]
DENSE += [((1, 1), (5, 6)), ((1,) * 70, None)]
SPREAD = [
    ((3,), (2,)),
    ((3,), (0,)),
    ((3,), (-1,)),
    ((2, 3), (1, 2)),
    ((2, 3), (4, 1)),
    ((2, 3), (0, 1)),
    ((2, 2, 2), (4, 1, 2)),
]


@BOTH
@pytest.mark.parametrize(("shape", "strides"), DENSE, ids=str)
def test_dense_shapes(versioned, shape, strides):
    """C order of any rank is wrapped flat; strides that no element depends on do not matter."""
    count = math.prod(shape)
    c = cs.CPU.from_dlpack(Exporter(floats(6), versioned=versioned, shape=shape, strides=strides))
    assert c.size() == count and values(c) == [float(i) for i in range(count)]


@BOTH
@pytest.mark.parametrize(("shape", "strides"), SPREAD, ids=str)
def test_other_layouts(versioned, shape, strides):
    """ValueError that says which axis."""
    source = Exporter(floats(8), versioned=versioned, shape=shape, strides=strides)
    with pytest.raises(ValueError, match="axis"):
        cs.CPU.from_dlpack(source)


@BOTH
def test_nothing_to_wrap(versioned):
    """No values need no address; the carrier has a positive one all the same."""
    source = Exporter(versioned=versioned, shape=(0,), data=None)
    c = cs.CPU.from_dlpack(source)
    assert c.size() == 0 and c.pointer() > 0 and memoryview(c).tolist() == []
    assert source.deleted == 0
    del c
    assert source.deleted == 1


@BOTH
@pytest.mark.parametrize("strides", [None, (1,)])
def test_byte_offset(versioned, strides):
    """It is part of the address, once."""
    memory = floats(6)
    c = cs.CPU.from_dlpack(Exporter(memory, versioned=versioned, shape=(4,), strides=strides, byte_offset=8))
    assert values(c) == [2.0, 3.0, 4.0, 5.0] and c.pointer() == memory.buffer_info()[0] + 8
    np = library("numpy")
    assert np.from_dlpack(tensor(c, 2, 1)).ctypes.data == memory.buffer_info()[0] + 12


@BOTH
def test_unaligned_memory(versioned):
    """An address may be any: elements and bulk alike."""
    memory = (ctypes.c_byte * 400)()
    source = Exporter(floats(90), versioned=versioned, data=ctypes.addressof(memory) + 1)
    c = cs.CPU.from_dlpack(source, mutable=True)
    for i in range(90):
        c[i] = i
    assert values(c) == list(c.new_like(c)) == [float(i) for i in range(90)]
    target = cs.CPU(90)
    target.scatter(tensor(c), tensor(target), cs.Layout(cs.Shape(90), cs.Stride(1)))
    assert values(target) == values(c)
    with c.edit() as a:
        a += 1
    assert c[3] == 4.0


BAD = [
    ({"type": (2, 64)}, TypeError),
    ({"type": (0, 64)}, TypeError),
    ({"type": (1, 32)}, TypeError),
    ({"type": (4, 16)}, TypeError),
    ({"type": (2, 16)}, TypeError),
    ({"type": (6, 32)}, TypeError),
    ({"lanes": 2}, TypeError),
    ({"lanes": 0}, TypeError),
    ({"device": 2}, BufferError),
    ({"device": 8}, BufferError),
    ({"inner_device": 2}, BufferError),
    ({"shape": (-1,)}, ValueError),
    ({"shape": (2, -3)}, ValueError),
    ({"shape": (0, -3)}, ValueError),
    ({"rank": -1}, ValueError),
    ({"no_shape": True}, ValueError),
    ({"shape": (2**40, 2**40)}, ValueError),
    ({"shape": (2**62,)}, ValueError),
    ({"data": None}, ValueError),
    ({"data": 2**64 - 8}, ValueError),
    ({"byte_offset": 2**64 - 8}, ValueError),
]


@BOTH
@pytest.mark.parametrize(("fields", "error"), BAD, ids=str)
def test_refusals(versioned, fields, error):
    """Dtype: TypeError. Device: BufferError. Shape: ValueError. The capsule stays whole, and deletes what it holds."""
    source = Exporter(floats(4), versioned=versioned, **fields)
    with pytest.raises(error):
        cs.CPU.from_dlpack(source)
    assert source.deleted == 0 and not any(
        name_of(capsule).startswith(b"used") for capsule in source.capsules
    )
    source.capsules.clear()
    assert source.deleted == source.asked


def test_another_version():
    """BufferError, whatever else the structure says."""
    source = Exporter(major=2, type=(9, 9), shape=(-1,))
    with pytest.raises(BufferError, match="2.0"):
        cs.CPU.from_dlpack(source)
    source.capsules.clear()
    assert source.deleted == 1


def test_no_exporter():
    """TypeError that names the class, also for half an exporter."""

    class Half:
        def __dlpack_device__(self):
            return 1, 0

    class OtherHalf:
        def __dlpack__(self, **_):
            raise AssertionError("asked without asking for the device")

    for x in (None, 1, [1.0], b"1234", array.array("f", [1]), Half(), OtherHalf()):
        with pytest.raises(TypeError, match=type(x).__name__):
            cs.CPU.from_dlpack(x)


@pytest.mark.parametrize("answer", [None, (1,), (1, 0, 0), "ab", ("1", 0), 1], ids=str)
def test_a_device_that_is_none(answer):
    """TypeError that says what the exporter had to return."""

    class Odd(Exporter):
        def __dlpack_device__(self):
            return answer

    source = Odd()
    with pytest.raises(TypeError, match="__dlpack_device__"):
        cs.CPU.from_dlpack(source)
    assert source.asked == 0


def test_not_a_capsule():
    """TypeError; and a BufferError for a capsule that was taken."""
    for answer in (None, 1, object()):
        with pytest.raises(TypeError, match="capsule"):
            cs.CPU.from_dlpack(Exporter(answers=lambda answer=answer: answer))
    source = Exporter()
    capsule = source.capsule()
    again = Exporter(answers=lambda: capsule)
    c = cs.CPU.from_dlpack(again)
    for _ in range(2):
        with pytest.raises(BufferError, match="once"):
            cs.CPU.from_dlpack(again)
    assert values(c) == FLOATS and source.deleted == 0


@pytest.mark.parametrize(
    "error", [BufferError, ValueError, RuntimeError, TypeError, KeyError, KeyboardInterrupt]
)
def test_the_exporters_own_error(error):
    """It passes through, from whichever method."""

    def fail():
        raise error("mine")

    with pytest.raises(error, match="mine"):
        cs.CPU.from_dlpack(Exporter(answers=fail))

    class Unplaced(Exporter):
        def __dlpack_device__(self):
            fail()

    with pytest.raises(error, match="mine"):
        cs.CPU.from_dlpack(Unplaced())


def test_an_error_of_a_property():
    """What looking a method up raises passes through too; only its absence is a TypeError."""

    class Lazy:
        @property
        def __dlpack_device__(self):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        cs.CPU.from_dlpack(Lazy())


def test_an_exporter_that_knows_no_version():
    """It is asked again without."""

    class Old(Exporter):
        def __dlpack__(self, stream=None):
            return super().__dlpack__()

    source = Old(versioned=False)
    assert values(cs.CPU.from_dlpack(source)) == FLOATS and source.asked == 1


def test_arguments():
    """mutable is an exact bool or None; all else is asked for by keyword. Nothing is asked of the exporter before."""
    source = Exporter()
    for bad in (1, "yes", 0):
        with pytest.raises(TypeError, match="mutable"):
            cs.CPU.from_dlpack(source, mutable=bad)
    for call in (cs.CPU.from_dlpack, lambda: cs.CPU.from_dlpack(source, True)):
        with pytest.raises(TypeError):
            call()
    assert source.asked == 0


@BOTH
def test_deleted_exactly_once(versioned):
    """With the last user of the memory: the carrier, or what it handed out."""
    source = Exporter(floats(3000), versioned=versioned)
    c = cs.CPU.from_dlpack(source)
    assert name_of(source.capsules[0]).startswith(b"used_dltensor")
    source.capsules.clear()
    view = memoryview(c)
    twin, other = c.new_like([1]), c.allocate_like(2)
    c.release()
    del c
    gc.collect()
    assert source.deleted == 0 and view[2999] == 2999.0
    del view
    assert source.deleted == 1 and values(twin) == [1.0] and values(other) == [0.0, 0.0]


@BOTH
def test_no_deleter(versioned):
    """A structure may have none."""
    source = Exporter(versioned=versioned, no_deleter=True)
    assert values(cs.CPU.from_dlpack(source)) == FLOATS


def test_eviction_gives_the_memory_back():
    """Values that moved down need their old memory no more."""
    source = Exporter()
    h = cs.Evictable(cs.CPU.from_dlpack(source), cs.FileBacked(dtype=F32))
    h.evict()
    assert source.deleted == 1
    h.promote()
    assert values(h) == FLOATS


@each(shares)
def test_our_own(cell):
    """Carriers and Tensors come in too, and what is read-only stays so."""
    c = cell.make(12)
    twin = cs.CPU.from_dlpack(c)
    assert values(twin) == cell.samples(12) and twin.dtype() is cell.dtype
    assert twin.is_mutable() is simple(cell.kind)
    assert twin.numpy().ctypes.data == c.numpy().ctypes.data
    assert not cs.CPU.from_dlpack(cell.make(3, mutable=False)).is_mutable()
    for t, expected in layouts(c):
        if expected.flags.c_contiguous and t.numpy().flags.c_contiguous:
            assert values(cs.CPU.from_dlpack(t)) == expected.ravel().tolist()
        else:
            with pytest.raises(ValueError):
                cs.CPU.from_dlpack(t)


@each(copies)
def test_what_hands_nothing_out(cell):
    """The exporter's BufferError passes through."""
    with pytest.raises(BufferError, match="copy=True"):
        cs.CPU.from_dlpack(cell.make(3))


@pytest.mark.parametrize("dtype", [F32, I32, BOOL], ids=lambda d: d.name)
@pytest.mark.parametrize("writeable", [True, False])
def test_numpy(dtype, writeable):
    """NumPy arrays of any C-contiguous shape."""
    np = library("numpy")
    for shape in ((), (0,), (5,), (2, 3), (2, 1, 3)):
        a = np.arange(math.prod(shape)).astype(NAMES[dtype]).reshape(shape)
        a.flags.writeable = writeable
        c = cs.CPU.from_dlpack(a)
        assert values(c) == a.ravel().tolist() and c.is_mutable() is writeable
        assert a.size == 0 or c.pointer() == a.ctypes.data
    for a in (np.ones((2, 3), NAMES[dtype]).T, np.ones(6, NAMES[dtype])[::2]):
        with pytest.raises(ValueError):
            cs.CPU.from_dlpack(a)
    for name in ("f8", "i8", "u4", "i2", "c8"):
        with pytest.raises(TypeError):
            cs.CPU.from_dlpack(np.ones(3, name))
    with pytest.raises(BufferError):
        cs.CPU.from_dlpack(np.ones(3, ">f4"))


@pytest.mark.parametrize("dtype", [F32, I32, BOOL], ids=lambda d: d.name)
def test_torch(dtype):
    """torch tensors: shared, writable, alive as long as the carrier; torch's own refusal passes through."""
    torch = library("torch")
    t = torch.tensor([[1, 0], [3, 4]], dtype=getattr(torch, NAMES[dtype]))
    c = cs.CPU.from_dlpack(t)
    assert c.is_mutable() and values(c) == t.flatten().tolist() and c.pointer() == t.data_ptr()
    expected = t.flatten().tolist()
    del t
    gc.collect()
    assert values(c) == expected
    with pytest.raises(BufferError):
        cs.CPU.from_dlpack(torch.ones(3, requires_grad=True))
    with pytest.raises(ValueError):
        cs.CPU.from_dlpack(torch.ones(2, 3).t())


def test_jax():
    """JAX arrays are immutable: they come in so, and mutable=True is a BufferError."""
    jnp = library("jax.numpy")
    for dtype in (F32, I32, BOOL):
        j = jnp.asarray([[1, 0], [1, 1]], NAMES[dtype])
        c = cs.CPU.from_dlpack(j)
        assert not c.is_mutable() and values(c) == [v for row in j.tolist() for v in row]
        assert not cs.CPU.from_dlpack(j, mutable=False).is_mutable()
        with pytest.raises(BufferError, match="JAX"):
            cs.CPU.from_dlpack(j, mutable=True)
