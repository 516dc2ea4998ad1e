// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "os/memory.hpp"

#include <sys/mman.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "os/testing.hpp"

namespace carrier::os {

namespace {

std::byte* map(void* at, std::size_t bytes, int protection, int flags) noexcept {
    if (refused(Call::mmap)) return nullptr;
    void* p = ::mmap(at, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
    return p == MAP_FAILED ? nullptr : static_cast<std::byte*>(p);
}

std::byte* align_up(std::byte* p, std::size_t to) noexcept {
    return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(p) + to - 1) & ~(to - 1));
}

/// Room for `bytes` at a multiple of the huge page, found by taking more and giving the edges back.
std::byte* map_aligned(std::size_t bytes, int protection, int flags) noexcept {
    std::byte* const whole = map(nullptr, bytes + kHugePage, protection, flags);
    if (whole == nullptr) return nullptr;
    std::byte* const inside = align_up(whole, kHugePage);
    if (inside != whole) ::munmap(whole, static_cast<std::size_t>(inside - whole));
    std::byte* const end = whole + bytes + kHugePage;
    if (end != inside + bytes) ::munmap(inside + bytes, static_cast<std::size_t>(end - (inside + bytes)));
    return inside;
}

void advise_huge(std::byte* address, std::size_t bytes) noexcept {
    if (!refused(Call::madvise)) ::madvise(address, bytes, MADV_HUGEPAGE);
}

}  // namespace

std::size_t page_size() noexcept {
    static const auto size = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return size;
}
namespace {
[[maybe_unused]] const std::size_t ready = page_size();
}

std::byte* map_pages(std::size_t bytes, bool huge) noexcept {
    constexpr int kAccess = PROT_READ | PROT_WRITE;
    if (bytes < kHugePage || !huge) return map(nullptr, bytes, kAccess, 0);
    std::byte* p = map_aligned(bytes, kAccess, 0);
    // Under a limit of address space the margin may be what is refused.
    if (p == nullptr) p = map(nullptr, bytes, kAccess, 0);
    if (p != nullptr) advise_huge(p, bytes);
    return p;
}

void unmap_pages(std::byte* address, std::size_t bytes) noexcept { ::munmap(address, bytes); }

std::byte* remap_pages(std::byte* address, std::size_t from, std::size_t to) noexcept {
    if (to <= from) {
        if (to < from) ::munmap(address + to, from - to);
        return address;
    }
    if (refused(Call::mremap)) return nullptr;
    void* p = MAP_FAILED;
    if (to >= kHugePage) {
        // Pages move by whole tables when both ends are aligned alike.
        if (std::byte* const room = map_aligned(to, PROT_NONE, MAP_NORESERVE)) {
            p = ::mremap(address, from, to, MREMAP_MAYMOVE | MREMAP_FIXED, room);
            if (p == MAP_FAILED) ::munmap(room, to);
        }
    }
    if (p == MAP_FAILED) p = ::mremap(address, from, to, MREMAP_MAYMOVE);
    if (p == MAP_FAILED) return nullptr;
    if (to >= kHugePage) advise_huge(static_cast<std::byte*>(p), to);
    return static_cast<std::byte*>(p);
}

void* allocate(std::size_t bytes, bool zeroed) noexcept {
    // glibc's calloc passes over what malloc keeps at hand for each thread, which small sizes come from.
    constexpr std::size_t kAtHand = 1024;
    if (refused(Call::malloc)) return nullptr;
    if (!zeroed) return std::malloc(bytes);
    if (bytes > kAtHand) return std::calloc(1, bytes);
    void* const memory = std::malloc(bytes);
    if (memory == nullptr) return nullptr;
    __asm__ volatile("" : : "r"(memory) : "memory");  // else the compiler makes one calloc of the two
    return std::memset(memory, 0, bytes);
}

void deallocate(void* memory) noexcept { std::free(memory); }

std::size_t total_memory() noexcept {
    struct sysinfo info;
    if (::sysinfo(&info) != 0) return SIZE_MAX / 2;
    return (static_cast<std::size_t>(info.totalram) + info.totalswap) * info.mem_unit;
}

}  // namespace carrier::os
