# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""One value into one slot: every row of the table, by every path in."""

import decimal
import enum
import fractions
import math
import struct

import carrier_storage as cs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from values.oracle import BOOL, CONCRETE, F32, I32, one

BORDER = 2**128 - 2**103


def paths(dtype):
    """Each way in, as a function of the value that returns what is stored."""

    def by_index(value):
        return one(dtype, value)

    def by_method(value):
        c = cs.Generic([cs.storage_zero(dtype)], dtype=dtype)
        c.set_value(0, value)
        return c.get_value(0)

    def by_tensor(value):
        t = cs.Tensor(cs.CPU(2, dtype=dtype), 1, cs.Layout(cs.Shape(1), cs.Stride(1)))
        t[0] = value
        return t[0]

    def by_list(value):
        return cs.CPU(0, dtype=dtype).new_like([value])[0]

    def by_generator(value):
        return cs.CPU(0, dtype=dtype).new_like(v for v in [value])[0]

    def by_constructor(value):
        return cs.Generic((value,), dtype=dtype)[0]

    return [by_index, by_method, by_tensor, by_list, by_generator, by_constructor]


def stores(dtype, value, want):
    for path in paths(dtype):
        got = path(value)
        assert type(got) is type(want) and (got == want or (got != got and want != want)), path
        if isinstance(want, float):
            assert math.copysign(1, got) == math.copysign(1, want) or want != want, path


def refuses(dtype, value, error):
    for path in paths(dtype):
        if value is None and path.__name__ in ("by_list", "by_generator"):
            continue  # a hole
        with pytest.raises(error):
            path(value)
            raise AssertionError(path.__name__)


class Sub(int):
    def __index__(self):
        return 99


class Both:
    def __index__(self):
        return 2**54 - 2**29 - 1

    def __float__(self):
        return 1.0


class Colour(enum.IntEnum):
    RED = 3


def nearest(exact):
    """The binary32 number nearest to an integer, ties to even, by integers alone."""
    size = abs(exact)
    cut = max(size.bit_length() - 24, 0)
    kept, rest = size >> cut, size & ((1 << cut) - 1)
    half = 1 << cut >> 1
    if cut and (rest > half or (rest == half and kept & 1)):
        kept += 1
    return math.copysign(math.ldexp(float(kept), cut), exact) if exact else 0.0


@given(st.floats(width=64))
def test_floats_round_once(value):
    got = one(F32, value)
    if math.isnan(value):
        assert math.isnan(got)
    elif abs(value) >= BORDER:
        assert got == math.copysign(math.inf, value)
    else:
        assert struct.pack("d", got) == struct.pack("d", struct.unpack("f", struct.pack("f", value))[0])


@given(
    st.one_of(
        st.integers(-(2**200), 2**200),
        st.builds(
            lambda a, e, d: (a << e) + d, st.integers(2**24, 2**25), st.integers(0, 104), st.integers(-1, 1)
        ),
    )
)
def test_integers_round_once(value):
    if abs(value) >= BORDER:
        refuses(F32, value, OverflowError)
    else:
        assert one(F32, value) == nearest(value)


def test_the_float32_column():
    for value, want in (
        (1.5, 1.5),
        (-0.0, -0.0),
        (math.nan, math.nan),
        (math.inf, math.inf),
        (1e300, math.inf),
        (-1e300, -math.inf),
        (2.0**-149, 2.0**-149),
        (2.0**-150, 0.0),
        (True, 1.0),
        (False, 0.0),
        (7, 7.0),
        (2**54 - 2**29 - 1, 2.0**54 - 2.0**30),
        (decimal.Decimal("2.5"), 2.5),
        (fractions.Fraction(1, 4), 0.25),
        (Both(), 2.0**54 - 2.0**30),
        (Colour.RED, 3.0),
        (BORDER - 1, float(2**128 - 2**104)),
        (-BORDER + 1, -float(2**128 - 2**104)),
    ):
        stores(F32, value, want)
    for value in (None, "1", b"1", bytearray(b"1"), 1j, [1.0], object(), type):
        refuses(F32, value, TypeError)
    for value in (BORDER, -BORDER, 2**128, 2**1024, 10**400, -(10**400), 1 << 100_000):
        refuses(F32, value, OverflowError)


