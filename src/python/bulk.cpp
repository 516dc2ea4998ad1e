// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <nanobind/nanobind.h>

#include <optional>

#include "carrier/host_block.hpp"
#include "carrier/inner.hpp"
#include "carrier/tensor.hpp"
#include "python/convert.hpp"
#include "python/factories.hpp"
#include "python/ingest.hpp"
#include "python/ingest_buffer.hpp"
#include "python/memory.hpp"
#include "python/module.hpp"
#include "python/ref_caster.hpp"
#include "python/staging.hpp"

/// `read`, `write`, `fill` and `tolist`, which carriers and Tensors have alike: a Tensor counts its values in
/// logical order. Checks come in the order of docs/contract.md: types of the arguments, state, bounds,
/// values.
namespace carrier::python {

namespace {

Carrier& storage_of(Carrier& carrier) { return carrier; }
Carrier& storage_of(Tensor& tensor) { return *tensor.single().carrier; }

template <class Target>
Target& target_of(nb::handle self) {
    return require_instance<Target>(self, "self", std::is_same_v<Target, Tensor> ? "Tensor" : "Carrier");
}

/// The arguments `start` and `stop`; no stop is the target's size when it is asked for.
struct Range {
    std::int64_t start;
    std::optional<std::int64_t> stop;

