// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "layout/slot_walk.hpp"

#include <algorithm>

namespace carrier {

SlotWalk::SlotWalk(const Layout& layout, std::int64_t logical) : slot_(layout.index(logical)) {
    const auto extents = layout.shape().leaves();
    const auto steps = layout.stride().leaves();
    leaves_.reserve(extents.size());
    for (std::size_t i = 0; i < extents.size(); ++i) {
        leaves_.push_back({extents[i], steps[i], logical % extents[i]});
        logical /= extents[i];
    }
}

std::pair<std::int64_t, std::int64_t> slot_bounds(const Layout& layout, std::int64_t start,
                                                  std::int64_t stop) {
    if (stop - start == layout.size()) return {0, layout.cosize() - 1};
    SlotWalk walk(layout, start);
    std::int64_t least = walk();
    std::int64_t greatest = least;
    for (std::int64_t i = start + 1; i < stop; ++i) {
        const std::int64_t slot = walk();
        least = std::min(least, slot);
        greatest = std::max(greatest, slot);
    }
    return {least, greatest};
}

}  // namespace carrier
