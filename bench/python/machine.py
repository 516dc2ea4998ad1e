# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""What is here to compare with: torch, and the controls in bare C, compiled when they are first wanted."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import subprocess
import tempfile
from pathlib import Path
from types import ModuleType

import carrier_storage as cs
import numpy as np

from harness import Contender, UnavailableError

SOURCE = Path(__file__).with_name("controls.cpp")
BUILD = Path(__file__).resolve().parents[2] / "build" / "bench-controls"
FLAGS = ["-std=c++17", "-O3", "-march=native", "-shared", "-fPIC", "-pthread"]
_torch = True
# What is not said here returns nothing.
RESULTS = {
    "fresh": ctypes.c_void_p,
    "promote": ctypes.c_void_p,
    "write_file": ctypes.c_int,
    "make_files": ctypes.c_int,
}


def use_torch(wanted: bool) -> None:
    global _torch
    _torch = wanted


@functools.cache
def torch() -> ModuleType | None:
    """With as many threads as it likes, but threads that sleep between calls: they would spin beside who runs next."""
    if not _torch:
        return None
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    os.environ.setdefault("GOMP_SPINCOUNT", "0")
    os.environ.setdefault("KMP_BLOCKTIME", "0")
    try:
        return __import__("torch")
    except ImportError:
        return None


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next(
        (at.split(":", 1)[1].strip() for at in lines if at.startswith("model name")), platform.machine()
    )


def described() -> dict[str, object]:
    found = {"processor": processor(), "processors": os.cpu_count(), "system": platform.platform()}
    found |= {"python": platform.python_version(), "carrier_storage": cs.__version__, "numpy": np.__version__}
    there = torch()
    return found | ({"torch": there.__version__} if there else {})


def notes() -> list[str]:
    """What is left out of this run altogether."""
    found = [] if torch() else ["torch: not installed" if _torch else "torch: as asked"]
    try:
        library()
    except UnavailableError as why:
        found.append(str(why))
    return found


def _compile(target: Path) -> Path:
    """The library for this source on this processor, from an earlier run if there was one."""
    command = [*shlex.split(os.environ.get("CXX", "c++")), *FLAGS]
    key = hashlib.sha256(repr((SOURCE.read_bytes(), command, processor())).encode()).hexdigest()[:16]
    done = target / f"controls-{key}.so"
    if not done.exists():
        target.mkdir(parents=True, exist_ok=True)
        made = target / f"{done.name}.{os.getpid()}"
        clean = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
        try:
            subprocess.run(
                [*command, str(SOURCE), "-o", str(made)], check=True, capture_output=True, env=clean
            )
            made.replace(done)
        finally:
            made.unlink(missing_ok=True)
    return done


@functools.cache
def _loaded() -> ctypes.CDLL | str:
    try:
        try:
            loaded = ctypes.CDLL(str(_compile(BUILD)))
        except PermissionError:
            with tempfile.TemporaryDirectory() as folder:
                loaded = ctypes.CDLL(str(_compile(Path(folder))))
    except FileNotFoundError:
        return "bare C: no C++ compiler here"
    except subprocess.CalledProcessError as failed:
        return f"bare C: the compiler refused controls.cpp: {failed.stderr.decode(errors='replace')[:200]}"
    for name, kind in RESULTS.items():
        getattr(loaded, name).restype = kind
    return loaded


def library() -> ctypes.CDLL:
    """The controls. UnavailableError without a compiler."""
    loaded = _loaded()
    if isinstance(loaded, str):
        raise UnavailableError(loaded)
    return loaded


def control(make: Contender) -> Contender | None:
    """A contender that uses the library; None where there is none."""
    return None if isinstance(_loaded(), str) else make


def call(name: str, *values: object) -> int | None:
    """Calls a control: arrays give their address, numbers and addresses are 64 bits wide, strings are paths."""
    return getattr(library(), name)(*map(_argument, values))


def _argument(value: object) -> object:
    if isinstance(value, np.ndarray):
        return ctypes.c_void_p(value.ctypes.data)
    if isinstance(value, int):
        return ctypes.c_int64(value)
    return os.fsencode(value)  # type: ignore[arg-type]


def checked(result: int | None, what: str) -> None:
    """Raises for an errno that a control returned."""
    if result:
        raise UnavailableError(f"{what}: {os.strerror(result)}")
