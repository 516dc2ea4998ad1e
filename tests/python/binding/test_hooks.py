# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Carriers written in Python: how hooks are called, and what their answers may be."""

import copy
import pickle
import typing
import warnings

import pytest
from carrier_storage import CPU, Carrier, DType, Evictable, Layout, Shape, Stride, Tensor

LINE = Layout(Shape(3), Stride(1))


class Listed(Carrier):
    """All hooks, and a record of their calls."""

    def __init__(self, values=(), dtype=DType.Float32):
        super().__init__()
        self.values = list(values)
        self.kept = dtype
        self.calls = []

    def _size(self):
        return len(self.values)

    def _dtype(self):
        self.calls.append("dtype")
        return self.kept

    def _get_value(self, index, /):
        return self.values[index]

    def _set_value(self, index, value, /):
        self.calls.append(("set", index, value))
        self.values[index] = value

    def _is_mutable(self):
        return True

    def _new_like(self, values, mutable, dtype, /):
        self.calls.append(("new", values, mutable, dtype))
        return Listed(values, dtype)

    def _allocate_like(self, size, mutable, dtype, empty, /):
        self.calls.append(("allocate", size, mutable, dtype, empty))
        return Listed([0] * size, dtype)

    def _release(self):
        self.calls.append("release")

    def _dispatch_op(self, name, /):
        return name.upper()


class Least(Carrier):
    def _size(self):
        return 2

    def _dtype(self):
        return DType.Float32

    def _get_value(self, index):
        return float(index)


def test_mixins_slots_generics_and_class_keywords():
    class Named:
        def __init_subclass__(cls, name=None, **kwargs):
            super().__init_subclass__(**kwargs)
            cls.name = name

    value = typing.TypeVar("value")

    class Wide(Least, Named, typing.Generic[value], name="wide"):
        __slots__ = ("extra",)

    c = Wide()
    c.extra = 1
    assert Wide.name == "wide"
    assert list(c) == [0.0, 1.0]
    assert repr(c).startswith("Wide(size=2, dtype=Float32, mutable=False")


def test_carrier_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        Carrier()


def test_forgotten_super_init_is_said_without_noise():
    class Forgetful(Least):
        def __init__(self):
            pass

    c = Forgetful()
    target = CPU(3)
    uses = [
        lambda: c[0], lambda: c.get_value(0), lambda: c.size(), lambda: len(c), lambda: list(c),
        lambda: c.dtype(), lambda: c.version, lambda: c.is_mutable(), lambda: c.is_owned(),
        lambda: c.is_released(), lambda: c.release(), lambda: c.claim(), lambda: c.increment_version(),
        lambda: c.new_like([]), lambda: c.allocate_like(1), lambda: c.supports_storage_dtype(DType.Bool),
        lambda: c.dispatch_op("x"), lambda: c.set_value(0, 1), lambda: c.scatter(1, 2, 3),
        lambda: Evictable(c, target), lambda: Tensor(c, 0, LINE),
    ]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for use in uses:
            with pytest.raises(TypeError, match=r"super\(\).__init__\(\)"):
                use()


def test_missing_hooks_are_named():
    class Nothing(Carrier):
        pass

    c = Nothing()
    for use, hook in [
        (lambda: c.size(), "_size"),
        (lambda: len(c), "_size"),
        (lambda: c.dtype(), "_dtype"),
        (lambda: c.new_like([]), "_dtype"),
    ]:
        with pytest.raises(NotImplementedError, match=hook):
            use()
    c = Least()
    for use, hook in [
        (lambda: c.new_like([1.0]), "_new_like"),
        (lambda: c.allocate_like(1), "_allocate_like"),
        (lambda: c.dispatch_op("gemm"), "gemm"),
    ]:
        with pytest.raises(NotImplementedError, match=hook):
            use()
    with pytest.raises(RuntimeError, match="not mutable"):
        c[0] = 1.0


def test_an_attribute_error_of_a_hook_is_its_own():
    class Broken(Least):
        def _get_value(self, index):
            return self.absent

    with pytest.raises(AttributeError, match="absent"):
        Broken()[0]


def test_values_are_normalized_both_ways():
    c = Listed([0.1, 1, True])
    assert [type(v) for v in c] == [float] * 3
    assert c[0] == CPU(0).new_like([0.1])[0]
    c[1] = 0.1
    assert c.calls[-1] == ("set", 1, CPU(0).new_like([0.1])[0])
    c.values[0] = "text"
    with pytest.raises(TypeError):
        c[0]
    i = Listed([1, 2], DType.Int32)
    for bad, error in ((1.0, TypeError), (True, TypeError), (2**31, OverflowError)):
        with pytest.raises(error):
            i[0] = bad
    i.values[0] = 2**40
    with pytest.raises(OverflowError):
        i[0]
    assert i.version == 0


def test_other_dtypes_pass_objects_through():
    marker = object()
    c = Listed([marker, None, "text"], DType.Any)
    assert c[0] is marker
    assert c[1] is None
    c[1] = marker
    assert c.values[1] is marker
    made = c.new_like([None, marker])
    assert made.values == [None, marker]


