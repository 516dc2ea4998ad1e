# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Residency over time, as a picture."""

import os
from pathlib import Path

from carrier_storage.cli.errors import BadInputError, need
from carrier_storage.cli.result import Result

_KINDS = (".png", ".svg", ".pdf")
_MIB = 1 << 20


def check(target: Path) -> None:
    """Fails before the work rather than after it."""
    if target.suffix.lower() not in _KINDS:
        raise BadInputError(f"--plot {target}: unknown kind of picture; {', '.join(_KINDS)} are written")
    if not target.parent.is_dir():
        raise BadInputError(f"--plot {target}: {target.parent} is not a directory")
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise BadInputError(f"--plot {target}: cannot be written")
    need("matplotlib", "--plot", extra="plot")


def draw(result: Result, target: Path) -> None:
    """Writes the picture; the file appears when it is whole."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # no window system
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    seconds = [s.seconds for s in result.timeline]
    axes.step(seconds, [s.memory / _MIB for s in result.timeline], where="post", label="CPU tier")
    axes.step(seconds, [s.files / _MIB for s in result.timeline], where="post", label="FileBacked tier")
    if any(s.resident for s in result.timeline):
        grown = [max(0, s.resident - result.resident_before) / _MIB for s in result.timeline]
        axes.plot(seconds, grown, linewidth=0.8, alpha=0.8, label="resident memory, grown by")
    axes.axhline(result.budget / _MIB, linestyle="--", color="black", linewidth=0.8, label="budget")
    axes.set(xlabel="seconds", ylabel="MiB", title="Residency", ylim=(0, None), xlim=(0, None))
    figure.legend(loc="outside lower center", ncols=4, fontsize="small")
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        figure.savefig(fresh, format=target.suffix[1:].lower(), dpi=120)
        fresh.replace(target)
    except OSError as error:
        raise BadInputError(f"--plot {target}: {error.strerror}") from None
    finally:
        fresh.unlink(missing_ok=True)
