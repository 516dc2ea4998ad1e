// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/tensor.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <vector>

#include "python/collect.hpp"
#include "python/convert.hpp"
#include "python/errors.hpp"
#include "python/module.hpp"
#include "python/ref_caster.hpp"
#include "python/shortcut.hpp"
#include "python/trees.hpp"

namespace carrier::python {

namespace {

Tensor& self_of(nb::handle self) { return require_instance<Tensor>(self, "self", "Tensor"); }
Subtensor& part_of(nb::handle self) { return require_instance<Subtensor>(self, "self", "Subtensor"); }

Ref<Carrier> carrier_of(nb::handle object) {
    return Ref<Carrier>(&require_instance<Carrier>(object, "carrier", "Carrier"));
}

const Layout& layout_of(nb::handle object) { return require_instance<Layout>(object, "layout", "Layout"); }

void initialize(nb::handle self, nb::handle carrier, nb::handle offset, nb::handle layout) {
    require_fresh<Tensor>(self, "Tensor");
    const Ref<Carrier> onto = carrier_of(carrier);
    const Layout& through = layout_of(layout);
    const std::int64_t at = index_of(offset, "offset");
    new (require_fresh<Tensor>(self, "Tensor")) Tensor(onto, at, through);
    nb::inst_mark_ready(self);
}

vectorcallfunc call_generally = nullptr;

/// `Tensor(carrier, offset, layout)`, with an exact int.
PyObject* call(PyObject* type, PyObject* const* arguments, std::size_t given, PyObject* names) {
    Py_ssize_t offset = 0;
    const bool three = PyVectorcall_NARGS(given) == 3 && names == nullptr && small_int(arguments[1], offset);
    Carrier* const onto = three ? instance_of<Carrier>(arguments[0]) : nullptr;
    const Layout* const through = three ? exactly<Layout>(arguments[2]) : nullptr;
    if (onto == nullptr || through == nullptr) return call_generally(type, arguments, given, names);
    return constructed<Tensor>(type, Ref<Carrier>(onto), offset, *through);
}

void initialize_part(nb::handle self, nb::handle carrier, nb::handle offset, nb::handle layout) {
    require_fresh<Subtensor>(self, "Subtensor");
    const Ref<Carrier> onto = carrier_of(carrier);
    const Layout& through = layout_of(layout);
    const std::int64_t at = index_of(offset, "offset");
    new (require_fresh<Subtensor>(self, "Subtensor")) Subtensor{onto, at, through};
    nb::inst_mark_ready(self);
}

template <class Function>
void each(nb::handle values, const Function& function) {
    PyObject* made = PyObject_GetIter(values.ptr());
    if (made == nullptr) throw nb::python_error();
    const nb::object iterator = nb::steal(made);
    while (PyObject* item = PyIter_Next(made)) function(nb::object(nb::steal(item)));
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
}

Tensor from_subtensors(nb::handle dtype, nb::handle subtensors, nb::handle adjacent) {
    const DType& compound = *dtype_of(dtype);
    std::vector<Subtensor> parts;
    each(subtensors, [&](const nb::object& item) {
        parts.push_back(require_instance<Subtensor>(item, "a subtensor", "Subtensor"));
    });
    std::vector<Layout> between;
    each(adjacent, [&](const nb::object& item) {
        between.push_back(require_instance<Layout>(item, "an adjacent layout", "Layout"));
    });
    return Tensor::from_subtensors(compound, std::move(parts), std::move(between));
}

/// The slot of a key of small integers where the carrier's memory may be touched at once: the layout has the
/// key, and no bit of `forbidden` is set. Negative otherwise.
std::int64_t fast_slot(PyObject* self, PyObject* key, std::uint8_t forbidden) {
    if (!nb::inst_ready(self)) return -1;
    const Tensor& tensor = *nb::inst_ptr<Tensor>(self);
    if (!tensor.is_single() || tensor.subtensors().empty()) return -1;
    const Subtensor& part = tensor.subtensors().front();
    const Hot& hot = part.carrier->hot();
    if (hot.has(forbidden)) return -1;
    const std::int64_t inside = quick_slot(part.layout, key);
    const std::int64_t slot = part.offset + inside;
    return inside >= 0 && slot < hot.size ? slot : -1;
}

Hot& hot_of(PyObject* self) noexcept {
    return nb::inst_ptr<Tensor>(self)->subtensors().front().carrier->hot();
}

std::byte* address(const Hot& hot, std::int64_t slot) noexcept {
    return hot.data + static_cast<std::size_t>(slot) * slot_bytes(hot.encoding);
}

/// The carrier's slot for `key`. The type of the key comes first, then the carrier's state, which `require`
/// looks at, then whether the layout has the key.
template <class Require>
std::int64_t slot_at(const Subtensor& part, nb::handle key, const Require& require) {
    std::int64_t slot = 0;
    try {
        slot = part.offset + slot_of(part.layout, key);
    } catch (const ValueError&) {
        require();
        throw;
    }
    require();
    return slot;
}

PyObject* get_item(PyObject* self, PyObject* key) noexcept {
    try {
        if (const std::int64_t slot = fast_slot(self, key, Hot::kNoFastRead); slot >= 0) {
            const Hot& hot = hot_of(self);
            return box(hot.encoding, load_slot(hot.encoding, address(hot, slot)));
        }
        const Subtensor part = self_of(self).single();
        const std::int64_t slot = slot_at(part, key, [&] { part.carrier->require_live(); });
        return object_of(part.carrier->get_value(slot)).release().ptr();
    } catch (...) {
        raise_current();
        return nullptr;
    }
}

int set_item(PyObject* self, PyObject* key, PyObject* value) noexcept {
    constexpr std::uint8_t kAnyState = 0xFF;
    try {
        if (value == nullptr) throw TypeError("values of a Tensor cannot be deleted; its size is fixed");
        Scalar scalar;
        if (const std::int64_t slot = fast_slot(self, key, kAnyState); slot >= 0) {
            Hot& hot = hot_of(self);
            if (fast_unbox(hot.encoding, value, scalar)) {
                store_slot(hot.encoding, address(hot, slot), scalar);
                ++hot.version;
                return 0;
            }
        }
        const Subtensor part = self_of(self).single();
        const std::int64_t slot = slot_at(part, key, [&] { part.carrier->require_mutable(); });
        // Runs user code, which may release the carrier: set_value looks at everything once more.
        part.carrier->set_value(slot, value_of(*part.carrier, value));
        return 0;
    } catch (...) {
        raise_current();
        return -1;
    }
}

std::string represent(nb::handle self) {
    const Tensor& t = self_of(self);
    if (t.subtensors().empty()) return "Tensor(gone)";
    if (!t.is_single())
        return "Tensor(dtype=" + t.dtype().name() + ", subtensors=" + std::to_string(t.subtensors().size()) +
               ")";
    return "Tensor(" + t.carrier()->describe() + ", " + std::to_string(t.offset()) + ", " +
           t.layout().repr() + ")";
}

int traverse(PyObject* self, visitproc visitor, void* arg) noexcept {
    if (const int stop = traverse_type(self, visitor, arg)) return stop;
    if (!nb::inst_ready(self)) return 0;
    for (const Subtensor& s : nb::inst_ptr<Tensor>(self)->subtensors())
        if (const int stop = visit(s.carrier, visitor, arg)) return stop;
    return 0;
}

int clear(PyObject* self) noexcept {
    if (nb::inst_ready(self)) nb::inst_ptr<Tensor>(self)->clear();
    return 0;
}

int traverse_part(PyObject* self, visitproc visitor, void* arg) noexcept {
    if (const int stop = traverse_type(self, visitor, arg)) return stop;
    return nb::inst_ready(self) ? visit(nb::inst_ptr<Subtensor>(self)->carrier, visitor, arg) : 0;
}

int clear_part(PyObject* self) noexcept {
    if (nb::inst_ready(self)) nb::inst_ptr<Subtensor>(self)->carrier = nullptr;
    return 0;
}

PyType_Slot tensor_slots[] = {{Py_mp_subscript, reinterpret_cast<void*>(get_item)},
                              {Py_mp_ass_subscript, reinterpret_cast<void*>(set_item)},
                              {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                              {Py_tp_clear, reinterpret_cast<void*>(clear)},
                              {0, nullptr}};
PyType_Slot part_slots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse_part)},
                            {Py_tp_clear, reinterpret_cast<void*>(clear_part)},
                            {0, nullptr}};

