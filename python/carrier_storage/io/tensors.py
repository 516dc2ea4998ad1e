# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`.safetensors`: the library checks the header, whose offsets then say where the values are."""

import importlib
import json
import os
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from carrier_storage.io.convert import CONVERTED
from carrier_storage.io.disk import DiskFile, Range
from carrier_storage.io.entry import Contents, Entry, count, match_size

METADATA = "__metadata__"  # the one key of a header that is no name
_LENGTH = 8  # bytes before the header, which tell its own
_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1",
}  # fmt: skip
_CODES = {np.dtype(np.float32): "F32", np.dtype(np.int32): "I32", np.dtype(np.bool_): "BOOL"}


def library(path: str) -> ModuleType:
    """The package that knows the format. ImportError that says what to install."""
    try:
        return importlib.import_module("safetensors")
    except ImportError as error:
        raise ImportError(
            f"{path}: .safetensors files need safetensors ({error}); pip install 'carrier-storage[files]'"
        ) from None


def check_header(path: str, descriptor: int) -> None:
    """The library's judgement on an open file: shapes, ranges, overlaps, gaps. ValueError, ImportError."""
    safetensors = library(path)
    opened = f"/dev/fd/{descriptor}"  # the very file, whatever has become of the path
    try:
        with safetensors.safe_open(opened if os.path.exists(opened) else path, framework="np"):  # noqa: PTH110
            pass
    except safetensors.SafetensorError as error:
        raise ValueError(f"{path}: not a .safetensors file, truncated or damaged: {error}") from None


def open_safetensors(file: DiskFile) -> Contents:
    """Its entries by name, in the order of their bytes."""
    if file.size < _LENGTH:  # which the library cannot map
        raise ValueError(f"{file.path}: not a .safetensors file, truncated or damaged: {file.size} bytes")
    check_header(file.path, file.stream.fileno())
    length = int.from_bytes(file.read(0, _LENGTH), "little")
    header = json.loads(file.read(_LENGTH, length), object_pairs_hook=partial(_unique, file.path))
    header.pop(METADATA, None)
    places = sorted(header.items(), key=lambda item: item[1]["data_offsets"])
    return {name: partial(_entry, file, name, place, _LENGTH + length) for name, place in places}


def _unique(path: str, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{path}: {twice!r}: the name occurs twice")
    return found


def _entry(file: DiskFile, name: str, place: dict[str, Any], data: int) -> Entry:
    label = f"{file.path}: {name!r}"
    if place["dtype"] not in _DTYPES:
        raise ValueError(f"{label}: dtype {place['dtype']} is not supported; {CONVERTED}")
    dtype, shape = np.dtype(_DTYPES[place["dtype"]]), tuple(place["shape"])
    size = count(label, dtype, shape)
    begin, end = place["data_offsets"]
    match_size(label, dtype, size, min(end, file.size - data) - begin)
    return Entry(name, label, dtype, shape, False, size, Range(file, data + begin, label))


def header_of(arrays: list[tuple[str, np.dtype, tuple[int, ...]]]) -> bytes:
    """The head of a file that holds such arrays one after the other; their bytes follow it."""
    header: dict[str, Any] = {}
    at = 0
    for name, dtype, shape in arrays:
        end = at + int(np.prod(shape, dtype=object)) * dtype.itemsize
        header[name] = {"dtype": _CODES[dtype], "shape": list(shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    text += b" " * (-len(text) % _LENGTH)  # so that the values are aligned
    return len(text).to_bytes(_LENGTH, "little") + text
