// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/cpu.hpp"

#include <nanobind/nanobind.h>

#include "carrier/inner.hpp"
#include "python/collect.hpp"
#include "python/convert.hpp"
#include "python/factories.hpp"
#include "python/foreign.hpp"
#include "python/module.hpp"
#include "python/python_carrier.hpp"
#include "python/ref_caster.hpp"
#include "python/shortcut.hpp"

namespace carrier::python {

namespace {

/// An address as Python has it: an exact, positive int.
std::uintptr_t address_of(nb::handle pointer) {
    static_assert(sizeof(std::uintptr_t) <= sizeof(unsigned long long));
    int overflow = 0;
    const long long small = PyLong_AsLongLongAndOverflow(pointer.ptr(), &overflow);
    if (overflow == 0 && small > 0) return static_cast<std::uintptr_t>(small);
    if (overflow > 0) {
        const unsigned long long large = PyLong_AsUnsignedLongLong(pointer.ptr());
        if (PyErr_Occurred() == nullptr) return static_cast<std::uintptr_t>(large);
        PyErr_Clear();
        throw ValueError("pointer must be an address; got an integer that does not fit 64 bits");
    }
    throw ValueError("pointer must be a positive address; got " + nb::cast<std::string>(nb::str(pointer)));
}

void initialize(nb::handle self, nb::handle size, nb::handle pointer, nb::handle writable, nb::handle dtype,
                nb::handle empty) {
    require_fresh<CPU>(self, "CPU");
    const bool is_writable = exact_bool(writable, "mutable");
    const bool is_empty = exact_bool(empty, "empty");
    const DType& wanted = *dtype_of(dtype);
    if (!pointer.is_none() && !PyLong_CheckExact(pointer.ptr()))
        throw TypeError("pointer must be an int (an address) or None, not " + class_name(pointer));
    Py_ssize_t slots = 0;
    if (!small_int(size.ptr(), slots) || slots < 0) slots = static_cast<Py_ssize_t>(size_of(size, "size"));
    void* memory = require_fresh<CPU>(self, "CPU");  // size's __index__ may have called __init__ itself
    CPU* made = pointer.is_none() ? new (memory) CPU(slots, wanted, is_writable, is_empty)
                                  : new (memory) CPU(slots, address_of(pointer), wanted, is_writable);
    adopt(made, self);
}

// ---- CPU(size), CPU(size, dtype=...): owned memory, all arguments of the exact types
// --------------------------------------------------------------------------------

vectorcallfunc call_generally = nullptr;

/// Names of keywords, interned: so are those of a call in a program.
PyObject *kMutable = nullptr, *kDType = nullptr, *kEmpty = nullptr;

struct Options {
    const DType* dtype = &DType::Float32();
    bool writable = true;
    bool empty = false;

    bool set(bool& option, PyObject* value) noexcept {
        option = value == Py_True;
        return option || value == Py_False;
    }
    /// False for what the general way has to look at.
    bool take(PyObject* name, PyObject* value) noexcept {
        if (name == kDType) return (dtype = instance_of<DType>(value)) != nullptr;
        if (name == kMutable) return set(writable, value);
        return name == kEmpty && set(empty, value);
    }
};

PyObject* call(PyObject* type, PyObject* const* arguments, std::size_t given, PyObject* names) {
    Py_ssize_t size = 0;
    Options options;
    bool known = PyVectorcall_NARGS(given) == 1 && small_int(arguments[0], size) && size >= 0;
    if (names != nullptr)
        for (Py_ssize_t i = 0; known && i < PyTuple_Size(names); ++i)
            known = options.take(PyTuple_GetItem(names, i), arguments[1 + i]);
    if (!known) return call_generally(type, arguments, given, names);
    return constructed<CPU>(type, size, *options.dtype, options.writable, options.empty);
}

/// An object whose buffer this carrier alone holds is reached through it.
int traverse(PyObject* self, visitproc visit, void* arg) noexcept {
    Py_VISIT(Py_TYPE(self));
    PyObject* const owner = nb::inst_ready(self) ? owner_of(*nb::inst_ptr<CPU>(self)).ptr() : nullptr;
    Py_VISIT(owner);
    return 0;
}

int clear(PyObject* self) noexcept {
    if (!nb::inst_ready(self)) return 0;
    CPU& carrier = *nb::inst_ptr<CPU>(self);
    if (!owner_of(carrier).is_valid()) return 0;
    const Ref<Block> last =
        Inner::block(carrier);  // its end runs user code, which finds the carrier released
    Inner::release(carrier);
    return 0;
}

PyType_Slot slots[] = {
    {Py_tp_methods, closed_methods},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(clear)},
    {0, nullptr},
};

constexpr std::uint32_t kPooled = 1024;

}  // namespace

void bind_cpu(nb::module_& m) {
    nb::class_<CPU, Carrier> c(m, "CPU", nb::type_slots(slots), nb::is_final(), nb::pooled(kPooled),
                               nb::sig("@typing.final\nclass CPU(Carrier)"),
                               R"(Host memory, owned or wrapped. Stores Float32, Int32 and Bool.

``size`` counts slots. ``pointer`` is the address of memory that somebody else owns: it is neither checked, changed nor
freed, and has to outlive the carrier and its views. Without one the carrier owns fresh memory, of zeros unless ``empty``
lets it skip them: then write each slot before reading it.

Raises TypeError (arguments), ValueError (negative size, address, dtype), MemoryError.

>>> from carrier_storage import CPU, DType
>>> c = CPU(3, dtype=DType.Int32)
>>> c[1] = 7
>>> list(c)
[0, 7, 0]
>>> c
CPU(size=3, dtype=Int32, mutable=True, version=1, live)
)");
    c.def("__init__", &initialize, nb::arg("size").none(), nb::arg("pointer") = nb::none(), nb::kw_only(),
          nb::arg("mutable").none() = true, nb::arg("dtype").none() = object_of(DType::Float32()),
          nb::arg("empty").none() = false,
          nb::sig("def __init__(self, size: typing.SupportsIndex, pointer: int | None = None, *, "
                  "mutable: bool = True, dtype: DType = DType.Float32, empty: bool = False) -> None"))
        .def(
            "pointer", [](nb::handle self) { return require_instance<CPU>(self, "self", "CPU").pointer(); },
            nb::sig("def pointer(self) -> int"),
            R"(The address of slot 0, positive even when there are no slots. RuntimeError after release.

>>> from carrier_storage import CPU
>>> c = CPU(3)
>>> CPU(3, pointer=c.pointer()).pointer() == c.pointer()
True
)");
    kMutable = PyUnicode_InternFromString("mutable");
    kDType = PyUnicode_InternFromString("dtype");
    kEmpty = PyUnicode_InternFromString("empty");
    call_generally = shorten(c, call);
}

}  // namespace carrier::python
