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

/// An object's buffer, if it exports one: while it is held, its memory neither moves nor goes.
class HeldBuffer {
  public:
    /// Holds nothing when the object refuses as exporters do; what else it raises is thrown.
    explicit HeldBuffer(nb::handle exporter);
    ~HeldBuffer();
    HeldBuffer(const HeldBuffer&) = delete;
    HeldBuffer& operator=(const HeldBuffer&) = delete;

    /// `other` unless the buffer is one-dimensional and typed; then the functions below may be called.
    Elements elements() const noexcept;
    std::size_t size() const noexcept {
        return static_cast<std::size_t>(view_.shape != nullptr ? view_.shape[0] : view_.len / view_.itemsize);
    }
    /// Bytes from one element to the next.
    std::ptrdiff_t stride() const noexcept {
        return view_.strides != nullptr ? view_.strides[0] : view_.itemsize;
    }
    const std::byte* data() const noexcept { return static_cast<const std::byte*>(view_.buf); }
    /// Whether the elements are slots themselves, byte for byte.
    bool holds_slots(Encoding encoding) const noexcept;

  private:
    Py_buffer view_{};
    bool held_ = false;
};

/// Puts the elements of a one-dimensional typed buffer into `intake`. The errors of `convert_elements` and of
/// the intake.
void ingest_buffer(const HeldBuffer& buffer, Intake& intake);
/// The same; false, with nothing done, when `values` is none.
bool ingest_buffer(nb::handle values, Intake& intake);

}  // namespace carrier::python
