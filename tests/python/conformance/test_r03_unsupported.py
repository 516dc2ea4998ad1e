# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: Unsupported construction fails before storage is exposed."""

import os
import tempfile
from pathlib import Path

import carrier_storage as cs
import pytest

from helpers import category, compound, extension, state
from kinds import each, each_kind

CONSTRUCT = {
    "CPU": lambda dtype: cs.CPU(3, dtype=dtype),
    "CPU wrapped": lambda dtype: cs.CPU(1, 4096, dtype=dtype),
    "FileBacked": lambda dtype: cs.FileBacked("never_made", dtype=dtype),
    "Metal": lambda dtype: cs.Metal(3, dtype=dtype),
    "Generic": lambda dtype: cs.Generic([], dtype=dtype),
}
constructors = pytest.mark.parametrize("construct", CONSTRUCT.values(), ids=CONSTRUCT)
NOT_DTYPES = ["Float32", 1, float, object(), cs.DType]


def session_files():
    found = Path(tempfile.gettempdir()).glob(f".carrier-storage-{os.getpid()}-*/*")
    return sorted(str(p) for p in found)


@constructors
def test_a_constructor_takes_a_dtype(construct):
    """dtype that is not a DType: TypeError."""
    before = session_files()
    for other in [*NOT_DTYPES, None]:
        with pytest.raises(TypeError):
            construct(other)
    assert session_files() == before


@constructors
def test_reject_an_unsupported_simple_encoding(construct):
    """Scenario: Reject an unsupported simple encoding."""
    before = session_files()
    sub = extension(lambda name: cs.SimpleDType(name, bits=32, supertype=cs.DType.Floating))
    for name in ("Float64", "Int8", "E8M0", "E5M2", "E4M3", "E3M2", "E2M3", "E2M1"):
        with pytest.raises(ValueError, match=name):
            construct(cs.DType.from_name(name))
    with pytest.raises(ValueError):
        construct(sub)
    assert session_files() == before


@constructors
def test_reject_categories(construct):
    """Every category is outside the concrete set, an extension category too."""
    before = session_files()
    for dtype in (cs.DType.Any, cs.DType.Floating, cs.DType.Integer, category()):
        with pytest.raises(ValueError, match=dtype.name):
            construct(dtype)
    assert session_files() == before


@constructors
def test_reject_compound_homogeneous_storage(construct):
    """Scenario: Reject compound homogeneous storage: the message speaks of the planes."""
    with pytest.raises(ValueError, match="(?i)plane"):
        construct(compound())


def test_a_bool_file_is_refused():
    """FileBacked: Float32 and Int32 only."""
    with pytest.raises(ValueError, match="Bool"):
        cs.FileBacked(dtype=cs.DType.Bool)


@each_kind()
def test_a_factory_takes_a_dtype(cell):
    """new_like, allocate_like: another type is a TypeError and the receiver stays as it was."""
    c = cell.make()
    before, files = state(c), session_files()
    for other in NOT_DTYPES:
        with pytest.raises(TypeError):
            c.new_like(cell.samples(1), dtype=other)
        with pytest.raises(TypeError):
            c.allocate_like(1, dtype=other)
    assert (state(c), session_files()) == (before, files)


@each()
def test_a_factory_refuses_what_is_not_supported(cell):
    """new_like, allocate_like, from live and released receivers: ValueError before storage is exposed."""
    files = session_files()
    live, gone = cell.make(), cell.released()
    made = session_files()
    for c in (live, gone):
        for dtype in (cs.DType.Float64, cs.DType.Integer, category()):
            with pytest.raises(ValueError, match=dtype.name):
                c.new_like([], dtype=dtype)
            with pytest.raises(ValueError, match=dtype.name):
                c.allocate_like(1, dtype=dtype)
        for call in (
            lambda c=c, d=compound(): c.new_like([], dtype=d),
            lambda c=c, d=compound(): c.allocate_like(1, dtype=d),
        ):
            with pytest.raises(ValueError, match="(?i)plane"):
                call()
    assert session_files() == made and len(made) >= len(files)


@each(lambda kind: cs.DType.Any in kind.support or cs.DType.Floating in kind.support)
def test_reject_a_category_override(cell):
    """allocate_like, Scenario: Reject a category override, though supports_storage_dtype answers True."""
    c = cell.make()
    for dtype in (d for d in cell.kind.support if d.is_category()):
        assert c.supports_storage_dtype(dtype)
        with pytest.raises(ValueError):
            c.allocate_like(1, dtype=dtype)
        with pytest.raises(ValueError):
            c.new_like([], dtype=dtype)


@each_kind(lambda kind: kind.name in {"cpu_file", "nested_primary", "nested_secondary"})
def test_a_hierarchy_refuses_what_one_tier_cannot_hold(cell):
    """Evictable over FileBacked: Bool is outside the intersection."""
    c = cell.make()
    with pytest.raises(ValueError):
        c.allocate_like(1, dtype=cs.DType.Bool)
    with pytest.raises(ValueError):
        c.new_like([True], dtype=cs.DType.Bool)
