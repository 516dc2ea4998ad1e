# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: FileBacked owns a temporary raw numeric file."""

import array
import gc
import os
import pathlib

import carrier_storage as cs
import pytest

from helpers import category, compound, run_child, values

F32, I32 = cs.DType.Float32, cs.DType.Int32


def directory():
    return cs.FileBacked(dtype=F32).path.parent


def listing():
    return sorted(os.listdir(directory()))


def test_generate_file_backed_storage():
    """Scenario: Generate file-backed storage: unique names, empty files in the hidden session directory."""
    made = [cs.FileBacked(dtype=F32) for _ in range(20)] + [cs.FileBacked(None, dtype=I32)]
    assert len({c.path for c in made}) == 21 and len({c.path.parent for c in made}) == 1
    for c in made:
        assert (c.size(), c.is_mutable(), c.version) == (0, True, 0)
        assert c.path.is_file() and c.path.stat().st_size == 0
        assert c.path.parent.name.startswith(".")


def test_path_is_an_absolute_pathlib_path():
    """path returns the carrier's file path. Decision I: an absolute pathlib.Path."""
    c = cs.FileBacked("named_file", dtype=F32)
    assert isinstance(c.path, pathlib.Path) and c.path.is_absolute()
    assert c.path.name == "named_file"
    with pytest.raises(AttributeError):
        c.path = "elsewhere"


@pytest.mark.parametrize(
    "call",
    [
        lambda: cs.FileBacked(),
        lambda: cs.FileBacked("omitted_dtype"),
        lambda: cs.FileBacked(filename="omitted_dtype"),
    ],
)
def test_omitted_dtype(call):
    """Scenario: Require the keyword-only dtype before file creation: the message names what is missing."""
    before = listing()
    with pytest.raises(TypeError, match=r"(?s)missing.*keyword-only.*dtype"):
        call()
    assert listing() == before


@pytest.mark.parametrize("args", [("positional", F32), (None, F32), (None, True, F32)])
def test_positional_dtype(args):
    """Scenario: ... or the positional-argument mismatch."""
    before = listing()
    with pytest.raises(TypeError, match="positional"):
        cs.FileBacked(*args)
    with pytest.raises(TypeError, match="positional"):
        cs.FileBacked(*args, dtype=F32)
    assert listing() == before


@pytest.mark.parametrize("name", ["a/b", "/abs", "../up", "./here", "a/", "/", "", ".", "..", "nul\0byte"])
def test_reject_a_path_like_filename(name):
    """Scenario: Reject a path-like filename. Decision I: separators, '', '.', '..', NUL: ValueError."""
    before = listing()
    with pytest.raises(ValueError):
        cs.FileBacked(name, dtype=F32)
    with pytest.raises(ValueError):
        cs.FileBacked(filename=name, dtype=F32)
    assert listing() == before


def test_a_filename_of_another_type_is_refused():
    """Decision I: a str or path-like bare name; another type: TypeError."""

    class Named:
        def __init__(self, name):
            self.name = name

        def __fspath__(self):
            return self.name

    for other in (1, 1.5, b"bytes", ["x"], object(), True, Named(b"bytes"), Named(3)):
        with pytest.raises(TypeError):
            cs.FileBacked(other, dtype=F32)
    assert cs.FileBacked(pathlib.PurePath("from_path"), dtype=F32).path.name == "from_path"
    assert cs.FileBacked(Named("from_pathlike"), dtype=F32).path.name == "from_pathlike"
    with pytest.raises(ValueError):
        cs.FileBacked(pathlib.PurePath("a/b"), dtype=F32)


@pytest.mark.parametrize(
    "name", ["plain", "with space", "ünïcode-名", "-dash", ".hidden", "a" * 200, "semi;colon", "new\nline"]
)
def test_any_bare_name_is_good(name):
    """filename names a bare file within that directory."""
    c = cs.FileBacked(name, dtype=I32)
    assert c.path.name == name and c.path.is_file()


def test_a_taken_name_is_refused_without_replacing_the_file():
    """A filename that duplicates an existing file fails. Decision I: FileExistsError."""
    first = cs.FileBacked("taken", dtype=I32)
    first.grow(1)
    first[0] = 7
    for dtype in (I32, F32):
        with pytest.raises(FileExistsError):
            cs.FileBacked("taken", dtype=dtype)
    assert values(first) == [7] and first.path.stat().st_size == 4
    foreign = first.path.parent / "foreign"
    foreign.write_bytes(b"not ours")
    try:
        with pytest.raises(FileExistsError):
            cs.FileBacked("foreign", dtype=F32)
        assert foreign.read_bytes() == b"not ours"
    finally:
        foreign.unlink()
    link = first.path.parent / "link"
    link.symlink_to(first.path.parent / "nowhere")
    try:
        with pytest.raises(FileExistsError):
            cs.FileBacked("link", dtype=F32)
        assert not (first.path.parent / "nowhere").exists()
    finally:
        link.unlink()
    first.release()
    assert cs.FileBacked("taken", dtype=F32).size() == 0


