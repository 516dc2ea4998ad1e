// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

#include "carrier/intake.hpp"
#include "carrier/value.hpp"

/// One-dimensional typed buffers as values: `array.array`, `memoryview`, NumPy arrays, carriers.
namespace carrier::python {

namespace nb = nanobind;

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
    float64,
};

/// Reads a format of the buffer protocol: `?`, `b` to `Q`, `e`, `f`, `d`, with or without a prefix that means
/// native order. `other` for everything else, and where the item size disagrees. Null means unsigned bytes.
Elements elements_of(const char* format, Py_ssize_t item_bytes) noexcept;

/// Converts `count` elements that lie `stride` bytes apart into slots, as the rule for the Python values says
/// that they stand for. Needs no interpreter lock. TypeError and OverflowError name the position, counted
/// from `position`.
void convert_elements(Elements elements, const std::byte* from, std::ptrdiff_t stride, std::size_t count,
                      Encoding encoding, std::byte* to, std::size_t position);

/// Puts the elements of a one-dimensional typed buffer into `intake`; false, with nothing done, when `values`
/// is none. The errors of `convert_elements` and of the intake.
bool ingest_buffer(nb::handle values, Intake& intake);

}  // namespace carrier::python
