# SPDX-License-Identifier: Apache-2.0
# Copyright carrier-storage contributors
"""Decisions K: Carrier is open; what a subclass's hooks are asked, and when."""

import gc
import typing
import weakref

import carrier_storage as cs
import pytest

from customs import HookedCarrier, IndexLike, LeastCarrier, WritableCarrier
from helpers import line, state, tensor, values
from kinds import BOOL, F32, I32


class Recording(HookedCarrier):
    """Keeps the calls of its hooks with their arguments."""

    def __init__(self, *args):
        self.calls = []
        super().__init__(*args)

    def named(self, name):
        return [args for n, args in self.calls if n == name]


def _recording(name):
    inner = getattr(HookedCarrier, name)

    def hook(self, *args):
        self.calls.append((name, args))
        return inner(self, *args)

    return hook


for _name in [n for n in vars(HookedCarrier) if n.startswith("_") and not n.startswith("__")]:
    setattr(Recording, _name, _recording(_name))


def test_three_hooks_make_a_carrier():
    """_size(), _dtype(), _get_value(index): the rest is optional; without _set_value it is immutable."""
    c = LeastCarrier([1.0, 2.0])
    assert (c.size(), c.dtype(), values(c), len(c), list(c)) == (2, F32, [1.0, 2.0], 2, [1.0, 2.0])
    assert not c.is_mutable() and c.version == 0
    for write in (lambda: c.__setitem__(0, 1.0), lambda: c.set_value(0, 1.0), c.increment_version):
        with pytest.raises(RuntimeError):
            write()
    assert tensor(c)[1] == 2.0
    c.release()
    assert c.is_released() and c.size() == 0


def test_set_value_makes_it_mutable():
    """Optional _set_value(index, value)."""
    c = WritableCarrier([1.0, 2.0])
    assert c.is_mutable()
    c[0] = 3
    c.set_value(1, True)
    assert c.slots == [3.0, 1.0] and type(c.slots[0]) is float and c.version == 2


def test_every_path_is_guarded():
    """Released, owned, mutable, bounds: no hook is called when a check fails; every write advances the version once."""
    c = Recording([1.0, 2.0, 3.0], F32)
    for call in (lambda: c[3], lambda: c[-1], lambda: c.get_value(2**70), lambda: c["0"]):
        with pytest.raises((IndexError, TypeError)):
            call()
    for call in (
        lambda: c.__setitem__(3, 1.0),
        lambda: c.set_value(-1, 1.0),
        lambda: c.__setitem__(0, "x"),
        lambda: c.set_value(0, None),
    ):
        with pytest.raises((IndexError, TypeError)):
            call()
    assert not c.named("_get_value") and not c.named("_set_value") and c.version == 0
    c[1] = 5
    assert c.named("_set_value") == [(1, 5.0)] and c.version == 1
    token = c.claim()
    with pytest.raises(RuntimeError):
        c[0] = 1.0
    token.relinquish()
    c.release()
    with pytest.raises(RuntimeError):
        c[0]
    assert c.named("_set_value") == [(1, 5.0)] and not c.named("_get_value")


def test_a_failing_set_value():
    """A failed mutation leaves the version; the hook's error passes through."""

    class Broken(WritableCarrier):
        def _set_value(self, index, value, /):
            raise LookupError("mine")

    c = Broken([1.0])
    for write in (
        lambda: c.__setitem__(0, 2.0),
        lambda: c.set_value(0, 2.0),
        lambda: tensor(c).__setitem__(0, 2.0),
    ):
        with pytest.raises(LookupError, match="mine"):
            write()
    assert (values(c), c.version) == ([1.0], 0)


