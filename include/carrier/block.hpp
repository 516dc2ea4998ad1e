// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <span>

#include "carrier/ref.hpp"

namespace carrier {

/// A run of bytes on one medium. A block holds bytes; a carrier gives them meaning.
///
/// Blocks are counted by C++ alone, so that a view that was handed out keeps its block alive after the
/// carrier has let go, from any thread and without the host. Offsets and sizes are in bytes. Ranges are the
/// caller's to check: a block never clamps.
class CARRIER_API Block : public Counted {
  public:
    /// Bytes in the block now.
    std::size_t size() const noexcept { return size_; }
    /// Host address of the first byte, or null when the bytes are not in host-addressable memory.
    /// Never null for host memory, not even for an empty block.
    std::byte* data() const noexcept { return data_; }

    /// Copies [offset, offset + into.size()) out. OsError when the medium fails, and when it holds fewer
    /// bytes than it should: never invented zeros.
    virtual void read(std::size_t offset, std::span<std::byte> into) const = 0;
    /// Copies bytes in; the range lies inside the block. OsError when the medium fails.
    virtual void write(std::size_t offset, std::span<const std::byte> from) = 0;

  protected:
    Block() noexcept = default;
    std::size_t size_ = 0;
    std::byte* data_ = nullptr;
};

}  // namespace carrier
