# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Opens what the user names: regular files of a kind that we read, or the generated set."""

import stat
from collections.abc import Sequence
from pathlib import Path

from carrier_storage.cli.entries import Entry
from carrier_storage.cli.errors import BadInputError
from carrier_storage.cli.npy import open_npy, open_npz
from carrier_storage.cli.tensors import open_safetensors

READERS = {".npy": open_npy, ".npz": open_npz, ".safetensors": open_safetensors}


def open_sources(files: Sequence[str]) -> list[Entry]:
    """Every array of every file, with all headers checked and no value read."""
    entries = []
    for file in files:
        path = Path(file)
        reader = READERS.get(path.suffix.lower())
        try:
            mode = path.stat().st_mode
            if not stat.S_ISREG(mode):
                raise BadInputError(f"{file}: not a regular file")
            if reader is None:
                raise BadInputError(f"{file}: unknown kind of file; {', '.join(READERS)} are read")
            entries += reader(path, file)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise BadInputError(f"{file}: {reason}") from None
    return entries
