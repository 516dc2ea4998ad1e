# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Carriers over a mapped file."""

import mmap
import sys
from collections.abc import Callable

import numpy as np

from carrier_storage import CPU, Carrier
from carrier_storage.io.convert import stored_as
from carrier_storage.io.disk import DiskFile, named
from carrier_storage.io.entry import Entry
from carrier_storage.io.kinds import released_on_error

# From Python 3.13 on a mapping need not keep a descriptor.
_UNTRACKED = {"trackfd": False} if sys.version_info >= (3, 13) else {}


def map_entries(file: DiskFile, entries: list[Entry], report: Callable[[int], None]) -> list[Carrier]:
    """Read-only CPU carriers over one mapping, which lives as long as they do. ValueError, OSError."""
    for entry in entries:
        _check(entry)
    if not entries:
        return []
    with named(file.path):
        whole = mmap.mmap(file.stream.fileno(), 0, access=mmap.ACCESS_READ, **_UNTRACKED)
    made: list[Carrier] = []
    with released_on_error(made):
        for entry in entries:
            assert entry.offset is not None
            values = np.frombuffer(whole, entry.dtype, entry.size, entry.offset)
            made.append(CPU.from_buffer(values, mutable=False))
            report(entry.nbytes)
    return made


def _check(entry: Entry) -> None:
    if entry.offset is None:
        raise ValueError(f"{entry.label}: an archive cannot be mapped; leave mmap out")
    if entry.dtype != stored_as(entry.dtype):
        raise ValueError(
            f"{entry.label}: dtype {entry.dtype} has to be converted, so it cannot be mapped; leave mmap out"
        )
    if entry.offset % entry.dtype.itemsize:
        raise ValueError(
            f"{entry.label}: begins at byte {entry.offset}, which is no multiple of {entry.dtype.itemsize}, so it"
            " cannot be mapped; leave mmap out"
        )
