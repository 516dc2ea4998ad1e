// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/snapshot.hpp"

#include <algorithm>

#include "carrier/errors.hpp"
#include "carrier/host.hpp"
#include "carrier/inner.hpp"

namespace carrier {

namespace {
constexpr std::int64_t kChunkSlots = std::int64_t{1} << 22;
}  // namespace

Snapshot::Snapshot(const Carrier& carrier) : exclusive_({&carrier}) {
    if (carrier.is_released())
        throw StateError("the " + carrier.kind() + " carrier has been released and its values are gone");
    encoding_ = encoding_with_bytes(carrier.dtype());
    size_ = carrier.size();
    acting_ = Ref<Carrier>(const_cast<Carrier*>(&Inner::acting(carrier)));
    block_ = Inner::block(*acting_);
}

Ref<Block> Snapshot::memory() const { return block_ && block_->data() != nullptr ? block_ : Ref<Block>(); }

void Snapshot::read(std::int64_t start, std::int64_t stop, std::span<std::byte> into) const {
    const std::size_t width = slot_bytes(encoding_);
    if (!block_) {
        for (std::int64_t i = start; i < stop; ++i) {
            Inner::check_live(*acting_);
            store_slot(encoding_, &into[static_cast<std::size_t>(i - start) * width],
                       normalize(encoding_, Inner::get(*acting_, i)));
        }
        return;
    }
    const auto run = [&] {
        block_->read(static_cast<std::size_t>(start) * width, into);
        if (encoding_ == Encoding::bool8) normalize_booleans(into);
    };
    if (into.size() <= kInlineBytes) return run();
    const Unlocked unlocked;
    run();
}

void Snapshot::pour(Intake& intake) const {
    const std::size_t width = slot_bytes(encoding_);
    Pulse pulse;
    for (std::int64_t at = 0; at < size_;) {
        const std::int64_t left = std::min(size_ - at, kChunkSlots);
        const std::span<std::byte> room = intake.room(static_cast<std::size_t>(size_ - at));
        const std::int64_t n = std::min(left, static_cast<std::int64_t>(room.size() / width));
        read(at, at + n, room.first(static_cast<std::size_t>(n) * width));
        intake.filled(static_cast<std::size_t>(n));
        at += n;
        pulse();
    }
}

Ref<Carrier> twin_of(const Carrier& carrier) {
    NewOptions options;
    options.writable = Inner::intrinsically_mutable(carrier);
    options.dtype = &carrier.dtype();
    std::unique_ptr<Intake> intake = carrier.open_intake(options, carrier.size());
    if (carrier.is_released()) {
        Ref<Carrier> twin = intake->finish();
        twin->release();
        return twin;
    }
    Snapshot(carrier).pour(*intake);
    return intake->finish();
}

}  // namespace carrier
