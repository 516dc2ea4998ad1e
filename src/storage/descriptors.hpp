// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "carrier/file_block.hpp"
#include "os/process.hpp"

namespace carrier::storage {

/// A file block's descriptor while it is used: opened when needed, not closed while leased.
///
/// The state is one word in the block: the descriptor plus one in the upper half (0: not open), a bit for
/// "used lately", and the number of leases. Taking and giving back is one atomic operation on it; only
/// opening and closing take the cache's mutex. A word without a descriptor has no leases, and only the holder
/// of the mutex changes the descriptor.
class Lease {
  public:
    /// OsError when the file cannot be opened.
    explicit Lease(const FileBlock& block) : block_(&block), born_(os::generation()) {
        std::uint64_t word = block.lease_.load(std::memory_order_relaxed);
        while (word >> kShift != 0) {
            if (block.lease_.compare_exchange_weak(word, (word | kUsed) + 1, std::memory_order_acquire)) {
                fd_ = static_cast<int>(word >> kShift) - 1;
                return;
            }
        }
        open();
    }
    ~Lease() { give_back(); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    int fd() const noexcept { return fd_; }

    static constexpr int kShift = 32;
    static constexpr std::uint64_t kUsed = std::uint64_t{1} << 31;

  private:
    void open();
    void give_back() noexcept;

    const FileBlock* block_;
    std::uint32_t born_;
    int fd_ = -1;
    bool own_ = false;  // too many leases for the cache: closed at once
};

/// Open descriptors of file blocks: a bounded cache that passes over what is leased and what was used since
/// it last looked (the clock algorithm). It takes at most 64 and a quarter of the process's limit, and halves
/// itself whenever the system has no descriptor left, so that others find some.
class Descriptors {
  public:
    static constexpr std::size_t kMost = 64;

    /// Makes a file in the session's directory, exclusively. -1 with errno.
    static int create(const Session& session, const char* name) noexcept;
    /// Hands a block's first descriptor to the cache, which closes it when it has no room.
    static void adopt(FileBlock& block, int fd) noexcept;
    /// Opens a second description of the block's file with more flags. Known to the cache, so that a forked
    /// child closes it. -1 with errno.
    static int open_extra(const FileBlock& block, int flags) noexcept;
    static void close_extra(int fd) noexcept;
    /// Takes the descriptor of a block that is done for out of the cache; -1 when there is none, or while it
    /// is leased: then the destructor asks again.
    static int retire(FileBlock& block) noexcept;
    /// Closes what is not leased. For who needs a descriptor.
    static void shrink() noexcept;

    // Around a fork, see storage/fork.cpp.
    static void before_fork() noexcept;
    static void after_fork() noexcept;
    static void in_child() noexcept;

  private:
    friend class Lease;
    // All under the mutex.
    static int open_file(const FileBlock& block, int flags) noexcept;
    static bool close_at(std::size_t slot, bool sparing) noexcept;
    static bool evict() noexcept;
    static bool make_room() noexcept;
    static void insert(const FileBlock& block, int fd, std::uint64_t leases) noexcept;
    static void remove(std::size_t slot) noexcept;
    template <class Open>
    static int persist(Open&& open) noexcept;
};

}  // namespace carrier::storage
