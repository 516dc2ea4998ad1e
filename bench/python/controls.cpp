// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// The jobs of the benchmarks in bare C: no checks, no types, no state. Called through ctypes by machine.py.

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

namespace {

using Size = std::int64_t;
constexpr Size kMiB = Size{1} << 20;
constexpr Size kHuge = 2 * kMiB;
constexpr Size kPart = 4 * kMiB;
constexpr Size kKept = 32 * kMiB;  // allocators keep about so much when it is freed
constexpr int kThreads = 4;

Size rounded(Size bytes) { return (bytes + kHuge - 1) / kHuge * kHuge; }

bool warm_in_use = false;

/// Aligned to a huge page. Null when there is no memory.
void* map_huge(Size bytes) {
    const std::size_t size = static_cast<std::size_t>(rounded(bytes) + kHuge);
    char* const all =
        static_cast<char*>(::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (all == MAP_FAILED) return nullptr;
    const std::size_t skip = static_cast<std::size_t>(-reinterpret_cast<std::uintptr_t>(all)) % kHuge;
    if (skip != 0) ::munmap(all, skip);
    ::munmap(all + skip + rounded(bytes), kHuge - skip);
    ::madvise(all + skip, static_cast<std::size_t>(rounded(bytes)), MADV_HUGEPAGE);
    return all + skip;
}

template <class From, class To>
void convert(const void* from, void* to, Size n, Size step) {
    const From* in = static_cast<const From*>(from);
    To* out = static_cast<To*>(to);
    if (std::is_same_v<From, To> && step == 1) {
        std::memcpy(out, in, static_cast<std::size_t>(n) * sizeof(To));
    } else if (step == 1) {
        for (Size i = 0; i < n; ++i) out[i] = static_cast<To>(in[i]);
    } else {
        for (Size i = 0; i < n; ++i) {
            __builtin_prefetch(out + (i + 64) * step, 1);
            out[i * step] = static_cast<To>(in[i]);
        }
    }
}

/// `io(at, n)` gives what pread or pwrite gave. Direct: four threads, 4 MiB each. Buffered: one thread, the
/// same parts.
template <class Io>
int in_parts(Size bytes, bool direct, Io&& io) {
    std::atomic<Size> next{0};
    std::atomic<int> error{0};
    const auto work = [&] {
        for (Size at; (at = next.fetch_add(kPart)) < bytes;) {
            const Size n = std::min(kPart, bytes - at);
            const Size done = io(at, n);
            if (done != n) error = done < 0 ? errno : EIO;
        }
    };
    if (direct) {
        std::vector<std::thread> threads;
        for (int t = 0; t < kThreads; ++t) threads.emplace_back(work);
        for (std::thread& t : threads) t.join();
    } else {
        work();
    }
    return error;
}

}  // namespace

extern "C" {

/// Memory as fast as it comes. Below 32 MiB a block that is there already, and warm; else fresh huge pages.
__attribute__((noinline)) void* fresh(Size bytes) {
    static char* const warm = static_cast<char*>(map_huge(kKept));
    if (bytes <= kKept && !warm_in_use) {
        warm_in_use = true;
        return warm;
    }
    return map_huge(bytes);
}

__attribute__((noinline)) void drop(void* memory, Size bytes) {
    if (bytes <= kKept && warm_in_use)
        warm_in_use = false;
    else
        ::munmap(memory, static_cast<std::size_t>(rounded(bytes)));
}

/// Writes n values with a distance of `step`.
#define CONTROL_SPREAD(name, From, To)                                  \
    void spread_##name(const void* from, void* to, Size n, Size step) { \
        convert<From, To>(from, to, n, step);                           \
    }
/// Fresh memory, n values converted into it, and given back.
#define CONTROL_TAKE(name, From, To)                                 \
    void take_##name(const void* from, Size n) {                     \
        void* const made = fresh(n * static_cast<Size>(sizeof(To))); \
        convert<From, To>(from, made, n, 1);                         \
        drop(made, n* static_cast<Size>(sizeof(To)));                \
    }
#define CONTROL_PAIR(name, From, To) CONTROL_SPREAD(name, From, To) CONTROL_TAKE(name, From, To)

