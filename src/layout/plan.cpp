// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "layout/plan.hpp"

#include <algorithm>
#include <utility>

namespace carrier {

namespace {

/// Parts of an axis are so many elements, or a multiple: side by side they share few lines.
constexpr std::int64_t kGroup = 16;

/// Axes in the making. One array for each number: a plan of few elements must take no longer than copying
/// them, and moving single words between steps is what processors forward fastest.
class Draft {
  public:
    std::size_t count = 0;
    std::int64_t extent[CopyPlan::kMaxAxes];
    std::int64_t from[CopyPlan::kMaxAxes];
    std::int64_t to[CopyPlan::kMaxAxes];

    /// Adds an axis outside the others, merged with the last where it goes on there on both sides. The
    /// products fit an unsigned, since the spans fit 63 bits.
    void add(std::int64_t new_extent, std::int64_t new_from, std::int64_t new_to) noexcept {
        if (count > 0) {
            const auto last = static_cast<std::uint64_t>(extent[count - 1]);
            if (last * static_cast<std::uint64_t>(from[count - 1]) == static_cast<std::uint64_t>(new_from) &&
                last * static_cast<std::uint64_t>(to[count - 1]) == static_cast<std::uint64_t>(new_to)) {
                extent[count - 1] *= new_extent;
                return;
            }
        }
        extent[count] = new_extent;
        from[count] = new_from;
        to[count] = new_to;
        ++count;
    }

    /// Whether, in this order, each step of the destination passes over all that lies within it: then every
    /// slot is written once.
    bool nests(const std::uint8_t* order) const noexcept {
        std::int64_t reach = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t axis = order[i];
            if (to[axis] <= reach) return false;
            reach += (extent[axis] - 1) * to[axis];
        }
        return true;
    }

    /// By step of the destination, shortest first.
    void sort(std::uint8_t* order) const noexcept {
        for (std::size_t i = 0; i < count; ++i) {
            std::size_t at = i;
            for (; at > 0 && to[order[at - 1]] > to[i]; --at) order[at] = order[at - 1];
            order[at] = static_cast<std::uint8_t>(i);
        }
    }

    /// Puts the axes that move within a cache line, on either side, before those that do not: what is fetched
    /// is used up while it is near. Then the shortest step of the source goes second unless it is first.
    /// Returns whether it is second.
    bool choose_inner(std::uint8_t* order, std::int64_t line_from, std::int64_t line_to) const noexcept {
        std::size_t near = 0;
        std::size_t least = 0;
        for (std::size_t i = 0; i < count; ++i) {
            const auto axis = static_cast<std::uint8_t>(i);
            if (to[i] < line_to || from[i] < line_from) {
                for (std::size_t at = i; at > near; --at) order[at] = order[at - 1];
                order[near++] = axis;
            } else {
                order[i] = axis;
            }
        }
        for (std::size_t i = 1; i < count; ++i)
            if (from[order[i]] < from[order[least]]) least = i;
        for (std::size_t at = least; at > 1; --at) std::swap(order[at], order[at - 1]);
        return least != 0;
    }
};

}  // namespace

CopyPlan::CopyPlan(const Shape& shape, const Layout* source, const Layout* destination, std::size_t width,
                   Conversion conversion, std::int64_t dense) noexcept
    : width_(static_cast<std::uint8_t>(width)), conversion_(conversion) {
    const auto extents = shape.leaves();
    const std::int64_t* from = source != nullptr ? source->stride().leaves().data() : nullptr;
    const std::int64_t* to = destination != nullptr ? destination->stride().leaves().data() : nullptr;
    if (extents.size() == 1 && extents[0] > 1) {  // the usual few values: nothing to merge or to sort
        const std::int64_t to_step = to != nullptr ? to[0] : dense;
        const std::int64_t from_step = from != nullptr ? from[0] : dense;
        if (to_step != 0) {
            axes_[0] = {extents[0], from_step, to_step};
            count_ = 1;
            once_ = true;
            return;
        }
    }
    Draft logical;
    for (std::size_t i = 0; i < extents.size(); ++i) {
        const std::int64_t extent = extents[i];
        const std::int64_t from_step = from != nullptr ? from[i] : dense;
        const std::int64_t to_step = to != nullptr ? to[i] : dense;
        dense *= extent;
        if (extent == 1) continue;
        // All of the axis goes to one slot: its last index wins.
        if (to_step == 0)
            from_ += (extent - 1) * from_step;
        else
            logical.add(extent, from_step, to_step);
    }
    const auto keep = [this](const Draft& draft, const std::uint8_t* order) {
        count_ = draft.count;
        for (std::size_t i = 0; i < count_; ++i) {
            const std::size_t axis = order != nullptr ? order[i] : i;
            axes_[i] = {draft.extent[axis], draft.from[axis], draft.to[axis]};
        }
    };
    std::uint8_t order[kMaxAxes];
    logical.sort(order);
    once_ = logical.nests(order);
    // Where slots are written more than once, or may be, the logical order stays.
    if (logical.count < 2 || !once_) {
        keep(logical, nullptr);
        return;
    }
    Draft sorted;
    for (std::size_t i = 0; i < logical.count; ++i)
        sorted.add(logical.extent[order[i]], logical.from[order[i]], logical.to[order[i]]);
    tiled_ = sorted.choose_inner(order, kLine / static_cast<std::int64_t>(source_width(width, conversion)),
                                 kLine / static_cast<std::int64_t>(width));
    keep(sorted, order);
}

std::size_t CopyPlan::bytes() const noexcept {
    std::size_t all = width_;
    for (std::size_t i = 0; i < count_; ++i) all *= static_cast<std::size_t>(axes_[i].extent);
    return all;
}

bool CopyPlan::is_run() const noexcept {
    return count_ == 1 && axes_[0].from == 1 && axes_[0].to == 1 && from_ == 0 &&
           conversion_ == Conversion::none;
}

std::size_t CopyPlan::widest() const noexcept {
    std::size_t axis = 0;
    for (std::size_t i = 1; i < count_; ++i)
        if (axes_[i].extent * axes_[i].to > axes_[axis].extent * axes_[axis].to) axis = i;
    return axis;
}

std::size_t CopyPlan::parts(std::size_t most) const noexcept {
    if (!once_ || count_ == 0) return 1;
    const auto groups = static_cast<std::size_t>(axes_[widest()].extent / kGroup);
    return std::clamp(groups, std::size_t{1}, most);
}

void CopyPlan::run_part(std::size_t i, std::size_t count, const std::byte* source, std::byte* destination,
                        const Tuning& tuning) const noexcept {
    if (count == 1) return run(source, destination, tuning);
    CopyPlan part = *this;
    Axis& axis = part.axes_[widest()];
    const std::int64_t groups = (axis.extent + kGroup - 1) / kGroup;
    const auto at = [&](std::size_t k) {
        return std::min(axis.extent,
                        groups * static_cast<std::int64_t>(k) / static_cast<std::int64_t>(count) * kGroup);
    };
    const std::int64_t begin = at(i);
    const std::int64_t end = at(i + 1);
    if (begin == end) return;
    part.from_ += begin * axis.from;
    destination += begin * axis.to * width_;
    axis.extent = end - begin;
    part.run(source, destination, tuning);
}

}  // namespace carrier
