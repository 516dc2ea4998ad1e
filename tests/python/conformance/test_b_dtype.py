# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions B: the DType descriptors."""

import copy
import gc
import pickle

import carrier_storage as cs
import pytest
from carrier_storage import CompoundDType, DType, DTypeCategory, SimpleDType

from helpers import category, compound, extension, run_child

CATEGORIES = {"Any": None, "Floating": "Any", "Integer": "Any"}
SIMPLE = {
    "Bool": (8, "Any"),
    "Int32": (32, "Integer"),
    "Int8": (8, "Integer"),
    "Float32": (32, "Floating"),
    "Float64": (64, "Floating"),
    "E8M0": (8, "Floating"),
    "E5M2": (8, "Floating"),
    "E4M3": (8, "Floating"),
    "E3M2": (6, "Floating"),
    "E2M3": (6, "Floating"),
    "E2M1": (4, "Floating"),
}


def simple(name=None, **keywords):
    options = {"bits": 16, "supertype": DType.Floating} | keywords
    return extension(lambda fresh: SimpleDType(fresh if name is None else name, **options))


def test_dtype_is_abstract():
    """DType is abstract; the three kinds of descriptor are its subclasses."""
    for args in ((), ("Name",)):
        with pytest.raises(TypeError):
            DType(*args)
    assert (
        issubclass(DTypeCategory, DType)
        and issubclass(SimpleDType, DType)
        and issubclass(CompoundDType, DType)
    )


@pytest.mark.parametrize("name", CATEGORIES)
def test_built_in_categories(name):
    """Categories Any, Floating, Integer (both under Any)."""
    d = getattr(DType, name)
    assert type(d) is DTypeCategory and d.name == name and d is DType.from_name(name)
    assert (d.is_category(), d.is_simple(), d.is_compound()) == (True, False, False)
    assert d.supertype is (None if CATEGORIES[name] is None else DType.from_name(CATEGORIES[name]))


@pytest.mark.parametrize("name", SIMPLE)
def test_built_in_simple_dtypes(name):
    """Each is DType.<name> and DType.from_name("<name>"), the same object."""
    bits, supertype = SIMPLE[name]
    d = getattr(DType, name)
    assert type(d) is SimpleDType and d is DType.from_name(name)
    assert (d.name, d.bits, d.supertype.name) == (name, bits, supertype)
    assert (d.is_category(), d.is_simple(), d.is_compound()) == (False, True, False)


def test_registered():
    """DType.registered() lists the built-in descriptors, then each one that is constructed."""
    names = [d.name for d in DType.registered()]
    assert {*CATEGORIES, *SIMPLE} <= set(names) and len(names) == len(set(names))
    made = category()
    assert made in list(DType.registered()) and DType.from_name(made.name) is made
    run_child(
        f"""
        import carrier_storage as cs
        assert {{d.name for d in cs.DType.registered()}} == { ({*CATEGORIES, *SIMPLE})!r}
        """
    )


def test_supertypes():
    """.supertypes() and .is_subtype_of()."""
    assert [d.name for d in DType.Float32.supertypes()] == ["Floating", "Any"]
    assert list(DType.Any.supertypes()) == []
    assert DType.Float32.is_subtype_of(DType.Floating) and DType.Float32.is_subtype_of(DType.Any)
    assert not DType.Float32.is_subtype_of(DType.Integer) and not DType.Floating.is_subtype_of(DType.Float32)
    assert DType.Float32.is_subtype_of(DType.Float32) is True
    assert DType.Bool.is_subtype_of(DType.Any) and not DType.Bool.is_subtype_of(DType.Integer)
    for other in (None, "Floating", 3):
        with pytest.raises(TypeError):
            DType.Float32.is_subtype_of(other)


def test_extension_category():
    """DTypeCategory(name, *, supertype=None)."""
    top = category()
    below = extension(lambda name: DTypeCategory(name, supertype=top))
    assert top.is_category() and below.supertype is top and below.is_subtype_of(top)
    assert not below.is_subtype_of(DType.Integer)
    assert extension(lambda name: DTypeCategory(name, supertype=DType.Floating)).is_subtype_of(DType.Any)


def test_extension_simple():
    """SimpleDType(name, *, bits, supertype)."""
    d = simple(bits=12, supertype=DType.Integer)
    assert (d.bits, d.supertype, d.is_simple()) == (12, DType.Integer, True)
    for bad in (0, -1):
        with pytest.raises(ValueError):
            simple(bits=bad)
    for keywords in ({"bits": 1.0}, {"bits": "8"}, {"supertype": "Any"}, {"supertype": 3}):
        with pytest.raises(TypeError):
            simple(**keywords)
    for args, keywords in ((("Test.x1",), {}), (("Test.x1",), {"bits": 8}), (("Test.x1", 8, DType.Any), {})):
        with pytest.raises(TypeError):
            SimpleDType(*args, **keywords)
    with pytest.raises(LookupError):
        DType.from_name("Test.x1")


