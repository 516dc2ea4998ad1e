// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "os/file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/testing.hpp"

namespace carrier::os {

namespace {

/// Makes the call until it is not interrupted.
template <class F>
auto retried(Call call, F&& f) noexcept -> decltype(f()) {
    for (;;) {
        if (!refused(call)) {
            const auto result = f();
            if (result >= 0) return result;
        }
        if (errno != EINTR) return -1;
    }
}

}  // namespace

void close(int fd) noexcept {
    // On Linux the descriptor is gone whatever close says; only a test's wish to fail is looked at.
    (void)refused(Call::close);
    const int before = errno;
    ::close(fd);
    errno = before;
}

UniqueFd open(const char* path, int flags, mode_t mode) noexcept {
    return UniqueFd(retried(Call::open, [&] { return ::open(path, flags | O_CLOEXEC, mode); }));
}

UniqueFd openat(int directory, const char* name, int flags, mode_t mode) noexcept {
    return UniqueFd(
        retried(Call::openat, [&] { return ::openat(directory, name, flags | O_CLOEXEC, mode); }));
}

ssize_t pread(int fd, std::byte* into, std::size_t bytes, std::size_t offset) noexcept {
    for (;;) {
        std::size_t n = bytes;
        if (!refused(Call::pread, n)) {
            const ssize_t done = ::pread(fd, into, n, static_cast<off_t>(offset));
            if (done >= 0) return done;
        }
        if (errno != EINTR) return -1;
    }
}

ssize_t pwrite(int fd, const std::byte* from, std::size_t bytes, std::size_t offset) noexcept {
    for (;;) {
        std::size_t n = bytes;
        if (!refused(Call::pwrite, n)) {
            const ssize_t done = ::pwrite(fd, from, n, static_cast<off_t>(offset));
            if (done >= 0) return done;
        }
        if (errno != EINTR) return -1;
    }
}

int reserve(int fd, std::size_t offset, std::size_t bytes) noexcept {
    return retried(Call::fallocate, [&] {
        return ::fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
    });
}

int ftruncate(int fd, std::size_t bytes) noexcept {
    return retried(Call::ftruncate, [&] { return ::ftruncate(fd, static_cast<off_t>(bytes)); });
}

int fstat(int fd, struct stat& into) noexcept {
    return retried(Call::fstat, [&] { return ::fstat(fd, &into); });
}

std::int64_t file_length(int fd) noexcept {
    return retried(Call::lseek, [&] { return static_cast<std::int64_t>(::lseek(fd, 0, SEEK_END)); });
}

int fstatat(int directory, const char* name, struct stat& into) noexcept {
    return retried(Call::fstat, [&] { return ::fstatat(directory, name, &into, AT_SYMLINK_NOFOLLOW); });
}

int fchmod(int fd, mode_t mode) noexcept {
    return retried(Call::fchmod, [&] { return ::fchmod(fd, mode); });
}

int chmod(const char* path, mode_t mode) noexcept {
    return retried(Call::chmod, [&] { return ::chmod(path, mode); });
}

int unlinkat(int directory, const char* name) noexcept {
    return retried(Call::unlinkat, [&] { return ::unlinkat(directory, name, 0); });
}

int rmdir(const char* path) noexcept {
    return retried(Call::rmdir, [&] { return ::rmdir(path); });
}

int remove_directory_at(int parent, const char* name) noexcept {
    return retried(Call::rmdir, [&] { return ::unlinkat(parent, name, AT_REMOVEDIR); });
}

int mkdtemp(std::string& pattern) noexcept {
    return retried(Call::mkdtemp, [&] { return ::mkdtemp(pattern.data()) != nullptr ? 0 : -1; });
}

int rename(const char* from, const char* to) noexcept {
    return retried(Call::rename, [&] { return ::rename(from, to); });
}

int try_lock(int fd) noexcept {
    return retried(Call::flock, [&] { return ::flock(fd, LOCK_EX | LOCK_NB); });
}

void close_in_place(int fd, int instead) noexcept {
    while (::dup3(instead, fd, O_CLOEXEC) < 0 && (errno == EINTR || errno == EBUSY)) {
    }
}

std::size_t descriptor_limit() noexcept {
    struct rlimit limit;
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? static_cast<std::size_t>(limit.rlim_cur) : 0;
}

std::string working_directory() {
    char* const path = ::getcwd(nullptr, 0);
    std::string result = path == nullptr ? "" : path;
    ::free(path);
    return result;
}

void start_writing(int fd, std::size_t offset, std::size_t bytes) noexcept {
    ::sync_file_range(fd, static_cast<off_t>(offset), static_cast<off_t>(bytes), SYNC_FILE_RANGE_WRITE);
}

std::optional<FileSystem> file_system(int fd) noexcept {
    struct statfs s;
    if (retried(Call::statfs, [&] { return ::fstatfs(fd, &s); }) != 0) return std::nullopt;
    constexpr auto kTmpfs = 0x01021994;
    constexpr auto kRamfs = 0x858458f6;
    const auto type = static_cast<std::uint32_t>(s.f_type);
    return FileSystem{type == kTmpfs || type == kRamfs,
                      static_cast<std::size_t>(s.f_bavail) * static_cast<std::size_t>(s.f_bsize)};
}

std::optional<std::size_t> cached_bytes(int fd, std::size_t offset, std::size_t bytes) noexcept {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    static std::atomic<bool> without_cachestat{false};
    if (!without_cachestat.load(std::memory_order_relaxed)) {
        constexpr long kCachestat = 451;  // Linux 6.5; not in every libc's list
        struct {
            std::uint64_t offset, length;
        } range{offset, bytes};
        struct {
            std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
        } stat{};
        if (!refused(Call::cachestat) && ::syscall(kCachestat, fd, &range, &stat, 0) == 0)
            return std::min(bytes, static_cast<std::size_t>(stat.cached) * page);
        if (errno == ENOSYS) without_cachestat.store(true, std::memory_order_relaxed);
    }
    const std::size_t begin = offset / page * page;
    const std::size_t length = offset + bytes - begin;
    if (refused(Call::mmap)) return std::nullopt;
    void* at = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd, static_cast<off_t>(begin));
    if (at == MAP_FAILED) return std::nullopt;
    std::size_t cached = 0;
    bool known = true;
    unsigned char pages[1024];
    for (std::size_t done = 0; done < length && known; done += sizeof pages * page) {
        const std::size_t part = std::min(length - done, sizeof pages * page);
        known = ::mincore(static_cast<std::byte*>(at) + done, part, pages) == 0;
        for (std::size_t i = 0; known && i < (part + page - 1) / page; ++i) cached += (pages[i] & 1u) * page;
    }
    ::munmap(at, length);
    if (!known) return std::nullopt;
    return std::min(bytes, cached);
}

