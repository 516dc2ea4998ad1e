// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include <type_traits>
#include <utility>

#include "carrier/ref.hpp"
#include "python/errors.hpp"
#include "python/ref_caster.hpp"

/// Short ways for the calls that programs make most, past the general parser of arguments.
///
/// A callable keeps the function that calls it in itself (PEP 590). A shortcut stands in front of that
/// function: it answers the calls that it knows, exactly as the function would, and hands every other one on.
/// So signatures, documentation and the messages for wrong calls stay in one place.
namespace carrier::python {

/// Puts `quick` in front of how `callable`, a class or function of this module, is called. Returns what it
/// has to hand other calls on to. The stable ABI hides the place: there nothing changes, and null is
/// returned.
inline vectorcallfunc shorten([[maybe_unused]] nb::handle callable,
                              [[maybe_unused]] vectorcallfunc quick) noexcept {
#if defined(Py_LIMITED_API)
    return nullptr;
#else
    if (PyVectorcall_Function(callable.ptr()) == nullptr) return nullptr;
    auto* const object = reinterpret_cast<char*>(callable.ptr());
    auto* const place =
        reinterpret_cast<vectorcallfunc*>(object + Py_TYPE(callable.ptr())->tp_vectorcall_offset);
    return std::exchange(*place, quick);
#endif
}

/// The method that class `T` itself defines under `name`, unbound.
template <class T>
nb::object method_of(const char* name) {
    return nb::type_lookup(nb::type<T>(), nb::str(name));
}

/// `instance_of` for a class that has no subclasses: sooner done.
template <class T>
inline T* exactly(PyObject* object) noexcept {
    const bool is_ready = Py_TYPE(object) == bound_type<T>() && nb::inst_ready(object);
    return is_ready ? nb::inst_ptr<T>(object) : nullptr;
}

/// What a call of the class `type` gives whose arguments are understood: a new instance with a
/// `T(arguments...)` in it. Null with an error set.
template <class T, class... Arguments>
PyObject* constructed(PyObject* type, Arguments&&... arguments) noexcept {
    try {
        nb::object self = nb::inst_alloc(type);
        T* const made = new (nb::inst_ptr<void>(self)) T(std::forward<Arguments>(arguments)...);
        if constexpr (std::is_base_of_v<RefCounted, T>)
            adopt(made, self);
        else
            nb::inst_mark_ready(self);
        return self.release().ptr();
    } catch (...) {
        raise_current();
        return nullptr;
    }
}

}  // namespace carrier::python
