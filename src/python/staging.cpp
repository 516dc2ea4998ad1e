// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "python/staging.hpp"

#include <algorithm>
#include <utility>

#include "carrier/carrier.hpp"
#include "carrier/errors.hpp"

namespace carrier::python {

namespace {
constexpr std::size_t kFirstSlots = 64;
}  // namespace

Staging::Staging(Encoding encoding, std::size_t expected, std::size_t limit, TooMany too_many)
    : Intake(encoding, false),
      block_(HostBlock::allocate(
          bytes_of(static_cast<std::int64_t>(std::max(expected, std::size_t{1})), encoding), Fill::none)),
      limit_(limit),
      too_many_(std::move(too_many)) {}

std::span<std::byte> Staging::room(std::size_t) {
    const std::size_t width = slot_bytes(encoding());
    if (used_ == block_->size()) {
        const std::size_t slots = used_ / width;
        // One more than may come, so that it can come and be refused.
        const std::size_t wanted = std::min(slots + std::max(slots / 2, kFirstSlots), limit_ + 1);
        block_ = HostBlock::resized(std::move(block_), std::max(wanted, slots + 1) * width, used_);
    }
    return {block_->data() + used_, block_->size() - used_};
}

void Staging::filled(std::size_t slots) {
    used_ += slots * slot_bytes(encoding());
    const std::size_t count = used_ / slot_bytes(encoding());
    if (count > limit_) limit_ = too_many_(count);
}

Ref<Carrier> Staging::finish() { throw StateError("staged values are no carrier"); }

}  // namespace carrier::python
