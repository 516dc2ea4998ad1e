# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""What `tier` shows: a progress bar on stderr, then a table on stdout."""

from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.table import Table
from rich.text import Text

from carrier_storage.cli.result import Moves, Result
from carrier_storage.cli.units import show_bytes, show_rate

_MOST_ROWS = 20


class Bar:
    """A progress bar on a terminal, nothing elsewhere."""

    def __init__(self, total: int, *, hidden: bool) -> None:
        console = Console(stderr=True)
        self._progress = Progress(
            TextColumn("{task.description:<10}"),
            BarColumn(),
            TaskProgressColumn(),
            TransferSpeedColumn(),
            TimeRemainingColumn(),
            console=console,
            disable=hidden or not console.is_terminal,
            transient=True,
        )
        self._task = self._progress.add_task("Loading", total=total)

    def __enter__(self) -> "Bar":
        self._progress.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._progress.stop()

    def advance(self, phase: str, nbytes: int) -> None:
        self._progress.update(self._task, description=phase, advance=nbytes)


def show(result: Result) -> None:
    """Prints the tables."""
    console = Console()
    console.print(_entries(result))
    console.print(_summary(result))
    for m in result.examples:
        console.print(
            f"{m.label}: index {m.index} after {m.passes} passes: {m.have}, should be {m.want}",
            style="red", markup=False, highlight=False,
        )  # fmt: skip
    if hidden := result.mismatches - len(result.examples):
        console.print(f"and {hidden} more values that differ", style="red")


def _entries(result: Result) -> Table:
    table = Table(title="Arrays")
    table.add_column("array", overflow="fold")
    table.add_column("dtype")
    table.add_column("slots", justify="right")
    table.add_column("bytes", justify="right")
    for entry in result.entries[:_MOST_ROWS]:
        dtype = entry.dtype.name
        if entry.dtype.newbyteorder("=") != entry.stored:
            dtype += f", kept as {entry.stored.name}"
        table.add_row(Text(entry.label), dtype, f"{entry.size:,}", show_bytes(entry.nbytes))
    if more := result.entries[_MOST_ROWS:]:
        slots = sum(entry.size for entry in more)
        table.add_row(f"and {len(more)} more", "", f"{slots:,}", show_bytes(sum(e.nbytes for e in more)))
    return table


def _moves(moves: Moves) -> str:
    if not moves.count:
        return "none"
    return f"{moves.count:,}, {show_bytes(moves.nbytes)} at {show_rate(moves.nbytes, moves.seconds)}"


def _summary(result: Result) -> Table:
    table = Table(title="Tiers", show_header=False)
    table.add_column()
    table.add_column()
    table.add_row("all values", show_bytes(result.total))
    table.add_row("budget", show_bytes(result.budget))
    for name, now, peak in (
        ("CPU tier", result.in_memory, result.peak_memory),
        ("FileBacked tier", result.in_files, result.peak_files),
    ):
        table.add_row(name, f"{show_bytes(now)} at the end, {show_bytes(peak)} at most")
    table.add_row("evictions", _moves(result.evictions))
    table.add_row("promotions", _moves(result.promotions))
    table.add_row("scatters", f"{result.scatters:,}, {show_bytes(result.scattered)}")
    if result.resident_peak:
        grown = max(0, result.resident_peak - result.resident_before)
        table.add_row(
            "peak resident memory",
            f"{show_bytes(grown)} (of a budget of {show_bytes(result.budget)}) beside the"
            f" {show_bytes(result.resident_before)} of Python and its libraries",
        )
    table.add_row(
        "time", f"{result.seconds:.2f} s for {result.passes} pass{'es' if result.passes > 1 else ''}"
    )
    table.add_row("verified", f"{show_bytes(result.verified)}, bit for bit")
    style = "bold red" if result.mismatches else "green"
    table.add_row("mismatches", f"[{style}]{result.mismatches:,}[/]")
    return table
