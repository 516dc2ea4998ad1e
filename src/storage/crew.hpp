// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <functional>

#include "carrier/host.hpp"

namespace carrier::storage {

/// Runs `job(0) .. job(count - 1)`, in any order, on up to `threads` threads, the calling one among them; it
/// calls `pulse` between its jobs. Returns when all have ended. The first error of a job or of `pulse` stops
/// the rest and arrives here; where the system refuses a thread there are fewer.
///
/// A fork made by what `pulse` runs leaves the child without the other threads: there this is a StateError,
/// and what they would have used is left alone.
void run_jobs(std::size_t count, std::size_t threads, Pulse& pulse,
              const std::function<void(std::size_t)>& job);

/// Calls `pulse`; StateError in the child when that forked.
void checked(Pulse& pulse);

}  // namespace carrier::storage
