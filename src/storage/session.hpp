// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "carrier/session.hpp"
#include "os/unique_fd.hpp"

namespace carrier::storage {

/// One session directory of this process. It is locked under a name that no reaper looks at and then renamed,
/// so that it is never seen unlocked. Kept by the blocks that have files in it, even when it is removed.
class Session {
  public:
    /// The process's session, made when there is none. May ask the host for the parent folder, so the caller
    /// holds no mutex. OsError when it cannot be made.
    static std::shared_ptr<Session> current();
    /// Makes the next `current` begin anew: somebody removed this one's directory.
    static void forget(const Session& gone) noexcept;

    explicit Session(const std::string& parent);
    ~Session();
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;

    /// Absolute.
    const std::string& path() const noexcept { return path_; }
    /// Descriptor of the directory; it holds the lock.
    int directory() const noexcept { return directory_.get(); }
    /// Removes the directory with its files; only the process that made it does. Idempotent.
    void remove() noexcept;
    /// Removes all sessions of this process. The caller holds no mutex.
    static void remove_all() noexcept;
    /// A file name that this session has not given out.
    std::string new_name();

    // Around a fork, see storage/fork.cpp.
    static void before_fork() noexcept;
    static void after_fork() noexcept;
    static void in_child() noexcept;

  private:
    std::string path_;
    std::uint32_t generation_;  // of the process that made it
    bool removed_ = false;
    os::UniqueFd directory_;
    std::atomic<std::uint64_t> names_{0};
    // All sessions of the process, under the mutex.
    Session* next_ = nullptr;
    Session* previous_ = nullptr;
};

/// Registers what a fork needs, once. False when the system has no memory for it.
bool prepare_for_forks() noexcept;

}  // namespace carrier::storage
