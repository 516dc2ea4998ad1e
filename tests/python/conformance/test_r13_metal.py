# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: Metal owns typed accelerator storage. What it shares with the other kinds is tested with them."""

import carrier_storage as cs
import pytest

from customs import IndexLike
from helpers import compound, run_child, values
from kinds import cells, metal_absence

present = pytest.mark.skipif(metal_absence() is not None, reason=f"{metal_absence()}")
absent = pytest.mark.skipif(metal_absence() is None, reason="a Metal runtime is available here")


@present
def test_metal_is_among_the_kinds():
    """Where it can be had, every common test runs on it too; else this skip says why none does."""
    assert any(p.values[0].kind.name == "metal" for p in cells())


@present
@pytest.mark.parametrize(
    ("dtype", "zero"), [(cs.DType.Float32, 0.0), (cs.DType.Int32, 0), (cs.DType.Bool, False)]
)
def test_allocate_initialized_metal_storage(dtype, zero):
    """Scenario: Allocate initialized Metal storage."""
    c = cs.Metal(3, dtype=dtype)
    assert repr(values(c)) == repr([zero] * 3) and c.is_mutable() and not c.is_released()
    assert cs.Metal(0).size() == 0 and cs.Metal(1).dtype() is cs.DType.Float32
    assert not cs.Metal(1, mutable=False).is_mutable()
    c = cs.Metal(2, dtype=dtype, empty=True)
    c[0] = c[1] = True if dtype is cs.DType.Bool else 1
    assert values(c) == [1, 1]


@absent
def test_refuse_unavailable_metal_construction():
    """Scenario: Refuse unavailable Metal construction: RuntimeError that says what is missing and what to do."""
    for call in (
        lambda: cs.Metal(3),
        lambda: cs.Metal(0),
        lambda: cs.Metal(3, dtype=cs.DType.Int32, empty=True),
    ):
        with pytest.raises(RuntimeError) as info:
            call()
        text = str(info.value)
        assert "Metal" in text and "CPU" in text
        assert not isinstance(info.value, NotImplementedError)


def test_arguments_come_before_the_runtime():
    """size: TypeError, ValueError; dtype: TypeError, ValueError. Decision J: size, dtype, then the runtime."""
    for other in (1.0, "3", None, [3]):
        with pytest.raises(TypeError):
            cs.Metal(other)
    for negative in (-1, -(2**70), IndexLike(-1)):
        with pytest.raises(ValueError):
            cs.Metal(negative)
    with pytest.raises(TypeError):
        cs.Metal(1, dtype="Float32")
    for dtype in (cs.DType.Float64, cs.DType.Floating, compound()):
        with pytest.raises(ValueError):
            cs.Metal(1, dtype=dtype)
    for name in ("mutable", "empty"):
        with pytest.raises(TypeError):
            cs.Metal(1, **{name: 1})
    with pytest.raises(TypeError):
        cs.Metal()
    with pytest.raises(TypeError):
        cs.Metal(1, True)


def test_preserve_cpu_only_use_without_accelerator_dependencies():
    """Scenario: Preserve CPU-only use without accelerator dependencies: nothing of Metal is loaded."""
    run_child(
        """
        import sys
        import carrier_storage as cs
        c = cs.CPU(3)
        h = cs.Evictable(c, cs.FileBacked(dtype=cs.DType.Float32))
        h.evict()
        h.promote()
        assert not {m.split(".")[0].lower() for m in sys.modules} & {"metal", "objc", "mlx", "torch"}
        if sys.platform == "linux":
            loaded = {line.rsplit("/", 1)[-1].strip().lower() for line in open("/proc/self/maps") if "/" in line}
            assert not [name for name in loaded if "libobjc" in name or "metal" in name]
        """
    )


@absent
def test_a_failed_construction_affects_nothing_else():
    """Decision J: nothing else of the package is affected."""
    run_child(
        """
        import carrier_storage as cs
        for _ in range(3):
            try:
                cs.Metal(1)
            except RuntimeError:
                pass
            else:
                raise AssertionError
            c = cs.CPU(2)
            c[0] = 1
            assert list(c) == [1.0, 0.0]
        """
    )
