// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>

namespace carrier::os {

/// Forks, while other threads run on: what is made when it is first needed (a static in a function, a handler
/// below) is made by a constant of its source file too, `ready`, as the library is loaded. A child whose
/// parent had a thread in the middle of making it would wait for that thread for ever.

/// Counts forks: a number that differs from a remembered one means that this is a child of the process that
/// remembered it. Constant until `watch_forks` is called.
std::uint32_t generation() noexcept;
bool watch_forks() noexcept;

/// Runs handlers around each fork from now on: `before` and `after` in the parent, `before` and `child` in
/// the child, on the thread that forks. Later registrations run first before, and last
/// after. False when the system has no memory for it.
bool at_fork(void (*before)(), void (*after)(), void (*child)()) noexcept;

/// Starts a thread that takes no signals: they are for the host's threads. False when the system refuses.
bool start_thread(std::thread& thread, std::function<void()> body) noexcept;

/// How many processors this process may run on now, at least 1.
unsigned processors() noexcept;

std::uint64_t random_number() noexcept;
/// Numbers of this process and of the user whose rights it has.
int process_id() noexcept;
unsigned user_id() noexcept;
/// The environment's value, empty when unset.
const char* environment(const char* name) noexcept;

}  // namespace carrier::os
