// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/convert.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <string_view>

#include "carrier/errors.hpp"
#include "python/interpreter.hpp"
#include "python/ref_caster.hpp"

namespace carrier::python {

namespace {

/// A Python object as a value of a dtype without an encoding.
class HostObject final : public RefCounted {
  public:
    explicit HostObject(nb::object object) noexcept : object_(std::move(object)) {}
    ~HostObject() override {
        const Held lock;
        object_.reset();
    }
    const nb::object& get() const noexcept { return object_; }

  private:
    nb::object object_;
};

nb::object checked(PyObject* result) {
    if (result == nullptr) throw nb::python_error();
    return nb::steal(result);
}

[[noreturn]] void refuse(const char* a_dtype, const char* takes, nb::handle object) {
    throw TypeError(std::string(a_dtype) + " slot takes " + takes + ", not " + class_name(object));
}

[[noreturn]] void refuse_float32(nb::handle object) {
    refuse("a Float32", "a real number or a bool", object);
}
[[noreturn]] void refuse_int32(nb::handle object) { refuse("an Int32", "an int", object); }

// ---- NumPy's types, told apart by name: NumPy may be absent, and is never imported here -----------------

enum class NumPy : std::uint8_t { no, boolean, complex, array };

NumPy numpy_class(std::string_view name) noexcept {
    if (name == "numpy.bool" || name == "numpy.bool_") return NumPy::boolean;
    if (name == "numpy.complexfloating") return NumPy::complex;
    if (name == "numpy.ndarray") return NumPy::array;
    return NumPy::no;
}

NumPy numpy_kind(PyObject* object) {
    const nb::object mro = nb::borrow(Py_TYPE(object)).attr("__mro__");
    for (nb::handle type : nb::borrow<nb::tuple>(mro)) {
#if defined(Py_LIMITED_API)
        const std::string name = nb::cast<std::string>(nb::str(type.attr("__module__"))) + "." +
                                 nb::cast<std::string>(type.attr("__name__"));
#else
        const char* name = reinterpret_cast<PyTypeObject*>(type.ptr())->tp_name;
#endif
        if (const NumPy kind = numpy_class(name); kind != NumPy::no) return kind;
    }
    return NumPy::no;
}

// ---- numbers ----------------------------------------------------------------------------------------------

[[noreturn]] void too_large_for_float32(const std::string& what) {
    throw OverflowError(what +
                        " is beyond Float32, whose greatest number is about 3.4e38; floats become infinite, "
                        "integers do not");
}

/// Rounds an exact int beyond 64 bits once: to its upper bits, of which the lowest stands for all that is
/// cut off.
float round_once(nb::handle integer) {
    constexpr std::int64_t kKept = 62;
    const auto bits = nb::cast<std::int64_t>(integer.attr("bit_length")());
    const std::string what = "an integer of " + std::to_string(bits) + " bits";
    if (bits > std::numeric_limits<float>::max_exponent) too_large_for_float32(what);
    const nb::object magnitude = checked(PyNumber_Absolute(integer.ptr()));
    const nb::object shift = checked(PyLong_FromLongLong(bits - kKept));
    const nb::object upper = checked(PyNumber_Rshift(magnitude.ptr(), shift.ptr()));
    const nb::object back = checked(PyNumber_Lshift(upper.ptr(), shift.ptr()));
    const int cut = PyObject_RichCompareBool(back.ptr(), magnitude.ptr(), Py_NE);
    if (cut < 0) throw nb::python_error();
    const std::int64_t kept = nb::cast<std::int64_t>(upper) | cut;
    const float rounded = std::ldexp(static_cast<float>(kept), static_cast<int>(bits - kKept));
    if (std::isinf(rounded)) too_large_for_float32(what);
    const int negative = PyObject_RichCompareBool(integer.ptr(), nb::int_(0).ptr(), Py_LT);
    if (negative < 0) throw nb::python_error();
    return negative != 0 ? -rounded : rounded;
}

float float32_of_int(nb::handle integer) {
    std::int64_t value = 0;
    int overflow = 0;
    value = PyLong_AsLongLongAndOverflow(integer.ptr(), &overflow);
    return overflow == 0 ? static_cast<float>(value) : round_once(integer);
}

bool has_float(PyObject* object) noexcept { return PyType_GetSlot(Py_TYPE(object), Py_nb_float) != nullptr; }

/// Kinds of 0-dimensional arrays that stand for a real number; NumPy would read complex numbers and text too.
bool is_real_array(nb::handle array) {
    const auto kind = nb::cast<std::string>(nb::str(array.attr("dtype").attr("kind")));
    return kind.size() == 1 && std::string_view("?biuf").find(kind[0]) != std::string_view::npos;
}

float float32_of_float(nb::handle object) {
    if (PyComplex_Check(object.ptr()) || !has_float(object.ptr())) refuse_float32(object);
    const NumPy kind = numpy_kind(object.ptr());
    if (kind == NumPy::complex || (kind == NumPy::array && !is_real_array(object))) refuse_float32(object);
    const double value = PyFloat_AsDouble(object.ptr());
    if (value == -1.0 && PyErr_Occurred() != nullptr) throw nb::python_error();
    return static_cast<float>(value);
}

float to_float32(nb::handle object) {
    PyObject* o = object.ptr();
    if (PyFloat_Check(o)) return static_cast<float>(PyFloat_AsDouble(o));
    if (PyUnicode_Check(o) || PyBytes_Check(o) || PyByteArray_Check(o)) refuse_float32(object);
    if (PyIndex_Check(o) == 0) return float32_of_float(object);
    PyObject* exact = PyNumber_Index(o);
    if (exact != nullptr) return float32_of_int(nb::steal(exact));
    // Arrays of other libraries have both protocols, whatever they hold.
    nb::python_error raised;
    if (!has_float(o) || !raised.matches(PyExc_TypeError)) throw raised;
    return float32_of_float(object);
}

std::int32_t to_int32(nb::handle object) {
    PyObject* o = object.ptr();
    if (PyBool_Check(o) || PyIndex_Check(o) == 0 || (!PyLong_Check(o) && numpy_kind(o) == NumPy::boolean))
        refuse_int32(object);
    const nb::object exact = checked(PyNumber_Index(o));
    int overflow = 0;
    const std::int64_t value = PyLong_AsLongLongAndOverflow(exact.ptr(), &overflow);
    if (overflow == 0 && value == static_cast<std::int32_t>(value)) return static_cast<std::int32_t>(value);
    throw OverflowError("an Int32 slot takes integers in [-2147483648, 2147483647], not " +
                        (overflow == 0 ? std::to_string(value) : std::string("one beyond 64 bits")));
}

/// The integer, clamped to 63 bits; `overflow` says to which side.
std::int64_t clamped(nb::handle object, const char* name, int& overflow) {
    overflow = 0;
    if (PyIndex_Check(object.ptr()) == 0)
        throw TypeError(std::string(name) + " must be an integer, not " + class_name(object));
    const nb::object exact = checked(PyNumber_Index(object.ptr()));
    const std::int64_t value = PyLong_AsLongLongAndOverflow(exact.ptr(), &overflow);
    if (overflow > 0) return std::numeric_limits<std::int64_t>::max();
    if (overflow < 0) return std::numeric_limits<std::int64_t>::min();
    return value;
}

}  // namespace

Scalar unbox(Encoding encoding, nb::handle object) {
    Scalar scalar{};
    if (fast_unbox(encoding, object.ptr(), scalar)) return scalar;
    switch (encoding) {
        case Encoding::float32:
            scalar.float32 = to_float32(object);
            return scalar;
        case Encoding::int32:
            scalar.int32 = to_int32(object);
            return scalar;
        case Encoding::bool8:
            refuse("a Bool", "True or False", object);
        default:
            throw TypeError("only Float32, Int32 and Bool slots hold normalized values");
    }
}

std::int64_t index_of(nb::handle object, const char* name) {
    Py_ssize_t small = 0;
    if (small_int(object.ptr(), small)) return small;
    int overflow = 0;
    return clamped(object, name, overflow);
}

std::int64_t size_of(nb::handle object, const char* name) {
    int overflow = 0;
    const std::int64_t value = clamped(object, name, overflow);
    if (value < 0)
        throw ValueError(std::string(name) + " must be at least 0; got " +
                         (overflow != 0 ? std::string("less than -2**63") : std::to_string(value)));
    if (overflow != 0)
        throw MemoryError(std::string(name) + " is beyond 63 bits; no machine has memory for so many slots");
    return value;
}

bool exact_bool(nb::handle object, const char* name) {
    if (object.ptr() == Py_True) return true;
    if (object.ptr() == Py_False) return false;
    throw TypeError(std::string(name) + " must be True or False, not " + class_name(object));
}

const DType* dtype_of(nb::handle object) { return &require_instance<DType>(object, "dtype", "DType"); }

Value value_of(const Carrier& carrier, nb::handle object) {
    carrier.dtype();  // a custom carrier learns its encoding here
    const Encoding encoding = carrier.hot().encoding;
    if (encoding == Encoding::opaque) return Value(Ref<RefCounted>(make<HostObject>(nb::borrow(object))));
    return to_value(encoding, unbox(encoding, object));
}

nb::object object_of(const Value& value) {
    switch (value.kind()) {
        case Value::Kind::none:
            return nb::none();
        case Value::Kind::boolean:
            return nb::borrow(value.boolean() ? Py_True : Py_False);
        case Value::Kind::integer:
            return checked(PyLong_FromLongLong(value.integer()));
        case Value::Kind::floating:
            return checked(PyFloat_FromDouble(value.floating()));
        case Value::Kind::object:
            break;
    }
    const auto* held = dynamic_cast<const HostObject*>(value.object().get());
    if (held == nullptr) throw TypeError("the value is an object of C++ that Python does not know");
    return held->get();
}

}  // namespace carrier::python
