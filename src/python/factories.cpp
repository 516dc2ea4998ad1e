// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/factories.hpp"

#include "python/arguments.hpp"
#include "python/convert.hpp"
#include "python/ingest.hpp"
#include "python/python_carrier.hpp"
#include "python/ref_caster.hpp"
#include "python/slots.hpp"

namespace carrier::python {

bool flag(nb::handle given, const char* name, bool missing) {
    return given.is_valid() ? exact_bool(given, name) : missing;
}

void require_iterable(nb::handle values) {
    const auto* type = Py_TYPE(values.ptr());
    if (PyType_GetSlot(const_cast<PyTypeObject*>(type), Py_tp_iter) != nullptr ||
        PySequence_Check(values.ptr()) != 0 || PyObject_CheckBuffer(values.ptr()) != 0)
        return;
    throw TypeError("values must be iterable, not " + class_name(values));
}

std::int64_t expected_count(nb::handle values) noexcept {
    PyObject* v = values.ptr();
    if (!PyList_Check(v) && !PyTuple_Check(v) && !PyRange_Check(v) && PyObject_CheckBuffer(v) == 0) return -1;
    const Py_ssize_t size = PyObject_Size(v);
    if (size < 0) PyErr_Clear();
    return size;
}

Ref<Carrier> fill(std::unique_ptr<Intake> intake, nb::handle values) {
    ingest(values, *intake);
    return intake->finish();
}

Ref<Carrier> new_like(nb::handle self, const nb::args& args, const nb::kwargs& kwargs) {
    static constexpr Parameter parameters[] = {{"values", true}, {"mutable"}, {"dtype"}};
    const Carrier& prototype = require_instance<Carrier>(self, "self", "Carrier");
    const auto [values, writable, dtype] = bind_arguments("new_like", parameters, 1, args, kwargs);
    require_iterable(values);
    NewOptions options;
    options.writable = flag(writable, "mutable", true);
    if (dtype.is_valid() && !dtype.is_none()) options.dtype = dtype_of(dtype);
    if (const auto* custom = dynamic_cast<const PyCarrier*>(&prototype))
        if (Ref<Carrier> made = custom->new_opaque(values, options)) return made;
    return fill(prototype.open_intake(options, expected_count(values)), values);
}

Ref<Carrier> allocate_like(nb::handle self, const nb::args& args, const nb::kwargs& kwargs) {
    static constexpr Parameter parameters[] = {{"size", true}, {"mutable"}, {"dtype"}, {"empty"}};
    const Carrier& prototype = require_instance<Carrier>(self, "self", "Carrier");
    const auto [size, writable, dtype, empty] = bind_arguments("allocate_like", parameters, 1, args, kwargs);
    AllocateOptions options;
    options.writable = flag(writable, "mutable", true);
    options.empty = flag(empty, "empty", false);
    if (dtype.is_valid() && !dtype.is_none()) options.dtype = dtype_of(dtype);
    return prototype.allocate_like(size_of(size, "size"), options);
}

}  // namespace carrier::python