constexpr std::uint32_t kPooled = 256;

constexpr const char* kInit =
    "def __init__(self, carrier: Carrier, offset: typing.SupportsIndex, layout: Layout) -> None";

void bind_part(nb::module_& m) {
    nb::class_<Subtensor>(m, "Subtensor", nb::type_slots(part_slots), nb::is_final(),
                          nb::is_weak_referenceable(), nb::sig("@typing.final\nclass Subtensor()"),
                          R"(The placement of one plane: slots ``offset + layout.index(i)`` of a carrier.

It is checked when a Tensor is made of it (``Tensor.from_subtensors``). Raises TypeError.

>>> from carrier_storage import CPU, Layout, Shape, Stride, Subtensor
>>> Subtensor(CPU(4), 1, Layout(Shape(3), Stride(1))).offset
1
)")
        .def("__init__", &initialize_part, nb::arg("carrier").none(), nb::arg("offset").none(),
             nb::arg("layout").none(), nb::sig(kInit))
        .def_prop_ro(
            "carrier", [](nb::handle self) { return part_of(self).carrier; },
            nb::sig("def carrier(self, /) -> Carrier"), "The carrier, the exact object.")
        .def_prop_ro(
            "offset", [](nb::handle self) { return part_of(self).offset; },
            nb::sig("def offset(self, /) -> int"), "The slot of index 0, before the layout.")
        .def_prop_ro(
            "layout", [](nb::handle self) { return Layout(part_of(self).layout); },
            nb::sig("def layout(self, /) -> Layout"), "Which slots the logical indices mean.");
}

}  // namespace

