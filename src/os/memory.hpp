// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>

namespace carrier::os {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

/// Bytes of a page.
std::size_t page_size() noexcept;

/// Zeroed pages, null when refused. From `kHugePage` on they are aligned to it where address space allows,
/// and the system is asked for huge pages, as long as `huge` wants that.
std::byte* map_pages(std::size_t bytes, bool huge) noexcept;
void unmap_pages(std::byte* address, std::size_t bytes) noexcept;
/// Moves a mapping to a larger size, or cuts it; keeps contents, not the address. Null when refused:
/// unchanged.
std::byte* remap_pages(std::byte* address, std::size_t from, std::size_t to) noexcept;

void* allocate(std::size_t bytes, bool zeroed) noexcept;
void deallocate(void* memory) noexcept;

/// Memory and swap of the machine: more can never be held.
std::size_t total_memory() noexcept;

}  // namespace carrier::os
