# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: Generic stores normalized concrete values."""

import array
import math

import carrier_storage as cs
import pytest

from helpers import category, compound, line, tensor, values

F32, I32, BOOL = cs.DType.Float32, cs.DType.Int32, cs.DType.Bool


def test_construct_with_an_explicit_concrete_dtype():
    """Scenario: Construct with an explicit concrete dtype."""
    for dtype, given, want in (
        (F32, [0.1, 1, True], [0.10000000149011612, 1.0, 1.0]),
        (I32, [1, -(2**31), 2**31 - 1], [1, -(2**31), 2**31 - 1]),
        (BOOL, [True, False], [True, False]),
    ):
        c = cs.Generic(given, dtype=dtype)
        assert repr(values(c)) == repr(want)
        assert (c.dtype(), c.is_mutable(), c.version) == (dtype, True, 0)
    assert cs.Generic([], dtype=F32).size() == 0
    assert cs.Generic(values=[1.0], mutable=False, dtype=F32).is_mutable() is False


def test_require_the_keyword_only_dtype():
    """Scenario: Require the keyword-only dtype: omitted, or positional."""
    for call in (
        lambda: cs.Generic([1.0]),
        lambda: cs.Generic(values=[1.0]),
        lambda: cs.Generic([1.0], mutable=True),
    ):
        with pytest.raises(TypeError, match=r"(?s)missing.*keyword-only.*dtype"):
            call()
    for call in (
        lambda: cs.Generic([1.0], F32),
        lambda: cs.Generic([1.0], F32, dtype=F32),
        lambda: cs.Generic([1.0], True, F32),
    ):
        with pytest.raises(TypeError, match="positional"):
            call()
    with pytest.raises(TypeError):
        cs.Generic(dtype=F32)
    with pytest.raises(TypeError):
        cs.Generic([1.0], dtype=F32, colour=1)


def test_own_concrete_input_storage():
    """Scenario: Own concrete input storage."""
    source = [1, 2, 3]
    c = cs.Generic(source, dtype=I32)
    source[0] = 99
    source.clear()
    assert values(c) == [1, 2, 3]
    buffer = array.array("i", [1, 2])
    c = cs.Generic(buffer, dtype=I32)
    buffer[0] = 99
    assert values(c) == [1, 2]
    c[1] = 5
    assert buffer.tolist() == [99, 2]


def test_reject_category_backed_generic_storage():
    """Scenario: Reject category-backed Generic storage; other descriptors too; what is no DType is a TypeError."""
    for dtype in (
        cs.DType.Any,
        cs.DType.Floating,
        cs.DType.Integer,
        cs.DType.Float64,
        category(),
        compound(),
    ):
        with pytest.raises(ValueError):
            cs.Generic([], dtype=dtype)
    for other in (None, "Float32", float, 3):
        with pytest.raises(TypeError):
            cs.Generic([], dtype=other)


def test_values_shall_be_iterable():
    """When values is not iterable, TypeError; the iterable's own error passes through."""
    for other in (None, 3, 1.5, object()):
        with pytest.raises(TypeError):
            cs.Generic(other, dtype=F32)

    def source():
        yield 1.0
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        cs.Generic(source(), dtype=F32)


@pytest.mark.parametrize(
    ("dtype", "good", "bad", "error"),
    [
        (F32, 1.0, "1.0", TypeError),
        (F32, 1.0, None, TypeError),
        (F32, 1.0, 10**400, OverflowError),
        (I32, 1, 1.0, TypeError),
        (I32, 1, True, TypeError),
        (I32, 1, None, TypeError),
        (I32, 1, 2**31, OverflowError),
        (I32, 1, -(2**31) - 1, OverflowError),
        (BOOL, True, 1, TypeError),
        (BOOL, True, None, TypeError),
    ],
)
def test_invalid_stored_values(dtype, good, bad, error):
    """Invalid stored values shall fail with TypeError or OverflowError; at construction and at later writes."""
    for data in ([bad], [good, bad], [good] * 300 + [bad], (v for v in [good, bad])):
        with pytest.raises(error):
            cs.Generic(data, dtype=dtype)
    c = cs.Generic([good], dtype=dtype)
    for write in (
        lambda: c.__setitem__(0, bad),
        lambda: c.set_value(0, bad),
        lambda: tensor(c).__setitem__(0, bad),
    ):
        with pytest.raises(error):
            write()
    assert (values(c), c.version) == ([good], 0)


def test_the_same_normalization_applies_to_later_writes():
    """Indexed writes and scatter writes normalize too, so a caller-held alias cannot bypass it."""
    c = cs.Generic([0.0, 0.0, 0.0], dtype=F32)
    c[0] = 0.1
    c.set_value(1, 2**25 + 1)
    c.scatter(tensor(cs.Generic([7], dtype=I32)), tensor(c), line(1), 2)
    assert repr(values(c)) == repr([0.10000000149011612, float(2**25), 7.0])
    with pytest.raises(TypeError):
        other = cs.Generic([1], dtype=I32)
        other.scatter(tensor(c, 1), tensor(other), line(1))


def test_float32_values_are_binary32_exact():
    """Float32 values shall be binary32-exact Python floats."""
    for value in (0.1, 1e-45, 1e38, 1 / 3, -math.pi, 16777217.0):
        (got,) = values(cs.Generic([value], dtype=F32))
        assert type(got) is float and got == array.array("f", [value])[0]


def test_generic_has_no_address():
    """Generic is storage without a public address."""
    assert not hasattr(cs.Generic([1.0], dtype=F32), "pointer")
