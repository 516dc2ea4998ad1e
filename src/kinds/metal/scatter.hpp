// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <cstddef>
#include <cstdint>

#include "carrier/layout.hpp"
#include "kinds/metal/block.hpp"

namespace carrier::metal {

/// From this many values on the kernel serves sources on other kinds too.
constexpr std::int64_t kLarge = 65'536;

/// The kernel counts slots in 32 bits: what reaches further is for the host, which shares the memory.
inline bool fits_kernel(std::int64_t base, const Layout& mapping) noexcept {
    return mapping.size() <= UINT32_MAX && mapping.cosize() <= INT64_C(1) << 32 &&
           base <= (INT64_C(1) << 32) - mapping.cosize();
}

/// The layout that counts the indices of `shape` one by one.
Layout dense(const Shape& shape);

/// Writes values, which stand in logical order at the front of `values`, to slots `base + mapping.index(i)`
/// of `onto`, on the GPU; where two meet, the later index wins. Slots are `width` bytes and lie inside, which
/// the caller proves as it does `fits_kernel`. All or nothing: StateError when the device does not finish,
/// MemoryError. `values` is used up.
void scatter(MetalBlock& onto, std::int64_t base, MetalBlock& values, const Layout& mapping,
             std::size_t width);

}  // namespace carrier::metal
