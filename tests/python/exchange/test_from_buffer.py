# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M, buffers in: CPU.from_buffer wraps typed memory and holds it for as long as it is used."""

import array
import ctypes
import gc
import mmap
import struct
import sys

import carrier_storage as cs
import pytest
from handed import NAMES, copies, library, shares

from helpers import tensor, values
from kinds import BOOL, F32, I32, each


def grow(memory: array.array) -> None:
    """Fails with a BufferError for as long as somebody holds the array's memory."""
    memory.append(memory[0])


@pytest.mark.parametrize(("code", "dtype"), [("f", F32), ("i", I32)])
def test_wrapping(code, dtype):
    """No copy: the carrier is over the buffer's memory."""
    memory = array.array(code, [1, 2, 3])
    c = cs.CPU.from_buffer(memory)
    assert type(c) is cs.CPU and c.dtype() is dtype and c.version == 0 and c.is_mutable()
    assert c.pointer() == memory.buffer_info()[0]
    c[0] = 10
    memory[1] = 20
    assert values(c) == memory.tolist() == [10, 20, 3]


def test_bool():
    """Format "?"; any byte but 0 is true, as elsewhere."""
    memory = bytearray([0, 1, 2, 255])
    c = cs.CPU.from_buffer(memoryview(memory).cast("?"))
    assert c.dtype() is BOOL and values(c) == [False, True, True, True]
    c[0] = True
    c[3] = False
    assert memory == bytes([1, 1, 2, 0])


def test_mutability():
    """As the source is, unless told otherwise; writing to read-only memory cannot be asked for."""
    raw = struct.pack("3f", 1, 2, 3)
    writable, constant = bytearray(raw), raw
    for wanted, result in ((None, True), (True, True), (False, False)):
        c = cs.CPU.from_buffer(memoryview(writable).cast("f"), mutable=wanted)
        assert c.is_mutable() is result
    for source in (memoryview(constant).cast("f"), memoryview(writable).toreadonly().cast("f")):
        for wanted in (None, False):
            c = cs.CPU.from_buffer(source, mutable=wanted)
            assert not c.is_mutable()
            for write in (lambda c=c: c.set_value(0, 9.0), c.edit().__enter__):
                with pytest.raises(RuntimeError):
                    write()
            with pytest.raises(BufferError):
                c.__dlpack__()
        with pytest.raises(BufferError, match="read-only"):
            cs.CPU.from_buffer(source, mutable=True)
    assert constant == raw and writable == raw


NATIVE, FOREIGN = ("<", ">") if sys.byteorder == "little" else (">", "<")
FINE = [
    ("f", F32),
    ("=f", F32),
    (NATIVE + "f", F32),
    ("@f", F32),
    ("i", I32),
    (NATIVE + "i", I32),
    ("=i", I32),
]
FINE += [("=l", I32), (NATIVE + "l", I32), ("?", BOOL), (NATIVE + "?", BOOL), ("@?", BOOL)]
OTHER = [
    FOREIGN + "f",
    FOREIGN + "i",
    "!f",
    "d",
    "e",
    "q",
    "I",
    "h",
    "b",
    "B",
    "c",
    "l" if struct.calcsize("l") == 8 else "q",
]
OTHER += ["P", "2f", "ff", "T{f:x:}", "Zf", "g", "s", "O", ""]


class Py_buffer(ctypes.Structure):
    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.c_void_p),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.POINTER(ctypes.c_ssize_t)),
        ("strides", ctypes.POINTER(ctypes.c_ssize_t)),
        ("suboffsets", ctypes.POINTER(ctypes.c_ssize_t)),
        ("internal", ctypes.c_void_p),
    )


_from_view = ctypes.pythonapi.PyMemoryView_FromBuffer
_from_view.restype, _from_view.argtypes = ctypes.py_object, [ctypes.POINTER(Py_buffer)]
_for_ever: list = []


def _numbers(values):
    return None if values is None else (ctypes.c_ssize_t * max(len(values), 1))(*values)


