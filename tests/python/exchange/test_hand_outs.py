# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""docs/exchange.md, "What each hand-out means": every cell of the table, on every kind that its row is about."""

import array
import gc
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import carrier_storage as cs
import pytest
from capsules import inside
from handed import copies, library, shares, simple

from helpers import tensor, values
from kinds import F32, KINDS, Cell, Kind

PAGE = Path(__file__).parents[3] / "docs" / "exchange.md"
COLUMNS = ["hand-out", "version", "release", "eviction", "ownership", "lives on"]
pytest.importorskip("numpy", reason="NumPy is not installed here")


def table() -> list[list[str]]:
    """The rows of the page's last table."""
    text = PAGE.read_text(encoding="utf-8").split("## What each hand-out means")[1]
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def from_memoryview(c):
    view = memoryview(c)
    return view.tolist


def from_numpy(c):
    a = c.numpy()
    return a.tolist


def from_edit(c):
    """The scope is open when this returns; calling it reads."""
    scope = c.edit()
    a = scope.__enter__()

    def read():
        return a.tolist()

    read.scope, read.array = scope, a
    return read


def capsule(**asked):
    def export(c):
        twin = cs.CPU.from_dlpack(Handed(c.__dlpack__(**asked)), mutable=False)
        return lambda: values(twin)

    return export


class Handed:
    def __init__(self, held):
        self.held = held

    def __dlpack_device__(self):
        return 1, 0

    def __dlpack__(self, **_):
        return self.held


@dataclass
class Row:
    """How to hand out, and the kinds that the row is about."""

    out: Callable
    where: Callable[[Kind], bool]
    mutable: bool = True


def never(kind):
    return False


ROWS = {
    "`memoryview(c)`": Row(from_memoryview, shares),
    "`c.numpy()`": Row(from_numpy, shares),
    "`c.numpy()`, a copy": Row(from_numpy, copies),
    "`c.edit()`": Row(from_edit, shares),
    "`c.edit()`, a copy": Row(from_edit, copies),
    "`c.__dlpack__()`, writable": Row(capsule(), simple),
    "`c.__dlpack__()`, read-only": Row(capsule(max_version=(1, 0)), shares, mutable=False),
    "`c.__dlpack__(copy=True)`": Row(capsule(copy=True), lambda kind: True),
    "`CPU.from_dlpack(x)`": Row(cs.CPU.from_dlpack, never),
    "`CPU.from_buffer(x)`": Row(cs.CPU.from_buffer, never),
}
IN = [name for name, row in ROWS.items() if row.where is never]


def cases(column: str) -> list:
    """Each row's cell of a column, with every kind that the row is about."""
    found = []
    for cells in table()[2:]:
        row = ROWS[cells[0]]
        says = cells[COLUMNS.index(column)]
        kinds = [Cell(kind, F32) for kind in KINDS if row.where(kind) and kind.needs() is None]
        found += [pytest.param(row, cell, says, id=f"{cells[0]}-{cell.kind.name}") for cell in kinds]
        if row.where is never:
            found.append(pytest.param(row, None, says, id=cells[0]))
    return found


def each_cell(column):
    return pytest.mark.parametrize(("row", "cell", "says"), cases(column))


def made(row, cell):
    """A carrier for the row: what is read-only unless the kind is so anyway is immutable."""
    return cell.make(3, mutable=row.mutable or cell.kind.evictable)


class Source:
    """Memory to wrap, and whether it is held."""

    def __init__(self):
        self.memory = array.array("f", [1, 2, 3])

    def into(self, row):
        if row.out is cs.CPU.from_buffer:
            return cs.CPU.from_buffer(self.memory)
        return cs.CPU.from_dlpack(library("numpy").frombuffer(self.memory, "f4"))

    def is_held(self) -> bool:
        gc.collect()
        try:
            self.memory.append(0)
        except BufferError:
            return True
        self.memory.pop()
        return False


def test_the_table():
    """It has the rows and the columns that are tested here."""
    rows = table()
    assert rows[0] == COLUMNS and [cells[0] for cells in rows[2:]] == list(ROWS)
    text = PAGE.read_text(encoding="utf-8").split("## What each hand-out means")[1]
    tests = ["test_version", "test_release", "test_eviction", "test_ownership", "test_lives_on"]
    named = re.findall(r"`(test_\w+)`", text)
    assert named == [*tests, "test_refused_without_values"]
    assert all(name in globals() for name in named)


@each_cell("version")
def test_version(row, cell, says):
    if says == "starts at 0; writes by others stay untold":
        source = Source()
        c = source.into(row)
        source.memory[1] = 9
        assert c.version == 0 and c[1] == 9
        c[0] = 1
        assert c.version == 1
        return
    c = made(row, cell)
    held = row.out(c)
    assert (
        c.version == {"stays": 0, "advances at the export": 1, "advances at its begin and its end": 1}[says]
    )
    if "its end" in says:
        held.scope.__exit__(None, None, None)
        assert c.version == 2


