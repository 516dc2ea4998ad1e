// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <span>

#include "carrier/intake.hpp"
#include "carrier/value.hpp"

/// Values in bulk, from Python into fresh storage.
///
/// Whatever the source is, the result is what a loop over its elements would store one by one, and so is the
/// error (docs/contract.md, Values); the errors of this library name the position. What differs is speed:
/// lists and tuples are read in place, a range makes no objects, the bytes of one-dimensional typed buffers
/// are converted in chunks without the interpreter's lock, and everything else is iterated.
namespace carrier::python {

namespace nb = nanobind;

/// Puts every value of `values` into `intake`. Lets signals in. TypeError (not iterable, a value),
/// OverflowError, what the iterator raises, and the intake's own errors.
void ingest(nb::handle values, Intake& intake);

/// What the elements of a typed buffer are.
enum class Elements : std::uint8_t {
    other,
    boolean,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
    float16,
    float32,
    float64
};

/// Reads a buffer's format: `?`, `b` to `Q`, `e`, `f`, `d`, with or without a prefix that means native order.
/// `other` for everything else, and where the item size disagrees.
Elements elements_of(const char* format, Py_ssize_t item_bytes) noexcept;

/// Converts `count` elements that lie `stride` bytes apart into slots, as the rule for the Python values that
/// they stand for says. Runs without the interpreter's lock. TypeError and OverflowError name the position,
/// counted from `position`.
void convert_elements(Elements elements, const std::byte* from, std::ptrdiff_t stride, std::size_t count,
                      Encoding encoding, std::byte* to, std::size_t position);

}  // namespace carrier::python
