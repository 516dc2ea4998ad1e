# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions C: one rule for values, on every carrier and every path in."""

import decimal
import fractions
import math
import random
import struct
import threading

import carrier_storage as cs
import pytest

from customs import FloatLike, IndexLike
from helpers import line, tensor, values
from kinds import BOOL, F32, I32, cells, each, each_kind
from reference import binary32, normalize

INF, NAN = math.inf, math.nan
BORDER = 2**128 - 2**103  # from here on, nearest binary32 is infinite


def paths(cell):
    """Each path in, as a function from a value to what was stored."""

    def indexed(value):
        c = cell.make(2)
        c[1] = value
        return c[1]

    def method(value):
        c = cell.make(2)
        c.set_value(1, value)
        return c[1]

    def through_tensor(value):
        c = cell.make(2)
        tensor(c)[1] = value
        return c[1]

    return {
        "indexed": indexed,
        "set_value": method,
        "tensor": through_tensor,
        "new_like list": lambda v: cell.make(1).new_like([v])[0],
        "new_like tuple": lambda v: cell.make(1).new_like((cell.good, v))[1],
        "new_like iterator": lambda v: cell.make(1).new_like(iter([v]))[0],
    }


def same(got, want):
    return type(got) is type(want) and repr(got) == repr(want)


def check(cell, value, want):
    for name, store in paths(cell).items():
        got = store(value)
        assert same(got, want), (name, value, got, want)


def check_refused(cell, value, error, but=()):
    for name, store in paths(cell).items():
        if name.split()[0] not in but:
            with pytest.raises(error):
                store(value)
                raise AssertionError((name, value))


FLOATS = [
    0.0,
    -0.0,
    0.1,
    -1 / 3,
    1e-40,
    -1e-45,
    2**-149,
    2**-150,
    2**-150 * 1.0000001,
    2**-126,
    5e-324,
    1e300,
    -1e300,
    16777217.0,
    3.4028234663852886e38,
    float(BORDER),
    -float(BORDER),
    math.nextafter(float(BORDER), 0),
    INF,
    -INF,
]
INTS = [
    0,
    1,
    -1,
    2**24 + 1,
    2**24 + 3,
    -(2**25) - 2,
    2**54 - 2**29 - 1,
    2**54 - 2**29,
    2**54 - 2**29 + 1,
    2**63,
    2**64 + 1,
    999999999999999999999,
    BORDER - 1,
    1 - BORDER,
]


@each(dtypes=(F32,))
def test_floats_into_float32(cell):
    """float: rounded to nearest binary32, ties to even; beyond the range ±inf; -0.0 and subnormals kept."""
    for value in FLOATS:
        check(cell, value, binary32(value))


@each(dtypes=(F32,))
def test_nan_is_kept(cell):
    """NaN, inf, -0.0 and subnormals are kept."""
    for store in paths(cell).values():
        assert math.isnan(store(NAN)) and math.isnan(store(-NAN))


@each(dtypes=(F32,))
def test_ints_into_float32(cell):
    """int: rounded once from the exact integer, not through a double; too large for a double: OverflowError."""
    for value in INTS:
        check(cell, value, binary32(value))
        check(cell, IndexLike(value), binary32(value))
    for value in (2**1024 - 2**970, 2**1024, 10**400, -(10**400), 1 << 20000):
        check_refused(cell, value, OverflowError)
        check_refused(cell, IndexLike(value), OverflowError)


@each(dtypes=(F32,))
def test_ints_beyond_binary32(cell):
    """Rounded once they would be infinite; refused is the other reading. One rule for every path in, either way."""
    for value in (BORDER, -BORDER, 2**128, 2**1000, 2**1024 - 2**970 - 1):
        seen = set()
        for store in paths(cell).values():
            try:
                seen.add(repr(store(value)))
            except OverflowError:
                seen.add("refused")
        assert seen in ({"refused"}, {repr(binary32(value))}), (value, seen)


