// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/arrays.hpp"

#include "carrier/errors.hpp"
#include "python/convert.hpp"
#include "python/memory.hpp"
#include "python/module.hpp"
#include "python/python_carrier.hpp"
#include "python/ref_caster.hpp"

namespace carrier::python {

namespace {

nb::object tuple_of(const std::vector<std::int64_t>& numbers, std::size_t times) {
    nb::object tuple = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(numbers.size())));
    if (!tuple.is_valid()) throw nb::python_error();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        PyObject* number = PyLong_FromLongLong(numbers[i] * static_cast<std::int64_t>(times));
        if (number == nullptr) throw nb::python_error();
        PyTuple_SetItem(tuple.ptr(), static_cast<Py_ssize_t>(i), number);
    }
    return tuple;
}

enum class Copy : std::uint8_t { if_needed, always, never };

Copy copy_of(nb::handle argument) {
    if (argument.is_none()) return Copy::if_needed;
    return exact_bool(argument, "copy") ? Copy::always : Copy::never;
}

template <class Source>
Source& source_of(nb::handle self);
template <>
Carrier& source_of<Carrier>(nb::handle self) {
    return require_instance<Carrier>(self, "self", "Carrier");
}
template <>
Tensor& source_of<Tensor>(nb::handle self) {
    return require_instance<Tensor>(self, "self", "Tensor");
}

template <class Source>
nb::object to_numpy(nb::handle self) {
    const Source& source = source_of<Source>(self);
    const nb::object type = array_type();
    const std::optional<HandOut> own = shared(source);
    return array_over(type, own ? *own : copied(source), false);
}

/// What `numpy.asarray` and `numpy.array` ask for.
template <class Source>
nb::object to_array(nb::handle self, nb::handle dtype, nb::handle copy) {
    const Source& source = source_of<Source>(self);
    const Copy wanted = copy_of(copy);
    const nb::object type = array_type();
    const std::optional<HandOut> own = shared(source);
    if (!own && wanted == Copy::never)
        throw ValueError("the values of this " + carrier_behind(source).kind() +
                         " carrier are not in host memory: an array of them is a copy, which copy=False "
                         "forbids");
    const nb::object array = own ? array_over(type, *own, false) : array_over(type, copied(source), true);
    if (!dtype.is_none()) {
        const nb::object asked = nb::module_::import_("numpy").attr("dtype")(dtype);
        if (!asked.equal(array.attr("dtype"))) {
            if (wanted == Copy::never)
                throw ValueError("an array of another dtype is a copy, which copy=False forbids");
            return array.attr("astype")(asked);
        }
    }
    return own && wanted == Copy::always ? nb::object(array.attr("copy")()) : array;
}

constexpr const char* kToArray =
    "def __array__(self, dtype: typing.Any = None, copy: bool | None = None) -> numpy.ndarray";

void define_on_carrier() {
    auto c = nb::borrow<nb::class_<Carrier, PyCarrier>>(nb::type<Carrier>());
    c.def("numpy", &to_numpy<Carrier>, nb::sig("def numpy(self) -> numpy.ndarray"),
          R"(The slots as a read-only NumPy array of one dimension.

Zero-copy on CPU, Generic and Metal, and on an Evictable over one of them; a copy on FileBacked and custom carriers. The
array keeps its memory alive, whatever becomes of the carrier. ``numpy.asarray(carrier)`` gives the same, converts where
it is told to, and ``copy=False`` is a ValueError where there is no memory to share. To write, use ``edit()``.

Raises RuntimeError (released, evicted), ImportError (no NumPy), TypeError (a dtype without bytes).

>>> from carrier_storage import CPU
>>> c = CPU(0).new_like([1, 2.5])
>>> a = c.numpy()
>>> a.dtype.name, a.flags.writeable
('float32', False)
>>> c[0] = 7
>>> a.tolist()
[7.0, 2.5]
)");
    c.def("__array__", &to_array<Carrier>, nb::arg("dtype").none() = nb::none(),
          nb::arg("copy").none() = nb::none(), nb::sig(kToArray));
}

void define_on_tensor() {
    auto c = nb::borrow<nb::class_<Tensor>>(nb::type<Tensor>());
    c.def("numpy", &to_numpy<Tensor>, nb::sig("def numpy(self) -> numpy.ndarray"),
          R"(The values as a read-only NumPy array, whose axis k is the k-th leaf mode of the layout.

So ``a.ravel("F")`` is the logical order. Zero-copy where ``carrier.numpy()`` is. Raises what that raises, and
NotImplementedError for a Tensor of several subtensors.

>>> from carrier_storage import CPU, Layout, Shape, Stride, Tensor
>>> c = CPU(0).new_like(range(6))
>>> t = Tensor(c, 0, Layout(Shape(2, 3), Stride(3, 1)))
>>> t.numpy().tolist()
[[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]
>>> [t[i] for i in range(t.size())] == t.numpy().ravel("F").tolist()
True
)");
    c.def("__array__", &to_array<Tensor>, nb::arg("dtype").none() = nb::none(),
          nb::arg("copy").none() = nb::none(), nb::sig(kToArray));
}

}  // namespace

nb::object array_type() {
    static PyObject* known = nullptr;  // for the life of the process, as NumPy itself
    if (known != nullptr) return nb::borrow(known);
    try {
        const nb::object type = nb::module_::import_("numpy").attr("ndarray");
        known = type.inc_ref().ptr();
        return type;
    } catch (nb::python_error& missing) {
        if (missing.matches(PyExc_ImportError))
            nb::raise_from(missing, PyExc_ImportError,
                           "arrays need NumPy, which cannot be imported: pip install numpy, or use "
                           "memoryview(carrier)");
        throw;
    }
}

nb::object array_over(nb::handle type, const HandOut& memory, bool writable) {
    const nb::object exporter =
        memory_of(memory.block, memory.encoding, memory.offset, memory.slots, writable);
    return type(tuple_of(memory.shape, 1), format_of(memory.encoding), exporter, 0,
                tuple_of(memory.strides, slot_bytes(memory.encoding)));
}

void bind_arrays(nb::module_&) {
    define_on_carrier();
    define_on_tensor();
}

}  // namespace carrier::python
