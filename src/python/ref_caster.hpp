// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <string>
#include <type_traits>

#include "carrier/errors.hpp"
#include "carrier/ref.hpp"
#include "python/collect.hpp"

/// How `Ref<T>` and bound objects cross between C++ and Python.
///
/// A counted object has one Python object for life: the word of its base holds either the C++ count or that
/// object (carrier/ref.hpp). So identity needs no look-up, and each `Ref` is one Python reference, which is
/// what makes garbage collection exact.
namespace carrier::python {

namespace nb = nanobind;

/// Ends an `__init__` that constructed `object` inside `self`: the instance is usable, and every C++
/// reference becomes a reference of `self`.
template <class T>
void adopt(T* object, nb::handle self) noexcept {
    nb::inst_mark_ready(self);
    object->adopt(self.ptr());
    if constexpr (std::is_base_of_v<Carrier, T>) overlook(*object, self.ptr());
}

/// What TypeErrors call the type of `object`.
inline std::string class_name(nb::handle object) {
    return nb::cast<std::string>(
        nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))).attr("__name__"));
}

/// The Python class of `T`, looked up once.
template <class T>
PyTypeObject* bound_type() noexcept {
    static PyTypeObject* const type = reinterpret_cast<PyTypeObject*>(nb::type<T>().ptr());
    return type;
}

template <class T>
bool is_instance(nb::handle object) noexcept {
    return PyObject_TypeCheck(object.ptr(), bound_type<T>()) != 0;
}

/// The C++ object behind an instance of `T`'s class (or a class derived from it) that is constructed; null
/// for every other object. Silent, where nanobind would warn about an instance that was never initialized.
template <class T>
T* instance_of(nb::handle object) noexcept {
    if (!is_instance<T>(object) || !nb::inst_ready(object)) return nullptr;
    return nb::inst_ptr<T>(object);
}

/// TypeError for an argument `name` that is not a ready instance of `T`, called `wanted` in the message.
[[noreturn]] inline void refuse_instance(nb::handle object, bool right_type, const char* name,
                                         const char* wanted) {
    if (right_type)
        throw TypeError("this " + class_name(object) +
                        " is not initialized; its __init__ has to call super().__init__()");
    throw TypeError(std::string(name) + " must be a " + wanted + ", not " + class_name(object));
}

/// The same, with a TypeError that says what was wanted.
template <class T>
T& require_instance(nb::handle object, const char* name, const char* wanted) {
    T* found = instance_of<T>(object);
    if (found == nullptr) refuse_instance(object, is_instance<T>(object), name, wanted);
    return *found;
}

/// The instance that an `__init__` constructs: of `T`'s class, and not yet constructed. Returns its raw
/// memory.
template <class T>
void* require_fresh(nb::handle self, const char* name) {
    if (!is_instance<T>(self))
        throw TypeError(std::string(name) + ".__init__ needs a " + name + ", not " + class_name(self));
    if (nb::inst_ready(self)) throw TypeError("this " + class_name(self) + " is initialized already");
    return nb::inst_ptr<void>(self);
}

}  // namespace carrier::python

NAMESPACE_BEGIN(NB_NAMESPACE)
NAMESPACE_BEGIN(detail)

template <class T>
struct type_caster<carrier::Ref<T>> {
    using Caster = make_caster<T>;
    static constexpr bool IsClass = true;
    NB_TYPE_CASTER(carrier::Ref<T>, Caster::Name)

    bool from_python(handle source, uint32_t, cleanup_list*) noexcept {
        T* found = carrier::python::instance_of<T>(source);
        if (found == nullptr) return false;
        value = Value(found);
        return true;
    }

    static handle from_cpp(const carrier::Ref<T>& ref, rv_policy, cleanup_list* cleanup) noexcept {
        if (!ref) return none().release();
        if (void* known = ref->host_object()) return handle(static_cast<PyObject*>(known)).inc_ref();
        const handle made = Caster::from_cpp(ref.get(), rv_policy::take_ownership, cleanup);
        if (made.is_valid()) {
            ref->adopt(made.ptr());
            if constexpr (std::is_base_of_v<carrier::Carrier, T>) carrier::python::overlook(*ref, made.ptr());
        }
        return made;
    }
};

NAMESPACE_END(detail)
NAMESPACE_END(NB_NAMESPACE)
