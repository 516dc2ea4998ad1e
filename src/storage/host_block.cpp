// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/host_block.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "carrier/errors.hpp"
#include "os/memory.hpp"
#include "storage/live_count.hpp"
#include "storage/page_pool.hpp"

namespace carrier {

static_assert(sizeof(HostBlock) == 48, "a million small blocks are made and held: keep the header small");

namespace {

/// Blocks from here on are checked against what the machine has: where memory is overcommitted, the system
/// would grant what it can never give.
constexpr std::size_t kImplausible = std::size_t{1} << 30;
/// Unmapping this much takes long enough to let the host's other threads run.
constexpr std::size_t kSlowToUnmap = std::size_t{8} << 20;

storage::LiveCount alive;

[[noreturn]] void refuse(std::size_t bytes) {
    throw MemoryError("cannot allocate " + std::to_string(bytes) + " bytes of host memory (the machine has " +
                      std::to_string(os::total_memory()) + " with swap); release carriers or evict them");
}

constexpr std::size_t alignment_of(std::size_t bytes) noexcept { return bytes < 512 ? 16 : 64; }

std::byte* aligned(std::byte* p, std::size_t to) noexcept {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(p) + to - 1) & ~(to - 1));
}

void* take(std::size_t bytes, bool zeroed) noexcept {
    void* p = os::allocate(bytes, zeroed);
    if (p == nullptr && storage::PagePool::clear()) p = os::allocate(bytes, zeroed);
    return p;
}

}  // namespace

HostBlock::HostBlock(std::byte* data, std::size_t size) noexcept : mapped_(alive.made() ? kCounted : 0) {
    size_ = size;
    data_ = data;
}

HostBlock::~HostBlock() {
    alive.gone((mapped_ & kCounted) != 0);
    if (mapped() != 0 && !storage::PagePool::put(data_, mapped())) {
        if (mapped() >= kSlowToUnmap) {
            const Unlocked unlocked;
            os::unmap_pages(data_, mapped());
        } else {
            os::unmap_pages(data_, mapped());
        }
    }
    if (owner_ != nullptr) {
        (*owner_)();
        delete owner_;
    }
}

void HostBlock::operator delete(void* memory) noexcept { os::deallocate(memory); }

Ref<HostBlock> HostBlock::allocate(std::size_t bytes, Fill fill) {
    if (bytes >= kMapped) return map_block(bytes, fill);
    const std::size_t align = alignment_of(bytes);
    // malloc aligns to 16, so the data begins at most this much behind the header.
    constexpr std::size_t header = (sizeof(HostBlock) + 15) / 16 * 16;
    const std::size_t room = header + (align - 16) + std::max<std::size_t>(bytes, 1);
    auto* const memory = static_cast<std::byte*>(take(room, fill == Fill::zero));
    if (memory == nullptr) refuse(bytes);
    return Ref<HostBlock>(new (memory) HostBlock(aligned(memory + sizeof(HostBlock), align), bytes));
}

Ref<HostBlock> HostBlock::map_block(std::size_t bytes, Fill fill) {
    const std::size_t page = os::page_size();
    if (bytes > PTRDIFF_MAX - os::kHugePage || (bytes >= kImplausible && bytes > os::total_memory()))
        refuse(bytes);
    void* const header = take(sizeof(HostBlock), false);
    if (header == nullptr) refuse(bytes);
    const std::size_t need = (bytes + page - 1) / page * page;
    std::size_t mapped = need;
    std::byte* pages = storage::PagePool::take(mapped);
    if (pages != nullptr) {
        if (fill == Fill::zero) std::memset(pages, 0, bytes);
    } else {
        pages = os::map_pages(need, true);
        if (pages == nullptr && storage::PagePool::clear()) pages = os::map_pages(need, true);
        mapped = need;
    }
    if (pages == nullptr) {
        os::deallocate(header);
        refuse(bytes);
    }
    auto* const block = new (header) HostBlock(pages, bytes);
    block->set_mapped(mapped);
    return Ref<HostBlock>(block);
}

Ref<HostBlock> HostBlock::wrap(std::byte* address, std::size_t bytes, std::function<void()> on_last_use) {
    std::unique_ptr<std::function<void()>> owner;
    if (on_last_use) owner = std::make_unique<std::function<void()>>(std::move(on_last_use));
    void* const header = take(sizeof(HostBlock), false);
    if (header == nullptr) refuse(sizeof(HostBlock));
    auto* const block = new (header) HostBlock(address, bytes);
    block->owner_ = owner.release();
    return Ref<HostBlock>(block);
}

Ref<HostBlock> HostBlock::resized(Ref<HostBlock> block, std::size_t bytes, std::size_t keep) {
    if (block->mapped() != 0 && bytes >= kMapped && block->unique()) {
        const std::size_t page = os::page_size();
        if (bytes > PTRDIFF_MAX - os::kHugePage || (bytes >= kImplausible && bytes > os::total_memory()))
            refuse(bytes);
        const std::size_t need = (bytes + page - 1) / page * page;
        if (need != block->mapped()) {
            std::byte* pages = os::remap_pages(block->data_, block->mapped(), need);
            if (pages == nullptr && storage::PagePool::clear())
                pages = os::remap_pages(block->data_, block->mapped(), need);
            if (pages == nullptr) refuse(bytes);
            block->data_ = pages;
            block->set_mapped(need);
        }
        block->size_ = bytes;
        return block;
    }
    Ref<HostBlock> other = allocate(bytes, Fill::none);
    std::memcpy(other->data(), block->data(), keep);
    return other;
}

void HostBlock::read(std::size_t offset, std::span<std::byte> into) const {
    if (!into.empty()) std::memmove(into.data(), data_ + offset, into.size());
}

void HostBlock::write(std::size_t offset, std::span<const std::byte> from) {
    if (!from.empty()) std::memmove(data_ + offset, from.data(), from.size());
}

void HostBlock::trim_pool() noexcept { storage::PagePool::clear(); }

std::int64_t HostBlock::live() noexcept { return alive.ask(); }

}  // namespace carrier
