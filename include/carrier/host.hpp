// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <chrono>
#include <string>

#include "carrier/api.hpp"

/// What the library asks of the language it lives in. A C++ program leaves everything at its default.
///
/// A host language with a global lock (Python) fills in the table once, before the first carrier is made.
/// The library gives the host's lock up by itself, only around bulk work, and holds no mutex of its own while
/// it waits to get the lock back.
namespace carrier {

struct CARRIER_API Host {
    /// Gives the host's lock up; null when this thread did not hold it (then `resume` is not called).
    void* (*suspend)() noexcept = [](void) noexcept -> void* { return nullptr; };
    /// Takes the lock back; the argument is what `suspend` returned.
    void (*resume)(void*) noexcept = [](void*) noexcept {};
    /// Looks for pending signals; may throw what then unwinds the call (KeyboardInterrupt).
    void (*poll)() = [] {};
    /// Adds, drops one reference of a host object (see RefCounted). Callable with or without the lock.
    void (*retain)(void* object) noexcept = [](void*) noexcept {};
    void (*release)(void* object) noexcept = [](void*) noexcept {};
    /// Reports the exception in flight, which nobody can be given any more. Called inside a catch block.
    void (*unraisable)() noexcept = []() noexcept {};
    /// The folder for temporary files, asked once, when the first one is made. Empty: $TMPDIR, else /tmp.
    std::string (*temporary_directory)() = [] { return std::string(); };
};

/// The process-wide table.
CARRIER_API Host& host() noexcept;

/// The host's lock is given up for the scope.
class Unlocked {
  public:
    Unlocked() : state_(host().suspend()) {}
    ~Unlocked() {
        if (state_ != nullptr) host().resume(state_);
    }
    Unlocked(const Unlocked&) = delete;
    Unlocked& operator=(const Unlocked&) = delete;

  private:
    void* state_;
};

/// Lets signals in during long work: call it between chunks, only while nothing visible has changed.
/// It asks the host at most every 50 ms, since asking costs a lock hand-over when other threads run.
class Pulse {
  public:
    /// A disarmed pulse never polls: for commits in place, which run to their end once begun.
    explicit Pulse(bool armed = true) noexcept : armed_(armed), last_(std::chrono::steady_clock::now()) {}
    void operator()() {
        if (!armed_) return;
        const auto now = std::chrono::steady_clock::now();
        if (now - last_ < std::chrono::milliseconds(50)) return;
        last_ = now;
        host().poll();
    }

  private:
    bool armed_;
    std::chrono::steady_clock::time_point last_;
};

}  // namespace carrier
