// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "carrier/api.hpp"

/// The hidden session directory: `<temporary directory>/.carrier-storage-<pid>-<random>`, mode 0700, made
/// when a process needs its first file and removed when it ends. A lock on it tells the living from the dead:
/// what a killed process left goes when the same user's next session is made in the same place.
namespace carrier {

/// A session directory that was found.
struct CARRIER_API SessionInfo {
    std::string path;
    /// Somebody holds its lock, or it could not be asked.
    bool alive = false;
    std::size_t files = 0;
    /// On disk.
    std::uint64_t bytes = 0;
};

/// Path of this process's session directory; empty while there is none.
CARRIER_API std::string session_directory();

/// Removes the session of this process with all its files. Blocks that are still alive lose their bytes.
/// Idempotent; does nothing in a forked child for its parent's session; a file made later starts a new
/// session. Runs by itself when the process ends through `exit` or `main`.
CARRIER_API void remove_session() noexcept;

/// Sessions of this user under `parent`.
CARRIER_API std::vector<SessionInfo> list_sessions(const std::string& parent);

/// Removes the sessions of this user under `parent` whose process is gone; how many.
CARRIER_API int reap_sessions(const std::string& parent) noexcept;

}  // namespace carrier
