# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""DLPack by hand, both ends of it: what is in a capsule, and an exporter whose every field a test can choose."""

import array
import ctypes
from ctypes import POINTER, c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p

READ_ONLY, COPIED = 1, 2
CODES = {"i": (0, 32), "f": (2, 32), "d": (2, 64), "q": (0, 64), "B": (1, 8), "b": (0, 8), "?": (6, 8)}


class Array(ctypes.Structure):
    _fields_ = (
        ("data", c_void_p),
        ("device", c_int32),
        ("device_id", c_int32),
        ("rank", c_int32),
        ("code", c_uint8),
        ("bits", c_uint8),
        ("lanes", c_uint16),
        ("shape", POINTER(c_int64)),
        ("strides", POINTER(c_int64)),
        ("byte_offset", c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, c_void_p)


class Unversioned(ctypes.Structure):
    _fields_ = (("array", Array), ("context", c_void_p), ("deleter", DELETER))
    flags = 0


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", c_uint32),
        ("minor", c_uint32),
        ("context", c_void_p),
        ("deleter", DELETER),
        ("flags", c_uint64),
        ("array", Array),
    )


KINDS = {b"dltensor": Unversioned, b"dltensor_versioned": Versioned}


def _function(name, result, *arguments):
    return ctypes.PYFUNCTYPE(result, *arguments)((name, ctypes.pythonapi))


name_of = _function("PyCapsule_GetName", ctypes.c_char_p, ctypes.py_object)
_set_name = _function("PyCapsule_SetName", ctypes.c_int, ctypes.py_object, ctypes.c_char_p)
_pointer = _function("PyCapsule_GetPointer", c_void_p, ctypes.py_object, ctypes.c_char_p)
_make = _function("PyCapsule_New", ctypes.py_object, c_void_p, ctypes.c_char_p, c_void_p)
# A capsule that ends has no reference left: its destructor must not make one.
_ends_as = _function("PyCapsule_IsValid", ctypes.c_int, c_void_p, ctypes.c_char_p)
_ends_with = _function("PyCapsule_GetPointer", c_void_p, c_void_p, ctypes.c_char_p)
_keep = [*KINDS, b"used_dltensor", b"used_dltensor_versioned"]  # capsules point to their names


def inside(capsule):
    """The structure in a capsule that nobody took; it keeps the capsule."""
    name = name_of(capsule)
    found = KINDS[name].from_address(_pointer(capsule, name))
    found.capsule = capsule
    return found


def take(capsule):
    """Takes it: from now on the caller has to call the deleter."""
    found = inside(capsule)
    del found.capsule
    used = next(n for n in _keep if n == b"used_" + name_of(capsule))
    _set_name(capsule, used)
    return found


def delete(managed) -> None:
    managed.deleter(ctypes.addressof(managed))


def shape_of(managed) -> tuple:
    return tuple(managed.array.shape[: managed.array.rank])


def strides_of(managed) -> tuple:
    return tuple(managed.array.strides[: managed.array.rank])


@ctypes.PYFUNCTYPE(None, c_void_p)
def _end(capsule):
    for name, kind in KINDS.items():
        if _ends_as(capsule, name):
            delete(kind.from_address(_ends_with(capsule, name)))


_for_ever = [_end]


def _numbers(values):
    return None if values is None else (c_int64 * max(len(values), 1))(*values)


class Exporter:
    """Offers memory by DLPack and counts what happens to it. `answers` replaces what __dlpack__ returns or raises."""

    def __init__(self, memory=None, *, versioned=True, answers=None, **fields):
        self.memory = array.array("f", [1.0, 2.0, 3.0, 4.0]) if memory is None else memory
        self.versioned, self.answers, self.fields = versioned, answers, fields
        self.asked = self.deleted = 0
        self.capsules: list = []

    def __dlpack_device__(self):
        return self.fields.get("device", 1), 0

    def __dlpack__(self, *, max_version=None, **_):
        self.asked += 1
        if self.answers is not None:
            return self.answers()
        capsule = self.capsule()
        self.capsules.append(capsule)
        return capsule

    def capsule(self):
        f = self.fields
        shape = f.get("shape", (len(self.memory),))
        strides = f.get("strides")
        extents, steps = _numbers(None if f.get("no_shape") else shape), _numbers(strides)
        code, bits = f.get("type", CODES[getattr(self.memory, "typecode", "?")])
        where = f.get("data", self.memory.buffer_info()[0] if isinstance(self.memory, array.array) else None)
        a = Array(where, f.get("inner_device", f.get("device", 1)), 0, f.get("rank", len(shape)), code, bits)
        a.lanes, a.shape, a.strides = f.get("lanes", 1), extents, steps
        a.byte_offset = f.get("byte_offset", 0)

        def deleter(_):
            self.deleted += 1

        deleter = DELETER() if f.get("no_deleter") else DELETER(deleter)
        if self.versioned:
            managed = Versioned(f.get("major", 1), 0, None, deleter, f.get("flags", 0), a)
        else:
            managed = Unversioned(a, None, deleter)
        _for_ever.append((managed, extents, steps, deleter, self.memory))
        name = next(n for n in _keep if KINDS.get(n) is type(managed))
        return _make(ctypes.addressof(managed), name, ctypes.cast(_end, c_void_p))
