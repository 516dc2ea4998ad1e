// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/undo.hpp"

#include <algorithm>

#include "carrier/errors.hpp"
#include "carrier/inner.hpp"

namespace carrier {

namespace {
constexpr std::size_t kInMemory = std::size_t{32} << 20;
constexpr std::size_t kChunk = std::size_t{4} << 20;
}  // namespace

SlotUndo::SlotUndo(Carrier& onto, std::size_t expected) : onto_(onto) { saved_.reserve(expected); }

SlotUndo::~SlotUndo() {
    for (auto s = saved_.rbegin(); s != saved_.rend() && !onto_.is_released(); ++s) {
        try {
            Inner::set(onto_, s->slot, s->value);
        } catch (...) {
            // The refusal that is in flight is the one to report.
        }
    }
}

void SlotUndo::save(std::int64_t slot) { saved_.push_back({slot, Inner::get(onto_, slot)}); }

void SlotUndo::set(std::int64_t slot, const Value& value) {
    save(slot);
    Inner::set(onto_, slot, value);
    if (onto_.is_released())
        throw StateError("the " + onto_.kind() + " carrier was released by a hook while it was written");
}

BlockUndo::BlockUndo(Block& onto, std::size_t offset, std::size_t bytes) : onto_(onto), offset_(offset) {
    if (bytes == 0) return;
    if (bytes <= kInMemory) {
        memory_ = HostBlock::allocate(bytes, Fill::none);
    } else {
        memory_ = HostBlock::allocate(kChunk, Fill::none);
        file_ = FileBlock::create();
    }
}

void BlockUndo::save(std::size_t bytes) {
    if (bytes == 0) return;
    if (!file_) {
        onto_.read(offset_ + saved_, {memory_->data() + saved_, bytes});
        saved_ += bytes;
        return;
    }
    for (std::size_t done = 0; done < bytes; done += kChunk) {
        const std::span<std::byte> part(memory_->data(), std::min(kChunk, bytes - done));
        onto_.read(offset_ + saved_ + done, part);
        file_->append(part);
    }
    saved_ += bytes;
}

BlockUndo::~BlockUndo() {
    try {
        if (!file_) {
            if (saved_ != 0) onto_.write(offset_, {memory_->data(), saved_});
            return;
        }
        for (std::size_t done = 0; done < saved_; done += kChunk) {
            const std::span<std::byte> part(memory_->data(), std::min(kChunk, saved_ - done));
            file_->read(done, part);
            onto_.write(offset_ + done, part);
        }
    } catch (...) {
        // The medium refuses both ways; the error that is in flight says why.
    }
}

}  // namespace carrier
