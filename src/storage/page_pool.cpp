// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "storage/page_pool.hpp"

#include <array>
#include <mutex>

#include "carrier/host_block.hpp"
#include "os/memory.hpp"
#include "os/process.hpp"

namespace carrier::storage {

namespace {

struct Kept {
    std::byte* address = nullptr;
    std::size_t bytes = 0;
};

constexpr std::size_t kSlots = 16;

// Oldest first. The mutex is a leaf: nothing else is taken under it.
struct Pool {
    std::mutex mutex;
    std::array<Kept, kSlots> kept;
    std::size_t count = 0;
    std::size_t bytes = 0;

    Kept remove(std::size_t at) noexcept {
        const Kept gone = kept[at];
        for (std::size_t i = at + 1; i < count; ++i) kept[i - 1] = kept[i];
        --count;
        bytes -= gone.bytes;
        return gone;
    }
};

// Constant from the start and never destroyed: blocks may be dropped while the process ends.
constinit Pool shared;

/// The mutex must be free in a forked child; where that cannot be arranged nothing is kept.
bool usable() noexcept {
    static const bool hooked = os::at_fork([] { shared.mutex.lock(); }, [] { shared.mutex.unlock(); },
                                           [] { shared.mutex.unlock(); });
    return hooked;
}
[[maybe_unused]] const bool ready = usable();

void unmap(const std::array<Kept, kSlots>& gone, std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) os::unmap_pages(gone[i].address, gone[i].bytes);
}

}  // namespace

std::byte* PagePool::take(std::size_t& bytes) noexcept {
    if (bytes > HostBlock::kPooledBytes || !usable()) return nullptr;
    const std::lock_guard lock(shared.mutex);
    for (std::size_t i = shared.count; i-- > 0;) {
        if (shared.kept[i].bytes < bytes || shared.kept[i].bytes - bytes > bytes / 8) continue;
        const Kept found = shared.remove(i);
        bytes = found.bytes;
        return found.address;
    }
    return nullptr;
}

bool PagePool::put(std::byte* address, std::size_t bytes) noexcept {
    if (bytes > HostBlock::kPooledBytes || !usable()) return false;
    std::array<Kept, kSlots> gone;
    std::size_t n = 0;
    {
        const std::lock_guard lock(shared.mutex);
        while (shared.count == kSlots || shared.bytes + bytes > HostBlock::kPooledBytes)
            gone[n++] = shared.remove(0);
        shared.kept[shared.count++] = {address, bytes};
        shared.bytes += bytes;
    }
    unmap(gone, n);
    return true;
}

bool PagePool::clear() noexcept {
    if (!usable()) return false;
    std::array<Kept, kSlots> gone;
    std::size_t n = 0;
    {
        const std::lock_guard lock(shared.mutex);
        while (shared.count > 0) gone[n++] = shared.remove(0);
    }
    unmap(gone, n);
    return n > 0;
}

}  // namespace carrier::storage
