// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>

#include "carrier/carrier.hpp"
#include "carrier/dtype.hpp"
#include "carrier/value.hpp"

/// Python objects to values and back: the one place where the rule of docs/contract.md, Values, meets
/// Python's types.
///
/// The inline functions are for fast paths: they look at exact types only, never run user code, never set an
/// error, and leave everything else to the function of the same meaning that is not inline.
namespace carrier::python {

namespace nb = nanobind;

/// The value of an exact int of one digit (at least 30 bits).
inline bool small_int(PyObject* object, Py_ssize_t& value) noexcept {
#if defined(Py_LIMITED_API)
    if (!PyLong_CheckExact(object)) return false;
    int overflow = 0;
    const long wide = PyLong_AsLongAndOverflow(object, &overflow);
    value = static_cast<Py_ssize_t>(wide);
    return overflow == 0;
#elif PY_VERSION_HEX >= 0x030C0000
    if (!PyLong_CheckExact(object)) return false;
    auto* exact = reinterpret_cast<PyLongObject*>(object);
    if (!PyUnstable_Long_IsCompact(exact)) return false;
    value = PyUnstable_Long_CompactValue(exact);
    return true;
#else
    if (!PyLong_CheckExact(object)) return false;
    const Py_ssize_t digits = Py_SIZE(object);
    const auto lowest = static_cast<Py_ssize_t>(reinterpret_cast<PyLongObject*>(object)->ob_digit[0]);
    if (digits == 1) return value = lowest, true;
    if (digits == 0) return value = 0, true;
    if (digits == -1) return value = -lowest, true;
    return false;
#endif
}

/// The value of an exact int of at most two digits of 30 bits. Without a branch on their number: half of all
/// integers of 32 bits have one, half two.
inline bool two_digit_int(PyObject* object, std::int64_t& value) noexcept {
#if defined(Py_LIMITED_API) || PYLONG_BITS_IN_DIGIT != 30 || PY_VERSION_HEX >= 0x030F0000
    Py_ssize_t small = 0;
    return small_int(object, small) && (value = small, true);
#else
    const auto* exact = reinterpret_cast<PyLongObject*>(object);
#if PY_VERSION_HEX >= 0x030C0000
    const std::uintptr_t tag =
        exact->long_value.lv_tag;  // digits above three bits, of which two are the sign
    const std::int64_t sign = 1 - static_cast<std::int64_t>(tag & 3);
    const std::uintptr_t count = tag >> 3;
    const digit* digits = exact->long_value.ob_digit;
#else
    const Py_ssize_t size = Py_SIZE(object);
    const std::int64_t sign = (size > 0) - (size < 0);
    const auto count = static_cast<std::uintptr_t>(size < 0 ? -size : size);
    const digit* digits = exact->ob_digit;
#endif
    if (count > 2) return false;
    const std::int64_t has_second = count == 2;
    value = sign * (digits[0] | ((static_cast<std::int64_t>(digits[has_second]) & -has_second) << 30));
    return true;
#endif
}

/// The value of an exact int that fits 64 bits.
inline bool exact_int(PyObject* object, std::int64_t& value) noexcept {
    if (!PyLong_CheckExact(object)) return false;
    if (two_digit_int(object, value)) return true;
    int overflow = 0;
    value = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0;
}

inline double float_value(PyObject* exact) noexcept {
#if defined(Py_LIMITED_API)
    return PyFloat_AsDouble(exact);
#else
    return PyFloat_AS_DOUBLE(exact);
#endif
}

/// A stored value as a Python object; a new reference, or null with MemoryError set. Never throws; not
/// declared so, since then it could not end in a jump to Python's function.
inline PyObject* box(Encoding encoding, Scalar scalar) {
    switch (encoding) {
        case Encoding::float32:
            return PyFloat_FromDouble(static_cast<double>(scalar.float32));
        case Encoding::int32:
            return PyLong_FromLong(scalar.int32);
        default: {
            // Looked up: a branch on values that come in no order is foreseen half of the time.
            PyObject* const truths[] = {Py_False, Py_True};
            return Py_NewRef(truths[scalar.bool8 ? 1 : 0]);
        }
    }
}

/// Normalizes an exact float, int or bool that the dtype takes; false for anything else.
inline bool fast_unbox(Encoding encoding, PyObject* object, Scalar& scalar) noexcept {
    std::int64_t integer = 0;
    switch (encoding) {
        case Encoding::float32:
            if (PyFloat_CheckExact(object))
                scalar.float32 = static_cast<float>(float_value(object));
            else if (exact_int(object, integer))
                scalar.float32 = static_cast<float>(integer);
            else
                return false;
            return true;
        case Encoding::int32:
            if (!exact_int(object, integer) || integer != static_cast<std::int32_t>(integer)) return false;
            scalar.int32 = static_cast<std::int32_t>(integer);
            return true;
        case Encoding::bool8:
            scalar.bool8 = object == Py_True;
            return scalar.bool8 || object == Py_False;
        default:
            return false;
    }
}

/// Normalizes any object, running its `__index__` or `__float__` where the rule asks for it. TypeError,
/// OverflowError, and whatever that user code raises. `encoding` is not opaque.
Scalar unbox(Encoding encoding, nb::handle object);

/// An index, called `name` in errors: anything with `__index__`. One beyond 63 bits becomes the greatest or
/// the least integer, which no carrier has as a slot. TypeError.
std::int64_t index_of(nb::handle object, const char* name = "index");
/// A number of slots, called `name` in errors. TypeError, ValueError (negative), MemoryError (beyond 63
/// bits).
std::int64_t size_of(nb::handle object, const char* name);
/// An exact bool, called `name` in errors. TypeError.
bool exact_bool(nb::handle object, const char* name);
/// The descriptor behind a DType. TypeError; never null.
const DType* dtype_of(nb::handle object);
/// The Python object of a descriptor, always the same one.
nb::object object_of(const DType& dtype);

/// A value on its way into `carrier`, normalized by its dtype; a dtype without an encoding takes any object.
Value value_of(const Carrier& carrier, nb::handle object);
/// A value on its way out.
nb::object object_of(const Value& value);

}  // namespace carrier::python
