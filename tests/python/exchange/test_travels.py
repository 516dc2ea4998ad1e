# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""docs/serialization.md, "Pickles and copies": every row of its tables, by every way, on every shipped kind."""

import pickle
from pathlib import Path

import carrier_storage as cs
import pytest

from exchange.twins import PICKLES, WAYS, Travelling, tree
from helpers import compound, line
from kinds import F32, I32, KINDS, Cell, make_cpu, make_hooked, make_wrapped

PAGE = Path(__file__).parents[3] / "docs" / "serialization.md"
CELLS = [Cell(k, d) for k in KINDS if not k.custom and k.needs() is None for d in k.dtypes]
HIERARCHIES = [cell for cell in CELLS if cell.kind.evictable]


def rows() -> dict[str, str]:
    text = PAGE.read_text(encoding="utf-8").split("## Pickles and copies")[1].split("### ")[0]
    cells = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    return {
        name.strip(): arrives.strip() for name, arrives in cells if arrives.strip() not in ("arrives", "---")
    }


CHECKS = {}


def row(name, arrives):
    """Registers the test of a row, with the words that the page has for it."""

    def register(check):
        CHECKS[name] = (arrives, check)
        return check

    return register


@row("kind", "the same; a hierarchy with tiers of the same kinds, nested ones too")
def kind(way):
    for cell in CELLS:
        c = cell.make(3)
        assert tree(way(c)) == tree(c)


@row("values", "every bit; those of an evicted hierarchy are read from its secondary, which keeps them")
def every_bit(way):
    for cell in CELLS:
        assert repr(way(cell.make(8)).tolist()) == repr(cell.samples(8))
    for cell in HIERARCHIES:
        h = cell.evicted(8)
        assert repr(way(h).tolist()) == repr(cell.samples(8))
        assert h.is_evicted() and repr(h.secondary.read(0, 8).tolist()) == repr(cell.samples(8))


@row("dtype", "the same object")
def dtype(way):
    for cell in CELLS:
        assert way(cell.make(1)).dtype() is cell.dtype


@row("mutability", "the carrier's own, whoever owns it")
def mutability(way):
    for cell in CELLS:
        for mutable in (True, False):
            c = cell.make(2, mutable=mutable)
            token = c.claim()
            assert way(c).is_mutable() is mutable and token


@row("version", "0")
def version(way):
    for cell in CELLS:
        c = cell.make(2)
        c.fill(cell.good)
        assert (c.version, way(c).version) == (1, 0)


@row("ownership, a running edit", "not at all: the twin is free")
def free(way):
    for cell in CELLS:
        c = cell.make(2)
        token = c.claim()
        assert not way(c).is_owned()
        token.relinquish()
    c = make_cpu([1, 2], I32)
    pytest.importorskip("numpy", reason="NumPy is not installed here")
    with c.edit():
        way(c).release()


@row("residency", "promoted, over a fresh empty secondary")
def residency(way):
    for cell in HIERARCHIES:
        for h in (cell.make(2), cell.evicted(2)):
            twin = way(h)
            assert not twin.is_evicted() and twin.secondary.size() == 0


@row("released", "released")
def released(way):
    for cell in CELLS:
        assert way(cell.released()).is_released()


@row("wrapped memory", "memory of the twin's own")
def wrapped(way):
    c = make_wrapped([1, 2], I32)
    twin = way(c)
    twin[0] = 9
    assert c[0] == 1 and type(twin) is cs.CPU


@row("a file's name and path", "not at all: the twin's file is a new one, in the directory of its process")
def path(way):
    f = cs.FileBacked("a file with a name", dtype=F32)
    f.grow(2)
    twin = way(f)
    assert twin.path.name != f.path.name and twin.path.parent == f.path.parent


@row(
    "`Tensor`",
    "with its carriers, which it shares with whatever shared them in the same pickle; `copy.copy` copies them too",
)
def tensors(way):
    c = make_cpu(range(4), I32)
    t = cs.Tensor(c, 1, line(2))
    assert way(t).tolist() == [1, 2] and way(t).carrier is not c
    if way in PICKLES.values():
        a, b, alone = way([t, cs.Tensor(c, 0, line(1)), c])
        assert a.carrier is b.carrier is alone


@row("`Subtensor`, `Layout`, `Shape`, `Stride`", "by value")
def by_value(way):
    layout = cs.Layout(cs.Shape(2, [3]), cs.Stride(1, [2]))
    for thing in (layout, layout.shape, layout.stride):
        assert way(thing) == thing
    part = way(cs.Subtensor(cs.CPU(9), 2, layout))
    assert (part.offset, part.layout) == (2, layout)


@row(
    "`DType`",
    "the same object; a LookupError where its name is not registered, a ValueError where it means something else",
)
def dtypes(way):
    own = compound()
    assert way(own) is own and way(I32) is I32
    function, (name, definition) = own.__reduce__()
    with pytest.raises(LookupError):
        function(name + " of another process", definition)
    with pytest.raises(ValueError, match="another definition"):
        function(name, I32.__reduce__()[1][1])


@row("`Ownership`, iterators, scopes", "not at all: TypeError")
def bound_to_the_process(way):
    c = cs.CPU(1)
    token = c.claim()
    for thing in (token, token.access(), iter(c), c.edit()):
        with pytest.raises((TypeError, pickle.PicklingError)):
            way(thing)


@row("a custom carrier", "by its own `__reduce__`, else TypeError; a hierarchy over one as well")
def custom(way):
    assert way(Travelling([1], I32)).tolist() == [1]
    assert way(cs.Evictable(Travelling([1], I32), cs.CPU(1, dtype=I32))).tolist() == [1]
    for without in (make_hooked([1], I32), cs.Evictable(make_hooked([1], I32), cs.CPU(1, dtype=I32))):
        with pytest.raises(TypeError, match="__reduce__"):
            way(without)


def test_the_page_and_the_tests_have_the_same_rows():
    assert rows() == {name: arrives for name, (arrives, _) in CHECKS.items()}


@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
@pytest.mark.parametrize("name", CHECKS)
def test_a_row_of_the_page(name, way):
    CHECKS[name][1](way)
