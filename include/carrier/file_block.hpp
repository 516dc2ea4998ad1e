// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "carrier/block.hpp"

namespace carrier {

namespace storage {
class Descriptors;
class Lease;
class Session;
}  // namespace storage

/// Bytes in a file of their own, in the session directory of the process (see carrier/session.hpp). The file
/// goes with the block: no name, no header, no padding; its length is the block's size.
///
/// A block needs no descriptor while nobody uses it, so their number is not limited by the descriptor limit.
/// Reads and writes are positional; different threads may use one block as long as they do not grow it.
///
/// Errors are OsErrors that carry the system's code and the path. A file that someone removed or cut short is
/// an OsError on access, never invented zeros. A full disk is ENOSPC, a file size limit EFBIG (a program that
/// sets such a limit must ignore SIGXFSZ, as Python does).
///
/// In a forked child a block of the parent is `inherited`: it may be read; what would change the file is a
/// StateError that names the fork; dropping it leaves the file to the parent.
class CARRIER_API FileBlock final : public Block {
  public:
    /// An empty file, under a unique name or under `bare_name`. ValueError for a name that is empty, `.`,
    /// `..`, or holds a separator or NUL; OsError EEXIST when the name is taken.
    static Ref<FileBlock> create(const std::optional<std::string>& bare_name = std::nullopt);

    /// Absolute; answers after `discard` too.
    const std::string& path() const noexcept { return path_; }
    /// True in a forked child for a block that its parent made.
    bool inherited() const noexcept;

    void read(std::size_t offset, std::span<std::byte> into) const override;
    /// Not all-or-nothing: a write that fails may have written a front part. Inside the block's size; an
    /// OsError (EIO) when the file was cut short, rather than a hole filled with zeros.
    void write(std::size_t offset, std::span<const std::byte> from) override;

    /// Extends to `bytes` (not less than now) with zeros. Their space is taken first, so that a full disk is
    /// reported here and changes neither size nor disk blocks. Growth by more than `kSparse` bytes on a disk
    /// that has twice as much room stays sparse instead: it takes blocks as they are written.
    void grow(std::size_t bytes);
    static constexpr std::size_t kSparse = std::size_t{32} << 20;
    /// Extends to `bytes` without giving the new bytes a value: the caller writes them all at once, which is
    /// also when the disk is asked for space. Until then reading them is an OsError.
    void extend_for_overwrite(std::size_t bytes);
    /// Adds bytes at the end. When it fails the size is as before.
    void append(std::span<const std::byte> from);

    /// Removes the file; its space is given back in the background where that takes long. Idempotent, never
    /// fails, and what the destructor does.
    void discard() noexcept;

    /// For tests: how many blocks are alive.
    static std::int64_t live() noexcept;

    ~FileBlock() override;

  private:
    friend class storage::Descriptors;
    friend class storage::Lease;
    friend struct FileTransfer;

    FileBlock(std::shared_ptr<storage::Session> session, std::string path);
    const char* name() const noexcept;
    void require_own(const char* what) const;
    void put(int fd, std::size_t offset, std::span<const std::byte> from);
    void require_whole(int fd) const;
    void require_growth(std::size_t bytes) const;
    int reserve_to(int fd, std::size_t end) noexcept;
    void take_blocks(int fd, std::size_t end);
    int write_zeros(int fd, std::size_t end);
    [[noreturn]] void fail_range(const char* verb, std::size_t bytes, std::size_t offset) const;
    [[noreturn]] void fail(int code, const std::string& operation) const;
    [[noreturn]] void fail_short(std::size_t offset, std::size_t bytes, int fd) const;

    std::shared_ptr<storage::Session> session_;
    std::string path_;
    std::size_t extent_ = 0;    // length of the file as we made it; behind size() until overwritten
    std::uint64_t inode_ = 0;   // of a file whose name the caller chose, and may choose again
    std::uint32_t generation_;  // of the process that made it
    std::uint32_t slot_ = 0;    // in the descriptor cache, under its mutex
    std::atomic<bool> discarded_{false};
    mutable std::atomic<std::uint64_t> lease_{0};  // descriptor and users: see storage/descriptors.hpp
};

}  // namespace carrier
