# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Files of arrays byte by byte, as no library writes them."""

import json
import struct
import zipfile
from io import BytesIO


def npy(descr="<i4", shape=(3,), data=b"\0" * 12, version=(1, 0), *, header=None, length=None) -> bytes:
    """A `.npy` file; `header` is its text, `length` what it says of that text's length."""
    text = header if header is not None else repr({"descr": descr, "fortran_order": False, "shape": shape})
    text = text.encode("latin-1") + b"\n"
    told = struct.pack("<H" if version == (1, 0) else "<I", len(text) if length is None else length)
    return b"\x93NUMPY" + bytes(version) + told + text + data


def npz(method=zipfile.ZIP_STORED, **members: bytes) -> bytes:
    """An archive with such members, each with the ending `.npy`."""
    out = BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(f"{name}.npy", data)
    return out.getvalue()


def safetensors(header, data=b"\0" * 12, length=None) -> bytes:
    """A `.safetensors` file; `header` is bytes, or what becomes JSON."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def tensor(dtype="I32", shape=(3,), offsets=(0, 12)) -> dict:
    """An entry of such a header."""
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}