    Range(nb::handle first, nb::handle end) : start(index_of(first, "start")) {
        if (!end.is_none()) stop = index_of(end, "stop");
    }
    template <class Target>
    std::int64_t end(const Target& target) const {
        return stop ? *stop : target.size();
    }
};

/// Values [start, stop) in a block of their own. The encoding is known once the carrier has been asked for
/// its dtype.
template <class Target>
Ref<HostBlock> copy_out(Target& target, std::int64_t start, std::int64_t stop) {
    target.require_range(start, stop);
    const Encoding encoding = encoding_of(storage_of(target).dtype());
    const Ref<HostBlock> copy = HostBlock::allocate(bytes_of(stop - start, encoding), Fill::none);
    target.read(start, stop, {copy->data(), copy->size()});
    return copy;
}

template <class Target>
nb::object read(nb::handle self, nb::handle first, nb::handle end) {
    auto& target = target_of<Target>(self);
    const Range range(first, end);
    storage_of(target).require_live();
    const std::int64_t stop = range.end(target);
    const Ref<HostBlock> copy = copy_out(target, range.start, stop);
    return memoryview_of(Ref<Block>(copy), encoding_of(storage_of(target).dtype()), 0, stop - range.start,
                         true);
}

// ---- writing --------------------------------------------------------------------------------------------

/// How many values there are, where that can be told without running user code.
std::optional<std::int64_t> known_count(nb::handle values, const HeldBuffer* buffer) {
    if (buffer != nullptr) return static_cast<std::int64_t>(buffer->size());
    PyObject* v = values.ptr();
    if (PyList_CheckExact(v)) return PyList_Size(v);
    if (PyTuple_CheckExact(v)) return PyTuple_Size(v);
    if (Py_TYPE(v) != &PyRange_Type) return std::nullopt;
    const Py_ssize_t size = PyObject_Size(v);
    if (size < 0) PyErr_Clear();  // more than 63 bits
    return size < 0 ? INT64_MAX : size;
}

std::int64_t sum(std::int64_t start, std::int64_t count) noexcept {
    return count > INT64_MAX - start ? INT64_MAX : start + count;
}

template <class Target>
void write(nb::handle self, nb::handle first, nb::handle values) {
    auto& target = target_of<Target>(self);
    const std::int64_t start = index_of(first, "start");
    target.write(start, {});  // all checks but those of the values
    require_iterable(values);
    const Carrier& storage = storage_of(target);
    const Encoding encoding = encoding_of(storage.dtype());

    std::optional<HeldBuffer> buffer;
    if (PyObject_CheckBuffer(values.ptr()) != 0) buffer.emplace(values);
    const bool typed = buffer && buffer->elements() != Elements::other;
    const auto count = known_count(values, typed ? &*buffer : nullptr);
    if (count) target.require_range(start, sum(start, *count));
    // Taken as they are, but not by hooks, which may write to them.
    if (typed && buffer->holds_slots(encoding) && Inner::block(storage))
        return target.write(start, {buffer->data(), bytes_of(*count, encoding)});

    const auto left = [&] { return static_cast<std::size_t>(target.size() - start); };
    Staging staging(encoding, static_cast<std::size_t>(count.value_or(0)), left(), [&](std::size_t staged) {
        storage_of(target).require_mutable();
        target.require_range(start, sum(start, static_cast<std::int64_t>(staged)));
        return left();
    });
    if (typed)
        ingest_buffer(*buffer, staging);
    else
        ingest(values, staging);
    buffer.reset();
    target.write(start, staging.slots());
}

template <class Target>
void fill_range(nb::handle self, nb::handle value, nb::handle first, nb::handle end) {
    auto& target = target_of<Target>(self);
    const Range range(first, end);
    const Carrier& storage = storage_of(target);
    storage.require_mutable();
    const std::int64_t stop = range.end(target);
    target.require_range(range.start, stop);
    // Runs user code, which may release the carrier: fill looks at everything once more.
    target.fill(value_of(storage, value), range.start, stop);
}

// ---- lists ----------------------------------------------------------------------------------------------

void set_item_of(PyObject* list, Py_ssize_t at, PyObject* item) noexcept {
#if defined(Py_LIMITED_API)
    PyList_SetItem(list, at, item);
#else
    PyList_SET_ITEM(list, at, item);
#endif
}

template <Encoding E>
void box_all(const std::byte* slots, PyObject* list, Py_ssize_t count) {
    constexpr Py_ssize_t kChunk = Py_ssize_t{1} << 16;
    Pulse pulse;
    for (Py_ssize_t at = 0; at < count;) {
        const Py_ssize_t stop = std::min(count, at + kChunk);
        for (; at < stop; ++at) {
            PyObject* item = box(E, load_slot(E, slots + static_cast<std::size_t>(at) * slot_bytes(E)));
            if (item == nullptr) throw nb::python_error();
            set_item_of(list, at, item);
        }
        pulse();
    }
}

nb::object list_of(const HostBlock& slots, Encoding encoding) {
    const auto count = static_cast<Py_ssize_t>(slots.size() / slot_bytes(encoding));
    const nb::object list = nb::steal(PyList_New(count));
    if (!list.is_valid()) throw nb::python_error();
    // Other threads may run before it is full: nobody should find it.
    PyObject_GC_UnTrack(list.ptr());
    switch (encoding) {
        case Encoding::float32:
            box_all<Encoding::float32>(slots.data(), list.ptr(), count);
            break;
        case Encoding::int32:
            box_all<Encoding::int32>(slots.data(), list.ptr(), count);
            break;
        default:
            box_all<Encoding::bool8>(slots.data(), list.ptr(), count);
    }
    PyObject_GC_Track(list.ptr());
    return list;
}

/// Values without bytes, one by one.
template <class Target>
nb::object list_of_values(Target& target) {
    nb::list list;
    for (std::int64_t i = 0; i < target.size(); ++i) list.append(object_of(target.get_value(i)));
    return list;
}

template <class Target>
nb::object tolist(nb::handle self) {
    auto& target = target_of<Target>(self);
    storage_of(target).require_live();
    const Encoding encoding = encoding_of(storage_of(target).dtype());
    if (encoding == Encoding::opaque) return list_of_values(target);
    return list_of(*copy_out(target, 0, target.size()), encoding);
}

// ---- the methods ----------------------------------------------------------------------------------------

struct Texts {
    const char* read;
    const char* write;
    const char* fill;
    const char* tolist;
};

constexpr Texts kCarrier{
    R"(A copy of slots ``[start, stop)`` as a typed memoryview; ``stop`` None is the end. Needs no NumPy, and works on
every kind.

Raises TypeError (arguments, a dtype without bytes), RuntimeError (released, evicted), IndexError (a range that is not
inside ``[0, size()]``; it is never clamped), OSError.

>>> from carrier_storage import CPU
>>> c = CPU(0).new_like([1, 2, 3, 4])
>>> c.read(1, 3).tolist(), c.read().format
([2.0, 3.0], 'f')
)",
    R"(Write ``values`` to the slots from ``start`` on: all of them or none, and one step of ``version``.

The values are any iterable; typed one-dimensional buffers (NumPy arrays, ``array.array``, memoryviews) are taken in
bulk. They may overlap the carrier's own memory. No values are no mutation.

Raises TypeError (arguments), RuntimeError (released, evicted, not mutable), IndexError (slots outside the carrier),
TypeError and OverflowError (values that the dtype does not take), OSError (full disk).

>>> from carrier_storage import CPU
>>> c = CPU(4)
>>> c.write(1, [1.5, 2])
>>> c.tolist(), c.version
([0.0, 1.5, 2.0, 0.0], 1)
)",
    R"(Write one value to slots ``[start, stop)``; ``stop`` None is the end. One step of ``version``.

Raises TypeError (arguments), RuntimeError (released, evicted, not mutable), IndexError (a range that is not inside
``[0, size()]``), TypeError and OverflowError (value), OSError (full disk).

>>> from carrier_storage import CPU
>>> c = CPU(4)
>>> c.fill(7, 2)
>>> c.tolist()
[0.0, 0.0, 7.0, 7.0]
)",
    R"(All values as a list, the same as ``list(carrier)`` and faster.