@each_cell("release")
def test_release(row, cell, says):
    if says == "gives `x` back":
        source = Source()
        c = source.into(row)
        assert source.is_held()
        c.release()
        assert not source.is_held()
        return
    c = made(row, cell)
    held = row.out(c)
    if says == "refused until its end":
        with pytest.raises(RuntimeError, match="edited"):
            c.release()
        held.scope.__exit__(None, None, None)
    else:
        assert says == "succeeds"
    c.release()
    assert c.is_released() and held() == cell.samples(3)


@each_cell("eviction")
def test_eviction(row, cell, says):
    """Of a hierarchy that hands out, or whose primary did before."""
    if says == "gives `x` back":
        source = Source()
        h = cs.Evictable(source.into(row), cs.FileBacked(dtype=F32))
        assert source.is_held()
        h.evict()
        assert not source.is_held()
        h.promote()
        assert list(h) == [1.0, 2.0, 3.0]
        return
    c = made(row, cell)
    if says == "refused until its end":
        h = cs.Evictable(c, cs.CPU(0))
        held = row.out(h)
        with pytest.raises(RuntimeError, match="edited"):
            h.evict()
        held.scope.__exit__(None, None, None)
    else:
        assert says == "succeeds"
        held = row.out(c)
        h = cs.Evictable(c, cs.CPU(0))
    h.evict()
    assert h.is_evicted() and held() == cell.samples(3)
    h.promote()
    assert values(h) == held() == cell.samples(3)


@each_cell("ownership")
def test_ownership(row, cell, says):
    if says == "its own":
        source = cs.CPU(0).new_like([1, 2, 3])
        c = row.out(source)
        token = source.claim()
        assert not c.is_owned() and values(c) == [1.0, 2.0, 3.0]
        c.claim().relinquish()
        token.relinquish()
        return
    c = made(row, cell)
    token = c.claim()
    if says == "any":
        assert row.out(c)() == cell.samples(3) and c.version == 0
        token.relinquish()
        return
    assert says in ("public mutability", "public mutability; no claim until its end")
    with pytest.raises((RuntimeError, BufferError)):
        row.out(c)
    with token.access():
        held = row.out(c)
    assert held() == cell.samples(3)
    if "no claim" not in says:
        token.relinquish()
        return
    with token.access():
        held.scope.__exit__(None, None, None)
    token.relinquish()
    held = row.out(c)
    with pytest.raises(RuntimeError, match="edited"):
        c.claim()
    held.scope.__exit__(None, None, None)
    c.claim().relinquish()


@each_cell("lives on")
def test_lives_on(row, cell, says):
    if says == "keeps `x` alive until the last view":
        source = Source()
        c = source.into(row)
        view = memoryview(c)
        del c
        assert source.is_held() and view.tolist() == [1.0, 2.0, 3.0]
        del view
        assert not source.is_held()
        return
    c = made(row, cell)
    held = row.out(c)
    expected = cell.samples(3)
    if says == "as an array of nobody":
        held.scope.__exit__(None, None, None)
        held.array[0] = 5.0
        expected = [5.0, *expected[1:]]
    elif c.is_mutable():
        c[0] = cell.good
        if says == "shows the memory as it was left":
            expected = [cell.good, *expected[1:]]
        else:
            assert says == "as copied"
    c.release()
    del c
    gc.collect()
    more = [cell.make([cell.zero] * 3) for _ in range(20)]
    assert held() == expected and len(more) == 20


@pytest.mark.parametrize("kind", [k for k in KINDS if k.needs() is None], ids=lambda k: k.name)
def test_refused_without_values(kind):
    """RuntimeError from NumPy and edit(), BufferError from buffers and DLPack; an evicted one's names promote()."""
    cell = Cell(kind, F32)
    gone = cell.make(3)
    cases = [(gone, tensor(gone), "released")]
    gone.release()
    if kind.evictable:
        low = cell.make(3)
        cases.append((low, tensor(low), r"promote\(\)"))
        low.evict()
    np = library("numpy")
    for c, t, says in cases:
        for call in (np.asarray, np.array, lambda x: x.numpy()):
            for x in (c, t):
                with pytest.raises(RuntimeError, match=says):
                    call(x)
        with pytest.raises(RuntimeError, match=says):
            from_edit(c)
        for call in (memoryview, lambda c: c.__dlpack__(), lambda c: inside(c.__dlpack__(copy=True))):
            with pytest.raises(BufferError, match=says):
                call(c)
        with pytest.raises(BufferError, match=says):
            t.__dlpack__()
