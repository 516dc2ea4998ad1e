# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Every cell of the tables in docs/compatibility.md, as the page has it."""

import array
import copy
import functools
import importlib
import json
import pickle
import re
import warnings
from collections.abc import Iterator
from pathlib import Path

import carrier_storage as cs
import handed
import numpy as np
import pytest
from carrier_storage.io import load, save

from kinds import (
    BOOL,
    CONCRETE,
    F32,
    I32,
    make_cpu,
    make_cpu_cpu,
    make_cpu_file,
    make_file,
    make_generic,
    make_hooked,
    make_metal,
    metal_absence,
)
from raw_files import safetensors, tensor

PAGE = Path(__file__).parents[3] / "docs" / "compatibility.md"
ROW = re.compile(r"^\|(.*)\|$", re.MULTILINE)
NUMPY = {F32: np.dtype("f4"), I32: np.dtype("i4"), BOOL: np.dtype("?")}
CODES = {F32: "f", I32: "i"}


def tables() -> dict[str, list[list[str]]]:
    """By their first header; each with its header as the first row."""
    found = {}
    for block in re.findall(r"(?:^\|.*\|\n)+", PAGE.read_text(encoding="utf-8"), re.MULTILINE):
        rows = [[cell.strip() for cell in row.split(" | ")] for row in ROW.findall(block)]
        found[rows[0][0]] = [rows[0], *rows[2:]]
    return found


TABLES = tables()


def cells(table: str) -> Iterator[tuple[str, str, str]]:
    """(row, column, what is to happen)."""
    header, *rows = TABLES[table]
    for row in rows:
        assert len(row) == len(header), row
        for column, told in zip(header[1:], row[1:], strict=True):
            yield row[0].strip("`"), column, told


# ---- libraries that may be missing -----------------------------------------------------------------------------------

REASONS = {"torch": "needs torch, which `make test-all` installs", "jnp": "needs jax", "dask": "needs dask"}


@functools.cache
def library(name: str):
    if name == "jnp":
        return handed.library("jax.numpy")
    if name == "dask":
        pytest.importorskip("dask", reason=REASONS[name])
        for part in ("dask.base", "dask.sizeof"):
            importlib.import_module(part)
    return pytest.importorskip(name, reason=REASONS[name])


def names_for(code: str, /, **more) -> dict:
    """What the code of a cell may use."""
    found = {"np": np, "pickle": pickle, "copy": copy, "array": array, "save": save, "CPU": cs.CPU, **more}
    for name in REASONS:
        if re.search(rf"\b{name}\.", code):
            found[name] = library(name)
    if "save_file" in code:
        numpy = pytest.importorskip("safetensors.numpy", reason="needs safetensors")
        found.update(save_file=numpy.save_file, path="w.safetensors")
    return found


# ---- out -------------------------------------------------------------------------------------------------------------


def evictable(values, dtype, mutable=True):
    return (make_cpu_cpu if dtype is BOOL else make_cpu_file)(values, dtype, mutable)


def evicted(values, dtype):
    carrier = evictable(values, dtype)
    carrier.evict()
    return carrier


def released(values, dtype):
    carrier = make_cpu(values, dtype)
    carrier.release()
    return carrier


_tokens = []


def owned(make):
    def make_owned(values, dtype):
        carrier = make(values, dtype)
        _tokens.append(carrier.claim())
        return carrier

    return make_owned


def immutable(make):
    return lambda values, dtype: make(values, dtype, False)


WITH_MEMORY = {"CPU": make_cpu, "Generic": make_generic, "Metal": make_metal}
KINDS = {
    **WITH_MEMORY,
    "Evictable": evictable,
    "FileBacked": make_file,
    "custom": make_hooked,
    "evicted": evicted,
    "released": released,
}
COLUMNS = {
    "the same, immutable or owned": {
        **{f"immutable {name}": immutable(make) for name, make in WITH_MEMORY.items()},
        **{f"owned {name}": owned(make) for name, make in WITH_MEMORY.items()},
    }
}


def makers(column: str) -> dict:
    return COLUMNS.get(column) or {name: KINDS[name] for name in column.split(", ")}


OUT = [
    pytest.param(code, make, dtype, told, id=f"{code}-{name}-{dtype.name}")
    for table in ("NumPy", "torch", "JAX", "Others")
    for code, column, told in cells(table)
    for name, make in makers(column).items()
    for dtype in CONCRETE
    if not (name == "FileBacked" and dtype is BOOL)
    if not ("Metal" in name and metal_absence())  # one skip with its reason: test_metal_is_here_or_told
]
PATTERNS = {F32: [1.5, -2.0, 0.0, 3.25], I32: [1, -2, 0, 2**31 - 1], BOOL: [True, False, True, True]}
SAMPLES = {dtype: pattern * 128 for dtype, pattern in PATTERNS.items()}  # 512 bytes at least, for JAX


def address_of(thing) -> int | None:
    """Where its values begin; None for what has no address."""
    if isinstance(thing, (cs.Evictable, cs.Carrier)):
        try:
            return thing.numpy().ctypes.data if isinstance(thing, cs.Evictable) else thing.pointer()
        except (AttributeError, RuntimeError):
            pass
        try:
            return np.frombuffer(memoryview(thing), np.uint8).ctypes.data
        except (BufferError, ValueError):
            return None
    for name in ("data_ptr", "unsafe_buffer_pointer"):
        if hasattr(thing, name):
            return getattr(thing, name)()
    return np.asarray(thing).__array_interface__["data"][0]


