// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "carrier/file_block.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <string_view>
#include <vector>

#include "carrier/errors.hpp"
#include "os/file.hpp"
#include "os/process.hpp"
#include "storage/closer.hpp"
#include "storage/descriptors.hpp"
#include "storage/session.hpp"

namespace carrier {

using storage::Closer;
using storage::Descriptors;
using storage::Lease;
using storage::Session;

namespace {

std::atomic<std::int64_t> alive{0};

void check_name(const std::string& name) {
    const auto quoted = [&] { return "filename must be a bare name; got '" + name + "'"; };
    if (name.empty() || name == "." || name == "..") throw ValueError(quoted() + ", which names no file");
    if (name.find('/') != std::string::npos) throw ValueError(quoted() + ", which holds a separator '/'");
    if (name.find('\0') != std::string::npos)
        throw ValueError("filename must be a bare name; got one that holds a NUL byte");
}

bool full(int code) noexcept { return code == ENOSPC || code == EDQUOT; }

/// Runs `attempt`; when the disk is full and removed files are still giving space back, waits and runs it
/// again.
template <class Attempt>
int with_space(Attempt&& attempt) noexcept {
    const int result = attempt();
    if (result == 0 || !full(errno)) return result;
    const int code = errno;
    if (Closer::drain()) return attempt();
    errno = code;
    return result;
}

/// Growth up to so many bytes is written: cheaper than a reservation, whose blocks a file system has to free
/// again even where the file goes before anything reached the disk.
constexpr std::size_t kWritten = std::size_t{1} << 20;

/// So much at once is worth asking for its blocks first.
constexpr std::size_t kMuch = std::size_t{4} << 20;

bool no_reservations(int code) noexcept { return code == EOPNOTSUPP || code == ENOSYS; }

std::string range(const char* verb, std::size_t bytes, std::size_t offset) {
    return std::string(verb) + " " + std::to_string(bytes) + " bytes at " + std::to_string(offset);
}

}  // namespace

FileBlock::FileBlock(std::shared_ptr<Session> session, std::string path)
    : session_(std::move(session)), path_(std::move(path)), generation_(os::generation()) {
    alive.fetch_add(1, std::memory_order_relaxed);
}

FileBlock::~FileBlock() {
    discard();
    alive.fetch_sub(1, std::memory_order_relaxed);
}

std::int64_t FileBlock::live() noexcept { return alive.load(std::memory_order_relaxed); }

const char* FileBlock::name() const noexcept { return path_.c_str() + session_->path().size() + 1; }

bool FileBlock::inherited() const noexcept { return generation_ != os::generation(); }

Ref<FileBlock> FileBlock::create(const std::optional<std::string>& bare_name) {
    if (bare_name) check_name(*bare_name);
    for (int lost = 0;;) {
        std::shared_ptr<Session> session = Session::current();
        const std::string name = bare_name ? *bare_name : session->new_name();
        std::string path = session->path() + "/" + name;
        // The block before the file: nothing can fail once there is one.
        Ref<FileBlock> block(new FileBlock(std::move(session), std::move(path)));
        block->discarded_.store(true, std::memory_order_relaxed);
        os::UniqueFd fd(Descriptors::create(*block->session_, block->name()));
        if (!fd) {
            if (errno == EEXIST && !bare_name) continue;
            if (errno != ENOENT || lost++ > 0) block->fail(errno, "create the file");
            Session::forget(*block->session_);
            continue;
        }
        block->discarded_.store(false, std::memory_order_relaxed);
        struct stat made;
        if (os::fstat(fd.get(), made) != 0) block->fail(errno, "look at the new file");
        // A umask may have taken the owner's bits away.
        if ((made.st_mode & 0777) != 0600 && os::fchmod(fd.get(), 0600) != 0)
            block->fail(errno, "set the mode of the new file");
        if (bare_name) block->inode_ = made.st_ino;
        Descriptors::adopt(*block, fd.detach());
        return block;
    }
}

void FileBlock::fail(int code, const std::string& operation) const { throw OsError(code, operation, path_); }

void FileBlock::require_own(const char* what) const {
    if (inherited())
        throw StateError(
            std::string("cannot ") + what + " " + path_ +
            ": the file belongs to the process that this one was forked from; here it can only be "
            "read, so make a new carrier");
}

void FileBlock::require_growth(std::size_t bytes) const {
    if (bytes < size_)
        throw ValueError("a file only grows: asked for " + std::to_string(bytes) + " bytes, it has " +
                         std::to_string(size_));
}

/// Somebody who cut the file short must not have the missing bytes invented by the next write.
void FileBlock::require_whole(int fd) const {
    const std::int64_t length = os::file_length(fd);
    if (length < 0) fail(errno, "look at the file");
    if (static_cast<std::size_t>(length) < extent_)
        fail(EIO, "write to a file that was cut short: it holds " + std::to_string(length) + " of " +
                      std::to_string(extent_) + " bytes");
}

void FileBlock::fail_range(const char* verb, std::size_t bytes, std::size_t offset) const {
    fail(errno, range(verb, bytes, offset));
}

void FileBlock::fail_short(std::size_t offset, std::size_t bytes, int fd) const {
    fail(EIO, range("read", bytes, offset) + " of a file that was cut short: it holds " +
                  std::to_string(os::file_length(fd)) + " of " + std::to_string(size_) + " bytes");
}

void FileBlock::read(std::size_t offset, std::span<std::byte> into) const {
    if (into.empty()) return;
    const Lease lease(*this);
    for (std::size_t done = 0; done < into.size();) {
        const ssize_t n = os::pread(lease.fd(), into.data() + done, into.size() - done, offset + done);
        if (n < 0) fail_range("read", into.size(), offset);
        if (n == 0) fail_short(offset, into.size(), lease.fd());
        done += static_cast<std::size_t>(n);
    }
}

void FileBlock::put(int fd, std::size_t offset, std::span<const std::byte> from) {
    std::size_t done = 0;
    const auto attempt = [&] {
        while (done < from.size()) {
            const ssize_t n = os::pwrite(fd, from.data() + done, from.size() - done, offset + done);
            if (n < 0) return -1;
            done += static_cast<std::size_t>(n);
        }
        return 0;
    };
    if (with_space(attempt) != 0) fail_range("write", from.size(), offset);
}

void FileBlock::write(std::size_t offset, std::span<const std::byte> from) {
    if (from.empty()) return;
    require_own("write to");
    const Lease lease(*this);
    require_whole(lease.fd());
    put(lease.fd(), offset, from);
    if (offset + from.size() > extent_) extent_ = offset + from.size();
}

void FileBlock::append(std::span<const std::byte> from) {
    if (from.empty()) return;
    require_own("append to");
    const Lease lease(*this);
    if (extent_ != 0) require_whole(lease.fd());
    try {
        if (from.size() >= kMuch) take_blocks(lease.fd(), size_ + from.size());
        put(lease.fd(), size_, from);
    } catch (...) {
        os::ftruncate(lease.fd(), extent_);
        throw;
    }
    size_ += from.size();
    extent_ = size_;
}

void FileBlock::extend_for_overwrite(std::size_t bytes) {
    require_own("extend");
    require_growth(bytes);
    size_ = bytes;
}

/// Takes disk blocks up to `end`, or gives back those that a refused reservation got. Where the file system
/// has no reservations it does nothing: the errno is EOPNOTSUPP or ENOSYS then.
int FileBlock::reserve_to(int fd, std::size_t end) noexcept {
    return with_space([&] {
        if (os::reserve(fd, extent_, end - extent_) == 0) return 0;
        const int code = errno;
        os::ftruncate(fd, extent_);
        errno = code;
        return -1;
    });
}

/// Before much is written up to `end`: a full disk is told while nothing is changed, and blocks that are
/// there are written sooner.
void FileBlock::take_blocks(int fd, std::size_t end) {
    if (end <= extent_) return;
    const auto where = os::file_system(fd);
    if (where && where->in_memory) return;
    if (reserve_to(fd, end) != 0 && (errno == ENOSPC || errno == EDQUOT || errno == EFBIG))
        fail_range("write", end - extent_, extent_);
}

/// Zeros written out, which takes the space as a reservation does.
int FileBlock::write_zeros(int fd, std::size_t end) {
    const std::vector<std::byte> zeros(std::min(end - extent_, std::size_t{1} << 20));
    return with_space([&] {
        for (std::size_t at = extent_; at < end;) {
            const ssize_t n = os::pwrite(fd, zeros.data(), std::min(zeros.size(), end - at), at);
            if (n < 0) return -1;
            at += static_cast<std::size_t>(n);
        }
        return 0;
    });
}

void FileBlock::grow(std::size_t bytes) {
    require_own("grow");
    require_growth(bytes);
    if (bytes == extent_) return;
    const std::string operation =
        "grow from " + std::to_string(size_) + " to " + std::to_string(bytes) + " bytes";
    if (bytes > INT64_MAX) fail(EFBIG, operation);
    const Lease lease(*this);
    const int fd = lease.fd();
    require_whole(fd);
    const std::size_t delta = bytes - extent_;
    const auto space = delta > kSparse ? os::file_system(fd) : std::nullopt;
    const bool sparse = space && space->available / 2 >= delta;
    const bool small = delta <= kWritten;
    int result = sparse || small ? 0 : reserve_to(fd, bytes);
    if (small || (result != 0 && no_reservations(errno))) result = write_zeros(fd, bytes);
    if (result == 0 && !small) result = with_space([&] { return os::ftruncate(fd, bytes); });
    if (result != 0) {
        const int code = errno;
        os::ftruncate(fd, extent_);
        fail(code, operation);
    }
    size_ = extent_ = bytes;
}

void FileBlock::discard() noexcept {
    const bool had_file = !discarded_.load(std::memory_order_relaxed);
    const int fd = Descriptors::retire(*this);
    if (had_file && !inherited()) {
        struct stat now;
        const int directory = session_->directory();
        // Under a name of the caller's choice there may be another file by now.
        if (inode_ == 0 || (os::fstatat(directory, name(), now) == 0 && now.st_ino == inode_))
            os::unlinkat(directory, name());
    }
    if (fd >= 0) Closer::close(fd, inherited() ? 0 : size_);
}

}  // namespace carrier