Raises RuntimeError (released, evicted), OSError.

>>> from carrier_storage import CPU, DType
>>> CPU(2, dtype=DType.Bool).tolist()
[False, False]
)"};

constexpr Texts kTensor{
    R"(A copy of values ``[start, stop)`` in logical order, as a typed memoryview; ``stop`` None is the end.

Raises NotImplementedError (several subtensors), and what ``Carrier.read`` raises.

>>> from carrier_storage import CPU, Layout, Shape, Stride, Tensor
>>> rows = Tensor(CPU(0).new_like(range(6)), 0, Layout(Shape(2, 3), Stride(3, 1)))
>>> rows.read(1, 4).tolist()
[3.0, 1.0, 4.0]
)",
    R"(Write ``values`` in logical order from index ``start`` on, as ``Carrier.write`` does.

Raises NotImplementedError (several subtensors), and what ``Carrier.write`` raises.

>>> from carrier_storage import CPU, Layout, Shape, Stride, Tensor
>>> c = CPU(6)
>>> Tensor(c, 0, Layout(Shape(2, 3), Stride(3, 1))).write(0, range(1, 7))
>>> c.tolist(), c.version
([1.0, 3.0, 5.0, 2.0, 4.0, 6.0], 1)
)",
    R"(Write one value to logical indices ``[start, stop)``, as ``Carrier.fill`` does.

Raises NotImplementedError (several subtensors), and what ``Carrier.fill`` raises.

>>> from carrier_storage import CPU, Layout, Shape, Stride, Tensor
>>> c = CPU(5)
>>> Tensor(c, 0, Layout(Shape(3), Stride(2))).fill(1)
>>> c.tolist()
[1.0, 0.0, 1.0, 0.0, 1.0]
)",
    R"(All values as a list, in logical order.

Raises NotImplementedError (several subtensors), RuntimeError (released, evicted), OSError.

>>> from carrier_storage import CPU, Layout, Shape, Stride, Tensor
>>> Tensor(CPU(0).new_like(range(6)), 0, Layout(Shape(2, 3), Stride(3, 1))).tolist()
[0.0, 3.0, 1.0, 4.0, 2.0, 5.0]
)"};

template <class Target>
void define(const Texts& texts) {
    auto c = nb::borrow<nb::class_<Target>>(nb::type<Target>());
    c.def("read", &read<Target>, nb::arg("start").none() = 0, nb::arg("stop").none() = nb::none(),
          nb::sig("def read(self, start: typing.SupportsIndex = 0, stop: typing.SupportsIndex | None = None) "
                  "-> memoryview"),
          texts.read);
    c.def("write", &write<Target>, nb::arg("start").none(), nb::arg("values").none(),
          nb::sig("def write(self, start: typing.SupportsIndex, values: "
                  "collections.abc.Iterable[typing.SupportsFloat | typing.SupportsIndex]) -> None"),
          texts.write);
    c.def("fill", &fill_range<Target>, nb::arg("value").none(), nb::arg("start").none() = 0,
          nb::arg("stop").none() = nb::none(),
          nb::sig("def fill(self, value: typing.SupportsFloat | typing.SupportsIndex, start: "
                  "typing.SupportsIndex = 0, stop: typing.SupportsIndex | None = None) -> None"),
          texts.fill);
    c.def("tolist", &tolist<Target>, nb::sig("def tolist(self) -> list[typing.Any]"), texts.tolist);
}

}  // namespace

void bind_bulk(nb::module_&) {
    define<Carrier>(kCarrier);
    define<Tensor>(kTensor);
}

}  // namespace carrier::python