@each_kind(lambda kind: not kind.custom)
def test_random_numbers_against_the_reference(cell):
    """The rounding rule, over random doubles and integers of any magnitude."""
    rng = random.Random(4)
    doubles = [struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0] for _ in range(300)]
    halves = [math.ldexp(2 * rng.getrandbits(24) + 1, rng.randrange(-175, 104)) for _ in range(300)]
    integers = [rng.randrange(-1, 2, 2) * rng.getrandbits(rng.randrange(1, 128)) for _ in range(300)]
    ties = [
        ((2 * rng.getrandbits(23) + 2**24 + 1) << rng.randrange(1, 90)) + rng.randrange(-1, 2)
        for _ in range(300)
    ]
    numbers = [v for v in doubles + halves + integers + ties if v == v]
    got = cell.make(1).new_like(numbers)
    assert [repr(v) for v in got] == [repr(binary32(v)) for v in numbers]
    c = cell.make(1)
    for v in numbers[::7]:
        c[0] = v
        assert same(c[0], binary32(v)), v


@each(dtypes=(F32,))
def test_float_protocol_into_float32(cell):
    """Anything with __float__ (not str)."""
    check(cell, FloatLike(0.1), binary32(0.1))
    check(cell, decimal.Decimal("0.1"), binary32(0.1))
    check(cell, fractions.Fraction(1, 3), binary32(1 / 3))

    class Sub(float):
        pass

    check(cell, Sub(0.1), binary32(0.1))
    for bad in (FloatLike("1"), FloatLike(None), FloatLike(1)):
        check_refused(cell, bad, TypeError)


@each(dtypes=(F32,))
def test_bools_into_float32(cell):
    """bool: 1.0 / 0.0."""
    check(cell, True, 1.0)
    check(cell, False, 0.0)


@each(dtypes=(I32,))
def test_int32(cell):
    """int, anything with __index__: stored, or OverflowError outside [-2**31, 2**31-1]; the rest TypeError."""
    for value in (0, 1, -1, 2**31 - 1, -(2**31)):
        check(cell, value, value)
        check(cell, IndexLike(value), value)
    for value in (2**31, -(2**31) - 1, 2**32 + 5, 2**63, 2**64 + 5, 10**30, -(10**30)):
        check_refused(cell, value, OverflowError)
        check_refused(cell, IndexLike(value), OverflowError)
    for value in (True, False, 1.0, 1.5, NAN, INF, FloatLike(1.0), decimal.Decimal(1), fractions.Fraction(1)):
        check_refused(cell, value, TypeError)
    check_refused(cell, IndexLike(1.0), TypeError)


@each(dtypes=(BOOL,))
def test_bool(cell):
    """A Python bool, stored; the rest TypeError."""
    check(cell, True, True)
    check(cell, False, False)
    for value in (0, 1, 0.0, 1.0, IndexLike(1), FloatLike(1.0), NAN, "True"):
        check_refused(cell, value, TypeError)


@each()
def test_what_no_dtype_takes(cell):
    """None (a hole in new_like apart), str, complex, other: TypeError."""

    class FloatString(str):
        __slots__ = ()

        def __float__(self):
            return 1.0

    class FloatComplex(complex):
        __slots__ = ()

        def __float__(self):
            return 1.0

    for value in (
        "1",
        "1.0",
        "",
        b"1",
        1j,
        FloatString("1"),
        FloatComplex(1),
        object(),
        [1],
        (1,),
        {},
        cell.dtype,
        float,
    ):
        check_refused(cell, value, TypeError)
    check_refused(cell, None, TypeError, but=("new_like",))
    if not cell.kind.holes:
        check_refused(cell, None, TypeError)


@each()
def test_an_error_of_the_value_passes_through(cell):
    """User code that runs inside a call may raise: the call fails cleanly."""

    def fail():
        raise LookupError("mine")

    value = {F32: FloatLike(1.0, fail), I32: IndexLike(1, fail), BOOL: object()}[cell.dtype]
    if cell.dtype is not BOOL:
        check_refused(cell, value, LookupError)
    c = cell.make(3)
    for write in (lambda: c.__setitem__(0, value), lambda: c.set_value(0, value)):
        with pytest.raises((LookupError, TypeError)):
            write()
    assert (values(c), c.version) == (cell.samples(3), 0)


