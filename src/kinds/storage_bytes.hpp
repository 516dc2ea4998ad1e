// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <cstdint>
#include <limits>
#include <string>

#include "carrier/errors.hpp"
#include "carrier/value.hpp"

namespace carrier {

/// Bytes of `size` slots. ValueError when negative, MemoryError when no address space could hold them.
inline std::size_t storage_bytes(std::int64_t size, Encoding encoding) {
    if (size < 0) throw ValueError("size must be at least 0; got " + std::to_string(size));
    const auto width = static_cast<std::int64_t>(slot_bytes(encoding));
    if (size > std::numeric_limits<std::int64_t>::max() / width)
        throw MemoryError(std::to_string(size) + " slots of " + std::to_string(width) +
                          " bytes exceed what memory can address");
    return static_cast<std::size_t>(size * width);
}

}  // namespace carrier
