// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/dtype.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "carrier/errors.hpp"
#include "python/arguments.hpp"
#include "python/convert.hpp"
#include "python/errors.hpp"
#include "python/module.hpp"
#include "python/ref_caster.hpp"

namespace carrier::python {

namespace {

// One Python class a form: the form decides which one a descriptor appears as. None of them has members.
struct Category : DType {};
struct Simple : DType {};
struct Compound : DType {};

/// The Python object of a descriptor: made once, then kept for the life of the process, as the descriptor is.
template <class Form>
nb::object first_object(const DType& dtype) {
    nb::object made = nb::cast(static_cast<const Form*>(&dtype), nb::rv_policy::reference);
    dtype.host_object = made.inc_ref().ptr();
    return made;
}

const DType& self_of(nb::handle self) { return require_instance<DType>(self, "self", "DType"); }

const DType* category_of(nb::handle object, const char* name) {
    if (object.is_none()) return nullptr;
    if (!is_instance<DType>(object))
        throw TypeError(std::string(name) + " must be a DTypeCategory, not " + class_name(object));
    return dtype_of(object);
}

std::string text_of(nb::handle object, const char* name) {
    if (!PyUnicode_Check(object.ptr()))
        throw TypeError(std::string(name) + " must be a str, not " + class_name(object));
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(object.ptr(), &size);
    if (text == nullptr) throw nb::python_error();
    return {text, static_cast<std::size_t>(size)};
}

int bits_of(nb::handle object) {
    if (PyBool_Check(object.ptr())) throw TypeError("bits must be an int, not bool");
    const std::int64_t bits = index_of(object, "bits");
    if (bits < 1 || bits > 1 << 20)
        throw ValueError("bits must be in [1, 1048576]; got " + std::to_string(bits));
    return static_cast<int>(bits);
}

std::vector<const DType*> planes_of(nb::handle object) {
    std::vector<const DType*> planes;
    PyObject* made = PyObject_GetIter(object.ptr());
    if (made == nullptr) throw nb::python_error();
    const nb::object iterator = nb::steal(made);
    while (PyObject* item = PyIter_Next(iterator.ptr())) planes.push_back(dtype_of(nb::steal(item)));
    if (PyErr_Occurred() != nullptr) throw nb::python_error();
    return planes;
}

nb::object new_category(nb::handle, const nb::args& args, const nb::kwargs& kwargs) {
    static constexpr Parameter parameters[] = {{"name", true}, {"supertype"}};
    const auto [name, supertype] = bind_arguments("DTypeCategory", parameters, 1, args, kwargs);
    const DType* above = supertype.is_valid() ? category_of(supertype, "supertype") : nullptr;
    return object_of(DType::category(text_of(name, "name"), above));
}

nb::object new_simple(nb::handle, const nb::args& args, const nb::kwargs& kwargs) {
    static constexpr Parameter parameters[] = {{"name", true}, {"bits", true}, {"supertype", true}};
    const auto [name, bits, supertype] = bind_arguments("SimpleDType", parameters, 1, args, kwargs);
    const DType* above = dtype_of(supertype);
    return object_of(DType::simple(text_of(name, "name"), bits_of(bits), *above));
}

nb::object new_compound(nb::handle, const nb::args& args, const nb::kwargs& kwargs) {
    static constexpr Parameter parameters[] = {{"name", true}, {"planes", true}, {"supertype"}};
    const auto [name, planes, supertype] = bind_arguments("CompoundDType", parameters, 1, args, kwargs);
    const DType* above = supertype.is_valid() ? dtype_of(supertype) : &DType::Any();
    const std::string text = text_of(name, "name");
    return object_of(DType::compound(text, planes_of(planes), *above));
}

const char* class_of(const DType& dtype) noexcept {
    return dtype.is_category() ? "DTypeCategory" : dtype.is_simple() ? "SimpleDType" : "CompoundDType";
}

nb::str text_object(const std::string& text) { return nb::str(text.data(), text.size()); }

std::string quoted(const std::string& text) { return nb::cast<std::string>(nb::repr(text_object(text))); }

bool is_built_in(const DType& dtype) {
    const auto built_in = DType::built_in();
    return std::find(built_in.begin(), built_in.end(), &dtype) != built_in.end();
}

std::string represent(const DType& dtype) {
    if (is_built_in(dtype)) return "DType." + dtype.name();
    std::string text = std::string(class_of(dtype)) + "(" + quoted(dtype.name());
    if (dtype.is_simple()) text += ", bits=" + std::to_string(*dtype.bits());
    if (dtype.is_compound()) {
        text += ", planes=(";
        for (const DType* plane : dtype.planes()) text += represent(*plane) + ", ";
        text.back() = ')';
        text.erase(text.size() - 2, 1);
    }
    const DType* above = dtype.supertype();
    return text + ", supertype=" + (above != nullptr ? represent(*above) : "None") + ")";
}

/// What has to agree when a descriptor comes back from a pickle.
nb::tuple definition_of(const DType& dtype) {
    nb::list planes;
    for (const DType* plane : dtype.planes()) planes.append(text_object(plane->name()));
    const DType* above = dtype.supertype();
    return nb::make_tuple(class_of(dtype), dtype.bits().value_or(0), nb::tuple(planes),
                          above != nullptr ? nb::object(text_object(above->name())) : nb::none());
}

/// `_restore_dtype(name, definition)`: the registered descriptor of that name, when it is what was pickled.
/// A function of the C API, since pickle can name those and not nanobind's.
PyObject* restore(PyObject*, PyObject* args) noexcept {
    try {
        PyObject *name = nullptr, *definition = nullptr;
        if (PyArg_ParseTuple(args, "UO", &name, &definition) == 0) throw nb::python_error();
        const DType& dtype = DType::from_name(text_of(name, "name"));
        if (!definition_of(dtype).equal(nb::handle(definition)))
            throw ValueError("dtype '" + dtype.name() +
                             "' is registered here with another definition: " + represent(dtype));
        return object_of(dtype).release().ptr();
    } catch (...) {
        raise_current();
        return nullptr;
    }
}

PyMethodDef module_functions[] = {{"_restore_dtype", restore, METH_VARARGS, nullptr},
                                  {nullptr, nullptr, 0, nullptr}};

PyObject* refuse_new(PyTypeObject*, PyObject*, PyObject*) noexcept {
    PyErr_SetString(
        PyExc_TypeError,
        "DType is abstract; construct a DTypeCategory, SimpleDType or CompoundDType, or take DType.<name>");
    return nullptr;
}

/// `__new__` registers and returns the descriptor's one object; `__init__` finds it complete.
template <class Form, class Maker>
void define_form(nb::class_<Form, DType>& c, Maker maker, const char* new_signature,
                 const char* init_signature) {
    c.def_static("__new__", maker, nb::sig(new_signature));
    c.def(
        "__init__", [](nb::handle, const nb::args&, const nb::kwargs&) {}, nb::sig(init_signature));
}

PyType_Slot dtype_slots[] = {{Py_tp_new, reinterpret_cast<void*>(refuse_new)}, {0, nullptr}};

void define(nb::class_<DType>& c, const nb::object& restorer) {
    c.def_prop_ro(
        "name", [](nb::handle self) { return self_of(self).name(); }, nb::sig("def name(self, /) -> str"),
        "The registered name.");
    c.def_prop_ro(
        "supertype",
        [](nb::handle self) -> nb::object {
            const DType* above = self_of(self).supertype();
            return above != nullptr ? object_of(*above) : nb::none();
        },
        nb::sig("def supertype(self, /) -> DTypeCategory | None"), "The category right above, or None.");
    c.def(
        "supertypes",
        [](nb::handle self) {
            nb::list above;
            for (const DType* t : self_of(self).supertypes()) above.append(object_of(*t));
            return nb::tuple(above);
        },
        nb::sig("def supertypes(self) -> tuple[DTypeCategory, ...]"),
        R"(All categories above, nearest first.

>>> from carrier_storage import DType
>>> DType.Int8.supertypes()
(DType.Integer, DType.Any)
)");
    c.def(
        "is_subtype_of",
        [](nb::handle self, nb::handle other) { return self_of(self).is_subtype_of(*dtype_of(other)); },
        nb::arg("other").none(), nb::sig("def is_subtype_of(self, other: DType) -> bool"),
        R"(True for the descriptor itself and everything above it. TypeError for no DType.

>>> from carrier_storage import DType
>>> DType.Float32.is_subtype_of(DType.Floating)
True
)");
    c.def(
        "is_category", [](nb::handle self) { return self_of(self).is_category(); },
        nb::sig("def is_category(self) -> bool"), "Whether this groups other dtypes.");
    c.def(
        "is_simple", [](nb::handle self) { return self_of(self).is_simple(); },
        nb::sig("def is_simple(self) -> bool"), "Whether this is one machine representation.");
    c.def(
        "is_compound", [](nb::handle self) { return self_of(self).is_compound(); },
        nb::sig("def is_compound(self) -> bool"), "Whether this has several planes.");
    c.def_prop_ro(
        "bits",
        [](nb::handle self) -> nb::object {
            const auto bits = self_of(self).bits();
            return bits ? nb::object(nb::int_(*bits)) : nb::none();
        },
        nb::sig("def bits(self, /) -> int | None"), "Bits of one value of a simple dtype, else None.");
    c.def_prop_ro(
        "planes",
        [](nb::handle self) {
            nb::list planes;
            for (const DType* plane : self_of(self).planes()) planes.append(object_of(*plane));
            return nb::tuple(planes);
        },
        nb::sig("def planes(self, /) -> tuple[SimpleDType, ...]"),
        "The planes of a compound dtype, else ().");
    c.def_static(
        "from_name", [](nb::handle name) { return object_of(DType::from_name(text_of(name, "name"))); },
        nb::arg("name").none(), nb::sig("def from_name(name: str) -> DType"),
        R"(The descriptor registered as ``name``, always the same object. LookupError when there is none.

>>> from carrier_storage import DType
>>> DType.from_name("Float32") is DType.Float32
True
)");
    c.def_static(
        "registered",
        [] {
            nb::list all;
            for (const DType* t : DType::registered()) all.append(object_of(*t));
            return nb::tuple(all);
        },
        nb::sig("def registered() -> tuple[DType, ...]"),
        R"(Every descriptor of the process, in the order of registration.

>>> from carrier_storage import DType
>>> DType.registered()[0]
DType.Any
)");
    c.def(
        "__repr__", [](nb::handle self) { return represent(self_of(self)); },
        nb::sig("def __repr__(self) -> str"));
    c.def(
        "__copy__", [](nb::handle self) { return nb::borrow(self); },
        nb::sig("def __copy__(self) -> typing.Self"));
    c.def(
        "__deepcopy__", [](nb::handle self, nb::handle) { return nb::borrow(self); }, nb::arg("memo").none(),
        nb::sig("def __deepcopy__(self, memo: typing.Any) -> typing.Self"));
    c.def(
        "__reduce__",
        [restorer](nb::handle self) {
            const DType& dtype = self_of(self);
            return nb::make_tuple(restorer, nb::make_tuple(dtype.name(), definition_of(dtype)));
        },
        nb::sig("def __reduce__(self) -> tuple[typing.Any, ...]"));
}

}  // namespace

nb::object object_of(const DType& dtype) {
    if (dtype.host_object != nullptr) return nb::borrow(static_cast<PyObject*>(dtype.host_object));
    switch (dtype.form()) {
        case DType::Form::category:
            return first_object<Category>(dtype);
        case DType::Form::simple:
            return first_object<Simple>(dtype);
        default:
            return first_object<Compound>(dtype);
    }
}

void bind_dtype(nb::module_& m) {
    nb::class_<DType> base(
        m, "DType", nb::type_slots(dtype_slots), nb::is_weak_referenceable(),
        R"(A descriptor of what one value is. Abstract: see its three forms, and ``DType.<name>``.

Identity is the meaning: equality, hash, copies and pickles keep the object, and a descriptor lives as long as the process.
Built in are the categories Any, Floating and Integer, and Bool, Int32, Int8, Float32, Float64, E8M0, E5M2, E4M3, E3M2,
E2M3 and E2M1.

>>> from carrier_storage import DType
>>> DType.Float32.bits, DType.Float32.supertype
(32, DType.Floating)
)");
    if (PyModule_AddFunctions(m.ptr(), module_functions) < 0) throw nb::python_error();
    define(base, m.attr("_restore_dtype"));
    nb::class_<Category, DType> category(
        m, "DTypeCategory", nb::is_final(), nb::sig("@typing.final\nclass DTypeCategory(DType)"),
        R"(A dtype that groups others: ``DTypeCategory(name, *, supertype=None)``.

Constructing registers it for the process. Raises TypeError, ValueError (empty or taken name; then nothing is registered).

>>> from carrier_storage import DType, DTypeCategory
>>> DTypeCategory("DocFixedPoint", supertype=DType.Any).is_category()
True
)");
    define_form(category, &new_category,
                "def __new__(cls, name: str, *, supertype: DTypeCategory | None = None) -> DTypeCategory",
                "def __init__(self, name: str, *, supertype: DTypeCategory | None = None) -> None");
    nb::class_<Simple, DType> simple(m, "SimpleDType", nb::is_final(),
                                     nb::sig("@typing.final\nclass SimpleDType(DType)"),
                                     R"(One machine representation: ``SimpleDType(name, *, bits, supertype)``.

Constructing registers it for the process. Raises TypeError, ValueError (name, fewer bits than one, a supertype that is no
category; then nothing is registered).

>>> from carrier_storage import DType, SimpleDType
>>> SimpleDType("DocInt16", bits=16, supertype=DType.Integer).bits
16
)");
    define_form(
        simple, &new_simple,
        "def __new__(cls, name: str, *, bits: typing.SupportsIndex, supertype: DTypeCategory) -> SimpleDType",
        "def __init__(self, name: str, *, bits: typing.SupportsIndex, supertype: DTypeCategory) -> None");
    nb::class_<Compound, DType> compound(
        m, "CompoundDType", nb::is_final(), nb::sig("@typing.final\nclass CompoundDType(DType)"),
        R"(Two or more planes: ``CompoundDType(name, *, planes, supertype=DType.Any)``.

Constructing registers it for the process. Raises TypeError, ValueError (name, fewer than two planes, a plane that is not
simple; then nothing is registered).

>>> from carrier_storage import CompoundDType, DType
>>> CompoundDType("DocScaled", planes=[DType.E4M3, DType.E8M0]).planes
(DType.E4M3, DType.E8M0)
)");
    define_form(compound, &new_compound,
                "def __new__(cls, name: str, *, planes: collections.abc.Iterable[SimpleDType], "
                "supertype: DTypeCategory = ...) -> CompoundDType",
                "def __init__(self, name: str, *, planes: collections.abc.Iterable[SimpleDType], "
                "supertype: DTypeCategory = ...) -> None");
    for (const DType* dtype : DType::built_in()) base.attr(dtype->name().c_str()) = object_of(*dtype);
}

}  // namespace carrier::python
