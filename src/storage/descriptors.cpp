// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "storage/descriptors.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <mutex>

#include "os/file.hpp"
#include "os/process.hpp"
#include "storage/session.hpp"

namespace carrier::storage {

namespace {

// Constant from the start and never destroyed: blocks may be dropped while the process ends.
struct State {
    std::mutex mutex;  // taken after the session's, before none
    std::array<FileBlock*, Descriptors::kMost> open{};
    std::size_t count = 0;
    std::size_t hand = 0;
    std::size_t capacity = 0;
    std::array<int, 64> extra{};  // descriptor + 1
};
constinit State state;

bool exhausted(int code) noexcept { return code == EMFILE || code == ENFILE; }

}  // namespace

void Descriptors::remove(std::size_t slot) noexcept {
    state.open[slot] = state.open[--state.count];
    state.open[slot]->slot_ = static_cast<std::uint32_t>(slot);
}

/// Closes the descriptor in a slot unless it is leased or, when sparing, was used lately.
bool Descriptors::close_at(std::size_t slot, bool sparing) noexcept {
    std::atomic<std::uint64_t>& word = state.open[slot]->lease_;
    std::uint64_t w = word.load(std::memory_order_relaxed);
    do {
        if ((w & (Lease::kUsed - 1)) != 0) return false;
        if (sparing && (w & Lease::kUsed) != 0) {
            word.fetch_and(~Lease::kUsed, std::memory_order_relaxed);
            return false;
        }
    } while (!word.compare_exchange_weak(w, 0, std::memory_order_acquire));
    remove(slot);
    os::close(static_cast<int>(w >> Lease::kShift) - 1);
    return true;
}

bool Descriptors::evict() noexcept {
    for (const bool sparing : {true, false}) {
        for (std::size_t n = state.count; n > 0; --n) {
            state.hand = state.hand + 1 < state.count ? state.hand + 1 : 0;
            if (close_at(state.hand, sparing)) return true;
        }
    }
    return false;
}

/// Room for one more; false when every descriptor in the cache is leased.
bool Descriptors::make_room() noexcept {
    if (state.capacity == 0) {
        const std::size_t limit = os::descriptor_limit();
        state.capacity = limit == 0 ? kMost : std::clamp<std::size_t>(limit / 4, 1, kMost);
    }
    while (state.count >= state.capacity) {
        if (!evict()) return state.count < kMost;
    }
    return true;
}

/// Opens; when no descriptor is left, lives with half as many and tries again.
template <class Open>
int Descriptors::persist(Open&& open) noexcept {
    for (;;) {
        os::UniqueFd fd = open();
        if (fd || !exhausted(errno)) return fd.detach();
        const int code = errno;
        const std::size_t before = state.count;
        if (before == 0) return -1;
        state.capacity = std::max<std::size_t>(1, before / 2);
        while (state.count > before / 2 && evict()) {
        }
        errno = code;
        if (state.count == before) return -1;
    }
}

void Descriptors::insert(const FileBlock& block, int fd, std::uint64_t leases) noexcept {
    // Blocks are made mutable; a const one is only read through.
    auto& shared = const_cast<FileBlock&>(block);
    shared.slot_ = static_cast<std::uint32_t>(state.count);
    state.open[state.count++] = &shared;
    shared.lease_.store((static_cast<std::uint64_t>(fd) + 1) << Lease::kShift | Lease::kUsed | leases,
                        std::memory_order_release);
}

int Descriptors::open_file(const FileBlock& block, int flags) noexcept {
    const int fd = persist([&] {
        if (block.generation_ != os::generation())
            return os::open(block.path_.c_str(), O_RDONLY | O_NOFOLLOW | flags);
        return os::openat(block.session_->directory(), block.name(), O_RDWR | O_NOFOLLOW | flags);
    });
    if (fd < 0 || block.inode_ == 0) return fd;
    struct stat now;
    if (os::fstat(fd, now) == 0 && now.st_ino == block.inode_) return fd;
    os::close(fd);
    errno = ENOENT;  // another file has our name
    return -1;
}

int Descriptors::create(const Session& session, const char* name) noexcept {
    const std::lock_guard lock(state.mutex);
    constexpr int kFlags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW;
    return persist([&] { return os::openat(session.directory(), name, kFlags, 0600); });
}

void Descriptors::adopt(FileBlock& block, int fd) noexcept {
    const std::lock_guard lock(state.mutex);
    if (make_room())
        insert(block, fd, 0);
    else
        os::close(fd);
}

int Descriptors::open_extra(const FileBlock& block, int flags) noexcept {
    const std::lock_guard lock(state.mutex);
    const int fd = open_file(block, flags);
    if (fd >= 0) *std::find(state.extra.begin(), state.extra.end() - 1, 0) = fd + 1;
    return fd;
}

void Descriptors::close_extra(int fd) noexcept {
    const std::lock_guard lock(state.mutex);
    const auto at = std::find(state.extra.begin(), state.extra.end(), fd + 1);
    if (at != state.extra.end()) *at = 0;
    os::close(fd);
}

int Descriptors::retire(FileBlock& block) noexcept {
    const std::lock_guard lock(state.mutex);
    block.discarded_.store(true, std::memory_order_relaxed);
    std::uint64_t w = block.lease_.load(std::memory_order_relaxed);
    do {
        if (w >> Lease::kShift == 0 || (w & (Lease::kUsed - 1)) != 0) return -1;
    } while (!block.lease_.compare_exchange_weak(w, 0, std::memory_order_acquire));
    remove(block.slot_);
    return static_cast<int>(w >> Lease::kShift) - 1;
}

void Descriptors::shrink() noexcept {
    const std::lock_guard lock(state.mutex);
    while (evict()) {
    }
}

void Lease::open() {
    int code = 0;
    {
        const std::lock_guard lock(state.mutex);
        const std::uint64_t word = block_->lease_.load(std::memory_order_relaxed);
        if (word >> kShift != 0) {
            // Opened meanwhile. Nobody closes it while we hold the mutex.
            block_->lease_.fetch_add(1, std::memory_order_acquire);
            fd_ = static_cast<int>(word >> kShift) - 1;
            return;
        }
        if (block_->discarded_.load(std::memory_order_relaxed)) {
            code = ENOENT;
        } else {
            const bool room = Descriptors::make_room();
            fd_ = Descriptors::open_file(*block_, 0);
            code = errno;
            if (fd_ >= 0 && room) return Descriptors::insert(*block_, fd_, 1);
            if (fd_ >= 0) {
                *std::find(state.extra.begin(), state.extra.end() - 1, 0) = fd_ + 1;
                own_ = true;
                return;
            }
        }
    }
    block_->fail(code, "open the file");
}

void Lease::give_back() noexcept {
    // In a child that was forked meanwhile everything is closed already.
    if (born_ != os::generation()) return;
    if (own_)
        Descriptors::close_extra(fd_);
    else
        block_->lease_.fetch_sub(1, std::memory_order_release);
}

void Descriptors::before_fork() noexcept { state.mutex.lock(); }

void Descriptors::after_fork() noexcept { state.mutex.unlock(); }

void Descriptors::in_child() noexcept {
    for (std::size_t i = 0; i < state.count; ++i) {
        const std::uint64_t w = state.open[i]->lease_.exchange(0, std::memory_order_relaxed);
        os::close(static_cast<int>(w >> Lease::kShift) - 1);
    }
    state.count = 0;
    for (int& fd : state.extra)
        if (fd != 0) os::close(std::exchange(fd, 0) - 1);
    state.mutex.unlock();
}

}  // namespace carrier::storage
