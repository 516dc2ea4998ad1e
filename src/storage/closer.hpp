// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>

namespace carrier::storage {

/// Closes the descriptors of removed files. Giving a large file's space back takes the closing thread about
/// 0.1 ms per MiB, so a thread of its own does that; it lives while there is work. Needs no memory to take
/// work, and does the work at once where a thread or room for it is refused.
class Closer {
  public:
    /// Takes the descriptor over. `bytes`: how much space its closing gives back.
    static void close(int fd, std::size_t bytes) noexcept;
    /// Waits for what is pending; false when nothing was.
    static bool drain() noexcept;

    // Around a fork, see storage/fork.cpp.
    static void before_fork() noexcept;
    static void after_fork() noexcept;
    static void in_child() noexcept;
};

}  // namespace carrier::storage
