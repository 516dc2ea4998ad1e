// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "kinds/metal/block.hpp"

#include <cstring>

#include "carrier/errors.hpp"
#include "kinds/metal/runtime.hpp"
#include "os/process.hpp"

namespace carrier::metal {

void raise(const Status& status, const std::string& asked) {
    switch (status.fault) {
        case Fault::too_large:
            throw MemoryError(asked + " exceeds the " + status.text +
                              " bytes that one buffer of the Metal device holds; split it, or use CPU");
        case Fault::no_memory:
            throw MemoryError(asked + " was refused by the " + status.text + "; release storage, or use CPU");
        default:
            throw StateError(asked + " failed on the Metal device, nothing was changed (" + status.text +
                             ")");
    }
}

MetalBlock::MetalBlock(Device& device) : device_(device), generation_(os::generation()) {
    static std::byte nothing[1];
    data_ = nothing;
}

Ref<MetalBlock> MetalBlock::allocate(Device& device, std::size_t bytes, bool empty) {
    Ref<MetalBlock> block(new MetalBlock(device));
    if (bytes == 0) return block;
    const Status status = device.allocate(bytes, block->buffer_);
    if (!status.ok()) raise(status, "Metal storage of " + std::to_string(bytes) + " bytes");
    block->data_ = block->buffer_->data();
    block->size_ = bytes;
    if (!empty) std::memset(block->data_, 0, bytes);
    return block;
}

MetalBlock::~MetalBlock() {
    // Metal does not survive a fork: in the child its buffers are left alone, for the child's life.
    if (generation_ != os::generation()) static_cast<void>(buffer_.release());
}

void MetalBlock::read(std::size_t offset, std::span<std::byte> into) const {
    require_own_process();
    if (!into.empty()) std::memcpy(into.data(), data_ + offset, into.size());
}

void MetalBlock::write(std::size_t offset, std::span<const std::byte> from) {
    require_own_process();
    if (!from.empty()) std::memmove(data_ + offset, from.data(), from.size());
}

void MetalBlock::require_own_process() const {
    if (generation_ != os::generation()) refuse_child();
}

}  // namespace carrier::metal
