// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "storage/transfer.hpp"

#include <algorithm>
#include <cstring>

#include "carrier/host_block.hpp"

namespace carrier {

void copy_blocks(const Block& from, std::size_t from_offset, Block& to, std::size_t to_offset,
                 std::size_t bytes, Pulse& pulse) {
    constexpr std::size_t kChunk = std::size_t{4} << 20;
    const Ref<HostBlock> chunk = HostBlock::allocate(std::min(bytes, kChunk), Fill::none);
    for (std::size_t done = 0; done < bytes; done += kChunk) {
        const std::span<std::byte> part(chunk->data(), std::min(kChunk, bytes - done));
        from.read(from_offset + done, part);
        to.write(to_offset + done, part);
        pulse();
    }
}

}  // namespace carrier
