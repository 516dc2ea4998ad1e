// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "storage/file_transfer.hpp"

#include <fcntl.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "carrier/host_block.hpp"
#include "os/file.hpp"
#include "storage/copy.hpp"
#include "storage/crew.hpp"
#include "storage/descriptors.hpp"

namespace carrier {

using storage::Descriptors;
using storage::Lease;

namespace {

/// What direct I/O asks of offsets, lengths and addresses wherever we have met it.
constexpr std::size_t kBlock = 4096;
/// Between looks at signals.
constexpr std::size_t kStep = std::size_t{4} << 20;

bool aligned(std::size_t n) noexcept { return n % kBlock == 0; }
bool aligned(const void* p) noexcept { return aligned(reinterpret_cast<std::uintptr_t>(p)); }
constexpr std::size_t round_up(std::size_t n) noexcept { return (n + kBlock - 1) / kBlock * kBlock; }

/// A second description of a file, for direct I/O. Refused on file systems that do not offer it.
class DirectFile {
  public:
    explicit DirectFile(const FileBlock& block) noexcept
        : fd_(Descriptors::open_extra(block, O_DIRECT)), born_(os::generation()) {}
    ~DirectFile() {
        // A child that was forked meanwhile has closed it already.
        if (fd_ >= 0 && born_ == os::generation()) Descriptors::close_extra(fd_);
    }
    DirectFile(const DirectFile&) = delete;
    DirectFile& operator=(const DirectFile&) = delete;
    explicit operator bool() const noexcept { return fd_ >= 0; }
    int fd() const noexcept { return fd_; }

