// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/transfer.hpp"

#include <algorithm>
#include <vector>

#include "carrier/inner.hpp"
#include "storage/transfer.hpp"

namespace carrier {

namespace {

constexpr std::int64_t kChunkSlots = std::int64_t{1} << 16;

void slots_to_block(const Carrier& from, Encoding encoding, Block& to, std::int64_t count, Pulse& pulse) {
    const std::size_t width = slot_bytes(encoding);
    std::vector<std::byte> chunk(static_cast<std::size_t>(std::min(count, kChunkSlots)) * width);
    for (std::int64_t begin = 0; begin < count; begin += kChunkSlots) {
        const std::int64_t n = std::min(kChunkSlots, count - begin);
        for (std::int64_t i = 0; i < n; ++i)
            store_slot(encoding, chunk.data() + static_cast<std::size_t>(i) * width,
                       normalize(encoding, Inner::get(from, begin + i)));
        to.write(static_cast<std::size_t>(begin) * width,
                 std::span(chunk).first(static_cast<std::size_t>(n) * width));
        pulse();
    }
}

void block_to_slots(const Block& from, Encoding encoding, Carrier& to, std::int64_t count, Pulse& pulse) {
    const std::size_t width = slot_bytes(encoding);
    std::vector<std::byte> chunk(static_cast<std::size_t>(std::min(count, kChunkSlots)) * width);
    for (std::int64_t begin = 0; begin < count; begin += kChunkSlots) {
        const std::int64_t n = std::min(kChunkSlots, count - begin);
        from.read(static_cast<std::size_t>(begin) * width,
                  std::span(chunk).first(static_cast<std::size_t>(n) * width));
        for (std::int64_t i = 0; i < n; ++i)
            Inner::set(
                to, begin + i,
                to_value(encoding, load_slot(encoding, chunk.data() + static_cast<std::size_t>(i) * width)));
        pulse();
    }
}

void slots_to_slots(const Carrier& from, Carrier& to, std::int64_t count, Pulse& pulse) {
    for (std::int64_t i = 0; i < count; ++i) {
        Inner::set(to, i, Inner::get(from, i));
        if (i % kChunkSlots == 0) pulse();
    }
}

}  // namespace

void transfer(const Carrier& from, Carrier& to, std::int64_t count, bool fresh) {
    Pulse pulse(fresh);
    from.dtype();
    to.dtype();
    const Encoding encoding = from.hot().encoding;
    const Ref<Block> source = Inner::block(from);
    const Ref<Block> target = Inner::block(to);
    if (source && target) {
        const std::size_t bytes = static_cast<std::size_t>(count) * slot_bytes(encoding);
        if (bytes <= kInlineBytes) return copy_blocks(*source, 0, *target, 0, bytes, pulse);
        const Unlocked unlocked;
        copy_blocks(*source, 0, *target, 0, bytes, pulse);
    } else if (target) {
        slots_to_block(from, encoding, *target, count, pulse);
    } else if (source) {
        block_to_slots(*source, encoding, to, count, pulse);
    } else {
        slots_to_slots(from, to, count, pulse);
    }
}

}  // namespace carrier
