# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions M, DLPack out: what goes into the capsule, when it is writable, and what other libraries see."""

import ctypes
import gc
import sys

import carrier_storage as cs
import pytest
from capsules import (
    COPIED,
    READ_ONLY,
    Unversioned,
    Versioned,
    delete,
    inside,
    name_of,
    shape_of,
    strides_of,
    take,
)
from handed import LAYOUTS, NAMES, copies, layouts, leaves, library, shares, simple

from customs import HookedCarrier
from helpers import many_planes, state, tensor, values
from kinds import BOOL, F32, I32, each, is_evictable

TYPES = {F32: (2, 32), I32: (0, 32), BOOL: (6, 8)}
OLD = ({}, {"max_version": None}, {"max_version": (0, 8)})
NEW = ({"max_version": (1, 0)}, {"max_version": (1, 3)}, {"max_version": (2, 0)})
PLACES = {"dl_device": (1, 0), "stream": None}


def data(managed) -> list:
    """The values behind a structure, in the order of memory."""
    a = managed.array
    kind = {(2, 32): ctypes.c_float, (0, 32): ctypes.c_int32, (6, 8): ctypes.c_bool}[(a.code, a.bits)]
    count = 1 + sum((n - 1) * s for n, s in zip(shape_of(managed), strides_of(managed), strict=True))
    return list((kind * count).from_address(a.data + a.byte_offset))


@each()
def test_device(cell):
    """Host memory, (1, 0), in any state."""
    c = cell.make(3)
    t = tensor(c)
    assert c.__dlpack_device__() == t.__dlpack_device__() == (1, 0)
    c.release()
    assert c.__dlpack_device__() == t.__dlpack_device__() == (1, 0)


@each(simple)
@pytest.mark.parametrize("asked", [*OLD, *NEW], ids=str)
def test_writable(cell, asked):
    """Of a publicly mutable CPU, Generic or Metal: writable, versioned or not as asked, and one mutation."""
    c = cell.make(5)
    for step, x in enumerate((c, tensor(c))):
        capsule = x.__dlpack__(**asked, **PLACES)
        managed = inside(capsule)
        assert type(managed) is (Versioned if asked in NEW else Unversioned)
        assert managed.flags == 0 and c.version == step + 1
        if asked in NEW:
            assert managed.major == 1
        a = managed.array
        assert (a.device, a.device_id, (a.code, a.bits), a.lanes) == (1, 0, TYPES[cell.dtype], 1)
        assert shape_of(managed) == (5,) and strides_of(managed) == (1,)
        assert data(managed) == cell.samples(5)
    if hasattr(c, "pointer"):
        assert a.data + a.byte_offset == c.pointer()


@each(shares)
def test_read_only(cell):
    """Of any other, and of an Evictable: read-only, which only DLPack 1.0 can say; no mutation."""
    owned = cell.make(3)
    token = owned.claim()
    closed = [cell.make(3, mutable=False), owned] + ([cell.make(3)] if cell.kind.evictable else [])
    for c in closed:
        for x in (c, tensor(c)):
            for asked in OLD:
                with pytest.raises(BufferError, match="1, 0"):
                    x.__dlpack__(**asked)
            for asked in NEW:
                managed = inside(x.__dlpack__(**asked))
                assert managed.flags == READ_ONLY and data(managed) == cell.samples(3)
        assert c.version == 0
    token.relinquish()


@each(simple)
def test_inside_a_scope(cell):
    """Who may write may hand out writable memory: the owner in its scope."""
    c = cell.make(3)
    token = c.claim()
    with token.access():
        assert inside(c.__dlpack__()).flags == 0
        assert inside(c.__dlpack__(max_version=(1, 0))).flags == 0
    assert c.version == 2
    token.relinquish()


@each()
@pytest.mark.parametrize("asked", [*OLD, *NEW], ids=str)
def test_a_copy(cell, asked):
    """copy=True: fresh, writable memory of every kind, whatever its mutability; no mutation."""
    for mutable in (True, False):
        c = cell.make(4, mutable=mutable)
        for x in (c, tensor(c)):
            managed = inside(x.__dlpack__(copy=True, **asked))
            assert managed.flags == (COPIED if asked in NEW else 0)
            assert data(managed) == cell.samples(4)
            ctypes.memset(managed.array.data, 0, 4)
            assert values(c) == cell.samples(4) and c.version == 0


