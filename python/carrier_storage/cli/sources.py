# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Opens what the user names: files that `carrier_storage.io` reads."""

from collections.abc import Sequence

from carrier_storage.cli.entries import Entry
from carrier_storage.cli.errors import BadInputError, need
from carrier_storage.io.disk import DiskFile, suffix_of
from carrier_storage.io.loading import contents


def open_sources(files: Sequence[str]) -> list[Entry]:
    """Every array of every file, with all headers checked and no value read."""
    entries = []
    for file in files:
        if suffix_of(file) == ".safetensors":
            need("safetensors", f"reading {file}")
        try:
            entries += _entries(file)
        except OSError as error:
            raise BadInputError(f"{file}: {error.strerror or error}") from None
        except ValueError as error:
            raise BadInputError(str(error)) from None
    return entries


def _entries(file: str) -> list[Entry]:
    opened = DiskFile(file)
    found = [entry() for entry in contents(opened).values()]
    if not found:
        raise BadInputError(f"{file}: holds no arrays")
    if all(entry.offset is not None for entry in found):
        opened.close()  # it opens itself for each reading; only archives stay open, so any number of files will do
    return [Entry(file, "" if e.label == file else e.name, e.dtype, e.size, e.fetch) for e in found]