NUMPY_SCALARS = {
    "float16": 0.5,
    "float32": 0.1,
    "float64": 0.1,
    "longdouble": 0.1,
    "int8": -5,
    "uint8": 200,
    "int16": -300,
    "uint16": 300,
    "int32": -(2**31),
    "uint32": 2**32 - 1,
    "int64": 2**54 - 2**29 - 1,
    "uint64": 2**64 - 1,
}


@each_kind()
def test_numpy_numbers(cell):
    """NumPy's scalars follow __float__ and __index__; an integer is rounded once from the exact integer."""
    np = pytest.importorskip("numpy")
    others = {d: type(cell)(cell.kind, d) for d in cell.kind.dtypes}
    for name, value in NUMPY_SCALARS.items():
        scalar = getattr(np, name)(value)
        exact = int(scalar) if "int" in name else float(scalar)
        check(others[F32], scalar, binary32(exact))
        if isinstance(exact, float):
            check_refused(others[I32], scalar, TypeError)
        elif -(2**31) <= exact < 2**31:
            check(others[I32], scalar, exact)
        else:
            check_refused(others[I32], scalar, OverflowError)
        if BOOL in others:
            check_refused(others[BOOL], scalar, TypeError)


@each_kind()
def test_numpy_bools(cell):
    """numpy.bool_: 1.0 / 0.0 into Float32, a TypeError into Int32 and Bool."""
    np = pytest.importorskip("numpy")
    for dtype in cell.kind.dtypes:
        other = type(cell)(cell.kind, dtype)
        for flag in (True, False):
            if dtype is F32:
                check(other, np.bool_(flag), float(flag))
            else:
                check_refused(other, np.bool_(flag), TypeError)


@each_kind()
def test_numpy_complex_and_text(cell):
    """complex, NumPy's too, though they have __float__; str and datetime as well."""
    np = pytest.importorskip("numpy")
    for dtype in cell.kind.dtypes:
        other = type(cell)(cell.kind, dtype)
        for value in (np.complex64(1), np.complex128(1), np.str_("1"), np.bytes_(b"1")):
            check_refused(other, value, TypeError)


@each()
def test_every_path_agrees_with_the_rule(cell):
    """One rule for every carrier and every path in."""
    tried = [
        0,
        1,
        -1,
        2**31,
        2**31 - 1,
        -(2**31) - 1,
        10**400,
        0.0,
        -0.0,
        0.5,
        1e70,
        INF,
        True,
        False,
        "1",
        1j,
        b"",
        (),
    ]
    for value in tried:
        try:
            want = normalize(value, cell.dtype)
        except (TypeError, OverflowError) as error:
            check_refused(cell, value, type(error))
        else:
            check(cell, value, want)


SCATTERED = [
    (F32, F32, None),
    (I32, I32, None),
    (BOOL, BOOL, None),
    (I32, F32, None),
    (BOOL, F32, None),
    (F32, I32, TypeError),
    (BOOL, I32, TypeError),
    (F32, BOOL, TypeError),
    (I32, BOOL, TypeError),
]


@pytest.mark.parametrize("receiver", cells(lambda kind: kind.scatters))
def test_scatter_between_dtypes(receiver):
    """Scatter between dtypes follows the same table and is settled before any write."""
    for source_dtype, target, error in SCATTERED:
        if target is not receiver.dtype:
            continue
        given = {F32: [1.0, 0.5], I32: [16777217, -3], BOOL: [True, False]}[source_dtype]
        for maker in (lambda v, d: cs.CPU(0, dtype=d).new_like(v), lambda v, d: cs.Generic(v, dtype=d)):
            c = receiver.make([receiver.zero] * 3)
            call = (tensor(maker(given, source_dtype)), tensor(c), line(2), 1)
            if error is None:
                c.scatter(*call)
                assert repr(values(c)) == repr([receiver.zero, *(normalize(v, target) for v in given)])
            else:
                with pytest.raises(error):
                    c.scatter(*call)
                assert (values(c), c.version) == ([receiver.zero] * 3, 0)


def test_the_floating_point_mode_is_untouched():
    """Subnormals are kept: nothing in the process flushes them to zero, in a new thread neither."""

    seen = []
    worker = threading.Thread(target=lambda: seen.append(0.25 * 2.0**-1022 > 0))
    worker.start()
    worker.join()
    assert seen == [True] and 0.25 * 2.0**-1022 > 0
