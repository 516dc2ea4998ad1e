// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#pragma once
#include <cstdint>
#include <memory>
#include <string>

#include "carrier/block.hpp"
#include "kinds/metal/module.hpp"

namespace carrier::metal {

/// The error of the family that a fault stands for: `asked` says what was wanted. Never returns.
[[noreturn]] void raise(const Status& status, const std::string& asked);

/// Bytes of one shared buffer: host memory to whoever reads and writes, a buffer to the kernel.
class MetalBlock final : public Block {
  public:
    /// Zeroed unless `empty`. MemoryError, with the numbers, when the device refuses. An empty block has no
    /// buffer: Metal knows none of length 0.
    static Ref<MetalBlock> allocate(Device& device, std::size_t bytes, bool empty);
    ~MetalBlock() override;

    void read(std::size_t offset, std::span<std::byte> into) const override;
    void write(std::size_t offset, std::span<const std::byte> from) override;

    Device& device() const noexcept { return device_; }
    Buffer& buffer() const noexcept { return *buffer_; }
    /// StateError in a child of the process that made the block.
    void require_own_process() const;

  private:
    explicit MetalBlock(Device& device);

    Device& device_;
    std::unique_ptr<Buffer> buffer_;
    std::uint32_t generation_;
};

}  // namespace carrier::metal
