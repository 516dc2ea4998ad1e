# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""What the tests share: snapshots, tensors, child processes."""

import itertools
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import carrier_storage as cs

HERE = Path(__file__).parent
FORK_WARNING = "ignore:This process:DeprecationWarning"  # from Python 3.12 on, of a fork beside other threads


def named(parameter) -> str:
    """For ``ids``: its repr, the same in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(parameter))


def values(carrier) -> list:
    return [carrier.get_value(i) for i in range(carrier.size())]


def readable(carrier) -> bool:
    return not carrier.is_released() and not (isinstance(carrier, cs.Evictable) and carrier.is_evicted())


def state(carrier) -> tuple:
    """Everything that a failing call must leave alone."""
    seen = (
        carrier.size(),
        carrier.version,
        carrier.is_mutable(),
        carrier.is_owned(),
        carrier.is_released(),
        repr(values(carrier)) if readable(carrier) else None,  # repr: NaN and -0.0 count
    )
    if isinstance(carrier, cs.Evictable):
        seen += (carrier.is_evicted(), id(carrier.primary), id(carrier.secondary))
        seen += (state(carrier.primary), state(carrier.secondary))
    return seen


def line(size: int, step: int = 1) -> cs.Layout:
    return cs.Layout(cs.Shape(size), cs.Stride(step))


def tensor(carrier, size=None, offset=0, step=1) -> cs.Tensor:
    """The first `size` slots of the carrier as a Tensor, or all."""
    return cs.Tensor(carrier, offset, line(carrier.size() - offset if size is None else size, step))


_names = itertools.count()


def extension(build):
    """A fresh extension dtype: `build(name)`."""
    return build(f"Test.Extension{next(_names)}")


def category():
    return extension(cs.DTypeCategory)


def compound(planes=(cs.DType.Float32, cs.DType.Int32)):
    return extension(lambda name: cs.CompoundDType(name, planes=planes))


def many_planes(carrier_class=cs.CPU):
    """A Tensor of two subtensors."""
    layout = line(2)
    parts = [cs.Subtensor(carrier_class(2, dtype=d), 0, layout) for d in (cs.DType.Float32, cs.DType.Int32)]
    return cs.Tensor.from_subtensors(compound(), parts, [layout])


PREAMBLE = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
"""


def run_child(code: str, *, timeout=60, check=True, env=None, prefix=(), args=()):
    """Runs `code` in a process of its own; a hang fails the test. Its stderr must stay empty when `check` is set."""
    program = PREAMBLE + textwrap.dedent(code)
    done = subprocess.run(
        [*prefix, sys.executable, "-c", program, *args],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        env={**os.environ, "PYTHONWARNINGS": FORK_WARNING, **(env or {})},
    )
    if check:
        assert (done.returncode, done.stderr) == (0, ""), (done.returncode, done.stdout, done.stderr)
    return done
