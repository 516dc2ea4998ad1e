# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""How a command ends when it cannot do what it was asked."""

import importlib
from types import ModuleType

FAILED = 1  # a value differs, or the library does not work here
BAD_INPUT = 2
INTERRUPTED = 130


class BadInputError(Exception):
    """The command line or a file is wrong; the message names which and why. Exit status 2."""


class StoppedError(BaseException):
    """A signal asked the process to end. Not an Exception: nobody on the way should handle it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.status = 128 + number


def need(module: str, purpose: str, extra: str = "cli") -> ModuleType:
    """Imports a module that the package itself can do without."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise BadInputError(
            f"{purpose} needs {package} ({error}); install it with: pip install 'carrier-storage[{extra}]'"
        ) from None