def test_extension_compound():
    """CompoundDType(name, *, planes, supertype=DType.Any); planes are at least two simple dtypes."""
    d = compound((DType.Float32, DType.Int32, DType.E8M0))
    assert tuple(d.planes) == (DType.Float32, DType.Int32, DType.E8M0)
    assert d.supertype is DType.Any and (d.is_compound(), d.is_simple(), d.is_category()) == (
        True,
        False,
        False,
    )
    under = extension(lambda n: CompoundDType(n, planes=[DType.Int8, DType.Int8], supertype=DType.Integer))
    assert under.is_subtype_of(DType.Integer)
    for planes in ((), (DType.Float32,)):
        with pytest.raises(ValueError):
            compound(planes)
    for planes in ((DType.Any, DType.Int32), (d, DType.Int32)):
        with pytest.raises((ValueError, TypeError)):
            compound(planes)
    for planes in (("Float32", "Int32"), (None, None), 3, None):
        with pytest.raises(TypeError):
            compound(planes)


def test_a_taken_or_empty_name_registers_nothing():
    """A taken or empty name is a ValueError and registers nothing; another type a TypeError."""
    before = list(DType.registered())
    for name in ("", "Float32", "Any", before[-1].name):
        for build in (
            lambda n: DTypeCategory(n),
            lambda n: SimpleDType(n, bits=8, supertype=DType.Any),
            lambda n: CompoundDType(n, planes=(DType.Int8, DType.Int8)),
        ):
            with pytest.raises(ValueError):
                build(name)
    for name in (None, 3, b"x"):
        with pytest.raises(TypeError):
            DTypeCategory(name)
    assert list(DType.registered()) == before


def test_a_failed_construction_leaves_the_name_free():
    """Constructing registers, and only when it succeeds."""
    with pytest.raises(ValueError):
        CompoundDType("Test.later", planes=(DType.Int8,))
    assert CompoundDType("Test.later", planes=(DType.Int8, DType.Int8)).name == "Test.later"


def test_extensions_never_become_attributes():
    """Extensions never become attributes of DType."""
    made = extension(lambda name: DTypeCategory(name.replace(".", "_")))
    assert not hasattr(DType, made.name) and DType.from_name(made.name) is made


def test_from_name():
    """An unregistered name: LookupError; another type: TypeError."""
    for name in ("nowhere", "float32", ""):
        with pytest.raises(LookupError):
            DType.from_name(name)
    for other in (None, 3, DType.Float32):
        with pytest.raises(TypeError):
            DType.from_name(other)


@pytest.mark.parametrize("make", [lambda: DType.Float32, lambda: DType.Any, simple, category, compound])
def test_identity_is_the_meaning(make):
    """Equality, hash, copy, deepcopy and pickle keep the object."""
    d = make()
    assert copy.copy(d) is d and copy.deepcopy(d) is d and copy.deepcopy([d, d])[1] is d
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(d, protocol)) is d
    assert d == d and hash(d) == hash(copy.copy(d)) and {d: 1}[d] == 1
    assert all(d != other for other in DType.registered() if other is not d)
    assert d != d.name


def test_descriptors_are_immutable():
    """Descriptors are immutable, the built-in attributes of DType included in effect."""
    for d in (DType.Float32, DType.Any, compound()):
        for name in ("name", "supertype", "bits", "planes", "anything"):
            with pytest.raises((AttributeError, TypeError)):
                setattr(d, name, 1)
    planes = compound().planes
    with pytest.raises((TypeError, AttributeError)):
        planes[0] = DType.Int8


def test_descriptors_outlive_their_users():
    """Constructing registers: the descriptor stays, though nobody holds it."""
    name = category().name
    gc.collect()
    assert DType.from_name(name).name == name


def test_unpickling_an_unregistered_name():
    """Unpickling an unregistered name: LookupError; the same name with another definition: ValueError."""
    made = simple(bits=12)
    data = pickle.dumps(made)
    for definition, error in (
        ("None", "LookupError"),
        (f"cs.SimpleDType({made.name!r}, bits=12, supertype=cs.DType.Floating)", None),
        (f"cs.SimpleDType({made.name!r}, bits=13, supertype=cs.DType.Floating)", "ValueError"),
        (f"cs.SimpleDType({made.name!r}, bits=12, supertype=cs.DType.Integer)", "ValueError"),
        (f"cs.DTypeCategory({made.name!r}, supertype=cs.DType.Floating)", "ValueError"),
    ):
        run_child(
            f"""
            import pickle
            import carrier_storage as cs
            made = {definition}
            try:
                loaded = pickle.loads({data!r})
            except {error or "()"}:
                pass
            else:
                assert loaded is made and not {error!r}
            """
        )


def test_unpickling_another_compound():
    """The same name with other planes: ValueError."""
    made = compound()
    run_child(
        f"""
        import pickle
        import carrier_storage as cs
        cs.CompoundDType({made.name!r}, planes=(cs.DType.Int32, cs.DType.Float32))
        try:
            pickle.loads({pickle.dumps(made)!r})
        except ValueError:
            pass
        else:
            raise AssertionError
        """
    )


def test_carriers_keep_the_identity():
    """dtype() is the descriptor itself."""
    for d in (DType.Float32, DType.Int32, DType.Bool):
        assert cs.CPU(1, dtype=pickle.loads(pickle.dumps(d))).dtype() is d


def test_repr_names_the_descriptor():
    """A descriptor can be recognized in a message."""
    for d in (DType.Float32, category()):
        assert d.name in repr(d) and d.name in str(d)
