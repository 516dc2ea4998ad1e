# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Carriers written in Python, for the tests."""

import carrier_storage as cs

ZEROS = {cs.DType.Float32: 0.0, cs.DType.Int32: 0, cs.DType.Bool: False}


class HookedCarrier(cs.Carrier):
    """All hooks, over a list."""

    def __init__(self, values, dtype, mutable=True):
        super().__init__()
        self.slots = list(values)
        self.held = dtype
        self.writable = mutable
        self.releases = 0

    def _size(self):
        return len(self.slots)

    def _dtype(self):
        return self.held

    def _get_value(self, index, /):
        return self.slots[index]

    def _set_value(self, index, value, /):
        self.slots[index] = value

    def _is_mutable(self):
        return self.writable

    def _new_like(self, values, mutable, dtype, /):
        return type(self)(values, dtype, mutable)

    def _allocate_like(self, size, mutable, dtype, empty, /):
        return type(self)([ZEROS[dtype]] * size, dtype, mutable)

    def _scatter(self, source, base, mapping, /):
        staged = [source[i] for i in range(source.size())]
        for i, value in enumerate(staged):
            self.slots[base + mapping.index(i)] = value

    def _release(self):
        self.releases += 1
        self.slots.clear()

    def _supports_storage_dtype(self, dtype, /):
        return dtype in ZEROS

    def _dispatch_op(self, name, /):
        return ("operation", name)


class LeastCarrier(cs.Carrier):
    """The three hooks that a carrier cannot do without."""

    def __init__(self, values, dtype=cs.DType.Float32):
        super().__init__()
        self.slots = list(values)
        self.held = dtype

    def _size(self):
        return len(self.slots)

    def _dtype(self):
        return self.held

    def _get_value(self, index, /):
        return self.slots[index]


class WritableCarrier(LeastCarrier):
    """And the one that makes it mutable."""

    def _set_value(self, index, value, /):
        self.slots[index] = value


class Faulty(HookedCarrier):
    """Raises at the n-th hook call after `arm(n)`, over all its instances, and remembers what it made."""

    calls = 0
    fail_at = None
    made: list = []  # noqa: RUF012 - shared on purpose

    def __init__(self, *args):
        super().__init__(*args)
        Faulty.made.append(self)

    @classmethod
    def arm(cls, call):
        cls.calls, cls.fail_at, cls.made = 0, call, []

    @classmethod
    def disarm(cls):
        cls.fail_at = None


class HookFailure(Exception):  # noqa: N818 - it is not ours to name it an error
    pass


def _failing(name):
    inner = getattr(HookedCarrier, name)

    def hook(self, *args):
        Faulty.calls += 1
        if Faulty.calls == Faulty.fail_at:
            raise HookFailure(name)
        return inner(self, *args)

    return hook


for _name in (
    "_size",
    "_get_value",
    "_set_value",
    "_is_mutable",
    "_allocate_like",
    "_new_like",
    "_scatter",
    "_release",
    "_supports_storage_dtype",
):
    setattr(Faulty, _name, _failing(_name))


class IndexLike:
    """An integer by the integer-index protocol, which may do something first."""

    def __init__(self, value, act=lambda: None):
        self.value, self.act = value, act

    def __index__(self):
        self.act()
        return self.value


class FloatLike:
    """A number by `__float__`, which may do something first."""

    def __init__(self, value, act=lambda: None):
        self.value, self.act = value, act

    def __float__(self):
        self.act()
        return self.value


def refused_at_each_hook(change, after, *, inside) -> int:
    """Makes a change to `[1, 2, 3]` whose first hook call raises, then its second, and so on until none does.

    Each failure leaves values and version; the last time the values are `after`. With `inside` the carrier is the
    primary of a hierarchy. Returns the number of attempts.
    """
    call = 0
    while True:
        call += 1
        custom = Faulty([1, 2, 3], cs.DType.Int32)
        c = cs.Evictable(custom, cs.CPU(1, dtype=cs.DType.Int32)) if inside else custom
        Faulty.arm(call)
        try:
            change(c)
        except HookFailure:
            Faulty.disarm()
            assert (c.tolist(), c.version) == ([1, 2, 3], 0), call
        else:
            Faulty.disarm()
            assert (c.tolist(), c.version) == (after, 1)
            return call
