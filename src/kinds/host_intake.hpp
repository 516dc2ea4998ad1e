// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <algorithm>

#include "carrier/host_block.hpp"
#include "carrier/intake.hpp"
#include "kinds/storage_bytes.hpp"

namespace carrier {

/// Fills fresh host memory, then makes a `Kind` of it without a copy.
template <class Kind>
class HostIntake final : public Intake {
  public:
    HostIntake(std::int64_t expected, bool writable, const DType& dtype, bool takes_holes)
        : Intake(encoding_of(dtype), takes_holes), dtype_(dtype), writable_(writable) {
        if (expected > 0) block_ = HostBlock::allocate(storage_bytes(expected, encoding()), Fill::none);
    }
    std::span<std::byte> room(std::size_t slots) override {
        const std::size_t width = slot_bytes(encoding());
        const std::size_t need = used_ + std::max<std::size_t>(slots, 1) * width;
        if (!block_) {
            block_ = HostBlock::allocate(std::max(need, kFirstBytes), Fill::none);
        } else if (const std::size_t have = block_->size(); have < need) {
            block_ = HostBlock::resized(std::move(block_), std::max(need, have + have / 2), used_);
        }
        return {block_->data() + used_, block_->size() - used_};
    }
    void filled(std::size_t slots) override { used_ += slots * slot_bytes(encoding()); }
    Ref<Carrier> finish() override {
        if (!block_)
            block_ = HostBlock::allocate(0, Fill::none);
        else if (block_->size() != used_)
            block_ = HostBlock::resized(std::move(block_), used_, used_);
        const auto size = static_cast<std::int64_t>(used_ / slot_bytes(encoding()));
        return Ref<Carrier>(make<Kind>(std::move(block_), size, dtype_, writable_));
    }

  private:
    static constexpr std::size_t kFirstBytes = 256;
    Ref<HostBlock> block_;
    std::size_t used_ = 0;
    const DType& dtype_;
    bool writable_;
};

}  // namespace carrier