def test_values_follow_section_c():
    """Values that pass through a custom carrier of dtype Float32, Int32 or Bool follow section C, both ways."""
    c = Recording([0.1, 2, True], F32)  # what a hook answers is normalized too
    assert [repr(v) for v in c] == ["0.10000000149011612", "2.0", "1.0"]
    c[0] = 0.1
    assert c.slots[0] == 0.10000000149011612
    c.slots[0] = "text"
    with pytest.raises(TypeError):
        c[0]
    i = Recording([1.5, 2**31, True], I32)
    for index, error in ((0, TypeError), (1, OverflowError), (2, TypeError)):
        with pytest.raises(error):
            i[index]
    b = Recording([1], BOOL)
    with pytest.raises(TypeError):
        b[0]
    b[0] = True
    assert b[0] is True


@pytest.mark.parametrize("dtype", [cs.DType.Any, cs.DType.E4M3, cs.DType.Float64])
def test_opaque_dtypes_pass_through(dtype):
    """Other dtypes are the subclass's own: objects go in and come out unchanged."""
    thing = object()
    c = WritableCarrier([thing, None], dtype)
    assert c.dtype() is dtype and c[0] is thing and c[1] is None
    other = object()
    c[1] = other
    assert c[1] is other and c.version == 1 and tensor(c)[1] is other
    ref = weakref.ref(c)
    del c
    gc.collect()
    assert ref() is None


def test_new_like_is_called_positionally():
    """_new_like gets a list of normalized values (a hole as the dtype's zero), a bool and a DType, never None."""
    c = Recording([1.0], F32)
    made = c.new_like(iter([None, 0.1, 2]), mutable=False)
    ((given, mutable, dtype),) = c.named("_new_like")
    assert type(given) is list and [repr(v) for v in given] == ["0.0", "0.10000000149011612", "2.0"]
    assert mutable is False and dtype is F32
    assert type(made) is Recording and not made.is_mutable()
    c.new_like([True], dtype=BOOL)
    assert c.named("_new_like")[1] == ([True], True, BOOL)
    c.new_like([])
    assert c.named("_new_like")[2] == ([], True, F32)