@each(copies)
def test_nothing_to_share(cell):
    """FileBacked and custom carriers without copy=True: BufferError that says so."""
    c = cell.make(3)
    for x in (c, tensor(c)):
        for asked in ({}, {"max_version": (1, 0)}, {"copy": False, "max_version": (1, 0)}, {"copy": None}):
            with pytest.raises(BufferError, match="copy=True"):
                x.__dlpack__(**asked)
    assert c.version == 0


@each(shares)
def test_copy_false(cell):
    """copy=False is the shared memory."""
    c = cell.make(3)
    first, second = (x.__dlpack__(max_version=(1, 0), copy=False) for x in (c, tensor(c)))
    assert inside(first).array.data == inside(second).array.data


@each()
def test_other_devices(cell):
    """BufferError, and nothing is counted; also with copy=True."""
    c = cell.make(3)
    for x in (c, tensor(c)):
        for place in ({"dl_device": (2, 0)}, {"dl_device": (1, 1)}, {"dl_device": (8, 0)}, {"stream": 1}):
            for copy in ({}, {"copy": True}):
                with pytest.raises(BufferError):
                    x.__dlpack__(max_version=(1, 0), **place, **copy)
    assert c.version == 0 and values(c) == cell.samples(3)


@each()
def test_arguments(cell):
    """Wrong ones are a TypeError, before the state is looked at."""
    c = cell.make(3)
    t = tensor(c)
    c.release()
    bad = [
        {"max_version": 1},
        {"max_version": (1,)},
        {"max_version": ("1", 0)},
        {"dl_device": 1},
        {"dl_device": (1, None)},
    ]
    bad += [{"copy": 1}, {"copy": "no"}, {"unknown": 1}]
    for x in (c, t):
        for asked in bad:
            with pytest.raises(TypeError):
                x.__dlpack__(**asked)
        with pytest.raises(TypeError):
            x.__dlpack__(1)


@each()
def test_released_and_evicted(cell):
    """BufferError that names the state; copy=True as well."""
    gone = cell.make(3)
    cases = [(gone, tensor(gone), "released")]
    gone.release()
    if cell.kind.evictable:
        h = cell.make(3)
        cases.append((h, tensor(h), r"promote\(\)"))
        h.evict()
    for c, t, says in cases:
        before = state(c)
        for x in (c, t):
            for asked in (*OLD, *NEW, {"copy": True}):
                with pytest.raises(BufferError, match=says):
                    x.__dlpack__(**asked)
        assert state(c) == before


@each()
def test_no_slots(cell):
    """An empty array has no address."""
    c = cell.make([])
    managed = inside(c.__dlpack__(max_version=(1, 0), copy=None if shares(cell.kind) else True))
    assert shape_of(managed) == (0,) and managed.array.data is None


@each()
def test_layouts(cell):
    """A Tensor's axes are the leaves of its layout, its strides count elements; a copy is in logical order."""
    c = cell.make(12)
    for (shape, stride, offset), (t, expected) in zip(LAYOUTS, layouts(c), strict=True):
        if shares(cell.kind):
            managed = inside(t.__dlpack__(max_version=(1, 0)))
            assert (shape_of(managed), strides_of(managed)) == (tuple(leaves(shape)), tuple(leaves(stride)))
            assert data(managed)[0] == c[offset]
        managed = inside(t.__dlpack__(copy=True))
        assert data(managed) == [t[i] for i in range(t.size())] == expected.ravel("F").tolist()


def test_several_subtensors():
    """NotImplementedError: there is no one array for them."""
    with pytest.raises(NotImplementedError):
        many_planes().__dlpack__()


def test_a_dtype_without_bytes():
    """BufferError, with copy=True too."""
    c = HookedCarrier([1.0], cs.DType.Float64)
    for asked in ({}, {"max_version": (1, 0)}, {"copy": True}):
        with pytest.raises(BufferError):
            c.__dlpack__(**asked)


def test_unaligned_memory():
    """Other libraries do not read it: BufferError that says copy=True."""
    memory = (ctypes.c_byte * 16)()
    c = cs.CPU(3, ctypes.addressof(memory) + 1)
    for x in (c, tensor(c)):
        with pytest.raises(BufferError, match="copy=True"):
            x.__dlpack__()
        assert data(inside(x.__dlpack__(copy=True))) == [0.0] * 3
    assert c.version == 0