  private:
    int fd_;
    std::uint32_t born_;
};

/// Of direct writing, the last time it was done, in bytes a second; before the first time, of a common disk.
std::atomic<double> direct_speed{1.2e9};

double speed(std::size_t bytes, std::chrono::steady_clock::time_point begin) noexcept {
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return static_cast<double>(bytes) / std::max(took.count(), 1e-9);
}

/// Refused for its shape, not for lack of anything: the page cache takes it.
bool unsuited(int code) noexcept { return code == EINVAL || code == EOPNOTSUPP || code == EFAULT; }

}  // namespace

/// The page cache begins to hold writers up when unwritten pages pass 15 % of the memory that is available.
bool FileTransfer::memory_is_short(std::size_t bytes) noexcept {
    const os::MemoryState memory = os::memory_state();
    const std::size_t bearable = memory.available / 8;
    return bytes > bearable || memory.unwritten > bearable - bytes;
}

void FileTransfer::write(FileBlock& to, std::size_t offset, std::span<const std::byte> from, Pulse& pulse) {
    if (from.empty()) return;
    to.require_own("write to");
    const Lease lease(to);
    const int fd = lease.fd();
    const std::size_t before = to.extent_;
    if (before != 0) to.require_whole(fd);
    const std::size_t end = offset + from.size();
    try {
        if (from.size() < kLargeWrite)
            write_buffered(to, fd, offset, from, pulse, false);
        else
            write_large(to, fd, offset, from, pulse);
    } catch (...) {
        if (end > before && !to.inherited()) os::ftruncate(fd, before);
        throw;
    }
    if (end > before) to.extent_ = end;
}

void FileTransfer::write_large(FileBlock& to, int fd, std::size_t offset, std::span<const std::byte> from,
                               Pulse& pulse) {
    const auto where = os::file_system(fd);
    const bool in_memory = where && where->in_memory;
    to.take_blocks(fd, offset + from.size());
    // Blocks that the file has, and the page cache has not, are written directly at the disk's full speed.
    const bool over_cold_blocks =
        offset + from.size() <= to.extent_ &&
        os::cached_bytes(fd, offset, from.size()).value_or(from.size()) < from.size() / 2;
    std::size_t done = 0;
    if (in_memory || !(over_cold_blocks || memory_is_short(from.size())))
        done = write_buffered(to, fd, offset, from, pulse, !in_memory);
    if (done == from.size()) return;
    const DirectFile direct(to);
    if (!direct) {
        write_buffered(to, fd, offset + done, from.subspan(done), pulse, false);
        return;
    }
    const auto begin = std::chrono::steady_clock::now();
    write_direct(to, fd, direct.fd(), offset + done, from.subspan(done), pulse);
    direct_speed.store(speed(from.size() - done, begin), std::memory_order_relaxed);
}

/// How far it came: to the end or, when asked so, to where the page cache turned out slower than the disk.
std::size_t FileTransfer::write_buffered(FileBlock& to, int fd, std::size_t offset,
                                         std::span<const std::byte> from, Pulse& pulse, bool until_slow) {
    constexpr std::size_t kWindow = 8 * kStep;
    auto begin = std::chrono::steady_clock::now();
    std::size_t done = 0;
    while (done < from.size()) {
        const std::size_t n = std::min(kStep, from.size() - done);
        to.put(fd, offset + done, from.subspan(done, n));
        done += n;
        storage::checked(pulse);
        if (!until_slow || done % kWindow != 0) continue;
        const bool slow = speed(kWindow, begin) < direct_speed.load(std::memory_order_relaxed) * 0.8;
        if (slow && from.size() - done >= kLargeWrite) break;
        begin = std::chrono::steady_clock::now();
    }
    return done;
}

void FileTransfer::write_direct(FileBlock& to, int fd, int direct, std::size_t offset,
                                std::span<const std::byte> from, Pulse& pulse) {
    // Whole blocks go directly; what is left at both ends, less than a block each, goes through the page
    // cache.
    const std::size_t head = round_up(offset) - offset;
    const std::size_t middle = (from.size() - head) / kBlock * kBlock;
    to.put(fd, offset, from.first(head));
    storage::run_jobs((middle + kWriteChunk - 1) / kWriteChunk, kThreads, pulse, [&](std::size_t i) {
        const std::size_t at = head + i * kWriteChunk;
        write_part(to, fd, direct, offset + at, from.subspan(at, std::min(kWriteChunk, head + middle - at)));
    });
    to.put(fd, offset + head + middle, from.subspan(head + middle));
}

void FileTransfer::write_part(FileBlock& to, int fd, int direct, std::size_t offset,
                              std::span<const std::byte> from) {
    Ref<HostBlock> buffer;
    const std::byte* source = from.data();
    if (!aligned(source)) {
        buffer = HostBlock::allocate(kWriteChunk, Fill::none);
        std::memcpy(buffer->data(), source, from.size());
        source = buffer->data();
    }
    std::size_t done = 0;
    while (done < from.size() && aligned(done)) {
        const ssize_t n = os::pwrite(direct, source + done, from.size() - done, offset + done);
        // A full disk is for the page cache's way to report, after it has waited for space that comes back.
        if (n < 0 && !unsuited(errno) && errno != ENOSPC && errno != EDQUOT)
            to.fail_range("write", from.size(), offset);
        if (n <= 0) break;
        done += static_cast<std::size_t>(n);
    }
    to.put(fd, offset + done, from.subspan(done));
}

void FileTransfer::read(const FileBlock& from, std::size_t offset, std::span<std::byte> into, Pulse& pulse) {
    if (into.empty()) return;
    const Lease lease(from);
    const int fd = lease.fd();
    if (into.size() < kLargeRead) {
        for (std::size_t done = 0; done < into.size(); done += kStep) {
            read_part(from, fd, offset + done, into.subspan(done, std::min(kStep, into.size() - done)));
            storage::checked(pulse);
        }
        return;
    }
    const bool warm = os::cached_bytes(fd, offset, into.size()).value_or(0) >= into.size() / 2;
    const DirectFile direct(from);
    const std::size_t threads = warm ? storage::copying_threads() : kThreads;
    const std::size_t head = std::min(into.size(), round_up(offset) - offset);
    read_part(from, fd, offset, into.first(head));
    storage::run_jobs((into.size() - head + kReadChunk - 1) / kReadChunk, threads, pulse, [&](std::size_t i) {
        const std::size_t at = head + i * kReadChunk;
        read_chunk(from, fd, direct ? direct.fd() : -1, offset + at,
                   into.subspan(at, std::min(kReadChunk, into.size() - at)));
    });
}

void FileTransfer::read_part(const FileBlock& from, int fd, std::size_t offset, std::span<std::byte> into) {
    for (std::size_t done = 0; done < into.size();) {
        const ssize_t n = os::pread(fd, into.data() + done, into.size() - done, offset + done);
        if (n < 0) from.fail_range("read", into.size(), offset);
        if (n == 0) from.fail_short(offset, into.size(), fd);
        done += static_cast<std::size_t>(n);
    }
}

void FileTransfer::read_chunk(const FileBlock& from, int fd, int direct, std::size_t offset,
                              std::span<std::byte> into) {
    const std::size_t whole = into.size() / kBlock * kBlock;
    // Directly read pages are not kept; pages that are there already may be newer than the disk.
    const bool cold = direct >= 0 && os::cached_bytes(fd, offset, into.size()).value_or(0) < into.size() / 2;
    std::size_t done = 0;
    if (cold) {
        Ref<HostBlock> buffer;
        std::byte* target = into.data();
        if (!aligned(target)) {
            buffer = HostBlock::allocate(kReadChunk, Fill::none);
            target = buffer->data();
        }
        while (done < whole && aligned(done)) {
            const ssize_t n = os::pread(direct, target + done, whole - done, offset + done);
            if (n < 0 && !unsuited(errno)) from.fail_range("read", into.size(), offset);
            if (n <= 0) break;
            done += static_cast<std::size_t>(n);
        }
        if (buffer) std::memcpy(into.data(), target, done);
    }
    read_part(from, fd, offset + done, into.subspan(done));
}

}  // namespace carrier
