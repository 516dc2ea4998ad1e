// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "carrier/block.hpp"

namespace carrier {

/// What fresh memory holds. `zero` costs nothing for large blocks, whose pages come zeroed from the system
/// when they are first touched; `none` is for bytes that are all written before they are read.
enum class Fill : std::uint8_t { none, zero };

/// Bytes in host memory: its own, or somebody else's.
///
/// Own memory up to `kMapped` bytes shares one allocation with its block. Larger memory is mapped,
/// page-aligned, on huge pages where that pays; a few freed mappings are kept for the next block of their
/// size, at most `kPooledBytes` in all. Data is aligned to 64 bytes from 512 bytes on, to 16 below.
///
/// The last reference may be dropped by any thread, with or without the host's lock: the lock is given up
/// around the unmapping of much memory, and dropping never needs memory.
class CARRIER_API HostBlock final : public Block {
  public:
    /// From this size on a block is mapped.
    static constexpr std::size_t kMapped = std::size_t{1} << 20;
    /// Most that freed mappings may hold. They go at once when memory is refused.
    static constexpr std::size_t kPooledBytes = std::size_t{32} << 20;

    /// MemoryError, with the numbers, when the system refuses or cannot ever hold so much.
    static Ref<HostBlock> allocate(std::size_t bytes, Fill fill);
    /// Foreign memory: never initialised, never freed. `on_last_use` runs once, when the last reference goes,
    /// on whichever thread that is; it must not throw.
    static Ref<HostBlock> wrap(std::byte* address, std::size_t bytes, std::function<void()> on_last_use = {});
    /// A block of `bytes` that begins with the first `keep` bytes of `block` (at most both sizes); the rest
    /// is not initialised. Takes over a block that nobody else sees and reuses its memory where it can:
    /// moving pages costs no copy. MemoryError leaves nothing behind: `block` is dropped.
    static Ref<HostBlock> resized(Ref<HostBlock> block, std::size_t bytes, std::size_t keep);

    void read(std::size_t offset, std::span<std::byte> into) const override;
    void write(std::size_t offset, std::span<const std::byte> from) override;

    /// Gives the freed mappings that are kept for reuse back to the system.
    static void trim_pool() noexcept;
    /// For tests: how many blocks made since the first call are alive. The first call begins the count.
    static std::int64_t live() noexcept;

    ~HostBlock() override;
    static void operator delete(void* memory) noexcept;

  private:
    HostBlock(std::byte* data, std::size_t size) noexcept;
    static Ref<HostBlock> map_block(std::size_t bytes, Fill fill);
    static constexpr std::size_t kCounted = 1;
    std::size_t mapped() const noexcept { return mapped_ & ~kCounted; }
    void set_mapped(std::size_t bytes) noexcept { mapped_ = bytes | (mapped_ & kCounted); }

    // Bytes of the mapping, 0 when the memory is not mapped; whole pages, so the lowest bit is free to say
    // that `live` counts the block. This keeps the header at 48 bytes.
    std::size_t mapped_ = 0;
    std::function<void()>* owner_ = nullptr;  // of foreign memory
};

}  // namespace carrier
