// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>

#include "carrier/block.hpp"
#include "carrier/value.hpp"

/// Memory on its way out: what `memoryview`, NumPy and pickle hold on to.
///
/// A view holds the block, not the carrier, so it stays readable when the carrier is released, evicted or
/// gone; the block dies with its last view. The class of these objects has no public name.
namespace carrier::python {

namespace nb = nanobind;

/// The character that the buffer protocol, NumPy and `array` have for an encoding: `f`, `i`, `?`. Not for
/// opaque.
const char* format_of(Encoding encoding) noexcept;

/// An object that exports `count` slots of a block in host memory, from `offset` bytes on, by the buffer
/// protocol: typed, one-dimensional, in C order, writable or read-only. It keeps the block alive; each call
/// makes a new one. The slots lie inside the block. MemoryError.
nb::object memory_of(Ref<Block> block, Encoding encoding, std::size_t offset, std::int64_t count,
                     bool writable);

/// The same as a typed memoryview.
nb::object memoryview_of(Ref<Block> block, Encoding encoding, std::size_t offset, std::int64_t count,
                         bool writable);

}  // namespace carrier::python
