// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors
//
// Each row has its control beside it: the same bytes through bare system calls or the C library. Compare rows
// of one run only, and repeat with --benchmark_enable_random_interleaving=true.

#include <benchmark/benchmark.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "carrier/file_block.hpp"
#include "carrier/host_block.hpp"
#include "carrier/session.hpp"
#include "storage/closer.hpp"
#include "storage/transfer.hpp"

namespace carrier {
namespace {

Ref<HostBlock> payload(std::size_t bytes) {
    Ref<HostBlock> block = HostBlock::allocate(bytes, Fill::none);
    std::memset(block->data(), 3, bytes);
    return block;
}

/// A new name for a control's file, on the same disk as ours: a name used before would be found quicker.
std::string control_path() {
    static int number = 0;
    if (number == 0) FileBlock::create();
    return session_directory() + "/control" + std::to_string(number++);
}

void drop_from_cache(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDWR);
    ::fdatasync(fd);
    ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    ::close(fd);
}

void rate(benchmark::State& state) {
    state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}

/// The control of direct I/O: four threads, 4 MiB each.
template <class Io>
void in_parts(std::size_t bytes, Io&& io) {
    constexpr std::size_t kPart = std::size_t{4} << 20;
    std::atomic<std::size_t> next{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            for (std::size_t at; (at = next.fetch_add(kPart)) < bytes;) io(at, std::min(kPart, bytes - at));
        });
    for (std::thread& t : threads) t.join();
}

void Evict(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const Ref<HostBlock> host = payload(bytes);
    for (auto _ : state) {
        Ref<FileBlock> file = FileBlock::create();
        file->extend_for_overwrite(bytes);
        Pulse pulse;
        copy_blocks(*host, 0, *file, 0, bytes, pulse);
        state.PauseTiming();
        file = nullptr;
        storage::Closer::drain();
        state.ResumeTiming();
    }
    rate(state);
}

void evict_control(benchmark::State& state, bool direct) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const Ref<HostBlock> host = payload(bytes);
    std::string path = control_path();
    for (auto _ : state) {
        const int flags = O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | (direct ? O_DIRECT : 0);
        const int fd = ::open(path.c_str(), flags, 0600);
        const auto put = [&](std::size_t at, std::size_t n) {
            benchmark::DoNotOptimize(::pwrite(fd, host->data() + at, n, static_cast<off_t>(at)));
        };
        if (direct)
            in_parts(bytes, put);
        else
            put(0, bytes);
        ::close(fd);
        state.PauseTiming();
        ::unlink(path.c_str());
        path = control_path();
        state.ResumeTiming();
    }
    rate(state);
}

/// `cold`: from the disk, else from the page cache.
void promote(benchmark::State& state, bool cold) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const Ref<FileBlock> file = FileBlock::create();
    file->append({payload(bytes)->data(), bytes});
    for (auto _ : state) {
        state.PauseTiming();
        if (cold) drop_from_cache(file->path());
        state.ResumeTiming();
        const Ref<HostBlock> host = HostBlock::allocate(bytes, Fill::none);
        Pulse pulse;
        copy_blocks(*file, 0, *host, 0, bytes, pulse);
    }
    rate(state);
}

void promote_control(benchmark::State& state, bool direct) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const Ref<FileBlock> file = FileBlock::create();
    file->append({payload(bytes)->data(), bytes});
    for (auto _ : state) {
        state.PauseTiming();
        if (direct) drop_from_cache(file->path());
        state.ResumeTiming();
        if (direct) {
            void* const memory =
                ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            ::madvise(memory, bytes, MADV_HUGEPAGE);
            const int fd = ::open(file->path().c_str(), O_RDONLY | O_CLOEXEC | O_DIRECT);
            in_parts(bytes, [&](std::size_t at, std::size_t n) {
                benchmark::DoNotOptimize(
                    ::pread(fd, static_cast<std::byte*>(memory) + at, n, static_cast<off_t>(at)));
            });
            ::close(fd);
            ::munmap(memory, bytes);
        } else {
            void* const memory = std::calloc(1, bytes);
            const int fd = ::open(file->path().c_str(), O_RDONLY | O_CLOEXEC);
            benchmark::DoNotOptimize(::pread(fd, memory, bytes, 0));
            ::close(fd);
            std::free(memory);
        }
    }
    rate(state);
}

void ReleaseFile(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const Ref<HostBlock> host = payload(bytes);
    for (auto _ : state) {
        state.PauseTiming();
        Ref<FileBlock> file = FileBlock::create();
        file->append({host->data(), bytes});
        state.ResumeTiming();
        file->discard();
    }
}

/// One slot, through the block and through bare calls on a descriptor of the same file.
void slot(benchmark::State& state, bool writes, bool control) {
    const Ref<FileBlock> file = FileBlock::create();
    file->append({payload(4096)->data(), 4096});
    const int fd = ::open(file->path().c_str(), O_RDWR | O_CLOEXEC);
    std::byte slot[4] = {};
    if (control && writes)
        for (auto _ : state) benchmark::DoNotOptimize(::pwrite(fd, slot, 4, 1024));
    else if (control)
        for (auto _ : state) benchmark::DoNotOptimize(::pread(fd, slot, 4, 1024));
    else if (writes)
        for (auto _ : state) file->write(1024, slot);
    else
        for (auto _ : state) file->read(1024, slot);
    ::close(fd);
}

