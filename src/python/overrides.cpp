// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include <array>

#include "carrier/errors.hpp"
#include "python/errors.hpp"
#include "python/python_carrier.hpp"
#include "python/ref_caster.hpp"

namespace carrier::python {

namespace {

struct Guarded {
    const char* name;
    const char* hook;  // null: no subclass may change what the method does
};

/// Every path into the storage stays the base's own, whatever a subclass defines.
constexpr std::array kGuarded{
    Guarded{"get_value", "_get_value(index)"},
    Guarded{"__getitem__", "_get_value(index)"},
    Guarded{"set_value", "_set_value(index, value)"},
    Guarded{"__setitem__", "_set_value(index, value)"},
    Guarded{"__delitem__", nullptr},
    Guarded{"size", "_size()"},
    Guarded{"dtype", "_dtype()"},
    Guarded{"is_mutable", "_is_mutable()"},
    Guarded{"new_like", "_new_like(values, mutable, dtype)"},
    Guarded{"allocate_like", "_allocate_like(size, mutable, dtype, empty)"},
    Guarded{"scatter", "_scatter(source, base, mapping)"},
    Guarded{"read", "_get_value(index)"},
    Guarded{"tolist", "_get_value(index)"},
    Guarded{"write", "_set_value(index, value)"},
    Guarded{"fill", "_set_value(index, value)"},
    Guarded{"release", "_release()"},
    Guarded{"supports_storage_dtype", "_supports_storage_dtype(dtype)"},
    Guarded{"dispatch_op", "_dispatch_op(name)"},
    Guarded{"version", nullptr},
    Guarded{"is_released", nullptr},
    Guarded{"is_owned", nullptr},
    Guarded{"claim", nullptr},
    Guarded{"increment_version", nullptr},
    Guarded{"__len__", nullptr},
    Guarded{"__iter__", nullptr},
    Guarded{"edit", nullptr},
    Guarded{"numpy", nullptr},
    Guarded{"__array__", nullptr},
    Guarded{"__buffer__", nullptr},
    Guarded{"__dlpack__", nullptr},
    Guarded{"__dlpack_device__", nullptr},
};

/// What Carrier itself has under each guarded name, in the order of the table; Carrier lives as long as the
/// module.
struct Originals {
    std::array<PyObject*, kGuarded.size()> name;
    std::array<PyObject*, kGuarded.size()> method;
};

const Originals& originals() {
    static const Originals table = [] {
        Originals t{};
        for (std::size_t i = 0; i < kGuarded.size(); ++i) {
            t.name[i] = PyUnicode_InternFromString(kGuarded[i].name);
            t.method[i] = nb::type_lookup(nb::type<Carrier>(), nb::handle(t.name[i])).release().ptr();
        }
        return t;
    }();
    return table;
}

/// The class of the MRO that defines `name` in front of Carrier.
nb::object culprit(nb::handle type, nb::handle name) {
    for (nb::handle base : nb::borrow<nb::tuple>(type.attr("__mro__")))
        if (PySequence_Contains(nb::object(base.attr("__dict__")).ptr(), name.ptr()) == 1)
            return nb::borrow(base);
    return nb::borrow(type);
}

}  // namespace

void check_overrides(nb::handle type) {
    const Originals& table = originals();
    for (std::size_t i = 0; i < kGuarded.size(); ++i) {
        const nb::object found = nb::type_lookup(type, nb::handle(table.name[i]));
        if (found.ptr() == table.method[i]) continue;
        const nb::object owner = culprit(type, table.name[i]);
        const std::string what = nb::cast<std::string>(owner.attr("__qualname__")) + " overrides Carrier." +
                                 kGuarded[i].name + ", which ";
        if (kGuarded[i].hook == nullptr) throw TypeError(what + "is not open to overriding");
        throw TypeError(what + "guards the storage; write the hook " + kGuarded[i].hook + " instead");
    }
}

PyObject* open_init_subclass(PyObject* type, PyObject* args, PyObject* kwargs) noexcept {
    try {
        check_overrides(type);
        // Class keywords are for the next __init_subclass__ in line.
        const nb::object next =
            nb::steal(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PySuper_Type), "OO",
                                            reinterpret_cast<PyObject*>(bound_type<Carrier>()), type));
        if (!next.is_valid()) return nullptr;
        const nb::object method = nb::steal(PyObject_GetAttrString(next.ptr(), "__init_subclass__"));
        return method.is_valid() ? PyObject_Call(method.ptr(), args, kwargs) : nullptr;
    } catch (...) {
        raise_current();
        return nullptr;
    }
}

PyObject* closed_init_subclass(PyObject* type, PyObject*, PyObject*) noexcept {
    try {
        throw TypeError(
            nb::cast<std::string>(nb::handle(type).attr("__base__").attr("__name__")) +
            " is a closed carrier kind and cannot be subclassed; subclass Carrier and write its hooks "
            "instead");
    } catch (...) {
        raise_current();
        return nullptr;
    }
}

namespace {
constexpr int kClassMethod = METH_VARARGS | METH_KEYWORDS | METH_CLASS;

PyCFunction as_method(PyCFunctionWithKeywords function) noexcept {
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}
}  // namespace

PyMethodDef open_methods[] = {
    {"__init_subclass__", as_method(open_init_subclass), kClassMethod, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

PyMethodDef closed_methods[] = {
    {"__init_subclass__", as_method(closed_init_subclass), kClassMethod, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace carrier::python
