// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "layout/plan.hpp"

#include <algorithm>
#include <utility>

namespace carrier {

namespace {

constexpr std::int64_t kLine = 64;

/// Whether `outer` goes on where `inner` ends, on both sides. The products fit an unsigned, since the spans
/// fit 63 bits.
bool continues(const Axis& inner, const Axis& outer) noexcept {
    const auto extent = static_cast<std::uint64_t>(inner.extent);
    return extent * static_cast<std::uint64_t>(inner.from) == static_cast<std::uint64_t>(outer.from) &&
           extent * static_cast<std::uint64_t>(inner.to) == static_cast<std::uint64_t>(outer.to);
}

}  // namespace

CopyPlan::CopyPlan(const Shape& shape, const Layout* source, const Layout* destination, std::size_t width,
                   Conversion conversion)
    : width_(static_cast<std::uint8_t>(width)), conversion_(conversion) {
    const auto extents = shape.leaves();
    if (extents.size() > kFew) many_.resize(extents.size());
    const std::int64_t* from = source != nullptr ? source->stride().leaves().data() : nullptr;
    const std::int64_t* to = destination != nullptr ? destination->stride().leaves().data() : nullptr;
    std::int64_t dense = 1;
    for (std::size_t i = 0; i < extents.size(); ++i) {
        const Axis axis{extents[i], from != nullptr ? from[i] : dense, to != nullptr ? to[i] : dense};
        dense *= axis.extent;
        if (axis.extent == 1) continue;
        // All of the axis goes to one slot: its last index wins.
        if (axis.to == 0)
            from_ += (axis.extent - 1) * axis.from;
        else
            push(axis);
    }
    if (count_ < 2) return;
    ordered_ = !sort_by_destination();
    if (ordered_) return;
    merge();
    choose_inner();
}

void CopyPlan::push(Axis axis) noexcept {
    Axis* const all = data();
    if (count_ > 0 && continues(all[count_ - 1], axis))
        all[count_ - 1].extent *= axis.extent;
    else
        all[count_++] = axis;
}

/// Sorts by step in the destination and returns true when each step passes over all that lies within it, so
/// that every slot is written once; else leaves the logical order and returns false.
bool CopyPlan::sort_by_destination() {
    std::array<Axis, kFew> few;
    std::vector<Axis> many;
    Axis* sorted = few.data();
    if (count_ > kFew) {
        many.resize(count_);
        sorted = many.data();
    }
    const Axis* const all = data();
    for (std::size_t i = 0; i < count_; ++i) {
        std::size_t at = i;
        for (; at > 0 && sorted[at - 1].to > all[i].to; --at) sorted[at] = sorted[at - 1];
        sorted[at] = all[i];
    }
    std::int64_t reach = 0;
    for (std::size_t i = 0; i < count_; ++i) {
        if (sorted[i].to <= reach) return false;
        reach += (sorted[i].extent - 1) * sorted[i].to;
    }
    std::copy_n(sorted, count_, data());
    return true;
}

void CopyPlan::merge() noexcept {
    const std::size_t all = std::exchange(count_, 0);
    for (std::size_t i = 0; i < all; ++i) push(data()[i]);
}

/// Puts the axes that move within a cache line, on either side, before those that do not: what is fetched is
/// then used up while it is near. Of these, the shortest step of the destination and that of the source come
/// first.
void CopyPlan::choose_inner() noexcept {
    if (count_ < 2) return;
    Axis* const all = data();
    const auto bytes_to = static_cast<std::int64_t>(width_);
    const auto bytes_from = static_cast<std::int64_t>(source_width(width_, conversion_));
    std::size_t near = 0;
    std::size_t least = 0;
    for (std::size_t i = 0; i < count_; ++i) {
        if (all[i].to >= kLine / bytes_to && all[i].from >= kLine / bytes_from) continue;
        std::rotate(all + near, all + i, all + i + 1);
        ++near;
    }
    for (std::size_t i = 1; i < count_; ++i)
        if (all[i].from < all[least].from) least = i;
    tiled_ = least != 0;
    if (tiled_) std::rotate(all + 1, all + least, all + least + 1);
}

}  // namespace carrier
