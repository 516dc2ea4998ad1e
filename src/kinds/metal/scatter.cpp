// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "kinds/metal/scatter.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "carrier/host_block.hpp"
#include "layout/plan.hpp"

namespace carrier::metal {

namespace {

IntTree dense_steps(const IntTree& extents, std::int64_t& step) {
    if (extents.is_leaf()) {
        const std::int64_t here = step;
        step *= extents.value();
        return IntTree(here);
    }
    std::vector<IntTree> steps;
    for (const IntTree& item : extents.items()) steps.push_back(dense_steps(item, step));
    return IntTree(std::move(steps));
}

/// Slot numbers in logical order.
void number_slots(const Layout& mapping, std::uint32_t base, std::uint32_t* into) {
    const auto extents = mapping.shape().leaves();
    const auto steps = mapping.stride().leaves();
    std::vector<std::int64_t> at(extents.size(), 0);
    std::int64_t slot = base;
    for (;;) {
        *into++ = static_cast<std::uint32_t>(slot);
        std::size_t leaf = 0;
        for (; leaf < at.size(); ++leaf) {
            slot += steps[leaf];
            if (++at[leaf] < extents[leaf]) break;
            slot -= steps[leaf] * extents[leaf];
            at[leaf] = 0;
        }
        if (leaf == at.size()) return;
    }
}

/// Threads of a GPU run in no order, so of the values for one slot only the last is sent. Moves those that
/// stay to the front; the number of them.
std::size_t keep_last(std::uint32_t* slots, std::byte* values, std::size_t count, std::size_t width) {
    std::vector<std::uint64_t> order(count);
    for (std::size_t i = 0; i < count; ++i) order[i] = std::uint64_t{slots[i]} << 32 | i;
    std::sort(order.begin(), order.end());
    std::vector<bool> stays(count);
    for (std::size_t k = 0; k < count; ++k)
        if (k + 1 == count || order[k] >> 32 != order[k + 1] >> 32) stays[order[k] & UINT32_MAX] = true;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < count; ++i) {
        if (!stays[i]) continue;
        slots[kept] = slots[i];
        std::memmove(values + kept * width, values + i * width, width);
        ++kept;
    }
    return kept;
}

/// What stood under the slots, put back unless forgotten. Putting back cannot fail: the GPU has stopped by
/// then, and the memory is the host's too.
class Undo {
  public:
    Undo(std::byte* target, const Layout& mapping, std::size_t width)
        : target_(target),
          saved_(HostBlock::allocate(static_cast<std::size_t>(mapping.size()) * width, Fill::none)),
          back_(CopyPlan::spread(mapping, width)) {
        CopyPlan::gather(mapping, width).run(target, saved_->data());
    }
    ~Undo() {
        if (saved_) back_.run(saved_->data(), target_);
    }
    Undo(const Undo&) = delete;
    Undo& operator=(const Undo&) = delete;
    void forget() noexcept { saved_ = nullptr; }

  private:
    std::byte* target_;
    Ref<HostBlock> saved_;
    CopyPlan back_;
};

}  // namespace

Layout dense(const Shape& shape) {
    std::int64_t step = 1;
    return {shape, Stride(dense_steps(shape.modes().tree(), step))};
}

void scatter(MetalBlock& onto, std::int64_t base, MetalBlock& values, const Layout& mapping,
             std::size_t width) {
    onto.require_own_process();
    Device& device = onto.device();
    const std::string asked = "scatter of " + std::to_string(mapping.size()) + " values";
    const auto size = static_cast<std::size_t>(mapping.size());
    const Ref<MetalBlock> numbers = MetalBlock::allocate(device, size * sizeof(std::uint32_t), true);
    auto* const slots = reinterpret_cast<std::uint32_t*>(numbers->data());
    number_slots(mapping, static_cast<std::uint32_t>(base), slots);
    const std::size_t count = mapping.is_injective() ? size : keep_last(slots, values.data(), size, width);
    Undo undo(onto.data() + static_cast<std::size_t>(base) * width, mapping, width);
    const Status status = device.scatter(onto.buffer(), values.buffer(), numbers->buffer(),
                                         static_cast<std::uint32_t>(count), width);
    if (!status.ok()) raise(status, asked);
    undo.forget();
}

}  // namespace carrier::metal
