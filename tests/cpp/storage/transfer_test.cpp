// SPDX-License-Identifier: Apache-2.0
// Copyright carrier-storage contributors

#include "storage/transfer.hpp"

#include <sys/time.h>

#include <csignal>
#include <cstring>
#include <thread>

#include "os/testing.hpp"
#include "storage/closer.hpp"
#include "storage/storage_test_base.hpp"

namespace carrier::testing {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// How a test bends the system: what the machine would do under other conditions.
class Bent final : public os::testing::Hook {
  public:
    Bent() {
        storage::Closer::drain();  // no other thread makes calls while hooks change
        os::testing::hook.store(this);
    }
    ~Bent() {
        storage::Closer::drain();
        os::testing::hook.store(nullptr);
    }
    int before(os::Call call, std::size_t& length) noexcept override {
        // Without the memory's state known, transfers go directly.
        if (direct && call == os::Call::read) return EIO;
        if (cold && call == os::Call::cachestat) return EPERM;
        if (cold && call == os::Call::mmap) return 0;
        if (interrupted && call == os::Call::pread && ++preads % 2 == 0) return EINTR;
        if (interrupted && call == os::Call::pwrite && ++pwrites % 2 == 0) return EINTR;
        // Each thread's every other call: the direct one, and then not the one through the page cache.
        static thread_local bool turn = false;
        if (no_direct && call == os::Call::pwrite && length >= kMiB && (turn = !turn)) return EINVAL;
        if (no_threads && call == os::Call::thread) return EAGAIN;
        if (call == os::Call::pread || call == os::Call::pwrite) {
            ++calls;
            if (longest != 0 && length > longest) length = longest;
        }
        return 0;
    }
    bool direct = false, cold = false, interrupted = false, no_direct = false, no_threads = false;
    std::size_t longest = 0;
    std::atomic<int> calls{0}, preads{0}, pwrites{0};
};

/// A medium that is neither host memory nor a file.
class Device final : public Block {
  public:
    explicit Device(std::size_t bytes) : bytes_(bytes) { size_ = bytes; }
    void read(std::size_t offset, std::span<std::byte> into) const override {
        std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), into.size(), into.begin());
    }
    void write(std::size_t offset, std::span<const std::byte> from) override {
        std::copy_n(from.begin(), from.size(), bytes_.begin() + static_cast<std::ptrdiff_t>(offset));
    }

  private:
    std::vector<std::byte> bytes_;
};

const std::vector<std::size_t> kSizes{0, 1, 4096, 70001, 9 * kMiB + 3, 33 * kMiB + 4099};

class Transfers : public StorageTest {
  protected:
    Ref<Block> target(int medium, std::size_t bytes) {
        if (medium == 0) return Ref<Block>(HostBlock::allocate(bytes, Fill::none));
        if (medium == 2) return Ref<Block>(make<Device>(bytes));
        Ref<FileBlock> file = FileBlock::create();
        file->extend_for_overwrite(bytes);
        return Ref<Block>(file);
    }
    void round_trip(std::size_t bytes) {
        const Ref<HostBlock> source = host_pattern(bytes);
        Pulse pulse;
        const Ref<Block> file = target(1, bytes);
        copy_blocks(*source, 0, *file, 0, bytes, pulse);
        EXPECT_EQ(stat_of(static_cast<FileBlock&>(*file).path()).st_size, static_cast<std::int64_t>(bytes));
        const Ref<HostBlock> back = HostBlock::allocate(bytes, Fill::zero);
        copy_blocks(*file, 0, *back, 0, bytes, pulse);
        ASSERT_EQ(std::memcmp(source->data(), back->data(), bytes), 0) << bytes;
    }
};

TEST_F(Transfers, MoveBytesBetweenAnyTwoMedia) {
    for (const std::size_t bytes : kSizes) {
        for (int from = 0; from < 3; ++from) {
            for (int to = 0; to < 3; ++to) {
                Pulse pulse;
                const Ref<Block> source = target(from, bytes);
                copy_blocks(*host_pattern(bytes), 0, *source, 0, bytes, pulse);
                const Ref<Block> destination = target(to, bytes);
                copy_blocks(*source, 0, *destination, 0, bytes, pulse);
                ASSERT_EQ(bytes_of(*destination), pattern(bytes)) << from << " to " << to << ", " << bytes;
            }
        }
    }
}

