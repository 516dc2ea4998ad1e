# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Amounts of bytes and time, read and written."""

import re

_UNITS = {"": 0, "b": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_AMOUNT = re.compile(r"\s*(\d+(?:\.\d+)?|\.\d+)\s*([kmgt]?)(i?)(b?)\s*", re.IGNORECASE | re.ASCII)
_NAMES = ("B", "KiB", "MiB", "GiB", "TiB")


def parse_bytes(text: str) -> int:
    """`65536`, `64KiB`, `1.5G`: K, M, G, T count in 1024; KB, MB, GB, TB in 1000. ValueError says what is wrong."""
    match = _AMOUNT.fullmatch(text)
    if match is None:
        if re.fullmatch(r"\s*-.*", text):
            raise ValueError(f"{text!r} is negative; a positive number of bytes is needed, like 64MiB")
        raise ValueError(f"{text!r} is not a number of bytes, like 67108864, 64MiB or 1.5GiB")
    number, letter, binary, byte = match.groups()
    if binary and not letter:
        raise ValueError(f"{text!r} is not a number of bytes, like 67108864, 64MiB or 1.5GiB")
    power = _UNITS[letter.lower()]
    factor = 1000 ** (power // 10) if letter and byte and not binary else 1 << power
    whole, _, fraction = number.partition(".")
    amount = int(whole or "0") * factor + int(fraction or "0") * factor // 10 ** len(fraction)
    if amount <= 0:
        raise ValueError(f"{text!r} is less than a byte; a positive number of bytes is needed, like 64MiB")
    return amount


def show_bytes(amount: float) -> str:
    """`1.5 MiB`; a count of bytes below 1 KiB."""
    for name in _NAMES:
        if abs(amount) < 1024 or name == _NAMES[-1]:
            return f"{amount:.0f} B" if name == "B" else f"{amount:.1f} {name}"
        amount /= 1024
    raise AssertionError("unreachable")


def show_rate(amount: float, seconds: float) -> str:
    """`1.20 GB/s`, in 1000s as devices are sold; a dash when no time went by."""
    return f"{amount / seconds / 1e9:.2f} GB/s" if amount and seconds > 0 else "-"
