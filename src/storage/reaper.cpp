// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "storage/reaper.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>

#include "carrier/errors.hpp"
#include "carrier/session.hpp"
#include "os/file.hpp"
#include "os/process.hpp"

namespace carrier {

namespace {

/// A directory that was made and never locked belongs to nobody after this long.
constexpr std::time_t kUnreadySeconds = 3600;

/// Opens an entry of `parent` if it is a directory of this user's with a name that begins so.
os::UniqueFd open_own(int parent, const char* name, std::string_view prefix, struct stat& found) noexcept {
    if (!std::string_view(name).starts_with(prefix)) return {};
    os::UniqueFd fd = os::openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    if (fd && (os::fstat(fd.get(), found) != 0 || found.st_uid != os::user_id())) fd.reset();
    return fd;
}

}  // namespace

void storage::clear_directory(int directory) noexcept {
    os::Directory entries(directory);
    if (!entries) return;
    while (const char* name = entries.next()) os::unlinkat(directory, name);
}

int reap_sessions(const std::string& parent) noexcept {
    const os::UniqueFd folder = os::open(parent.c_str(), O_RDONLY | O_DIRECTORY);
    if (!folder) return 0;
    os::Directory entries(folder.get());
    if (!entries) return 0;
    int reaped = 0;
    while (const char* name = entries.next()) {
        struct stat found;
        os::UniqueFd fd = open_own(folder.get(), name, storage::kReady, found);
        if (!fd) {
            fd = open_own(folder.get(), name, storage::kUnready, found);
            if (!fd || std::time(nullptr) - found.st_mtime < kUnreadySeconds) continue;
        }
        // Any error counts as alive.
        if (os::try_lock(fd.get()) != 0) continue;
        storage::clear_directory(fd.get());
        if (os::remove_directory_at(folder.get(), name) == 0) ++reaped;
    }
    return reaped;
}

std::vector<SessionInfo> list_sessions(const std::string& parent) {
    const os::UniqueFd folder = os::open(parent.c_str(), O_RDONLY | O_DIRECTORY);
    if (!folder) throw OsError(errno, "look for sessions in", parent);
    os::Directory entries(folder.get());
    if (!entries) throw OsError(errno, "look for sessions in", parent);
    std::vector<SessionInfo> sessions;
    while (const char* name = entries.next()) {
        struct stat found;
        const os::UniqueFd fd = open_own(folder.get(), name, storage::kReady, found);
        if (!fd) continue;
        SessionInfo info;
        info.path = parent + "/" + name;
        info.alive = os::try_lock(fd.get()) != 0;
        os::Directory files(fd.get());
        while (const char* file = files ? files.next() : nullptr) {
            struct stat s;
            if (os::fstatat(fd.get(), file, s) != 0) continue;
            ++info.files;
            info.bytes += static_cast<std::uint64_t>(s.st_blocks) * 512;
        }
        sessions.push_back(std::move(info));
    }
    return sessions;
}

}  // namespace carrier