@pytest.mark.parametrize("dtype", [None, "Float32", 1, float])
def test_a_value_that_is_no_dtype(dtype):
    """A non-DType value: TypeError before the file is created."""
    before = listing()
    with pytest.raises(TypeError):
        cs.FileBacked("no_dtype", dtype=dtype)
    assert listing() == before


def test_reject_category_backed_file_storage():
    """Scenario: Reject category-backed file storage; any other descriptor as well."""
    before = listing()
    others = [
        cs.DType.Any,
        cs.DType.Floating,
        cs.DType.Integer,
        cs.DType.Bool,
        cs.DType.Float64,
        category(),
        compound(),
    ]
    for dtype in others:
        with pytest.raises(ValueError):
            cs.FileBacked("no_category", dtype=dtype)
    assert listing() == before


def test_the_file_encodes_the_values():
    """The file encodes Float32 or Int32. Decision I: raw native-endian, no header, exactly 4 bytes a slot."""
    for dtype, code, data in ((F32, "f", [1.5, -0.0, 1e-40]), (I32, "i", [1, -1, 2**31 - 1])):
        c = cs.FileBacked(dtype=dtype).new_like(data)
        assert c.path.read_bytes() == array.array(code, data).tobytes()
        c[1] = 9
        assert c.path.read_bytes() == array.array(code, [data[0], 9, data[2]]).tobytes()


def test_new_and_extended_slots_read_as_zero():
    """New or extended slots read as zero; allocate_like, grow, and a hole."""
    for dtype, zero in ((F32, 0.0), (I32, 0)):
        c = cs.FileBacked(dtype=dtype)
        assert c.grow(3) is None
        assert repr(values(c)) == repr([zero] * 3)
        c[2] = 5
        c.grow(5)
        assert values(c) == [0, 0, 5, 0, 0]
        assert values(c.allocate_like(2)) == [zero] * 2
        assert values(c.allocate_like(2, empty=True)) == [zero] * 2


def test_int32_writes_require_integers():
    """Int32 writes shall require integer values."""
    c = cs.FileBacked(dtype=I32)
    c.grow(1)
    for bad in (1.0, "1", True, None):
        with pytest.raises(TypeError):
            c[0] = bad
    with pytest.raises(OverflowError):
        c[0] = 2**31
    assert values(c) == [0] and c.version == 0


def test_release_removes_the_file():
    """Releasing the carrier removes its file; path still answers."""
    c = cs.FileBacked(dtype=F32)
    path = c.path
    c.release()
    assert not path.exists() and c.path == path


def test_dropping_removes_the_file():
    """Deleting the carrier removes its file, out of a garbage cycle too."""
    c = cs.FileBacked(dtype=F32)
    path = c.path
    del c
    assert not path.exists()
    c = cs.FileBacked(dtype=F32)
    path, knot = c.path, [c]
    knot.append(knot)
    del c, knot
    gc.collect()
    assert not path.exists()


def test_an_immutable_file():
    """mutable states the carrier's intrinsic mutability."""
    c = cs.FileBacked("immutable", mutable=False, dtype=F32)
    assert not c.is_mutable()
    with pytest.raises(RuntimeError):
        c.grow(3)
    assert c.path.stat().st_size == 0
    filled = c.new_like([1.0], mutable=False)
    with pytest.raises(RuntimeError):
        filled[0] = 2.0
    assert values(filled) == [1.0]
    for other in (0, None, "no"):
        with pytest.raises(TypeError):
            cs.FileBacked(mutable=other, dtype=F32)


def test_shutdown_removes_the_session_directory(session):
    """Process shutdown removes the hidden session directory, live carriers or not."""
    run_child(
        """
        import carrier_storage as cs, os, tempfile
        kept = [cs.FileBacked(dtype=cs.DType.Float32), cs.FileBacked("named", dtype=cs.DType.Int32)]
        kept[0].grow(10)
        assert str(kept[0].path).startswith(tempfile.gettempdir() + os.sep)
        """
    )
    assert os.listdir(session) == []
