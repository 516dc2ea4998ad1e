# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""How values are stored, from the written rules alone: exact fractions, no floating-point arithmetic."""

import math
from fractions import Fraction

import carrier_storage as cs

_LIMIT = Fraction(2) ** 128


def binary32(number) -> float:
    """The binary32 value nearest to an exact number, ties to even; infinite beyond the range."""
    if isinstance(number, float) and not math.isfinite(number):
        return number
    exact = Fraction(number)
    if exact == 0:
        return math.copysign(0.0, number) if isinstance(number, float) else 0.0
    size = abs(exact)
    exponent = size.numerator.bit_length() - size.denominator.bit_length()
    if Fraction(2) ** exponent > size:
        exponent -= 1
    ulp = Fraction(2) ** (max(exponent, -126) - 23)
    rounded = round(size / ulp) * ulp  # round() of a Fraction takes ties to even
    value = math.inf if rounded >= _LIMIT else float(rounded)
    return math.copysign(value, -1 if exact < 0 or str(number).startswith("-") else 1)


def too_large_for_double(number: int) -> bool:
    try:
        float(number)
    except OverflowError:
        return True
    return False


def normalize(value, dtype):
    """What an exact Python float, int, bool or None becomes as a stored value, or the error it is."""
    kind = type(value)
    if dtype is cs.DType.Float32 and kind in (float, int, bool):
        if kind is int and too_large_for_double(value):
            raise OverflowError
        return binary32(value if kind is float else int(value))
    if dtype is cs.DType.Int32 and kind is int:
        if not -(2**31) <= value < 2**31:
            raise OverflowError
        return value
    if dtype is cs.DType.Bool and kind is bool:
        return value
    raise TypeError