TEST_F(Transfers, GiveTheSameBytesWhateverTheSystemDoes) {
    const std::size_t bytes = 33 * kMiB + 4099;
    for (int way = 0; way < 8; ++way) {
        SCOPED_TRACE(way);
        Bent bent;
        bent.direct = way > 0;
        bent.cold = way == 2;
        bent.interrupted = way == 3;
        bent.longest = way == 4 ? 300001 : way == 5 ? 8192 * 3 : 0;
        bent.no_direct = way == 6;
        bent.no_threads = way == 7;
        round_trip(bytes);
    }
}

TEST_F(Transfers, TakeUnalignedMemoryAndOffsets) {
    const std::size_t bytes = 20 * kMiB + 777;
    for (const bool direct : {false, true}) {
        Bent bent;
        bent.direct = direct;
        auto memory = pattern(bytes + 64);
        const Ref<HostBlock> source = HostBlock::wrap(memory.data(), memory.size());
        Pulse pulse;
        const Ref<FileBlock> file = file_of(pattern(1000, 7));
        file->extend_for_overwrite(1000 + bytes);
        copy_blocks(*source, 13, *file, 1000, bytes, pulse);
        std::vector<std::byte> back(bytes + 64);
        const Ref<HostBlock> into = HostBlock::wrap(back.data(), back.size());
        copy_blocks(*file, 1000, *into, 29, bytes, pulse);
        ASSERT_EQ(std::memcmp(back.data() + 29, memory.data() + 13, bytes), 0) << direct;
        std::vector<std::byte> front(1000);
        file->read(0, front);
        EXPECT_EQ(front, pattern(1000, 7));
    }
}

TEST_F(Transfers, ColdFilesAreReadFromTheDisk) {
    const std::size_t bytes = 24 * kMiB + 5;
    Bent bent;
    bent.direct = true;
    round_trip(bytes);
    const Ref<FileBlock> file = FileBlock::create();
    file->extend_for_overwrite(bytes);
    Pulse pulse;
    copy_blocks(*host_pattern(bytes), 0, *file, 0, bytes, pulse);
    // Newer bytes that only the page cache has.
    file->write(10 * kMiB + 1, pattern(5000, 3));
    const Ref<HostBlock> back = HostBlock::allocate(bytes, Fill::zero);
    copy_blocks(*file, 0, *back, 0, bytes, pulse);
    EXPECT_EQ(std::memcmp(back->data() + 10 * kMiB + 1, pattern(5000, 3).data(), 5000), 0);
    EXPECT_EQ(std::memcmp(back->data(), pattern(bytes).data(), 10 * kMiB), 0);
}

TEST_F(Transfers, OverlappingRangesAreSnapshots) {
    for (const std::size_t bytes : {std::size_t{1000}, 40 * kMiB}) {
        for (int medium = 0; medium < 2; ++medium) {
            for (const auto& [from, to] : {std::pair<std::size_t, std::size_t>{0, 100}, {100, 0}}) {
                auto expected = pattern(bytes + 100);
                std::memmove(expected.data() + to, expected.data() + from, bytes);
                const Ref<Block> block = target(medium, bytes + 100);
                Pulse pulse;
                copy_blocks(*host_pattern(bytes + 100), 0, *block, 0, bytes + 100, pulse);
                copy_blocks(*block, from, *block, to, bytes, pulse);
                EXPECT_EQ(bytes_of(*block), expected) << medium << " " << bytes << " " << from;
            }
        }
    }
}

TEST_F(Transfers, AFileCutShortIsAnErrorEitherWay) {
    for (const std::size_t bytes : {std::size_t{5000}, 24 * kMiB}) {
        for (const off_t left : {off_t{0}, off_t{4096}, static_cast<off_t>(bytes - 1)}) {
            const Ref<FileBlock> file = file_of(pattern(bytes));
            ASSERT_EQ(::truncate(file->path().c_str(), left), 0);
            const Ref<HostBlock> host = HostBlock::allocate(bytes, Fill::none);
            Pulse pulse;
            EXPECT_EQ(os_error([&] { copy_blocks(*file, 0, *host, 0, bytes, pulse); }), EIO);
            EXPECT_EQ(os_error([&] { copy_blocks(*host, 0, *file, 0, bytes, pulse); }), EIO);
            EXPECT_EQ(stat_of(file->path()).st_size, left);
        }
    }
}

