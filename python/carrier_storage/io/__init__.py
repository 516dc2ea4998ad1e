# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Files of arrays, loaded into carriers and saved from them: `.npy`, `.npz`, `.safetensors`.

Headers are read by NumPy, `zipfile` and the safetensors library, and checked against the bytes that are there before
any memory is taken. Values move in pieces of a few MiB, from the file into whatever carrier is asked for. Needs NumPy,
and for `.safetensors` that library.

>>> import tempfile
>>> from pathlib import Path
>>> import carrier_storage as cs
>>> from carrier_storage.io import load, save
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "model.npz"
...     save(path, {"bias": cs.CPU(0).new_like([1.0, 2.0, 3.0])})
...     loaded = load(path, kind=cs.FileBacked)
>>> loaded["bias"].tolist()
[1.0, 2.0, 3.0]
"""

from carrier_storage.io.loading import load
from carrier_storage.io.saving import save

__all__ = ["load", "save"]