def test_hooks_are_called_positionally_and_normalized():
    c = Listed([1.0])
    c.new_like([1, None, 2.5], mutable=False)
    assert c.calls[-1] == ("new", [1.0, 0.0, 2.5], False, DType.Float32)
    assert type(c.calls[-1][1]) is list
    c.new_like(range(10_000))
    assert c.calls[-1][1] == [float(i) for i in range(10_000)]
    c.allocate_like(3, empty=True)
    assert c.calls[-1] == ("allocate", 3, True, DType.Float32, True)
    assert c.dispatch_op("gemm") == "GEMM"
    with pytest.raises(TypeError):
        c.dispatch_op(3)
    with pytest.raises(ValueError):
        c.new_like([1], dtype=DType.Int32)
    c.release()
    with pytest.raises(RuntimeError):
        c.dispatch_op("gemm")
    c.new_like([2.0])


def test_the_dtype_is_asked_once():
    c = Listed([1.0])
    c[0], c.dtype(), c[0], c.dtype()
    assert c.calls.count("dtype") == 1


def test_a_factory_must_return_a_carrier():
    class Bad(Listed):
        def _new_like(self, values, mutable, dtype):
            return values

        def _allocate_like(self, size, mutable, dtype, empty):
            return None

    for use in (lambda: Bad().new_like([1.0]), lambda: Bad().allocate_like(1)):
        with pytest.raises(TypeError, match="must return a Carrier"):
            use()


def test_hook_answers_are_checked():
    class Odd(Listed):
        def _size(self):
            return self.size_

        def _is_mutable(self):
            return self.mutable_

        def _supports_storage_dtype(self, dtype):
            return self.answer_

    c = Odd([1.0])
    c.size_, c.mutable_, c.answer_ = 1, False, 1
    assert c.is_mutable() is False
    c.mutable_ = 1
    with pytest.raises(TypeError, match="_is_mutable"):
        c.is_mutable()
    with pytest.raises(TypeError, match="_supports_storage_dtype"):
        c.supports_storage_dtype(DType.Float32)
    for size, error in (("3", TypeError), (-1, ValueError)):
        c.size_ = size
        with pytest.raises(error, match="_size"):
            c.size()
    c.kept = "Float32"
    with pytest.raises(TypeError, match="_dtype"):
        c.dtype()


def test_release_calls_the_hook_once():
    c = Listed([1.0])
    c.release()
    c.release()
    assert c.calls.count("release") == 1
    calls = c.calls
    del c

    class Stubborn(Listed):
        def _release(self):
            super()._release()
            if len(self.values) == 1:
                raise OSError("not yet")

    c = Stubborn([1.0])
    with pytest.raises(OSError, match="not yet"):
        c.release()
    assert not c.is_released()
    assert c[0] == 1.0
    c.values.append(2.0)
    c.release()
    assert c.is_released()
    assert calls.count("release") == 1


def test_scatter_hook_and_default():
    class Scattering(Listed):
        def _scatter(self, source, base, mapping, /):
            self.calls.append((type(source), base, type(mapping)))

    source = Tensor(CPU(0).new_like([1.0, 2.0, 3.0]), 0, LINE)
    c = Scattering([0.0] * 8)
    c.scatter(source, Tensor(c, 2, LINE), LINE, 1)
    assert c.calls[-1] == (Tensor, 3, Layout)
    assert c.version == 1
    c = Listed([0.0] * 8)
    c.scatter(source, Tensor(c, 2, LINE), LINE, 1)
    assert c.values == [0, 0, 0, 1.0, 2.0, 3.0, 0, 0]
    assert c.version == 1


def test_scatter_by_default_writes_the_old_values_back():
    class Failing(Listed):
        def _set_value(self, index, value):
            if value == 3.0:
                raise OSError("slot is stuck")
            super()._set_value(index, value)

    source = Tensor(CPU(0).new_like([1.0, 2.0, 3.0]), 0, LINE)
    c = Failing([7.0] * 3)
    with pytest.raises(OSError, match="stuck"):
        c.scatter(source, Tensor(c, 0, LINE), LINE)
    assert c.values == [7.0] * 3
    assert c.version == 0


def test_custom_tiers():
    low = Listed([0.0] * 3)
    h = Evictable(CPU(0).new_like([1.0, 2.0, 3.0]), low)
    h.evict()
    assert low.values == [1.0, 2.0, 3.0]
    h.promote()
    assert list(h) == [1.0, 2.0, 3.0]
    h = Evictable(Listed([1.0, 2.0]), CPU(1))
    h[0] = 5.0
    h.evict()
    h.promote()
    assert list(h) == [5.0, 2.0]
    assert h.version == 1
    made = h.new_like([4, None])
    assert type(made.primary) is Listed
    assert list(made) == [4.0, 0.0]


def test_copies_need_a_reduce_of_ones_own():
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="Least"):
            attempt(Least())

    class Own(Least):
        def __reduce__(self):
            return (Least, ())

    assert type(copy.copy(Own())) is Least
