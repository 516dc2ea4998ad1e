// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
#pragma once

#include <cstddef>
#include <span>

#include "carrier/file_block.hpp"
#include "carrier/host.hpp"

namespace carrier {

/// Moves bytes between host memory and a file, in the way that suits now.
///
/// Small transfers are buffered. Large ones into a file are buffered while memory is plentiful, since the
/// page cache takes them at memory speed, and direct when it is not: then the page cache would stall, and
/// hold the very memory that evicting was to free. So are those over blocks that the file has, unless the
/// page cache has them too. Large ones out of a file take from the page cache what it holds and read the rest
/// directly. Direct I/O is made by several threads; unaligned memory goes through aligned buffers.
struct FileTransfer {
    /// Below these, buffered I/O by the calling thread alone.
    static constexpr std::size_t kLargeWrite = std::size_t{16} << 20;
    static constexpr std::size_t kLargeRead = std::size_t{8} << 20;
    /// A job of one thread, and its aligned buffer. Many small ones overlap the disk's work with ours.
    static constexpr std::size_t kWriteChunk = std::size_t{2} << 20;
    static constexpr std::size_t kReadChunk = std::size_t{1} << 20;
    static constexpr std::size_t kThreads = 8;

    /// Over bytes that the file has, or beyond its end. When it fails, what it added to the file is cut off.
    static void write(FileBlock& to, std::size_t offset, std::span<const std::byte> from, Pulse& pulse);
    static void read(const FileBlock& from, std::size_t offset, std::span<std::byte> into, Pulse& pulse);

  private:
    static bool memory_is_short(std::size_t bytes) noexcept;
    static void write_large(FileBlock& to, int fd, std::size_t offset, std::span<const std::byte> from,
                            Pulse& pulse);
    static std::size_t write_buffered(FileBlock& to, int fd, std::size_t offset,
                                      std::span<const std::byte> from, Pulse& pulse, bool until_slow);
    static void write_direct(FileBlock& to, int fd, int direct, std::size_t offset,
                             std::span<const std::byte> from, Pulse& pulse);
    static void read_part(const FileBlock& from, int fd, std::size_t offset, std::span<std::byte> into);
    static void write_part(FileBlock& to, int fd, int direct, std::size_t offset,
                           std::span<const std::byte> from);
    static void read_chunk(const FileBlock& from, int fd, int direct, std::size_t offset,
                           std::span<std::byte> into);
};

}  // namespace carrier
