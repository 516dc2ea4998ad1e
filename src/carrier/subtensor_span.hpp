// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once
#include <cstddef>
#include <cstdint>

#include "carrier/block.hpp"
#include "carrier/tensor.hpp"
#include "carrier/value.hpp"

namespace carrier {

/// IndexError unless every slot of `part` lies in its carrier, whose size may have changed since the Tensor
/// was made. `what` is the message's subject: "the source".
void require_reach(const Subtensor& part, const char* what);

/// Slots of a Subtensor as host memory: the carrier's own, or a copy of a file's.
struct SubtensorSpan {
    Ref<Block> block;            ///< what keeps the memory
    std::byte* begin = nullptr;  ///< slot `first` of the layout
    std::int64_t first = 0;
    std::size_t bytes = 0;
    std::size_t offset = 0;  ///< of `begin` in the carrier's block
    bool copied = false;     ///< what is written here has to be written back

    std::byte* at(std::int64_t slot, Encoding encoding) const noexcept {
        return begin + bytes_of(slot - first, encoding);
    }
};

/// The span of logical indices [start, stop), of which there is at least one. The carrier has a block, and
/// the slots are in it. Of all indices, `first` is 0.
SubtensorSpan span_of(const Subtensor& part, Encoding encoding, std::int64_t start, std::int64_t stop);
inline SubtensorSpan span_of(const Subtensor& part, Encoding encoding) {
    return span_of(part, encoding, 0, part.layout.size());
}

bool overlap(const std::byte* a, std::size_t a_bytes, const std::byte* b, std::size_t b_bytes) noexcept;

}  // namespace carrier
