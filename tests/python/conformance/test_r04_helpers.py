# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Requirement: Public storage helpers share the identity-based storage rules."""

import copy
import pickle

import carrier_storage as cs
import pytest

from helpers import category, compound

F32, I32, BOOL = cs.DType.Float32, cs.DType.Int32, cs.DType.Bool
validate = cs.validate_storage_dtype


def test_validate_an_exact_accepted_identity():
    """Scenario: Validate an exact accepted identity."""
    for dtype in (F32, I32, BOOL):
        assert validate(dtype, carrier="Any carrier", accepted=(F32, I32, BOOL)) is dtype
    odd = category()
    assert validate(odd, carrier="x", accepted=(odd,)) is odd
    assert validate(copy.deepcopy(F32), carrier="x", accepted=(pickle.loads(pickle.dumps(F32)),)) is F32


def test_validate_refuses_what_is_no_dtype():
    """TypeError when dtype is not a DType, even if the object is in accepted."""
    for other in (None, "Float32", 3, object(), cs.DType):
        with pytest.raises(TypeError):
            validate(other, carrier="Shelf", accepted=(F32,))


def test_validate_names_the_carrier_and_the_dtypes():
    """carrier names the carrier in diagnostics; accepted is what is allowed."""
    with pytest.raises(ValueError) as info:
        validate(cs.DType.Float64, carrier="Shelf", accepted=(F32, I32))
    for word in ("Shelf", "Float64", "Float32", "Int32"):
        assert word in str(info.value)
    for dtype in (cs.DType.Any, BOOL, category()):
        with pytest.raises(ValueError, match=dtype.name):
            validate(dtype, carrier="Shelf", accepted=(F32, I32))


def test_validate_matches_identity_not_kinship():
    """A supertype or a subtype of an accepted descriptor is not accepted."""
    with pytest.raises(ValueError):
        validate(F32, carrier="x", accepted=(cs.DType.Floating, cs.DType.Any))
    with pytest.raises(ValueError):
        validate(cs.DType.Floating, carrier="x", accepted=(F32,))
    with pytest.raises(ValueError):
        validate(F32, carrier="x", accepted=())


def test_validate_speaks_of_planes():
    """When dtype is compound, the failure identifies the deferred multi-plane storage requirement."""
    dtype = compound()
    with pytest.raises(ValueError, match="(?i)plane"):
        validate(dtype, carrier="Shelf", accepted=(F32,))


def test_validate_takes_carrier_and_accepted_by_keyword():
    """validate_storage_dtype(dtype, *, carrier, accepted)."""
    for call in (
        lambda: validate(F32, "x", (F32,)),
        lambda: validate(F32, carrier="x"),
        lambda: validate(F32, accepted=(F32,)),
    ):
        with pytest.raises(TypeError):
            call()


def test_accepts_by_identity():
    """accepts_storage_dtype returns whether dtype is identical to any descriptor in accepted."""
    assert cs.accepts_storage_dtype(F32, (I32, F32)) is True
    assert cs.accepts_storage_dtype(F32, (I32, BOOL)) is False
    assert cs.accepts_storage_dtype(F32, ()) is False
    assert cs.accepts_storage_dtype(cs.DType.Floating, (F32,)) is False
    assert cs.accepts_storage_dtype(dtype=F32, accepted=(F32,)) is True


def test_accepts_never_asks_for_equality():
    """Identity rather than equality matching; False when dtype is not identical to any member."""

    class Equal:
        def __eq__(self, other):
            raise AssertionError("compared for equality")

        __hash__ = None

    assert cs.accepts_storage_dtype(Equal(), (F32, I32)) is False
    for other in (None, "Float32", 3):
        assert cs.accepts_storage_dtype(other, (F32,)) is False


def test_obtain_a_concrete_storage_zero():
    """Scenario: Obtain a concrete storage zero."""
    for dtype, zero in ((F32, 0.0), (I32, 0), (BOOL, False)):
        assert cs.storage_zero(dtype) == zero and type(cs.storage_zero(dtype)) is type(zero)
    assert cs.storage_zero(BOOL) is False
    assert str(cs.storage_zero(F32)) == "0.0"


def test_no_storage_zero_without_a_concrete_encoding():
    """None for a dtype without a defined concrete stored zero, including the legacy opaque categories."""
    others = [d for d in cs.DType.registered() if d not in (F32, I32, BOOL)]
    assert cs.DType.Any in others and cs.DType.Floating in others
    for dtype in [*others, category(), compound()]:
        assert cs.storage_zero(dtype) is None


def test_storage_zero_takes_a_dtype():
    """Another type is a TypeError."""
    for other in (None, "Float32", float):
        with pytest.raises(TypeError):
            cs.storage_zero(other)
