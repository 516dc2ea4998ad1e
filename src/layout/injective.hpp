// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace carrier {

/// A loop of `extent` steps of `step` slots.
struct Loop {
    std::int64_t extent;
    std::int64_t step;
};

/// Whether each loop, in the order given, steps over all that the loops before it reach. That is enough for
/// no two indices to share a slot, and with the loops sorted by step it decides nearly every layout in use.
bool steps_nest(std::span<const Loop> loops) noexcept;

/// Whether no two indices share a slot, decided exactly. The spans must fit 63 bits.
bool is_injective(std::vector<Loop> loops);

}  // namespace carrier
