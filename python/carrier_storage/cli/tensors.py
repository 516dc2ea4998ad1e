# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""`.safetensors` files: the library checks the header, whose offsets then say where the values are."""

import json
from pathlib import Path
from typing import Any

import numpy as np

from carrier_storage.cli.entries import Entry, check
from carrier_storage.cli.errors import BadInputError, need
from carrier_storage.cli.npy import Bytes, fetcher, match_size

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "?",
    "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "<i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "<u1",
}  # fmt: skip


def open_safetensors(path: Path, file: str) -> list[Entry]:
    safetensors = need("safetensors", f"reading {file}")
    try:
        with safetensors.safe_open(path, framework="np") as checked:
            names = list(checked.keys())
    except safetensors.SafetensorError as error:
        raise BadInputError(f"{file}: not a .safetensors file, truncated or damaged: {error}") from None
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        header = json.loads(stream.read(length), object_pairs_hook=lambda pairs: _unique(pairs, file))
    if not names:
        raise BadInputError(f"{file}: holds no arrays")
    places = {name: header[name] for name in names}
    return [
        _entry(path, file, name, places[name], 8 + length)
        for name in sorted(places, key=lambda n: places[n]["data_offsets"])
    ]


def _unique(pairs: list[tuple[str, Any]], file: str) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise BadInputError(f"{file}: {twice!r}: the name occurs twice")
    return found


def _entry(path: Path, file: str, name: str, place: dict[str, Any], data: int) -> Entry:
    label = f"{file}: {name!r}"
    if place["dtype"] not in _DTYPES:
        raise BadInputError(
            f"{label}: dtype {place['dtype']} is not supported; convert it to F32, I32 or BOOL first"
        )
    dtype = np.dtype(_DTYPES[place["dtype"]])
    size = check(file, name, dtype, tuple(place["shape"]))
    begin, end = place["data_offsets"]
    match_size(label, dtype, size, end - begin)
    return Entry(file, name, dtype, size, fetcher(Bytes(path, label, data + begin), dtype))
