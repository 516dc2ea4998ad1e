// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <atomic>
#include <cstdint>

namespace carrier::storage {

/// How many objects of a class are alive, for tests. It counts those made since it was first asked: until
/// then making an object costs one look at a flag. An object remembers what `made` said, and gives it back to
/// `gone`.
class LiveCount {
  public:
    bool made() noexcept {
        if (!counting_.load(std::memory_order_relaxed)) [[likely]]
            return false;
        alive_.fetch_add(1, std::memory_order_relaxed);
        return true;
    }
    void gone(bool counted) noexcept {
        if (counted) alive_.fetch_sub(1, std::memory_order_relaxed);
    }
    std::int64_t ask() noexcept {
        counting_.store(true, std::memory_order_relaxed);
        return alive_.load(std::memory_order_relaxed);
    }

  private:
    std::atomic<bool> counting_{false};
    std::atomic<std::int64_t> alive_{0};
};

}  // namespace carrier::storage
