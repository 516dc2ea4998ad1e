// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "os/unique_fd.hpp"

/// Thin functions over single system calls: O_CLOEXEC always, EINTR retried, errno left for the caller, who
/// knows what to say. Those that return int give 0, or -1 with errno.
namespace carrier::os {

UniqueFd open(const char* path, int flags, mode_t mode = 0) noexcept;
UniqueFd openat(int directory, const char* name, int flags, mode_t mode = 0) noexcept;

/// Bytes moved, as the system says; fewer than asked is no error here.
ssize_t pread(int fd, std::byte* into, std::size_t bytes, std::size_t offset) noexcept;
ssize_t pwrite(int fd, const std::byte* from, std::size_t bytes, std::size_t offset) noexcept;

/// Takes disk blocks for the range without changing the file's length.
int reserve(int fd, std::size_t offset, std::size_t bytes) noexcept;
int ftruncate(int fd, std::size_t bytes) noexcept;
int fstat(int fd, struct stat& into) noexcept;
/// Length of the file, -1 with errno. Half the price of fstat; moves the file position, which nobody uses.
std::int64_t file_length(int fd) noexcept;
int fstatat(int directory, const char* name, struct stat& into) noexcept;
int fchmod(int fd, mode_t mode) noexcept;
int chmod(const char* path, mode_t mode) noexcept;
int unlinkat(int directory, const char* name) noexcept;
int rmdir(const char* path) noexcept;
int remove_directory_at(int parent, const char* name) noexcept;
/// Fills the X's in, as mkdtemp does.
int mkdtemp(std::string& pattern) noexcept;
int rename(const char* from, const char* to) noexcept;
/// An exclusive advisory lock of the open file, not waiting.
int try_lock(int fd) noexcept;
/// Closes what `fd` refers to, however long that takes, while the number stays taken by `instead`: a fork in
/// the meantime leaves the child a number that is still ours.
void close_in_place(int fd, int instead) noexcept;
/// The limit on open descriptors, 0 when unknown.
std::size_t descriptor_limit() noexcept;
/// The working directory; empty with errno when it is gone.
std::string working_directory();
/// Asks the system to begin writing the range out; a hint.
void start_writing(int fd, std::size_t offset, std::size_t bytes) noexcept;

struct FileSystem {
    bool in_memory = false;     // tmpfs and the like
    std::size_t available = 0;  // bytes an ordinary user can still take
};
std::optional<FileSystem> file_system(int fd) noexcept;

/// Bytes of the range that are in the page cache; nothing when the system cannot tell.
std::optional<std::size_t> cached_bytes(int fd, std::size_t offset, std::size_t bytes) noexcept;

struct MemoryState {
    std::size_t available = 0;  // without swapping, the limit of a control group included; 0 when unknown
    std::size_t unwritten = 0;  // in the page cache, on its way to disks
};
MemoryState memory_state() noexcept;

/// Entries of a directory, `.` and `..` left out.
class Directory {
  public:
    /// Reads through a descriptor of its own; false `operator bool` with errno when that fails.
    explicit Directory(int directory) noexcept;
    ~Directory();
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;
    explicit operator bool() const noexcept { return stream_ != nullptr; }
    /// The next name, null at the end.
    const char* next() noexcept;

  private:
    void* stream_;
};

}  // namespace carrier::os