def test_the_int32_column():
    for value in (0, -1, 2**30, -(2**30), 2**31 - 1, -(2**31)):
        stores(I32, value, value)
    stores(I32, Colour.RED, 3)
    stores(I32, Sub(5), 5)  # an int is its own index
    for value in (2**31, -(2**31) - 1, 2**32 + 5, 2**63, 2**64 + 5, -(2**70), Both()):
        refuses(I32, value, OverflowError)
    for value in (
        1.0,
        math.inf,
        True,
        False,
        None,
        "1",
        b"1",
        1j,
        decimal.Decimal(1),
        fractions.Fraction(1),
        [1],
        object(),
    ):
        refuses(I32, value, TypeError)


def test_the_bool_column():
    for value in (True, False):
        stores(BOOL, value, value)
    for value in (0, 1, 1.0, None, "True", 1j, [], Both(), object()):
        refuses(BOOL, value, TypeError)


def test_numpy_scalars():
    np = pytest.importorskip("numpy")
    for code in ("b", "B", "h", "H", "i", "I", "q", "Q"):
        stores(I32, np.dtype(code).type(7), 7)
        stores(F32, np.dtype(code).type(7), 7.0)
        refuses(BOOL, np.dtype(code).type(1), TypeError)
    for scalar in (np.float16(0.1), np.float32(0.1), np.float64(0.1), np.longdouble("0.1"), np.array(0.1)):
        stores(F32, scalar, float(np.float32(float(scalar))))
        refuses(I32, scalar, TypeError)
    for value in (True, False):
        for scalar in (np.bool_(value), np.array(value)):
            stores(F32, scalar, float(value))
            refuses(I32, scalar, TypeError)
            refuses(BOOL, scalar, TypeError)
    stores(F32, np.uint64(2**54 - 2**29 - 1), 2.0**54 - 2.0**30)
    stores(I32, np.array(5), 5)
    refuses(I32, np.int64(2**31), OverflowError)

    class Mine(np.complex64):
        pass

    for scalar in (
        np.complex64(1),
        np.complex128(1),
        Mine(1),
        np.array(1j),
        np.str_("1"),
        np.bytes_(b"1"),
        np.array("1"),
        np.array([1.0, 2.0]),
    ):
        for dtype in CONCRETE:
            refuses(dtype, scalar, TypeError)


def test_both_protocols_where_the_index_refuses():
    """Arrays of other libraries have both, whatever they hold."""

    class Array:
        def __index__(self):
            raise TypeError("only integers")

        def __float__(self):
            return 2.5

    stores(F32, Array(), 2.5)
    refuses(I32, Array(), TypeError)


def test_errors_of_user_code_pass_through():
    class Fails:
        def __float__(self):
            raise LookupError("mine")

        def __index__(self):
            raise LookupError("mine")

    for dtype in (F32, I32):
        refuses(dtype, Fails(), LookupError)


def test_a_value_that_releases_the_carrier():
    for dtype in (F32, I32):
        for through_tensor in (False, True):
            c = cs.CPU(3, dtype=dtype)
            target = cs.Tensor(c, 0, cs.Layout(cs.Shape(3), cs.Stride(1))) if through_tensor else c

            class Releases:
                def __index__(self, c=c):
                    c.release()
                    return 1

            with pytest.raises(RuntimeError, match="released"):
                target[0] = Releases()
            assert c.version == 0


def test_messages_say_what_is_taken():
    for dtype, value, words in (
        (F32, "x", "Float32.*str"),
        (I32, 1.0, "Int32.*float"),
        (I32, True, "Int32.*bool"),
        (BOOL, 1, "Bool.*int"),
    ):
        with pytest.raises(TypeError, match=words):
            one(dtype, value)
    with pytest.raises(OverflowError, match=r"2147483648.*2147483647.*4294967296"):
        one(I32, 2**32)
    with pytest.raises(OverflowError, match="129 bits"):
        one(F32, 2**128)