CONTROL_PAIR(f4_f4, float, float)
CONTROL_PAIR(i4_i4, std::int32_t, std::int32_t)
CONTROL_PAIR(b1_b1, bool, bool)
CONTROL_PAIR(f8_f4, double, float)
CONTROL_PAIR(i4_f4, std::int32_t, float)
CONTROL_PAIR(b1_f4, bool, float)
CONTROL_PAIR(i8_f4, std::int64_t, float)
CONTROL_PAIR(i8_i4, std::int64_t, std::int32_t)
CONTROL_PAIR(u8_i4, std::uint64_t, std::int32_t)
CONTROL_PAIR(u1_i4, std::uint8_t, std::int32_t)

/// A square of n x n floats, 16 x 16 at a time, by way of a tile that stays in the cache.
void transpose(const float* from, float* to, Size n) {
    constexpr Size kTile = 16;
    alignas(64) float tile[kTile][kTile];
    for (Size r = 0; r < n; r += kTile)
        for (Size c = 0; c < n; c += kTile) {
            const Size rows = std::min(kTile, n - r);
            const Size columns = std::min(kTile, n - c);
            for (Size i = 0; i < rows; ++i) {
                __builtin_prefetch(from + (r + i) * n + c + 2 * kTile);
                for (Size j = 0; j < columns; ++j) tile[j][i] = from[(r + i) * n + c + j];
            }
            for (Size j = 0; j < columns; ++j)
                for (Size i = 0; i < rows; ++i) to[(c + j) * n + r + i] = tile[j][i];
        }
}

/// Floats through five nested loops, the last one innermost: extents, then a source and a destination stride
/// each.
void nest(const float* from, float* to, const Size* n, const Size* in, const Size* out) {
    for (Size a = 0; a < n[0]; ++a)
        for (Size b = 0; b < n[1]; ++b)
            for (Size c = 0; c < n[2]; ++c) {
                const float* const source = from + a * in[0] + b * in[1] + c * in[2];
                float* const target = to + a * out[0] + b * out[1] + c * out[2];
                for (Size d = 0; d < n[3]; ++d)
                    for (Size e = 0; e < n[4]; ++e)
                        target[d * out[3] + e * out[4]] = source[d * in[3] + e * in[4]];
            }
}

/// Writes all of a file, which is made when `create`. 0, or errno.
int write_file(const char* path, const char* from, Size bytes, Size direct, Size create) {
    const int flags = O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0) | (create ? O_CREAT | O_EXCL : 0);
    const int fd = ::open(path, flags, 0600);
    if (fd < 0) return errno;
    const int error = in_parts(bytes, direct, [&](Size at, Size n) {
        return ::pwrite(fd, from + at, static_cast<std::size_t>(n), at);
    });
    ::close(fd);
    return error;
}

/// All of a file in fresh memory: of `fresh` by direct I/O, or of calloc by one read. Null on an error.
void* promote(const char* path, Size bytes, Size direct) {
    char* const made =
        static_cast<char*>(direct ? fresh(bytes) : std::calloc(1, static_cast<std::size_t>(bytes)));
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC | (direct ? O_DIRECT : 0));
    if (made == nullptr || fd < 0) return nullptr;
    const auto read = [&](Size at, Size n) {
        return ::pread(fd, made + at, static_cast<std::size_t>(n), at);
    };
    const int error = direct ? in_parts(bytes, true, read) : read(0, bytes) == bytes ? 0 : EIO;
    ::close(fd);
    return error == 0 ? made : nullptr;
}

void give_back(void* memory, Size bytes, Size direct) {
    if (direct)
        drop(memory, bytes);
    else
        std::free(memory);
}

/// Files of 64 bytes in a folder, by their numbers, each opened, looked at, written and closed. 0, or errno.
int make_files(const char* folder, Size first, Size last) {
    const int at = ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const char slots[64] = {};
    for (Size i = first; i < last; ++i) {
        const std::string name = "control-" + std::to_string(i);
        const int fd = ::openat(at, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        struct stat seen;
        if (fd < 0 || ::fstat(fd, &seen) != 0 || ::pwrite(fd, slots, 64, 0) != 64) return errno;
        ::close(fd);
    }
    return ::close(at);
}

void remove_files(const char* folder, Size first, Size last) {
    const int at = ::open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (Size i = first; i < last; ++i) ::unlinkat(at, ("control-" + std::to_string(i)).c_str(), 0);
    ::close(at);
}

}  // extern "C"
