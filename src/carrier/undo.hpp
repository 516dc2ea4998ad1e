// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once
#include <cstdint>
#include <vector>

#include "carrier/block.hpp"
#include "carrier/carrier.hpp"
#include "carrier/file_block.hpp"
#include "carrier/host_block.hpp"

/// What makes an in-place write all or nothing where the medium, or a hook, can refuse in the middle.
namespace carrier {

/// Old values of slots that were written one by one: unless forgotten, they are written back, last first.
class SlotUndo {
  public:
    SlotUndo(Carrier& onto, std::size_t expected);
    ~SlotUndo();
    SlotUndo(const SlotUndo&) = delete;
    SlotUndo& operator=(const SlotUndo&) = delete;
    /// Saves the slot, which somebody else is about to write.
    void save(std::int64_t slot);
    /// Saves the slot, then writes it. A hook may release the carrier meanwhile: StateError.
    void set(std::int64_t slot, const Value& value);
    void forget() noexcept { saved_.clear(); }

  private:
    struct Saved {
        std::int64_t slot;
        Value value;
    };
    Carrier& onto_;
    std::vector<Saved> saved_;
};

/// Old bytes of a range that is overwritten front to back. Large ranges are saved to a file of their own, so
/// that a write to a file never needs its payload in memory twice.
class BlockUndo {
  public:
    BlockUndo(Block& onto, std::size_t offset, std::size_t bytes);
    ~BlockUndo();
    BlockUndo(const BlockUndo&) = delete;
    BlockUndo& operator=(const BlockUndo&) = delete;
    /// Saves the next `bytes`, which are about to be overwritten.
    void save(std::size_t bytes);
    void forget() noexcept { saved_ = 0; }

  private:
    Block& onto_;
    std::size_t offset_;
    std::size_t saved_ = 0;
    Ref<HostBlock> memory_;
    Ref<FileBlock> file_;
};

}  // namespace carrier