def made(fmt, raw, itemsize=None, shape=None, strides=None, length=None, suboffsets=None):
    """A memoryview whose every field is chosen, over a copy of the bytes."""
    memory = ctypes.create_string_buffer(bytes(raw), len(raw) or 1)
    itemsize = itemsize or (struct.calcsize(fmt) if fmt else 1)
    shape = (len(raw) // itemsize,) if shape is None else shape
    v = Py_buffer(
        ctypes.addressof(memory), None, len(raw) if length is None else length, itemsize, 0, len(shape)
    )
    v.format = fmt.encode() if fmt is not None else None
    v.shape, v.strides, v.suboffsets = _numbers(shape), _numbers(strides), _numbers(suboffsets)
    _for_ever.append((memory, v))
    return _from_view(ctypes.byref(v))


@pytest.mark.parametrize(("fmt", "dtype"), FINE)
def test_formats(fmt, dtype):
    """f, i or another integer of four bytes, ?; a prefix that means native order is ignored."""
    raw = struct.pack(f"={'2?' if dtype is BOOL else '2' + fmt[-1]}", 1, 0)
    c = cs.CPU.from_buffer(made(fmt, raw, itemsize=1 if dtype is BOOL else 4))
    assert c.dtype() is dtype and values(c) == [1, 0]


@pytest.mark.parametrize("fmt", OTHER)
def test_other_formats(fmt):
    """TypeError that names the format; swapped bytes are never read as if they were not."""
    size = {"T{f:x:}": 4, "Zf": 8, "g": 16, "s": 1, "O": 8, "": 1}.get(fmt) or struct.calcsize(fmt)
    with pytest.raises(TypeError, match="format"):
        cs.CPU.from_buffer(made(fmt, bytes(size * 2), itemsize=size))


def test_bytes():
    """Untyped bytes are no slots."""
    for source in (bytes(8), bytearray(8), memoryview(bytes(8)), made(None, bytes(8))):
        with pytest.raises(TypeError, match="format"):
            cs.CPU.from_buffer(source)


def test_no_buffer():
    """TypeError that names the class."""
    for x in (
        None,
        1,
        [1.0],
        "text",
        object(),
        cs.Tensor(cs.CPU(1), 0, cs.Layout(cs.Shape(1), cs.Stride(1))),
    ):
        with pytest.raises(TypeError, match=type(x).__name__):
            cs.CPU.from_buffer(x)


DENSE = [
    ((), None),
    ((0,), None),
    ((0,), (99,)),
    ((6,), None),
    ((6,), (4,)),
    ((1,), (0,)),
    ((2, 3), (12, 4)),
    ((2, 3), None),
]
DENSE += [((1, 6), (999, 4)), ((6, 1), (4, -8)), ((3, 0, 2), (0, 0, 0)), ((2, 1, 3), (12, 7, 4))]
SPREAD = [((3,), (8,)), ((3,), (0,)), ((2, 3), (4, 8)), ((2, 2), (12, 4)), ((3,), (-4,))]


@pytest.mark.parametrize(("shape", "strides"), DENSE, ids=str)
def test_dense_shapes(shape, strides):
    """C order of any rank is wrapped flat; strides that no element depends on do not matter."""
    count = 1
    for n in shape:
        count *= n
    raw = struct.pack(f"={count}i", *range(count))
    c = cs.CPU.from_buffer(made("i", raw, shape=shape, strides=strides))
    assert values(c) == list(range(count)) and c.pointer() > 0


@pytest.mark.parametrize(("shape", "strides"), SPREAD, ids=str)
def test_other_layouts(shape, strides):
    """ValueError that says which axis."""
    count = 1
    for n in shape:
        count *= n
    with pytest.raises(ValueError, match="axis"):
        cs.CPU.from_buffer(made("i", bytes(64), shape=shape, strides=strides, length=4 * count))


def test_shapes_that_lie():
    """Negative extents, lengths that disagree, rows in different places: ValueError."""
    for kw in (
        {"shape": (-1,), "length": -4},
        {"shape": (2**62,)},
        {"shape": (5,), "length": 16},
        {"shape": (3,), "length": 16},
    ):
        with pytest.raises(ValueError):
            cs.CPU.from_buffer(made("i", bytes(16), **kw))
    with pytest.raises(ValueError, match="places"):
        cs.CPU.from_buffer(made("i", bytes(16), shape=(2, 2), strides=(8, 4), suboffsets=(0, -1)))


def test_unaligned_memory():
    """An address may be any."""
    memory = bytearray(17)
    c = cs.CPU.from_buffer(memoryview(memory)[1:].cast("f"))
    for i in range(4):
        c[i] = i + 0.5
    assert values(c) == list(c.new_like(c)) == [0.5, 1.5, 2.5, 3.5]
    assert struct.unpack_from("=4f", memory, 1) == (0.5, 1.5, 2.5, 3.5)


def test_arguments():
    """mutable is an exact bool or None; all else is asked for by keyword. The buffer is not held afterwards."""
    memory = array.array("i", [1])
    for call in (
        lambda: cs.CPU.from_buffer(memory, mutable=1),
        lambda: cs.CPU.from_buffer(memory, True),
        cs.CPU.from_buffer,
    ):
        with pytest.raises(TypeError):
            call()
    grow(memory)


REFUSED = [
    (array.array("d", [1.0]), lambda b: b, {}),
    (array.array("q", [1]), lambda b: b, {}),
    (array.array("i", [1, 2, 3]), lambda b: memoryview(b)[::2], {}),
    (array.array("i", [1, 2, 3]), lambda b: memoryview(b).toreadonly(), {"mutable": True}),
]


@pytest.mark.parametrize(("memory", "view", "asked"), REFUSED, ids=["d", "q", "strided", "read-only"])
def test_a_refused_buffer_is_given_back(memory, view, asked):
    """Its owner can go on at once."""
    for _ in range(3):
        with pytest.raises((TypeError, ValueError, BufferError)):
            cs.CPU.from_buffer(view(memory), **asked)
    gc.collect()
    grow(memory)


def test_held_as_long_as_it_is_used():
    """By the carrier and by what it handed out; not by its twins."""
    for end in ("release", "drop", "evict"):
        memory = array.array("i", range(2000))
        c = cs.CPU.from_buffer(memory)
        with pytest.raises(BufferError):
            grow(memory)
        twins = [c.new_like(c), c.allocate_like(3)]
        view = memoryview(c)
        h = cs.Evictable(c, cs.FileBacked(dtype=I32)) if end == "evict" else None
        if h is not None:
            h.evict()
        elif end == "release":
            c.release()
        del c
        gc.collect()
        with pytest.raises(BufferError):
            grow(memory)
        assert view[1999] == 1999
        del view
        grow(memory)
        assert values(twins[0]) == list(range(2000))
        if h is not None:
            h.promote()
            assert h[1999] == 1999


def test_a_mapped_file(tmp_path):
    """mmap: a file as a carrier, read-only or not, and closed only when the carrier is gone."""
    path = tmp_path / "values"
    path.write_bytes(struct.pack("=4i", 1, 2, 3, 4))
    with open(path, "r+b") as file:
        mapped = mmap.mmap(file.fileno(), 0)
        constant = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    c = cs.CPU.from_buffer(memoryview(mapped).cast("i"))
    frozen = cs.CPU.from_buffer(memoryview(constant).cast("i"))
    c[3] = 40
    assert not frozen.is_mutable() and values(frozen) == [1, 2, 3, 40]
    with pytest.raises(BufferError):
        mapped.close()
    c.release()
    mapped.close()
    assert path.read_bytes() == struct.pack("=4i", 1, 2, 3, 40)


@pytest.mark.parametrize("error", [BufferError, ValueError, RuntimeError, TypeError])
def test_the_exporters_own_error(error):
    """It passes through."""
    if sys.version_info < (3, 12):
        closed = memoryview(array.array("f", [1]))
        closed.release()
        with pytest.raises(ValueError, match="released"):
            cs.CPU.from_buffer(closed)
        return

    class Own:
        def __buffer__(self, flags):
            raise error("mine")

    with pytest.raises(error, match="mine"):
        cs.CPU.from_buffer(Own())


@each(shares)
def test_our_own(cell):
    """A carrier's memory comes in as it goes out: read-only, the same bytes."""
    c = cell.make(5)
    twin = cs.CPU.from_buffer(c)
    assert values(twin) == cell.samples(5) and not twin.is_mutable()
    if hasattr(c, "pointer"):
        assert twin.pointer() == c.pointer()
    with pytest.raises(BufferError):
        cs.CPU.from_buffer(c, mutable=True)
    c.release()
    assert values(twin) == cell.samples(5)


@each(copies)
def test_what_hands_nothing_out(cell):
    """The exporter's BufferError passes through."""
    with pytest.raises(BufferError, match="copy"):
        cs.CPU.from_buffer(cell.make(3))


@pytest.mark.parametrize("dtype", [F32, I32, BOOL], ids=lambda d: d.name)
def test_numpy(dtype):
    """NumPy arrays of any C-contiguous shape, read-only or not."""
    np = library("numpy")
    for shape in ((), (0,), (5,), (2, 3), (2, 1, 3)):
        a = np.ones(shape, NAMES[dtype])
        c = cs.CPU.from_buffer(a)
        assert values(c) == a.ravel().tolist() and c.is_mutable()
        a.flags.writeable = False
        assert not cs.CPU.from_buffer(a).is_mutable()
    for a in (
        np.ones((2, 3), NAMES[dtype]).T,
        np.ones(6, NAMES[dtype])[::2],
        np.broadcast_to(np.ones(1, NAMES[dtype]), 5),
    ):
        with pytest.raises(ValueError):
            cs.CPU.from_buffer(a)
    for name in (">f4", ">i4", "f8", "i8", "u4", "S4", "O"):
        with pytest.raises((TypeError, ValueError)):
            cs.CPU.from_buffer(np.ones(3, name))


def test_scatter_and_hierarchies():
    """A wrapped carrier is a carrier like any other."""
    memory = array.array("f", bytes(24))
    c = cs.CPU.from_buffer(memory)
    source = cs.CPU(0).new_like([1, 2, 3])
    c.scatter(tensor(source), tensor(c), cs.Layout(cs.Shape(3), cs.Stride(2)))
    assert memory.tolist() == [1, 0, 2, 0, 3, 0] and c.version == 1
    h = cs.Evictable(c, cs.CPU(0))
    h.evict()
    h.promote()
    h[1] = 9
    assert list(h) == [1, 9, 2, 0, 3, 0] and memory.tolist() == [1, 0, 2, 0, 3, 0]