TEST_F(Transfers, OverwritingKeepsTheLengthOfALargerFile) {
    for (const bool direct : {false, true}) {
        Bent bent;
        bent.direct = direct;
        const Ref<FileBlock> file = file_of(pattern(30 * kMiB));
        Pulse pulse;
        copy_blocks(*host_pattern(20 * kMiB + 1, 9), 0, *file, 0, 20 * kMiB + 1, pulse);
        EXPECT_EQ(file->size(), 30 * kMiB);
        EXPECT_EQ(stat_of(file->path()).st_size, static_cast<std::int64_t>(30 * kMiB));
        auto expected = pattern(30 * kMiB);
        const auto front = pattern(20 * kMiB + 1, 9);
        std::copy(front.begin(), front.end(), expected.begin());
        EXPECT_EQ(bytes_of(*file), expected);
    }
}

struct Interrupt {};
std::atomic<int> polls{0};

/// The host's poll for the scope of a test.
class Polled {
  public:
    explicit Polled(void (*poll)()) : before_(host().poll) {
        polls = 0;
        host().poll = poll;
    }
    ~Polled() { host().poll = before_; }

  private:
    void (*before_)();
};

/// A pulse that has not asked for long, so that it asks at its next call.
Pulse overdue() {
    Pulse pulse;
    std::this_thread::sleep_for(std::chrono::milliseconds(60));
    return pulse;
}

TEST_F(Transfers, AnInterruptEndsThemWithAllTheirThreads) {
    const Polled polled([] {
        ++polls;
        throw Interrupt{};
    });
    const std::size_t bytes = 40 * kMiB;
    const Ref<HostBlock> host = host_pattern(bytes);
    for (const bool direct : {false, true}) {
        Bent bent;
        bent.direct = direct;
        const Ref<FileBlock> file = FileBlock::create();
        file->extend_for_overwrite(bytes);
        Pulse pulse = overdue();
        EXPECT_THROW(copy_blocks(*host, 0, *file, 0, bytes, pulse), Interrupt);
        EXPECT_EQ(stat_of(file->path()).st_size, 0);  // what was added is cut off
        Pulse quiet(false);
        copy_blocks(*host, 0, *file, 0, bytes, quiet);
        EXPECT_EQ(bytes_of(*file), pattern(bytes));
        Pulse again = overdue();
        const Ref<HostBlock> back = HostBlock::allocate(bytes, Fill::none);
        EXPECT_THROW(copy_blocks(*file, 0, *back, 0, bytes, again), Interrupt);
        Pulse third = overdue();
        EXPECT_THROW(copy_blocks(*host, 0, *back, 0, bytes, third), Interrupt);
    }
    EXPECT_EQ(polls, 6);
}

pid_t forked = -1;

TEST_F(Transfers, AForkInTheMiddleStopsTheChildOnly) {
    const Polled polled([] {
        if (++polls == 1) forked = ::fork();
    });
    const std::size_t bytes = 40 * kMiB;
    const Ref<HostBlock> host = host_pattern(bytes);
    for (const bool direct : {false, true}) {
        polls = 0;
        Bent bent;
        bent.direct = direct;
        const Ref<FileBlock> file = FileBlock::create();
        file->extend_for_overwrite(bytes);
        Pulse pulse = overdue();
        bool stopped = false;
        try {
            copy_blocks(*host, 0, *file, 0, bytes, pulse);
        } catch (const StateError&) {
            stopped = true;
        }
        if (forked == 0) ::_exit(stopped ? 0 : 1);
        int status = 0;
        ::waitpid(forked, &status, 0);
        EXPECT_EQ(status, 0);
        EXPECT_FALSE(stopped);
        EXPECT_EQ(bytes_of(*file), pattern(bytes));
    }
}

TEST_F(Transfers, SignalsDuringThemLoseNothing) {
    struct sigaction quiet {};
    quiet.sa_handler = [](int) {};
    struct sigaction before {};
    ::sigaction(SIGALRM, &quiet, &before);
    const itimerval every{{0, 500}, {0, 500}};
    ::setitimer(ITIMER_REAL, &every, nullptr);
    for (const std::size_t bytes : {std::size_t{4096}, 9 * kMiB + 1, 33 * kMiB + 5}) round_trip(bytes);
    const itimerval never{};
    ::setitimer(ITIMER_REAL, &never, nullptr);
    ::sigaction(SIGALRM, &before, nullptr);
}

}  // namespace
}  // namespace carrier::testing
