// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "carrier/layout.hpp"

namespace carrier {

/// The slots of a layout one after the other, in logical order from any index on. A step costs an addition
/// where `Layout::index` divides for every leaf. The layout has to outlive the walk.
class SlotWalk {
  public:
    /// Stands before `logical`, which lies in [0, size).
    SlotWalk(const Layout& layout, std::int64_t logical);

    /// The slot of the next index. Behind the last index it begins anew.
    std::int64_t operator()() noexcept {
        const std::int64_t slot = slot_;
        for (Leaf& leaf : leaves_) {
            if (leaf.at + 1 < leaf.extent) {
                ++leaf.at;
                slot_ += leaf.step;
                break;
            }
            slot_ -= leaf.step * leaf.at;
            leaf.at = 0;
        }
        return slot;
    }

  private:
    struct Leaf {
        std::int64_t extent;
        std::int64_t step;
        std::int64_t at;
    };
    std::vector<Leaf> leaves_;
    std::int64_t slot_ = 0;
};

/// The least and the greatest slot of the logical indices [start, stop), of which there is at least one.
std::pair<std::int64_t, std::int64_t> slot_bounds(const Layout& layout, std::int64_t start,
                                                  std::int64_t stop);

}  // namespace carrier
