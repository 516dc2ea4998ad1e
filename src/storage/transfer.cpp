// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "storage/transfer.hpp"

#include <algorithm>

#include "carrier/host_block.hpp"
#include "storage/copy.hpp"
#include "storage/crew.hpp"
#include "storage/file_transfer.hpp"

namespace carrier {

namespace {

constexpr std::size_t kChunk = std::size_t{4} << 20;

void copy_through(const Block& from, std::size_t from_offset, Block& to, std::size_t to_offset,
                  std::size_t bytes, Pulse& pulse) {
    // On one block the ranges may overlap: then each byte is read before it is overwritten.
    const bool backwards = &from == &to && from_offset < to_offset;
    const Ref<HostBlock> chunk = HostBlock::allocate(std::min(bytes, kChunk), Fill::none);
    for (std::size_t done = 0; done < bytes; done += kChunk) {
        const std::size_t n = std::min(kChunk, bytes - done);
        const std::size_t at = backwards ? bytes - done - n : done;
        from.read(from_offset + at, {chunk->data(), n});
        to.write(to_offset + at, {chunk->data(), n});
        storage::checked(pulse);
    }
}

}  // namespace

void copy_blocks(const Block& from, std::size_t from_offset, Block& to, std::size_t to_offset,
                 std::size_t bytes, Pulse& pulse) {
    if (bytes == 0) return;
    const std::byte* const source = from.data();
    std::byte* const target = to.data();
    if (source != nullptr && target != nullptr)
        return storage::copy_memory(target + to_offset, source + from_offset, bytes, pulse);
    if (source != nullptr)
        if (auto* const file = dynamic_cast<FileBlock*>(&to))
            return FileTransfer::write(*file, to_offset, {source + from_offset, bytes}, pulse);
    if (target != nullptr)
        if (const auto* const file = dynamic_cast<const FileBlock*>(&from))
            return FileTransfer::read(*file, from_offset, {target + to_offset, bytes}, pulse);
    copy_through(from, from_offset, to, to_offset, bytes, pulse);
}

}  // namespace carrier