void bind_tensor(nb::module_& m) {
    bind_part(m);
    nb::class_<Tensor> c(m, "Tensor", nb::type_slots(tensor_slots), nb::is_final(), nb::pooled(kPooled),
                         nb::is_weak_referenceable(), nb::sig("@typing.final\nclass Tensor()"),
                         R"(A view of a carrier through a layout. It never copies.

Logical index ``i`` is slot ``offset + layout.index(i)``. ``tensor[key]`` takes the keys of ``Layout.index``; several keys
are one coordinate. Version and mutability are the carrier's.

Raises TypeError (arguments), RuntimeError (released carrier), ValueError (negative offset, slots beyond the carrier).

>>> from carrier_storage import CPU, Layout, Shape, Stride, Tensor
>>> c = CPU(0).new_like(range(6))
>>> t = Tensor(c, 0, Layout(Shape(2, 3), Stride(3, 1)))
>>> t[1, 2], t[1]
(5.0, 3.0)
>>> t[0, 1] = 10
>>> c[1], t.version
(10.0, 1)
)");
    c.def("__init__", &initialize, nb::arg("carrier").none(), nb::arg("offset").none(),
          nb::arg("layout").none(), nb::sig(kInit));
    c.def_static(
        "from_subtensors", &from_subtensors, nb::arg("dtype").none(), nb::arg("subtensors").none(),
        nb::arg("adjacent").none() = nb::tuple(),
        nb::sig("def from_subtensors(dtype: CompoundDType, subtensors: collections.abc.Iterable[Subtensor], "
                "adjacent: collections.abc.Iterable[Layout] = ()) -> Tensor"),
        R"(The Tensor of a compound dtype: one Subtensor a plane, in the dtype's order.

All carriers are of one class and of their plane's dtype. ``adjacent`` has one Layout fewer than there are planes; each has
the shape of the level it leaves, and indices inside the next level's size. Raises TypeError, ValueError, RuntimeError
(released carrier).

>>> from carrier_storage import CPU, CompoundDType, DType, Layout, Shape, Stride, Subtensor, Tensor
>>> pair = CompoundDType("DocPair", planes=[DType.Float32, DType.Int32])
>>> line = Layout(Shape(2), Stride(1))
>>> parts = [Subtensor(CPU(2, dtype=d), 0, line) for d in pair.planes]
>>> len(Tensor.from_subtensors(pair, parts, [line]).subtensors)
2
)");
    c.def_prop_ro(
        "carrier", [](nb::handle self) { return self_of(self).carrier(); },
        nb::sig("def carrier(self, /) -> Carrier"), "The carrier, the exact object.");
    c.def_prop_ro(
        "offset", [](nb::handle self) { return self_of(self).offset(); },
        nb::sig("def offset(self, /) -> int"), "The slot of index 0, before the layout.");
    c.def_prop_ro(
        "layout", [](nb::handle self) { return Layout(self_of(self).layout()); },
        nb::sig("def layout(self, /) -> Layout"), "Which slots the logical indices mean.");
    c.def_prop_ro(
        "version", [](nb::handle self) { return self_of(self).version(); },
        nb::sig("def version(self, /) -> int"), "The carrier's version.");
    c.def_prop_ro(
        "subtensors",
        [](nb::handle self) {
            nb::list parts;
            for (const Subtensor& s : self_of(self).subtensors()) parts.append(Subtensor(s));
            return nb::tuple(parts);
        },
        nb::sig("def subtensors(self, /) -> tuple[Subtensor, ...]"),
        "The placement of every plane, in order.");
    c.def_prop_ro(
        "adjacent",
        [](nb::handle self) {
            nb::list between;
            for (const Layout& l : self_of(self).adjacent()) between.append(Layout(l));
            return nb::tuple(between);
        },
        nb::sig("def adjacent(self, /) -> tuple[Layout, ...]"), "The layouts between the planes.");
    c.def(
        "size", [](nb::handle self) { return self_of(self).size(); }, nb::sig("def size(self) -> int"),
        "Number of logical indices.");
    c.def(
        "dtype", [](nb::handle self) { return object_of(self_of(self).dtype()); },
        nb::sig("def dtype(self) -> DType"), "The carrier's dtype, or the compound one.");
    c.def(
        "is_mutable", [](nb::handle self) { return self_of(self).is_mutable(); },
        nb::sig("def is_mutable(self) -> bool"), "Whether the carrier may be written by this thread now.");
    c.def("__repr__", &represent, nb::sig("def __repr__(self) -> str"));
    call_generally = shorten(c, call);
}

}  // namespace carrier::python