def test_new_like_checks_come_before_the_hook():
    """Iterability, dtype and every value, before the hook is called."""
    c = Recording([1.0], F32)
    for call in (
        lambda: c.new_like(3),
        lambda: c.new_like(["x"]),
        lambda: c.new_like([1.0], dtype=cs.DType.Float64),
        lambda: c.new_like([], dtype="Float32"),
        lambda: c.new_like([], mutable=1),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
    assert not c.named("_new_like")


def test_allocate_like_is_called_positionally():
    """_allocate_like(size, mutable, dtype, empty): an int, bools and a DType."""
    c = Recording([1.0], F32)
    made = c.allocate_like(IndexLike(3), mutable=False, empty=True)
    assert c.named("_allocate_like") == [(3, False, F32, True)]
    assert [type(v) for v in c.named("_allocate_like")[0]] == [int, bool, type(F32), bool]
    assert values(made) == [0.0] * 3
    c.allocate_like(0, dtype=I32)
    assert c.named("_allocate_like")[1] == (0, True, I32, False)


@pytest.mark.parametrize("answer", [None, 3, [1.0], object(), HookedCarrier])
def test_a_result_that_is_no_carrier(answer):
    """A result that is no Carrier is a TypeError."""

    class Odd(HookedCarrier):
        def _new_like(self, values, mutable, dtype, /):
            return answer

        def _allocate_like(self, size, mutable, dtype, empty, /):
            return answer

    c = Odd([1.0], F32)
    with pytest.raises(TypeError, match="_new_like"):
        c.new_like([1.0])
    with pytest.raises(TypeError, match="_allocate_like"):
        c.allocate_like(1)


def test_a_missing_hook_is_named():
    """A hook that is missing where it is needed is a NotImplementedError that names it."""

    class Bare(cs.Carrier):
        pass

    class Sized(cs.Carrier):
        def _size(self):
            return 2

        def _dtype(self):
            return F32

    for call, name in (
        (lambda: Bare().size(), "_size"),
        (lambda: Bare().dtype(), "_dtype"),
        (lambda: Sized()[0], "_get_value"),
        (lambda: Sized().new_like([]), "_new_like"),
        (lambda: Sized().allocate_like(1), "_allocate_like"),
    ):
        with pytest.raises(NotImplementedError, match=name):
            call()
    with pytest.raises(NotImplementedError, match="add"):
        Sized().dispatch_op("add")


def test_an_attribute_error_inside_a_hook_is_the_hooks_own():
    """... a hook that is there and fails is not missing."""

    class Broken(LeastCarrier):
        def _get_value(self, index, /):
            return self.nowhere

    with pytest.raises(AttributeError, match="nowhere"):
        Broken([1.0])[0]


def test_is_mutable_is_asked_each_time():
    """_is_mutable() is asked each time."""
    c = Recording([1.0], F32)
    assert c.is_mutable()
    c.writable = False
    assert not c.is_mutable()
    with pytest.raises(RuntimeError):
        c[0] = 2.0
    c.writable = True
    c[0] = 2.0
    assert c.version == 1
    c.release()
    assert c.is_mutable() is True
    c.writable = False
    assert c.is_mutable() is False


def test_is_mutable_cannot_open_what_has_no_set_value():
    """Without _set_value the carrier is intrinsically immutable."""

    class Claims(LeastCarrier):
        def _is_mutable(self):
            return True

    assert Claims([1.0]).is_mutable() is False


@pytest.mark.parametrize("answer", [1, None, "yes"])
def test_is_mutable_answers_a_bool(answer):
    """Anything but an exact bool is a TypeError."""
    c = Recording([1.0], F32)
    c.writable = answer
    with pytest.raises(TypeError):
        c.is_mutable()


def test_release_is_called_once():
    """_release() is called once, by release and by transitions, not by dropping."""
    c = Recording([1.0], F32)
    c.release()
    c.release()
    assert c.releases == 1
    dropped = Recording([1.0], F32)
    calls = dropped.calls
    del dropped
    gc.collect()
    assert "_release" not in [n for n, _ in calls]
    tier = Recording([1.0], F32)
    h = cs.Evictable(tier, cs.CPU(1))
    h.evict()
    assert tier.releases == 1 and tier.is_released()
    h.release()
    assert tier.releases == 1


def test_a_release_that_raises():
    """If it raises the carrier stays live, and may be released again."""

    class Sticky(HookedCarrier):
        stuck = True

        def _release(self):
            if self.stuck:
                raise LookupError("mine")

    c = Sticky([1.0], F32)
    with pytest.raises(LookupError, match="mine"):
        c.release()
    assert not c.is_released() and values(c) == [1.0] and c.is_mutable()
    c[0] = 2.0
    c.stuck = False
    c.release()
    assert c.is_released()


def test_release_without_the_hook():
    """_release() is optional."""
    c = WritableCarrier([1.0])
    c.release()
    assert c.is_released() and c.size() == 0
    with pytest.raises(RuntimeError):
        c[0]


def test_releasing_inside_hooks():
    """Decision D: user code inside a call may release: clean errors."""

    class Suicidal(HookedCarrier):
        def _get_value(self, index, /):
            self.release()
            return 1.0

        def _set_value(self, index, value, /):
            self.release()

    c = Suicidal([1.0], F32)
    try:
        c[0]
    except RuntimeError:
        pass
    assert c.is_released()
    c = Suicidal([1.0], F32)
    try:
        c[0] = 1.0
    except RuntimeError:
        pass
    assert c.is_released() and c.version in (0, 1)

    class Recursive(HookedCarrier):
        def _release(self):
            self.releases += 1
            self.release()

    c = Recursive([1.0], F32)
    try:
        c.release()
    except RuntimeError:
        assert not c.is_released()
    assert c.releases == 1


def test_dtype_is_asked_at_the_first_use():
    """_dtype() is asked at the first use and must not change: it is asked once."""

    class Counting(LeastCarrier):
        asked = 0

        def _dtype(self):
            self.asked += 1
            return F32

    c = Counting([1.0, 2.0])
    assert c.asked == 0
    c[0], c[1], c.dtype(), c.dtype(), c.supports_storage_dtype(F32), repr(c), list(c)
    assert c.asked == 1
    for other in (None, "Float32", 3):
        c = LeastCarrier([1.0], other)
        with pytest.raises(TypeError):
            c.dtype()


@pytest.mark.parametrize("answer", [-1, 1.5, None, "3"])
def test_a_size_that_is_none(answer):
    """A hook's answer of the wrong type or sign is an error, never a crash."""

    class Odd(LeastCarrier):
        def _size(self):
            return answer

    c = Odd([1.0])
    for call in (c.size, lambda: len(c), lambda: c[0]):
        with pytest.raises((TypeError, ValueError)):
            call()


def test_scatter_gets_the_base_index_summed_up():
    """_scatter(source, base, mapping) gets the base index summed up, after all checks."""
    c = Recording([0.0] * 8, F32)
    source, mapping = tensor(cs.CPU(0).new_like([5.0, 6.0])), line(2, 3)
    assert c.scatter(source, tensor(c, 1, offset=2), mapping, 1) is None
    ((given, base, layout),) = c.named("_scatter")
    assert (base, layout) == (3, mapping) and [given[0], given[1]] == [5.0, 6.0]
    assert c.slots == [0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 6.0, 0.0] and c.version == 1
    for args in ((source, tensor(c), line(2), 7), (source, tensor(cs.CPU(8)), line(2))):
        with pytest.raises((IndexError, ValueError)):
            c.scatter(*args)
    assert len(c.named("_scatter")) == 1 and c.version == 1


def test_a_scatter_hook_that_raises():
    """The hook's error passes through and the version stays."""

    class Broken(HookedCarrier):
        def _scatter(self, source, base, mapping, /):
            raise LookupError("mine")

    c = Broken([0.0], F32)
    with pytest.raises(LookupError, match="mine"):
        c.scatter(tensor(cs.CPU(1)), tensor(c), line(1))
    assert c.version == 0


class Fragile(WritableCarrier):
    """No _scatter; its writes fail from the n-th on, for as many as given."""

    fail_at = None
    written = 0

    def _set_value(self, index, value, /):
        self.written += 1
        if self.written == self.fail_at:
            raise LookupError("mine")
        self.slots[index] = value


def test_the_default_scatter():
    """The default stages all values, then writes them through _set_value; duplicates, aliasing, version."""
    c = Fragile([1.0, 2.0, 3.0, 4.0])
    c.scatter(tensor(c, 3), tensor(c), line(3), 1)
    assert (c.slots, c.version) == ([1.0, 1.0, 2.0, 3.0], 1)
    c.scatter(tensor(cs.CPU(0, dtype=I32).new_like([7, 8])), tensor(c), line(2, 0), 3)
    assert (c.slots, c.version) == ([1.0, 1.0, 2.0, 8.0], 2)


def test_the_default_scatter_writes_back():
    """When one raises midway the old values are written back, for every place where it may."""
    for k in range(1, 5):
        c = Fragile([1.0, 2.0, 3.0, 4.0])
        c.fail_at = k
        with pytest.raises(LookupError, match="mine"):
            c.scatter(tensor(cs.CPU(0).new_like([9.0, 8.0, 7.0, 6.0])), tensor(c), line(4))
        assert (c.slots, c.version) == ([1.0, 2.0, 3.0, 4.0], 0)


def test_the_default_scatter_reads_before_it_writes():
    """A source that raises, a value that does not fit: nothing is written."""

    class Odd(LeastCarrier):
        def _get_value(self, index, /):
            return "text" if index == 2 else 1.0

    c = Fragile([1.0, 2.0, 3.0])
    with pytest.raises(TypeError):
        c.scatter(tensor(Odd([0.0] * 3)), tensor(c), line(3))
    assert (c.slots, c.written, c.version) == ([1.0, 2.0, 3.0], 0, 0)


def test_support_hook():
    """_supports_storage_dtype(dtype) is asked with a DType."""
    c = Recording([1.0], F32)
    assert c.supports_storage_dtype(I32) and not c.supports_storage_dtype(cs.DType.Any)
    assert (I32,) in c.named("_supports_storage_dtype")
    before = len(c.calls)
    with pytest.raises(TypeError):
        c.supports_storage_dtype("Int32")
    assert len(c.calls) == before


def test_dispatch():
    """dispatch_op(name) asks the instance; a non-str name is a TypeError; RuntimeError after release."""
    c = Recording([1.0], F32)
    assert c.dispatch_op("add") == ("operation", "add")
    for other in (None, 3, b"add"):
        with pytest.raises(TypeError):
            c.dispatch_op(other)
    assert c.named("_dispatch_op") == [("add",)]
    c.release()
    with pytest.raises(RuntimeError):
        c.dispatch_op("add")


def test_forgetting_super_init():
    """A subclass that does not call super().__init__() gets a TypeError that says so."""

    class Forgetful(HookedCarrier):
        def __init__(self):
            self.slots = [1.0]

    c = Forgetful()
    for call in (
        lambda: c[0],
        c.size,
        c.dtype,
        lambda: len(c),
        c.release,
        c.is_mutable,
        lambda: c.version,
        lambda: cs.Evictable(c, cs.CPU(1)),
        lambda: c.new_like([]),
    ):
        with pytest.raises(TypeError, match="__init__"):
            call()
    assert repr(c)


def test_mixins():
    """Mixins included, before and after, with slots, Generic, class keywords."""

    class Before:
        def hello(self):
            return "before"

    class After:
        def bye(self):
            return "after"

    class Tagged:
        def __init_subclass__(cls, tag=None, **keywords):
            super().__init_subclass__(**keywords)
            cls.tag = tag

    class A(Before, LeastCarrier, After):
        pass

    class B(LeastCarrier, Tagged, tag=5):
        pass

    class C(Tagged, LeastCarrier, tag=6):
        pass

    T = typing.TypeVar("T")

    class D(LeastCarrier, typing.Generic[T]):
        pass

    class E(cs.Carrier):
        __slots__ = ("held",)

        def _size(self):
            return 1

        def _dtype(self):
            return F32

        def _get_value(self, index, /):
            return 4.0

    a = A([1.0])
    assert (a.hello(), a.bye(), a[0], B.tag, C.tag, D[int]([2.0])[0], E()[0]) == (
        "before",
        "after",
        1.0,
        5,
        6,
        2.0,
        4.0,
    )
    with pytest.raises(AttributeError):
        E().elsewhere = 1
    with pytest.raises(TypeError):
        type("F", (LeastCarrier,), {}, unknown=1)


def test_state_of_a_subclass_survives():
    """Attributes of an instance that only a hierarchy or a Tensor holds."""
    c = HookedCarrier([1.0], F32)
    c.label = "mine"
    t = tensor(c)
    del c
    gc.collect()
    assert t.carrier.label == "mine" and type(t.carrier) is HookedCarrier


def test_subclasses_of_subclasses():
    """super() reaches the hooks of a parent class."""

    class Doubled(HookedCarrier):
        def _get_value(self, index, /):
            return 2 * super()._get_value(index)

    c = Doubled([1.0, 2.0], F32)
    assert values(c) == [2.0, 4.0] and state(c)[0] == 2


def test_a_plain_carrier():
    """Carrier itself has no hooks: it can hold nothing."""
    try:
        c = cs.Carrier()
    except TypeError:
        return
    with pytest.raises(NotImplementedError):
        c.size()