namespace {

/// A small text file of the system; empty when it is not there.
std::size_t slurp(const char* path, char* into, std::size_t room) noexcept {
    const UniqueFd fd = open(path, O_RDONLY);
    if (!fd) return 0;
    const ssize_t n = retried(Call::read, [&] { return ::read(fd.get(), into, room - 1); });
    into[std::max<ssize_t>(n, 0)] = '\0';
    return static_cast<std::size_t>(std::max<ssize_t>(n, 0));
}

std::size_t number_in(const char* path) noexcept {
    char text[64];
    if (slurp(path, text, sizeof text) == 0) return 0;
    return static_cast<std::size_t>(std::strtoull(text, nullptr, 10));
}

}  // namespace

MemoryState memory_state() noexcept {
    char text[4096];
    if (slurp("/proc/meminfo", text, sizeof text) == 0) return {};
    const auto field = [&](const char* name) {
        const char* line = std::strstr(text, name);
        if (line == nullptr) return std::size_t{0};
        return static_cast<std::size_t>(std::strtoull(line + std::strlen(name), nullptr, 10)) << 10;
    };
    MemoryState state{field("MemAvailable:"), field("Dirty:") + field("Writeback:")};
    // Of a control group, version 2, as a container sees its own.
    const std::size_t limit = number_in("/sys/fs/cgroup/memory.max");
    if (limit != 0) {
        const std::size_t used = number_in("/sys/fs/cgroup/memory.current");
        state.available = std::min(state.available, limit > used ? limit - used : 0);
    }
    return state;
}

Directory::Directory(int directory) noexcept : stream_(nullptr) {
    if (refused(Call::opendir)) return;
    UniqueFd own = openat(directory, ".", O_RDONLY | O_DIRECTORY);
    if (!own) return;
    stream_ = ::fdopendir(own.get());
    if (stream_ != nullptr) own.detach();
}

Directory::~Directory() {
    if (stream_ != nullptr) ::closedir(static_cast<DIR*>(stream_));
}

const char* Directory::next() noexcept {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): each stream has one reader
    while (const dirent* entry = ::readdir(static_cast<DIR*>(stream_))) {
        if (std::strcmp(entry->d_name, ".") != 0 && std::strcmp(entry->d_name, "..") != 0)
            return entry->d_name;
    }
    return nullptr;
}

}  // namespace carrier::os