void ManyFiles(benchmark::State& state) {
    const auto count = static_cast<std::size_t>(state.range(0));
    const Ref<HostBlock> host = payload(64);
    for (auto _ : state) {
        std::vector<Ref<FileBlock>> files(count);
        for (Ref<FileBlock>& file : files) {
            file = FileBlock::create();
            file->append({host->data(), 64});
        }
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}

void ManyFilesControl(benchmark::State& state) {
    const auto count = static_cast<std::size_t>(state.range(0));
    const Ref<HostBlock> host = payload(64);
    const std::string path = control_path();
    for (auto _ : state) {
        for (std::size_t i = 0; i < count; ++i) {
            const int fd =
                ::open((path + std::to_string(i)).c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
            benchmark::DoNotOptimize(::pwrite(fd, host->data(), 64, 0));
            ::close(fd);
        }
        for (std::size_t i = 0; i < count; ++i) ::unlink((path + std::to_string(i)).c_str());
    }
    state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()) * state.range(0));
}

void MakeHostBlock(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    for (auto _ : state) benchmark::DoNotOptimize(HostBlock::allocate(bytes, Fill::zero)->data());
}

void MakeHostBlockControl(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    for (auto _ : state) {
        void* const memory = std::calloc(1, bytes);
        benchmark::DoNotOptimize(memory);
        std::free(memory);
    }
}

void CopyHost(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const Ref<HostBlock> from = payload(bytes);
    const Ref<HostBlock> to = payload(bytes);
    for (auto _ : state) {
        Pulse pulse;
        copy_blocks(*from, 0, *to, 0, bytes, pulse);
    }
    rate(state);
}

void CopyHostControl(benchmark::State& state) {
    const auto bytes = static_cast<std::size_t>(state.range(0));
    const Ref<HostBlock> from = payload(bytes);
    const Ref<HostBlock> to = payload(bytes);
    for (auto _ : state) {
        std::memcpy(to->data(), from->data(), bytes);
        benchmark::ClobberMemory();
    }
    rate(state);
}

constexpr std::int64_t kKiB = 1 << 10;
constexpr std::int64_t kMiB = 1 << 20;

const std::vector<std::int64_t> kLarge{64 * kMiB, 512 * kMiB};
const std::vector<std::int64_t> kAll{4 * kKiB, 4 * kMiB, 64 * kMiB, 512 * kMiB};
const std::vector<std::int64_t> kBlocks{64, 4 * kMiB, 1024 * kMiB};

struct Job {
    const char* name;
    void (*run)(benchmark::State&);
    std::vector<std::int64_t> sizes;
    benchmark::TimeUnit unit = benchmark::kMicrosecond;
    std::int64_t iterations = 0;  // as many as it takes
};

/// A job and, under it, its controls.
const Job kJobs[] = {
    {"Evict", Evict, kAll},
    {"EvictControlBuffered", [](benchmark::State& s) { evict_control(s, false); }, kAll},
    {"EvictControlDirect", [](benchmark::State& s) { evict_control(s, true); }, kLarge},
    {"PromoteCold", [](benchmark::State& s) { promote(s, true); }, kLarge},
    {"PromoteColdControl", [](benchmark::State& s) { promote_control(s, true); }, kLarge},
    {"PromoteWarm", [](benchmark::State& s) { promote(s, false); }, kAll},
    {"PromoteWarmControl", [](benchmark::State& s) { promote_control(s, false); }, kAll},
    {"ReleaseFile", ReleaseFile, kLarge, benchmark::kMicrosecond, 3},
    {"ReadSlot", [](benchmark::State& s) { slot(s, false, false); }, {}, benchmark::kNanosecond},
    {"ReadSlotControl", [](benchmark::State& s) { slot(s, false, true); }, {}, benchmark::kNanosecond},
    {"WriteSlot", [](benchmark::State& s) { slot(s, true, false); }, {}, benchmark::kNanosecond},
    {"WriteSlotControl", [](benchmark::State& s) { slot(s, true, true); }, {}, benchmark::kNanosecond},
    {"ManyFiles", ManyFiles, {10000}, benchmark::kMillisecond},
    {"ManyFilesControl", ManyFilesControl, {10000}, benchmark::kMillisecond},
    {"MakeHostBlock", MakeHostBlock, kBlocks, benchmark::kNanosecond},
    {"MakeHostBlockControl", MakeHostBlockControl, kBlocks, benchmark::kNanosecond},
    {"CopyHost", CopyHost, kLarge},
    {"CopyHostControl", CopyHostControl, kLarge},
};

[[maybe_unused]] const bool registered = [] {
    for (const Job& job : kJobs) {
        auto* const made = benchmark::RegisterBenchmark(job.name, job.run)->Unit(job.unit)->UseRealTime();
        for (const std::int64_t size : job.sizes) made->Arg(size);
        if (job.iterations != 0) made->Iterations(job.iterations);
    }
    return true;
}();

}  // namespace
}  // namespace carrier
