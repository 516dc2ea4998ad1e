# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions K: guarded public methods, closed kinds, dispatch."""

import abc
import collections.abc
import types
import typing

import carrier_storage as cs
import pytest

from customs import HookedCarrier
from kinds import F32, each, plain

GUARDED = {
    "get_value": "_get_value",
    "set_value": "_set_value",
    "__getitem__": "_get_value",
    "__setitem__": "_set_value",
    "size": "_size",
    "dtype": "_dtype",
    "is_mutable": "_is_mutable",
    "new_like": "_new_like",
    "allocate_like": "_allocate_like",
    "scatter": "_scatter",
    "release": "_release",
    "supports_storage_dtype": "_supports_storage_dtype",
    "dispatch_op": "_dispatch_op",
}
UNHOOKED = ["version", "is_released", "is_owned", "claim", "increment_version", "__len__", "__iter__"]
UNHOOKED += ["edit", "numpy", "__array__", "__buffer__", "__dlpack__", "__dlpack_device__"]
KINDS = [cs.CPU, cs.Generic, cs.FileBacked, cs.Metal, cs.Evictable]


def replacement(self, *args):
    raise AssertionError("an override was called")


@pytest.mark.parametrize(("name", "hook"), GUARDED.items())
def test_overriding_a_guarded_method(name, hook):
    """A TypeError at class creation that names the hook to write instead."""
    with pytest.raises(TypeError, match=rf"{name}(?s:.*){hook}\b"):
        type("Bold", (cs.Carrier,), {name: replacement})
    with pytest.raises(TypeError, match=hook):
        type("Bolder", (HookedCarrier,), {name: replacement})


@pytest.mark.parametrize("name", UNHOOKED)
def test_overriding_what_has_no_hook(name):
    """One without a hook is refused as not open to overriding."""
    for value in (replacement, property(replacement)):
        with pytest.raises(TypeError, match=rf"{name}(?s:.*)not open"):
            type("Bold", (cs.Carrier,), {name: value})


@pytest.mark.parametrize("name", ["get_value", "size", "version", "__iter__"])
def test_overriding_by_a_mixin(name):
    """A mixin in front of Carrier overrides too; one behind it does not."""
    mixin = type("Mixin", (), {name: replacement})
    with pytest.raises(TypeError, match=name):
        type("Bold", (mixin, HookedCarrier), {})
    c = type("Tame", (HookedCarrier, mixin), {})([1.0], F32)
    assert (c.get_value(0), c.size(), c.version, list(c)) == (1.0, 1, 0, [1.0])


@pytest.mark.parametrize("name", [*GUARDED, *UNHOOKED])
def test_a_method_put_on_the_class_later(name):
    """Refused when the next instance is made."""

    class Late(HookedCarrier):
        pass

    first = Late([1.0], F32)
    assert first[0] == 1.0
    setattr(Late, name, replacement)
    with pytest.raises(TypeError, match=name):
        Late([1.0], F32)
    delattr(Late, name)
    assert Late([2.0], F32)[0] == 2.0


def test_a_mixin_that_hides_the_check():
    """A mixin whose __init_subclass__ does not call super() is caught at the first instance."""

    class Sneaky:
        def __init_subclass__(cls, **keywords):
            pass

    made = type("Made", (Sneaky, HookedCarrier), {"size": replacement})
    with pytest.raises(TypeError, match="_size"):
        made([1.0], F32)


@pytest.mark.parametrize("kind", KINDS)
def test_shipped_kinds_are_closed(kind):
    """Subclassing one is a TypeError that says to write a sibling of Carrier."""
    with pytest.raises(TypeError, match="Carrier"):
        type("Sub", (kind,), {})
    with pytest.raises(TypeError):
        type("Sub", (type("Mixin", (), {}), kind), {})
    with pytest.raises(TypeError):
        type("Sub", (HookedCarrier, kind), {})

    class Quiet:
        def __init_subclass__(cls, **keywords):
            pass

    with pytest.raises(TypeError):
        type("Sub", (Quiet, kind), {})


@pytest.mark.parametrize("kind", KINDS)
def test_shipped_kinds_are_carriers(kind):
    """The five kinds are siblings under Carrier, and cannot be changed from outside."""
    assert issubclass(kind, cs.Carrier) and kind is not cs.Carrier
    assert [k for k in KINDS if issubclass(kind, k)] == [kind]
    assert kind.__module__ == "carrier_storage"


@pytest.mark.parametrize("mixin", [collections.abc.Sequence, abc.ABC, collections.abc.Sized])
def test_metaclasses_of_their_own(mixin):
    """Except those with a metaclass of their own (collections.abc, ABC, Protocol)."""
    for bases in ((cs.Carrier, mixin), (mixin, cs.Carrier)):
        with pytest.raises(TypeError):
            types.new_class("Mixed", bases)


def test_protocols():
    """... Protocol as well."""

    class Named(typing.Protocol):
        def name(self): ...

    with pytest.raises(TypeError):
        types.new_class("Mixed", (cs.Carrier, Named))


def test_virtual_subclasses():
    """A carrier class can be registered with an abstract base class."""

    class Base(abc.ABC):  # noqa: B024
        pass

    Base.register(cs.Carrier)
    assert isinstance(cs.CPU(1), Base)


@each(plain)
def test_no_operations_of_their_own(cell):
    """The shipped carriers raise NotImplementedError naming the operation (RuntimeError after release)."""
    if cell.kind.custom:
        assert cell.make(1).dispatch_op("add") == ("operation", "add")
        return
    c = cell.make(1)
    with pytest.raises(NotImplementedError, match="matmul_fused"):
        c.dispatch_op("matmul_fused")
    with pytest.raises(NotImplementedError):
        c.dispatch_op(name="")
    for other in (None, 3, b"add", c):
        with pytest.raises(TypeError):
            c.dispatch_op(other)
    c.release()
    with pytest.raises(RuntimeError) as info:
        c.dispatch_op("matmul_fused")
    assert not isinstance(info.value, NotImplementedError)


@each(lambda kind: kind.evictable)
def test_dispatch_of_a_hierarchy(cell):
    """While evicted, dispatch is a RuntimeError that names promote()."""
    h = cell.make(1)
    with pytest.raises(NotImplementedError, match="add"):
        h.dispatch_op("add")
    h.evict()
    with pytest.raises(RuntimeError, match="promote"):
        h.dispatch_op("add")


def test_instances_refuse_attributes_where_closed():
    """A shipped carrier has no dictionary to hide a method in."""
    for c in (cs.CPU(1), cs.Generic([1.0], dtype=F32), cs.FileBacked(dtype=F32)):
        for name in ("get_value", "anything"):
            with pytest.raises(AttributeError):
                setattr(c, name, replacement)


def test_an_instance_keeps_its_class():
    """No assignment turns one shipped kind into another, or changes a class for everybody."""
    made = [
        cs.CPU(1),
        cs.Generic([1.0], dtype=F32),
        cs.FileBacked(dtype=F32),
        cs.Evictable(cs.CPU(1), cs.CPU(1)),
        cs.Shape(1),
        cs.Stride(1),
        F32,
        cs.DType.Any,
    ]
    for instance in made:
        for other in made:
            if type(other) is not type(instance):
                with pytest.raises(TypeError):
                    instance.__class__ = type(other)
        with pytest.raises(TypeError):
            type(instance).anything = 1
