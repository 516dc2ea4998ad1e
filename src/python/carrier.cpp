// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/carrier.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "carrier/layout.hpp"
#include "carrier/ownership.hpp"
#include "carrier/tensor.hpp"
#include "python/buffers.hpp"
#include "python/collect.hpp"
#include "python/convert.hpp"
#include "python/factories.hpp"
#include "python/module.hpp"
#include "python/python_carrier.hpp"
#include "python/ref_caster.hpp"
#include "python/shortcut.hpp"
#include "python/slots.hpp"
#include "python/type_slot.hpp"

namespace carrier::python {

namespace {

Carrier& self_of(nb::handle self) { return require_instance<Carrier>(self, "self", "Carrier"); }

/// For functions that hand over to a slot: its result, or its error as an exception.
nb::object checked(PyObject* result) {
    if (result == nullptr) throw nb::python_error();
    return nb::steal(result);
}

/// An integer argument of which a core check will say whether it is in range; beyond 63 bits it is clamped.
std::int64_t clamped(nb::handle value, const char* name) {
    Py_ssize_t small = 0;
    if (small_int(value.ptr(), small)) return small;
    const nb::object exact = nb::steal(PyNumber_Index(value.ptr()));
    if (!exact.is_valid()) {
        nb::python_error raised;
        if (!raised.matches(PyExc_TypeError) || PyIndex_Check(value.ptr()) != 0) throw raised;
        throw TypeError(std::string(name) + " must be an integer, not " + class_name(value));
    }
    int overflow = 0;
    const std::int64_t result = PyLong_AsLongLongAndOverflow(exact.ptr(), &overflow);
    if (overflow != 0) return overflow < 0 ? INT64_MIN : INT64_MAX;
    return result;
}

void initialize(nb::handle self) {
    void* memory = require_fresh<Carrier>(self, "Carrier");
    if (!nb::inst_python_derived(self))
        throw TypeError(
            "Carrier is abstract: subclass it and write its hooks _size(), _dtype() and _get_value(index)");
    check_overrides(self.type());
    adopt(new (memory) PyCarrier(), self);
}

void scatter(nb::handle self, nb::handle to_scatter, nb::handle scatter_onto, nb::handle mapping,
             nb::handle offset) {
    Carrier& carrier = self_of(self);
    carrier.require_scatter();
    const auto& source = require_instance<Tensor>(to_scatter, "to_scatter", "Tensor");
    const auto& onto = require_instance<Tensor>(scatter_onto, "scatter_onto", "Tensor");
    const auto& layout = require_instance<Layout>(mapping, "mapping", "Layout");
    carrier.scatter(source, onto, layout, clamped(offset, "mapping_offset"));
}

vectorcallfunc scatter_generally = nullptr;

/// `carrier.scatter(source, onto, mapping)`, with or without an offset.
PyObject* scatter_by_position(PyObject* method, PyObject* const* arguments, std::size_t given,
                              PyObject* names) {
    const Py_ssize_t count = PyVectorcall_NARGS(given);
    if (names != nullptr || count < 4 || count > 5) return scatter_generally(method, arguments, given, names);
    try {
        auto* const carrier = instance_of<Carrier>(arguments[0]);
        const auto* const source = exactly<Tensor>(arguments[1]);
        const auto* const onto = exactly<Tensor>(arguments[2]);
        const auto* const layout = exactly<Layout>(arguments[3]);
        Py_ssize_t offset = 0;
        if (carrier == nullptr || source == nullptr || onto == nullptr || layout == nullptr ||
            (count == 5 && !small_int(arguments[4], offset)))
            return scatter_generally(method, arguments, given, names);
        carrier->scatter(*source, *onto, *layout, offset);
        return Py_NewRef(Py_None);
    } catch (...) {
        raise_current();
        return nullptr;
    }
}

nb::object dispatch_op(nb::handle self, nb::handle name) {
    const Carrier& carrier = self_of(self);
    if (!PyUnicode_Check(name.ptr())) throw TypeError("name must be a str, not " + class_name(name));
    carrier.require_live();
    if (const auto* custom = dynamic_cast<const PyCarrier*>(&carrier))
        if (nb::object answer = custom->dispatch(name); answer.is_valid()) return answer;
    carrier.dispatch_op(nb::cast<std::string>(name));
    return nb::none();
}

std::string represent(nb::handle self) {
    const Carrier* carrier = instance_of<Carrier>(self);
    return carrier != nullptr ? carrier->describe() : "<" + class_name(self) + " that is not initialized>";
}

PyType_Slot carrier_slots[] = {
    {Py_mp_subscript, slot(get_item)},   {Py_mp_ass_subscript, slot(set_item)},
    {Py_mp_length, slot(length)},        {Py_tp_iter, slot(iterate)},
    {Py_bf_getbuffer, slot(get_buffer)}, {Py_tp_traverse, slot(traverse_type)},
    {Py_tp_methods, open_methods},       {0, nullptr},
};

constexpr const char* kClass =
    R"(One sequence of slots of one dtype on one medium, and the guard in front of it.

Every path to the values passes the same checks, in the same order: is the carrier released, may it be written, is the
index in range, does the value fit the dtype. A call that fails changes nothing; a write that succeeds advances
``version`` by one.

Carrier is open to subclasses, which write hooks, not the public methods: ``_size()``, ``_dtype()``,
``_get_value(index)``, and as far as they are wanted ``_set_value(index, value)``, ``_is_mutable()``,
``_new_like(values, mutable, dtype)``, ``_allocate_like(size, mutable, dtype, empty)``,
``_scatter(source, base, mapping)``, ``_release()``, ``_supports_storage_dtype(dtype)`` and ``_dispatch_op(name)``.

>>> from carrier_storage import Carrier, DType
>>> class Squares(Carrier):
...     def _size(self): return 4
...     def _dtype(self): return DType.Int32
...     def _get_value(self, index): return index * index
>>> list(Squares())
[0, 1, 4, 9]
>>> Squares().is_mutable()
False
)";

void define_elements(nb::class_<Carrier, PyCarrier>& c) {
    c.def(
        "get_value",
        [](nb::handle self, nb::handle index) {
            self_of(self);
            return checked(get_item(self.ptr(), index.ptr()));
        },
        nb::arg("index"), nb::sig("def get_value(self, index: typing.SupportsIndex) -> float | int | bool"),
        R"(The value of one slot, the same as ``carrier[index]``.

Raises TypeError (index), RuntimeError (released, evicted), IndexError (negative indices are out of range).

>>> from carrier_storage import CPU
>>> CPU(2).get_value(1)
0.0
)");
    c.def(
        "set_value",
        [](nb::handle self, nb::handle index, nb::handle value) {
            self_of(self);
            if (set_item(self.ptr(), index.ptr(), value.ptr()) < 0) throw nb::python_error();
        },
        nb::arg("index"), nb::arg("value").none(),
        nb::sig("def set_value(self, index: typing.SupportsIndex, value: typing.SupportsFloat | "
                "typing.SupportsIndex) -> None"),
        R"(Write one slot, the same as ``carrier[index] = value``; ``version`` advances by one.

Raises TypeError (index), RuntimeError (released, evicted, not mutable), IndexError, then TypeError or OverflowError when
the dtype does not take the value.

>>> from carrier_storage import CPU
>>> c = CPU(2)
>>> c.set_value(0, 2.5)
>>> c[0], c.version
(2.5, 1)
)");
    c.def(
        "__reversed__",
        [](nb::handle self) {
            self_of(self);
            return checked(iterate_reversed(self.ptr()));
        },
        nb::sig("def __reversed__(self) -> collections.abc.Iterator[float | int | bool]"));
    c.def(
        "size", [](nb::handle self) { return self_of(self).size(); }, nb::sig("def size(self) -> int"),
        R"(Number of slots; 0 after release. ``len(carrier)`` is the same.

>>> from carrier_storage import CPU
>>> CPU(3).size()
3
)");
    c.def(
        "dtype", [](nb::handle self) { return object_of(self_of(self).dtype()); },
        nb::sig("def dtype(self) -> DType"),
        R"(The dtype of every slot; answers after release.

>>> from carrier_storage import CPU
>>> CPU(3).dtype().name
'Float32'
)");
    c.def("scatter", &scatter, nb::arg("to_scatter").none(), nb::arg("scatter_onto").none(),
          nb::arg("mapping").none(), nb::arg("mapping_offset").none() = 0,
          nb::sig("def scatter(self, to_scatter: Tensor, scatter_onto: Tensor, mapping: Layout, "
                  "mapping_offset: typing.SupportsIndex = 0) -> None"),
          R"(Write the values of the Tensor ``to_scatter`` into this carrier.

Value ``i`` goes to slot ``scatter_onto.offset + mapping_offset + mapping.index(i)``; ``scatter_onto`` has to be backed by
this carrier, and only its offset is used. The source reads as a snapshot, so it may live on this carrier. Where two
values go to one slot, the later index wins. All or nothing; ``version`` advances by one.

Raises NotImplementedError (FileBacked, and hierarchies over it, whatever the arguments; several subtensors), TypeError
(arguments), RuntimeError (released, evicted, not mutable), ValueError (foreign destination, shape of the mapping,
negative offset), IndexError (a slot outside the carrier), TypeError (dtypes).

>>> from carrier_storage import CPU, DType, Layout, Shape, Stride, Tensor
>>> target = CPU(6)
>>> source = CPU(3).new_like([1.0, 2.0, 3.0])
>>> line = Layout(Shape(3), Stride(1))
>>> target.scatter(Tensor(source, 0, line), Tensor(target, 0, line), Layout(Shape(3), Stride(2)))
>>> list(target)
[1.0, 0.0, 2.0, 0.0, 3.0, 0.0]
)");
}

void define_factories(nb::class_<Carrier, PyCarrier>& c) {
    c.def("new_like", &new_like,
          nb::sig("def new_like(self, values: collections.abc.Iterable[typing.SupportsFloat | "
                  "typing.SupportsIndex | None], *, "
                  "mutable: bool = True, dtype: DType | None = None) -> typing.Self"),
          R"(Fresh storage of the same kind that holds ``values``.

``mutable`` is the new carrier's, ``dtype`` None keeps this one's dtype. A None among the values is a slot of zero (a
TypeError on Generic). Lists, ranges and one-dimensional typed buffers (NumPy arrays, ``array.array``) are read in bulk.
Works after release.

Raises TypeError (arguments, values), ValueError (dtype that the kind cannot store), OverflowError, MemoryError,
OSError (full disk).

>>> from carrier_storage import CPU, DType
>>> c = CPU(0).new_like([1, 2.5, None])
>>> list(c)
[1.0, 2.5, 0.0]
>>> list(c.new_like(range(3), dtype=DType.Int32))
[0, 1, 2]
)");
    c.def("allocate_like", &allocate_like,
          nb::sig("def allocate_like(self, size: typing.SupportsIndex, *, mutable: bool = True, dtype: DType "
                  "| None = None, "
                  "empty: bool = False) -> typing.Self"),
          R"(Fresh storage of the same kind with ``size`` slots of zero.

``mutable`` is the new carrier's, ``dtype`` None keeps this one's dtype. With ``empty`` the medium may skip the zeros:
write each slot before reading it. Works after release.

Raises TypeError (arguments), ValueError (negative size, dtype that the kind cannot store), MemoryError, OSError (full
disk).

>>> from carrier_storage import CPU
>>> list(CPU(0).allocate_like(2))
[0.0, 0.0]
)");
    c.def(
        "supports_storage_dtype",
        [](nb::handle self, nb::handle dtype) {
            const Carrier& carrier = self_of(self);
            return carrier.supports_storage_dtype(*dtype_of(dtype));
        },
        nb::arg("dtype").none(), nb::sig("def supports_storage_dtype(self, dtype: DType) -> bool"),
        R"(Whether this kind can store ``dtype``; the same at any time, whatever the carrier holds. TypeError for no DType.

>>> from carrier_storage import CPU, DType
>>> CPU(0).supports_storage_dtype(DType.Int32), CPU(0).supports_storage_dtype(DType.Float64)
(True, False)
)");
    c.def("dispatch_op", &dispatch_op, nb::arg("name").none(),
          nb::sig("def dispatch_op(self, name: str) -> typing.Any"),
          R"(Ask the carrier for an operation by name. The shipped kinds have none of their own.

Raises TypeError (name), RuntimeError (released, evicted), NotImplementedError that names the operation.

>>> from carrier_storage import CPU
>>> CPU(1).dispatch_op("matmul")
Traceback (most recent call last):
    ...
NotImplementedError: the CPU carrier has no operation 'matmul'
)");
}

void define_lifecycle(nb::class_<Carrier, PyCarrier>& c) {
    c.def_prop_ro(
        "version", [](nb::handle self) { return self_of(self).version(); },
        nb::sig("def version(self, /) -> int"),
        R"(Successful mutations so far. Allocation, release and moves between tiers do not count.

>>> from carrier_storage import CPU
>>> c = CPU(2)
>>> c[0] = c[1] = 1.0
>>> c.version
2
)");
    c.def(
        "increment_version", [](nb::handle self) { self_of(self).increment_version(); },
        nb::sig("def increment_version(self) -> None"),
        R"(Count one mutation that was made by other means. RuntimeError unless ``is_mutable()``.

>>> from carrier_storage import CPU
>>> c = CPU(1)
>>> c.increment_version()
>>> c.version
1
)");
    c.def(
        "is_mutable", [](nb::handle self) { return self_of(self).is_mutable(); },
        nb::sig("def is_mutable(self) -> bool"),
        R"(Whether public calls of this thread may write now: the carrier's own mutability and ownership combined.

>>> from carrier_storage import CPU
>>> CPU(1).is_mutable(), CPU(1, mutable=False).is_mutable()
(True, False)
)");
    c.def(
        "is_owned", [](nb::handle self) { return self_of(self).is_owned(); },
        nb::sig("def is_owned(self) -> bool"),
        R"(Whether somebody owns the carrier exclusively: a token of ``claim``, or the hierarchy whose tier it is.

>>> from carrier_storage import CPU
>>> CPU(1).is_owned()
False
)");
    c.def(
        "is_released", [](nb::handle self) { return self_of(self).is_released(); },
        nb::sig("def is_released(self) -> bool"),
        R"(Whether ``release()`` has given the storage up.

>>> from carrier_storage import CPU
>>> CPU(1).is_released()
False
)");
    c.def(
        "release", [](nb::handle self) { self_of(self).release(); }, nb::sig("def release(self) -> None"),
        R"(Give the storage up for good. Again is fine, and does nothing.

Afterwards the values are out of reach (RuntimeError) and ``size()`` is 0; ``dtype()``, ``version``,
``supports_storage_dtype`` and the factories still answer. Memory that was handed out lives on until its last view dies.
RuntimeError while the carrier is owned.

>>> from carrier_storage import CPU
>>> c = CPU(3)
>>> c.release()
>>> c.size(), c.is_released()
(0, True)
)");
    c.def(
        "claim", [](nb::handle self) { return self_of(self).claim(); },
        nb::sig("def claim(self) -> Ownership"),
        R"(Take exclusive ownership. RuntimeError when the carrier is released or owned.

>>> from carrier_storage import CPU
>>> c = CPU(1)
>>> token = c.claim()
>>> c.is_mutable()
False
>>> with token.access() as inside:
...     inside[0] = 1.0
>>> token.relinquish()
>>> c.is_mutable(), c[0]
(True, 1.0)
)");
    c.def("__repr__", &represent, nb::sig("def __repr__(self) -> str"));
}

}  // namespace

void bind_carrier(nb::module_& m) {
    bind_iterator();
    nb::class_<Carrier, PyCarrier> c(m, "Carrier", nb::type_slots(carrier_slots), nb::is_weak_referenceable(),
                                     kClass);
    c.def("__init__", &initialize, nb::sig("def __init__(self) -> None"));
    define_elements(c);
    define_factories(c);
    define_lifecycle(c);
    scatter_generally = shorten(method_of<Carrier>("scatter"), scatter_by_position);
}

}  // namespace carrier::python
