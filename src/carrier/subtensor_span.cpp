// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/subtensor_span.hpp"

#include <functional>
#include <string>
#include <utility>

#include "carrier/errors.hpp"
#include "carrier/host_block.hpp"
#include "carrier/inner.hpp"
#include "layout/slot_walk.hpp"

namespace carrier {

void require_reach(const Subtensor& part, const char* what) {
    const std::int64_t there = part.carrier->size();
    if (part.layout.cosize() <= there && part.offset <= there - part.layout.cosize()) return;
    throw IndexError(std::string(what) + " reaches beyond the " + std::to_string(there) +
                     " slots of its carrier");
}

SubtensorSpan span_of(const Subtensor& part, Encoding encoding, std::int64_t start, std::int64_t stop) {
    Ref<Block> block = Inner::block(*part.carrier);
    const auto [least, greatest] = block->data() != nullptr
                                       ? std::pair(std::int64_t{0}, part.layout.cosize() - 1)
                                       : slot_bounds(part.layout, start, stop);
    SubtensorSpan span;
    span.first = least;
    span.bytes = bytes_of(greatest - least + 1, encoding);
    span.offset = bytes_of(part.offset + least, encoding);
    if (block->data() != nullptr) {
        span.begin = block->data() + span.offset;
        span.block = std::move(block);
    } else {
        const Ref<HostBlock> copy = HostBlock::allocate(span.bytes, Fill::none);
        block->read(span.offset, {copy->data(), copy->size()});
        span.block = Ref<Block>(copy);
        span.begin = copy->data();
        span.copied = true;
    }
    return span;
}

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) noexcept {
    const std::less<const std::byte*> before;
    return before(a, b + b_bytes) && before(b, a + a_bytes);
}

}  // namespace carrier
