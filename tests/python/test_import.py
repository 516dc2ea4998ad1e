# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""What importing the package does, and does not do."""

import os
import sys

import carrier_storage as cs
import pytest

from helpers import run_child


def test_importing_is_quiet(session):
    """Importing starts no thread, opens no file, loads no NumPy, touches no temporary directory."""
    run_child(
        """
        import os, sys, threading
        def descriptors():
            return sorted(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else []
        def tasks():
            return len(os.listdir("/proc/self/task")) if os.path.isdir("/proc/self/task") else 1
        before = descriptors(), tasks(), dict(os.environ), os.getcwd()
        import carrier_storage
        assert (descriptors(), tasks(), dict(os.environ), os.getcwd()) == before
        assert threading.active_count() == 1
        assert "numpy" not in sys.modules
        loaded = {m.split(".")[0] for m in sys.modules}
        heavy = {"numpy", "torch", "jax", "rich", "safetensors", "dask", "matplotlib", "multiprocessing"}
        assert not loaded & heavy, loaded & heavy
        """
    )
    assert os.listdir(session) == []


def test_storage_without_numpy(session):
    """NumPy is optional at run time: the package works where it cannot be imported."""
    run_child(
        """
        import sys
        sys.modules["numpy"] = None
        import array
        import carrier_storage as cs
        c = cs.CPU(0).new_like(array.array("d", [1.5, 2.5]))
        assert list(c) == [1.5, 2.5]
        h = cs.Evictable(c, cs.FileBacked(dtype=cs.DType.Float32))
        h.evict()
        h.promote()
        assert list(h) == [1.5, 2.5]
        """
    )
    assert os.listdir(session) == []


def test_using_storage_does_not_load_numpy(session):
    """Nothing loads NumPy until it is asked for."""
    run_child(
        """
        import sys
        import carrier_storage as cs
        c = cs.CPU(3)
        c.new_like([1.0, None]), c.allocate_like(2), list(c), repr(c)
        t = cs.Tensor(c, 0, cs.Layout(cs.Shape(3), cs.Stride(1)))
        c.scatter(t, t, t.layout)
        cs.FileBacked(dtype=cs.DType.Int32).new_like(range(5))
        assert "numpy" not in sys.modules
        """
    )


def test_public_names():
    """The public surface: every name is there, says where it belongs, and is listed."""
    names = {
        "Carrier",
        "CPU",
        "Generic",
        "FileBacked",
        "Metal",
        "Evictable",
        "Tensor",
        "Subtensor",
        "Shape",
        "Stride",
        "Layout",
        "DType",
        "DTypeCategory",
        "SimpleDType",
        "CompoundDType",
        "Ownership",
        "validate_storage_dtype",
        "accepts_storage_dtype",
        "storage_zero",
    }
    assert names <= set(cs.__all__) and len(set(cs.__all__)) == len(cs.__all__)
    for name in cs.__all__:
        assert hasattr(cs, name)
    for name in names:
        thing = getattr(cs, name)
        assert (name, thing.__module__) == (name, "carrier_storage") and thing.__doc__
    assert isinstance(cs.__version__, str) and cs.__version__[0].isdigit()


def test_every_public_method_is_documented():
    """The header is the manual: classes, methods and properties have docstrings."""
    bare = []
    for name in cs.__all__:
        thing = getattr(cs, name)
        if isinstance(thing, type):
            for attribute, value in vars(thing).items():
                public = not attribute.startswith("_") and not isinstance(value, cs.DType)
                if public and not getattr(value, "__doc__", None):
                    bare.append(f"{name}.{attribute}")
    assert bare == []


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_first_file_is_the_first_trace(session):
    """Only the first FileBacked makes a directory."""
    run_child(
        """
        import os
        import carrier_storage as cs
        h = cs.Evictable(cs.CPU(2), cs.CPU(2))
        h.evict()
        assert os.listdir(os.environ["TMPDIR"]) == []
        f = cs.FileBacked(dtype=cs.DType.Float32)
        assert len(os.listdir(os.environ["TMPDIR"])) == 1
        """
    )


IN_ANOTHER = """
import os
try:
    import carrier_storage
    told = "imported"
except BaseException as error:
    told = f"{type(error).__name__}: {error}"
with open(os.path.join(os.environ["TMPDIR"], "told"), "w") as file:
    file.write(told)
"""


@pytest.mark.parametrize("first", [True, False])
def test_subinterpreters_are_refused(first, session):
    """In a subinterpreter importing is an ImportError that says what to use; the main interpreter never notices."""
    run_child(
        f"""
        try:
            import _interpreters as interpreters
        except ImportError:
            import _xxsubinterpreters as interpreters
        if {first}:
            import carrier_storage as cs
        other = interpreters.create()
        interpreters.run_string(other, {IN_ANOTHER!r})
        interpreters.destroy(other)
        import carrier_storage as cs
        h = cs.Evictable(cs.CPU(2), cs.FileBacked(dtype=cs.DType.Float32))
        h[0] = 1.5
        h.evict()
        h.promote()
        assert list(h) == [1.5, 0.0]
        """
    )
    told = (session / "told").read_text()
    assert told.startswith("ImportError: ") and "subinterpreter" in told
    assert os.listdir(session) == ["told"]