@each(shares)
def test_a_capsule_that_nobody_takes(cell):
    """It lets the memory go; and so does every export that failed."""
    gc.collect()
    before = cs._core._live()
    c = cell.make(3000)
    references = sys.getrefcount(c)
    for asked in ({"max_version": (1, 0)}, {"copy": True}):
        capsules = [c.__dlpack__(**asked) for _ in range(3)]
        assert sys.getrefcount(c) == references
        assert name_of(capsules[0]) in (b"dltensor", b"dltensor_versioned")
        del capsules
    for _ in range(3):
        with pytest.raises(BufferError):
            c.__dlpack__(dl_device=(2, 0))
    assert sys.getrefcount(c) == references
    del c
    gc.collect()
    assert cs._core._live() == before


@each(shares)
@pytest.mark.parametrize("asked", [{"max_version": (1, 0)}, {"copy": True}], ids=str)
def test_a_capsule_that_was_taken(cell, asked):
    """Its end frees nothing; the deleter does."""
    gc.collect()
    before = cs._core._live()
    c = cell.make(3000)
    capsule = c.__dlpack__(**asked)
    managed = take(capsule)
    del capsule, c
    gc.collect()
    assert data(managed) == cell.samples(3000)
    delete(managed)
    assert cs._core._live() == before


@each(shares)
def test_numpy_takes_it(cell):
    """numpy.from_dlpack sees values, dtype and the read-only mark, of carriers and Tensors."""
    np = library("numpy")
    c = cell.make(12)
    a = np.from_dlpack(c)
    assert a.dtype.name == NAMES[cell.dtype] and a.tolist() == cell.samples(12)
    assert a.flags.writeable is not cell.kind.evictable
    assert c.version == (0 if cell.kind.evictable else 1)
    for t, expected in layouts(c):
        np.testing.assert_array_equal(np.from_dlpack(t), expected)
    assert np.from_dlpack(cell.make([])).shape == (0,)
    assert not np.from_dlpack(cell.make(3, mutable=False)).flags.writeable
    own = np.from_dlpack(c, copy=True)
    assert own.flags.writeable and own.tolist() == cell.samples(12)


@each(copies)
def test_numpy_takes_a_copy(cell):
    """numpy.from_dlpack(copy=True)."""
    np = library("numpy")
    c = cell.make(4)
    own = np.from_dlpack(c, copy=True)
    own[:] = own[::-1]
    assert own.tolist() == cell.samples(4)[::-1] and values(c) == cell.samples(4)
    with pytest.raises(BufferError):
        np.from_dlpack(c)


@each(shares)
def test_torch_takes_it(cell):
    """torch.from_dlpack shares the memory and comes back through CPU.from_dlpack."""
    torch = library("torch")
    c = cell.make(12)
    shared = torch.from_dlpack(c)
    assert str(shared.dtype) == f"torch.{NAMES[cell.dtype]}" and shared.tolist() == cell.samples(12)
    for t, expected in layouts(c):
        assert torch.from_dlpack(t).numpy().tolist() == expected.tolist()
    if simple(cell.kind):
        value = not c[0] if cell.dtype is BOOL else cell.good
        shared[0] = value
        assert c[0] == value
        twin = cs.CPU.from_dlpack(shared)
        assert twin.pointer() == shared.data_ptr() and twin.is_mutable() and values(twin) == values(c)


@each(is_evictable)
def test_torch_and_read_only_memory(cell):
    """torch does not look at the read-only mark: copy=True is the safe way."""
    torch = library("torch")
    h = cell.make(4)
    own = torch.utils.dlpack.from_dlpack(h.__dlpack__(max_version=(1, 0), copy=True))
    own[0] = own[1]
    assert values(h) == cell.samples(4) and h.version == 0


@each(simple)
def test_jax_takes_it(cell):
    """JAX asks for no version: it takes what may go out unversioned, and the rest through numpy()."""
    jax = library("jax")
    c = cell.make(4)
    assert jax.dlpack.from_dlpack(c).tolist() == cell.samples(4)
    assert c.version == 1
    frozen = cell.make(4, mutable=False)
    with pytest.raises(BufferError):
        jax.dlpack.from_dlpack(frozen)
    assert jax.numpy.asarray(frozen.numpy()).tolist() == cell.samples(4)