def is_writable(thing) -> bool:
    if isinstance(thing, memoryview):
        return not thing.readonly
    return thing.flags.writeable if isinstance(thing, np.ndarray) else hasattr(thing, "data_ptr")


def attempt(code: str, names: dict) -> tuple:
    """The result, and the name of the error."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of memory that is read-only
            return eval(code, names), None
    except Exception as error:
        return None, type(error).__name__


def happened(code: str, carrier, names: dict) -> str:
    """What the cell says when it is right."""
    where = address_of(carrier)
    result, error = attempt(code, names)
    if error is not None:
        return error
    if result is None or isinstance(result, (int, str)):
        return "yes"
    if isinstance(result, cs.Carrier) and result.is_released():
        return "yes"
    shared = where is not None and address_of(result) == where
    if not shared:
        return "copy"
    return f"zero-copy, {'writable' if is_writable(result) else 'read-only'}"


@pytest.mark.parametrize(("code", "make", "dtype", "told"), OUT)
def test_out(tmp_path, monkeypatch, code, make, dtype, told):
    """The code of the row, on a carrier of the column; where it gives values, they are the carrier's."""
    monkeypatch.chdir(tmp_path)
    names = names_for(code)
    carrier = names["c"] = make(SAMPLES[dtype], dtype)
    assert happened(code, carrier, names) == told
    if told.startswith(("zero-copy", "copy")):
        names["c"] = make(SAMPLES[dtype], dtype)
        result = eval(code, names)
        assert list(map(float, result.tolist())) == list(map(float, SAMPLES[dtype]))


def test_metal_is_here_or_told():
    """The Metal carriers of the tables."""
    if reason := metal_absence():
        pytest.skip(reason)


# ---- in --------------------------------------------------------------------------------------------------------------


def frozen(values):
    values.flags.writeable = False
    return values


INTO = [
    pytest.param(source, code, dtype, told, id=f"{source}-{code}-{dtype.name}")
    for source, code, told in cells("`x`")
    for dtype in CONCRETE
    if not ("array.array" in source and dtype is BOOL)  # which has no code for it
]


@pytest.mark.parametrize(("source", "code", "dtype", "told"), INTO)
def test_into(source, code, dtype, told):
    """A carrier over the source's memory, or the source's values in a carrier."""
    names = names_for(source, d=NUMPY[dtype], code=CODES.get(dtype), frozen=frozen)
    names["c"] = make_cpu([1] * 6 if dtype is not BOOL else [True] * 6, dtype)
    if "torch" in names:
        torch = names["torch"]
        names["td"] = {F32: torch.float32, I32: torch.int32, BOOL: torch.bool}[dtype]
    names["x"] = eval(source, names)
    if "write" in code:
        target = names["target"] = cs.CPU(6, dtype=dtype)
        fits = told == "yes" or dtype.name in told.split(", ")
        assert attempt("target.write(0, x)", names)[1] == (None if fits else "TypeError")
        assert target.version == fits
        assert not fits or target.tolist() == ([0] * 6 if "bytes" in source else [1] * 6)
        return
    carrier, error = attempt(code.strip("`"), names)
    if error is not None:
        assert error == told
        return
    assert carrier.tolist() == [1] * 6 and type(carrier) is cs.CPU
    assert f"zero-copy, {'mutable' if carrier.is_mutable() else 'immutable'}" == told
    assert carrier.pointer() == address_of(names["x"])


# ---- files -----------------------------------------------------------------------------------------------------------

FILES = [
    pytest.param(dtype, column, told, id=f"{dtype}-{column}")
    for dtype, column, told in cells("in the file")
    if told != "-"
]


def in_the_file(dtype: str) -> np.ndarray:
    if dtype == "text":
        return np.array(["a", "b"])
    if dtype == "objects":
        return np.array([None, {}], object)
    if "8_" in dtype or dtype == "bfloat16":
        return np.ones(2, getattr(pytest.importorskip("ml_dtypes", reason="needs ml_dtypes"), dtype))
    name, _, order = dtype.partition(", ")
    found = np.dtype(name)
    return np.ones(2, found.newbyteorder(">") if order else found)


@pytest.mark.parametrize(("dtype", "column", "told"), FILES)
def test_files(tmp_path, dtype, column, told):
    """The dtype of the loaded Tensor, without and with conversion."""
    values = in_the_file(dtype)
    ending = re.search(r"\.\w+", column)[0]
    path = tmp_path / f"w{ending}"
    if ending == ".npy":
        np.save(path, values)
    elif ending == ".npz":
        np.savez(path, w=values)
    else:
        pytest.importorskip("safetensors", reason="needs safetensors")
        write_safetensors(path, values)
    without, _, converted = told.partition(", ")
    for convert, want in ((False, without), (True, converted or without)):
        names = {"load": load, "path": path, "convert": convert, "mmap": "mmap" in column}
        loaded, error = attempt("load(path, convert=convert, mmap=mmap)['w']", names)
        assert (error or loaded.dtype().name) == want
        assert error or loaded.tolist() == [1, 1]


TOLD_AS = {
    "float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16", "float8_e4m3fn": "F8_E4M3",
    "bool": "BOOL", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64", "uint8": "U8", "uint16": "U16",
    "uint32": "U32", "uint64": "U64", "complex64": "C64",
}  # fmt: skip


def write_safetensors(path, values):
    entry = tensor(TOLD_AS[values.dtype.name], values.shape, (0, values.nbytes))
    header = json.dumps({"w": entry}).encode()
    path.write_bytes(safetensors(header + b" " * (-len(header) % 8), values.tobytes()))
